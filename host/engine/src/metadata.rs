//! Attributes: what is kept, what is refused before anything is touched, what is lost.

use rustix::io::Errno;

use crate::error::{Cause, Unsupported};
use crate::preserve::Preserve;
use crate::request::{Destination, Options};
use crate::sys::{FileInfo, Sys};
use crate::target::{PERMISSIONS, Target};
use crate::transfer::at_destination;

/// What a copy of one file carries over. It has no links to keep, so none are lost either.
const CARRIED: Preserve = Preserve::MODE
    .union(Preserve::TIMESTAMPS)
    .union(Preserve::LINKS);
/// Setuid, setgid, sticky.
const SPECIAL: u32 = 0o7000;
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// Refuses what is required and cannot be, before any system call.
pub(crate) fn check(options: &Options, destination: &Destination) -> Result<(), Cause> {
    let mode_of_theirs =
        options.require.contains(Preserve::MODE) && matches!(destination, Destination::File(_));
    if mode_of_theirs || !CARRIED.contains(options.require) {
        return Err(Unsupported::Attribute.into());
    }
    Ok(())
}

/// Refuses what this source has and may not be carried over, before anything is created.
pub(crate) fn check_source(options: &Options, source: &FileInfo) -> Result<(), Cause> {
    if options.require.contains(Preserve::MODE) && is_withheld(options, source) {
        return Err(Cause::Denied);
    }
    Ok(())
}

/// A guest cannot make a setuid file by WASI; to copy one is the embedder's to grant.
fn is_withheld(options: &Options, source: &FileInfo) -> bool {
    source.mode & SPECIAL != 0 && !options.grants.special_mode_bits
}

/// Sets the attributes on what was written and says which could not be kept. The mode first, then
/// the times, which everything before would change.
pub(crate) fn apply(
    sys: &dyn Sys,
    options: &Options,
    source: &FileInfo,
    target: &mut Target,
) -> Result<Preserve, Cause> {
    let mut lost = options.preserve - CARRIED;
    if let Some(mode) = target.inherited_mode {
        sys.set_mode(target.fd()?, mode).map_err(at_destination)?;
    }
    if options.preserve.contains(Preserve::MODE) {
        let mode = allowed_mode(sys, options, source, target)?;
        if mode != source.mode || target.is_theirs() {
            lost |= Preserve::MODE;
        }
        if !target.is_theirs() {
            let answer = sys.set_mode(target.fd()?, mode);
            lost |= loss(options, Preserve::MODE, answer)?;
        }
    }
    if options.preserve.contains(Preserve::TIMESTAMPS) {
        let answer = sys.set_times(target.fd()?, source.accessed, source.modified);
        lost |= loss(options, Preserve::TIMESTAMPS, answer)?;
    }
    Ok(lost)
}

/// What of the source's mode the copy may have. With another owner or group than its source it must
/// not run as them, whatever is granted (<https://github.com/uutils/coreutils/issues/9750>).
fn allowed_mode(
    sys: &dyn Sys,
    options: &Options,
    source: &FileInfo,
    target: &mut Target,
) -> Result<u32, Cause> {
    if source.mode & SPECIAL == 0 || is_withheld(options, source) {
        return Ok(source.mode & PERMISSIONS);
    }
    let made = target.look(sys)?;
    let mut mode = source.mode;
    if made.owner != source.owner {
        mode &= !SETUID;
    }
    if made.group != source.group {
        mode &= !SETGID;
    }
    if mode != source.mode && options.require.contains(Preserve::MODE) {
        return Err(Cause::Denied);
    }
    Ok(mode)
}

/// A refusal is a failure where the attribute is required, and a loss otherwise: CIFS and FAT
/// refuse what they cannot hold (<https://github.com/libuv/libuv/issues/5053>). An interruption is
/// no refusal.
fn loss(
    options: &Options,
    attribute: Preserve,
    answer: Result<(), Errno>,
) -> Result<Preserve, Cause> {
    match answer {
        Ok(()) => Ok(Preserve::NONE),
        Err(Errno::INTR) => Err(at_destination(Errno::INTR)),
        Err(errno) if options.require.contains(attribute) => Err(at_destination(errno)),
        Err(_) => Ok(attribute),
    }
}
