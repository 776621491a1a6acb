//! sendfile(2): works between file systems, where copy_file_range(2) answers `EXDEV`.

use super::Cursor;
use crate::sys::{Result, Sys};

/// Moves up to `length` bytes and says how many. It writes at the file position, which `position`
/// tells and which is moved first where it differs; so the destination must be the copy's own.
pub(crate) fn attempt(
    sys: &dyn Sys,
    at: Cursor<'_>,
    position: &mut u64,
    length: usize,
) -> Result<usize> {
    if *position != at.destination_offset {
        sys.seek(at.destination, at.destination_offset)?;
        *position = at.destination_offset;
    }
    let moved = sys.send_file(at.source, at.source_offset, at.destination, length)?;
    *position += moved as u64;
    Ok(moved)
}
