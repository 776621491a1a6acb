//! copy_file_range(2), at explicit offsets.

use super::Cursor;
use crate::sys::{Result, Sys};

/// Moves up to `length` bytes and says how many. 0 is a hint at the end, no more: file systems
/// say it in the middle (`support.rs`, `transfer/data.rs`).
pub(crate) fn attempt(sys: &dyn Sys, at: Cursor<'_>, length: usize) -> Result<usize> {
    sys.copy_range(
        at.source,
        at.source_offset,
        at.destination,
        at.destination_offset,
        length,
    )
}
