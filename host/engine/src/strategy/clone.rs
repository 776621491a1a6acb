//! `ioctl(FICLONE)`: the destination shares the source's storage, copy on write.

use std::os::fd::BorrowedFd;

use crate::sys::{Result, Sys};

/// Shares the whole of the source. Not bounded in time: a source with dirty pages is written back
/// first (measured: 0.76 s for 1 GiB).
pub(crate) fn attempt(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
) -> Result<()> {
    sys.clone_file(source, destination)
}
