//! Sweeps: what is removed, what stays, and what they do to copies that are under way.

use std::fmt;
use std::fs::{self, File};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use copyist_engine::sys::{self, At, Layer, Result, Sys};
use copyist_engine::{
    Cancel, Cause, Environment, Errno, Mechanism, Options, Side, Swept, Transfer, WriteMode, sweep,
    sweep_in,
};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};

use crate::support::child::{alone, as_nobody};
use crate::support::hooked::{Call, hooked, without_unnamed_files};
use crate::support::{
    Place, assert_same, at, beside, done, drive, follow, in_pieces, is_root, other, pattern,
    places, replacing, request,
};

const LEFT: &str = ".copyist-0123456789abcdef";

fn swept(place: &Place) -> Swept {
    sweep(&at(&place.base, "."), &Cancel::new()).unwrap()
}

/// What a killed copy leaves. It is made without being opened: a child that another test starts at
/// that moment would have it open too until it executes its program.
fn leave(place: &Place, name: &str) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path(name),
        FileType::RegularFile,
        mode,
        0,
    )
    .unwrap();
}

#[test]
fn what_is_left_is_removed_and_nothing_else() {
    for place in places() {
        for name in [
            LEFT,
            ".copyist-ffffffffffffffff",
            ".copyist-0000000000000000",
        ] {
            leave(&place, name);
        }
        place.set_mode(LEFT, 0o444);
        // Not of our form.
        let stay = [
            ".copyist-",
            ".copyist-0123456789ABCDEF",
            ".copyist-0123456789abcde",
            ".copyist-0123456789abcdef0",
            ".copyist-0123456789abcdeg",
            ".copyist-0123456789abcdef.txt",
            "a.copyist-0123456789abcdef",
            "copyist-0123456789abcdef",
            "file",
        ];
        for name in stay {
            place.write(name, "bytes");
        }
        let expected = Swept::default();
        let found = swept(&place);
        assert_eq!((found.removed, found.in_use), (3, 0), "{found:?}");
        assert_eq!(found.failed, expected.failed);
        let mut names = stay;
        names.sort_unstable();
        place.assert_names(&names, "what is not ours");
        assert_eq!(swept(&place), expected, "there is no more to do");
    }
}

#[test]
fn what_has_such_a_name_and_is_no_file_stays_and_is_not_opened() {
    for place in places() {
        let name = |number: u32| format!(".copyist-{number:016x}");
        fs::create_dir(place.path(name(1))).unwrap();
        leave(&place, "target");
        symlink("target", place.path(name(2))).unwrap();
        symlink("gone", place.path(name(3))).unwrap();
        symlink(name(5), place.path(name(4))).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        let node = |number, kind, device| {
            let path = place.path(name(number));
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, device)
        };
        node(5, FileType::Fifo, 0).unwrap();
        let _socket = UnixListener::bind(place.path(name(6))).unwrap();
        if is_root("a device") {
            // Opened, it would answer EIO or ENXIO.
            node(7, FileType::CharacterDevice, rustix::fs::makedev(250, 250)).unwrap();
        }
        let before = place.names();
        let opened = Arc::new(AtomicU64::new(0));
        let counted = opened.clone();
        let environment = hooked(move |call| {
            if matches!(call, Call::Open(..)) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            None
        });
        let found = sweep_in(&environment, &at(&place.base, "."), &Cancel::new()).unwrap();
        assert_eq!(found, Swept::default());
        assert_eq!(place.names(), before);
        assert_eq!(opened.load(Ordering::Relaxed), 1, "the directory alone");
    }
}

#[test]
fn what_somebody_has_is_in_use() {
    // Where no other test starts a child, which would have it too for a moment.
    alone(what_somebody_has_is_in_use, somebody_has_it);
}

fn somebody_has_it() {
    for place in places() {
        leave(&place, LEFT);
        let in_use = |what: &str| {
            let found = swept(&place);
            assert_eq!((found.removed, found.in_use), (0, 1), "{what}: {found:?}");
            assert!(place.exists(LEFT), "{what}");
        };
        // A lock alone, as far as other machines can see; and open for writing alone.
        let reader = File::open(place.path(LEFT)).unwrap();
        rustix::fs::flock(&reader, FlockOperation::NonBlockingLockExclusive).unwrap();
        in_use("locked");
        drop(reader);
        let writer = File::options().write(true).open(place.path(LEFT)).unwrap();
        in_use("open");
        let second = writer.try_clone().unwrap();
        drop(writer);
        in_use("open by a duplicate");
        drop(second);
        // To read it is no use of a copy's.
        let reader = File::open(place.path(LEFT)).unwrap();
        assert_eq!(swept(&place).removed, 1);
        drop(reader);
        assert!(!place.exists(LEFT));
    }
}

#[test]
fn one_directory_is_swept_and_only_beneath_the_handle() {
    let place = Place::disk();
    fs::create_dir_all(place.path("sub/deep")).unwrap();
    for directory in ["", "sub/", "sub/deep/"] {
        leave(&place, &format!("{directory}{LEFT}"));
    }
    symlink("sub", place.path("link")).unwrap();
    symlink("/", place.path("out")).unwrap();
    place.write("file", "bytes");
    for (location, errno) in [
        (at(&place.base, ".."), Errno::PERM),
        (at(&place.base, "/"), Errno::PERM),
        (follow(&place.base, "out"), Errno::PERM),
        (at(&place.base, ""), Errno::NOENT),
        (at(&place.base, "gone"), Errno::NOENT),
        (at(&place.base, "file"), Errno::NOTDIR),
    ] {
        let answer = sweep(&location, &Cancel::new());
        assert_eq!(
            answer,
            Err(Cause::Io(Side::Destination, errno)),
            "{location:?}"
        );
    }
    // What open(2) says to a link that is not followed and must be a directory differs.
    assert!(sweep(&at(&place.base, "link"), &Cancel::new()).is_err());
    let found = sweep(&follow(&place.base, "link"), &Cancel::new()).unwrap();
    assert_eq!(found.removed, 1);
    for (path, is_left) in [("", true), ("sub/", false), ("sub/deep/", true)] {
        assert_eq!(place.exists(format!("{path}{LEFT}")), is_left, "{path}");
    }
}

#[test]
fn a_cancelled_sweep_removes_nothing_more() {
    let place = Place::disk();
    leave(&place, LEFT);
    let cancel = Cancel::new();
    cancel.cancel();
    let answer = sweep(&at(&place.base, "."), &cancel);
    assert_eq!(answer, Err(Cause::Cancelled));
    assert!(place.exists(LEFT));
}

#[test]
fn what_may_not_be_read_or_removed_is_told() {
    as_nobody(what_may_not_be_read_or_removed_is_told, || {
        let place = Place::disk();
        leave(&place, LEFT);
        place.set_mode(LEFT, 0);
        let failed = |errno| (LEFT.into(), errno);
        assert_eq!(swept(&place).failed, [failed(Errno::ACCESS)]);
        place.set_mode(LEFT, 0o600);
        place.set_mode("", 0o500);
        assert_eq!(swept(&place).failed, [failed(Errno::ACCESS)]);
        place.set_mode("", 0o700);
        assert_eq!(swept(&place).removed, 1);
    });
}

/// The file systems that a copy and a sweep meet.
#[derive(Clone, Copy, Debug)]
struct System {
    /// It has files without a name.
    unnamed: bool,
    /// It is known to report nothing at close(2).
    local: bool,
    /// It tells whether a file is open for writing.
    leases: bool,
    /// It has locks.
    locks: bool,
}

/// The system itself, with less, and somebody who comes between its calls and is told after which.
struct Between<F> {
    native: Arc<dyn Sys>,
    system: System,
    come: F,
}

impl<F> fmt::Debug for Between<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.system.fmt(f)
    }
}

impl<F: Fn(&str) + Send + Sync> Layer for Between<F> {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn after(&self, call: &'static str) {
        (self.come)(call);
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        if !self.system.unnamed && flags.contains(OFlags::TMPFILE) {
            return Err(Errno::OPNOTSUPP);
        }
        let opened = self.native.open(at, path, flags, mode);
        self.after("open");
        opened
    }

    fn is_local(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        Ok(self.system.local && self.native.is_local(fd)?)
    }

    fn has_writer(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        if !self.system.leases {
            return Err(Errno::INVAL);
        }
        self.native.has_writer(fd)
    }

    fn lock(&self, fd: BorrowedFd<'_>) -> Result<()> {
        if !self.system.locks {
            return Err(Errno::NOLCK);
        }
        let locked = self.native.lock(fd);
        self.after("lock");
        locked
    }
}

fn environment(system: System, come: impl Fn(&str) + Send + Sync + 'static) -> Environment {
    Environment::new(Arc::new(Between {
        native: sys::native(),
        system,
        come,
    }))
}

/// Where copies and sweeps get on: local file systems, and those that have at least locks.
const SYSTEMS: [System; 6] = {
    const LOCAL: System = System {
        unnamed: true,
        local: true,
        leases: true,
        locks: true,
    };
    const REMOTE: System = System {
        local: false,
        leases: false,
        ..LOCAL
    };
    [
        LOCAL,
        System {
            unnamed: false,
            ..LOCAL
        },
        System {
            local: false,
            ..LOCAL
        },
        // What counts is that it is open.
        System {
            locks: false,
            ..LOCAL
        },
        REMOTE,
        System {
            unnamed: false,
            ..REMOTE
        },
    ]
};

#[test]
fn a_sweep_between_any_two_calls_of_a_copy_takes_nothing_from_it() {
    for place in places() {
        place.write("from", pattern(10_000));
        for system in SYSTEMS {
            // By the kernel alone, and not.
            for mechanism in [None, Some(Mechanism::ReadWrite)] {
                for old in [true, false] {
                    let what = format!("{system:?}, {mechanism:?}, old: {old}");
                    if old {
                        place.write("to", other(20_000));
                    } else {
                        fs::remove_file(place.path("to")).unwrap();
                    }
                    let here = at(&place.base, ".");
                    let sweeps = environment(system, |_| {});
                    let (met, removed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
                    let (seen, gone) = (met.clone(), removed.clone());
                    let copies = environment(system, move |after| {
                        // A file that is just made has no mark that other machines see. Once it is
                        // taken, another one is made; so often until it looks like malice.
                        if after == "open" && gone.load(Ordering::Relaxed) > 0 {
                            return;
                        }
                        let found = sweep_in(&sweeps, &here, &Cancel::new()).unwrap();
                        seen.fetch_add(found.in_use, Ordering::Relaxed);
                        gone.fetch_add(found.removed, Ordering::Relaxed);
                        assert_eq!(found.failed, []);
                    });
                    let options = match mechanism {
                        None => replacing(),
                        Some(mechanism) => Options {
                            write_mode: WriteMode::Replace,
                            ..in_pieces(mechanism, 4096)
                        },
                    };
                    let request = request(place.source("from"), place.destination("to"), &options);
                    let answer = copyist_engine::copy_in(&copies, request, &Cancel::new());
                    assert_eq!(
                        answer.map(|summary| summary.bytes).unwrap(),
                        10_000,
                        "{what}"
                    );
                    assert_same(&place.read("to"), &pattern(10_000), &what);
                    place.assert_names(&["from", "to"], &what);
                    // They met, where there was something to meet.
                    let met = met.load(Ordering::Relaxed);
                    if old || !system.unnamed {
                        assert!(met > 0, "{what}");
                    }
                    // Nothing was taken but the one that had no mark yet.
                    let removed = removed.load(Ordering::Relaxed);
                    let unmarked = !system.unnamed && !system.leases;
                    assert_eq!(removed, u64::from(unmarked), "{what}");
                }
            }
        }
    }
}

#[test]
fn copies_and_sweeps_beside_each_other_get_on() {
    for place in places() {
        let contents = [pattern(30_000), other(70_000)];
        place.write("one", &contents[0]);
        place.write("two", &contents[1]);
        place.write("to", &contents[0]);
        for system in SYSTEMS {
            let here = at(&place.base, ".");
            let (copies, sweeps) = (environment(system, |_| {}), environment(system, |_| {}));
            let again = || {
                let found = sweep_in(&sweeps, &here, &Cancel::new()).unwrap();
                assert_eq!(found.failed, []);
            };
            beside(again, || {
                for name in ["two", "one"].repeat(50) {
                    let request =
                        request(place.source(name), place.destination("to"), &replacing());
                    copyist_engine::copy_in(&copies, request, &Cancel::new()).unwrap();
                }
            });
            place.assert_names(&["one", "to", "two"], &format!("{system:?}"));
        }
    }
}

// Of a file system that has neither locks nor leases nobody knows what is in use.
#[test]
fn what_cannot_be_known_to_be_left_stays() {
    let place = Place::disk();
    leave(&place, LEFT);
    let system = System {
        unnamed: true,
        local: true,
        leases: false,
        locks: true,
    };
    let here = at(&place.base, ".");
    let found = sweep_in(&environment(system, |_| {}), &here, &Cancel::new()).unwrap();
    if place.is_trusted() {
        assert_eq!(found.failed, [(LEFT.into(), Errno::INVAL)]);
        assert!(place.exists(LEFT));
    } else {
        // Then a copy there has a lock.
        assert_eq!(found.removed, 1);
    }
}

// A copy that is under way and not at its end keeps its file, and a sweep after it finds nothing.
#[test]
fn a_named_file_is_in_use_from_the_first_step_to_the_last() {
    let place = Place::disk();
    place.write("from", pattern(40_000));
    place.write("to", other(50_000));
    let options = Options {
        write_mode: WriteMode::Replace,
        ..in_pieces(Mechanism::ReadWrite, 4096)
    };
    let request = request(place.source("from"), place.destination("to"), &options);
    let environment = without_unnamed_files();
    let mut transfer = Transfer::new(environment, request);
    let mut met = 0;
    let step = drive(&mut transfer, |_| {
        let found = swept(&place);
        assert_eq!(found.removed, 0);
        met += found.in_use;
    });
    assert_eq!(done(step).bytes, 40_000);
    assert!(met > 10, "{met}");
}
