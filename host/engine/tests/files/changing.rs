//! A source that grows, shrinks or is written while it is copied.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, SystemTime};

use copyist_engine::{Mechanism, Options, Step, Summary, Transfer, WriteMode};

use crate::support::{
    Place, assert_same, done, drive, fresh, in_pieces, other, pairs, pattern, request,
};

const SIZE: usize = 100_000;
const PIECE: usize = 4096;

/// Copies in small pieces by each mechanism, and changes the source after so many bytes.
fn changed_after(bytes: u64, change: impl Fn(&Place), check: impl Fn(&Place, &Summary, &str)) {
    for (from, to, same_device) in pairs() {
        for mechanism in crate::support::byte_movers() {
            if mechanism == Mechanism::CopyRange && !same_device {
                continue;
            }
            for (existing, write_mode) in [
                (false, WriteMode::InPlace),
                (true, WriteMode::InPlace),
                (true, WriteMode::Replace),
            ] {
                from.write("from", pattern(SIZE));
                if existing {
                    to.write("to", other(2 * SIZE));
                }
                let options = Options {
                    write_mode,
                    ..in_pieces(mechanism, PIECE)
                };
                let request = request(from.source("from"), to.destination("to"), &options);
                let mut transfer = Transfer::new(fresh(), request);
                let mut left = Some(bytes);
                let mut steps = 0;
                let step = drive(&mut transfer, |step| {
                    steps += 1;
                    assert!(steps < 1000, "it makes no end");
                    if let (Step::Moved(moved), Some(bytes)) = (step, left) {
                        left = bytes.checked_sub(*moved).filter(|left| *left > 0);
                        if left.is_none() {
                            change(&from);
                        }
                    }
                });
                assert_eq!(left, None, "the change was made");
                let what = format!("{mechanism}, {write_mode:?}, {} to {}", from.name, to.name);
                check(&to, &done(step), &what);
                std::fs::remove_file(to.path("to")).unwrap();
            }
        }
    }
}

fn append(place: &Place, bytes: &[u8]) {
    let mut file = File::options()
        .append(true)
        .open(place.path("from"))
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn cut(place: &Place, length: u64) {
    place.open_to_write("from").set_len(length).unwrap();
}

#[test]
fn what_is_not_touched_has_not_changed() {
    changed_after(
        SIZE as u64,
        |_| {},
        |to, summary, what| {
            assert_same(&to.read("to"), &pattern(SIZE), what);
            assert!(!summary.changed, "{what}");
        },
    );
}

#[test]
fn a_file_that_grows_is_copied_to_its_new_end() {
    for after in [PIECE, SIZE] {
        changed_after(
            after as u64,
            |from| append(from, &other(3 * PIECE + 5)),
            |to, summary, what| {
                let whole = [pattern(SIZE), other(3 * PIECE + 5)].concat();
                assert_same(&to.read("to"), &whole, what);
                assert_eq!(summary.bytes, whole.len() as u64, "{what}");
                assert!(summary.changed, "{what}");
            },
        );
    }
}

// https://github.com/boostorg/filesystem/issues/292, https://github.com/uutils/coreutils/issues/12648:
// the copy waited for the size that the file had had, and never ended.
#[test]
fn filesystem_292_a_file_that_shrinks_is_copied_to_its_new_end() {
    for length in [2 * PIECE, 3 * PIECE, 3 * PIECE + 1, SIZE - 1] {
        changed_after(
            (3 * PIECE) as u64,
            |from| cut(from, length as u64),
            |to, summary, what| {
                // What had been copied before stays.
                let expected = &pattern(SIZE)[..length.max(3 * PIECE)];
                assert_same(&to.read("to"), expected, what);
                assert_eq!(summary.bytes, expected.len() as u64, "{what}");
                assert!(summary.changed, "{what}");
            },
        );
    }
    changed_after(
        PIECE as u64,
        |from| cut(from, 0),
        |to, summary, what| {
            assert_same(&to.read("to"), &pattern(PIECE), what);
            assert!(summary.changed, "{what}");
        },
    );
}

#[test]
fn a_write_into_it_shows_in_its_times() {
    changed_after(
        PIECE as u64,
        |from| {
            let file = from.open_to_write("from");
            rustix::io::pwrite(&file, b"x", 0).unwrap();
            // As a clock of any grain would show it.
            let later = SystemTime::now() + Duration::from_secs(1);
            file.set_modified(later).unwrap();
        },
        |to, summary, what| {
            assert_same(&to.read("to"), &pattern(SIZE), what);
            assert!(summary.changed, "{what}");
        },
    );
}

// An empty file makes no promise of its end, and its growth is a change all the same.
#[test]
fn an_empty_file_that_grows_has_changed() {
    let place = Place::disk();
    place.write("from", "");
    let options = in_pieces(Mechanism::ReadWrite, PIECE);
    let request = request(place.source("from"), place.destination("to"), &options);
    let mut transfer = Transfer::new(fresh(), request);
    let mut opened = false;
    let summary = done(drive(&mut transfer, |_| {
        if !opened {
            opened = true;
            append(&place, &other(10));
        }
    }));
    assert_same(&place.read("to"), &other(10), "to");
    assert!(summary.changed);
}

// https://github.com/nodejs/node/issues/50437 and the like: each read of less than was asked.
#[test]
fn node_50437_a_budget_of_a_byte_makes_a_copy_of_many_steps() {
    for mechanism in crate::support::byte_movers() {
        let place = Place::disk();
        place.write("from", pattern(1000));
        let options = in_pieces(mechanism, PIECE);
        let request = request(place.source("from"), place.destination("to"), &options);
        let mut transfer = Transfer::new(fresh(), request);
        let mut moved = Vec::new();
        loop {
            match transfer.step(1) {
                Step::Moved(0) => {}
                Step::Moved(bytes) => moved.push(bytes),
                Step::Done(summary) => {
                    assert_eq!(summary.bytes, 1000);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(moved, [1; 1000], "{mechanism}");
        assert_same(&place.read("to"), &pattern(1000), "to");
        // The outcome is repeated.
        assert!(matches!(transfer.step(1), Step::Done(_)));
        assert!(matches!(transfer.cancel(), Step::Done(_)));
    }
}
