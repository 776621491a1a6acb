//! Copies whose process is killed: before each of their system calls in turn.

use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use copyist_engine::sys::{self, At, Layer, Result, Sys};
use copyist_engine::{
    Cancel, Destination, Durability, Environment, Errno, Existing, Mechanism, Options, Source,
    WriteMode,
};
use rustix::fs::{Mode, OFlags};

use crate::support::child::dies;
use crate::support::place::open_as_guest;
use crate::support::{Place, assert_same, at, in_pieces, other, pattern, request};

/// Three data calls.
const NEW: usize = 10_000;
const OLD: usize = 15_000;
const CALL: usize = 4096;

/// The system itself, until it kills the process.
struct Deadly {
    native: Arc<dyn Sys>,
    unnamed: bool,
    /// So many calls are left.
    left: AtomicUsize,
}

impl fmt::Debug for Deadly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deadly")
    }
}

impl Layer for Deadly {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn before(&self, _call: &'static str) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            let myself = rustix::process::getpid();
            rustix::process::kill_process(myself, rustix::process::Signal::KILL).unwrap();
        }
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        self.before("open");
        if !self.unnamed && flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        self.native.open(at, path, flags, mode)
    }
}

/// One way to copy, as the child is told.
#[derive(Clone, Copy, Debug)]
struct Way {
    write_mode: WriteMode,
    durability: Durability,
    /// A destination is there before.
    old: bool,
    unnamed: bool,
}

impl Way {
    const fn words(self) -> [bool; 4] {
        [
            matches!(self.write_mode, WriteMode::Replace),
            matches!(self.durability, Durability::Each),
            self.old,
            self.unnamed,
        ]
    }

    const fn of([replaces, durable, old, unnamed]: [bool; 4]) -> Self {
        Self {
            write_mode: if replaces {
                WriteMode::Replace
            } else {
                WriteMode::InPlace
            },
            durability: if durable {
                Durability::Each
            } else {
                Durability::None
            },
            old,
            unnamed,
        }
    }

    fn options(self) -> Options {
        Options {
            existing: if self.old {
                Existing::Write
            } else {
                Existing::Refuse
            },
            write_mode: self.write_mode,
            durability: self.durability,
            ..in_pieces(Mechanism::ReadWrite, CALL)
        }
    }

    /// In the child.
    fn copy(self, directory: &Path, calls: usize) {
        let base = open_as_guest(directory);
        let environment = Environment::new(Arc::new(Deadly {
            native: sys::native(),
            unnamed: self.unnamed,
            left: AtomicUsize::new(calls),
        }));
        let request = request(
            Source::Path(at(&base, "from")),
            Destination::Path(at(&base, "to")),
            &self.options(),
        );
        copyist_engine::copy_in(&environment, request, &Cancel::new()).unwrap();
    }
}

/// Puts the files in place.
fn prepare(place: &Place, way: Way) {
    place.write("from", pattern(NEW));
    if way.old {
        place.write("to", other(OLD));
    } else {
        let _ = fs::remove_file(place.path("to"));
    }
}

/// Kills the copy before every one of its calls, and once lets it end. `check` is told before which
/// call it died; in how many cases it did is the answer.
fn kill_everywhere<T: Copy>(
    test: T,
    place: &Place,
    way: Way,
    mut check: impl FnMut(usize),
) -> Option<usize> {
    for calls in 0.. {
        prepare(place, way);
        let words = way.words().map(|word| word.to_string()).join(" ");
        let directory = place.path("").into_os_string().into_string().unwrap();
        let argument = format!("{calls} {words} {directory}");
        let output = dies(test, &argument, |argument| {
            let mut words = argument.splitn(6, ' ');
            let calls = words.next().unwrap().parse().unwrap();
            let way = [(); 4].map(|()| words.next().unwrap().parse().unwrap());
            Way::of(way).copy(words.next().unwrap().as_ref(), calls);
        })?;
        if output.status.success() {
            return Some(calls);
        }
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        check(calls);
    }
    unreachable!("a copy ends")
}

/// The names beside the two files of the test, all of which must be temporary ones.
fn leftovers(place: &Place) -> u64 {
    let mut names = place.names();
    names.retain(|name| name != "from" && name != "to");
    for name in &names {
        assert!(name.starts_with(".copyist-"), "{names:?}");
    }
    names.len() as u64
}

// https://github.com/openclaw/fs-safe/pull/302, https://github.com/oven-sh/bun/pull/41736
#[test]
fn bun_41736_a_copy_that_is_killed_at_any_call_leaves_the_old_file_or_the_new_one() {
    let place = Place::disk();
    let here = at(&place.base, ".");
    for bits in 0..8 {
        let [durable, old, unnamed] = [1, 2, 4].map(|bit| bits & bit != 0);
        let way = Way::of([true, durable, old, unnamed]);
        let (mut before, mut after, mut swept) = (0, 0, 0);
        let killed = kill_everywhere(
            bun_41736_a_copy_that_is_killed_at_any_call_leaves_the_old_file_or_the_new_one,
            &place,
            way,
            |calls| {
                let what = format!("{way:?}, killed after {calls} calls");
                let found = place.exists("to").then(|| place.read("to"));
                if found == Some(pattern(NEW)) {
                    after += 1;
                } else {
                    assert_eq!(after, 0, "{what}: the old file came back");
                    assert_eq!(found.is_some(), old, "{what}");
                    if let Some(found) = found {
                        assert_same(&found, &other(OLD), &what);
                    }
                    before += 1;
                }
                let left = leftovers(&place);
                let sweep = copyist_engine::sweep(&here, &Cancel::new()).unwrap();
                assert_eq!((sweep.removed, sweep.in_use), (left, 0), "{what}");
                assert_eq!(sweep.failed, [], "{what}");
                assert_eq!(leftovers(&place), 0, "{what}");
                swept += left;
            },
        );
        let Some(killed) = killed else { return };
        assert!(before > 10 && after > 0, "{way:?}: {before} {after}");
        assert_eq!(killed, before + after);
        assert_same(&place.read("to"), &pattern(NEW), "the one that ended");
        // A name from the start on; or from link(2) to rename(2), where it is not linked to its own.
        let expected = match (unnamed && has_unnamed(&place), old) {
            (true, true) => 1..=3,
            (true, false) => 0..=0,
            (false, _) => 10..=u64::MAX,
        };
        assert!(expected.contains(&swept), "{way:?}: {swept} were swept");
    }
}

/// Whether the file system has files without a name.
fn has_unnamed(place: &Place) -> bool {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(place.path(""), flags, Mode::RUSR).is_ok()
}

// In place there is no promise for what is killed: a part may stay, of what was copied and nothing
// else.
#[test]
fn a_new_file_whose_copy_is_killed_has_the_first_bytes_or_none() {
    let place = Place::disk();
    let way = Way::of([false, false, false, true]);
    let mut parts = 0;
    let killed = kill_everywhere(
        a_new_file_whose_copy_is_killed_has_the_first_bytes_or_none,
        &place,
        way,
        |calls| {
            if place.exists("to") {
                let found = place.read("to");
                let what = format!("killed after {calls} calls");
                assert_same(&found, &pattern(NEW)[..found.len()], &what);
                parts += usize::from(found.len() < NEW);
            }
            assert_eq!(leftovers(&place), 0);
        },
    );
    if killed.is_some() {
        assert!(parts > 3, "{parts}");
        assert_same(&place.read("to"), &pattern(NEW), "the one that ended");
    }
}
