//! What happens to a file that exists: refused, left, written if older, overwritten, replaced.

use std::time::{Duration, SystemTime};

use copyist_engine::{
    Cause, Destination, Errno, Existing, Mechanism, Options, Side, Unsupported, WriteMode,
};

use crate::support::{
    Place, WRITE_MODES, assert_same, byte_movers, copy, fallback, file, only, other, pattern,
    places,
};

const EXISTING: [Existing; 4] = [
    Existing::Refuse,
    Existing::Skip,
    Existing::Update,
    Existing::Write,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Written,
    Left,
    Refused(Why),
}

/// The two refusals of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Exists,
    NoReplace,
}

/// The table of the contract.
fn outcome(options: &Options, exists: bool, to_descriptor: bool, newer: bool) -> Outcome {
    if to_descriptor && options.write_mode == WriteMode::Replace {
        return Outcome::Refused(Why::NoReplace);
    }
    match options.existing {
        _ if !exists => Outcome::Written,
        Existing::Refuse => Outcome::Refused(Why::Exists),
        Existing::Skip => Outcome::Left,
        Existing::Update if newer => Outcome::Written,
        Existing::Update => Outcome::Left,
        Existing::Write => Outcome::Written,
    }
}

fn set_modified(place: &Place, name: &str, time: SystemTime) {
    place.open_to_write(name).set_modified(time).unwrap();
}

#[test]
fn the_table_of_the_contract() {
    let epoch = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 500);
    let nanosecond = Duration::from_nanos(1);
    let new = pattern(100_000);
    // Nothing, and an older file that is shorter, longer, or the same already.
    let states = [
        None,
        Some(other(0)),
        Some(other(5_000)),
        Some(other(250_000)),
        Some(new.clone()),
    ];
    for place in places() {
        place.write("from", &new);
        set_modified(&place, "from", epoch);
        for (existing, write_mode) in EXISTING
            .into_iter()
            .flat_map(|e| WRITE_MODES.map(|w| (e, w)))
        {
            for (old, to_descriptor) in states
                .iter()
                .flat_map(|old| [(old, false), (old, true)])
                .filter(|(old, to_descriptor)| old.is_some() || !to_descriptor)
            {
                // The old file is as old as the source, older, and newer by the least there is.
                for (age, newer) in [
                    (epoch, false),
                    (epoch - nanosecond, true),
                    (epoch + nanosecond, false),
                ] {
                    let options = Options {
                        existing,
                        write_mode,
                        ..Options::default()
                    };
                    let what = format!(
                        "{}: {options:?} over {:?} bytes, descriptor: {to_descriptor}, newer: {newer}",
                        place.name,
                        old.as_ref().map(Vec::len)
                    );
                    if let Some(old) = old {
                        place.write("to", old);
                        place.set_mode("to", 0o640);
                        set_modified(&place, "to", age);
                    }
                    let inode = old.is_some().then(|| place.inode("to"));
                    let destination = if to_descriptor {
                        file(&place.open_to_write("to"))
                    } else {
                        place.destination("to")
                    };
                    let answer = copy(place.source("from"), destination, &options);
                    let outcome = outcome(&options, old.is_some(), to_descriptor, newer);
                    match outcome {
                        Outcome::Written => {
                            let summary = answer.expect(&what);
                            assert_eq!((summary.files, summary.skipped), (1, 0), "{what}");
                            assert_same(&place.read("to"), &new, &what);
                        }
                        Outcome::Left => {
                            let summary = answer.expect(&what);
                            assert_eq!((summary.files, summary.skipped), (0, 1), "{what}");
                            assert_eq!((summary.bytes, summary.method), (0, None), "{what}");
                        }
                        Outcome::Refused(why) => {
                            let cause = answer.expect_err(&what).cause;
                            let expected = match why {
                                Why::Exists => Cause::Io(Side::Destination, Errno::EXIST),
                                Why::NoReplace => Cause::Unsupported(Unsupported::Replace),
                            };
                            assert_eq!(cause, expected, "{what}");
                        }
                    }
                    if let (Some(old), Some(inode)) = (old, inode) {
                        if outcome != Outcome::Written {
                            assert_same(&place.read("to"), old, &what);
                        }
                        let replaced =
                            outcome == Outcome::Written && write_mode == WriteMode::Replace;
                        assert_eq!(place.inode("to") != inode, replaced, "{what}");
                        assert_eq!(place.mode("to"), 0o640, "{what}");
                    }
                    place.assert_names(&["from", "to"], &what);
                    std::fs::remove_file(place.path("to")).unwrap();
                }
            }
        }
    }
}

// https://github.com/libuv/libuv/issues/1551, https://github.com/libuv/libuv/pull/1552: the old tail
// stayed.
#[test]
fn libuv_1551_an_old_longer_destination_keeps_no_tail() {
    let new = pattern(120 << 10);
    for place in places() {
        place.write("from", &new);
        for tuning in byte_movers().map(only).into_iter().chain([fallback()]) {
            for to_descriptor in [false, true] {
                if to_descriptor && tuning.only == Some(Mechanism::SendFile) {
                    continue;
                }
                place.write("to", other(200 << 10));
                let destination: Destination = if to_descriptor {
                    file(&place.open_to_write("to"))
                } else {
                    place.destination("to")
                };
                let options = Options {
                    tuning,
                    ..Options::default()
                };
                copy(place.source("from"), destination, &options).unwrap();
                assert_same(&place.read("to"), &new, &format!("{tuning:?}"));
            }
        }
        // And an empty source empties it.
        place.write("from", "");
        copy(
            place.source("from"),
            place.destination("to"),
            &Options::default(),
        )
        .unwrap();
        assert_eq!(place.read("to"), b"");
        place.write("from", &new);
    }
}

#[test]
fn in_place_every_hard_link_sees_the_new_bytes_and_the_mode_stays() {
    for place in places() {
        place.write("from", pattern(10_000));
        place.set_mode("from", 0o777);
        for mode in [0o600, 0o640, 0o200] {
            place.write("to", other(20_000));
            place.set_mode("to", mode);
            std::fs::hard_link(place.path("to"), place.path("link")).unwrap();
            copy(
                place.source("from"),
                place.destination("to"),
                &Options::default(),
            )
            .unwrap();
            assert_eq!(place.mode("to"), mode);
            place.set_mode("to", 0o600);
            assert_same(&place.read("link"), &pattern(10_000), "link");
            std::fs::remove_file(place.path("link")).unwrap();
        }
    }
}
