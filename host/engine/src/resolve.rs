//! From a location to something open: the file itself, or its directory and last name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::request::{Base, Handle, Location};
use crate::sys::{At, DIRECTORY_ONLY, FileInfo, Kind, PATH_ONLY, Result, Sys};

/// What every open has: no descriptor leaks into a child, no FIFO or lease makes it wait, no
/// terminal becomes the process's own.
pub(crate) const ALWAYS: OFlags = OFlags::CLOEXEC
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// As many links as Linux follows in one path (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Opens the file that a location names.
pub(crate) fn open(
    sys: &dyn Sys,
    location: &Location,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let follow = if location.follow {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    sys.open(
        at(&location.base),
        &location.path,
        ALWAYS | follow | flags,
        mode,
    )
}

/// Opens the name that a location stands for and not what it leads to, where the platform can.
pub(crate) fn open_name(sys: &dyn Sys, location: &Location) -> Option<Result<OwnedFd>> {
    // openat2(2) takes no other flag beside this one.
    let mut flags = PATH_ONLY? | OFlags::CLOEXEC;
    if !location.follow {
        flags |= OFlags::NOFOLLOW;
    }
    Some(sys.open(at(&location.base), &location.path, flags, Mode::empty()))
}

/// An open directory: one that the caller holds, or one opened on the way.
#[derive(Clone, Debug)]
pub(crate) enum Directory {
    Held(Handle),
    Opened(Arc<OwnedFd>),
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Held(handle) => handle.as_fd(),
            Self::Opened(fd) => fd.as_fd(),
        }
    }
}

/// A name in an open directory. What is done to it later is done in that directory, wherever
/// anybody moves it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) directory: Directory,
    pub(crate) name: OsString,
}

/// Opens the directory that holds a location's last name, and tells what stands there. With
/// `follow`, of the last name that links lead to; or of the last link, where it leads nowhere.
pub(crate) fn entry(sys: &dyn Sys, location: &Location) -> Result<(Entry, Option<FileInfo>)> {
    let mut path = location.path.clone();
    let mut link = None;
    for _ in 0..MOST_LINKS {
        let entry = parent(sys, &location.base, &path)?;
        let found = match sys.stat_at(entry.directory.as_fd(), &entry.name) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno),
        };
        match (found, link) {
            (Some(found), before) if found.kind == Kind::Symlink && location.follow => {
                match sys.read_link_at(entry.directory.as_fd(), &entry.name) {
                    Ok(target) => {
                        path.pop();
                        path.push(target);
                        link = Some((entry, Some(found)));
                    }
                    // Something else has the name by now, or nothing: look again.
                    Err(Errno::INVAL | Errno::NOENT) => link = before,
                    Err(errno) => return Err(errno),
                }
            }
            (None, Some(link)) => return Ok(link),
            (found, _) => return Ok((entry, found)),
        }
    }
    Err(Errno::LOOP)
}

/// Opens the directory part of a path.
pub(crate) fn parent(sys: &dyn Sys, base: &Base, path: &Path) -> Result<Entry> {
    let (directory, name) = split(path)?;
    let directory = match base {
        Base::Beneath(handle) if directory.as_os_str().is_empty() => {
            Directory::Held(handle.clone())
        }
        base => {
            let directory = if directory.as_os_str().is_empty() {
                Path::new(".")
            } else {
                &directory
            };
            Directory::Opened(Arc::new(sys.open(
                at(base),
                directory,
                OFlags::CLOEXEC | DIRECTORY_ONLY,
                Mode::empty(),
            )?))
        }
    };
    Ok(Entry {
        directory,
        name: name.to_owned(),
    })
}

/// Splits off the last name. A path that ends in `/`, `.` or `..` names a directory.
fn split(path: &Path) -> Result<(PathBuf, &OsStr)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Errno::NOENT);
    }
    match path.components().next_back() {
        Some(Component::Normal(name)) if bytes.ends_with(name.as_bytes()) => {
            // Not `Path::parent`, which drops what it thinks is redundant.
            let directory = &bytes[..bytes.len() - name.len()];
            Ok((PathBuf::from(OsStr::from_bytes(directory)), name))
        }
        _ => Err(Errno::ISDIR),
    }
}

fn at(base: &Base) -> At<'_> {
    match base {
        Base::Beneath(handle) => At::Beneath(handle.as_fd()),
        Base::Ambient(_) => At::Ambient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_is_split_off_and_nothing_else_is_changed() {
        let parts = |path: &'static str| {
            split(Path::new(path)).map(|(directory, name)| {
                (
                    directory.into_os_string().into_string().unwrap(),
                    name.to_str().unwrap(),
                )
            })
        };
        assert_eq!(parts("file"), Ok((String::new(), "file")));
        assert_eq!(parts("a/b/file"), Ok(("a/b/".into(), "file")));
        assert_eq!(parts("a/../file"), Ok(("a/../".into(), "file")));
        assert_eq!(parts("./file"), Ok(("./".into(), "file")));
        assert_eq!(parts("/file"), Ok(("/".into(), "file")));
        assert_eq!(parts(""), Err(Errno::NOENT));
        for path in ["a/", ".", "..", "a/.", "a/..", "/"] {
            assert_eq!(parts(path), Err(Errno::ISDIR), "{path}");
        }
    }
}
