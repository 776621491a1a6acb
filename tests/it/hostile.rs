//! Numbers, paths and handles that no author means: each an answer, none a panic of the host, none
//! an allocation of the guest's size.

use std::collections::HashMap;

use copyist_test_artifacts::{HOSTILE, READ_FILE, TRANSFER_PATH};

use crate::host::{Guest, Linking};
use crate::memory::largest_request;
use crate::place::{Place, pattern};

/// What the program expects.
pub(crate) fn place() -> Place {
    let place = Place::with("a", b"tea and copies\n");
    std::fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/other", b"other");
    place
}

/// Every answer of the program.
pub(crate) fn check(output: &str, place: &Place) {
    // What is no answer was copied to the standard output.
    let (mut answers, copies): (HashMap<_, _>, Vec<_>) = output
        .lines()
        .map(|line| line.split_once(": ").ok_or(line))
        .fold(Default::default(), |(mut answers, mut others), line| {
            match line {
                Ok((name, answer)) => drop(answers.insert(name, answer)),
                Err(other) => others.push(other),
            }
            (answers, others)
        });
    assert_eq!(copies, ["tea and copies"]);
    let mut take = |name: &str| {
        let answer = answers.remove(name);
        answer.unwrap_or_else(|| panic!("{name} has no answer"))
    };
    windows(&mut take);
    limits(&mut take);
    paths(&mut take);
    handles(&mut take);
    copied(take("after many options"), 15);
    assert!(answers.is_empty(), "{answers:?} is not looked at");
    place.assert_holds("last", b"tea and copies\n");
    assert!(!place.exists("never"));
    place.assert_holds("from stream", b"");
}

type Take<'a, 'b> = &'a mut dyn FnMut(&str) -> &'b str;

fn windows(take: Take<'_, '_>) {
    const LAST: u64 = i64::MAX.cast_unsigned();
    const EDGES: [u64; 7] = [0, 1, 15, 16, LAST, 1 << 63, u64::MAX];
    const CONTENT: &[u8] = b"tea and copies\n";
    for source in EDGES {
        for destination in EDGES {
            for length in [None, Some(0), Some(1), Some(u64::MAX)] {
                let start = usize::try_from(source).unwrap().min(CONTENT.len());
                let there = CONTENT.len() - start;
                let part =
                    length.map_or(there, |length| there.min(usize::try_from(length).unwrap()));
                let ends_after_all = |offset: u64, length: u64| {
                    offset.checked_add(length).is_none_or(|end| end > LAST)
                };
                let name = format!("window {source} {length:?} {destination}");
                let answer = take(&name);
                if ends_after_all(source, length.unwrap_or(0)) {
                    failed(answer, "Source", "overflow");
                } else if ends_after_all(destination, length.unwrap_or(part as u64)) {
                    failed(answer, "Destination", "overflow");
                } else {
                    copied(answer, part);
                }
                let answer = take(&format!("{name} read"));
                if destination != 0 {
                    failed(answer, "Destination", "invalid");
                } else if ends_after_all(source, length.unwrap_or(0)) {
                    failed(answer, "Source", "overflow");
                } else {
                    let read = &CONTENT[start..start + part];
                    assert_eq!(answer, format!("Ok({read:?})"), "{name}");
                }
            }
        }
    }
}

fn limits(take: Take<'_, '_>) {
    for limit in [0, 14, 15, 1 << 63, u64::MAX] {
        for what in ["", " text"] {
            let answer = take(&format!("limit {limit}{what}"));
            if limit < 15 {
                let cause = "Err(Failure { cause: Cause::Limit(Limit::ReadSize), ";
                assert!(answer.starts_with(cause), "{limit}{what}: {answer}");
            } else {
                assert!(answer.starts_with("Ok("), "{limit}{what}: {answer}");
            }
        }
    }
}

fn paths(take: Take<'_, '_>) {
    // As source, as destination, as destination that is replaced. A path that ends like one of a
    // directory is said to be one before anybody looks.
    for (name, as_source, as_destination, replaced) in [
        ("empty", "no-entry", "no-entry", "no-entry"),
        ("slash", "not-permitted", "not-permitted", "is-directory"),
        ("slashes", "not-permitted", "not-permitted", "is-directory"),
        ("dot", "is-directory", "is-directory", "is-directory"),
        ("dots", "not-permitted", "not-permitted", "is-directory"),
        ("nul", "invalid", "invalid", "invalid"),
        ("nul between", "invalid", "invalid", "invalid"),
        (
            "long name",
            "name-too-long",
            "name-too-long",
            "name-too-long",
        ),
        (
            "long path",
            "name-too-long",
            "name-too-long",
            "is-directory",
        ),
        (
            "roundabout",
            "name-too-long",
            "name-too-long",
            "name-too-long",
        ),
        (
            "file as directory",
            "not-directory",
            "not-directory",
            "not-directory",
        ),
        (
            "file with slash",
            "not-directory",
            "is-directory",
            "is-directory",
        ),
    ] {
        failed(take(&format!("source {name}")), "Source", as_source);
        failed(take(&format!("read {name}")), "Source", as_source);
        failed(
            take(&format!("destination {name}")),
            "Destination",
            as_destination,
        );
        failed(take(&format!("replaced {name}")), "Destination", replaced);
    }
    // A name like any other.
    failed(take("source newline"), "Source", "no-entry");
    failed(take("read newline"), "Source", "no-entry");
    copied(take("destination newline"), 5);
    copied(take("replaced newline"), 5);
}

fn handles(take: Take<'_, '_>) {
    // The path is there where one was given, though it was never looked at.
    for (name, side, cause, path) in [
        ("a directory as source", "Source", "is-directory", "None"),
        (
            "a directory as destination",
            "Destination",
            "is-directory",
            "None",
        ),
        (
            "a directory as what is read",
            "Source",
            "is-directory",
            "None",
        ),
        (
            "a file as the directory of the source",
            "Source",
            "not-directory",
            "Some(\"b\")",
        ),
        (
            "a file as the directory of the destination",
            "Destination",
            "not-directory",
            "Some(\"b\")",
        ),
        (
            "a file as the directory of what is read",
            "Source",
            "not-directory",
            "Some(\"b\")",
        ),
    ] {
        let answer = take(name);
        failed(answer, side, cause);
        assert!(
            answer.contains(&format!("path: {path}, ")),
            "{name}: {answer}"
        );
    }
    // Standard input is empty here, and standard output is taken.
    copied(take("a stream as source"), 0);
    copied(take("a stream as destination"), 15);
    assert_eq!(take("a stream as what is read"), "Ok([])");
    let answer = take("one file as both");
    assert!(
        answer.starts_with("Err(Failure { cause: Cause::SameFile, "),
        "{answer}"
    );
}

#[track_caller]
fn copied(answer: &str, bytes: usize) {
    assert!(
        answer.starts_with(&format!("Ok(Summary {{ bytes: {bytes}, ")),
        "{answer}"
    );
}

#[track_caller]
fn failed(answer: &str, side: &str, cause: &str) {
    assert!(answer.starts_with("Err("), "{answer}");
    assert!(
        answer.contains(&format!("Cause::Filesystem((Side::{side}, ")),
        "{answer}"
    );
    assert!(answer.contains(&format!("name: \"{cause}\"")), "{answer}");
}

#[test]
fn no_number_of_a_guest_is_a_size_of_the_host() {
    const HOSTS: usize = 1 << 20;
    for linking in Linking::BOTH {
        let place = Place::new();
        place.write_hole("hole", 1 << 42);
        place.write("file", &pattern(1000));
        for words in [
            &["w/hole"][..],
            &["w/hole", "--limit=18446744073709551615"],
            &["w/hole", "--offset=1", "--length=4398046511102"],
            &["w/hole", "--text"],
        ] {
            let answer = Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(words.to_vec())
                .copying(|copying| {
                    copying.max_read_size(HOSTS as u64);
                })
                .run(linking)
                .answer();
            answer.failed("limit:read-size", "-");
        }
        let words = [
            "w/file",
            "--length=9223372036854775807",
            "--limit=18446744073709551615",
        ];
        let answer = Guest::new(READ_FILE)
            .dir(place.root(), "w")
            .args(words)
            .run(linking)
            .answer();
        assert_eq!(answer.done().number("bytes"), 1000);
        let words = ["w/file", "w/to", "--window=0:9223372036854775807:0"];
        let answer = Guest::new(TRANSFER_PATH)
            .dir(place.root(), "w")
            .args(words)
            .run(linking)
            .answer();
        assert_eq!(answer.done().number("bytes"), 1000);
        let hostile = self::place();
        Guest::new(HOSTILE)
            .dir(hostile.root(), "w")
            .args(["w"])
            .run(linking)
            .output();
        // The default bound of a read, and what wasmtime itself needs.
        let largest = largest_request();
        assert!(largest <= 100 << 20, "{largest} bytes at once");
    }
}
