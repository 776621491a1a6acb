//! copy_file_range(2) that stops, says 0, or fails in an odd way: the bytes come over all the same.

use std::sync::Arc;

use copyist_bed::faults::{self, Rule};
use copyist_bed::{Bed, Call};
use copyist_engine::{Destination, Errno, Mechanism, Options, Window};

use super::support::{
    Place, WRITE_MODES, assert_bounded, assert_same, by, copy, copy_in, fresh, old, pattern,
};

const LENGTH: usize = 300_000;

/// The faults of the table that are about copy_file_range(2).
fn odd_answers() -> impl Iterator<Item = (&'static str, &'static [Rule])> {
    let is_odd = |(name, _): &&(&str, _)| name.starts_with("COPY_RANGE");
    faults::ALL.iter().filter(is_odd).copied()
}

/// How many bytes are copied, and how many calls it may take to move them.
fn length_and_moves(name: &str) -> (usize, u64) {
    match name {
        // The kernel looks at both files before each byte.
        "COPY_RANGE_ONE_BYTE" => (3000, 9100),
        _ => (LENGTH, 400),
    }
}

// The fallback goes on where the kernel's copy stopped, whatever it was that stopped it.
// https://github.com/oven-sh/bun/issues/43398
// https://github.com/oven-sh/bun/issues/42618
// https://github.com/rust-lang/rust/issues/51266
// https://github.com/tonistiigi/fsutil/issues/50
// https://github.com/libuv/libuv/issues/3322
// https://github.com/oven-sh/bun/issues/8425
#[test]
fn bun_43398_every_odd_answer_of_the_source_leads_to_the_same_bytes() {
    for (name, rules) in odd_answers() {
        let (length, moves) = length_and_moves(name);
        for existing in [false, true] {
            for write_mode in WRITE_MODES {
                let Some(bed) = Bed::mount() else { return };
                let place = Place::bed(&bed);
                bed.add("it", rules, pattern(length));
                if existing {
                    bed.add("to", faults::GOOD, old(2 * length));
                }
                let what = format!("{name}, {write_mode:?}, {existing}");
                let done = copy(place.source("it"), place.destination("to"), &by(write_mode));
                let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_same(&bed.content("to"), &pattern(length), &what);
                assert_eq!(done.bytes, length as u64, "{what}");
                assert_eq!(bed.names(), ["it", "to"], "{what}");
                assert_bounded(&bed, moves, &what);
            }
        }
    }
}

// The same of the destination, whose place the bytes go to must be the right one too.
// https://github.com/oven-sh/bun/issues/43398
#[test]
fn bun_43398_every_odd_answer_of_the_destination_leads_to_the_same_bytes() {
    for (name, rules) in odd_answers() {
        let (length, moves) = length_and_moves(name);
        for write_mode in WRITE_MODES {
            let Some(bed) = Bed::mount() else { return };
            let place = Place::bed(&bed);
            bed.add("it", faults::GOOD, pattern(length));
            bed.add("to", rules, old(2 * length));
            bed.expect_any(rules);
            let what = format!("{name}, {write_mode:?}");
            let done = copy(place.source("it"), place.destination("to"), &by(write_mode));
            done.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_same(&bed.content("to"), &pattern(length), &what);
            assert_eq!(bed.names(), ["it", "to"], "{what}");
            assert_bounded(&bed, moves, &what);
        }
    }
}

// A window ends where it ends, on every arm.
// https://github.com/oven-sh/bun/issues/32859
// https://github.com/oven-sh/bun/issues/37856
#[test]
fn bun_32859_a_window_ends_where_it_ends_whatever_the_offload_says() {
    for (name, rules) in odd_answers() {
        let Some(bed) = Bed::mount() else { return };
        let place = Place::bed(&bed);
        bed.add("it", rules, pattern(LENGTH));
        bed.add("to", faults::GOOD, old(LENGTH));
        let options = Options {
            window: Some(Window {
                source_offset: 1000,
                length: Some(20_000),
                destination_offset: 5000,
            }),
            ..Options::default()
        };
        let mut writing = std::fs::File::options();
        let handle = writing.read(true).write(true).open(place.path("to"));
        let to = Destination::File(Arc::new(handle.unwrap()));
        let done = copy(place.source("it"), to, &options);
        let done = done.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut expected = old(LENGTH);
        expected[5000..25_000].copy_from_slice(&pattern(LENGTH)[1000..21_000]);
        assert_same(&bed.content("to"), &expected, name);
        assert_eq!(done.bytes, 20_000, "{name}");
    }
}

// Servers say EIO of good files. Reading and writing decides, and what came of it is synced before
// it counts, since something is wrong.
// https://github.com/golang/go/issues/42334
// https://github.com/golang/go/issues/40731
// https://github.com/golang/go/issues/41064
#[test]
fn go_42334_a_copy_that_saw_eio_syncs_its_destination() {
    let Some(bed) = Bed::mount() else { return };
    let place = Place::bed(&bed);
    bed.add("it", faults::COPY_RANGE_EIO, pattern(LENGTH));
    let done = copy(
        place.source("it"),
        place.destination("to"),
        &Options::default(),
    )
    .unwrap();
    assert!(
        done.refused
            .contains(&(Mechanism::CopyRange, Some(Errno::IO))),
        "{done:?}"
    );
    assert_eq!(bed.calls_of("to", Call::Sync), 1);
    bed.add("good", faults::GOOD, pattern(LENGTH));
    copy(
        place.source("good"),
        place.destination("2"),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(bed.calls_of("2", Call::Sync), 0, "without one it does not");
}

// What one destination refuses is not refused for others.
// https://github.com/oven-sh/bun/issues/43244
// https://github.com/libuv/libuv/issues/3354
#[test]
fn bun_43244_an_odd_destination_does_not_turn_the_fast_path_off_for_others() {
    for (name, rules) in odd_answers() {
        let Some(bed) = Bed::mount() else { return };
        let Some(other) = Bed::mount() else { return };
        let environment = fresh();
        let copy = |from: &Place, name: &str, to: &Place| {
            let (from, to) = (from.source(name), to.destination("to"));
            copy_in(&environment, from, to, &Options::default())
        };
        let (odd, good) = (Place::bed(&bed), Place::bed(&other));
        let disk = Place::disk();
        bed.add("it", rules, pattern(10_000));
        bed.add("other", faults::GOOD, pattern(10_000));
        other.add("it", faults::GOOD, pattern(10_000));
        disk.write("it", pattern(10_000));
        copy(&odd, "it", &odd).unwrap();
        copy(&disk, "it", &odd).unwrap();
        let _ = copy_in(
            &environment,
            disk.source("it"),
            Destination::File(Arc::new(std::fs::File::create("/dev/null").unwrap())),
            &Options::default(),
        );
        let done = copy(&good, "it", &good).unwrap();
        assert_eq!(done.method, Some(Mechanism::CopyRange), "{name}: {done:?}");
        let done = copy(&disk, "it", &disk).unwrap();
        assert!(
            matches!(done.method, Some(Mechanism::Clone | Mechanism::CopyRange)),
            "{name}: {done:?}"
        );
        // One file is no reason to leave out its neighbour either, but where the whole file system
        // has no such call.
        let whole = [
            "COPY_RANGE_ENOSYS",
            "COPY_RANGE_EXDEV",
            "COPY_RANGE_EOPNOTSUPP",
        ];
        if !whole.contains(&name) {
            let done = copy(&odd, "other", &odd).unwrap();
            assert_eq!(done.method, Some(Mechanism::CopyRange), "{name}: {done:?}");
        }
    }
}
