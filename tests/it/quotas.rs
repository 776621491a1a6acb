//! What an embedder bounds, and that nothing beyond it is written.

use std::sync::Arc;

use copyist_test_artifacts::{READ_FILE, TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::CopyCtxBuilder;
use copyist_wasmtime::engine::Quota;

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, pattern};

fn copy(
    linking: Linking,
    place: &Place,
    words: &[&str],
    change: impl FnOnce(&mut CopyCtxBuilder),
) -> Vec<Answer> {
    Guest::new(TRANSFER_PATH)
        .dir(place.root(), "w")
        .args(words.to_vec())
        .copying(change)
        .run(linking)
        .answers()
}

fn copy_one(linking: Linking, place: &Place, words: &[&str], most: u64) -> Answer {
    let words = [&["w/from", "w/to"], words].concat();
    let change = |copying: &mut CopyCtxBuilder| {
        copying.max_bytes(most);
    };
    copy(linking, place, &words, change).remove(0)
}

#[test]
fn a_copy_has_as_many_bytes_as_it_may_and_no_more() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"], &["--reflink=never"]] {
            let place = Place::with("from", &pattern(1000));
            let answer = copy_one(linking, &place, mode, 999).failed("limit:bytes", "-");
            assert_eq!(answer.number("bytes"), 0);
            assert_eq!(place.names(), ["from"], "{mode:?}");
            copy_one(linking, &place, mode, 1000).done();
            place.assert_holds("to", &pattern(1000));

            // What was there is whole.
            place.write("to", b"old");
            copy_one(linking, &place, mode, 999).failed("limit:bytes", "-");
            place.assert_holds("to", b"old");
        }
        // A part counts as what it is.
        let place = Place::with("from", &pattern(1000));
        copy_one(linking, &place, &["--window=900::0"], 100).done();
        place.assert_holds("to", &pattern(1000)[900..]);
        copy_one(linking, &place, &["--window=899::0"], 100).failed("limit:bytes", "-");
    }
}

#[test]
fn a_hole_counts_as_if_it_were_data() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            let place = Place::new();
            place.write_hole("from", 1 << 20);
            copy_one(linking, &place, mode, (1 << 20) - 1).failed("limit:bytes", "-");
            assert_eq!(place.names(), ["from"]);
            copy_one(linking, &place, mode, 1 << 20).done();
        }
    }
}

#[test]
fn all_copies_of_a_store_draw_from_one_account() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let words = ["w/from", "w/one", "w/from", "w/two", "w/from", "w/three"];
        let mut answers = copy(linking, &place, &words, |copying| {
            copying.max_total_bytes(2000);
        })
        .into_iter();
        let mut next = || answers.next().unwrap();
        next().done();
        next().done();
        next().failed("limit:total-bytes", "-");
        assert_eq!(place.names(), ["from", "one", "two"]);

        // What a copy that failed had drawn goes back.
        let place = Place::with("from", &pattern(1000));
        let words = [
            "w/from",
            "w/absent/one",
            "w/absent",
            "w/one",
            "w/from",
            "w/two",
            "w/from",
            "w/three",
        ];
        let mut answers = copy(linking, &place, &words, |copying| {
            copying.max_total_bytes(1999);
        })
        .into_iter();
        let mut next = || answers.next().unwrap();
        next().failed("no-entry", "destination");
        next().failed("no-entry", "source");
        next().done();
        next().failed("limit:total-bytes", "-");
    }
}

#[test]
fn stores_may_share_an_account_which_reads_draw_from_too() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let account = Arc::new(Quota::new(2500));
        let share = |copying: &mut CopyCtxBuilder| {
            copying.quota(account.clone());
        };
        let one = copy(linking, &place, &["w/from", "w/one"], share);
        one.into_iter().next().unwrap().done();
        let read = || {
            Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(["w/from"])
                .copying(share)
                .run(linking)
                .answer()
        };
        read().done();
        read().failed("limit:total-bytes", "-");
        assert_eq!(account.left(), 500);
        let words = ["w/from", "w/two", "--window=0:500:0"];
        copy(linking, &place, &words, share).remove(0).done();
        assert_eq!(account.left(), 0);
        // An empty copy needs nothing.
        let words = ["w/from", "w/three", "--window=1000::0"];
        copy(linking, &place, &words, share).remove(0).done();
    }
}

#[test]
fn no_more_copies_are_open_than_may_be() {
    for linking in Linking::BOTH {
        for program in [TRANSFER_PATH, TRANSFER_FILE] {
            let place = Place::with("from", &pattern(1000));
            place.write("to", b"old");
            let answer = |copies| {
                Guest::new(program)
                    .dir(place.root(), "w")
                    .args(["w/from", "w/to"])
                    .copying(|copying| {
                        copying.max_copies(copies);
                    })
                    .run(linking)
                    .answer()
            };
            answer(0).failed("limit:copies", "-");
            place.assert_holds("to", b"old");
            answer(1).done();
            place.assert_holds("to", &pattern(1000));
        }
        // One after the other is one at once, and reads count.
        let place = Place::with("from", &pattern(1000));
        let words = ["w/from", "w/one", "w/from", "w/two"];
        for answer in copy(linking, &place, &words, |copying| {
            copying.max_copies(1);
        }) {
            answer.done();
        }
        let read = |copies| {
            Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(["w/from"])
                .copying(|copying| {
                    copying.max_copies(copies);
                })
                .run(linking)
                .answer()
        };
        read(0).failed("limit:copies", "-");
        read(1).done();
    }
}

#[test]
fn a_read_is_bounded_by_the_host_and_by_the_guest() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let read = |words: &[&str], hosts: u64| {
            Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(["w/from"])
                .args(words.to_vec())
                .copying(|copying| {
                    copying.max_read_size(hosts);
                })
                .run(linking)
                .answer()
        };
        read(&[], 1000).done();
        read(&[], 999).failed("limit:read-size", "-");
        read(&["--limit=18446744073709551615"], 999).failed("limit:read-size", "-");
        read(&["--limit=1000"], 1 << 20).done();
        read(&["--limit=999"], 1 << 20).failed("limit:read-size", "-");
        read(&["--text", "--limit=999"], 1 << 20).failed("limit:read-size", "-");
        // A part within the bound.
        let answer = read(&["--limit=999", "--offset=1"], 1 << 20).done();
        assert_eq!(answer.number("bytes"), 999);
        read(&["--length=10"], 10).done();
        read(&["--length=11"], 10).failed("limit:read-size", "-");

        // A hole is as large as it says.
        place.write_hole("from", 1 << 40);
        read(&[], 1 << 16).failed("limit:read-size", "-");
        // A bound on a copy's bytes bounds a read's.
        place.write("from", &pattern(1000));
        let bounded = |most| {
            Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(["w/from"])
                .copying(|copying| {
                    copying.max_bytes(most);
                })
                .run(linking)
                .answer()
        };
        bounded(1000).done();
        bounded(999).failed("limit:bytes", "-");
    }
}
