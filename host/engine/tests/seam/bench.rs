//! A directory with a source, the kinds of destination that a copy can have, and what must be true
//! of each when the copy has ended.

use std::fs::{self, File, OpenOptions};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use copyist_engine::{
    Base, Destination, Environment, Error, Existing, Handle, Location, Options, Reflink, Request,
    Source, Step, Summary, Transfer, Tuning, Window, WriteMode,
};

use crate::scheduled::{SOURCE, Scheduled};

/// What one data call moves in these tests.
pub(crate) const CALL: usize = 4096;
/// Five data calls and a bit.
pub(crate) const SIZE: usize = 5 * CALL + 123;
/// Longer than the source, so that a tail is left if nobody cuts it.
const OLD_SIZE: usize = 3 * SIZE;
/// The part that [`Shape::Window`] copies: four data calls, from the middle of a block.
pub(crate) const WINDOW: Window = Window {
    source_offset: 1000,
    length: Some(3 * CALL as u64 + 17),
    destination_offset: 700,
};
/// More steps than any copy of this size takes.
const MOST_STEPS: usize = 2000;

/// A kind of destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A name that is not there.
    New,
    /// An older, longer file, overwritten.
    InPlace,
    /// An older, longer file, replaced.
    Replace,
    /// A name that is not there, by way of a staged file.
    ReplaceNothing,
    /// Part of the source into the middle of an older file.
    Window,
    /// An older, longer file that the caller has opened.
    Descriptor,
    /// The same, opened for appending.
    Append,
}

impl Shape {
    pub(crate) const ALL: [Self; 7] = [
        Self::New,
        Self::InPlace,
        Self::Replace,
        Self::ReplaceNothing,
        Self::Window,
        Self::Descriptor,
        Self::Append,
    ];

    /// Whether a file was there before.
    pub(crate) fn is_old(self) -> bool {
        !matches!(self, Self::New | Self::ReplaceNothing)
    }
}

/// The mechanism that a copy begins with; the others come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Clone,
    /// A clone of so many bytes a call, since no call may take long.
    Pieces,
    CopyRange,
    SendFile,
    ReadWrite,
}

impl Start {
    pub(crate) const ALL: [Self; 5] = [
        Self::Clone,
        Self::Pieces,
        Self::CopyRange,
        Self::SendFile,
        Self::ReadWrite,
    ];

    /// The system that it needs.
    pub(crate) fn system(self) -> Scheduled {
        match self {
            Self::Clone | Self::Pieces => Scheduled::new().clones(),
            _ => Scheduled::new(),
        }
    }
}

/// See the module.
pub(crate) struct Bench {
    directory: tempfile::TempDir,
    handle: Handle,
    content: Vec<u8>,
    old: Vec<u8>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::of(noise(SIZE, 1))
    }

    /// A source with this content.
    pub(crate) fn of(content: Vec<u8>) -> Self {
        // In memory where that can be had: there are thousands of copies here.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        }
        .expect("a directory for the test");
        let handle = Arc::new(File::open(directory.path()).expect("its own directory"));
        fs::write(directory.path().join(SOURCE), &content).expect("room for the source");
        Self {
            directory,
            handle,
            content,
            old: noise(OLD_SIZE, 2),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn at(&self, name: &str) -> Location {
        Location {
            base: Base::Beneath(self.handle.clone()),
            path: name.into(),
            follow: false,
        }
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.content
    }

    pub(crate) fn old(&self) -> &[u8] {
        &self.old
    }

    /// A request from the source to `name`, with the options that are the default.
    pub(crate) fn request(&self, name: &str) -> Request {
        Request {
            source: Source::Path(self.at(SOURCE)),
            destination: Destination::Path(self.at(name)),
            options: Options::default(),
        }
    }

    /// Puts the destination into its first state and asks for a copy to it, in calls of [`CALL`].
    pub(crate) fn prepare(&self, shape: Shape, start: Start) -> Request {
        let path = self.path("to");
        if shape.is_old() {
            fs::write(&path, &self.old).expect("room for the old file");
        } else if path.exists() {
            fs::remove_file(&path).expect("the destination of the copy before");
        }
        let mut request = self.request("to");
        let options = &mut request.options;
        options.tuning = Tuning {
            call_size: NonZeroUsize::new(CALL),
            ..Tuning::default()
        };
        match start {
            Start::Clone | Start::CopyRange => {}
            Start::Pieces => options.bounded_calls = true,
            Start::SendFile => options.reflink = Reflink::Never,
            Start::ReadWrite => options.tuning.force_fallback = true,
        }
        match shape {
            Shape::New => options.existing = Existing::Refuse,
            Shape::InPlace => {}
            Shape::Replace | Shape::ReplaceNothing => options.write_mode = WriteMode::Replace,
            Shape::Window => options.window = Some(WINDOW),
            Shape::Descriptor | Shape::Append => {
                let file = OpenOptions::new()
                    .write(true)
                    .append(shape == Shape::Append)
                    .open(&path)
                    .expect("the old file");
                request.destination = Destination::File(Arc::new(file));
            }
        }
        request
    }

    /// What is to be read at the destination after a success.
    pub(crate) fn wanted(&self, shape: Shape) -> Vec<u8> {
        let (start, part) = self.part(shape);
        if shape == Shape::Window {
            let mut wanted = self.old.clone();
            wanted[start..start + part.len()].copy_from_slice(part);
            return wanted;
        }
        [&self.old[..start], part].concat()
    }

    /// What it copies.
    pub(crate) fn part_of(&self, shape: Shape) -> &[u8] {
        self.part(shape).1
    }

    /// Where the copy writes first, and what it copies.
    fn part(&self, shape: Shape) -> (usize, &[u8]) {
        match shape {
            Shape::Window => {
                let from = place(WINDOW.source_offset);
                let length = place(WINDOW.length.expect("a window with an end"));
                let part = &self.content[from..from + length];
                (place(WINDOW.destination_offset), part)
            }
            Shape::Append => (self.old.len(), &self.content),
            _ => (0, &self.content),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file of the test")
    }

    /// What must be true after a success that moved everything.
    pub(crate) fn assert_copied(&self, shape: Shape, summary: &Summary, what: &dyn Fn() -> String) {
        let length = self.part(shape).1.len() as u64;
        assert!(
            self.read("to") == self.wanted(shape),
            "other bytes: {}",
            what()
        );
        assert_eq!(
            (summary.bytes, summary.consumed, summary.files),
            (length, length, 1),
            "{}",
            what()
        );
        assert!(!summary.changed, "{}", what());
        self.assert_tidy(true, what);
    }

    /// What must be true after a failure or a cancel.
    pub(crate) fn assert_failed(&self, shape: Shape, done: &Summary, what: &dyn Fn() -> String) {
        let path = self.path("to");
        match shape {
            Shape::New | Shape::ReplaceNothing => {
                assert!(!path.exists(), "a part is left: {}", what());
            }
            Shape::Replace => {
                assert!(
                    self.read("to") == self.old,
                    "the old file is gone: {}",
                    what()
                );
            }
            Shape::InPlace | Shape::Descriptor | Shape::Window | Shape::Append => {
                let found = self.read("to");
                let (start, part) = self.part(shape);
                let end = start + place(done.bytes);
                assert!(found[..start] == self.old[..start], "touched: {}", what());
                assert!(
                    found[start..end] == part[..end - start],
                    "not the bytes that it counted: {}",
                    what()
                );
                if shape == Shape::Append {
                    assert_eq!(found.len(), end, "{}", what());
                }
                if shape == Shape::Window {
                    assert!(found[end..] == self.old[end..], "beyond: {}", what());
                }
            }
        }
        assert!(done.consumed >= done.bytes, "{}", what());
        self.assert_tidy(shape.is_old(), what);
    }

    /// Nothing else is there, and the source is as it was.
    pub(crate) fn assert_tidy(&self, destination: bool, what: &dyn Fn() -> String) {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .expect("its own directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        let mut wanted = vec![SOURCE];
        wanted.extend(destination.then_some("to"));
        assert_eq!(names, wanted, "{}", what());
        assert!(
            self.read(SOURCE) == self.content,
            "the source is touched: {}",
            what()
        );
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset in a small file")
}

/// Bytes without a pattern that a copy at a wrong place could hide behind.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Drives a copy to its end, without the pauses that it asks for.
pub(crate) fn drive(environment: &Environment, request: Request) -> Result<Summary, Error> {
    let mut transfer = Transfer::new(environment.clone(), request);
    for _ in 0..MOST_STEPS {
        match transfer.step(u64::MAX) {
            Step::Moved(_) | Step::Later(_) => {}
            Step::Done(summary) => return Ok(summary),
            Step::Failed(error) => return Err(error),
            step => panic!("a step that these tests do not know: {step:?}"),
        }
    }
    panic!("no end after {MOST_STEPS} steps: {transfer:?}");
}
