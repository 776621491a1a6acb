//! Into a tree that is there.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use copyist_engine::{
    Cause, Durability, Errno, Existing, Options, Side, Special, TreeGrants, TreeOptions, WriteMode,
};

use crate::support::{Place, archive};

fn by(existing: Existing) -> TreeOptions {
    TreeOptions {
        entries: Options {
            existing,
            ..Options::default()
        },
        special: Special::Keep,
        grants: TreeGrants {
            special_files: true,
            ..TreeGrants::default()
        },
        ..TreeOptions::default()
    }
}

/// The destination has some of it, and more.
fn place() -> Place {
    let place = Place::new();
    for name in ["a", "b", "sub/c", "sub/new"] {
        place.write(format!("from/{name}"), "new");
    }
    place.link("a", "from/link");
    place.fifo("from/fifo");
    for name in ["a", "sub/c", "sub/more", "more"] {
        place.write(format!("to/{name}"), "older");
    }
    place.link("elsewhere", "to/link");
    let past = SystemTime::now() - Duration::from_secs(1000);
    for name in ["to/a", "from/sub/c"] {
        let file = File::options().write(true).open(place.path(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(past)).unwrap();
    }
    place
}

#[test]
fn what_is_there_is_written() {
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        for durability in [Durability::None, Durability::Each, Durability::End] {
            let place = place();
            let mut options = by(Existing::Write);
            options.entries.write_mode = write_mode;
            options.entries.durability = durability;
            let summary = place.copy("from", "to", &options).unwrap();
            assert_eq!((summary.files, summary.links, summary.special), (4, 1, 1));
            assert_eq!(place.names("to"), ["a", "b", "fifo", "link", "more", "sub"]);
            assert_eq!(place.names("to/sub"), ["c", "more", "new"]);
            assert_eq!(place.read("to/a"), b"new");
            assert_eq!(place.read("to/sub/c"), b"new");
            assert_eq!(place.read("to/more"), b"older");
            assert_eq!(
                fs::read_link(place.path("to/link")).unwrap().to_str(),
                Some("a")
            );
        }
    }
}

#[test]
fn what_is_there_is_left() {
    let place = place();
    let summary = place.copy("from", "to", &by(Existing::Skip)).unwrap();
    assert_eq!((summary.files, summary.skipped, summary.links), (2, 3, 0));
    assert_eq!(place.read("to/a"), b"older");
    assert_eq!(place.read("to/b"), b"new");
    assert_eq!(place.read("to/sub/new"), b"new");
}

#[test]
fn what_is_newer_is_left() {
    let place = place();
    let summary = place.copy("from", "to", &by(Existing::Update)).unwrap();
    assert_eq!(place.read("to/a"), b"new");
    assert_eq!(place.read("to/sub/c"), b"older");
    // The link of the destination was made later.
    assert_eq!((summary.files, summary.skipped), (3, 2));
}

#[test]
fn what_is_there_is_a_failure() {
    let place = place();
    let mut options = by(Existing::Refuse);
    options.keep_going = true;
    let (outcome, report) = place.copy_by(1, "from", "to", &options);
    let summary = outcome.unwrap();
    assert_eq!((summary.files, summary.failed), (2, 3));
    let is_there = Cause::Io(Side::Destination, Errno::EXIST);
    assert!(
        report
            .failed(0, 9)
            .iter()
            .all(|entry| entry.cause == is_there)
    );
    assert_eq!(place.read("to/a"), b"older");
}

/// <https://github.com/uutils/coreutils/issues/13624>: what a link leads to is no part of the
/// destination.
#[test]
fn uutils_13624_a_directory_does_not_go_into_a_link_or_a_file() {
    let place = Place::new();
    place.write("from/sub/file", "text");
    place.dir("elsewhere");
    place.dir("to-link");
    place.link("../elsewhere", "to-link/sub");
    place.write("to-file/sub", "kept");
    for to in ["to-link", "to-file"] {
        let error = place.copy("from", to, &by(Existing::Write)).unwrap_err();
        assert_eq!(
            error.cause,
            Cause::Io(Side::Destination, Errno::EXIST),
            "{to}"
        );
        let summary = place.copy("from", to, &by(Existing::Skip)).unwrap();
        assert_eq!((summary.files, summary.skipped), (0, 1), "{to}");
    }
    assert!(place.names("elsewhere").is_empty());
    assert_eq!(place.read("to-file/sub"), b"kept");
}

/// With nothing preserved, a directory that was there keeps what it had.
#[test]
fn a_directory_that_was_there_keeps_its_attributes() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = place();
    let set = |name: &str, mode| {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("from/sub", 0o750);
    set("to/sub", 0o701);
    place.copy("from", "to", &by(Existing::Write)).unwrap();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().mode() & 0o7777;
    assert_eq!(mode("to/sub"), 0o701);
    let mut options = archive();
    options.entries.existing = Existing::Write;
    place.copy("from", "to", &options).unwrap();
    assert_eq!(mode("to/sub"), 0o750);
}
