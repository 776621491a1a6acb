//! How much may be copied: by one copy, and by all that share a quota.

use std::fs;
use std::sync::Arc;

use copyist_engine::{
    Cancel, Cause, Error, Limit, Limits, Mechanism, Options, Quota, ReadOptions, ReadRequest,
    Source, Summary, Tuning, Window, WriteMode,
};

use crate::support::{
    Place, WRITE_MODES, assert_same, byte_movers, copy, every_way, file, in_pieces, only, other,
    pairs, pattern, places, skipped,
};

fn bytes(limit: u64) -> Limits {
    Limits {
        bytes: Some(limit),
        total: None,
    }
}

fn total(quota: &Arc<Quota>) -> Limits {
    Limits {
        bytes: None,
        total: Some(quota.clone()),
    }
}

#[test]
fn a_file_of_just_the_limit_is_copied_and_one_of_a_byte_more_makes_nothing() {
    let size = 300_000;
    for (from, to, _) in pairs() {
        from.write("from", pattern(size));
        to.write("old", other(500_000));
        for (way, tuning) in every_way() {
            let options = |limits| Options {
                tuning,
                limits,
                ..Options::default()
            };
            for limits in [
                bytes(size as u64),
                total(&Arc::new(Quota::new(size as u64))),
            ] {
                let quota = limits.total.clone();
                match copy(from.source("from"), to.destination("to"), &options(limits)) {
                    Ok(summary) => {
                        assert_eq!(summary.bytes, size as u64, "{way}");
                        assert!(quota.is_none_or(|quota| quota.left() == 0), "{way}");
                        assert_same(&to.read("to"), &pattern(size), &way);
                        fs::remove_file(to.path("to")).unwrap();
                    }
                    Err(error) => {
                        assert!(tuning.only.is_some(), "{way}: {error}");
                        let full = |quota: Arc<Quota>| quota.left() == size as u64;
                        assert!(quota.is_none_or(full), "{way}");
                    }
                }
            }
            let less = size as u64 - 1;
            for (limits, limit) in [
                (bytes(less), Limit::Bytes),
                (total(&Arc::new(Quota::new(less))), Limit::TotalBytes),
                (bytes(0), Limit::Bytes),
                (total(&Arc::new(Quota::new(0))), Limit::TotalBytes),
            ] {
                let quota = limits.total.clone();
                let left = quota.as_ref().map(|quota| quota.left());
                for write_mode in WRITE_MODES {
                    let options = Options {
                        write_mode,
                        ..options(limits.clone())
                    };
                    for path in ["to", "old"] {
                        let error = copy(from.source("from"), to.destination(path), &options)
                            .expect_err(&way);
                        assert_eq!(error.cause, Cause::Limit(limit), "{way}");
                        assert_eq!(error.done.bytes, 0, "{way}");
                    }
                }
                assert_eq!(quota.map(|quota| quota.left()), left, "{way}");
                to.assert_names(&["old"], &way);
                assert_same(&to.read("old"), &other(500_000), &way);
            }
        }
    }
}

#[test]
fn an_empty_file_fits_every_limit() {
    for (from, to, _) in pairs() {
        from.write("from", "");
        for limits in [bytes(0), total(&Arc::new(Quota::new(0)))] {
            for write_mode in WRITE_MODES {
                let options = Options {
                    limits: limits.clone(),
                    write_mode,
                    ..Options::default()
                };
                let summary = copy(from.source("from"), to.destination("to"), &options).unwrap();
                assert_eq!((summary.bytes, summary.files), (0, 1));
            }
        }
    }
}

#[test]
fn only_the_part_counts_that_is_copied() {
    let place = Place::disk();
    place.write("from", pattern(100_000));
    let window = |source_offset, length| {
        Some(Window {
            source_offset,
            length,
            destination_offset: 7,
        })
    };
    for mechanism in byte_movers() {
        for (window, size) in [
            (window(1000, Some(500)), 500),
            (window(99_900, Some(500)), 100),
            (window(99_900, None), 100),
            (window(200_000, None), 0),
        ] {
            let options = |limit| Options {
                window,
                limits: bytes(limit),
                tuning: only(mechanism),
                ..Options::default()
            };
            let run = |limit| {
                copy(
                    place.source("from"),
                    place.destination("to"),
                    &options(limit),
                )
            };
            assert_eq!(run(size).unwrap().bytes, size, "{mechanism}, {window:?}");
            fs::remove_file(place.path("to")).unwrap();
            if size > 0 {
                let error = run(size - 1).unwrap_err();
                assert_eq!(error.cause, Cause::Limit(Limit::Bytes), "{mechanism}");
                place.assert_names(&["from"], "nothing was made");
            }
        }
    }
}

#[test]
fn copies_that_share_a_quota_share_it() {
    let place = Place::disk();
    let size = 100_000_u64;
    place.write("from", pattern(100_000));
    for write_mode in WRITE_MODES {
        let quota = Arc::new(Quota::new(3 * size + 10));
        let run = |to: &str| -> Result<Summary, Error> {
            let options = Options {
                write_mode,
                limits: total(&quota),
                ..Options::default()
            };
            copy(place.source("from"), place.destination(to), &options)
        };
        // At once, from several threads; each of them has all of its bytes or none.
        let copied: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = ["1", "2", "3", "4", "5"]
                .map(|to| scope.spawn(|| run(to)))
                .into_iter()
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread.join().unwrap() {
                    Ok(summary) => {
                        assert_eq!(summary.bytes, size);
                        1
                    }
                    Err(error) => {
                        assert_eq!(error.cause, Cause::Limit(Limit::TotalBytes));
                        0
                    }
                })
                .sum()
        });
        // What a copy that failed had drawn counts as used as far as it was written.
        assert!((1..=3).contains(&copied), "{copied}");
        assert!(quota.left() <= 3 * size + 10 - copied as u64 * size);
        assert_eq!(place.names().len(), 1 + copied);
        for name in place.names().iter().filter(|name| *name != "from") {
            assert_same(&place.read(name), &pattern(100_000), name);
            fs::remove_file(place.path(name)).unwrap();
        }
    }
}

#[test]
fn holes_count_like_bytes() {
    for place in places() {
        let sparse = fs::File::create(place.path("from")).unwrap();
        sparse.set_len(10 << 20).unwrap();
        for way in [Tuning::default(), crate::support::fallback()] {
            let options = |limit| Options {
                limits: bytes(limit),
                tuning: way,
                ..Options::default()
            };
            let run = |limit| {
                copy(
                    place.source("from"),
                    place.destination("to"),
                    &options(limit),
                )
            };
            let error = run((10 << 20) - 1).unwrap_err();
            assert_eq!(error.cause, Cause::Limit(Limit::Bytes));
            assert!(error.done.bytes < 10 << 20);
            place.assert_names(&["from"], "nothing is left");
            assert_eq!(run(10 << 20).unwrap().bytes, 10 << 20);
            fs::remove_file(place.path("to")).unwrap();
        }
    }
}

// A size of 0 or 4096 says nothing of procfs and sysfs: the limit is met on the way.
#[test]
fn a_file_whose_size_is_a_lie_meets_the_limit_on_the_way() {
    let place = Place::disk();
    let base = crate::support::place::open_as_guest("/".as_ref());
    for path in ["proc/version", "sys/devices/system/cpu/online"] {
        let Ok(content) = fs::read(format!("/{path}")) else {
            skipped(path);
            continue;
        };
        let size = content.len() as u64;
        let old = other(20_000);
        let copied = |to: &str, write_mode, limit| {
            let options = Options {
                limits: bytes(limit),
                write_mode,
                ..Options::default()
            };
            let source = Source::Path(crate::support::at(&base, path));
            copy(source, place.destination(to), &options)
        };
        let read = |limit, of_copies| {
            let request = ReadRequest {
                source: Source::Path(crate::support::at(&base, path)),
                options: ReadOptions {
                    limit: Some(limit),
                    limits: of_copies,
                    ..ReadOptions::default()
                },
            };
            copyist_engine::read(&request, &Cancel::new())
        };
        for write_mode in WRITE_MODES {
            let summary = copied("to", write_mode, size).unwrap();
            assert_eq!(summary.bytes, size, "{path}");
            assert_same(&place.read("to"), &content, path);
            fs::remove_file(place.path("to")).unwrap();

            place.write("old", &old);
            for limit in [0, size - 1] {
                for to in ["to", "old"] {
                    let error = copied(to, write_mode, limit).unwrap_err();
                    assert_eq!(error.cause, Cause::Limit(Limit::Bytes), "{path} to {to}");
                    assert!(error.done.bytes <= limit, "{path}: {:?}", error.done);
                }
            }
            place.assert_names(&["old"], path);
            if write_mode == WriteMode::Replace {
                assert_same(&place.read("old"), &old, path);
            }
            fs::remove_file(place.path("old")).unwrap();
        }
        assert_eq!(read(size, Limits::default()).unwrap(), content, "{path}");
        assert_eq!(read(u64::MAX, bytes(size)).unwrap(), content, "{path}");
        let cause = |answer: Result<Vec<u8>, Error>| answer.unwrap_err().cause;
        assert_eq!(
            cause(read(size - 1, Limits::default())),
            Cause::Limit(Limit::ReadSize)
        );
        assert_eq!(
            cause(read(u64::MAX, bytes(size - 1))),
            Cause::Limit(Limit::Bytes)
        );
        let quota = Arc::new(Quota::new(size - 1));
        assert_eq!(
            cause(read(u64::MAX, total(&quota))),
            Cause::Limit(Limit::TotalBytes)
        );
    }
}

// In place a limit that is met on the way leaves what it counts, and no more.
#[test]
fn nothing_beyond_a_limit_is_written() {
    let place = Place::disk();
    for (mechanism, limit) in byte_movers()
        .into_iter()
        .flat_map(|mechanism| [1, 4095, 4096, 4097, 9999].map(|limit| (mechanism, limit)))
    {
        // It grows once its size was looked at, so that the limit is not foreseen.
        place.write("from", pattern(1));
        place.write("to", "");
        let options = Options {
            limits: bytes(limit),
            ..in_pieces(mechanism, 4096)
        };
        let request = crate::support::request(
            place.source("from"),
            file(&place.open_to_write("to")),
            &options,
        );
        if mechanism == Mechanism::SendFile {
            continue;
        }
        let mut transfer = copyist_engine::Transfer::new(crate::support::fresh(), request);
        transfer.step(u64::MAX);
        place.write("from", pattern(10_000));
        let error = crate::support::failed(crate::support::drive(&mut transfer, |_| {}));
        assert_eq!(error.cause, Cause::Limit(Limit::Bytes));
        assert_eq!(error.done.bytes, limit, "{mechanism}");
        let written = &pattern(10_000)[..usize::try_from(limit).unwrap()];
        assert_same(&place.read("to"), written, &format!("{mechanism}"));
    }
}
