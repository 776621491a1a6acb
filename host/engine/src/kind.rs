//! Which kinds of file are copied: one rule for both ends and for whole-file reads.

use rustix::io::Errno;

use crate::error::{Cause, Side, Unsupported};
use crate::sys::Kind;

/// Refuses what is no regular file, told by fstat of what was opened.
pub(crate) fn accept(kind: Kind, side: Side) -> Result<(), Cause> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(Cause::Io(side, Errno::ISDIR)),
        Kind::Symlink | Kind::Other => Err(Unsupported::Kind(side).into()),
    }
}
