//! Whole files, in one sized read.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Error, Limit, Side, Unsupported};
use crate::limits::{Allowance, Limits};
use crate::plan::Mechanism;
use crate::request::{Source, Window};
use crate::resolve;
use crate::span::Span;
use crate::summary::Summary;
use crate::sys::{FileInfo, Kind};
use crate::transfer::Fd;

/// The first room for a file that says it is empty, or went on beyond its size. It doubles.
const FIRST_ROOM: usize = 64 << 10;

/// How long the thread sleeps before it tries again to open a file with a lease on it.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// A file to read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Where bytes come from.
    pub source: Source,
    /// What part, and how much.
    pub options: ReadOptions,
}

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Part of the source (`destination_offset` has no meaning); the whole of it if absent.
    pub window: Option<Window>,
    /// More bytes than this are an error, not a cut. No bound if absent.
    pub limit: Option<u64>,
    /// How much may be copied; a read counts as a copy.
    pub limits: Limits,
}

/// Reads a file to its end: one fstat(2), one read of its size and a byte, one that sees the end.
/// The size is a hint only. Not bounded in time, since the whole file is one read; its limit bounds
/// it.
///
/// # Errors
///
/// Whatever [`Cause`] says, and [`Limit::ReadSize`] for a file of more bytes than the limit.
/// `ENOMEM` where there is no memory for it.
pub fn read(request: &ReadRequest, cancel: &Cancel) -> Result<Vec<u8>, Error> {
    read_in(&Environment::native(), request, cancel)
}

/// As [`read`], on another system layer.
///
/// # Errors
///
/// As [`read`].
pub fn read_in(
    environment: &Environment,
    request: &ReadRequest,
    cancel: &Cancel,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    match fill(environment, request, cancel, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(cause) => {
            let consumed = bytes.len() as u64;
            let path = match (&cause, &request.source) {
                (Cause::Cancelled | Cause::Limit(_), _) | (_, Source::File(_)) => None,
                (_, Source::Path(location)) => Some(location.path.clone()),
            };
            Err(Error {
                cause,
                path,
                done: Summary {
                    consumed,
                    method: (consumed > 0).then_some(Mechanism::ReadWrite),
                    ..Summary::default()
                },
            })
        }
    }
}

fn fill(
    environment: &Environment,
    request: &ReadRequest,
    cancel: &Cancel,
    bytes: &mut Vec<u8>,
) -> Result<(), Cause> {
    let span = Span::of(request.options.window).map_err(at_source)?;
    let sys = environment.sys();
    let fd = open(environment, &request.source, cancel)?;
    let info = sys.stat(fd.as_fd()).map_err(at_source)?;
    check(&info)?;
    let mut allowance = Allowance::new(request.options.limits.clone());
    let wanted = span.length.unwrap_or(u64::MAX);
    let limit = request.options.limit.unwrap_or(u64::MAX);
    let promised = info.size.saturating_sub(span.source).min(wanted);
    if promised > limit && info.blocks > 0 {
        return Err(Limit::ReadSize.into());
    }
    allowance.foresee(promised)?;
    // One byte more than is promised or allowed: room for the read that sees the end, or sees that
    // there is more.
    let most = wanted.min(limit.saturating_add(1));
    let mut room = usize::try_from(promised.min(limit)).unwrap_or(usize::MAX);
    if promised == 0 {
        room = FIRST_ROOM;
    }
    loop {
        let read = bytes.len() as u64;
        if read >= most {
            break;
        }
        if cancel.is_cancelled() {
            return Err(Cause::Cancelled);
        }
        if bytes.capacity() == bytes.len() {
            let more = room.saturating_add(1);
            let more = usize::try_from(most - read).map_or(more, |left| more.min(left));
            bytes
                .try_reserve_exact(more)
                .map_err(|_| at_source(Errno::NOMEM))?;
            // Beyond what was promised: as much again as there is.
            room = bytes.len().saturating_add(more).max(FIRST_ROOM);
        }
        match sys.read_spare(fd.as_fd(), bytes, span.source + read) {
            Ok(0) => break,
            Ok(_) => {
                let length = bytes.len() as u64;
                if length > limit {
                    return Err(Limit::ReadSize.into());
                }
                let taken = length - read;
                if allowance.ask(taken)? < taken {
                    return Err(Limit::TotalBytes.into());
                }
                allowance.spend(taken);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => cancel.sleep(PAUSE),
            Err(errno) => return Err(at_source(errno)),
        }
    }
    bytes.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    Ok(())
}

fn open(environment: &Environment, source: &Source, cancel: &Cancel) -> Result<Fd, Cause> {
    let location = match source {
        Source::File(handle) => return Ok(Fd::Theirs(handle.clone())),
        Source::Path(location) => location,
    };
    loop {
        if cancel.is_cancelled() {
            return Err(Cause::Cancelled);
        }
        match resolve::open(environment.sys(), location, OFlags::RDONLY, Mode::empty()) {
            Ok(fd) => return Ok(Fd::Ours(fd)),
            Err(Errno::AGAIN) => cancel.sleep(PAUSE),
            Err(Errno::INTR) => {}
            Err(Errno::NXIO) => return Err(Unsupported::Kind(Side::Source).into()),
            Err(errno) => return Err(at_source(errno)),
        }
    }
}

fn check(info: &FileInfo) -> Result<(), Cause> {
    match info.kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(at_source(Errno::ISDIR)),
        Kind::Symlink | Kind::Other => Err(Unsupported::Kind(Side::Source).into()),
    }
}

fn at_source(errno: Errno) -> Cause {
    Cause::Io(Side::Source, errno)
}
