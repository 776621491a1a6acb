//! Every size around every boundary, by every mechanism, within a file system and between two.

use std::fs;

use copyist_engine::{
    Cause, Destination, Mechanism, Options, Reflink, Source, Summary, Tuning, Unsupported,
};

use crate::support::{Place, assert_same, copy, every_way, file, other, pairs, pattern, places};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const SIZES: [usize; 20] = [
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
    256 * KIB - 1,
    256 * KIB,
    256 * KIB + 1,
    MIB - 1,
    MIB,
    MIB + 1,
    16 * MIB - 1,
    16 * MIB,
    16 * MIB + 1,
];

/// What is known of a way before it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Copies,
    Refuses,
    /// It depends on the file system.
    Either,
}

fn answer(tuning: Tuning, size: usize, same_device: bool, to_descriptor: bool) -> Answer {
    match tuning.only {
        None | Some(Mechanism::ReadWrite) => Answer::Copies,
        // A size of 0 is no promise, and a read tells: no other mechanism is asked.
        _ if size == 0 => Answer::Refuses,
        Some(Mechanism::CopyRange) if same_device => Answer::Copies,
        Some(Mechanism::SendFile) if to_descriptor => Answer::Refuses,
        Some(Mechanism::SendFile) => Answer::Copies,
        _ => Answer::Either,
    }
}

/// Copies every size from one place to the other and compares.
fn all_sizes(from: &Place, to: &Place, same_device: bool) {
    for size in SIZES {
        let bytes = pattern(size);
        from.write("from", &bytes);
        for (way, tuning) in every_way() {
            for (by_descriptor, to_descriptor) in
                [(false, false), (true, true), (false, true), (true, false)]
            {
                // The large ones once: by path to path, and by descriptor to descriptor.
                if size >= 16 * MIB - 1 && by_descriptor != to_descriptor {
                    continue;
                }
                let what = format!(
                    "{size} bytes from {} to {} by {way}, descriptors: {by_descriptor}, {to_descriptor}",
                    from.name, to.name
                );
                let source = if by_descriptor {
                    Source::File(from.open("from"))
                } else {
                    from.source("from")
                };
                let destination = if to_descriptor {
                    file(&to.open_to_write("to"))
                } else {
                    to.destination("to")
                };
                let options = Options {
                    tuning,
                    ..Options::default()
                };
                match copy(source, destination, &options) {
                    Ok(summary) => {
                        check(&summary, tuning, size, &what);
                        assert_ne!(
                            answer(tuning, size, same_device, to_descriptor),
                            Answer::Refuses,
                            "{what}"
                        );
                        assert_same(&to.read("to"), &bytes, &what);
                        fs::remove_file(to.path("to")).unwrap();
                    }
                    Err(error) => {
                        assert_eq!(
                            error.cause,
                            Cause::Unsupported(Unsupported::Mechanism),
                            "{what}"
                        );
                        assert_ne!(
                            answer(tuning, size, same_device, to_descriptor),
                            Answer::Copies,
                            "{what}"
                        );
                        assert_eq!(to.exists("to"), to_descriptor, "{what}");
                        let _ = fs::remove_file(to.path("to"));
                    }
                }
                assert!(!to.exists("to"), "{what}");
            }
        }
    }
    to.assert_names(&[], "nothing is left");
}

fn check(summary: &Summary, tuning: Tuning, size: usize, what: &str) {
    let size = size as u64;
    assert_eq!((summary.bytes, summary.consumed), (size, size), "{what}");
    assert_eq!((summary.files, summary.skipped), (1, 0), "{what}");
    assert!(!summary.changed, "{what}");
    match summary.method {
        None => assert_eq!(size, 0, "{what}"),
        Some(method) => {
            assert!(size > 0, "{what}");
            let wanted = tuning
                .only
                .or(tuning.force_fallback.then_some(Mechanism::ReadWrite));
            assert!(wanted.is_none_or(|wanted| wanted == method), "{what}");
        }
    }
    let cloned = summary.method == Some(Mechanism::Clone);
    assert_eq!(summary.shared, if cloned { size } else { 0 }, "{what}");
}

// One test a pair, so that they run side by side.

fn pair(from: &str, to: &str) {
    for (one, two, same) in pairs() {
        if one.name == from && two.name == to {
            all_sizes(&one, &two, same);
        }
    }
}

#[test]
fn every_size_is_copied_on_the_disk() {
    pair("disk", "disk");
}

#[test]
fn every_size_is_copied_from_disk_to_memory() {
    pair("disk", "memory");
}

#[test]
fn every_size_is_copied_in_memory() {
    pair("memory", "memory");
}

#[test]
fn every_size_is_copied_from_memory_to_disk() {
    pair("memory", "disk");
}

#[test]
fn without_reflinks_no_call_is_made_that_may_share() {
    for place in places() {
        let bytes = pattern(300 * KIB);
        place.write("from", &bytes);
        let options = Options {
            reflink: Reflink::Never,
            ..Options::default()
        };
        for destination in [
            place.destination("path"),
            file(&place.open_to_write("descriptor")),
        ] {
            let to_path = matches!(destination, Destination::Path(_));
            let summary = copy(place.source("from"), destination, &options).unwrap();
            assert_eq!(
                summary.method,
                Some(if to_path {
                    Mechanism::SendFile
                } else {
                    Mechanism::ReadWrite
                })
            );
            assert_eq!(summary.refused, []);
        }
        assert_same(&place.read("path"), &bytes, "path");
        assert_same(&place.read("descriptor"), &bytes, "descriptor");
    }
}

#[test]
fn with_reflinks_required_it_is_a_clone_or_nothing() {
    for place in places() {
        // Longer, of which nothing is cut off before it is known to work.
        let old = other(200 * KIB);
        place.write("from", pattern(100 * KIB));
        place.write("old", &old);
        let options = Options {
            reflink: Reflink::Always,
            ..Options::default()
        };
        match copy(place.source("from"), place.destination("to"), &options) {
            Ok(summary) => assert_eq!(summary.method, Some(Mechanism::Clone)),
            Err(error) => {
                assert_eq!(error.cause, Cause::Unsupported(Unsupported::Clone));
                place.assert_names(&["from", "old"], "nothing was made");
                copy(place.source("from"), place.destination("old"), &options).unwrap_err();
                assert_same(&place.read("old"), &old, "the old file is as it was");
            }
        }
    }
}

// https://github.com/rust-lang/rust/pull/114373: an empty destination was taken for one to which
// copy_file_range does not work, so that nothing was shared on btrfs.
#[test]
fn rust_114373_an_empty_destination_gets_the_best_mechanism() {
    for place in places() {
        place.write("from", pattern(300 * KIB));
        place.write("to", "");
        let summary = copy(
            place.source("from"),
            place.destination("to"),
            &Options::default(),
        )
        .unwrap();
        let best = [Some(Mechanism::Clone), Some(Mechanism::CopyRange)];
        assert!(best.contains(&summary.method), "{summary:?}");
    }
}
