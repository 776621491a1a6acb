//! What others could read meanwhile: never more than the source lets them, nor the file that is
//! overwritten.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use copyist_engine::{
    Cancel, Cause, Environment, Errno, Grants, Mechanism, Options, Preserve, Reflink, Side, Source,
    Step, Transfer, Tuning, Window, WriteMode,
};
use rustix::fs::Mode;

use crate::support::child::alone;
use crate::support::hooked::{Call, hooked, without_unnamed_files};
use crate::support::{
    Place, WRITE_MODES, assert_same, done, drive, every_way, fresh, in_pieces, is_root, other,
    pattern, places, request,
};

const PERMISSIONS: u32 = 0o777;
const SPECIAL: u32 = 0o7000;
const OTHERS: u32 = 0o077;
const SIZE: usize = 20_000;

/// With the mode kept, and owners and special bits granted.
fn keeping_mode(write_mode: WriteMode) -> Options {
    Options {
        preserve: Preserve::MODE,
        write_mode,
        grants: Grants {
            special_mode_bits: true,
            ownership: true,
            ..Grants::default()
        },
        ..Options::default()
    }
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

/// All files that a copy has in a place just now, those without a name too.
fn copies(place: &Place, except: &[&str]) -> Vec<(String, Metadata)> {
    let mut copies: Vec<_> = place
        .names()
        .into_iter()
        .filter(|name| !except.contains(&&**name))
        .map(|name| {
            let metadata = place.path(&name).symlink_metadata().unwrap();
            (name, metadata)
        })
        .collect();
    let here = place.path("");
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let link = entry.unwrap().path();
        let Ok(target) = fs::read_link(&link) else {
            continue;
        };
        if target.starts_with(&here) && target.to_string_lossy().ends_with("(deleted)") {
            copies.push(("unnamed".into(), fs::metadata(link).unwrap()));
        }
    }
    copies
}

// https://github.com/rust-lang/rust/issues/26933, https://github.com/libuv/libuv/issues/1547: it
// could be read by others until its mode was set at the end.
#[test]
fn rust_26933_a_copy_is_never_more_open_than_its_source() {
    alone(rust_26933_a_copy_is_never_more_open_than_its_source, || {
        rustix::process::umask(Mode::empty());
        let environments: [fn() -> Environment; 2] = [fresh, without_unnamed_files];
        for place in places() {
            place.write("from", pattern(SIZE));
            for (allowed, environment) in [0o600, 0o604, 0o640, 0o644, 0o400, 0o4755]
                .into_iter()
                .flat_map(|mode| environments.map(|environment| (mode, environment)))
            {
                place.set_mode("from", allowed);
                for (preserve, write_mode) in [Preserve::NONE, Preserve::MODE]
                    .into_iter()
                    .flat_map(|preserve| WRITE_MODES.map(|write_mode| (preserve, write_mode)))
                {
                    let options = Options {
                        tuning: in_pieces(Mechanism::ReadWrite, 4096).tuning,
                        preserve,
                        ..keeping_mode(write_mode)
                    };
                    let request = request(place.source("from"), place.destination("to"), &options);
                    let mut transfer = Transfer::new(environment(), request);
                    let mut seen = 0;
                    let mut written = 0;
                    let step = drive(&mut transfer, |step| {
                        if let Step::Moved(bytes) = step {
                            written += bytes;
                        }
                        // Nobody runs what is not all there.
                        let whole = written == SIZE as u64;
                        let special = if whole { SPECIAL } else { 0 };
                        for (name, copy) in copies(&place, &["from"]) {
                            seen += 1;
                            let allowed = allowed & (PERMISSIONS | special) | 0o200;
                            assert_eq!(
                                mode(&copy) & !allowed,
                                0,
                                "{name} has {:o}, its source {allowed:o}: {options:?}",
                                mode(&copy)
                            );
                        }
                    });
                    done(step);
                    assert!(seen > 5, "it was seen in {seen} steps only");
                    fs::remove_file(place.path("to")).unwrap();
                }
            }
        }
    });
}

// https://github.com/rust-lang/rust/issues/26933: nor more open than what it replaces, whose mode it
// gets.
#[test]
fn rust_26933_a_copy_is_never_more_open_than_the_file_that_it_replaces() {
    alone(
        rust_26933_a_copy_is_never_more_open_than_the_file_that_it_replaces,
        || {
            rustix::process::umask(Mode::empty());
            let environments: [fn() -> Environment; 2] = [fresh, without_unnamed_files];
            for place in places() {
                place.write("from", pattern(SIZE));
                place.set_mode("from", 0o666);
                for environment in environments {
                    for old in [0o600, 0o640, 0o000] {
                        place.write("to", other(100));
                        place.set_mode("to", old);
                        let options = Options {
                            write_mode: WriteMode::Replace,
                            ..in_pieces(Mechanism::ReadWrite, 4096)
                        };
                        let request =
                            request(place.source("from"), place.destination("to"), &options);
                        let mut transfer = Transfer::new(environment(), request);
                        done(drive(&mut transfer, |_| {
                            for (name, copy) in copies(&place, &["from"]) {
                                let mode = mode(&copy);
                                assert_eq!(mode & !(old | 0o600), 0, "{name} has {mode:o}");
                            }
                        }));
                        assert_eq!(place.mode("to"), old);
                        fs::remove_file(place.path("to")).unwrap();
                    }
                }
            }
        },
    );
}

/// A part of the source, and all of it.
const WINDOWS: [Option<Window>; 2] = [
    None,
    Some(Window {
        source_offset: 4096,
        length: Some(8192),
        destination_offset: 0,
    }),
];

// https://github.com/retr0h/gilt/issues/149, https://github.com/python/cpython/issues/96719: the mode
// was set after the bytes. Here it is that of an old file, which lets others read.
#[test]
fn gilt_149_a_wider_file_is_narrowed_before_a_secret_is_in_it() {
    for place in places() {
        place.write("from", pattern(SIZE));
        for (allowed, old) in [
            (0o600, 0o644),
            (0o640, 0o666),
            (0o604, 0o777),
            (0o400, 0o677),
        ] {
            place.set_mode("from", allowed);
            for (way, tuning) in every_way() {
                for window in WINDOWS {
                    let _ = fs::remove_file(place.path("to"));
                    place.write("to", other(2 * SIZE));
                    place.set_mode("to", old);
                    let options = Options {
                        window,
                        tuning,
                        ..keeping_mode(WriteMode::InPlace)
                    };
                    let what = format!("{allowed:o} over {old:o} by {way}, {window:?}");
                    let request = request(place.source("from"), place.destination("to"), &options);
                    let mut transfer = Transfer::new(fresh(), request);
                    let step = drive(&mut transfer, |_| {
                        if place.read("to") != other(2 * SIZE) {
                            let mode = place.mode("to");
                            assert_eq!(mode & OTHERS & !allowed, 0, "{what}: {mode:o}");
                        }
                    });
                    match step {
                        Step::Done(_) => assert_eq!(place.mode("to"), allowed, "{what}"),
                        // Not every mechanism is to be had everywhere.
                        _ => {
                            assert!(tuning.only.is_some(), "{what}: {step:?}");
                            assert_same(&place.read("to"), &other(2 * SIZE), &what);
                            assert_eq!(place.mode("to"), old, "{what}: it is as it was");
                        }
                    }
                }
            }
        }
    }
}

// https://github.com/retr0h/gilt/issues/149, where the file is another user's: the copy may write it,
// and may not set its mode.
#[test]
fn gilt_149_a_file_that_cannot_be_narrowed_gets_no_secret_where_the_mode_is_required() {
    for place in places() {
        place.write("from", pattern(SIZE));
        place.set_mode("from", 0o600);
        for required in [false, true] {
            place.write("to", other(100));
            place.set_mode("to", 0o666);
            let environment = hooked(|call| match call {
                Call::SetMode => Some(Errno::PERM),
                _ => None,
            });
            let mut options = keeping_mode(WriteMode::InPlace);
            if required {
                options.require = Preserve::MODE;
            }
            let request = request(place.source("from"), place.destination("to"), &options);
            let answer = copyist_engine::copy_in(&environment, request, &Cancel::new());
            if required {
                let cause = Cause::Io(Side::Destination, Errno::PERM);
                assert_eq!(answer.unwrap_err().cause, cause);
                assert_same(&place.read("to"), &other(100), "to");
            } else {
                assert_eq!(answer.unwrap().lost, Preserve::MODE);
                assert_same(&place.read("to"), &pattern(SIZE), "to");
            }
            assert_eq!(place.mode("to"), 0o666);
        }
    }
}

// A mode is no secret: it comes back where no byte came, and only there.
#[test]
fn an_old_file_that_got_nothing_has_the_mode_that_it_had() {
    for place in places() {
        place.write("from", pattern(SIZE));
        place.set_mode("from", 0o600);
        let fails = |which: fn(&Call<'_>) -> bool, at: usize| {
            let calls = AtomicUsize::new(0);
            hooked(move |call| {
                let now = which(&call) && calls.fetch_add(1, Ordering::Relaxed) == at;
                now.then_some(Errno::IO)
            })
        };
        let reads = |call: &Call<'_>| matches!(call, Call::Read);
        let writes = |call: &Call<'_>| matches!(call, Call::Write);
        let by_reading = in_pieces(Mechanism::ReadWrite, 4096).tuning;
        for (environment, reflink, tuning, copied) in [
            (fails(reads, 0), Reflink::Auto, by_reading, 0),
            (fails(writes, 1), Reflink::Auto, by_reading, 4096),
            // Where nothing can be shared.
            (fresh(), Reflink::Always, Tuning::default(), 0),
        ] {
            place.write("to", other(SIZE));
            place.set_mode("to", 0o644);
            let options = Options {
                reflink,
                tuning,
                ..keeping_mode(WriteMode::InPlace)
            };
            let request = request(place.source("from"), place.destination("to"), &options);
            match copyist_engine::copy_in(&environment, request, &Cancel::new()) {
                Err(error) => {
                    let expected = [&pattern(SIZE)[..copied], &other(SIZE)[copied..]].concat();
                    assert_same(&place.read("to"), &expected, "to");
                    let mode = if copied == 0 { 0o644 } else { 0o600 };
                    assert_eq!(place.mode("to"), mode, "{error:?}");
                }
                Ok(_) => assert_eq!(reflink, Reflink::Always, "what fails is copied"),
            }
        }
    }
}

// https://github.com/shadow-maint/shadow/pull/566: a mode that keeps a group out, and lets all others
// in, on a file that is not yet that group's.
#[test]
fn shadow_566_nobody_else_reads_a_file_before_it_has_its_owner() {
    if !is_root("giving files away") {
        return;
    }
    let (owner, group) = (1234, 4321);
    alone(
        shadow_566_nobody_else_reads_a_file_before_it_has_its_owner,
        || {
            rustix::process::umask(Mode::empty());
            for place in places().into_iter().map(Arc::new) {
                place.write("from", pattern(SIZE));
                chown(place.path("from"), Some(owner), Some(group)).unwrap();
                for (allowed, write_mode, existing) in [0o604, 0o640, 0o644, 0o4755]
                    .into_iter()
                    .flat_map(|mode| WRITE_MODES.map(|write_mode| (mode, write_mode)))
                    .flat_map(|(mode, write_mode)| {
                        [(mode, write_mode, false), (mode, write_mode, true)]
                    })
                {
                    place.set_mode("from", allowed);
                    if existing {
                        place.write("to", other(100));
                        place.set_mode("to", 0o666);
                    }
                    let what = format!("{allowed:o}, {write_mode:?}, existing: {existing}");
                    let except: &[&str] = if existing && write_mode == WriteMode::Replace {
                        &["from", "to"]
                    } else {
                        &["from"]
                    };
                    let wrong = Arc::new(Mutex::new(Vec::new()));
                    let look = {
                        let (place, wrong) = (place.clone(), wrong.clone());
                        move || {
                            for (name, copy) in copies(&place, except) {
                                let is_given = (copy.uid(), copy.gid()) == (owner, group);
                                // What was there before was there to be read.
                                let is_old = copy.len() == 100;
                                if !is_given && !is_old && mode(&copy) & OTHERS != 0 {
                                    wrong.lock().unwrap().push((name, mode(&copy)));
                                }
                            }
                        }
                    };
                    let watched = look.clone();
                    let environment = hooked(move |_| {
                        watched();
                        None
                    });
                    let options = Options {
                        preserve: Preserve::MODE | Preserve::OWNERSHIP,
                        tuning: in_pieces(Mechanism::ReadWrite, 4096).tuning,
                        ..keeping_mode(write_mode)
                    };
                    let request = request(
                        Source::File(place.open("from")),
                        place.destination("to"),
                        &options,
                    );
                    done(drive(&mut Transfer::new(environment, request), |step| {
                        if !matches!(step, Step::Done(_)) {
                            look();
                        }
                    }));
                    assert_eq!(*wrong.lock().unwrap(), [], "{what}");
                    let copy = fs::metadata(place.path("to")).unwrap();
                    assert_eq!((copy.uid(), copy.gid()), (owner, group), "{what}");
                    assert_eq!(copy.permissions().mode() & 0o7777, allowed, "{what}");
                    fs::remove_file(place.path("to")).unwrap();
                }
            }
        },
    );
}
