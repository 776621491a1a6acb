//! What killed copies left in a directory, and its removal.
//!
//! A copy that replaces a file has its temporary file open as long as that has a name, and a process
//! that is gone has nothing open. Two marks tell whether somebody has:
//!
//! - a lock (flock(2)), which a copy takes where it can matter: on network file systems it is what
//!   other machines see;
//! - that it is open for writing, which Linux tells for nothing on a local file system, so that a
//!   copy need not pay a call for the lock there.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Side};
use crate::request::Location;
use crate::resolve::{self, ALWAYS};
use crate::staging;
use crate::sys::{At, FileInfo, Kind};

/// What a [`sweep`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Leftovers that are gone now.
    pub removed: u64,
    /// Temporary files of copies that are under way.
    pub in_use: u64,
    /// What may be a leftover and could not be looked at or removed, and why.
    pub failed: Vec<(OsString, Errno)>,
}

/// Removes what killed copies left in one directory; not in those below it.
///
/// A copy by [`WriteMode::Replace`](crate::WriteMode::Replace) takes back what it made, unless its
/// process is killed or the power fails while the new file has a temporary name beside the old one.
/// On a file system that has files without a name (`O_TMPFILE`: ext4, XFS, btrfs, tmpfs) that is the
/// moment between link(2) and rename(2); elsewhere it is the whole copy. Nothing else looks for these
/// names, so a host sweeps where its guests copy to, at its start or now and then; copies may be under
/// way meanwhile, in this process or another.
///
/// What is removed has a name of our temporary files' form (`.copyist-` and 16 hexadecimal digits in
/// lower case), is a regular file, and nobody has it locked (flock(2)) or, on Linux, open to be
/// written. Directories, symbolic links, FIFOs and other files of such names stay and are never
/// opened. A file of that form which somebody else made and has not open cannot be told from ours.
///
/// A process that is forked from one which copies has the copies' files too, and keeps them in use until
/// it ends or executes another program.
///
/// A directory that several machines share may be swept while another of them copies into it only
/// where the file system carries locks between them: NFS does unless it is mounted with
/// `local_lock`.
///
/// It blocks while the kernel works: it lists the directory, makes about eight system calls for each
/// name of the form and none for any other, and waits for no lock, lease or peer.
///
/// # Errors
///
/// [`Cause::Io`] if the directory cannot be opened or listed, [`Cause::Cancelled`] if it was cancelled
/// meanwhile; what is removed by then stays so. What concerns one name is no error but stands in
/// [`Swept::failed`], and the sweep goes on: `EACCES` for a file that may not be read, `EPERM` for one
/// that may not be removed, and what flock(2) or fcntl(2) says where it cannot be known whether the
/// file is in use, which then stays (`ENOLCK` and `EOPNOTSUPP` from file systems without locks;
/// `EINVAL` where the sysctl `fs.leases-enable` is off; `EACCES` for the file of another user without
/// `CAP_LEASE`).
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use std::sync::Arc;
/// use copyist_engine::{Base, Cancel, Location};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # std::fs::write(temporary.path().join(".copyist-0123456789abcdef"), "some bytes")?;
/// let directory = Location {
///     base: Base::Beneath(Arc::new(File::open(temporary.path())?)),
///     path: ".".into(),
///     follow: false,
/// };
/// let swept = copyist_engine::sweep(&directory, &Cancel::new())?;
/// assert_eq!((swept.removed, swept.in_use), (1, 0));
/// # Ok(())
/// # }
/// ```
pub fn sweep(directory: &Location, cancel: &Cancel) -> Result<Swept, Cause> {
    sweep_in(&Environment::native(), directory, cancel)
}

/// As [`sweep`], on another system layer.
///
/// # Errors
///
/// As [`sweep`].
pub fn sweep_in(
    environment: &Environment,
    directory: &Location,
    cancel: &Cancel,
) -> Result<Swept, Cause> {
    let sys = environment.sys();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let open = || resolve::open(sys, directory, flags, Mode::empty());
    let opened = uninterrupted(cancel, open)?.map_err(at_directory)?;
    let answer = sweep_opened(environment, opened.as_fd(), cancel);
    let _ = sys.close(opened);
    answer
}

fn sweep_opened(
    environment: &Environment,
    directory: BorrowedFd<'_>,
    cancel: &Cancel,
) -> Result<Swept, Cause> {
    let list = || candidates(environment, directory, cancel);
    let names = uninterrupted(cancel, list)?.map_err(at_directory)?;
    let mut swept = Swept::default();
    for name in names {
        match uninterrupted(cancel, || try_name(environment, directory, &name))? {
            Ok(Fate::Removed) => swept.removed += 1,
            Ok(Fate::InUse) => swept.in_use += 1,
            Ok(Fate::NotOurs) | Err(Errno::NOENT) => {}
            Err(errno) => swept.failed.push((name, errno)),
        }
    }
    Ok(swept)
}

/// Does something until no signal comes between.
fn uninterrupted<T>(
    cancel: &Cancel,
    mut again: impl FnMut() -> Result<T, Errno>,
) -> Result<Result<T, Errno>, Cause> {
    loop {
        if cancel.is_cancelled() {
            return Err(Cause::Cancelled);
        }
        match again() {
            Err(Errno::INTR) => {}
            answer => return Ok(answer),
        }
    }
}

/// All of them before any is removed: what a listing tells of a directory that changes meanwhile is
/// up to the file system.
fn candidates(
    environment: &Environment,
    directory: BorrowedFd<'_>,
    cancel: &Cancel,
) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    let mut each = |name: &OsStr| {
        if staging::is_temporary(name) {
            names.push(name.to_owned());
        }
        if cancel.is_cancelled() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    environment.sys().list(directory, &mut each)?;
    Ok(names)
}

/// What became of a name.
enum Fate {
    Removed,
    InUse,
    /// Something of another kind, or another file by now.
    NotOurs,
}

fn try_name(
    environment: &Environment,
    directory: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<Fate, Errno> {
    let sys = environment.sys();
    // Only what is regular is opened: to open a device may do something to it, and to open a FIFO
    // lets its writer go on.
    let found = sys.stat_at(directory, name)?;
    if found.kind != Kind::Regular {
        return Ok(Fate::NotOurs);
    }
    let flags = ALWAYS | OFlags::RDONLY | OFlags::NOFOLLOW;
    let opened = sys.open(At::Beneath(directory), name.as_ref(), flags, Mode::empty());
    let fd = match opened {
        // Something else since then.
        Err(Errno::LOOP | Errno::NXIO) => return Ok(Fate::NotOurs),
        // Somebody has a lease on it.
        Err(Errno::AGAIN) => return Ok(Fate::InUse),
        opened => opened?,
    };
    let fate = try_file(environment, directory, name, &found, &fd);
    let _ = sys.close(fd);
    fate
}

fn try_file(
    environment: &Environment,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    found: &FileInfo,
    fd: &OwnedFd,
) -> Result<Fate, Errno> {
    let sys = environment.sys();
    let fd = fd.as_fd();
    if !sys.stat(fd)?.is_same_file(found) {
        return Ok(Fate::NotOurs);
    }
    // No copy opens its temporary file twice: one that nobody has now is nobody's. What does not get in
    // the way of a copy comes first: a lock does, where a copy is just about to take its own.
    match sys.has_writer(fd) {
        Ok(true) => return Ok(Fate::InUse),
        Ok(false) => {}
        // Where copies may do without the lock, it must be known.
        Err(errno) if environment.support().is_local(sys, found.device, fd) => return Err(errno),
        Err(_) => {}
    }
    match sys.lock_shared(fd) {
        Err(Errno::WOULDBLOCK) => return Ok(Fate::InUse),
        locked => locked?,
    }
    if !sys.stat_at(directory, name)?.is_same_file(found) {
        return Ok(Fate::NotOurs);
    }
    sys.unlink(directory, name)?;
    Ok(Fate::Removed)
}

fn at_directory(errno: Errno) -> Cause {
    Cause::Io(Side::Destination, errno)
}
