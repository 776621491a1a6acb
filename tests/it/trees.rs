//! Trees, as guests ask for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use copyist_test_artifacts::TREE;
use copyist_wasmtime::engine::{Grants, TreeGrants, TreeLimits};
use rustix::fs::{CWD, FileType, Mode};

use crate::host::{Guest, Linking};
use crate::interrupts::{held, start};
use crate::place::{Place, pattern};
use crate::system::{Gate, PATIENCE};

/// A tree `from` with some of everything.
pub(crate) fn place() -> Place {
    let place = Place::new();
    for directory in ["from", "from/sub", "from/sub/below", "from/empty"] {
        fs::create_dir(place.path(directory)).unwrap();
    }
    place.write("from/a.txt", b"tea and copies\n");
    place.write("from/sub/b.bin", &pattern(300_000));
    place.write("from/sub/below/c.o", b"c");
    symlink("sub/b.bin", place.path("from/link")).unwrap();
    place
}

fn with_fifo(place: &Place) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, place.path("from/fifo"), FileType::Fifo, mode, 0).unwrap();
}

fn guest(place: &Place, arguments: &[&str]) -> Guest {
    let all = ["w/from", "w/to"]
        .into_iter()
        .chain(arguments.iter().copied());
    Guest::new(TREE)
        .dir(place.root(), "w")
        .args(all.collect::<Vec<_>>())
}

#[test]
fn a_tree_comes_over_with_all_that_is_in_it() {
    for linking in Linking::BOTH {
        for arguments in [&["--plain"][..], &[], &["--replace", "--durability=end"]] {
            let place = place();
            let answer = guest(&place, arguments).run(linking).answer().done();
            let count = |key| answer.number(key);
            assert_eq!(
                (count("files"), count("directories"), count("links")),
                (3, 4, 1)
            );
            assert_eq!(count("bytes"), 300_016);
            place.assert_holds("to/a.txt", b"tea and copies\n");
            place.assert_holds("to/sub/b.bin", &pattern(300_000));
            place.assert_holds("to/sub/below/c.o", b"c");
            let link = fs::read_link(place.path("to/link")).unwrap();
            assert_eq!(link.to_str(), Some("sub/b.bin"));
        }
    }
}

/// What fails is told by its path, a page at a time, and no path of the host is.
#[test]
fn the_entries_that_fail_and_those_that_are_left_out_are_told() {
    for linking in Linking::BOTH {
        let place = place();
        with_fifo(&place);
        symlink("/etc/hostname", place.path("from/out")).unwrap();
        for file in 0..300 {
            symlink("..", place.path(&format!("from/up{file}"))).unwrap();
        }
        let answer = guest(&place, &["--keep-going"])
            .run(linking)
            .answer()
            .done();
        assert_eq!((answer.number("failed"), answer.number("files")), (302, 3));
        let entries: Vec<_> = answer.get("entries").split(',').collect();
        assert_eq!(entries.len(), 302);
        assert!(entries.contains(&"from/fifo:unsupported"));
        assert!(entries.contains(&"to/out:denied"));
        let place = self::place();
        with_fifo(&place);
        let answer = guest(&place, &["--special=skip", "--exclude=*.o,/empty"])
            .run(linking)
            .answer()
            .done();
        assert_eq!((answer.number("skipped"), answer.number("files")), (3, 2));
        assert_eq!(answer.get("left"), "from/fifo:unsupported");
        assert!(!place.path("to/empty").exists() && !place.path("to/sub/below/c.o").exists());
    }
}

#[test]
fn a_tree_that_fails_says_where() {
    for linking in Linking::BOTH {
        let place = place();
        with_fifo(&place);
        guest(&place, &[])
            .run(linking)
            .answer()
            .failed("unsupported", "-");
        let place = self::place();
        Guest::new(TREE)
            .dir(place.root(), "w")
            .args(["w/from", "w/from/sub/to"])
            .run(linking)
            .answer()
            .failed("same-file", "-");
        assert_eq!(place.names(), ["from"]);
        guest(&place, &["--window=0:1:0"])
            .run(linking)
            .answer()
            .failed("unsupported", "-");
        guest(&place, &["--exclude=a{b"])
            .run(linking)
            .answer()
            .failed("unsupported", "-");
        assert_eq!(place.names(), ["from"]);
    }
}

#[test]
fn rights_hold_for_trees() {
    for linking in Linking::BOTH {
        let place = place();
        Guest::new(TREE)
            .read_only_dir(place.root(), "r")
            .args(["r/from", "r/to"])
            .run(linking)
            .answer()
            .failed("not-permitted", "destination");
        for (from, to, side) in [
            ("w/../x", "w/to", "source"),
            ("w/from", "w/../to", "destination"),
            ("w/from/../../x", "w/to", "source"),
        ] {
            Guest::new(TREE)
                .dir(place.root(), "w")
                .args([from, to])
                .run(linking)
                .answer()
                .failed("not-permitted", side);
        }
        assert_eq!(place.names(), ["from"]);
    }
}

/// What WASI lets no guest make is a grant, and limits are the embedder's.
#[test]
fn an_embedder_grants_and_limits() {
    for linking in Linking::BOTH {
        let place = place();
        with_fifo(&place);
        symlink("/etc/hostname", place.path("from/out")).unwrap();
        guest(&place, &["--special=keep"])
            .run(linking)
            .answer()
            .failed("denied", "-");
        fs::remove_dir_all(place.path("to")).unwrap();
        let answer = guest(
            &place,
            &["--special=keep", "--preserve=mode,timestamps,links"],
        )
        .copying(|copying| {
            copying.grants(Grants::default()).tree_grants(TreeGrants {
                special_files: true,
                leaving_links: true,
            });
        })
        .run(linking)
        .answer()
        .done();
        assert_eq!((answer.number("special"), answer.number("links")), (1, 2));
        let limited = |limits: TreeLimits, bytes: Option<u64>, cause: &str| {
            let place = self::place();
            guest(&place, &["--keep-going"])
                .copying(move |copying| {
                    copying.tree_limits(limits);
                    if let Some(bytes) = bytes {
                        copying.max_bytes(bytes);
                    }
                })
                .run(linking)
                .answer()
                .failed(cause, "-");
        };
        let none = TreeLimits::default();
        let entries = TreeLimits {
            entries: Some(5),
            ..none
        };
        limited(entries, None, "limit:entries");
        let depth = TreeLimits {
            depth: Some(2),
            ..none
        };
        limited(depth, None, "limit:depth");
        limited(none, Some(1000), "limit:bytes");
    }
}

/// It gets no further than the first bytes of its file before the guest has cancelled it.
#[test]
fn a_tree_that_its_guest_cancels_ends_so() {
    for linking in Linking::BOTH {
        // Of one file, so that it is there once two entries are begun.
        let place = Place::new();
        fs::create_dir(place.path("from")).unwrap();
        place.write("from/file", &pattern(300_000));
        let gate = Gate::default();
        let (guest, _pool, _) = held(guest(&place, &["--cancel"]), &gate);
        let ended = start(guest.prepare(linking));
        let since = Instant::now();
        while !place.path("cancelled").exists() {
            assert!(since.elapsed() < PATIENCE, "the guest does not come to it");
            std::thread::yield_now();
        }
        gate.open();
        let ended = ended.recv_timeout(PATIENCE).unwrap();
        ended.answer().failed("cancelled", "-");
        assert!(!place.path("to/file").exists());
    }
}
