//! How the names in a directory come to stable storage.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::sys::{At, Result, Sys};

/// Opens a directory so that it can be synced: it may be held by an O_PATH descriptor, which fsync(2)
/// refuses.
pub(crate) fn open(sys: &dyn Sys, directory: BorrowedFd<'_>) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    sys.open(At::Beneath(directory), ".".as_ref(), flags, Mode::empty())
}

/// Puts its names on stable storage. File systems that cannot sync a directory (fsync(2)) promise
/// nothing about names.
pub(crate) fn sync(sys: &dyn Sys, directory: BorrowedFd<'_>) -> Result<()> {
    match sys.sync(directory) {
        Err(Errno::INVAL) => Ok(()),
        answer => answer,
    }
}
