//! What the engine is compared with: each loop as good as it can be written for its one case, in
//! calls that wait, or with poll(2) where that is its point.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::pipe::SpliceFlags;
use wasmtime::Result;

use super::ends::Ends;

/// What one splice(2) is asked to move: more than any pipe here holds.
const AT_ONCE: usize = 1 << 20;

/// A file into a pipe, its pages and not their bytes.
pub(crate) fn splice(ends: &Ends, _buffer: &mut [u8]) -> Result<()> {
    let mut offset = 0;
    loop {
        let moved = rustix::pipe::splice(
            &ends.source,
            Some(&mut offset),
            &ends.destination,
            None,
            AT_ONCE,
            SpliceFlags::MORE,
        )?;
        if moved == 0 {
            return Ok(());
        }
    }
}

/// A file into a socket, by the kernel.
pub(crate) fn send_file(ends: &Ends, _buffer: &mut [u8]) -> Result<()> {
    let mut offset = 0;
    // As much as one call takes.
    let most = usize::MAX >> 33;
    while rustix::fs::sendfile(&ends.destination, &ends.source, Some(&mut offset), most)? > 0 {}
    Ok(())
}

/// A file into a pipe, through a buffer.
pub(crate) fn read_write(ends: &Ends, buffer: &mut [u8]) -> Result<()> {
    through(ends, buffer, |to, bytes| rustix::io::write(to, bytes))
}

/// A file into a socket, through a buffer.
pub(crate) fn read_send(ends: &Ends, buffer: &mut [u8]) -> Result<()> {
    through(ends, buffer, |to, bytes| {
        rustix::net::send(to, bytes, SendFlags::NOSIGNAL)
    })
}

fn through(
    ends: &Ends,
    buffer: &mut [u8],
    put: impl Fn(&File, &[u8]) -> rustix::io::Result<usize>,
) -> Result<()> {
    loop {
        let read = rustix::io::read(&ends.source, &mut *buffer)?;
        if read == 0 {
            return Ok(());
        }
        let mut done = 0;
        while done < read {
            done += put(&ends.destination, &buffer[done..read])?;
        }
    }
}

/// A pipe into a pipe: a splice(2) that waits for neither, and where nothing moves a poll(2) of the
/// one that held it up the last time, or of the other if that was not it.
pub(crate) fn poll_and_splice(ends: &Ends, _buffer: &mut [u8]) -> Result<()> {
    let mut waits_for_source = true;
    let mut polled = false;
    loop {
        match splice_once(ends) {
            Ok(0) => return Ok(()),
            Ok(_) => polled = false,
            Err(Errno::AGAIN) => {
                waits_for_source ^= polled;
                polled = true;
                wait(ends, waits_for_source)?;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A socket into a pipe: splice(2) would sleep in the socket, so that it is asked for first.
pub(crate) fn poll_then_splice(ends: &Ends, _buffer: &mut [u8]) -> Result<()> {
    loop {
        wait(ends, true)?;
        loop {
            match splice_once(ends) {
                Ok(0) => return Ok(()),
                Ok(_) => break,
                Err(Errno::AGAIN) => wait(ends, false)?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn splice_once(ends: &Ends) -> rustix::io::Result<usize> {
    let (from, to) = (&ends.source, &ends.destination);
    rustix::pipe::splice(from, None, to, None, AT_ONCE, SpliceFlags::NONBLOCK)
}

fn wait(ends: &Ends, for_source: bool) -> Result<()> {
    let end = if for_source {
        PollFd::from_borrowed_fd(ends.source.as_fd(), PollFlags::IN)
    } else {
        PollFd::from_borrowed_fd(ends.destination.as_fd(), PollFlags::OUT)
    };
    rustix::event::poll(&mut [end], None)?;
    Ok(())
}
