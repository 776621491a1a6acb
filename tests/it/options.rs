//! Each option, set by a guest and seen in what the copy does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};

use copyist_test_artifacts::{TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::engine::Errno;

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, pattern, skipped};
use crate::system::{Altered, Call, Gate};

const NEW: &[u8] = b"new bytes";
const OLD: &[u8] = b"old bytes, and more of them";

/// Copies `from` to `to` by path.
fn copy(linking: Linking, place: &Place, words: &[&str]) -> Answer {
    by(TRANSFER_PATH, linking, place, words)
}

fn by(program: &'static str, linking: Linking, place: &Place, words: &[&str]) -> Answer {
    Guest::new(program)
        .dir(place.root(), "w")
        .args(["w/from", "w/to"])
        .args(words.to_vec())
        .run(linking)
        .answer()
}

fn old_and_new() -> Place {
    let place = Place::with("from", NEW);
    place.write("to", OLD);
    place
}

#[test]
fn existing_says_what_becomes_of_a_file_that_is_there() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            let run = |place: &Place, existing: &str| {
                let words = [&[existing], mode].concat();
                copy(linking, place, &words)
            };

            let place = old_and_new();
            run(&place, "--existing=refuse").failed("exist", "destination");
            place.assert_holds("to", OLD);

            let answer = run(&place, "--existing=skip").done();
            assert_eq!((answer.number("skipped"), answer.number("bytes")), (1, 0));
            place.assert_holds("to", OLD);

            place.set_modified("from", 1_000_000_000_000_000_000);
            place.set_modified("to", 1_000_000_000_000_000_000);
            let answer = run(&place, "--existing=update").done();
            assert_eq!(answer.number("skipped"), 1);
            place.assert_holds("to", OLD);

            place.set_modified("from", 1_000_000_000_000_000_001);
            let answer = run(&place, "--existing=update").done();
            assert_eq!((answer.number("skipped"), answer.number("bytes")), (0, 9));
            place.assert_holds("to", NEW);

            place.write("to", OLD);
            run(&place, "--existing=write").done();
            place.assert_holds("to", NEW);

            for existing in ["refuse", "skip", "update", "write"] {
                fs::remove_file(place.path("to")).unwrap();
                let answer = run(&place, &format!("--existing={existing}")).done();
                assert_eq!((answer.number("skipped"), answer.number("bytes")), (0, 9));
                place.assert_holds("to", NEW);
            }
            assert_eq!(place.names(), ["from", "to"]);
        }
    }
}

#[test]
fn existing_holds_for_an_open_descriptor_too() {
    for linking in Linking::BOTH {
        let place = old_and_new();
        let run = |words: &[&str]| by(TRANSFER_FILE, linking, &place, words);
        run(&["--existing=refuse"]).failed("exist", "destination");
        let answer = run(&["--existing=skip"]).done();
        assert_eq!(answer.number("skipped"), 1);
        place.assert_holds("to", OLD);
        run(&["--existing=write"]).done();
        place.assert_holds("to", NEW);
    }
}

#[test]
fn in_place_keeps_the_file_and_replace_keeps_who_holds_the_old_one() {
    for linking in Linking::BOTH {
        for (mode, keeps_file) in [(&[][..], true), (&["--replace"][..], false)] {
            let place = old_and_new();
            place.set_mode("from", 0o600);
            place.set_mode("to", 0o640);
            fs::hard_link(place.path("to"), place.path("link")).unwrap();
            let before = place.stat("to").ino();
            copy(linking, &place, mode).done();
            place.assert_holds("to", NEW);
            place.assert_holds("link", if keeps_file { NEW } else { OLD });
            assert_eq!(place.stat("to").ino() == before, keeps_file);
            assert_eq!(place.mode("to"), 0o640);
            assert_eq!(place.names(), ["from", "link", "to"]);
        }
    }
}

#[test]
fn a_descriptor_cannot_be_replaced() {
    for linking in Linking::BOTH {
        let place = old_and_new();
        let answer = by(TRANSFER_FILE, linking, &place, &["--replace"]);
        answer.failed("unsupported", "-");
        place.assert_holds("to", OLD);
    }
}

#[test]
fn a_copy_that_must_not_share_shares_nothing() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(100_000));
        let calls = Arc::new(Mutex::new(Vec::new()));
        let answer = Guest::new(TRANSFER_PATH)
            .dir(place.root(), "w")
            .args(["w/from", "w/to", "--reflink=never"])
            .copying(|copying| {
                copying.pool(Altered::noting(&calls).pool());
            })
            .run(linking)
            .answer()
            .done();
        assert_eq!(answer.number("shared"), 0);
        let calls = calls.lock().unwrap();
        // This may share too, and there is no way to forbid it.
        assert!(
            !calls.contains(&Call::Clone) && !calls.contains(&Call::CopyRange),
            "{calls:?}"
        );
        place.assert_holds("to", &pattern(100_000));
    }
}

#[test]
fn a_copy_that_must_share_does_or_fails() {
    for linking in Linking::BOTH {
        let run = |system: Altered, place: &Place| {
            let pool = system.pool();
            Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/from", "w/to", "--reflink=always"])
                .copying(|copying| {
                    copying.pool(pool);
                })
                .run(linking)
                .answer()
        };
        let place = Place::with("from", NEW);
        let answer = run(Altered::failing(Call::Clone, Errno::OPNOTSUPP), &place);
        let answer = answer.failed("unsupported", "destination");
        assert_eq!(answer.get("path"), "w/to");
        assert_eq!(place.names(), ["from"]);

        let answer = run(Altered::with_clones(), &place).done();
        assert_eq!(answer.get("method"), "clone");
        assert_eq!(answer.number("shared"), 9);
        place.assert_holds("to", NEW);
    }
}

#[test]
fn holes_are_kept_made_or_filled() {
    const SIZE: usize = 1 << 20;
    let allocated = |place: &Place, name: &str| place.stat(name).blocks() * 512;
    let zeros = vec![0; SIZE];
    let probe = Place::with("zeros", &zeros);
    probe.write_hole("hole", SIZE as u64);
    let has = |name| allocated(&probe, name) >= SIZE as u64;
    if has("hole") || !has("zeros") {
        skipped("the file system has no holes, or makes them by itself");
        return;
    }
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            for (word, of_a_hole, of_zeros) in [
                ("auto", false, true),
                ("always", false, false),
                ("never", true, true),
            ] {
                let place = Place::new();
                place.write_hole("from", SIZE as u64);
                let word = format!("--sparse={word}");
                let words = [&[&*word], mode].concat();
                copy(linking, &place, &words).done();
                place.assert_holds("to", &zeros);
                assert_eq!(
                    allocated(&place, "to") >= SIZE as u64,
                    of_a_hole,
                    "{words:?}"
                );

                let place = Place::with("from", &zeros);
                copy(linking, &place, &words).done();
                place.assert_holds("to", &zeros);
                assert_eq!(
                    allocated(&place, "to") >= SIZE as u64,
                    of_zeros,
                    "{words:?}"
                );
            }
        }
    }
}

#[test]
fn a_durable_copy_syncs_the_file_and_the_directory_of_a_new_name() {
    let table: [(&[&str], bool, usize); 8] = [
        (&[], false, 0),
        (&["--durability=none"], true, 0),
        (&["--durability=each"], false, 2),
        (&["--durability=end"], false, 2),
        (&["--durability=each"], true, 1),
        (&["--durability=end"], true, 1),
        (&["--durability=each", "--replace"], false, 2),
        (&["--durability=each", "--replace"], true, 2),
    ];
    for linking in Linking::BOTH {
        for (words, exists, syncs) in table {
            let place = Place::with("from", NEW);
            if exists {
                place.write("to", OLD);
            }
            let calls = Arc::new(Mutex::new(Vec::new()));
            Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/from", "w/to"])
                .args(words.to_vec())
                .copying(|copying| {
                    copying.pool(Altered::noting(&calls).pool());
                })
                .run(linking)
                .answer()
                .done();
            let calls = calls.lock().unwrap();
            let made = calls.iter().filter(|call| **call == Call::Sync).count();
            assert_eq!(made, syncs, "{words:?}, exists: {exists}");
            place.assert_holds("to", NEW);
        }
    }
}

#[test]
fn a_window_is_a_part_and_leaves_the_rest() {
    let source = pattern(1000);
    for linking in Linking::BOTH {
        for program in [TRANSFER_PATH, TRANSFER_FILE] {
            let place = Place::with("from", &source);
            let mut expected = pattern(500);
            place.write("to", &expected);

            let answer = by(program, linking, &place, &["--window=100:50:20"]).done();
            assert_eq!(answer.number("bytes"), 50);
            expected[20..70].copy_from_slice(&source[100..150]);
            place.assert_holds("to", &expected);

            // To the end of the source, beyond the end of the destination.
            let answer = by(program, linking, &place, &["--window=900::450"]).done();
            assert_eq!(answer.number("bytes"), 100);
            expected.truncate(450);
            expected.extend(&source[900..]);
            place.assert_holds("to", &expected);

            // Beyond the end of the source there is nothing.
            let answer = by(program, linking, &place, &["--window=1000:10:0"]).done();
            assert_eq!((answer.number("bytes"), answer.get("method")), (0, "none"));
            place.assert_holds("to", &expected);
        }
    }
}

#[test]
fn a_window_of_a_new_file_follows_zeros() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            let place = Place::with("from", NEW);
            let words = [&["--window=4:5:3"], mode].concat();
            copy(linking, &place, &words).done();
            place.assert_holds("to", b"\0\0\0bytes");
            assert_eq!(place.names(), ["from", "to"]);
        }
    }
}

#[test]
fn a_window_of_an_old_file_cannot_be_replaced() {
    for linking in Linking::BOTH {
        let place = old_and_new();
        let words = ["--window=0:2:0", "--replace"];
        copy(linking, &place, &words).failed("unsupported", "destination");
        place.assert_holds("to", OLD);
        assert_eq!(place.names(), ["from", "to"]);
    }
}

#[test]
fn a_window_that_ends_beyond_all_numbers_is_refused() {
    for linking in Linking::BOTH {
        let place = Place::with("from", NEW);
        for (window, side) in [
            ("9223372036854775807:1:0", "source"),
            ("0:9223372036854775808:0", "source"),
            ("18446744073709551615::0", "source"),
            ("0:1:9223372036854775807", "destination"),
        ] {
            let window = format!("--window={window}");
            copy(linking, &place, &[&window]).failed("overflow", side);
            assert_eq!(place.names(), ["from"], "{window}");
        }
    }
}

#[test]
fn one_file_is_copied_within_where_the_parts_are_disjoint() {
    let content = pattern(100);
    for linking in Linking::BOTH {
        let place = Place::with("one", &content);
        let run = |words: &[&str]| {
            Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/one", "w/one"])
                .args(words.to_vec())
                .run(linking)
                .answer()
        };
        for words in [
            &[][..],
            &["--replace"],
            &["--window=0:50:49"],
            &["--window=50::0"],
            &["--window=0::0"],
        ] {
            run(words).failed("same-file", "-");
            place.assert_holds("one", &content);
        }
        let answer = run(&["--window=0:50:50"]).done();
        assert_eq!(answer.number("bytes"), 50);
        place.assert_holds("one", &[&content[..50], &content[..50]].concat());

        let answer = Guest::new(TRANSFER_FILE)
            .dir(place.root(), "w")
            .args(["w/one", "w/one", "--same", "--source=rw"])
            .run(linking)
            .answer();
        answer.failed("same-file", "-");
    }
}

#[test]
fn a_source_that_grows_meanwhile_is_copied_to_its_end_and_said_to_have_changed() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let gate = Gate::default();
        let guest = Guest::new(TRANSFER_PATH)
            .dir(place.root(), "w")
            .args(["w/from", "w/to"])
            .copying(|copying| {
                copying.pool(gate.system().pool());
            });
        let answer = std::thread::scope(|scope| {
            let run = scope.spawn(|| guest.run(linking).answer());
            gate.wait_until_reached();
            place.write("from", &pattern(5000));
            gate.open();
            run.join().unwrap()
        })
        .done();
        assert_eq!(
            (answer.number("bytes"), answer.get("changed")),
            (5000, "true")
        );
        place.assert_holds("to", &pattern(5000));
    }
}

#[test]
fn a_copy_that_fails_says_how_far_it_had_come() {
    for linking in Linking::BOTH {
        let run = |system: Altered, place: &Place| {
            let pool = system.pool();
            Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/from", "w/to", "--reflink=never"])
                .copying(|copying| {
                    copying.pool(pool).tuning(copyist_wasmtime::engine::Tuning {
                        force_fallback: true,
                        call_size: std::num::NonZeroUsize::new(400),
                        ..Default::default()
                    });
                })
                .run(linking)
                .answer()
        };
        let full_after = |writes: usize| {
            let made = Mutex::new(0);
            Altered::new(move |call| {
                let mut made = made.lock().unwrap();
                *made += usize::from(call == Call::Write);
                if *made > writes {
                    Err(Errno::NOSPC)
                } else {
                    Ok(())
                }
            })
        };
        // One that is new is gone again.
        let place = Place::with("from", &pattern(1000));
        let answer = run(full_after(1), &place).failed("insufficient-space", "destination");
        assert_eq!(
            (answer.number("bytes"), answer.number("consumed")),
            (400, 800)
        );
        assert_eq!(answer.get("path"), "w/to");
        assert_eq!(place.names(), ["from"]);

        // One that was there has what was written.
        place.write("to", &[0; 600]);
        run(full_after(1), &place).failed("insufficient-space", "destination");
        place.assert_holds("to", &[&pattern(400)[..], &[0; 200]].concat());
    }
}
