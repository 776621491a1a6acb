//! What a file has beside its bytes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// See the module.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) named: BTreeMap<String, String>,
    /// What is allocated to it, in units of 512 bytes.
    pub(super) blocks: u64,
}

impl Facts {
    pub(super) fn of(path: &Path) -> Self {
        // What is allocated may not be decided until it is written back, which this question makes
        // it be, without the flush of a disk that fsync(2) waits for. A tmpfs has no answer.
        let _ = copyist_bed::shares_storage(&File::open(path).unwrap());
        let metadata = fs::symlink_metadata(path).unwrap();
        let mut named = BTreeMap::from(
            [
                ("length", metadata.len().to_string()),
                ("mode", format!("{:o}", metadata.mode())),
                ("owner", format!("{}:{}", metadata.uid(), metadata.gid())),
                ("accessed", time(metadata.atime(), metadata.atime_nsec())),
                ("modified", time(metadata.mtime(), metadata.mtime_nsec())),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        for name in attribute_names(path) {
            let value = attribute(path, &name);
            named.insert(name, value.escape_ascii().to_string());
        }
        Self {
            named,
            blocks: metadata.blocks(),
        }
    }
}

fn time(seconds: i64, nanoseconds: i64) -> String {
    format!("{seconds} and {nanoseconds:09}")
}

/// Access control lists are among them.
fn attribute_names(path: &Path) -> Vec<String> {
    let mut names = Vec::with_capacity(1 << 16);
    match rustix::fs::llistxattr(path, spare_capacity(&mut names)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => panic!("{}: {errno}", path.display()),
    }
    names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8(name.to_vec()).unwrap())
        .collect()
}

fn attribute(path: &Path, name: &str) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 << 16);
    rustix::fs::lgetxattr(path, name, spare_capacity(&mut value)).unwrap();
    value
}

pub(super) fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<(), Errno> {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
}

/// Whether the file system may keep room that a file in place had before, or give it some in advance.
pub(super) fn allocates_in_advance(path: &Path) -> bool {
    /// Magic numbers (statfs(2)).
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683E;
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the type of this field differs between architectures"
    )]
    let magic = rustix::fs::statfs(path).unwrap().f_type as u64 & 0xFFFF_FFFF;
    [XFS, BTRFS].contains(&magic)
}
