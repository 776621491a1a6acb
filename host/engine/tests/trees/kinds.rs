//! What is no file and no directory.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use copyist_engine::{
    Cause, Errno, Refused, Side, Special, Symlinks, TreeGrants, TreeOptions, Unsupported,
};

use super::child::as_nobody;
use super::skipped;
use crate::facts::{self, BYTES};
use crate::support::{Place, archive};

/// What /dev/null stands for (makedev(3), 1 and 3).
const NULL: u64 = 0x103;

fn refused_special() -> Cause {
    Cause::Unsupported(Unsupported::Kind(Side::Source, Refused::Special))
}

fn with(symlinks: Symlinks) -> TreeOptions {
    TreeOptions {
        symlinks,
        keep_going: true,
        ..TreeOptions::default()
    }
}

/// <https://github.com/oven-sh/bun/issues/30073>,
/// <https://github.com/oven-sh/bun/issues/28998>: whatever it says and wherever it leads.
#[test]
fn bun_30073_28998_links_keep_their_text() {
    let place = Place::new();
    place.write("from/sub/file", "text");
    for (text, name) in [
        ("file", "from/sub/beside"),
        ("../sub/file", "from/sub/up"),
        ("nowhere", "from/dangling"),
        ("loop", "from/loop"),
        (".", "from/sub/here"),
        ("sub", "from/directory"),
        ("sub/../sub//./file", "from/odd"),
    ] {
        place.link(text, name);
    }
    // XFS has none that are longer.
    place.link("n/".repeat(511) + "n", "from/long");
    let summary = place.copy("from", "to", &TreeOptions::default()).unwrap();
    assert_eq!(
        (summary.links, summary.files, summary.directories),
        (8, 1, 2)
    );
    facts::assert_same(&place.path("from"), &place.path("to"), BYTES);
}

#[test]
fn links_that_leave_the_tree_are_a_grant() {
    let place = Place::new();
    place.dir("from/sub");
    let leaving = ["/etc/hostname", "..", "../from", "sub/../../x", "/"];
    for (number, text) in leaving.iter().enumerate() {
        place.link(text, format!("from/{number}"));
    }
    place.link("../..", "from/sub/far");
    place.link("..", "from/sub/near");
    let options = with(Symlinks::Keep);
    let (outcome, report) = place.copy_by(1, "from", "to", &options);
    let summary = outcome.unwrap();
    assert_eq!((summary.links, summary.failed), (1, 6));
    let failed = report.failed(0, 100);
    assert!(failed.iter().all(|entry| entry.cause == Cause::Denied));
    assert_eq!(place.names("to"), ["sub"]);
    assert_eq!(place.names("to/sub"), ["near"]);
    let granted = TreeOptions {
        grants: TreeGrants {
            leaving_links: true,
            ..TreeGrants::default()
        },
        ..options
    };
    let summary = place.copy("from", "granted", &granted).unwrap();
    assert_eq!((summary.links, summary.failed), (7, 0));
    facts::assert_same(&place.path("from"), &place.path("granted"), BYTES);
}

#[test]
fn links_are_left_out() {
    let place = Place::new();
    place.write("from/file", "text");
    place.link("file", "from/link");
    let summary = place.copy("from", "to", &with(Symlinks::Skip)).unwrap();
    assert_eq!((summary.skipped, summary.links), (1, 0));
    assert_eq!(place.names("to"), ["file"]);
}

/// <https://github.com/nodejs/node/issues/58939>, <https://github.com/nodejs/node/issues/54730>,
/// <https://github.com/nodejs/node/issues/62402>: links to directories, and those that lead in a circle,
/// which cost no other entry.
#[test]
fn node_58939_54730_62402_links_are_followed_beneath_and_no_further() {
    let place = Place::new();
    place.write("from/file", "text");
    place.write("from/sub/inner", "inner");
    place.write("other/file", "beside");
    let outside = Place::new();
    outside.write("secret", "secret");
    place.link("file", "from/to-file");
    place.link("sub", "from/to-sub");
    place.link("../other", "from/to-other");
    place.link("nowhere", "from/dangling");
    place.link("loop", "from/loop");
    place.link("..", "from/sub/cycle");
    place.link(outside.path("secret"), "from/secret");
    place.link("../../../../../../etc", "from/etc");
    let (outcome, report) = place.copy_by(1, "from", "to", &with(Symlinks::Follow));
    let summary = outcome.unwrap();
    let mut failed: Vec<_> = report
        .failed(0, 100)
        .into_iter()
        .map(|entry| (entry.path.to_str().unwrap().to_owned(), entry.cause))
        .collect();
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    let io = |errno| Cause::Io(Side::Source, errno);
    assert_eq!(
        failed,
        [
            ("from/dangling", io(Errno::NOENT)),
            ("from/etc", io(Errno::PERM)),
            ("from/loop", io(Errno::LOOP)),
            ("from/secret", io(Errno::PERM)),
            ("from/sub/cycle", io(Errno::LOOP)),
            ("from/to-sub/cycle", io(Errno::LOOP)),
        ]
        .map(|(path, cause)| (path.to_owned(), cause))
    );
    assert_eq!(summary.failed, 6);
    assert_eq!(
        place.names("to"),
        ["file", "sub", "to-file", "to-other", "to-sub"]
    );
    assert!(
        !fs::symlink_metadata(place.path("to/to-sub"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(place.read("to/to-other/file"), b"beside");
    assert_eq!(place.read("to/to-sub/inner"), b"inner");
    assert_eq!(place.read("to/to-file"), b"text");
}

fn special_tree(place: &Place) {
    place.write("from/a", "text");
    place.fifo("from/fifo");
    drop(UnixListener::bind(place.path("from/socket")).unwrap());
    place.write("from/z", "text");
}

/// Nothing of them is opened: a FIFO without a writer would wait.
#[test]
fn special_files_are_refused_skipped_or_made() {
    let place = Place::new();
    special_tree(&place);
    let error = place
        .copy("from", "refused", &TreeOptions::default())
        .unwrap_err();
    assert_eq!(error.cause, refused_special());
    let keep_going = TreeOptions {
        keep_going: true,
        ..TreeOptions::default()
    };
    let summary = place.copy("from", "on", &keep_going).unwrap();
    assert_eq!((summary.files, summary.failed), (2, 2));
    let skip = TreeOptions {
        special: Special::Skip,
        ..TreeOptions::default()
    };
    let (outcome, report) = place.copy_by(1, "from", "skipped", &skip);
    assert_eq!(outcome.unwrap().skipped, 2);
    let skipped = report.skipped(0, 100);
    assert!(skipped.iter().all(|entry| entry.cause == refused_special()));
    assert_eq!(place.names("skipped"), ["a", "z"]);
    let denied = TreeOptions {
        special: Special::Keep,
        ..TreeOptions::default()
    };
    assert_eq!(
        place.copy("from", "denied", &denied).unwrap_err().cause,
        Cause::Denied
    );
    let summary = place.copy("from", "kept", &archive()).unwrap();
    assert_eq!((summary.files, summary.special), (2, 2));
    facts::assert_same(&place.path("from"), &place.path("kept"), facts::ALL);
}

/// <https://github.com/uutils/coreutils/issues/9746>, <https://github.com/uutils/coreutils/issues/8679>,
/// <https://github.com/uutils/coreutils/issues/9433>: and is not read.
#[test]
fn uutils_9746_8679_9433_a_device_stands_for_the_same() {
    let place = Place::new();
    place.dir("from");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("from/null"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::from_raw_mode(0o622),
        NULL,
    );
    if let Err(errno) = made {
        skipped(&format!("no device can be made: {errno}"));
        return;
    }
    let mode = fs::Permissions::from_mode(0o622);
    fs::set_permissions(place.path("from/null"), mode).unwrap();
    place.copy("from", "to", &archive()).unwrap();
    let made = fs::metadata(place.path("to/null")).unwrap();
    assert!(made.file_type().is_char_device());
    assert_eq!((made.rdev(), made.mode() & 0o7777), (NULL, 0o622));
}

/// What stands in the way and is no regular file is never written to.
#[test]
fn a_file_is_not_written_into_what_is_none() {
    let place = Place::new();
    place.write("from/name", "text");
    type Prepare = fn(&Place);
    let prepared: [(&str, Prepare); 3] = [
        ("fifo", |place| place.fifo("fifo/name")),
        ("link", |place| {
            place.write("target", "kept");
            place.link("../target", "link/name");
        }),
        ("directory", |place| drop(place.dir("directory/name"))),
    ];
    for (to, prepare) in prepared {
        place.dir(to);
        prepare(&place);
        let error = place.copy("from", to, &TreeOptions::default()).unwrap_err();
        assert_eq!(
            error.path.as_deref(),
            Some(Path::new(to).join("name").as_path())
        );
        assert_eq!(error.done.files, 0, "{to}");
    }
    assert_eq!(place.read("target"), b"kept");
}

/// <https://github.com/denoland/std/issues/3454>, <https://github.com/uutils/coreutils/issues/12191>: of
/// what a link leads to nothing is changed, and nothing need be there.
#[test]
fn std_3454_uutils_12191_attributes_of_a_link_are_not_those_of_what_it_leads_to() {
    let place = Place::new();
    place.dir("from");
    let target = place.write("target", "kept");
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(5000);
    let file = fs::File::options().write(true).open(&target).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(past))
        .unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&target).unwrap();
    place.link("../target", "from/link");
    place.link("nowhere", "from/dangling");
    place.copy("from", "to", &archive()).unwrap();
    let after = fs::metadata(&target).unwrap();
    let told = |it: &fs::Metadata| (it.mode(), it.mtime(), it.ctime(), it.ctime_nsec());
    assert_eq!(told(&before), told(&after));
    facts::assert_same(&place.path("from"), &place.path("to"), facts::ALL);
}

/// <https://github.com/moby/moby/issues/36756>: who may make no device may make the others.
#[test]
fn moby_36756_fifos_and_sockets_are_made_without_the_right_to_make_devices() {
    as_nobody(
        moby_36756_fifos_and_sockets_are_made_without_the_right_to_make_devices,
        || {
            let place = Place::new();
            special_tree(&place);
            let summary = place.copy("from", "to", &archive()).unwrap();
            assert_eq!((summary.files, summary.special), (2, 2));
        },
    );
}
