//! `ioctl(FICLONE)`: the destination shares the source's storage, copy on write.

use std::os::fd::BorrowedFd;

use crate::sys::{FileInfo, Result, Sys};

/// Shares the whole of the source. Not bounded in time: a source with dirty pages is written back
/// first (measured: 0.76 s for 1 GiB).
pub(crate) fn attempt(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
) -> Result<()> {
    sys.clone_file(source, destination)
}

/// Whether clones can be made between these two at all: one is tried behind the end of the
/// destination, which goes away again with whatever is cut there. Nothing that was there changes.
pub(crate) fn trial(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
    was: &FileInfo,
) -> Result<()> {
    let block = was.block_size.max(1);
    let behind = was.size.checked_next_multiple_of(block);
    sys.clone_to(source, destination, behind.unwrap_or(u64::MAX))
}
