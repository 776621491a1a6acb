//! Which kinds of file are copied: one rule for both ends, and a narrower one where only a file with
//! a length and a name will do.

use rustix::io::Errno;

use crate::error::{Cause, Refused, Side, Unsupported};
use crate::sys::Kind;

/// Refuses what no bytes can be copied from or to, told by fstat of what was opened.
pub(crate) fn accept(kind: Kind, side: Side) -> Result<(), Cause> {
    match kind {
        Kind::Regular | Kind::Fifo | Kind::Socket | Kind::Character | Kind::Block => Ok(()),
        Kind::Directory => Err(Cause::Io(side, Errno::ISDIR)),
        Kind::Symlink => Err(Unsupported::Kind(side, Refused::Link).into()),
        Kind::Unknown => Err(Unsupported::Kind(side, Refused::Unknown).into()),
    }
}

/// Refuses what is no regular file.
pub(crate) fn accept_regular(kind: Kind, side: Side) -> Result<(), Cause> {
    accept(kind, side)?;
    match kind {
        Kind::Regular => Ok(()),
        _ => Err(Unsupported::Kind(side, Refused::Stream).into()),
    }
}
