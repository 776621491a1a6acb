//! Part of a source, to a place in the destination.

use std::io::{Seek, SeekFrom};

use copyist_engine::{
    Cause, Destination, Errno, Mechanism, Options, Side, Source, Tuning, Unsupported, Window,
};

use crate::support::{
    Place, WRITE_MODES, assert_same, byte_movers, copy, fallback, file, only, other, pairs,
    pattern, refusal,
};

const LAST: u64 = i64::MAX as u64;

fn window(source_offset: u64, length: Option<u64>, destination_offset: u64) -> Window {
    Window {
        source_offset,
        length,
        destination_offset,
    }
}

fn with(window: Window, tuning: Tuning) -> Options {
    Options {
        window: Some(window),
        tuning,
        ..Options::default()
    }
}

/// What a copy of a window makes of a file.
fn expected(old: &[u8], source: &[u8], window: Window) -> Vec<u8> {
    let index = |offset: u64| {
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(source.len())
    };
    let start = index(window.source_offset);
    let end = window.length.map_or(source.len(), |length| {
        index(window.source_offset.saturating_add(length))
    });
    let part = &source[start..end];
    let mut new = old.to_vec();
    if !part.is_empty() {
        let place = usize::try_from(window.destination_offset).unwrap();
        if new.len() < place + part.len() {
            new.resize(place + part.len(), 0);
        }
        new[place..place + part.len()].copy_from_slice(part);
    }
    new
}

const SIZE: u64 = 70_001;

/// Offsets and lengths around everything: ends, blocks, nothing.
fn windows() -> Vec<Window> {
    let mut windows = Vec::new();
    for source_offset in [0, 1, 4095, 4096, SIZE - 1, SIZE, SIZE + 1, 1 << 40] {
        for length in [None, Some(0), Some(1), Some(4097), Some(SIZE)] {
            for destination_offset in [0, 1, 4096, 100_003] {
                windows.push(window(source_offset, length, destination_offset));
            }
        }
    }
    windows
}

#[test]
fn every_mechanism_copies_the_part_and_nothing_else() {
    let source = pattern(usize::try_from(SIZE).unwrap());
    // Nothing, a shorter file, one that is longer than any of the parts reaches.
    let old = [None, Some(other(1000)), Some(other(200_000))];
    for (from, to, same_device) in pairs() {
        from.write("from", &source);
        let from_file = from.open("from");
        for tuning in byte_movers()
            .map(only)
            .into_iter()
            .chain([Tuning::default(), fallback()])
        {
            if tuning.only == Some(Mechanism::CopyRange) && !same_device {
                continue;
            }
            for window in windows() {
                for old in &old {
                    let to_descriptor = old.is_some() && tuning.only != Some(Mechanism::SendFile);
                    if let Some(old) = old {
                        to.write("to", old);
                    }
                    let (source_end, destination): (Source, Destination) = if to_descriptor {
                        (
                            Source::File(from_file.clone()),
                            file(&to.open_to_write("to")),
                        )
                    } else {
                        (from.source("from"), to.destination("to"))
                    };
                    let what = format!(
                        "{window:?} over {:?} by {tuning:?}, {} to {}",
                        old.as_ref().map(Vec::len),
                        from.name,
                        to.name
                    );
                    let old = old.as_deref().unwrap_or_default();
                    let summary =
                        copy(source_end, destination, &with(window, tuning)).expect(&what);
                    let new = expected(old, &source, window);
                    assert_same(&to.read("to"), &new, &what);
                    let part = expected(
                        &[],
                        &source,
                        Window {
                            destination_offset: 0,
                            ..window
                        },
                    );
                    assert_eq!(summary.bytes, part.len() as u64, "{what}");
                    assert!(!summary.changed, "{what}");
                    std::fs::remove_file(to.path("to")).unwrap();
                }
            }
        }
    }
}

#[test]
fn an_end_that_no_offset_reaches_is_an_overflow() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    place.write("old", other(1000));
    let mut bad = vec![
        window(u64::MAX, None, 0),
        window(0, None, u64::MAX),
        window(0, Some(u64::MAX), 0),
        window(1, Some(LAST), 0),
        window(0, Some(LAST), 1),
        window(LAST, Some(1), 0),
        window(0, Some(1), LAST),
        window(LAST + 1, None, 0),
        window(0, None, LAST + 1),
        window(u64::MAX, Some(u64::MAX), u64::MAX),
    ];
    // The source has more than what is left before the last offset.
    bad.extend([window(0, None, LAST), window(0, None, LAST - 999)]);
    bad.push(window(500, None, LAST - 499));
    for window in bad {
        let options = with(window, Tuning::default());
        for destination in [
            place.destination("new"),
            place.destination("old"),
            file(&place.open_to_write("old")),
        ] {
            let cause = refusal(place.source("from"), destination, &options);
            assert!(
                matches!(cause, Cause::Io(_, Errno::OVERFLOW)),
                "{window:?}: {cause:?}"
            );
            place.assert_names(&["from", "old"], &format!("{window:?}"));
            assert_same(&place.read("old"), &other(1000), "old");
        }
    }
}

#[test]
fn beyond_the_end_nothing_is_copied_however_far() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    for source_offset in [1000, 1001, 1 << 62, LAST - 1, LAST] {
        for tuning in [Tuning::default(), fallback()] {
            for destination_offset in [0, 5000, LAST] {
                let window = window(source_offset, None, destination_offset);
                let summary = copy(
                    place.source("from"),
                    place.destination("to"),
                    &with(window, tuning),
                )
                .unwrap_or_else(|error| panic!("{window:?}: {error}"));
                assert_eq!(summary.bytes, 0, "{window:?}");
                assert_eq!(place.read("to"), b"", "{window:?}");
            }
        }
    }
    // A length that reaches further than any offset's end is no overflow of the reads.
    let window = window(990, Some(LAST - 990), 0);
    let summary = copy(
        place.source("from"),
        place.destination("to"),
        &with(window, fallback()),
    )
    .unwrap();
    assert_eq!(summary.bytes, 10);
    assert_same(&place.read("to"), &pattern(1000)[990..], "to");
}

// https://github.com/libuv/libuv/issues/3056, https://github.com/libuv/libuv/pull/3058: the copy began
// at the position of the descriptor, not at the offset that was asked for.
#[test]
fn libuv_3056_positions_are_neither_used_nor_moved() {
    for (from, to, _) in pairs() {
        from.write("from", pattern(300_000));
        for options in [
            with(window(1000, Some(500), 300), Tuning::default()),
            with(window(1000, Some(500), 300), fallback()),
            Options::default(),
        ] {
            to.write("to", other(300_000));
            let (mut source, mut destination) = (from.open("from"), to.open_to_write("to"));
            let positions = (SeekFrom::Start(42), SeekFrom::Start(4242));
            source.seek(positions.0).unwrap();
            destination.seek(positions.1).unwrap();
            copy(Source::File(source.clone()), file(&destination), &options).unwrap();
            assert_eq!(source.stream_position().unwrap(), 42);
            assert_eq!(destination.stream_position().unwrap(), 4242);
            let new = match options.window {
                Some(window) => expected(&other(300_000), &pattern(300_000), window),
                None => pattern(300_000),
            };
            assert_same(&to.read("to"), &new, &format!("{options:?}"));
        }
    }
}

#[test]
fn a_part_of_a_file_is_never_a_clone_and_replaces_nothing() {
    let place = Place::disk();
    place.write("from", pattern(8192));
    place.write("old", other(8192));
    let options = Options {
        reflink: copyist_engine::Reflink::Always,
        ..with(window(0, None, 0), Tuning::default())
    };
    for write_mode in WRITE_MODES {
        let options = Options {
            write_mode,
            ..options.clone()
        };
        assert_eq!(
            refusal(place.source("from"), place.destination("new"), &options),
            Cause::Unsupported(Unsupported::Clone)
        );
    }
    place.assert_names(&["from", "old"], "nothing was made");
}

// One file as both ends.

/// Both ends by path, both by descriptor, and both by one and the same descriptor.
fn same_file(place: &Place, name: &str) -> [(Source, Destination); 3] {
    let one = place.open_to_write(name);
    [
        (place.source(name), place.destination(name)),
        (
            Source::File(place.open(name)),
            file(&place.open_to_write(name)),
        ),
        (Source::File(one.clone()), file(&one)),
    ]
}

// https://github.com/quodlibet/mutagen/issues/264, https://github.com/openzfs/zfs/issues/11150,
// https://github.com/rcore-os/tgoskits/pull/211: parts of one file that overlap gave garbage.
#[test]
fn mutagen_264_parts_of_one_file_are_copied_where_disjoint_and_refused_where_not() {
    let old = pattern(100_000);
    for place in crate::support::places() {
        for tuning in byte_movers().map(only).into_iter().chain([fallback()]) {
            for window in [
                window(0, Some(4096), 4096),
                window(4096, Some(4096), 0),
                window(0, Some(50_000), 50_000),
                window(50_000, Some(50_000), 0),
                window(1, Some(1), 2),
                window(0, Some(10_000), 200_000),
                window(99_000, Some(1000), 100_000),
                // Nothing, and what lies beyond the end.
                window(7, Some(0), 7),
                window(200_000, Some(10_000), 0),
            ] {
                place.write("file", &old);
                for (source, destination) in same_file(&place, "file") {
                    // sendfile needs a destination of the copy's own.
                    if tuning.only == Some(Mechanism::SendFile)
                        && matches!(destination, Destination::File(_))
                    {
                        continue;
                    }
                    place.write("file", &old);
                    copy(source, destination, &with(window, tuning)).unwrap();
                    let what = format!("{window:?} by {tuning:?}");
                    assert_same(&place.read("file"), &expected(&old, &old, window), &what);
                }
            }
        }
        for bad in [
            window(0, Some(4097), 4096),
            window(4096, Some(4097), 0),
            window(0, Some(1), 0),
            window(0, Some(100_000), 4096),
            window(4096, Some(95_000), 0),
            // To the end of the file, wherever that is by then.
            window(0, None, 50_000),
            window(50_000, None, 0),
            window(0, None, 200_000),
        ] {
            place.write("file", &old);
            for (source, destination) in same_file(&place, "file") {
                assert_eq!(
                    refusal(source, destination, &with(bad, Tuning::default())),
                    Cause::SameFile,
                    "{bad:?}"
                );
                assert_same(&place.read("file"), &old, &format!("{bad:?}"));
            }
        }
    }
}

// The file grows while it is read: its end is where it was before.
#[test]
fn a_part_of_one_file_ends_where_the_file_ended_before() {
    let old = pattern(50_000);
    for place in crate::support::places() {
        for tuning in [Tuning::default(), fallback()] {
            for window in [
                window(0, Some(100_000), 100_000),
                window(10_000, Some(100_000), 200_000),
                window(0, Some(50_001), 50_001),
            ] {
                place.write("file", &old);
                for (source, destination) in same_file(&place, "file") {
                    place.write("file", &old);
                    let in_pieces = Tuning {
                        call_size: std::num::NonZeroUsize::new(4096),
                        ..tuning
                    };
                    let summary = copy(source, destination, &with(window, in_pieces)).unwrap();
                    let what = format!("{window:?} by {tuning:?}");
                    assert_eq!(summary.bytes, 50_000 - window.source_offset, "{what}");
                    assert_same(&place.read("file"), &expected(&old, &old, window), &what);
                }
            }
        }
    }
}

#[test]
fn the_side_of_an_overflow_is_the_end_that_it_is_about() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    for (window, side) in [
        (window(LAST + 1, None, 0), Side::Source),
        (window(0, None, LAST + 1), Side::Destination),
        (window(0, Some(1), LAST), Side::Destination),
    ] {
        assert_eq!(
            refusal(
                place.source("from"),
                place.destination("to"),
                &with(window, Tuning::default())
            ),
            Cause::Io(side, Errno::OVERFLOW),
            "{window:?}"
        );
    }
}
