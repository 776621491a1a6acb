//! The names in a directory, one after the other.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, FileType};

use super::{Kind, Result};

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Any bytes but NUL and `/`; never `.` or `..`.
    pub name: OsString,
    /// What the directory says of its kind, where it says something. It may be another by now.
    pub kind: Option<Kind>,
}

/// An open listing. What is made or removed meanwhile may show or not (readdir(3)).
#[derive(Debug)]
pub struct Listing(Dir);

impl Listing {
    /// Lists the directory of this descriptor from where it stands.
    pub fn new(directory: OwnedFd) -> Result<Self> {
        Dir::new(directory).map(Self)
    }
}

impl Iterator for Listing {
    type Item = Result<Listed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.0.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(errno)),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => Some(Kind::Regular),
                FileType::Directory => Some(Kind::Directory),
                FileType::Symlink => Some(Kind::Symlink),
                FileType::Fifo => Some(Kind::Fifo),
                FileType::Socket => Some(Kind::Socket),
                FileType::CharacterDevice => Some(Kind::Character),
                FileType::BlockDevice => Some(Kind::Block),
                FileType::Unknown => None,
            };
            return Some(Ok(Listed {
                name: OsStr::from_bytes(name).to_owned(),
                kind,
            }));
        }
    }
}
