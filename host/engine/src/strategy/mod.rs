//! One mechanism a file, one attempt each: no loop, no fallback, no memory. What an answer means
//! is decided in `transfer/data.rs`.

pub(crate) mod clone;
pub(crate) mod copy_range;
pub(crate) mod read_write;
pub(crate) mod send_file;
pub(crate) mod splice;

use std::os::fd::BorrowedFd;

/// The two files and the place in each where the next byte is taken and put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) source: BorrowedFd<'a>,
    pub(crate) source_offset: u64,
    pub(crate) destination: BorrowedFd<'a>,
    pub(crate) destination_offset: u64,
}
