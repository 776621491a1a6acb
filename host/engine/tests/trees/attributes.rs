//! What directories get, and when.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

use copyist_engine::{Options, Preserve, TreeOptions, WriteMode};
use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;

use super::child::{alone, as_nobody};
use super::skipped;
use crate::facts;
use crate::support::{Place, archive};

fn set_mode(place: &Place, name: &str, mode: u32) {
    fs::set_permissions(place.path(name), Permissions::from_mode(mode)).unwrap();
}

fn mode(place: &Place, name: &str) -> u32 {
    fs::metadata(place.path(name)).unwrap().mode() & 0o7777
}

/// <https://github.com/tonistiigi/fsutil/issues/139>, <https://github.com/tonistiigi/fsutil/issues/140>,
/// <https://github.com/tonistiigi/fsutil/issues/207>: whatever is made in them changes their times.
#[test]
fn fsutil_139_140_207_directories_get_their_attributes_after_what_is_in_them() {
    let place = Place::new();
    for name in ["from/a/b/c", "from/a/b/d", "from/e/f"] {
        place.write(name, "text");
    }
    let mut past = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 123_456_789);
    for name in ["from/a/b", "from/a", "from/e", "from"] {
        let directory = File::open(place.path(name)).unwrap();
        past += Duration::new(1, 1);
        directory
            .set_times(FileTimes::new().set_modified(past))
            .unwrap();
    }
    for (name, mode) in [("from/a/b", 0o555), ("from/a", 0o500), ("from/e", 0o1777)] {
        set_mode(&place, name, mode);
    }
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        for threads in [1, 4] {
            let mut options = archive();
            options.entries.write_mode = write_mode;
            let to = format!("{write_mode:?}-{threads}");
            place.copy_by(threads, "from", &to, &options).0.unwrap();
            facts::assert_same(&place.path("from"), &place.path(&to), facts::ALL);
        }
    }
}

/// <https://github.com/uutils/coreutils/issues/10862>, <https://github.com/uutils/coreutils/issues/14549>:
/// also one that takes from the owner what the copy itself needs.
#[test]
fn uutils_10862_14549_a_directory_has_the_sources_mode_less_the_umask() {
    alone(
        uutils_10862_14549_a_directory_has_the_sources_mode_less_the_umask,
        by_umasks,
    );
}

fn by_umasks() {
    let place = Place::new();
    place.write("from/open/file", "text");
    place.write("from/closed/file", "text");
    place.write("from/read/file", "text");
    for (name, mode) in [
        ("from/open", 0o777),
        ("from/closed", 0o700),
        ("from/read", 0o555),
    ] {
        set_mode(&place, name, mode);
    }
    for umask in [0o022, 0o000, 0o077, 0o222, 0o700] {
        let to = format!("to-{umask:o}");
        let before = rustix::process::umask(Mode::from_raw_mode(umask));
        place.copy("from", &to, &TreeOptions::default()).unwrap();
        rustix::process::umask(before);
        for (name, mode_of_source) in [("open", 0o777), ("closed", 0o700), ("read", 0o555)] {
            let made = mode(&place, &format!("{to}/{name}"));
            assert_eq!(made, mode_of_source & !umask, "{name} by {umask:o}");
            set_mode(&place, &format!("{to}/{name}"), 0o755);
        }
        set_mode(&place, &to, 0o755);
    }
    set_mode(&place, "from/read", 0o755);
}

#[test]
fn what_is_not_granted_is_lost() {
    let place = Place::new();
    place.write("from/sub/file", "text");
    set_mode(&place, "from/sub", 0o1777);
    let options = TreeOptions {
        entries: Options {
            preserve: Preserve::MODE | Preserve::OWNERSHIP,
            ..Options::default()
        },
        ..TreeOptions::default()
    };
    let summary = place.copy("from", "to", &options).unwrap();
    assert_eq!(summary.lost, Preserve::MODE | Preserve::OWNERSHIP);
    assert_eq!(mode(&place, "to/sub"), 0o777);
    let mut required = options;
    required.entries.require = Preserve::MODE;
    let error = place.copy("from", "required", &required).unwrap_err();
    assert_eq!(error.cause, copyist_engine::Cause::Denied);
}

/// <https://github.com/uutils/coreutils/issues/11318>, <https://github.com/hpc/mpifileutils/issues/400>: who
/// is not root may make nothing in a directory that is to be read only.
#[test]
fn uutils_11318_mpifileutils_400_a_read_only_directory_gets_what_is_in_it() {
    as_nobody(
        uutils_11318_mpifileutils_400_a_read_only_directory_gets_what_is_in_it,
        read_only_directories,
    );
}

fn read_only_directories() {
    let place = Place::new();
    place.write("from/sub/below/file", "text");
    place.write("from/sub/file", "text");
    for name in ["from/sub/below", "from/sub"] {
        set_mode(&place, name, 0o555);
    }
    let mut kept = archive();
    kept.entries.preserve = Preserve::MODE | Preserve::TIMESTAMPS;
    for (to, options) in [("plain", TreeOptions::default()), ("kept", kept)] {
        let summary = place.copy("from", to, &options).unwrap();
        assert_eq!(summary.files, 2);
        assert_eq!(mode(&place, &format!("{to}/sub")), 0o555);
        for name in [format!("{to}/sub"), format!("{to}/sub/below")] {
            set_mode(&place, &name, 0o755);
        }
    }
    for name in ["from/sub", "from/sub/below"] {
        set_mode(&place, name, 0o755);
    }
}

/// <https://github.com/containerd/continuity/issues/147>,
/// <https://github.com/shadow-maint/shadow/issues/1646>: attributes, and the list for what will be made in
/// it.
#[test]
fn continuity_147_shadow_1646_a_directory_has_attributes_and_lists() {
    /// Version 2; the owner, a user of the number 1, the group, the mask and others (acl(5)).
    const LIST: &[u8] = &[
        2, 0, 0, 0, // the version
        1, 0, 7, 0, 255, 255, 255, 255, // the owner
        2, 0, 7, 0, 1, 0, 0, 0, // a user
        4, 0, 5, 0, 255, 255, 255, 255, // the group
        16, 0, 7, 0, 255, 255, 255, 255, // the mask
        32, 0, 5, 0, 255, 255, 255, 255, // others
    ];
    let place = Place::new();
    place.write("from/sub/file", "text");
    for (name, value) in [
        ("user.note", &b"a note"[..]),
        ("system.posix_acl_access", LIST),
        ("system.posix_acl_default", LIST),
    ] {
        let path = place.path("from/sub");
        match rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP) => {
                skipped(&format!("{name} cannot be set here"));
                return;
            }
            Err(errno) => panic!("{name}: {errno}"),
        }
    }
    // Made after the list was: it has one of its own.
    place.write("from/sub/later", "text");
    place.dir("from/sub/below");
    place.copy("from", "to", &archive()).unwrap();
    facts::assert_same(&place.path("from"), &place.path("to"), facts::ALL);
    let facts = facts::of(&place.path("to"), facts::ALL);
    let sub = &facts[std::path::Path::new("sub")];
    assert!(
        sub.contains("posix_acl_default") && sub.contains("a note"),
        "{sub}"
    );
}

/// One that its owner may write and not list, at the destination.
#[test]
fn a_directory_that_may_not_be_listed_is_written_into() {
    as_nobody(a_directory_that_may_not_be_listed_is_written_into, || {
        let place = Place::new();
        place.write("from/sub/below/file", "text");
        place.dir("to/sub");
        set_mode(&place, "to/sub", 0o300);
        let summary = place.copy("from", "to", &TreeOptions::default()).unwrap();
        assert_eq!(summary.files, 1);
        assert_eq!(mode(&place, "to/sub"), 0o300);
        set_mode(&place, "to/sub", 0o700);
        let before = rustix::process::umask(Mode::from_raw_mode(0o700));
        let outcome = place.copy("from", "by-umask", &TreeOptions::default());
        rustix::process::umask(before);
        assert_eq!(outcome.unwrap().files, 1);
        assert_eq!(mode(&place, "by-umask") & 0o700, 0);
        for name in ["by-umask", "by-umask/sub", "by-umask/sub/below"] {
            set_mode(&place, name, 0o700);
        }
    });
}
