//! Attributes: what is kept, what is refused before anything is touched, what is lost.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::error::{Cause, Side, Unsupported};
use crate::preserve::Preserve;
use crate::request::{Destination, Options};
use crate::sys::{FileInfo, Sys};
use crate::target::{PERMISSIONS, Target};
use crate::transfer::{at_destination, at_source};
use crate::xattrs;

/// Setuid, setgid, sticky.
const SPECIAL: u32 = 0o7000;
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const WRITABLE: u32 = 0o200;
/// What all but the owner may do.
const OTHERS: u32 = 0o077;

/// What says who may do what with a file. Somebody else's open file keeps its own.
const ACCESS: Preserve = Preserve::MODE
    .union(Preserve::OWNERSHIP)
    .union(Preserve::ACLS);

/// Refuses what is required and cannot be, before any system call.
pub(crate) fn check(options: &Options, destination: &Destination) -> Result<(), Cause> {
    if options.require.intersects(ACCESS) && matches!(destination, Destination::File(_)) {
        return Err(Unsupported::Attribute.into());
    }
    if options.require.contains(Preserve::OWNERSHIP) && !options.grants.ownership {
        return Err(Cause::Denied);
    }
    Ok(())
}

/// Refuses what this source has and may not be carried over, before anything is created.
pub(crate) fn check_source(
    sys: &dyn Sys,
    options: &Options,
    fd: BorrowedFd<'_>,
    source: &FileInfo,
) -> Result<(), Cause> {
    if options.require.contains(Preserve::MODE) && is_withheld(options, source) {
        return Err(Cause::Denied);
    }
    if options.require.contains(Preserve::XATTRS)
        && !options.grants.privileged_xattrs
        && xattrs::has_privileged(sys, fd).map_err(at_source)?
    {
        return Err(Cause::Denied);
    }
    Ok(())
}

/// Takes from an old file that gets the source's mode what that mode does not allow, before the first
/// byte: nobody reads what the source keeps from them because the old file let them
/// (<https://github.com/retr0h/gilt/issues/149>). Where the group will change, it may do nothing
/// until then.
pub(crate) fn narrow(
    sys: &dyn Sys,
    options: &Options,
    source: &FileInfo,
    target: &mut Target,
) -> Result<(), Cause> {
    let Some(old) = target.info.filter(|_| target.is_ours()) else {
        return Ok(());
    };
    if !options.preserve.contains(Preserve::MODE) {
        return Ok(());
    }
    let chowns = options.preserve.contains(Preserve::OWNERSHIP) && options.grants.ownership;
    let allowed = if chowns { 0 } else { source.mode };
    let mode = old.mode & (allowed | !OTHERS);
    if mode != old.mode {
        // Who may not set it now may not at the end, and it is told then that the mode is lost.
        let answer = target.narrow(sys, mode)?;
        loss(options, Preserve::MODE, answer.map_err(there))?;
    }
    Ok(())
}

/// A guest cannot make a setuid file by WASI; to copy one is the embedder's to grant.
fn is_withheld(options: &Options, source: &FileInfo) -> bool {
    source.mode & SPECIAL != 0 && !options.grants.special_mode_bits
}

/// Sets the attributes on what was written, and says which could not be kept. In this order:
///
/// - the owner, since chown(2) clears setuid bits and capabilities;
/// - extended attributes, while the file can be written;
/// - the mode;
/// - the access control list, whose mask chmod(2) would change;
/// - the times, which all before may change.
pub(crate) fn apply(
    sys: &dyn Sys,
    options: &Options,
    from: BorrowedFd<'_>,
    source: &FileInfo,
    target: &mut Target,
) -> Result<Preserve, Cause> {
    let mut lost = Preserve::NONE;
    let mut wanted = options.preserve;
    if target.is_theirs() {
        lost |= wanted.intersection(ACCESS);
        wanted = wanted - ACCESS;
    }
    if wanted.contains(Preserve::OWNERSHIP) {
        lost |= own(sys, options, source, target)?;
    }
    if wanted.contains(Preserve::XATTRS) {
        lost |= describe(sys, options, from, target)?;
    }
    if let Some(mode) = target.inherited_mode {
        sys.set_mode(target.fd()?, mode).map_err(at_destination)?;
    }
    if wanted.contains(Preserve::MODE) {
        let mode = allowed_mode(sys, options, source, target)?;
        if mode != source.mode {
            lost |= Preserve::MODE;
        }
        let answer = sys.set_mode(target.fd()?, mode);
        lost |= loss(options, Preserve::MODE, answer.map_err(there))?;
    }
    if wanted.contains(Preserve::ACLS) {
        let answer = xattrs::copy_access_list(sys, from, target.fd()?);
        lost |= loss(options, Preserve::ACLS, answer)?;
    }
    if wanted.contains(Preserve::TIMESTAMPS) {
        let answer = sys.set_times(target.fd()?, source.accessed, source.modified);
        lost |= loss(options, Preserve::TIMESTAMPS, answer.map_err(there))?;
    }
    Ok(lost)
}

/// Of what is no file, or comes from none, nothing is kept; and what a pipe or a terminal has is not
/// the copy's to change (<https://github.com/rust-lang/rust/issues/26933>,
/// <https://github.com/oven-sh/bun/pull/43244>).
pub(crate) fn leave(
    sys: &dyn Sys,
    options: &Options,
    target: &mut Target,
) -> Result<Preserve, Cause> {
    if let Some(mode) = target.inherited_mode {
        sys.set_mode(target.fd()?, mode).map_err(at_destination)?;
    }
    Ok(options.preserve)
}

fn own(
    sys: &dyn Sys,
    options: &Options,
    source: &FileInfo,
    target: &mut Target,
) -> Result<Preserve, Cause> {
    if !options.grants.ownership {
        return Ok(Preserve::OWNERSHIP);
    }
    let answer = sys.set_owner(target.fd()?, source.owner, source.group);
    if answer.is_ok() {
        target.look_again(sys)?;
    }
    loss(options, Preserve::OWNERSHIP, answer.map_err(there))
}

fn describe(
    sys: &dyn Sys,
    options: &Options,
    from: BorrowedFd<'_>,
    target: &mut Target,
) -> Result<Preserve, Cause> {
    let privileged = options.grants.privileged_xattrs;
    let mut answer = xattrs::copy(sys, from, target.fd()?, privileged);
    // A file that is to be read only refuses attributes even to who has it open to be written
    // (https://github.com/openclaw/fs-safe/issues/309).
    let refuses = matches!(
        answer,
        Err((Side::Destination, Errno::ACCESS | Errno::PERM))
    );
    if refuses && target.is_new() {
        let mode = target.look(sys)?.mode;
        if mode & WRITABLE == 0 && sys.set_mode(target.fd()?, mode | WRITABLE).is_ok() {
            answer = xattrs::copy(sys, from, target.fd()?, privileged);
            sys.set_mode(target.fd()?, mode).map_err(at_destination)?;
        }
    }
    match answer {
        Ok(true) => Ok(Preserve::NONE),
        // The source was given one since it was looked at.
        Ok(false) if options.require.contains(Preserve::XATTRS) => Err(Cause::Denied),
        Ok(false) => Ok(Preserve::XATTRS),
        Err(refusal) => loss(options, Preserve::XATTRS, Err(refusal)),
    }
}

/// What the embedder did not grant is a failure where it is required, and a loss otherwise.
pub(crate) fn withheld(options: &Options, attribute: Preserve) -> Result<Preserve, Cause> {
    if options.require.contains(attribute) {
        return Err(Cause::Denied);
    }
    Ok(attribute)
}

/// What the destination says.
pub(crate) fn there(errno: Errno) -> (Side, Errno) {
    (Side::Destination, errno)
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
    mode_of(options, source, &target.look(sys)?)
}

/// What of the source's mode something may have that has this owner and group by now.
pub(crate) fn mode_of(options: &Options, source: &FileInfo, made: &FileInfo) -> Result<u32, Cause> {
    if is_withheld(options, source) {
        return Ok(source.mode & PERMISSIONS);
    }
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
pub(crate) fn loss(
    options: &Options,
    attribute: Preserve,
    answer: Result<(), (Side, Errno)>,
) -> Result<Preserve, Cause> {
    match answer {
        Ok(()) => Ok(Preserve::NONE),
        Err((side, errno)) if errno == Errno::INTR || options.require.contains(attribute) => {
            Err(Cause::Io(side, errno))
        }
        Err(_) => Ok(attribute),
    }
}
