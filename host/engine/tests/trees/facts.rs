//! All that can be told of a tree: for each entry its kind, bytes, attributes, and which others are the
//! same file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

/// What is compared beside names, kinds and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) attributes: bool,
    /// Of a directory whose root's parent was written to meanwhile too.
    pub(crate) root: bool,
}

pub(crate) const ALL: Compared = Compared {
    attributes: true,
    root: true,
};
pub(crate) const BYTES: Compared = Compared {
    attributes: false,
    root: true,
};

/// By path beneath the root, in order.
pub(crate) type Facts = BTreeMap<PathBuf, String>;

pub(crate) fn of(root: &Path, compared: Compared) -> Facts {
    let mut facts = Facts::new();
    let mut groups: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(beneath) = left.pop() {
        let path = if beneath.as_os_str().is_empty() {
            root.to_owned()
        } else {
            root.join(&beneath)
        };
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mut fact = String::new();
        let kind = metadata.file_type();
        if kind.is_dir() {
            fact.push_str("directory");
            let mut names: Vec<_> = fs::read_dir(&path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            // So that the first name of a group is the same wherever it is listed.
            names.sort();
            left.extend(names.into_iter().rev().map(|name| beneath.join(name)));
        } else if kind.is_symlink() {
            fact = format!("link to {:?}", fs::read_link(&path).unwrap());
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            fact = format!("{} bytes, {:x}", bytes.len(), fnv1a(&bytes));
        } else {
            let what = [
                kind.is_fifo(),
                kind.is_socket(),
                kind.is_char_device(),
                kind.is_block_device(),
            ];
            fact = format!("special {what:?} {}", metadata.rdev());
        }
        if compared.attributes && (compared.root || !beneath.as_os_str().is_empty()) {
            fact.push_str(&attributes(&path, &metadata));
            if !kind.is_dir() && metadata.nlink() > 1 {
                let of = (metadata.dev(), metadata.ino());
                let first = groups.entry(of).or_insert_with(|| beneath.clone());
                fact.push_str(&format!(", one of {} with {first:?}", metadata.nlink()));
            }
        }
        facts.insert(beneath, fact);
    }
    facts
}

fn attributes(path: &Path, metadata: &fs::Metadata) -> String {
    let mut text = format!(
        ", {:o}, {}:{}, {}.{:09}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    let mut names = Vec::with_capacity(1 << 16);
    match rustix::fs::llistxattr(path, spare_capacity(&mut names)) {
        Ok(_) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => panic!("{}: {errno}", path.display()),
    }
    let mut names: Vec<_> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    names.sort();
    for name in names {
        let mut value = Vec::with_capacity(1 << 16);
        rustix::fs::lgetxattr(path, &name, spare_capacity(&mut value)).unwrap();
        text.push_str(&format!(", {name:?}={}", value.escape_ascii()));
    }
    text
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Fails with the entries that differ, and no more.
#[track_caller]
pub(crate) fn assert_same(a: &Path, b: &Path, compared: Compared) {
    let (a, b) = (of(a, compared), of(b, compared));
    let differ = |one: &Facts, other: &Facts| {
        let mut lines = Vec::new();
        for (path, fact) in one {
            if other.get(path) != Some(fact) {
                lines.push(format!("{path:?}: {fact}"));
            }
        }
        lines
    };
    let (left, right) = (differ(&a, &b), differ(&b, &a));
    assert!(
        left.is_empty() && right.is_empty(),
        "only so here:\n{}\nand so there:\n{}",
        left.join("\n"),
        right.join("\n")
    );
}
