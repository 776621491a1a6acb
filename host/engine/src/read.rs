//! Whole files, in one sized read.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Error, Limit, Refused, Side, Unsupported};
use crate::kind;
use crate::limits::{Allowance, Limits};
use crate::plan::Mechanism;
use crate::request::{Source, Window};
use crate::resolve;
use crate::span::Span;
use crate::summary::Summary;
use crate::sys::Sys;
use crate::transfer::{Fd, at_source};

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
            let path = cause
                .side()
                .and_then(|_| request.source.path())
                .map(Path::to_owned);
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
    let window = request.options.window.map(|window| Window {
        destination_offset: 0,
        ..window
    });
    let span = Span::of(window)?;
    let sys = environment.sys();
    let fd = open(environment, &request.source, cancel)?;
    let answer = take(sys, fd.as_fd(), span, &request.options, cancel, bytes);
    if let Fd::Ours(fd) = fd {
        let _ = sys.close(fd);
    }
    answer
}

fn take(
    sys: &dyn Sys,
    fd: BorrowedFd<'_>,
    span: Span,
    options: &ReadOptions,
    cancel: &Cancel,
    bytes: &mut Vec<u8>,
) -> Result<(), Cause> {
    let info = loop {
        match sys.stat(fd) {
            Err(Errno::INTR) if !cancel.is_cancelled() => {}
            answer => break answer.map_err(at_source)?,
        }
    };
    kind::accept_regular(info.kind, Side::Source)?;
    let mut allowance = Allowance::new(options.limits.clone());
    let wanted = span.left(0);
    let limit = options.limit.unwrap_or(u64::MAX);
    let promised = info.size.saturating_sub(span.source).min(wanted);
    let foreseen = if promised > limit {
        Err(Limit::ReadSize)
    } else {
        allowance.foresee(promised)
    };
    // A size without blocks may be a lie (sysfs); then the limit is met on the way.
    if info.blocks > 0 {
        foreseen?;
    }
    // One byte more than is promised or allowed: room for the read that sees the end, or sees that
    // there is more.
    let most = wanted.min(limit.saturating_add(1));
    let mut room = usize::try_from(promised).unwrap_or(usize::MAX);
    if promised == 0 || foreseen.is_err() {
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
        match sys.read_spare(fd, bytes, span.source + read) {
            Ok(0) => break,
            Ok(_) => {
                let length = bytes.len() as u64;
                if length > limit {
                    return Err(Limit::ReadSize.into());
                }
                let taken = length - read;
                allowance.ask_for_all(taken)?;
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
        Source::Feed(_) => {
            return Err(Unsupported::Kind(Side::Source, Refused::Stream).into());
        }
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
            Err(Errno::NXIO) => {
                return Err(Unsupported::Kind(Side::Source, Refused::SocketName).into());
            }
            Err(errno) => return Err(at_source(errno)),
        }
    }
}
