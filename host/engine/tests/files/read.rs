//! Whole-file reads.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use copyist_engine::{
    Cancel, Cause, Errno, Error, Limit, Limits, Quota, ReadOptions, ReadRequest, Side, Source,
    Window,
};

use crate::support::hooked::{Call, hooked};
use crate::support::{Place, assert_same, follow, fresh, handle, other, pattern, places, skipped};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const SIZES: [usize; 18] = [
    0,
    1,
    511,
    512,
    513,
    4095,
    4096,
    4097,
    64 * KIB - 1,
    64 * KIB,
    64 * KIB + 1,
    128 * KIB - 1,
    128 * KIB + 1,
    MIB - 1,
    MIB,
    MIB + 1,
    8 * MIB - 1,
    8 * MIB + 5,
];

fn read(source: Source, options: ReadOptions) -> Result<Vec<u8>, Error> {
    copyist_engine::read(&ReadRequest { source, options }, &Cancel::new())
}

fn limited(limit: u64) -> ReadOptions {
    ReadOptions {
        limit: Some(limit),
        ..ReadOptions::default()
    }
}

fn windowed(source_offset: u64, length: Option<u64>) -> ReadOptions {
    ReadOptions {
        window: Some(Window {
            source_offset,
            length,
            // Has no meaning here.
            destination_offset: u64::MAX,
        }),
        ..ReadOptions::default()
    }
}

#[test]
fn every_size_is_read_whole_and_a_byte_too_many_is_an_error() {
    for place in places() {
        for size in SIZES {
            let bytes = pattern(size);
            place.write("from", &bytes);
            let open = place.open("from");
            for source in [place.source("from"), Source::File(open.clone())] {
                let what = format!("{size} bytes, {source:?}");
                let size = size as u64;
                for options in [ReadOptions::default(), limited(size), limited(u64::MAX)] {
                    let answer = read(source.clone(), options).expect(&what);
                    assert_same(&answer, &bytes, &what);
                    assert!(answer.capacity() <= bytes.len() + 2 * 64 * KIB, "{what}");
                }
                if size > 0 {
                    for limit in [0, size / 2, size - 1] {
                        let error = read(source.clone(), limited(limit)).expect_err(&what);
                        assert_eq!(error.cause, Cause::Limit(Limit::ReadSize), "{what}");
                    }
                }
                // A copy's limits hold for a read as well.
                let quota = Arc::new(Quota::new(size));
                let limits = Limits {
                    bytes: Some(size),
                    total: Some(quota.clone()),
                };
                let options = ReadOptions {
                    limits,
                    ..ReadOptions::default()
                };
                assert_same(&read(source, options).expect(&what), &bytes, &what);
                assert_eq!(quota.left(), 0, "{what}");
            }
        }
    }
}

#[test]
fn a_part_is_read_to_its_end_or_the_files() {
    let last = i64::MAX as u64;
    for place in places() {
        let size = 300_000_u64;
        let bytes = pattern(300_000);
        place.write("from", &bytes);
        for offset in [
            0,
            1,
            4096,
            123_457,
            size - 1,
            size,
            size + 1,
            1 << 40,
            last - 1,
            last,
        ] {
            for length in [
                None,
                Some(0),
                Some(1),
                Some(5000),
                Some(size),
                Some(last - offset),
            ] {
                if length.is_some_and(|length| offset + length > last) {
                    continue;
                }
                let what = format!("{length:?} from {offset}");
                let start = usize::try_from(offset.min(size)).unwrap();
                let length_there = length.unwrap_or(size).min(size - offset.min(size));
                let end = start + usize::try_from(length_there).unwrap();
                let expected = &bytes[start..end];
                for source in [place.source("from"), Source::File(place.open("from"))] {
                    let answer = read(source.clone(), windowed(offset, length)).expect(&what);
                    assert_same(&answer, expected, &what);
                    // The limit is on what is read, not on the file.
                    let options = ReadOptions {
                        limit: Some(expected.len() as u64),
                        ..windowed(offset, length)
                    };
                    assert_same(
                        &read(source.clone(), options).expect(&what),
                        expected,
                        &what,
                    );
                    if let Some(less) = expected.len().checked_sub(1) {
                        let options = ReadOptions {
                            limit: Some(less as u64),
                            ..windowed(offset, length)
                        };
                        let error = read(source, options).expect_err(&what);
                        assert_eq!(error.cause, Cause::Limit(Limit::ReadSize), "{what}");
                    }
                }
            }
        }
        for (offset, length) in [
            (u64::MAX, None),
            (last + 1, None),
            (last, Some(1)),
            (1, Some(u64::MAX)),
        ] {
            let error = read(place.source("from"), windowed(offset, length)).unwrap_err();
            assert_eq!(error.cause, Cause::Io(Side::Source, Errno::OVERFLOW));
        }
    }
}

#[test]
fn what_is_no_file_is_not_read() {
    let place = Place::disk();
    std::fs::create_dir(place.path("directory")).unwrap();
    std::os::unix::fs::symlink("directory", place.path("link")).unwrap();
    let cause = |source| read(source, ReadOptions::default()).unwrap_err().cause;
    let io = |errno| Cause::Io(Side::Source, errno);
    assert_eq!(cause(place.source("missing")), io(Errno::NOENT));
    assert_eq!(cause(place.source("directory")), io(Errno::ISDIR));
    assert_eq!(
        cause(Source::File(place.open("directory"))),
        io(Errno::ISDIR)
    );
    assert_eq!(cause(place.source("link")), io(Errno::LOOP));
    assert_eq!(
        cause(Source::Path(follow(&place.base, "link"))),
        io(Errno::ISDIR)
    );
    let write_only = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(place.path("file"))
        .unwrap();
    assert_eq!(cause(Source::File(handle(write_only))), io(Errno::BADF));
}

/// Reads a file that is changed before its `nth` read call.
fn changed_before(
    nth: usize,
    options: ReadOptions,
    first: &[u8],
    change: impl Fn(&Place) + Send + Sync + 'static,
) -> Result<Vec<u8>, Error> {
    let place = Arc::new(Place::disk());
    place.write("from", first);
    let request = ReadRequest {
        source: place.source("from"),
        options,
    };
    let calls = AtomicUsize::new(0);
    let environment = hooked(move |call| {
        if matches!(call, Call::Read) && calls.fetch_add(1, Ordering::Relaxed) == nth {
            change(&place);
        }
        None
    });
    copyist_engine::read_in(&environment, &request, &Cancel::new())
}

#[test]
fn a_file_that_changes_meanwhile_is_read_to_its_end() {
    for size in [0, 1, 4096, 64 * KIB, 300_000] {
        for grown in [size + 1, size + 64 * KIB, 3 * size + 200_000] {
            // An empty file is read once.
            for nth in if size == 0 { 0..1 } else { 0..2 } {
                let answer = changed_before(nth, ReadOptions::default(), &pattern(size), {
                    move |place| place.write("from", pattern(grown))
                });
                let what = format!("from {size} to {grown} before read {nth}");
                assert_same(&answer.unwrap(), &pattern(grown), &what);
                // Up to its limit, whenever it grows.
                let answer = changed_before(nth, limited(size as u64), &pattern(size), {
                    move |place| place.write("from", pattern(grown))
                });
                assert_eq!(
                    answer.unwrap_err().cause,
                    Cause::Limit(Limit::ReadSize),
                    "{what}"
                );
            }
        }
        for less in [0, size / 2, size.saturating_sub(1)] {
            let answer = changed_before(0, ReadOptions::default(), &pattern(size), {
                move |place| place.write("from", pattern(less))
            });
            assert_same(&answer.unwrap(), &pattern(less), "it shrank before");
            let answer = changed_before(1, ReadOptions::default(), &pattern(size), {
                move |place| place.write("from", other(less))
            });
            assert_same(&answer.unwrap(), &pattern(size), "it shrank too late");
        }
    }
}

// Three calls between open and close, whatever the size: the look at it, one read of all of it,
// one that sees the end.
#[test]
fn a_file_of_any_size_takes_two_reads() {
    let place = Place::disk();
    for size in SIZES {
        place.write("from", pattern(size));
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = reads.clone();
        let environment = hooked(move |call| {
            counted.fetch_add(usize::from(matches!(call, Call::Read)), Ordering::Relaxed);
            None
        });
        let request = ReadRequest {
            source: place.source("from"),
            options: ReadOptions::default(),
        };
        let bytes = copyist_engine::read_in(&environment, &request, &Cancel::new()).unwrap();
        assert_same(&bytes, &pattern(size), "read");
        let expected = if size == 0 { 1 } else { 2 };
        assert_eq!(reads.load(Ordering::Relaxed), expected, "{size}");
    }
}

// No file is so large; a sparse one says so, and no address space has room for it.
#[test]
fn a_file_for_which_there_is_no_memory_is_an_error_and_no_abort() {
    for place in places() {
        for size in [1_u64 << 60, 1 << 50] {
            let file = File::create(place.path("from")).unwrap();
            if file.set_len(size).is_err() {
                skipped(&format!("a file of {size} bytes on {}", place.name));
                continue;
            }
            for with_a_byte in [false, true] {
                if with_a_byte {
                    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).unwrap();
                }
                let error = read(place.source("from"), ReadOptions::default()).unwrap_err();
                assert_eq!(error.cause, Cause::Io(Side::Source, Errno::NOMEM), "{size}");
                // A limit is met before the memory is asked for.
                let error = read(place.source("from"), limited(1 << 20)).unwrap_err();
                assert_eq!(error.cause, Cause::Limit(Limit::ReadSize), "{size}");
                for limits in [
                    Limits {
                        bytes: Some(1 << 20),
                        total: None,
                    },
                    Limits {
                        bytes: None,
                        total: Some(Arc::new(Quota::new(1 << 20))),
                    },
                ] {
                    let limit = match limits.bytes {
                        Some(_) => Limit::Bytes,
                        None => Limit::TotalBytes,
                    };
                    let options = ReadOptions {
                        limits,
                        ..ReadOptions::default()
                    };
                    let error = read(place.source("from"), options).unwrap_err();
                    assert_eq!(error.cause, Cause::Limit(limit), "{size}");
                }
                // So is a part.
                let part = read(place.source("from"), windowed(size - 10, None)).unwrap();
                assert_eq!(part, [0; 10]);
            }
            break;
        }
    }
}

#[test]
fn a_cancelled_read_reads_nothing() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    let cancel = Cancel::new();
    cancel.cancel();
    let request = ReadRequest {
        source: place.source("from"),
        options: ReadOptions::default(),
    };
    let error = copyist_engine::read_in(&fresh(), &request, &cancel).unwrap_err();
    assert_eq!(error.cause, Cause::Cancelled);
    assert_eq!(error.done.consumed, 0);
}
