//! Descriptors that append: written at the end, never cut, left as they were.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use copyist_engine::{
    Existing, Handle, Mechanism, Options, Source, Step, Transfer, Tuning, Window,
};
use rustix::fs::OFlags;

use crate::support::{
    Place, assert_same, copy, done, drive, every_way, fallback, file, fresh, in_pieces, other,
    pairs, pattern, request,
};

fn appending(place: &Place, name: &str) -> Handle {
    let file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(place.path(name))
        .unwrap();
    Arc::new(file)
}

fn window(source_offset: u64, length: Option<u64>, destination_offset: u64) -> Window {
    Window {
        source_offset,
        length,
        destination_offset,
    }
}

/// What a window has of these bytes.
fn part(bytes: &[u8], window: Window) -> &[u8] {
    let index = |offset: u64| usize::try_from(offset).map_or(bytes.len(), |i| i.min(bytes.len()));
    let end = window
        .length
        .map_or(bytes.len(), |length| index(window.source_offset + length));
    &bytes[index(window.source_offset)..end]
}

// https://github.com/golang/go/issues/60181, https://github.com/rust-lang/rust/issues/82410,
// https://github.com/php/php-src/issues/9779: what copy_file_range (EBADF) and sendfile (EINVAL)
// say to such a descriptor came out, or its bytes were written elsewhere.
#[test]
fn go_60181_rust_82410_a_descriptor_that_appends_is_written_at_its_end() {
    let new = pattern(300_000);
    for (from, to, _) in pairs() {
        from.write("from", &new);
        for (way, tuning) in every_way() {
            if tuning.only.is_some_and(|only| only != Mechanism::ReadWrite) {
                continue;
            }
            for window in [
                None,
                Some(window(0, None, 0)),
                Some(window(1000, Some(5000), 10)),
                Some(window(299_000, Some(5000), 1 << 40)),
                Some(window(300_000, None, 0)),
                Some(window(0, Some(0), 0)),
            ] {
                // Shorter than what comes, longer, and nothing.
                for old in [other(5_000), other(500_000), Vec::new()] {
                    to.write("to", &old);
                    let mut destination = appending(&to, "to");
                    destination.seek(SeekFrom::Start(42)).unwrap();
                    let mut source = from.open("from");
                    source.seek(SeekFrom::Start(7)).unwrap();
                    let flags = rustix::fs::fcntl_getfl(&destination).unwrap();
                    let options = Options {
                        window,
                        tuning,
                        ..Options::default()
                    };
                    let what = format!(
                        "{window:?} after {} bytes by {way}, {} to {}",
                        old.len(),
                        from.name,
                        to.name
                    );
                    let summary = copy(Source::File(source.clone()), file(&destination), &options)
                        .expect(&what);
                    let part = match window {
                        Some(window) => part(&new, window),
                        None => &new[..],
                    };
                    assert_same(&to.read("to"), &[&old, part].concat(), &what);
                    assert_eq!(summary.bytes, part.len() as u64, "{what}");
                    assert_eq!(
                        rustix::fs::fcntl_getfl(&destination).unwrap(),
                        flags,
                        "{what}"
                    );
                    assert_eq!(source.stream_position().unwrap(), 7, "{what}");
                    assert_eq!(destination.stream_position().unwrap(), 42, "{what}");
                }
            }
        }
    }
}

// https://github.com/golang/go/issues/60181, https://github.com/golang/go/issues/79660: the flag is set
// while the copy runs.
#[test]
fn go_60181_a_descriptor_that_appends_from_now_on_gets_each_byte_once() {
    let new = pattern(100_000);
    for (from, to, _) in pairs() {
        from.write("from", &new);
        for tuning in [Tuning::default(), fallback()] {
            to.write("to", "");
            let destination = to.open_to_write("to");
            let options = Options {
                tuning: Tuning {
                    call_size: std::num::NonZeroUsize::new(4096),
                    ..tuning
                },
                // All of it, but in pieces also where it could be cloned.
                window: Some(Window {
                    source_offset: 0,
                    length: None,
                    destination_offset: 0,
                }),
                ..Options::default()
            };
            let request = request(from.source("from"), file(&destination), &options);
            let mut transfer = Transfer::new(fresh(), request);
            let mut set = false;
            let summary = done(drive(&mut transfer, |step| {
                if !set && matches!(step, Step::Moved(1..)) {
                    let flags = rustix::fs::fcntl_getfl(&destination).unwrap();
                    rustix::fs::fcntl_setfl(&destination, flags | OFlags::APPEND).unwrap();
                    set = true;
                }
            }));
            // A clone is over before anybody can set it.
            assert!(set || summary.method == Some(Mechanism::Clone));
            assert_eq!(summary.bytes, 100_000);
            assert_same(&to.read("to"), &new, &format!("{tuning:?}"));
        }
    }
}

#[test]
fn skip_and_update_hold_for_it_too() {
    let place = Place::disk();
    place.write("from", pattern(100));
    place.write("to", other(100));
    let options = |existing| Options {
        existing,
        ..in_pieces(Mechanism::ReadWrite, 10)
    };
    for existing in [Existing::Skip, Existing::Update] {
        // The destination was written last.
        let destination = file(&appending(&place, "to"));
        let summary = copy(place.source("from"), destination, &options(existing)).unwrap();
        assert_eq!(summary.skipped, 1, "{existing:?}");
        assert_same(&place.read("to"), &other(100), "to");
    }
}

// A file may be appended to itself where the part has an end: what is written comes after it.
#[test]
fn a_part_of_a_file_is_appended_to_it_and_the_whole_is_not() {
    for place in crate::support::places() {
        let old = pattern(50_000);
        place.write("file", &old);
        let both = appending(&place, "file");
        let run = |window| {
            let options = Options {
                window,
                ..in_pieces(Mechanism::ReadWrite, 4096)
            };
            copy(Source::File(both.clone()), file(&both), &options)
        };
        for whole in [
            None,
            Some(window(0, None, 0)),
            Some(window(10, None, 1 << 40)),
        ] {
            let error = run(whole).unwrap_err();
            assert_eq!(error.cause, copyist_engine::Cause::SameFile, "{whole:?}");
            assert_same(&place.read("file"), &old, "file");
        }
        // The destination's offset is ignored, whatever it is.
        for destination_offset in [0, 5, 1 << 40] {
            place.write("file", &old);
            let window = window(40_000, Some(1 << 30), destination_offset);
            let summary = run(Some(window)).unwrap();
            assert_eq!(summary.bytes, 10_000);
            assert_same(
                &place.read("file"),
                &[&old[..], &old[40_000..]].concat(),
                "file",
            );
        }
    }
}
