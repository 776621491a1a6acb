//! Times, and what a copy never carries over: owners, capabilities, other extended attributes.

use std::fs::{self, FileTimes};
use std::os::unix::fs::{MetadataExt, chown};
use std::time::{Duration, SystemTime};

use copyist_engine::{Cause, Options, Preserve, WriteMode};
use rustix::fs::XattrFlags;

use crate::support::{
    Place, WRITE_MODES, assert_same, copy, file, is_root, other, pairs, pattern, places, refusal,
    skipped,
};

fn preserving(preserve: Preserve, write_mode: WriteMode) -> Options {
    Options {
        preserve,
        write_mode,
        ..Options::default()
    }
}

fn times(place: &Place, name: &str) -> (SystemTime, SystemTime) {
    let metadata = fs::metadata(place.path(name)).unwrap();
    (metadata.accessed().unwrap(), metadata.modified().unwrap())
}

fn set_times(place: &Place, name: &str, accessed: SystemTime, modified: SystemTime) {
    let times = FileTimes::new()
        .set_accessed(accessed)
        .set_modified(modified);
    place.open_to_write(name).set_times(times).unwrap();
}

// https://github.com/oven-sh/bun/pull/41868, https://bugs.openjdk.org/browse/JDK-8343417,
// https://github.com/MidnightCommander/mc/issues/3575: cut to seconds, milli- or microseconds;
// https://github.com/nodejs/node/issues/64597: "now" in place of a time before 1970.
#[test]
fn bun_41868_node_64597_times_are_kept_to_the_nanosecond_and_before_1970() {
    let epoch = SystemTime::UNIX_EPOCH;
    let cases = [
        (
            Duration::new(1_700_000_000, 123_456_789),
            Duration::new(1_600_000_000, 987_654_321),
        ),
        (Duration::new(1, 1), Duration::new(0, 1)),
        (Duration::new(0, 0), Duration::new(0, 0)),
        (
            Duration::new(4_000_000_000, 5),
            Duration::new(3_000_000_000, 7),
        ),
    ];
    for (from, to, _) in pairs() {
        from.write("from", pattern(10_000));
        for (accessed, modified) in cases {
            for (accessed, modified) in [
                (epoch + accessed, epoch + modified),
                // 1950-01-01 00:00:00.123456789, and a moment before the epoch.
                (
                    epoch - Duration::new(631_152_000, 0) + Duration::new(0, 123_456_789),
                    epoch - Duration::new(0, 1),
                ),
            ] {
                for preserve in [Preserve::TIMESTAMPS, Preserve::TIMESTAMPS | Preserve::MODE] {
                    for (write_mode, existing, to_descriptor) in [
                        (WriteMode::InPlace, false, false),
                        (WriteMode::InPlace, true, false),
                        (WriteMode::InPlace, true, true),
                        (WriteMode::Replace, false, false),
                        (WriteMode::Replace, true, false),
                    ] {
                        // Reading moves the access time.
                        set_times(&from, "from", accessed, modified);
                        let expected = times(&from, "from");
                        assert_eq!(expected.1, modified);
                        if existing {
                            to.write("to", other(20_000));
                        }
                        let destination = if to_descriptor {
                            file(&to.open_to_write("to"))
                        } else {
                            to.destination("to")
                        };
                        let options = preserving(preserve, write_mode);
                        copy(from.source("from"), destination, &options).unwrap();
                        assert_eq!(
                            times(&to, "to"),
                            expected,
                            "{} to {}, {options:?}, existing: {existing}",
                            from.name,
                            to.name
                        );
                        fs::remove_file(to.path("to")).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn without_being_asked_a_copy_has_its_own_times() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    set_times(&place, "from", old, old);
    for write_mode in WRITE_MODES {
        let options = preserving(Preserve::MODE, write_mode);
        copy(place.source("from"), place.destination("to"), &options).unwrap();
        assert!(times(&place, "to").1 > old, "{write_mode:?}");
    }
}

const EVERYTHING: [Preserve; 6] = [
    Preserve::MODE,
    Preserve::TIMESTAMPS,
    Preserve::OWNERSHIP,
    Preserve::XATTRS,
    Preserve::ACLS,
    Preserve::LINKS,
];

fn everything() -> Preserve {
    EVERYTHING.into_iter().fold(Preserve::NONE, Preserve::union)
}

#[test]
fn what_is_not_granted_is_named_or_refused() {
    for place in places() {
        let old = other(500);
        place.write("from", pattern(1000));
        place.write("old", &old);
        place.set_mode("from", 0o640);
        for write_mode in WRITE_MODES {
            let options = preserving(everything(), write_mode);
            let summary = copy(place.source("from"), place.destination("to"), &options).unwrap();
            assert_eq!(summary.lost, Preserve::OWNERSHIP);
            assert_eq!(place.mode("to"), 0o640);
            fs::remove_file(place.path("to")).unwrap();
            let options = Options {
                require: Preserve::OWNERSHIP,
                write_mode,
                ..Options::default()
            };
            for to in ["to", "old"] {
                assert_eq!(
                    refusal(place.source("from"), place.destination(to), &options),
                    Cause::Denied
                );
            }
            place.assert_names(&["from", "old"], "nothing was made");
            assert_same(&place.read("old"), &old, "old");
        }
    }
}

#[test]
fn neither_owner_nor_capabilities_are_carried_over() {
    if !is_root("a file of another owner, with capabilities") {
        return;
    }
    for place in places() {
        place.write("from", pattern(1000));
        chown(place.path("from"), Some(1234), Some(4321)).unwrap();
        place.set_mode("from", 0o755);
        // Version 2, effective, CAP_NET_RAW permitted.
        let capability = [
            1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let name = "security.capability";
        let set = rustix::fs::setxattr(place.path("from"), name, &capability, XattrFlags::empty());
        if let Err(errno) = set {
            skipped(&format!("capabilities on {}: {errno}", place.name));
            continue;
        }
        for (write_mode, existing) in WRITE_MODES
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)])
        {
            if existing {
                place.write("to", other(100));
            }
            let options = Options {
                grants: copyist_engine::Grants {
                    special_mode_bits: true,
                    ..copyist_engine::Grants::default()
                },
                ..preserving(everything(), write_mode)
            };
            copy(place.source("from"), place.destination("to"), &options).unwrap();
            let metadata = fs::metadata(place.path("to")).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (0, 0), "{options:?}");
            let mut names = Vec::with_capacity(1000);
            let spare = rustix::buffer::spare_capacity(&mut names);
            rustix::fs::listxattr(place.path("to"), spare).unwrap();
            let listed = String::from_utf8_lossy(&names).into_owned();
            assert!(!listed.contains(name), "{listed}: {options:?}");
            fs::remove_file(place.path("to")).unwrap();
        }
    }
}
