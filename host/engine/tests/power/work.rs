//! Copies that are watched, and what is found on the clones.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use copyist_engine::sys::{self, At, Kind as FileKind, Layer, Result, Sys};
use copyist_engine::{
    Base, Cancel, Destination, Durability, Environment, Errno, Existing, Location, Mechanism,
    Options, Request, Source, Tuning, WriteMode,
};
use rustix::fs::{Mode, OFlags};

use crate::disk::{Disk, Kind, Place};
use crate::witness::{Moment, Witness};

/// What is said to be on stable storage and was not put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    AboutFiles,
    AboutDirectories,
}

/// Whether the file system writes its journal at each moment by itself, as it does every few
/// seconds, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journal {
    AtEveryMoment,
    WhenAsked,
}

/// How a file is replaced again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    kind: Kind,
    unnamed: bool,
    only: Option<Mechanism>,
    journal: Journal,
    lie: Lie,
}

impl Work {
    /// Every way that is to be safe.
    pub(crate) fn all_of(kind: Kind) -> Vec<Self> {
        let honest = Self {
            kind,
            unnamed: true,
            only: None,
            journal: Journal::WhenAsked,
            lie: Lie::None,
        };
        vec![
            honest,
            Self {
                only: Some(Mechanism::ReadWrite),
                journal: Journal::AtEveryMoment,
                ..honest
            },
            Self {
                unnamed: false,
                journal: Journal::AtEveryMoment,
                ..honest
            },
            Self {
                unnamed: false,
                only: Some(Mechanism::ReadWrite),
                ..honest
            },
        ]
    }

    /// One that is not safe.
    pub(crate) fn lying(kind: Kind, lie: Lie) -> Self {
        Self {
            kind,
            unnamed: true,
            only: Some(Mechanism::ReadWrite),
            journal: Journal::WhenAsked,
            lie,
        }
    }

    /// Copies, and cuts the power before and after each call and after each report, so many times.
    pub(crate) fn cut_at_calls(self, place: &Place, moments: usize) -> Vec<Found> {
        let witness = Arc::new(Witness::new(Disk::new(self.kind, place), moments));
        let environment = self.environment(&witness, true);
        for version in 1.. {
            self.replace(&witness, &environment, version);
            witness.look("it was reported");
            if witness.has_seen_enough() {
                break;
            }
        }
        found(&witness)
    }

    /// Copies, and cuts the power at any moment.
    pub(crate) fn cut_meanwhile(self, place: &Place, moments: usize) -> Vec<Found> {
        let witness = Arc::new(Witness::new(Disk::new(self.kind, place), moments));
        let environment = self.environment(&witness, false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !witness.has_seen_enough() {
                    witness.look("meanwhile");
                }
            });
            for version in 1.. {
                self.replace(&witness, &environment, version);
                if witness.has_seen_enough() {
                    break;
                }
            }
        });
        found(&witness)
    }

    /// Makes new files by their own names, and tells which of them a cut after the report lost.
    pub(crate) fn new_files(self, place: &Place) -> Vec<String> {
        const FILES: u64 = 5;
        let witness = Arc::new(Witness::new(Disk::new(self.kind, place), usize::MAX));
        let environment = self.environment(&witness, false);
        let mut options = self.options();
        options.existing = Existing::Refuse;
        options.write_mode = WriteMode::InPlace;
        let name = |version| format!("new-{version}");
        for version in 1..=FILES {
            self.copy(&witness, &environment, version, &name(version), &options);
            witness.look("it was reported");
        }
        let mut missing = Vec::new();
        for moment in witness.take_moments() {
            witness.disk.look_at(&moment.clone, |root| {
                for version in 1..=moment.oldest {
                    if fs::read(root.join(name(version))).ok() != Some(content(version)) {
                        missing.push(format!("{version} after {}", moment.oldest));
                    }
                }
            });
        }
        missing
    }

    fn options(self) -> Options {
        Options {
            write_mode: WriteMode::Replace,
            durability: Durability::Each,
            tuning: Tuning {
                only: self.only,
                ..Tuning::default()
            },
            ..Options::default()
        }
    }

    fn environment(self, witness: &Arc<Witness>, at_calls: bool) -> Environment {
        Environment::new(Arc::new(Watched {
            native: sys::native(),
            work: self,
            witness: at_calls.then(|| witness.clone()),
            other: File::create(witness.disk.root().join(OTHER)).unwrap(),
        }))
    }

    fn replace(self, witness: &Witness, environment: &Environment, version: u64) {
        self.copy(witness, environment, version, TO, &self.options());
    }

    fn copy(
        self,
        witness: &Witness,
        environment: &Environment,
        version: u64,
        to: &str,
        options: &Options,
    ) {
        let root = witness.disk.root();
        let mut source = File::create(root.join(FROM)).unwrap();
        source.write_all(&content(version)).unwrap();
        source.sync_all().unwrap();
        let base = Arc::new(File::open(root).unwrap());
        let at = |name: &str| Location {
            base: Base::Beneath(base.clone()),
            path: name.into(),
            follow: false,
        };
        witness.starts(version);
        let request = Request {
            source: Source::Path(at(FROM)),
            destination: Destination::Path(at(to)),
            options: options.clone(),
        };
        copyist_engine::copy_in(environment, request, &Cancel::new()).unwrap();
        witness.is_told(version);
    }
}

const FROM: &str = "from";
const TO: &str = "to";
/// What makes the file system write its journal.
const OTHER: &str = "other";

/// A version of the file; none is there before the first. Each has bytes and a length of its own.
fn content(version: u64) -> Vec<u8> {
    let length = 200_000 + usize::try_from(version % 7).unwrap() * 30_011;
    let mut state = version.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// What a clone has.
pub(crate) struct Found {
    when: String,
    oldest: u64,
    newest: u64,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    /// This version as a whole; 0 where there is none.
    Version(u64),
    /// Something else, of this length.
    Torn(usize),
    /// Files that nobody asked for and that a sweep leaves.
    Beside(Vec<String>),
}

impl Found {
    pub(crate) fn is_sound(&self) -> bool {
        matches!(self.what, What::Version(version) if (self.oldest..=self.newest).contains(&version))
    }

    pub(crate) fn is_torn(&self) -> bool {
        matches!(self.what, What::Torn(_))
    }

    /// Whether a version that was reported is gone.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.what, What::Version(version) if version < self.oldest)
    }

    pub(crate) fn is_oldest_allowed(&self) -> bool {
        self.oldest < self.newest && self.what == What::Version(self.oldest)
    }

    pub(crate) fn is_newest_allowed(&self) -> bool {
        self.oldest < self.newest && self.what == What::Version(self.newest)
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            when,
            oldest,
            newest,
            what,
        } = self;
        write!(f, "{what:?} of {oldest}..={newest}, {when}")
    }
}

fn found(witness: &Witness) -> Vec<Found> {
    let moments = witness.take_moments();
    moments
        .into_iter()
        .map(|moment| Found {
            what: witness
                .disk
                .look_at(&moment.clone, |root| what(root, &moment)),
            when: moment.when,
            oldest: moment.oldest,
            newest: moment.newest,
        })
        .collect()
}

fn what(root: &Path, moment: &Moment) -> What {
    let handle = Arc::new(File::open(root).unwrap());
    let here = Location {
        base: Base::Beneath(handle),
        path: ".".into(),
        follow: false,
    };
    let swept = copyist_engine::sweep(&here, &Cancel::new()).unwrap();
    let mut beside: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    beside.retain(|name| ![FROM, TO, OTHER, "lost+found"].contains(&name.as_str()));
    if !beside.is_empty() || swept.in_use > 0 {
        return What::Beside(beside);
    }
    let bytes = match fs::read(root.join(TO)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return What::Version(0),
        Err(error) => panic!("{error}"),
    };
    // One version more than is allowed, to tell an old file from a torn one.
    (moment.oldest.saturating_sub(1).max(1)..=moment.newest)
        .find(|version| content(*version) == bytes)
        .map_or(What::Torn(bytes.len()), What::Version)
}

/// The system itself, watched, and not always believed.
struct Watched {
    native: Arc<dyn Sys>,
    work: Work,
    /// Who looks before and after each call.
    witness: Option<Arc<Witness>>,
    other: File,
}

impl Watched {
    fn around<T>(&self, call: &'static str, make: impl FnOnce() -> T) -> T {
        self.before(call);
        let answer = make();
        self.after(call);
        answer
    }

    fn look(&self, when: &str) {
        let Some(witness) = &self.witness else {
            return;
        };
        if self.work.journal == Journal::AtEveryMoment {
            (&self.other).write_all(b".").unwrap();
            self.other.sync_all().unwrap();
        }
        witness.look(when);
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Layer for Watched {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn before(&self, call: &'static str) {
        self.look(&format!("before {call}"));
    }

    fn after(&self, call: &'static str) {
        self.look(&format!("after {call}"));
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        if !self.work.unnamed && flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        self.around("open", || self.native.open(at, path, flags, mode))
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let is_directory = self.native.stat(fd)?.kind == FileKind::Directory;
        let lies = match self.work.lie {
            Lie::None => false,
            Lie::AboutFiles => !is_directory,
            Lie::AboutDirectories => is_directory,
        };
        self.around("sync", || if lies { Ok(()) } else { self.native.sync(fd) })
    }
}
