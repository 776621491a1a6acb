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
    target: &Target,
) -> Result<Preserve, Cause> {
    let mut lost = options.preserve - CARRIED;
    if let Some(mode) = target.inherited_mode {
        sys.set_mode(target.fd()?, mode).map_err(at_destination)?;
    }
    if options.preserve.contains(Preserve::MODE) {
        let withheld = is_withheld(options, source);
        if withheld || target.is_theirs() {
            lost |= Preserve::MODE;
        }
        if !target.is_theirs() {
            let bits = if withheld {
                PERMISSIONS
            } else {
                SPECIAL | PERMISSIONS
            };
            let answer = sys.set_mode(target.fd()?, source.mode & bits);
            lost |= loss(options, Preserve::MODE, answer)?;
        }
    }
    if options.preserve.contains(Preserve::TIMESTAMPS) {
        let answer = sys.set_times(target.fd()?, source.accessed, source.modified);
        lost |= loss(options, Preserve::TIMESTAMPS, answer)?;
    }
    Ok(lost)
}

/// A refusal is a failure where the attribute is required, and a loss otherwise: CIFS and FAT
/// refuse what they cannot hold (<https://github.com/libuv/libuv/issues/5053>).
fn loss(
    options: &Options,
    attribute: Preserve,
    answer: Result<(), Errno>,
) -> Result<Preserve, Cause> {
    match answer {
        Ok(()) => Ok(Preserve::NONE),
        Err(errno) if options.require.contains(attribute) => Err(at_destination(errno)),
        Err(_) => Ok(attribute),
    }
}
