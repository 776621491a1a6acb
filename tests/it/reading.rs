//! Whole-file reads: the same bytes as a plain read to the end, or an error that says why not.

use std::sync::Arc;

use copyist_test_artifacts::{READ_FILE, VERBATIM};
use copyist_wasmtime::engine::{Errno, Pool};

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, fnv1a, pattern};
use crate::system::{Altered, Call};

fn read(linking: Linking, pool: &Arc<Pool>, place: &Place, words: &[&str]) -> Answer {
    Guest::new(READ_FILE)
        .read_only_dir(place.root(), "r")
        .args(["r/file"])
        .args(words.to_vec())
        .copying(|copying| {
            copying.pool(pool.clone());
        })
        .run(linking)
        .answer()
}

/// The system as it is, and one where no file says how long it is.
fn systems() -> [Arc<Pool>; 2] {
    [
        Altered::new(|_| Ok(())).pool(),
        Altered::without_sizes().pool(),
    ]
}

#[test]
fn every_size_around_a_boundary() {
    const SIZES: [usize; 15] = [
        0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 262_143,
        262_144, 262_145, 1_048_577,
    ];
    for pool in systems() {
        for size in SIZES {
            let content = pattern(size);
            let place = Place::with("file", &content);
            for linking in Linking::BOTH {
                let answer = read(linking, &pool, &place, &[]).done();
                assert_eq!(answer.number("bytes"), size as u64);
                assert_eq!(answer.get("fnv"), fnv1a(&content), "{size}");
            }
        }
    }
}

#[test]
fn a_window_is_a_part() {
    let content = pattern(100_000);
    let place = Place::with("file", &content);
    for pool in systems() {
        for linking in Linking::BOTH {
            for offset in [
                0_usize,
                1,
                65_535,
                65_536,
                99_999,
                100_000,
                100_001,
                1 << 40,
            ] {
                for length in [
                    None,
                    Some(0),
                    Some(1),
                    Some(65_536),
                    Some(100_000),
                    Some(1 << 40),
                ] {
                    let mut words = vec![format!("--offset={offset}")];
                    words.extend(length.map(|length| format!("--length={length}")));
                    let words: Vec<_> = words.iter().map(|word| &**word).collect();
                    let answer = read(linking, &pool, &place, &words).done();
                    let end = length.map_or(content.len(), |length| {
                        content.len().min(offset.saturating_add(length))
                    });
                    let part =
                        &content[offset.min(content.len())..end.max(offset.min(content.len()))];
                    assert_eq!(answer.number("bytes"), part.len() as u64, "{words:?}");
                    assert_eq!(answer.get("fnv"), fnv1a(part), "{words:?}");
                }
            }
        }
    }
}

#[test]
fn a_window_of_a_read_has_no_destination() {
    for linking in Linking::BOTH {
        let place = Place::with("file", b"bytes");
        let say = |call: &str, window: &str| {
            let guest = Guest::new(VERBATIM).dir(place.root(), "w");
            let window = format!("--window={window}");
            let ended = guest.args([call, "--dir=w", "file", &window]).run(linking);
            ended.output().to_owned()
        };
        for call in ["bytes", "text"] {
            assert_eq!(say(call, "1:3:0"), "Ok(3)\n");
            for offset in ["1", "18446744073709551615"] {
                let said = say(call, &format!("1:3:{offset}"));
                assert!(
                    said.contains("Side::Destination") && said.contains("\"invalid\""),
                    "{said}"
                );
            }
            let said = say(call, "9223372036854775807:1:0");
            assert!(
                said.contains("Side::Source") && said.contains("\"overflow\""),
                "{said}"
            );
        }
    }
}

/// Characters of one to four bytes, shifted by some: over every boundary lies one.
fn text(length: usize, shift: usize) -> String {
    let mut text = "x".repeat(shift);
    while text.len() < length {
        text.push_str("é€🦀y");
    }
    text
}

#[test]
fn text_is_whole_wherever_its_characters_lie() {
    for pool in systems() {
        for shift in 0..10 {
            let text = text(150_000, shift);
            let place = Place::with("file", text.as_bytes());
            for linking in Linking::BOTH {
                let answer = read(linking, &pool, &place, &["--text"]).done();
                assert_eq!(answer.get("fnv"), fnv1a(text.as_bytes()), "{shift}");
            }
        }
    }
}

#[test]
fn one_character_over_each_boundary() {
    for pool in systems() {
        for boundary in [4096_usize, 65_536, 131_072, 262_144] {
            for before in 1..4 {
                let text = format!("{}🦀{}", "x".repeat(boundary - before), "y".repeat(1000));
                let place = Place::with("file", text.as_bytes());
                for linking in Linking::BOTH {
                    let answer = read(linking, &pool, &place, &["--text"]).done();
                    assert_eq!(answer.get("fnv"), fnv1a(text.as_bytes()));
                }
            }
        }
    }
}

#[test]
fn what_is_not_utf8_is_said_to_be_none_and_can_be_read_as_bytes() {
    let cut = &"x🦀".as_bytes()[..4];
    let large = [&vec![b'x'; 100_000][..], b"\xff"].concat();
    let samples: [&[u8]; 5] = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", cut, &large];
    for pool in systems() {
        for sample in samples {
            let place = Place::with("file", sample);
            for linking in Linking::BOTH {
                let answer = read(linking, &pool, &place, &["--text"]);
                let answer = answer.failed("illegal-byte-sequence", "source");
                assert_eq!(answer.get("path"), "r/file");
                assert_eq!(answer.get("kind"), "InvalidData");
                assert_eq!(answer.number("consumed"), sample.len() as u64);
                let answer = read(linking, &pool, &place, &[]).done();
                assert_eq!(answer.get("fnv"), fnv1a(sample));
            }
        }
        // A part that cuts a character.
        let place = Place::with("file", "x🦀".as_bytes());
        let words = ["--text", "--offset=2"];
        read(Linking::Sync, &pool, &place, &words).failed("illegal-byte-sequence", "source");
        let words = ["--text", "--length=1"];
        read(Linking::Sync, &pool, &place, &words).done();
    }
}

#[test]
fn what_cannot_be_read_has_an_error_of_its_own() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let pool = Altered::new(|_| Ok(())).pool();
        let answer = read(linking, &pool, &place, &[]).failed("no-entry", "source");
        assert_eq!(
            (answer.get("path"), answer.get("kind")),
            ("r/file", "NotFound")
        );
        std::fs::create_dir(place.path("file")).unwrap();
        for words in [&[][..], &["--text"]] {
            let answer = read(linking, &pool, &place, words);
            answer.failed("is-directory", "source");
        }
        let place = Place::with("file", b"bytes");
        for (errno, cause) in [
            (Errno::IO, "io"),
            (Errno::NOMEM, "insufficient-memory"),
            (Errno::STALE, "io"),
        ] {
            let pool = Altered::failing(Call::Read, errno).pool();
            let answer = read(linking, &pool, &place, &["--text"]).failed(cause, "source");
            assert_eq!(answer.get("path"), "r/file");
        }
    }
}

#[test]
fn one_byte_more_than_the_limit_is_too_much_and_the_limit_itself_is_not() {
    for pool in systems() {
        for size in [1_u64, 65_536, 65_537, 200_000] {
            let content = "x".repeat(usize::try_from(size).unwrap());
            let place = Place::with("file", content.as_bytes());
            for linking in Linking::BOTH {
                for words in [&[][..], &["--text"]] {
                    for (limit, fits) in [(size + 1, true), (size, true), (size - 1, false)] {
                        let limit = format!("--limit={limit}");
                        let words = [words, &[&*limit]].concat();
                        let answer = read(linking, &pool, &place, &words);
                        if fits {
                            assert_eq!(answer.done().number("bytes"), size);
                        } else {
                            answer.failed("limit:read-size", "-");
                        }
                    }
                }
            }
        }
    }
}

/// They claim to be empty.
#[test]
#[cfg(target_os = "linux")]
fn files_of_the_kernel_are_read_to_their_end() {
    let content = std::fs::read("/proc/self/cmdline").unwrap();
    assert!(!content.is_empty());
    for linking in Linking::BOTH {
        let answer = Guest::new(READ_FILE)
            .read_only_dir("/proc/self", "proc")
            .args(["proc/cmdline"])
            .run(linking)
            .answer()
            .done();
        assert_eq!(answer.get("fnv"), fnv1a(&content));
    }
}
