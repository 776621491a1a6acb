//! splice(2): between a pipe and something else, without a buffer.

use std::os::fd::BorrowedFd;

use crate::sys::{Result, Sys};

/// An end, and where in it if it is no stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) offset: Option<u64>,
}

/// Moves up to `length` bytes and says how many; it does not wait for a pipe. `EAGAIN` does not say
/// which end it is about.
pub(crate) fn attempt(
    sys: &dyn Sys,
    source: Place<'_>,
    destination: Place<'_>,
    length: usize,
) -> Result<usize> {
    sys.splice(
        source.fd,
        source.offset,
        destination.fd,
        destination.offset,
        length,
    )
}
