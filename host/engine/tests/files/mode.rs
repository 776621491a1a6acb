//! Permission bits: of a new file, of an old one, preserved, and while the copy runs.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;

use copyist_engine::{Cause, Grants, Handle, Options, Preserve, Source, WriteMode};
use rustix::fs::Mode;

use crate::support::child::{alone, as_nobody};
use crate::support::hooked::without_unnamed_files;
use crate::support::{
    Place, WRITE_MODES, assert_same, copy, every_way, file, fresh, is_root, other, pairs, pattern,
    places, refusal, request, skipped,
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

// https://github.com/oven-sh/bun/issues/859, by every umask: of a mode that is not preserved it takes
// away what it does of any new file's, and of one that is it takes nothing.
#[test]
fn bun_859_every_mode_is_what_the_umask_leaves_of_it() {
    alone(bun_859_every_mode_is_what_the_umask_leaves_of_it, || {
        for (place, modes) in places()
            .iter()
            .zip([telling_modes(), (0..=0o7777).collect()])
        {
            rustix::process::umask(Mode::empty());
            place.write("from", "#!");
            let from = place.open_to_write("from");
            for mode in modes {
                from.set_permissions(Permissions::from_mode(mode)).unwrap();
                for mask in [0, 0o022, 0o077, 0o277, 0o777] {
                    rustix::process::umask(Mode::from_raw_mode(mask));
                    let check = |options: &Options, expected: u32| {
                        let source = Source::File(from.clone());
                        copy(source, place.destination("to"), options).unwrap();
                        assert_eq!(place.mode("to"), expected, "{mode:o} under {mask:o}");
                        fs::remove_file(place.path("to")).unwrap();
                    };
                    for write_mode in WRITE_MODES {
                        let options = |preserve| preserving(preserve, write_mode, true);
                        check(&options(Preserve::NONE), mode & PERMISSIONS & !mask);
                        check(&options(Preserve::MODE), mode);
                    }
                }
            }
        }
    });
}

/// Each bit alone, and all but each: where a new file costs more than in memory.
fn telling_modes() -> Vec<u32> {
    let bits = (0..12).map(|bit| 1 << bit);
    bits.flat_map(|bit| [bit, 0o7777 & !bit]).collect()
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

// https://github.com/uutils/coreutils/pull/9781, https://github.com/SerenityOS/serenity/issues/4479:
// who may not give files away asked for the owner too, did not get it, and got setuid. What is granted
// to a guest is not yet permitted by the system.
#[test]
fn uutils_9781_a_copy_whose_owner_is_refused_is_not_setuid() {
    as_nobody(
        uutils_9781_a_copy_whose_owner_is_refused_is_not_setuid,
        || {
            const PROGRAMS: [&str; 4] = ["su", "passwd", "mount", "newgrp"];
            let somebody_elses = |metadata: &fs::Metadata| {
                metadata.mode() & 0o4000 != 0
                    && metadata.uid() != rustix::process::geteuid().as_raw()
            };
            let program = PROGRAMS.into_iter().find_map(|name| {
                let file = File::open(Path::new("/usr/bin").join(name)).ok()?;
                somebody_elses(&file.metadata().ok()?).then(|| Arc::new(file))
            });
            let Some(program) = program else {
                return skipped("no program is setuid and can be read");
            };
            let source = program.metadata().unwrap();
            for (place, write_mode) in places()
                .iter()
                .flat_map(|p| WRITE_MODES.map(|mode| (p, mode)))
            {
                let mut options =
                    preserving(Preserve::MODE | Preserve::OWNERSHIP, write_mode, true);
                options.grants.ownership = true;
                let to = || place.destination("to");
                let summary = copy(Source::File(program.clone()), to(), &options).unwrap();
                assert_eq!(summary.lost, Preserve::MODE | Preserve::OWNERSHIP);
                assert_eq!(
                    place.mode("to"),
                    source.mode() & PERMISSIONS,
                    "{write_mode:?}"
                );
                fs::remove_file(place.path("to")).unwrap();
                for required in [Preserve::MODE, Preserve::OWNERSHIP] {
                    options.require = required;
                    refusal(Source::File(program.clone()), to(), &options);
                    place.assert_names(&[], "nothing is made");
                }
            }
        },
    );
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
