//! Files with several names.

use std::fs;
use std::os::unix::fs::MetadataExt;

use copyist_engine::{Durability, Existing, Options, Preserve, Symlinks, TreeOptions, WriteMode};

use super::child::alone;
use crate::facts;
use crate::support::{Place, archive, pattern};

fn keeping() -> TreeOptions {
    TreeOptions {
        entries: Options {
            preserve: Preserve::LINKS,
            ..Options::default()
        },
        ..TreeOptions::default()
    }
}

fn group(place: &Place, names: &[&str], bytes: &[u8]) {
    place.write(names[0], bytes);
    for name in &names[1..] {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::hard_link(place.path(names[0]), path).unwrap();
    }
}

#[test]
fn names_of_one_file_are_names_of_one_file() {
    let place = Place::new();
    group(
        &place,
        &["from/a", "from/b", "from/sub/c", "from/sub/deep/d"],
        b"one",
    );
    group(&place, &["from/sub/x", "from/y"], &pattern(300_000, 1));
    // With a name outside of the tree.
    group(&place, &["from/alone", "outside"], b"other");
    for threads in [1, 4] {
        let to = format!("to-{threads}");
        let (outcome, _) = place.copy_by(threads, "from", &to, &keeping());
        let summary = outcome.unwrap();
        assert_eq!((summary.files, summary.links), (3, 4));
        assert!(summary.lost.is_empty());
        let inode = |name: &str| fs::metadata(place.path(&to).join(name)).unwrap();
        assert_eq!(inode("a").ino(), inode("sub/deep/d").ino());
        assert_eq!(inode("a").nlink(), 4);
        assert_eq!(inode("y").ino(), inode("sub/x").ino());
        assert_eq!(inode("alone").nlink(), 1);
        facts::assert_same(&place.path("from"), &place.path(&to), facts::BYTES);
    }
}

#[test]
fn they_are_files_of_their_own_where_that_was_not_asked_for() {
    let place = Place::new();
    group(&place, &["from/a", "from/b"], b"one");
    let summary = place.copy("from", "to", &TreeOptions::default()).unwrap();
    assert_eq!((summary.files, summary.links), (2, 0));
    assert_eq!(fs::metadata(place.path("to/a")).unwrap().nlink(), 1);
}

/// Several threads meet names of the same files at the same time.
#[test]
fn whoever_meets_a_name_while_the_file_is_copied_waits_for_it() {
    let place = Place::new();
    for number in 0..20 {
        let first = place.write(format!("from/0/{number}"), pattern(2 << 20, number));
        for directory in 1..6 {
            place.dir(format!("from/{directory}"));
            fs::hard_link(&first, place.path(format!("from/{directory}/{number}"))).unwrap();
        }
    }
    for round in 0..10 {
        let to = format!("to-{round}");
        let (outcome, _) = place.copy_by(6, "from", &to, &keeping());
        let summary = outcome.unwrap();
        assert_eq!((summary.files, summary.links), (20, 100));
        for number in 0..20 {
            let made = fs::metadata(place.path(format!("{to}/3/{number}"))).unwrap();
            assert_eq!(made.nlink(), 6);
        }
        fs::remove_dir_all(place.path(&to)).unwrap();
    }
}

#[test]
fn what_stands_in_the_way_of_a_name_goes_by_the_rule() {
    let place = Place::new();
    group(&place, &["from/a", "from/b"], b"one");
    let prepare = |to: &str| {
        place.write(format!("{to}/a"), "old a");
        place.write(format!("{to}/b"), "old b");
    };
    let options = |existing, write_mode| {
        let mut options = keeping();
        options.entries.existing = existing;
        options.entries.write_mode = write_mode;
        options
    };
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        let to = format!("write-{write_mode:?}");
        prepare(&to);
        let write = options(Existing::Write, write_mode);
        let summary = place.copy("from", &to, &write).unwrap();
        assert_eq!((summary.files, summary.links), (1, 1));
        assert_eq!(fs::metadata(place.path(&to).join("a")).unwrap().nlink(), 2);
        // Once more: they are one file already.
        let summary = place.copy("from", &to, &write).unwrap();
        assert_eq!((summary.files, summary.links), (1, 1));
        assert_eq!(place.names(&to), ["a", "b"]);
        assert_eq!(place.read(format!("{to}/b")), b"one");
    }
    prepare("skip");
    let summary = place
        .copy("from", "skip", &options(Existing::Skip, WriteMode::InPlace))
        .unwrap();
    assert_eq!((summary.skipped, summary.files), (2, 0));
    assert_eq!(place.read("skip/b"), b"old b");
}

/// The first name could not be copied: the next one is the first.
#[test]
fn a_first_name_that_fails_costs_no_other() {
    let place = Place::new();
    group(&place, &["from/a", "from/b", "from/c"], b"one");
    place.dir("to/a");
    let mut options = keeping();
    options.keep_going = true;
    let summary = place.copy("from", "to", &options).unwrap();
    assert_eq!((summary.failed, summary.files, summary.links), (1, 1, 1));
    assert_eq!(fs::metadata(place.path("to/c")).unwrap().nlink(), 2);
}

#[test]
fn groups_are_kept_with_all_else() {
    let place = Place::new();
    group(&place, &["from/a", "from/sub/b"], b"one");
    place.copy("from", "to", &archive()).unwrap();
    facts::assert_same(&place.path("from"), &place.path("to"), facts::ALL);
}

/// An old file of several names may be what is still to be copied, under another name.
#[test]
fn an_old_file_with_other_names_is_replaced_and_not_written_through() {
    let place = Place::new();
    place.write("from/1", "one");
    place.write("from/2", "two");
    place.dir("to");
    for (old, new) in [("from/2", "to/1"), ("from/1", "to/2")] {
        fs::hard_link(place.path(old), place.path(new)).unwrap();
    }
    place.copy("from", "to", &keeping()).unwrap();
    for (name, bytes) in [
        ("from/1", "one"),
        ("from/2", "two"),
        ("to/1", "one"),
        ("to/2", "two"),
    ] {
        assert_eq!(place.read(name), bytes.as_bytes(), "{name}");
    }
    // And of two names of one file at the destination.
    place.write("more/a", "a");
    place.write("more/b", "b");
    group(&place, &["onto/a", "onto/b"], b"old");
    place.copy("more", "onto", &keeping()).unwrap();
    assert_eq!(
        (place.read("onto/a"), place.read("onto/b")),
        (b"a".to_vec(), b"b".to_vec())
    );
}

/// A link that is followed is no name of the file, and none of those to come.
#[test]
fn links_that_are_followed_lead_to_one_file_with_its_names() {
    let place = Place::new();
    group(&place, &["from/m", "from/z"], &pattern(200_000, 3));
    for name in ["from/a", "from/b", "from/y"] {
        place.link("m", name);
    }
    for (threads, durability) in [
        (1, Durability::None),
        (4, Durability::None),
        (1, Durability::End),
    ] {
        let mut options = keeping();
        options.symlinks = Symlinks::Follow;
        options.entries.write_mode = WriteMode::Replace;
        options.entries.durability = durability;
        let to = format!("to-{threads}-{durability:?}");
        let (outcome, _) = place.copy_by(threads, "from", &to, &options);
        let summary = outcome.unwrap();
        assert_eq!((summary.files, summary.links), (1, 4));
        for name in ["a", "b", "m", "y", "z"] {
            let made = fs::symlink_metadata(place.path(&to).join(name)).unwrap();
            assert_eq!((made.nlink(), made.len()), (5, 200_000), "{name}");
        }
    }
}

/// Whoever waited for another is one entry, however often it is looked at.
#[test]
fn names_that_wait_are_counted_once() {
    let place = Place::new();
    let names: Vec<_> = (0..20).map(|name| format!("from/{name}")).collect();
    group(
        &place,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        b"one",
    );
    let mut options = keeping();
    options.entries.write_mode = WriteMode::Replace;
    options.entries.durability = Durability::End;
    options.limits.entries = Some(21);
    let summary = place.copy("from", "to", &options).unwrap();
    assert_eq!((summary.files, summary.links), (1, 19));
}

/// A directory that is done keeps nothing open because a name in it may be wanted again.
#[test]
fn directories_with_names_that_are_remembered_are_closed() {
    alone(
        directories_with_names_that_are_remembered_are_closed,
        || {
            let place = Place::new();
            for number in 0..400 {
                group(
                    &place,
                    &[&format!("from/{number}/file"), &format!("outside/{number}")],
                    b"one",
                );
            }
            let of = rustix::process::Resource::Nofile;
            let maximum = rustix::process::getrlimit(of).maximum;
            let limit = |current| {
                let limit = rustix::process::Rlimit { current, maximum };
                rustix::process::setrlimit(of, limit).unwrap();
            };
            limit(Some(100));
            let (outcome, _) = place.copy_by(1, "from", "to", &keeping());
            limit(maximum);
            assert_eq!(outcome.unwrap().files, 400);
        },
    );
}
