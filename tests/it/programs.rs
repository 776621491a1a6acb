//! Every guest program doing what it is for.

use std::sync::Arc;

use copyist_test_artifacts::{
    ENDPOINTS, HOSTILE, JOB, OPTIONS, READ_FILE, SDK, STD_COPY, STREAMS, TRANSFER_FILE,
    TRANSFER_PATH, TREE, VERBATIM,
};
use copyist_wasmtime::Endpoint;
use copyist_wasmtime::engine::{Mechanism, Pool, PoolOptions, Tuning};

use crate::host::{Guest, Linking};
use crate::place::{Place, fnv1a, pattern};
use crate::system::Altered;

macro_rules! assert_test_exists {
    ($name:ident) => {
        #[allow(unused_imports, reason = "that it exists is enough")]
        use self::$name as _;
    };
}
copyist_test_artifacts::foreach_guest!(assert_test_exists);

const SIZES: [usize; 5] = [0, 1, 4096, 300_000, (16 << 20) + 1];

#[test]
fn transfer_path() {
    for linking in Linking::BOTH {
        for size in SIZES {
            let content = pattern(size);
            let place = Place::with("from", &content);
            let answer = Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/from", "w/to"])
                .run(linking)
                .answer()
                .done();
            place.assert_holds("to", &content);
            let size = size as u64;
            assert_eq!(answer.number("bytes"), size);
            assert_eq!(answer.number("consumed"), size);
            let cloned = answer.get("method") == "clone";
            assert_eq!(answer.number("shared"), if cloned { size } else { 0 });
            assert_eq!(answer.get("method") == "none", size == 0);
            assert_eq!(answer.number("skipped"), 0);
            assert_eq!((answer.get("lost"), answer.get("changed")), ("-", "false"));
            assert_eq!(place.names(), ["from", "to"]);
        }
    }
}

#[test]
fn transfer_file() {
    for linking in Linking::BOTH {
        for size in SIZES {
            let content = pattern(size);
            let place = Place::with("from", &content);
            // Longer than the source: it is cut.
            place.write("to", &pattern(size + 10_000));
            let answer = Guest::new(TRANSFER_FILE)
                .dir(place.root(), "w")
                .args(["w/from", "w/to"])
                .run(linking)
                .answer()
                .done();
            place.assert_holds("to", &content);
            assert_eq!(answer.number("bytes"), size as u64);
        }
    }
}

#[test]
fn read_file() {
    for linking in Linking::BOTH {
        let content = pattern(300_000);
        let place = Place::with("file", &content);
        let answer = Guest::new(READ_FILE)
            .read_only_dir(place.root(), "r")
            .args(["r/file"])
            .run(linking)
            .answer()
            .done();
        assert_eq!(answer.number("bytes"), 300_000);
        assert_eq!(answer.get("fnv"), fnv1a(&content));
    }
}

#[test]
fn sdk() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let guest = Guest::new(SDK).dir(place.root(), "/data").args(["/data"]);
        guest.run(linking).output();
    }
}

#[test]
fn options() {
    for linking in Linking::BOTH {
        Guest::new(OPTIONS).run(linking).answer().done();
    }
}

#[test]
fn job() {
    for linking in Linking::BOTH {
        for size in SIZES {
            let content = pattern(size);
            let place = Place::with("from", &content);
            let steps = [
                "start:w/from:w/to",
                "wait:0",
                "progress:0",
                "outcome:0",
                "drop:0",
            ];
            let guest = Guest::new(JOB).dir(place.root(), "w").args(steps);
            let answers = guest.run(linking).answers();
            let [waited, progress, again] = answers.try_into().unwrap();
            let size = size as u64;
            for outcome in [waited, again] {
                assert_eq!(outcome.done().number("bytes"), size);
            }
            assert_eq!(progress.number("bytes"), size);
            let total = size.to_string();
            let promised = if size == 0 { "-" } else { &total };
            assert_eq!(progress.get("total"), promised);
            assert_eq!(progress.number("entries"), 1);
            place.assert_holds("to", &content);
            assert_eq!(place.names(), ["from", "to"]);
        }
    }
}

#[test]
fn endpoints() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"tea and copies\n");
        let (reader, writer) = std::io::pipe().unwrap();
        let guest = Guest::new(ENDPOINTS)
            .dir(place.root(), "w")
            .args(["names", "open:out", "copy:w/from:@out", "finish:out"])
            .copying(|copying| {
                copying.endpoint("out", Endpoint::owned(writer));
            });
        let answers = guest.run(linking).answers();
        assert_eq!(answers[0].get("names"), "out");
        assert_eq!(answers[2].number("bytes"), 15);
        assert_eq!(std::io::read_to_string(reader).unwrap(), "tea and copies\n");
    }
}

#[test]
fn std_copy() {
    for linking in Linking::BOTH {
        let content = pattern(300_000);
        let place = Place::with("from", &content);
        let answer = Guest::new(STD_COPY)
            .dir(place.root(), "w")
            .args(["w/from", "w/to"])
            .run(linking)
            .answer()
            .done();
        assert_eq!(answer.number("bytes"), 300_000);
        place.assert_holds("to", &content);
    }
}

#[test]
fn streams() {
    for linking in Linking::BOTH {
        let content = pattern(300_000);
        let place = Place::with("from", &content);
        let steps = [
            "input:in:file=w/from",
            "output:out:file=w/to",
            "copy:%in:%out",
        ];
        let guest = Guest::new(STREAMS).dir(place.root(), "w").args(steps);
        assert_eq!(guest.run(linking).answer().done().number("bytes"), 300_000);
        place.assert_holds("to", &content);
    }
}

#[test]
fn verbatim() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"tea and copies\n");
        let say = |words: &[&str]| {
            let guest = Guest::new(VERBATIM).dir(place.root(), "w");
            let ended = guest.args(["--dir=w"]).args(words.to_vec()).run(linking);
            ended.output().trim_end().to_owned()
        };
        assert_eq!(say(&["bytes", "from"]), "Ok(15)");
        assert_eq!(say(&["text", "from"]), "Ok(15)");
        let copied = say(&["copy", "from", "to"]);
        assert!(copied.starts_with("Ok(Summary { bytes: 15, "), "{copied}");
        // The fields that the programs of one line leave out.
        assert!(
            copied
                .contains("files: 1, directories: 0, links: 0, special: 0, skipped: 0, failed: 0"),
            "{copied}"
        );
    }
}

#[test]
fn hostile() {
    for linking in Linking::BOTH {
        let place = crate::hostile::place();
        let guest = Guest::new(HOSTILE).dir(place.root(), "w").args(["w"]);
        crate::hostile::check(guest.run(linking).output(), &place);
    }
}

/// See `trees.rs`.
#[test]
fn tree() {
    for linking in Linking::BOTH {
        let place = crate::trees::place();
        let guest = Guest::new(TREE).dir(place.root(), "w");
        let answer = guest.args(["w/from", "w/to"]).run(linking).answer().done();
        assert_eq!(answer.number("files"), 3);
    }
}

#[test]
fn fuzz() {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    for linking in Linking::BOTH {
        crate::fuzz::run(linking, &pool, 0);
    }
}

/// The rest of what a summary says.
#[test]
fn a_summary_names_the_mechanism_that_was_used() {
    for linking in Linking::BOTH {
        for mechanism in [
            Mechanism::CopyRange,
            Mechanism::SendFile,
            Mechanism::ReadWrite,
        ] {
            let content = pattern(100_000);
            let place = Place::with("from", &content);
            let tuning = Tuning {
                only: Some(mechanism),
                ..Tuning::default()
            };
            let answer = Guest::new(TRANSFER_PATH)
                .dir(place.root(), "w")
                .args(["w/from", "w/to"])
                .copying(|copying| {
                    copying.tuning(tuning);
                })
                .run(linking)
                .answer()
                .done();
            assert_eq!(answer.get("method"), mechanism.name());
            assert_eq!(answer.number("shared"), 0);
            place.assert_holds("to", &content);
        }
    }
}

#[test]
fn a_summary_says_how_much_is_shared() {
    for linking in Linking::BOTH {
        let content = pattern(100_000);
        let place = Place::with("from", &content);
        let answer = Guest::new(TRANSFER_PATH)
            .dir(place.root(), "w")
            .args(["w/from", "w/to"])
            .copying(|copying| {
                copying.pool(Altered::with_clones().pool());
            })
            .run(linking)
            .answer()
            .done();
        assert_eq!(answer.get("method"), "clone");
        assert_eq!(answer.number("shared"), 100_000);
        assert_eq!(answer.number("bytes"), 100_000);
        place.assert_holds("to", &content);
    }
}
