//! Owners, extended attributes and access control lists: carried over where they are asked for and,
//! where only root could set them, granted.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use copyist_engine::{Cause, Grants, Options, Preserve, Unsupported, WriteMode};
use rustix::fs::XattrFlags;
use rustix::io::Errno as Os;

use crate::support::child::as_nobody;
use crate::support::{
    Place, WRITE_MODES, copy, file, is_root, pairs, pattern, places, refusal, skipped,
};

const USER: &str = "user.copyist";
const TRUSTED: &str = "trusted.copyist";
const CAPABILITY: &str = "security.capability";
const ACCESS_LIST: &str = "system.posix_acl_access";
const DEFAULT_LIST: &str = "system.posix_acl_default";

const ALL_GRANTED: Grants = Grants {
    special_mode_bits: true,
    ownership: true,
    privileged_xattrs: true,
};

fn keeping(preserve: Preserve, grants: Grants) -> Options {
    Options {
        preserve,
        grants,
        ..Options::default()
    }
}

fn requiring(require: Preserve, grants: Grants) -> Options {
    Options {
        require,
        grants,
        ..Options::default()
    }
}

/// `None` where there is none.
fn attribute(place: &Place, path: &str, name: &str) -> Option<Vec<u8>> {
    let mut value = [0_u8; 256];
    match rustix::fs::getxattr(place.path(path), name, &mut value) {
        Ok(length) => Some(value[..length].to_vec()),
        Err(Os::NODATA | Os::OPNOTSUPP) => None,
        Err(errno) => panic!("{name}: {errno}"),
    }
}

/// Whether it could be set here; says aloud if not.
fn set(place: &Place, path: &str, name: &str, value: &[u8]) -> bool {
    match rustix::fs::setxattr(place.path(path), name, value, XattrFlags::empty()) {
        Ok(()) => true,
        Err(errno) => {
            skipped(&format!("{name} in {}: {errno}", place.name));
            false
        }
    }
}

/// `u::rw-,u:1:r--,g::r--,m::r--,o::---` as the kernel keeps it (linux/posix_acl_xattr.h).
fn list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, NOBODY),
        (0x02, 4, 1),
        (0x04, 4, NOBODY),
        (0x10, 4, NOBODY),
        (0x20, 0, NOBODY),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// `CAP_NET_BIND_SERVICE` permitted, version 2 (linux/capability.h).
fn capability() -> Vec<u8> {
    let words: [u32; 5] = [0x0200_0000, 1 << 10, 0, 0, 0];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn owner(place: &Place, path: &str) -> (u32, u32) {
    let metadata = fs::metadata(place.path(path)).unwrap();
    (metadata.uid(), metadata.gid())
}

#[test]
fn an_owner_needs_a_grant() {
    if !is_root("giving files away") {
        return;
    }
    for (from, to, _) in pairs() {
        from.write("from", pattern(100));
        std::os::unix::fs::chown(from.path("from"), Some(1234), Some(4321)).unwrap();
        let owning = Preserve::OWNERSHIP;
        for (grants, kept) in [(Grants::default(), false), (ALL_GRANTED, true)] {
            let _ = fs::remove_file(to.path("to"));
            let options = keeping(owning, grants);
            let summary = copy(from.source("from"), to.destination("to"), &options).unwrap();
            assert_eq!(owner(&to, "to") == (1234, 4321), kept);
            assert_eq!(summary.lost.contains(owning), !kept);
        }
        let _ = fs::remove_file(to.path("to"));
        let options = requiring(owning, Grants::default());
        let cause = refusal(from.source("from"), to.destination("to"), &options);
        assert_eq!(cause, Cause::Denied);
        assert!(!to.exists("to"));
        copy(
            from.source("from"),
            to.destination("to"),
            &requiring(owning, ALL_GRANTED),
        )
        .unwrap();
    }
}

// https://github.com/opencontainers/umoci/issues/169, https://github.com/borgbackup/borg/issues/1069,
// https://github.com/containers/buildah/issues/3320, https://github.com/containers/storage/issues/217:
// chmod, then chown, which clears setuid; an attribute, then chown, which clears capabilities.
#[test]
fn umoci_169_owner_mode_and_capabilities_survive_each_other() {
    if !is_root("file capabilities") {
        return;
    }
    for (from, to, _) in pairs() {
        from.write("from", pattern(100));
        std::os::unix::fs::chown(from.path("from"), Some(1234), Some(4321)).unwrap();
        from.set_mode("from", 0o6755);
        if !set(&from, "from", CAPABILITY, &capability()) {
            continue;
        }
        let all = Preserve::OWNERSHIP | Preserve::MODE | Preserve::XATTRS | Preserve::TIMESTAMPS;
        for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
            let options = Options {
                write_mode,
                ..requiring(all, ALL_GRANTED)
            };
            let summary = copy(from.source("from"), to.destination("to"), &options).unwrap();
            assert!(summary.lost.is_empty());
            assert_eq!(owner(&to, "to"), (1234, 4321));
            assert_eq!(to.mode("to"), 0o6755);
            assert_eq!(attribute(&to, "to", CAPABILITY), Some(capability()));
        }
    }
}

#[test]
fn attributes_of_users_are_kept_and_those_of_root_need_a_grant() {
    for (from, to, _) in pairs() {
        from.write("from", pattern(100));
        if !set(&from, "from", USER, b"value") || !set(&from, "from", "user.empty", b"") {
            continue;
        }
        let keep = |grants| {
            let _ = fs::remove_file(to.path("to"));
            let options = keeping(Preserve::XATTRS, grants);
            copy(from.source("from"), to.destination("to"), &options)
                .unwrap()
                .lost
        };
        assert!(keep(Grants::default()).is_empty());
        assert_eq!(attribute(&to, "to", USER).as_deref(), Some(&b"value"[..]));
        assert_eq!(
            attribute(&to, "to", "user.empty").as_deref(),
            Some(&b""[..])
        );
        // Not asked for.
        let _ = fs::remove_file(to.path("to"));
        copy(
            from.source("from"),
            to.destination("to"),
            &Options::default(),
        )
        .unwrap();
        assert_eq!(attribute(&to, "to", USER), None);

        if !is_root("trusted attributes") || !set(&from, "from", TRUSTED, b"root's") {
            continue;
        }
        assert_eq!(keep(Grants::default()), Preserve::XATTRS);
        assert_eq!(attribute(&to, "to", TRUSTED), None);
        assert_eq!(attribute(&to, "to", USER).as_deref(), Some(&b"value"[..]));
        assert!(keep(ALL_GRANTED).is_empty());
        assert_eq!(
            attribute(&to, "to", TRUSTED).as_deref(),
            Some(&b"root's"[..])
        );
        let _ = fs::remove_file(to.path("to"));
        let options = requiring(Preserve::XATTRS, Grants::default());
        let cause = refusal(from.source("from"), to.destination("to"), &options);
        assert_eq!(cause, Cause::Denied);
        assert!(!to.exists("to"));
    }
}

// https://github.com/openclaw/fs-safe/issues/309, https://github.com/python/cpython/issues/121524,
// https://github.com/pypa/pip/issues/2941: a file that may only be read refuses attributes to its own
// writer. Root is refused nothing, so that this shows for others alone.
#[test]
fn fs_safe_309_a_file_to_be_read_only_gets_its_attributes() {
    as_nobody(
        fs_safe_309_a_file_to_be_read_only_gets_its_attributes,
        || {
            for (from, to, _) in pairs() {
                for mode in [0o444, 0o400, 0o555] {
                    let _ = fs::remove_file(from.path("from"));
                    from.write("from", pattern(100));
                    if !set(&from, "from", USER, b"value") {
                        break;
                    }
                    from.set_mode("from", mode);
                    for (preserve, write_mode) in
                        [Preserve::XATTRS, Preserve::XATTRS | Preserve::MODE]
                            .into_iter()
                            .flat_map(|preserve| {
                                WRITE_MODES.map(|write_mode| (preserve, write_mode))
                            })
                    {
                        let _ = fs::remove_file(to.path("to"));
                        let options = Options {
                            write_mode,
                            ..requiring(preserve, Grants::default())
                        };
                        copy(from.source("from"), to.destination("to"), &options).unwrap();
                        assert_eq!(attribute(&to, "to", USER).as_deref(), Some(&b"value"[..]));
                        assert_eq!(to.mode("to"), mode, "{options:?}");
                    }
                }
            }
        },
    );
}

// https://github.com/shadow-maint/shadow/issues/1646,
// https://github.com/mysecureshell/mysecureshell/pull/125: a mode that is set after the list changes
// its mask.
#[test]
fn shadow_1646_an_access_list_is_kept_and_none_is_inherited_in_its_place() {
    for (from, to, _) in pairs() {
        from.write("from", pattern(100));
        from.write("plain", pattern(100));
        from.set_mode("from", 0o640);
        from.set_mode("plain", 0o640);
        if !set(&from, "from", ACCESS_LIST, &list()) {
            continue;
        }
        for preserve in [Preserve::ACLS, Preserve::ACLS | Preserve::MODE] {
            let _ = fs::remove_file(to.path("to"));
            let options = requiring(preserve, Grants::default());
            copy(from.source("from"), to.destination("to"), &options).unwrap();
            assert_eq!(attribute(&to, "to", ACCESS_LIST), Some(list()));
            assert_eq!(to.mode("to"), 0o640);
        }
        fs::create_dir(to.path("lists")).unwrap();
        if !set(&to, "lists", DEFAULT_LIST, &list()) {
            continue;
        }
        let options = requiring(Preserve::ACLS | Preserve::MODE, Grants::default());
        copy(from.source("plain"), to.destination("lists/to"), &options).unwrap();
        assert_eq!(attribute(&to, "lists/to", ACCESS_LIST), None);
        assert_eq!(to.mode("lists/to"), 0o640);
    }
}

// XFS shows root the list once more, as an attribute of root's own.
#[test]
fn an_access_list_is_no_attribute_that_needs_a_grant() {
    for (from, to, _) in pairs() {
        from.write("from", pattern(100));
        if !set(&from, "from", ACCESS_LIST, &list()) {
            continue;
        }
        let all = Preserve::XATTRS | Preserve::ACLS;
        let options = keeping(all, Grants::default());
        let summary = copy(from.source("from"), to.destination("to"), &options).unwrap();
        assert_eq!(summary.lost, Preserve::NONE);
        let options = requiring(all, Grants::default());
        copy(from.source("from"), to.destination("to"), &options).unwrap();
        assert_eq!(attribute(&to, "to", ACCESS_LIST), Some(list()));
    }
}

#[test]
fn somebody_elses_open_file_keeps_who_may_use_it() {
    for place in places() {
        place.write("from", pattern(100));
        place.write("to", "");
        let destination = || file(&place.open_to_write("to"));
        for attribute in [Preserve::MODE, Preserve::OWNERSHIP, Preserve::ACLS] {
            let options = requiring(attribute, ALL_GRANTED);
            let cause = refusal(place.source("from"), destination(), &options);
            assert_eq!(cause, Cause::Unsupported(Unsupported::Attribute));
            let options = keeping(attribute, ALL_GRANTED);
            let summary = copy(place.source("from"), destination(), &options).unwrap();
            assert_eq!(summary.lost, attribute);
        }
    }
}

// https://github.com/containerd/continuity/issues/244: procfs has no attributes, and that is no error.
#[test]
fn continuity_244_a_source_without_attributes_has_none_to_lose() {
    for place in places() {
        let proc = std::sync::Arc::new(File::open("/proc/self").unwrap());
        let source = copyist_engine::Source::Path(crate::support::at(&proc, "status"));
        let options = requiring(Preserve::XATTRS | Preserve::ACLS, Grants::default());
        let summary = copy(source, place.destination("to"), &options).unwrap();
        assert!(summary.lost.is_empty());
    }
}
