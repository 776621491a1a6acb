//! The files that are copied.

use std::fs::{File, FileTimes, Permissions};
use std::io::{Error, Result};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::FallocateFlags;

use super::facts::set_attribute;
use crate::support::pattern;

pub(super) const ACCESS_LIST: &str = "system.posix_acl_access";
pub(super) const CAPABILITY: &str = "security.capability";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// One of them.
pub(super) struct Source {
    pub(super) name: &'static str,
    /// Nobody else can make it, or copy it.
    pub(super) of_root: bool,
    /// Part of it is allocated and holds nothing.
    pub(super) reserves: bool,
    content: fn(&File) -> Result<()>,
    owner: Option<(u32, u32)>,
    mode: u32,
    attributes: fn() -> Vec<(String, Vec<u8>)>,
    /// Seconds before or after 1970, and nanoseconds.
    accessed: (i64, u32),
    modified: (i64, u32),
}

const PLAIN: Source = Source {
    name: "a plain file",
    of_root: false,
    reserves: false,
    content: |file| file.write_all_at(&pattern(5000), 0),
    owner: None,
    mode: 0o644,
    attributes: Vec::new,
    accessed: (1_700_000_000, 123_456_789),
    modified: (1_600_000_000, 987_654_321),
};

const FOREIGN: Option<(u32, u32)> = Some((1234, 4321));
/// 1950-01-01.
const OLD: i64 = -631_152_000;
/// 2200-01-01. ext4 counts to 2446, XFS to 2486.
const FAR: i64 = 7_258_118_400;

pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "an empty file",
        content: |_| Ok(()),
        ..PLAIN
    },
    Source {
        name: "one byte",
        content: |file| file.write_all_at(b"x", 0),
        ..PLAIN
    },
    Source {
        name: "a dense file of 1 MiB and a byte",
        content: |file| file.write_all_at(&pattern((1 << 20) + 1), 0),
        ..PLAIN
    },
    Source {
        name: "a hole at the start",
        content: |file| sparse(file, 3 * MIB, &[2 * MIB]),
        ..PLAIN
    },
    Source {
        name: "a hole in the middle",
        content: |file| sparse(file, 3 * MIB + 100_000, &[0, 3 * MIB]),
        ..PLAIN
    },
    Source {
        name: "a hole at the end",
        content: |file| sparse(file, 3 * MIB + 17, &[0]),
        ..PLAIN
    },
    Source {
        name: "nothing but a hole",
        content: |file| file.set_len(3 * MIB + 17),
        ..PLAIN
    },
    Source {
        name: "reserved and never written",
        reserves: true,
        content: |file| reserve(file, MIB),
        ..PLAIN
    },
    Source {
        name: "reserved, written in part, and longer than that",
        reserves: true,
        content: |file| {
            reserve(file, MIB)?;
            file.write_all_at(&pattern(4096), 512 * KIB)?;
            file.set_len(3 * MIB)
        },
        ..PLAIN
    },
    Source {
        name: "5000 pieces of data between as many holes",
        content: |file| {
            let places: Vec<_> = (0..5000).map(|block| block * 8 * KIB).collect();
            file.set_len(5000 * 8 * KIB)?;
            places
                .iter()
                .try_for_each(|place| file.write_all_at(&pattern(4096), *place))
        },
        ..PLAIN
    },
    Source {
        name: "setuid",
        mode: 0o4755,
        ..PLAIN
    },
    Source {
        name: "setgid",
        mode: 0o2755,
        ..PLAIN
    },
    Source {
        name: "sticky",
        mode: 0o1755,
        ..PLAIN
    },
    Source {
        name: "all bits of a mode",
        mode: 0o7777,
        ..PLAIN
    },
    Source {
        name: "to be read only",
        mode: 0o444,
        ..PLAIN
    },
    Source {
        name: "to be used by nobody",
        of_root: true,
        mode: 0,
        ..PLAIN
    },
    Source {
        name: "somebody else's",
        of_root: true,
        owner: FOREIGN,
        mode: 0o640,
        ..PLAIN
    },
    Source {
        name: "somebody else's, setuid and setgid",
        of_root: true,
        owner: FOREIGN,
        mode: 0o6755,
        ..PLAIN
    },
    Source {
        name: "from 1950",
        accessed: (OLD, 123_456_789),
        modified: (OLD, 1),
        ..PLAIN
    },
    Source {
        name: "from a moment before 1970",
        accessed: (-1, 999_999_999),
        modified: (-1, 1),
        ..PLAIN
    },
    Source {
        name: "from 2200",
        accessed: (FAR, 1),
        modified: (FAR, 999_999_999),
        ..PLAIN
    },
    Source {
        name: "with attributes",
        mode: 0o444,
        attributes: || {
            let mut attributes = many("user.");
            attributes.push(("user.empty".to_owned(), Vec::new()));
            attributes
        },
        ..PLAIN
    },
    Source {
        name: "with attributes of root's",
        of_root: true,
        attributes: || many("trusted."),
        ..PLAIN
    },
    Source {
        name: "with capabilities",
        of_root: true,
        mode: 0o755,
        attributes: || vec![(CAPABILITY.to_owned(), capability())],
        ..PLAIN
    },
    Source {
        name: "with an access control list",
        attributes: || vec![(ACCESS_LIST.to_owned(), access_list())],
        ..PLAIN
    },
    Source {
        name: "with everything",
        of_root: true,
        content: |file| sparse(file, 3 * MIB, &[0, 2 * MIB]),
        owner: FOREIGN,
        mode: 0o6755,
        attributes: || {
            vec![
                ("user.one".to_owned(), b"1".to_vec()),
                ("trusted.one".to_owned(), b"\0\xff".to_vec()),
                (CAPABILITY.to_owned(), capability()),
                (ACCESS_LIST.to_owned(), access_list()),
            ]
        },
        accessed: (OLD, 5),
        modified: (FAR, 7),
        ..PLAIN
    },
];

impl Source {
    /// Makes it, and tells what cannot be made here.
    pub(super) fn make(&self, path: &Path) -> Result<()> {
        let file = File::create(path)?;
        (self.content)(&file)?;
        if let Some((owner, group)) = self.owner {
            chown(path, Some(owner), Some(group))?;
        }
        // While it may be written; a mode that is set after the list would change its mask.
        let (lists, others): (Vec<_>, Vec<_>) = (self.attributes)()
            .into_iter()
            .partition(|(name, _)| name == ACCESS_LIST);
        let set = |attributes: Vec<(String, Vec<u8>)>| {
            attributes.into_iter().try_for_each(|(name, value)| {
                set_attribute(path, &name, &value)
                    .map_err(|errno| Error::other(format!("{name}: {errno}")))
            })
        };
        set(others)?;
        file.set_permissions(Permissions::from_mode(self.mode))?;
        set(lists)
    }

    pub(super) fn set_times(&self, path: &Path) {
        let at = |(seconds, nanoseconds): (i64, u32)| {
            let whole = Duration::from_secs(seconds.unsigned_abs());
            let epoch = SystemTime::UNIX_EPOCH;
            let second = if seconds < 0 {
                epoch - whole
            } else {
                epoch + whole
            };
            second + Duration::from_nanos(nanoseconds.into())
        };
        let times = FileTimes::new()
            .set_accessed(at(self.accessed))
            .set_modified(at(self.modified));
        // An owner may, whatever the mode.
        File::open(path).unwrap().set_times(times).unwrap();
    }
}

/// A file of this length with data at these places and holes elsewhere.
fn sparse(file: &File, length: u64, places: &[u64]) -> Result<()> {
    file.set_len(length)?;
    places
        .iter()
        .try_for_each(|place| file.write_all_at(&pattern(70_000), *place))
}

fn reserve(file: &File, length: u64) -> Result<()> {
    Ok(rustix::fs::fallocate(
        file,
        FallocateFlags::empty(),
        0,
        length,
    )?)
}

/// As many as fit beside an inode of ext4, in one block.
fn many(kind: &str) -> Vec<(String, Vec<u8>)> {
    (0..20_u8)
        .map(|number| (format!("{kind}{number}"), vec![number; 100]))
        .collect()
}

/// `u::rw-,u:1:rwx,g::r--,g:2:-w-,m::rw-,o::r--` as the kernel keeps it (linux/posix_acl_xattr.h):
/// a mask that takes a permission away, and that stands where the mode has the group's.
pub(super) fn access_list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 6] = [
        (0x01, 6, NOBODY),
        (0x02, 7, 1),
        (0x04, 4, NOBODY),
        (0x08, 2, 2),
        (0x10, 6, NOBODY),
        (0x20, 4, NOBODY),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// `CAP_NET_BIND_SERVICE` permitted and effective, version 2 (linux/capability.h).
pub(super) fn capability() -> Vec<u8> {
    let words: [u32; 5] = [0x0200_0001, 1 << 10, 0, 0, 0];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}
