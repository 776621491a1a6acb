//! Copies that fail midway: a full disk, a limit on the size of files, a directory that may not be
//! written; and what is left of them.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use copyist_engine::{
    Cause, Destination, Errno, Handle, Mechanism, Options, Preserve, Side, Source, Step, Transfer,
    Tuning, Unsupported, WriteMode,
};
use rustix::fs::IFlags;
use rustix::process::{Resource, Rlimit};

use crate::support::child::{alone, as_nobody};
use crate::support::place::names_in;
use crate::support::{
    Place, WRITE_MODES, assert_same, at, byte_movers, copy, every_way, failed, fallback, fresh,
    handle, in_pieces, is_root, kernel, only, other, pattern, places, refusal, replacing, request,
    skipped,
};

const DESTINATION: Side = Side::Destination;

/// A small tmpfs, by its handle and by a path that leads there.
fn small() -> Option<(Handle, PathBuf)> {
    if !is_root("a mount") {
        return None;
    }
    match kernel::tmpfs(c"4m") {
        Ok(mount) => {
            let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
            Some((handle(mount), path))
        }
        Err(error) => {
            skipped(&format!("a tmpfs: {error}"));
            None
        }
    }
}

// https://github.com/oven-sh/bun/issues/41798: what had been read counted as written, and the file
// got a tail of NULs.
#[test]
fn bun_41798_a_full_disk_leaves_nothing_or_what_was_written() {
    // Alone: a child that another test starts holds what is open here, and so its blocks, for a
    // moment.
    alone(
        bun_41798_a_full_disk_leaves_nothing_or_what_was_written,
        fill_a_disk,
    );
}

fn fill_a_disk() {
    let Some((base, path)) = small() else { return };
    let source = pattern(3 << 20);
    let old = other(100_000);
    let names = |expected: &[&str], what: &str| assert_eq!(names_in(&path), expected, "{what}");
    let elsewhere = Place::disk();
    elsewhere.write("from", &source);
    fs::write(path.join("from"), &source).unwrap();
    let tunings = byte_movers()
        .map(only)
        .into_iter()
        .chain([Tuning::default(), fallback()]);
    for (tuning, near) in tunings.flat_map(|tuning| [(tuning, true), (tuning, false)]) {
        if tuning.only == Some(Mechanism::CopyRange) && !near {
            continue;
        }
        let what = format!("{tuning:?}, near: {near}");
        // Only as much room as a part of the file needs, wherever it comes from.
        let filler = if near { "from" } else { "filler" };
        if !near {
            let _ = fs::remove_file(path.join("from"));
            fs::write(path.join(filler), &source).unwrap();
        }
        let from = || {
            if near {
                Source::Path(at(&base, "from"))
            } else {
                elsewhere.source("from")
            }
        };
        let to = |name: &str| Destination::Path(at(&base, name));
        let options = |write_mode| Options {
            tuning,
            write_mode,
            ..Options::default()
        };
        for write_mode in WRITE_MODES {
            let error = copy(from(), to("new"), &options(write_mode)).expect_err(&what);
            assert_eq!(error.cause, Cause::Io(DESTINATION, Errno::NOSPC), "{what}");
            assert!(
                (1..3 << 20).contains(&error.done.bytes),
                "{what}: {error:?}"
            );
            names(&[filler], &what);
        }
        fs::write(path.join("old"), &old).unwrap();
        let error = copy(from(), to("old"), &options(WriteMode::Replace)).expect_err(&what);
        assert_eq!(error.cause, Cause::Io(DESTINATION, Errno::NOSPC), "{what}");
        assert_same(&fs::read(path.join("old")).unwrap(), &old, &what);
        names(&[filler, "old"], &what);

        let error = copy(from(), to("old"), &options(WriteMode::InPlace)).expect_err(&what);
        assert_eq!(error.cause, Cause::Io(DESTINATION, Errno::NOSPC), "{what}");
        let left = fs::read(path.join("old")).unwrap();
        assert_eq!(left.len() as u64, error.done.bytes, "{what}");
        assert_same(&left, &source[..left.len()], &what);
        names(&[filler, "old"], &what);
        fs::remove_file(path.join("old")).unwrap();
        if !near {
            fs::remove_file(path.join(filler)).unwrap();
            fs::write(path.join("from"), &source).unwrap();
        }
    }
}

// https://github.com/oven-sh/bun/issues/41798: the same where the limit is the process's own.
#[test]
fn bun_41798_a_limit_on_the_size_of_files_is_an_error_and_no_signal() {
    alone(
        bun_41798_a_limit_on_the_size_of_files_is_an_error_and_no_signal,
        || {
            let source = pattern(300_000);
            let old = other(50_000);
            let places = places();
            for place in &places {
                place.write("from", &source);
                place.write("old", &old);
            }
            let limit = 100_001;
            rustix::process::setrlimit(
                Resource::Fsize,
                Rlimit {
                    current: Some(limit),
                    maximum: Some(limit),
                },
            )
            .unwrap();
            for place in &places {
                for (way, tuning) in every_way() {
                    let options = |write_mode| Options {
                        tuning,
                        write_mode,
                        ..Options::default()
                    };
                    let check = |error: &copyist_engine::Error| {
                        let cause = match tuning.only {
                            None | Some(Mechanism::ReadWrite) => {
                                Cause::Io(DESTINATION, Errno::FBIG)
                            }
                            Some(_) => Cause::Unsupported(Unsupported::Mechanism),
                        };
                        assert_eq!(error.cause, cause, "{way}");
                    };
                    for write_mode in WRITE_MODES {
                        let destination = place.destination("new");
                        let answer = copy(place.source("from"), destination, &options(write_mode));
                        check(&answer.unwrap_err());
                        place.assert_names(&["from", "old"], &way);
                    }
                    let run = |write_mode| {
                        let destination = place.destination("old");
                        copy(place.source("from"), destination, &options(write_mode)).unwrap_err()
                    };
                    check(&run(WriteMode::Replace));
                    assert_same(&place.read("old"), &old, &way);
                    place.assert_names(&["from", "old"], &way);

                    let error = run(WriteMode::InPlace);
                    check(&error);
                    if !matches!(tuning.only, Some(Mechanism::Clone | Mechanism::Splice)) {
                        assert_eq!(error.done.bytes, limit, "{way}");
                        let written = usize::try_from(limit).unwrap();
                        assert_same(&place.read("old"), &source[..written], &way);
                    }
                    place.write("old", &old);
                }
            }
        },
    );
}

#[test]
fn only_the_file_that_the_copy_made_is_removed() {
    for place in places() {
        place.write("from", pattern(40_000));
        let options = in_pieces(Mechanism::ReadWrite, 4096);
        for dropped in [true, false] {
            let request = request(place.source("from"), place.destination("to"), &options);
            let mut transfer = Transfer::new(fresh(), request);
            while !matches!(transfer.step(u64::MAX), Step::Moved(1..)) {}
            assert!(place.exists("to"));
            // Somebody puts another file under its name.
            place.write("other", other(100));
            fs::rename(place.path("other"), place.path("to")).unwrap();
            if dropped {
                drop(transfer);
            } else {
                failed(transfer.cancel());
            }
            assert_same(&place.read("to"), &other(100), "it is not the copy's");
            place.assert_names(&["from", "to"], "nothing else is left");
            fs::remove_file(place.path("to")).unwrap();
        }
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> std::io::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// https://github.com/mendersoftware/mender/pull/712
#[test]
fn mender_712_a_program_that_runs_is_not_overwritten_but_can_be_replaced() {
    let place = Place::disk();
    let program = Source::File(handle(File::open("/bin/sleep").unwrap()));
    let executable = Options {
        preserve: Preserve::MODE,
        ..Options::default()
    };
    copy(program, place.destination("program"), &executable).unwrap();
    let bytes = place.read("program");
    place.write("from", pattern(10_000));
    // A child that another test starts just now may hold it open for writing a moment more.
    let mut child = (0..1000)
        .find_map(|_| {
            std::thread::yield_now();
            Running::start(Command::new(place.path("program")).arg("1000")).ok()
        })
        .unwrap();
    match copy(
        place.source("from"),
        place.destination("program"),
        &Options::default(),
    ) {
        Err(error) => {
            assert_eq!(error.cause, Cause::Io(DESTINATION, Errno::TXTBSY));
            assert_same(&place.read("program"), &bytes, "it is as it was");
        }
        // Linux 6.11 and 6.12 let it be written.
        Ok(_) => skipped("this kernel lets a running program be overwritten"),
    }
    copy(
        place.source("from"),
        place.destination("program"),
        &replacing(),
    )
    .unwrap();
    assert_same(&place.read("program"), &pattern(10_000), "it is replaced");
    assert!(child.0.try_wait().unwrap().is_none(), "the old one goes on");
    place.assert_names(&["from", "program"], "no temporary is left");
}

#[test]
fn a_directory_that_may_not_be_written_takes_no_new_file() {
    as_nobody(
        a_directory_that_may_not_be_written_takes_no_new_file,
        || {
            for place in places() {
                let old = other(20_000);
                place.write("from", pattern(10_000));
                fs::create_dir(place.path("closed")).unwrap();
                place.write("closed/old", &old);
                place.set_mode("closed", 0o555);
                let denied = Cause::Io(DESTINATION, Errno::ACCESS);
                for write_mode in WRITE_MODES {
                    let options = Options {
                        write_mode,
                        ..Options::default()
                    };
                    let to = place.destination("closed/new");
                    assert_eq!(refusal(place.source("from"), to, &options), denied);
                }
                // Nothing can be staged beside it, and it is not written in place instead.
                let to = || place.destination("closed/old");
                assert_eq!(refusal(place.source("from"), to(), &replacing()), denied);
                assert_same(&place.read("closed/old"), &old, "old");
                // In place it needs no directory.
                copy(place.source("from"), to(), &Options::default()).unwrap();
                assert_same(&place.read("closed/old"), &pattern(10_000), "old");
                place.set_mode("closed", 0o755);
                assert_eq!(names_in(&place.path("closed")), ["old"]);
            }
        },
    );
}

#[test]
fn files_that_may_not_be_read_or_written_are_left() {
    as_nobody(files_that_may_not_be_read_or_written_are_left, || {
        for place in places() {
            let old = other(20_000);
            place.write("from", pattern(10_000));
            place.write("secret", pattern(10_000));
            place.set_mode("secret", 0o200);
            place.write("old", &old);
            place.set_mode("old", 0o444);
            for write_mode in WRITE_MODES {
                let options = Options {
                    write_mode,
                    ..Options::default()
                };
                for to in ["new", "old"] {
                    assert_eq!(
                        refusal(place.source("secret"), place.destination(to), &options),
                        Cause::Io(Side::Source, Errno::ACCESS)
                    );
                }
            }
            assert_eq!(
                refusal(
                    place.source("from"),
                    place.destination("old"),
                    &Options::default()
                ),
                Cause::Io(DESTINATION, Errno::ACCESS)
            );
            assert_same(&place.read("old"), &old, "old");
            place.assert_names(&["from", "old", "secret"], "nothing is made");
            // Its directory may be written, so it can be replaced; and keeps its mode.
            let to = place.destination("old");
            copy(place.source("from"), to, &replacing()).unwrap();
            assert_same(&place.read("old"), &pattern(10_000), "old");
            assert_eq!(place.mode("old"), 0o444);
        }
    });
}

#[test]
fn a_mount_that_may_not_be_written_stays_as_it_is() {
    if !is_root("a mount") {
        return;
    }
    for place in places() {
        place.write("from", pattern(10_000));
        place.write("old", other(20_000));
        let mount = kernel::bind(&place.path(""));
        let mount = mount.and_then(|mount| kernel::make_read_only(&mount).map(|()| mount));
        let base = match mount {
            Ok(mount) => handle(mount),
            Err(error) => return skipped(&format!("a mount: {error}")),
        };
        for write_mode in WRITE_MODES {
            let options = Options {
                write_mode,
                ..Options::default()
            };
            for to in ["new", "old"] {
                let to = Destination::Path(at(&base, to));
                let cause = refusal(place.source("from"), to, &options);
                assert_eq!(cause, Cause::Io(DESTINATION, Errno::ROFS), "{write_mode:?}");
            }
        }
        // It can be read.
        let from = Source::Path(at(&base, "old"));
        copy(from, place.destination("copy"), &Options::default()).unwrap();
        assert_same(&place.read("copy"), &other(20_000), "copy");
        assert_same(&place.read("old"), &other(20_000), "old");
        place.assert_names(&["copy", "from", "old"], "nothing is made");
    }
}

/// A file that nobody can change, until it is dropped.
struct Immutable(File);

impl Immutable {
    fn new(path: &Path) -> Option<Self> {
        let file = File::open(path).unwrap();
        let set = rustix::fs::ioctl_getflags(&file)
            .and_then(|flags| rustix::fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE));
        match set {
            Ok(()) => Some(Self(file)),
            Err(errno) => {
                skipped(&format!("immutable files: {errno}"));
                None
            }
        }
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let flags = rustix::fs::ioctl_getflags(&self.0).unwrap_or(IFlags::empty());
        let _ = rustix::fs::ioctl_setflags(&self.0, flags - IFlags::IMMUTABLE);
    }
}

#[test]
fn an_immutable_file_stays_as_it_is() {
    if !is_root("an immutable file") {
        return;
    }
    for place in places() {
        place.write("from", pattern(10_000));
        place.write("old", other(20_000));
        let Some(immutable) = Immutable::new(&place.path("old")) else {
            continue;
        };
        for write_mode in WRITE_MODES {
            let options = Options {
                write_mode,
                ..Options::default()
            };
            assert_eq!(
                refusal(place.source("from"), place.destination("old"), &options),
                Cause::Io(DESTINATION, Errno::PERM),
                "{write_mode:?}"
            );
            assert_same(&place.read("old"), &other(20_000), "old");
            place.assert_names(&["from", "old"], "no temporary is left");
        }
        // A source of that kind is one like any other, and its copy is not immutable.
        let to = place.destination("copy");
        copy(place.source("old"), to, &Options::default()).unwrap();
        place.write("copy", "");
        drop(immutable);
    }
}
