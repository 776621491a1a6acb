//! The same as `cp -a`, by a comparison of everything.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::skipped;
use crate::facts;
use crate::support::{Place, archive, pattern};

/// One of every oddity.
fn odd(place: &Place) {
    let is_root = rustix::process::geteuid().is_root();
    place.write("from/empty", "");
    place.write("from/file", pattern(100_000, 1));
    place.write("from/dir/nested/file", pattern(10, 2));
    place.dir("from/empty-dir");
    place.link("file", "from/link");
    place.link("nowhere", "from/dangling");
    place.link("/etc/hostname", "from/absolute");
    place.link("loop", "from/loop");
    place.fifo("from/fifo");
    drop(UnixListener::bind(place.path("from/socket")).unwrap());
    fs::hard_link(place.path("from/file"), place.path("from/dir/same")).unwrap();
    let holes = File::create(place.path("from/holes")).unwrap();
    holes.set_len(1 << 20).unwrap();
    holes.write_all_at(b"data", 500_000).unwrap();
    let old = SystemTime::UNIX_EPOCH - Duration::new(1000, 5);
    holes.set_times(FileTimes::new().set_modified(old)).unwrap();
    let _ = rustix::fs::lsetxattr(
        place.path("from/file"),
        "user.note",
        b"a note",
        rustix::fs::XattrFlags::empty(),
    );
    let _ = rustix::fs::lsetxattr(
        place.path("from/dir"),
        "user.note",
        b"a note",
        rustix::fs::XattrFlags::empty(),
    );
    if is_root {
        chown(place.path("from/empty"), Some(1234), Some(4321)).unwrap();
        chown(place.path("from/dir"), Some(1234), Some(4321)).unwrap();
        std::os::unix::fs::lchown(place.path("from/link"), Some(1234), Some(4321)).unwrap();
        chown(place.path("from/fifo"), Some(1234), Some(4321)).unwrap();
    } else {
        skipped("only root gives files to others");
    }
    for (name, mode) in [
        ("from/empty", 0o4755),
        ("from/dir", 0o2711),
        ("from/dir/nested", 0o555),
        ("from/empty-dir", 0o1700),
        ("from/holes", 0o000),
    ] {
        fs::set_permissions(place.path(name), Permissions::from_mode(mode)).unwrap();
    }
    let past = SystemTime::UNIX_EPOCH + Duration::new(86_400, 987_654_321);
    for name in ["from/dir", "from/empty-dir", "from"] {
        let times = FileTimes::new().set_modified(past);
        File::open(place.path(name))
            .unwrap()
            .set_times(times)
            .unwrap();
    }
    if !is_root {
        fs::set_permissions(place.path("from/holes"), Permissions::from_mode(0o400)).unwrap();
    }
}

fn cp(place: &Place, from: &str, to: &str) {
    let status = Command::new("cp")
        .arg("-a")
        .args([place.path(from), place.path(to)])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_tree_of_oddities_is_as_cp_a_leaves_it() {
    let place = Place::new();
    odd(&place);
    cp(&place, "from", "by-cp");
    for threads in [1, 4] {
        let to = format!("by-{threads}");
        place.copy_by(threads, "from", &to, &archive()).0.unwrap();
        facts::assert_same(&place.path("by-cp"), &place.path(&to), facts::ALL);
    }
    // Over what is there already.
    let (outcome, _) = place.copy_by(4, "from", "by-cp", &archive());
    outcome.unwrap();
    facts::assert_same(&place.path("by-cp"), &place.path("by-4"), facts::ALL);
}
