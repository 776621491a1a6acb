//! What a failure tells a guest, word for word: what it gave itself, and nothing of the host.

use copyist_test_artifacts::VERBATIM;
use copyist_wasmtime::engine::Errno;

use crate::host::{Guest, Linking};
use crate::place::Place;
use crate::system::{Altered, Call};

/// What WASI has a word for, which guests of `wasi:filesystem` see too.
const WORDS: [(Errno, &str); 8] = [
    (Errno::ACCESS, "access"),
    (Errno::DQUOT, "quota"),
    (Errno::FBIG, "file-too-large"),
    (Errno::NOSPC, "insufficient-space"),
    (Errno::NXIO, "no-such-device"),
    (Errno::ROFS, "read-only"),
    (Errno::TXTBSY, "text-file-busy"),
    // And what it has none for.
    (Errno::REMOTEIO, "io"),
];

fn say(guest: Guest, words: &[&str], linking: Linking) -> String {
    let ended = guest.args(["--dir=w"]).args(words.to_vec()).run(linking);
    ended.output().trim_end().to_owned()
}

#[test]
fn it_names_the_path_that_the_guest_gave() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        place.write("to", b"bytes");
        let guest = || Guest::new(VERBATIM).dir(place.root(), "w");
        let table: [(&[&str], &str, &str); 6] = [
            (
                &["copy", "./absent", "to"],
                "Side::Source",
                "Some(\"./absent\")",
            ),
            (
                &["copy", "from", "absent//to"],
                "Side::Destination",
                "Some(\"absent//to\")",
            ),
            (
                &["bytes", "sub/../from"],
                "Side::Source",
                "Some(\"sub/../from\")",
            ),
            (&["text", ".."], "Side::Source", "Some(\"..\")"),
            (&["copy", "from", "."], "Side::Destination", "Some(\".\")"),
            (
                &["copy", "from", "./from"],
                "Cause::SameFile",
                "Some(\"./from\")",
            ),
        ];
        for (words, cause, path) in table {
            let said = say(guest(), words, linking);
            assert!(
                said.contains(cause) && said.contains(&format!("path: {path}")),
                "{said}"
            );
        }
    }
}

/// The fixture looks through everything that any guest prints for paths of the host and for the
/// system's own words; this makes the host say as much as it can.
#[test]
fn it_has_the_word_of_wasi_and_not_of_the_system() {
    for linking in Linking::BOTH {
        for (errno, word) in WORDS {
            let place = Place::with("from", b"bytes");
            let guest = |which| {
                Guest::new(VERBATIM)
                    .dir(place.root(), "w")
                    .copying(|copying| {
                        copying.pool(Altered::failing(which, errno).pool());
                    })
            };
            let said = say(guest(Call::Read), &["bytes", "from"], linking);
            assert!(said.contains(&format!("name: {word:?}")), "{said}");

            let tuned = guest(Call::Write).copying(|copying| {
                copying.tuning(copyist_wasmtime::engine::Tuning {
                    force_fallback: true,
                    ..Default::default()
                });
            });
            let said = say(tuned, &["copy", "from", "to"], linking);
            assert!(said.contains(&format!("name: {word:?}")), "{said}");
            assert!(said.contains("Side::Destination"), "{said}");
            assert!(!place.exists("to"));
        }
    }
}

#[test]
fn a_defect_of_the_host_is_told_without_its_words() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let guest = Guest::new(VERBATIM)
            .dir(place.root(), "w")
            .copying(|copying| {
                let system = Altered::new(|_| panic!("the inner words of the host"));
                copying.pool(system.pool());
            });
        let said = say(guest, &["copy", "from", "to"], linking);
        assert!(said.contains("Cause::Other"), "{said}");
        assert!(!said.contains("inner words"), "{said}");
        assert_eq!(place.names(), ["from"]);
    }
}
