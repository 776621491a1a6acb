//! What the tests share: places to copy between, and what must hold whatever happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use copyist_bed::Bed;
use copyist_engine::{
    Base, Cancel, Destination, Environment, Error, Handle, Location, Options, Request, Source,
    Summary, WriteMode, sys,
};
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

/// Both ways to write.
pub(crate) const WRITE_MODES: [WriteMode; 2] = [WriteMode::InPlace, WriteMode::Replace];

/// A directory to copy from or to, held as wasmtime holds its preopens.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    base: Handle,
    path: PathBuf,
    /// Gone with it, where the directory is the place's own.
    _directory: Option<TempDir>,
}

impl Place {
    /// The root of a bed.
    pub(crate) fn bed(bed: &Bed) -> Self {
        Self {
            name: "bed".to_owned(),
            base: Arc::new(bed.root()),
            path: bed.path(),
            _directory: None,
        }
    }

    /// A directory of its own in the temporary directory.
    pub(crate) fn disk() -> Self {
        Self::in_directory("disk", &std::env::temp_dir())
    }

    /// A directory of its own in this one.
    pub(crate) fn in_directory(name: &str, parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap();
        Self {
            name: name.to_owned(),
            base: Arc::new(File::from(base)),
            path: directory.path().to_owned(),
            _directory: Some(directory),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn open(&self, name: &str) -> File {
        File::open(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn source(&self, name: &str) -> Source {
        Source::Path(self.at(name))
    }

    pub(crate) fn destination(&self, name: &str) -> Destination {
        Destination::Path(self.at(name))
    }

    fn at(&self, name: &str) -> Location {
        Location {
            base: Base::Beneath(self.base.clone()),
            path: name.into(),
            follow: false,
        }
    }
}

/// A system layer that knows of no refusal yet.
pub(crate) fn fresh() -> Environment {
    Environment::new(sys::native())
}

pub(crate) fn copy(
    source: Source,
    destination: Destination,
    options: &Options,
) -> Result<Summary, Error> {
    copy_in(&fresh(), source, destination, options)
}

pub(crate) fn copy_in(
    environment: &Environment,
    source: Source,
    destination: Destination,
    options: &Options,
) -> Result<Summary, Error> {
    let request = Request {
        source,
        destination,
        options: options.clone(),
    };
    copyist_engine::copy_in(environment, request, &Cancel::new())
}

pub(crate) fn by(write_mode: WriteMode) -> Options {
    Options {
        write_mode,
        ..Options::default()
    }
}

/// So many bytes, different at every offset, none of them zero.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes().map(|byte| byte | 1));
    }
    bytes.truncate(length);
    bytes
}

/// What stood in a destination before.
pub(crate) fn old(length: usize) -> Vec<u8> {
    vec![b'D'; length]
}

/// Says where they differ, not all that they hold.
#[track_caller]
pub(crate) fn assert_same(actual: &[u8], expected: &[u8], what: &str) {
    if actual != expected {
        let first = actual.iter().zip(expected).position(|(a, e)| a != e);
        let lengths = (actual.len(), expected.len());
        panic!("{what}: lengths are {lengths:?}, and the first difference is at {first:?}");
    }
}

/// A destination that was written in place and not to the end: first what was copied, then what
/// stood there, and nothing else.
#[track_caller]
pub(crate) fn assert_partial(actual: &[u8], new: &[u8], old: &[u8], copied: u64, what: &str) {
    let copied = usize::try_from(copied).unwrap();
    assert!(actual.len() >= copied, "{what}: less than was counted");
    assert_same(&actual[..copied], &new[..copied], what);
    let rest = &old[copied.min(old.len())..];
    let left = &actual[copied..];
    assert!(left.len() <= rest.len(), "{what}: something was appended");
    assert_same(left, &rest[..left.len()], what);
}

/// No copy of a file of the bed makes more calls than this: a few of each kind, and those that
/// move the bytes.
#[track_caller]
pub(crate) fn assert_bounded(bed: &Bed, moves: u64, what: &str) {
    let made = bed.all_calls();
    assert!(made <= 60 + moves, "{what}: {made} calls");
}
