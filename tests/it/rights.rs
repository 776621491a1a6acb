//! A copy asks no more of a handle than `wasi:filesystem` would give.

use std::fs;

use copyist_test_artifacts::{READ_FILE, TRANSFER_FILE, TRANSFER_PATH};

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, is_root};

const NEW: &[u8] = b"new bytes";
const OLD: &[u8] = b"old bytes, and more of them";

/// `in` with a file `from`, `out` with a file `to`.
fn two() -> Place {
    let place = Place::new();
    for name in ["in", "out"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    place.write("in/from", NEW);
    place.write("out/to", OLD);
    place
}

fn run(linking: Linking, guest: Guest, words: &[&str]) -> Answer {
    guest.args(words.to_vec()).run(linking).answer()
}

#[test]
fn nothing_in_a_read_only_directory_is_written_or_made() {
    for linking in Linking::BOTH {
        let place = two();
        let before = place.snapshot();
        let guest = |program| {
            Guest::new(program)
                .dir(place.path("in"), "in")
                .read_only_dir(place.path("out"), "out")
        };
        for to in ["out/to", "out/new", "out/absent/new"] {
            for mode in [
                &[][..],
                &["--replace"],
                &["--existing=refuse"],
                &["--existing=skip"],
                &["--existing=update"],
                &["--window=0:1:0"],
            ] {
                let words = [&["in/from", to], mode].concat();
                let answer = run(linking, guest(TRANSFER_PATH), &words);
                let answer = answer.failed("not-permitted", "destination");
                assert_eq!(answer.get("path"), to);
            }
        }
        // The descriptor opens, for reading.
        let words = ["in/from", "out/to", "--destination=r"];
        let answer = run(linking, guest(TRANSFER_FILE), &words);
        answer.failed("not-permitted", "destination");
        // Nor is a name there a source of an escape: the directory is one thing, its rights another.
        let words = ["out/to", "out/new"];
        run(linking, guest(TRANSFER_PATH), &words).failed("not-permitted", "destination");
        assert!(place.snapshot() == before, "something has changed");
    }
}

#[test]
fn a_read_only_directory_is_a_source() {
    for linking in Linking::BOTH {
        let place = two();
        let guest = |program| {
            Guest::new(program)
                .read_only_dir(place.path("in"), "in")
                .dir(place.path("out"), "out")
        };
        run(linking, guest(TRANSFER_PATH), &["in/from", "out/to"]).done();
        place.assert_holds("out/to", NEW);
        run(linking, guest(TRANSFER_PATH), &["in/from", "out/new"]).done();
        place.assert_holds("out/new", NEW);
        place.write("out/to", OLD);
        run(linking, guest(TRANSFER_FILE), &["in/from", "out/to"]).done();
        place.assert_holds("out/to", NEW);
        let answer = run(linking, guest(READ_FILE), &["in/from"]).done();
        assert_eq!(answer.number("bytes"), 9);
    }
}

#[test]
fn a_source_is_open_for_reading_and_a_destination_for_writing() {
    for linking in Linking::BOTH {
        let place = two();
        let before = place.snapshot();
        let guest = || {
            Guest::new(TRANSFER_FILE)
                .dir(place.path("in"), "in")
                .dir(place.path("out"), "out")
        };
        let words = ["in/from", "out/to"];
        for (rights, cause, side) in [
            (
                ["--source=w", "--destination=w"],
                "bad-descriptor",
                "source",
            ),
            (
                ["--source=r", "--destination=r"],
                "bad-descriptor",
                "destination",
            ),
            (
                ["--source=w", "--destination=r"],
                "bad-descriptor",
                "source",
            ),
        ] {
            let words = [&words[..], &rights].concat();
            run(linking, guest(), &words).failed(cause, side);
            let words = [&words[..], &["--existing=skip"]].concat();
            run(linking, guest(), &words).failed(cause, side);
        }
        assert!(place.snapshot() == before, "something has changed");
        for rights in [
            ["--source=r", "--destination=w"],
            ["--source=rw", "--destination=rw"],
        ] {
            place.write("out/to", OLD);
            run(linking, guest(), &[&words[..], &rights].concat()).done();
            place.assert_holds("out/to", NEW);
        }
    }
}

/// The permission bits of the file system count as well.
#[test]
fn what_the_host_itself_may_not_is_refused_at_its_side() {
    if rustix::process::geteuid().is_root() {
        crate::place::skipped("root may read and write whatever the permission bits say");
        return;
    }
    for linking in Linking::BOTH {
        let place = two();
        place.set_mode("in/from", 0o200);
        let guest = || {
            Guest::new(TRANSFER_PATH)
                .dir(place.path("in"), "in")
                .dir(place.path("out"), "out")
        };
        let words = ["in/from", "out/to"];
        run(linking, guest(), &words).failed("access", "source");
        place.set_mode("in/from", 0o600);
        place.set_mode("out/to", 0o400);
        run(linking, guest(), &words).failed("access", "destination");
        place.assert_holds("out/to", OLD);
    }
}

/// What a process with all rights may do is no right of its guests.
#[test]
fn a_root_host_grants_no_more() {
    if !is_root("to have all rights") {
        return;
    }
    for linking in Linking::BOTH {
        let place = two();
        place.set_mode("out/to", 0);
        let guest = Guest::new(TRANSFER_PATH)
            .dir(place.path("in"), "in")
            .read_only_dir(place.path("out"), "out");
        let answer = run(linking, guest, &["in/from", "out/to"]);
        answer.failed("not-permitted", "destination");
        place.assert_holds("out/to", OLD);
    }
}
