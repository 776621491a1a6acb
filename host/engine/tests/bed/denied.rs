//! Copies under filters that deny system calls.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use copyist_bed::Bed;
use copyist_bed::seccomp::{Denied, ERRNOS, SystemCall, run_denied};
use copyist_engine::{Destination, Errno, Options, Window, WriteMode};

use super::support::{Place, WRITE_MODES, assert_same, by, copy, old, pattern};

const LENGTH: usize = 300_000;

/// Copies as copies are made, with the process's memory of what does not work.
fn all_copies(what: &str) {
    let mut places = vec![("disk", Place::disk(), Place::disk())];
    if Path::new("/dev/shm").is_dir() {
        let memory = || Place::in_directory("memory", Path::new("/dev/shm"));
        places.push(("disk to memory", Place::disk(), memory()));
        places.push(("memory", memory(), memory()));
    }
    // Which has no files without a name, so that they are renamed.
    let bed = Bed::mount();
    if let Some(bed) = &bed {
        places.push(("disk to bed", Place::disk(), Place::bed(bed)));
    }
    for (name, from, to) in places {
        let what = format!("{what}, {name}");
        from.write("it", pattern(LENGTH));
        for write_mode in WRITE_MODES {
            for round in ["new", "existing"] {
                if round == "existing" {
                    to.write("to", old(2 * LENGTH));
                }
                let done = copy(from.source("it"), to.destination("to"), &by(write_mode));
                done.unwrap_or_else(|error| panic!("{what}, {round}, {write_mode:?}: {error}"));
                assert_same(&to.read("to"), &pattern(LENGTH), &what);
                std::fs::remove_file(to.path("to")).unwrap();
            }
        }
        to.write("log", old(10));
        let log = File::options().append(true).open(to.path("log")).unwrap();
        let appended = copy(
            from.source("it"),
            Destination::File(Arc::new(log)),
            &by(WriteMode::InPlace),
        );
        appended.unwrap_or_else(|error| panic!("{what}, appended: {error}"));
        assert_same(&to.read("log")[10..], &pattern(LENGTH), &what);
        let options = Options {
            window: Some(Window {
                source_offset: 10,
                length: Some(1000),
                destination_offset: 5,
            }),
            ..Options::default()
        };
        let part = copy(from.source("it"), to.destination("log"), &options);
        part.unwrap_or_else(|error| panic!("{what}, a window: {error}"));
        let mut piece = vec![0; 1000];
        to.open("log").read_exact_at(&mut piece, 5).unwrap();
        assert_same(&piece, &pattern(LENGTH)[10..1010], &what);
        assert_eq!(to.names(), ["log"], "{what}");
    }
    let source = File::open("/proc/self/status").unwrap();
    let place = Place::disk();
    let status = copy(
        copyist_engine::Source::File(Arc::new(source)),
        place.destination("to"),
        &Options::default(),
    );
    status.unwrap_or_else(|error| panic!("{what}, of procfs: {error}"));
    assert!(place.read("to").starts_with(b"Name:"), "{what}");
}

// A filter that does not know a call answers EPERM, an old kernel ENOSYS, LXC and Android EACCES.
// https://github.com/rust-lang/rust/issues/51266
// https://github.com/tonistiigi/fsutil/issues/50
// https://github.com/libuv/libuv/issues/3322
// https://github.com/oven-sh/bun/issues/8425
#[test]
fn rust_51266_copies_work_where_a_call_is_denied() {
    for errno in ERRNOS {
        for call in SystemCall::ALL {
            let what = format!("{call:?} answers {errno}");
            run_denied(&[Denied { call, errno }], || all_copies(&what));
        }
    }
}

// https://github.com/rust-lang/rust/issues/51266
#[test]
fn rust_51266_copies_work_where_all_of_them_are_denied() {
    for errno in ERRNOS {
        let profile = SystemCall::ALL.map(|call| Denied { call, errno });
        run_denied(&profile, || all_copies(&format!("all answer {errno}")));
    }
}

// A denial is no excuse: what the plain way refuses is refused.
// https://github.com/openclaw/fs-safe/issues/301
#[test]
fn fs_safe_301_a_true_refusal_is_still_one() {
    let profile = SystemCall::ALL.map(|call| Denied {
        call,
        errno: Errno::PERM,
    });
    run_denied(&profile, || {
        let place = Place::disk();
        place.write("it", pattern(10));
        let link = place.path("link");
        std::os::unix::fs::symlink("/etc/hostname", link).unwrap();
        let escaped = copy(
            place.source("link"),
            place.destination("to"),
            &Options::default(),
        );
        assert!(escaped.is_err());
        let escaped = copy(
            place.source("../it"),
            place.destination("to"),
            &Options::default(),
        );
        assert!(escaped.is_err());
        assert_eq!(place.names(), ["it", "link"]);
    });
}

// On the bed, where the kernel's copies would hide that nothing else works.
#[test]
fn a_denied_call_does_not_hide_a_fault() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", copyist_bed::faults::EIO_AT_64K, pattern(LENGTH));
    let place = Place::bed(&bed);
    let profile = SystemCall::ALL.map(|call| Denied {
        call,
        errno: Errno::NOSYS,
    });
    run_denied(&profile, || {
        let failed = copy(
            place.source("it"),
            place.destination("to"),
            &Options::default(),
        );
        assert_eq!(
            failed.unwrap_err().cause,
            copyist_engine::Cause::Io(copyist_engine::Side::Source, Errno::IO)
        );
        assert_eq!(bed.names(), ["it"]);
    });
}
