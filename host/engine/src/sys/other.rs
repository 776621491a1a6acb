//! macOS and other Unix systems: POSIX alone. The plan asks for nothing else there.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::beneath;
use super::unix::file_type;
use super::{Kind, Result};
use crate::plan::Platform;

pub(super) const PLATFORM: Platform = Platform::Posix;
pub(super) const UNNAMED: Option<OFlags> = None;
pub(super) const DIRECTORY_ONLY: OFlags = OFlags::DIRECTORY;
pub(super) const PATH_ONLY: Option<OFlags> = None;

pub(super) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    beneath::open(directory, path, flags, mode)
}

pub(super) fn is_local(_fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

pub(super) fn clone_file(_source: BorrowedFd<'_>, _destination: BorrowedFd<'_>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn clone_range(
    _source: BorrowedFd<'_>,
    _source_offset: u64,
    _destination: BorrowedFd<'_>,
    _destination_offset: u64,
    _length: u64,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn copy_range(
    _source: BorrowedFd<'_>,
    _source_offset: u64,
    _destination: BorrowedFd<'_>,
    _destination_offset: u64,
    _length: usize,
) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn probe_copy_range() -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn send_file(
    _source: BorrowedFd<'_>,
    _source_offset: u64,
    _destination: BorrowedFd<'_>,
    _length: usize,
) -> Result<usize> {
    Err(Errno::NOSYS)
}

// On macOS a disk image reported holes where data was (https://github.com/coreutils/coreutils/pull/68),
// so that nobody asks there.

pub(super) fn seek_data(_fd: BorrowedFd<'_>, _offset: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

pub(super) fn seek_hole(_fd: BorrowedFd<'_>, _offset: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

pub(super) fn punch_hole(_fd: BorrowedFd<'_>, _offset: u64, _length: u64) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn reopen(_fd: BorrowedFd<'_>, _flags: OFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub(super) fn device_size(_fd: BorrowedFd<'_>) -> Result<u64> {
    Err(Errno::NOTSUP)
}

/// No platform here tells of them.
#[derive(Debug)]
pub struct Readers(());

impl Readers {
    /// Whether somebody who had it open to read has closed it since the watch began.
    pub fn has_one_left(&self) -> bool {
        false
    }
}

pub(super) fn watch_readers(_name: BorrowedFd<'_>) -> Result<Readers> {
    Err(Errno::NOSYS)
}

/// macOS has none for one call; SIGPIPE is blocked in the thread anyhow.
pub(super) const NO_SIGNAL: SendFlags = SendFlags::empty();

pub(super) fn splice(
    _source: BorrowedFd<'_>,
    _source_offset: Option<u64>,
    _destination: BorrowedFd<'_>,
    _destination_offset: Option<u64>,
    _length: usize,
) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn read_nowait(_fd: BorrowedFd<'_>, _buffer: &mut [u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn write_nowait(_fd: BorrowedFd<'_>, _bytes: &[u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn append(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    rustix::io::write(fd, bytes)
}

pub(super) fn advise_sequential(_fd: BorrowedFd<'_>) -> Result<()> {
    Ok(())
}

#[cfg(target_vendor = "apple")]
pub(super) fn sync(fd: BorrowedFd<'_>) -> Result<()> {
    // fsync(2) on macOS leaves the bytes in the drive's cache; its man page names this call.
    rustix::fs::fcntl_fullfsync(fd)
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn sync(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::fsync(fd)
}

pub(super) fn has_writer(_fd: BorrowedFd<'_>) -> Result<bool> {
    Err(Errno::NOSYS)
}

pub(super) fn link_unnamed(
    _fd: BorrowedFd<'_>,
    _directory: BorrowedFd<'_>,
    _name: &OsStr,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn rename_noreplace(
    _directory: BorrowedFd<'_>,
    _old: &OsStr,
    _new: &OsStr,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn make_node(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    kind: Kind,
    mode: u32,
    represents: u64,
) -> Result<()> {
    #[cfg(target_vendor = "apple")]
    {
        // There is no mknodat(2) to be had before macOS 13, and its devices are devfs's own.
        let _ = (directory, name, mode, represents, file_type(kind)?);
        Err(Errno::NOSYS)
    }
    #[cfg(not(target_vendor = "apple"))]
    rustix::fs::mknodat(
        directory,
        name,
        file_type(kind)?,
        Mode::from_raw_mode(mode as _),
        represents as _,
    )
}

pub(super) fn set_mode_at(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    _kind: Kind,
    mode: u32,
) -> Result<()> {
    let mode = Mode::from_raw_mode(mode as _);
    rustix::fs::chmodat(directory, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

pub(super) fn sync_file_system(_fd: BorrowedFd<'_>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(super) fn mount(_fd: BorrowedFd<'_>) -> Result<u64> {
    Err(Errno::NOSYS)
}
