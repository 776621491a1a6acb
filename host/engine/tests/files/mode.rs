//! Permission bits: of a new file, of an old one, preserved, and while the copy runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use copyist_engine::{
    Cause, Environment, Grants, Handle, Mechanism, Options, Preserve, Source, Step, Transfer,
    WriteMode,
};
use rustix::fs::Mode;

use crate::support::child::alone;
use crate::support::hooked::without_unnamed_files;
use crate::support::{
    Place, WRITE_MODES, assert_same, copy, done, drive, every_way, file, fresh, in_pieces, is_root,
    other, pairs, pattern, places, refusal, request,
};

const PERMISSIONS: u32 = 0o777;
const SPECIAL: u32 = 0o7000;

fn preserving(preserve: Preserve, write_mode: WriteMode, special_mode_bits: bool) -> Options {
    Options {
        preserve,
        write_mode,
        grants: Grants {
            special_mode_bits,
            ..Grants::default()
        },
        ..Options::default()
    }
}

fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("Umask:"));
    u32::from_str_radix(line.unwrap()["Umask:".len()..].trim(), 8).unwrap()
}

/// A source with this mode, open: its mode may forbid to open it.
fn source(place: &Place, mode: u32) -> Handle {
    let open = place.open("from");
    open.set_permissions(Permissions::from_mode(mode)).unwrap();
    assert_eq!(place.mode("from"), mode);
    open
}

// https://github.com/oven-sh/bun/issues/859: the mode came from another platform's structure.
#[test]
fn bun_859_every_mode_is_carried_over_as_far_as_it_may() {
    let umask = umask();
    let place = places().pop().unwrap();
    place.write("from", "#!");
    let from = place.open_to_write("from");
    for mode in 0..=0o7777 {
        from.set_permissions(Permissions::from_mode(mode)).unwrap();
        let source = || Source::File(from.clone());
        let special = mode & SPECIAL != 0;
        for write_mode in WRITE_MODES {
            let check = |options: &Options, expected: u32, lost: bool| {
                let summary = copy(source(), place.destination("to"), options).unwrap();
                assert_eq!(place.mode("to"), expected, "{mode:o}, {options:?}");
                let lost = if lost { Preserve::MODE } else { Preserve::NONE };
                assert_eq!(summary.lost, lost, "{mode:o}, {options:?}");
                fs::remove_file(place.path("to")).unwrap();
            };
            let options = |preserve, grant| preserving(preserve, write_mode, grant);
            let kept = mode & PERMISSIONS;
            check(&options(Preserve::NONE, true), kept & !umask, false);
            check(&options(Preserve::MODE, false), kept, special);
            check(&options(Preserve::MODE, true), mode, false);
            let required = |grant| Options {
                require: Preserve::MODE,
                ..options(Preserve::NONE, grant)
            };
            check(&required(true), mode, false);
            if special {
                let cause = refusal(source(), place.destination("to"), &required(false));
                assert_eq!(cause, Cause::Denied, "{mode:o}");
                place.assert_names(&["from"], "nothing is made");
            } else {
                check(&required(false), mode, false);
            }
        }
    }
}

// https://github.com/prefix-dev/rattler-build/pull/1111: a clone had another mode than a copy.
#[test]
fn rattler_build_1111_every_mechanism_gives_the_same_mode() {
    for (from, to, _) in pairs() {
        from.write("from", pattern(10_000));
        from.set_mode("from", 0o751);
        for (way, tuning) in every_way() {
            for (preserve, expected) in
                [(Preserve::NONE, 0o751 & !umask()), (Preserve::MODE, 0o751)]
            {
                let options = Options {
                    tuning,
                    preserve,
                    ..Options::default()
                };
                if copy(from.source("from"), to.destination("to"), &options).is_err() {
                    assert!(tuning.only.is_some(), "{way}");
                    continue;
                }
                assert_eq!(to.mode("to"), expected, "{way}, {preserve:?}");
                fs::remove_file(to.path("to")).unwrap();
            }
        }
    }
}

#[test]
fn an_old_file_keeps_its_mode_unless_the_sources_is_preserved() {
    for place in places() {
        place.write("from", pattern(1000));
        for (mode, old) in [
            (0o755, 0o640),
            (0o600, 0o666),
            (0o4755, 0o600),
            (0o444, 0o200),
        ] {
            for write_mode in WRITE_MODES {
                let restore = || {
                    let _ = fs::remove_file(place.path("to"));
                    place.write("to", other(500));
                    place.set_mode("to", old);
                };
                let from = || Source::File(source(&place, mode));
                restore();
                place.set_mode("from", 0o600);
                let options = preserving(Preserve::NONE, write_mode, true);
                copy(from(), place.destination("to"), &options).unwrap();
                assert_eq!(
                    place.mode("to"),
                    old,
                    "{mode:o} over {old:o}, {write_mode:?}"
                );
                for grant in [true, false] {
                    restore();
                    place.set_mode("from", 0o600);
                    let options = preserving(Preserve::MODE, write_mode, grant);
                    copy(from(), place.destination("to"), &options).unwrap();
                    let expected = if grant { mode } else { mode & PERMISSIONS };
                    assert_eq!(place.mode("to"), expected, "{mode:o}, {write_mode:?}");
                }
                place.set_mode("from", 0o600);
            }
        }
    }
}

// https://github.com/uutils/coreutils/issues/9750, https://github.com/oven-sh/bun/pull/43325: the
// copy ran as whoever made it.
#[test]
fn uutils_9750_a_copy_with_another_owner_is_not_setuid_whatever_is_granted() {
    if !is_root("a file of another owner") {
        return;
    }
    for place in places() {
        place.write("from", pattern(1000));
        for (owner, group, mode) in [
            (1234, 0, 0o3755),
            (0, 1234, 0o5755),
            (1234, 1234, 0o1755),
            (0, 0, 0o7755),
        ] {
            chown(place.path("from"), Some(owner), Some(group)).unwrap();
            place.set_mode("from", 0o7755);
            for (write_mode, existing) in WRITE_MODES
                .into_iter()
                .flat_map(|mode| [(mode, false), (mode, true)])
            {
                if existing {
                    place.write("to", other(10));
                }
                let options = preserving(Preserve::MODE, write_mode, true);
                let summary = copy(place.source("from"), place.destination("to"), &options);
                assert_eq!(place.mode("to"), mode, "{owner}, {group}, {options:?}");
                let lost = mode != 0o7755;
                assert_eq!(summary.unwrap().lost == Preserve::MODE, lost);
                fs::remove_file(place.path("to")).unwrap();
                let required = Options {
                    require: Preserve::MODE,
                    ..options
                };
                let answer = copy(place.source("from"), place.destination("to"), &required);
                if lost {
                    assert_eq!(answer.unwrap_err().cause, Cause::Denied);
                    place.assert_names(&["from"], "nothing is left");
                } else {
                    answer.unwrap();
                    fs::remove_file(place.path("to")).unwrap();
                }
            }
        }
    }
}

// Setuid on the old file: WASI's own write leaves it too, but no new file gets it.
#[test]
fn the_file_that_replaces_a_setuid_file_is_none() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    place.write("to", other(1000));
    place.set_mode("to", 0o6755);
    copy(
        place.source("from"),
        place.destination("to"),
        &crate::support::replacing(),
    )
    .unwrap();
    assert_eq!(place.mode("to"), 0o755);
}

#[test]
fn a_callers_descriptor_keeps_its_mode() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    place.set_mode("from", 0o755);
    place.write("to", other(500));
    place.set_mode("to", 0o640);
    let options = preserving(Preserve::MODE, WriteMode::InPlace, true);
    let to = place.open_to_write("to");
    let summary = copy(place.source("from"), file(&to), &options).unwrap();
    assert_eq!(summary.lost, Preserve::MODE);
    assert_eq!(place.mode("to"), 0o640);
    assert_same(&place.read("to"), &pattern(1000), "to");

    place.write("to", other(500));
    let required = Options {
        require: Preserve::MODE,
        ..Options::default()
    };
    assert_eq!(
        refusal(place.source("from"), file(&to), &required),
        Cause::Unsupported(copyist_engine::Unsupported::Attribute)
    );
    assert_same(&place.read("to"), &other(500), "to");
}

#[test]
fn the_umask_is_taken_off_a_new_file_and_not_off_a_preserved_mode() {
    alone(
        the_umask_is_taken_off_a_new_file_and_not_off_a_preserved_mode,
        || {
            for place in places() {
                rustix::process::umask(Mode::empty());
                place.write("from", pattern(1000));
                let from = place.open_to_write("from");
                for mask in [0, 0o022, 0o077, 0o222, 0o700, 0o777] {
                    rustix::process::umask(Mode::from_raw_mode(mask));
                    for mode in [0o644, 0o600, 0o755, 0o777, 0o666, 0o444, 0o640, 0o000] {
                        from.set_permissions(Permissions::from_mode(mode)).unwrap();
                        for environment in [fresh(), without_unnamed_files()] {
                            for write_mode in WRITE_MODES {
                                for (preserve, expected) in
                                    [(Preserve::NONE, mode & !mask), (Preserve::MODE, mode)]
                                {
                                    let options = preserving(preserve, write_mode, false);
                                    let request = request(
                                        Source::File(from.clone()),
                                        place.destination("to"),
                                        &options,
                                    );
                                    let cancel = copyist_engine::Cancel::new();
                                    copyist_engine::copy_in(&environment, request, &cancel)
                                        .unwrap();
                                    assert_eq!(
                                        place.mode("to"),
                                        expected,
                                        "{mode:o} under {mask:o}, {options:?}"
                                    );
                                    place.set_mode("to", 0o600);
                                    assert_same(&place.read("to"), &pattern(1000), "to");
                                    fs::remove_file(place.path("to")).unwrap();
                                }
                            }
                        }
                    }
                }
            }
        },
    );
}

/// The modes of all files that a copy has in a place just now, those without a name too.
fn modes(place: &Place, except: &[&str]) -> Vec<(String, u32)> {
    let mut modes: Vec<_> = place
        .names()
        .into_iter()
        .filter(|name| !except.contains(&&**name))
        .map(|name| {
            let mode = place.mode(&name);
            (name, mode)
        })
        .collect();
    let here = place.path("");
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let link = entry.unwrap().path();
        let Ok(target) = fs::read_link(&link) else {
            continue;
        };
        if target.starts_with(&here) && target.to_string_lossy().ends_with("(deleted)") {
            modes.push((
                "unnamed".into(),
                fs::metadata(link).unwrap().mode() & 0o7777,
            ));
        }
    }
    modes
}

// https://github.com/rust-lang/rust/issues/26933, https://github.com/libuv/libuv/issues/1547: it
// could be read by others until its mode was set at the end.
#[test]
fn rust_26933_a_copy_is_never_more_open_than_its_source() {
    alone(rust_26933_a_copy_is_never_more_open_than_its_source, || {
        rustix::process::umask(Mode::empty());
        let environments: [fn() -> Environment; 2] = [fresh, without_unnamed_files];
        for place in places() {
            place.write("from", pattern(20_000));
            for (mode, environment) in [0o600, 0o604, 0o640, 0o644, 0o400, 0o4755]
                .into_iter()
                .flat_map(|mode| environments.map(|environment| (mode, environment)))
            {
                place.set_mode("from", mode);
                for (preserve, write_mode) in [Preserve::NONE, Preserve::MODE]
                    .into_iter()
                    .flat_map(|preserve| WRITE_MODES.map(|write_mode| (preserve, write_mode)))
                {
                    let options = Options {
                        tuning: in_pieces(Mechanism::ReadWrite, 4096).tuning,
                        ..preserving(preserve, write_mode, true)
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
                        let whole = written == 20_000;
                        let special = if whole { SPECIAL } else { 0 };
                        for (name, seen_mode) in modes(&place, &["from"]) {
                            seen += 1;
                            let allowed = mode & (PERMISSIONS | special) | 0o200;
                            assert_eq!(
                                seen_mode & !allowed,
                                0,
                                "{name} has {seen_mode:o}, its source {mode:o}: {options:?}"
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

// Nor more open than what it replaces, which is the mode that it gets.
#[test]
fn rust_26933_a_copy_is_never_more_open_than_the_file_that_it_replaces() {
    alone(
        rust_26933_a_copy_is_never_more_open_than_the_file_that_it_replaces,
        || {
            rustix::process::umask(Mode::empty());
            let environments: [fn() -> Environment; 2] = [fresh, without_unnamed_files];
            for place in places() {
                place.write("from", pattern(20_000));
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
                            for (name, mode) in modes(&place, &["from"]) {
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
