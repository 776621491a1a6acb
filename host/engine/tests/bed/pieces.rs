//! Clones in pieces, on file systems that share storage.

use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt};

use copyist_bed::shares_storage;
use copyist_engine::{Mechanism, Options, Reflink, Tuning, Window};

use super::clones::{LENGTH, sharing};
use super::support::{WRITE_MODES, assert_same, by, copy, old, pattern};

/// A whole number of blocks.
const PIECE: usize = 64 << 10;

fn in_pieces(options: Options) -> Options {
    Options {
        bounded_calls: true,
        tuning: Tuning {
            call_size: NonZeroUsize::new(PIECE),
            ..options.tuning
        },
        ..options
    }
}

#[test]
fn all_of_a_file_is_shared_whatever_stood_there() {
    for place in sharing() {
        for write_mode in WRITE_MODES {
            for reflink in [Reflink::Auto, Reflink::Always] {
                for there in [None, Some(1000), Some(3_000_000)] {
                    let options = in_pieces(Options {
                        reflink,
                        ..by(write_mode)
                    });
                    let what = format!("{}, {write_mode:?}, {reflink:?}, {there:?}", place.name);
                    place.write("it", pattern(LENGTH));
                    match there {
                        Some(length) => place.write("to", old(length)),
                        None => drop(std::fs::remove_file(place.path("to"))),
                    }
                    let done = copy(place.source("it"), place.destination("to"), &options).unwrap();
                    assert_same(&place.read("to"), &pattern(LENGTH), &what);
                    assert_eq!(done.method, Some(Mechanism::Clone), "{what}: {done:?}");
                    let all = LENGTH as u64;
                    assert_eq!((done.bytes, done.shared), (all, all), "{what}");
                    assert!(done.refused.is_empty(), "{what}: {done:?}");
                    assert!(shares_storage(&place.open("to")).unwrap(), "{what}");
                }
            }
        }
    }
}

#[test]
fn holes_stay_holes_also_the_last() {
    for place in sharing() {
        let file = std::fs::File::create(place.path("it")).unwrap();
        file.write_all_at(&pattern(PIECE), 10 * PIECE as u64)
            .unwrap();
        file.set_len(40 * PIECE as u64 + 7).unwrap();
        file.sync_all().unwrap();
        let options = in_pieces(Options::default());
        let done = copy(place.source("it"), place.destination("to"), &options).unwrap();
        assert_eq!(done.method, Some(Mechanism::Clone), "{}", place.name);
        assert_same(&place.read("to"), &place.read("it"), &place.name);
        let blocks = |name| place.open(name).metadata().unwrap().blocks();
        assert_eq!(blocks("to"), blocks("it"), "{}", place.name);
    }
}

/// Whole blocks of a window are shared, and what is left is copied.
#[test]
fn a_window_shares_its_blocks() {
    for place in sharing() {
        let block = 4096;
        // Where it begins in the source and the destination, how long it is, what of it is shared.
        let table = [
            (0, 0, Some(10 * block), 10 * block),
            (block, 5 * block, Some(10 * block + 100), 10 * block),
            (
                3 * block,
                0,
                None,
                (LENGTH as u64 - 3 * block) / block * block,
            ),
            (block + 1, 0, Some(10 * block), 0),
            (block, 1, Some(10 * block), 0),
        ];
        for (source_offset, destination_offset, length, shared) in table {
            let what = format!("{}, {source_offset}, {destination_offset}", place.name);
            place.write("it", pattern(LENGTH));
            place.write("to", old(2 * LENGTH));
            let options = in_pieces(Options {
                window: Some(Window {
                    source_offset,
                    length,
                    destination_offset,
                }),
                ..Options::default()
            });
            let done = copy(place.source("it"), place.destination("to"), &options).unwrap();
            let from = usize::try_from(source_offset).unwrap();
            let to = usize::try_from(destination_offset).unwrap();
            let until = length.map_or(LENGTH, |length| usize::try_from(length).unwrap());
            let until = until.min(LENGTH - from);
            let mut wanted = old(2 * LENGTH);
            wanted[to..to + until].copy_from_slice(&pattern(LENGTH)[from..from + until]);
            assert_same(&place.read("to"), &wanted, &what);
            assert_eq!(done.shared, shared, "{what}: {done:?}");
        }
    }
}
