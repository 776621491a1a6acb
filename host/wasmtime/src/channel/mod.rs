//! A granted channel: who holds it, what uses it, and when it is gone.

mod place;
mod streams;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use copyist_engine::{Cancel, Cause, Errno, Handle, Refused, Side, Unsupported};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use crate::endpoint::{Direction, Endpoint};
pub(crate) use place::Uses;

/// What a store may open, by name.
pub(crate) type Channels = BTreeMap<String, Arc<Channel>>;

/// One granted descriptor. Contexts of one builder share it.
#[derive(Debug)]
pub(crate) struct Channel {
    is_owned: bool,
    direction: Direction,
    /// A file or a disk: both directions have one position, so that they have one user.
    has_position: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Absent once it is closed.
    handle: Option<Handle>,
    is_held: bool,
    is_read: bool,
    is_written: bool,
    /// Nobody writes any more, but who does so now.
    is_finished: bool,
}

/// Why there is no endpoint, or no stream over one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It is gone.
    Unknown,
    /// Somebody has it.
    Busy,
    /// In words for a person.
    Because(&'static str),
}

impl Channel {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let Endpoint {
            handle,
            is_owned,
            direction,
        } = endpoint;
        Self {
            has_position: place::has_position(&handle),
            is_owned,
            direction,
            state: Mutex::new(State {
                handle: Some(handle),
                is_held: false,
                is_read: false,
                is_written: false,
                is_finished: false,
            }),
        }
    }

    /// Whether it can be opened, now or once it is dropped.
    pub(crate) fn is_there(&self) -> bool {
        let state = self.lock();
        state.handle.is_some() && !(self.is_owned && state.is_finished)
    }

    /// For its one holder.
    pub(crate) fn open(self: &Arc<Self>) -> Result<Held, Closed> {
        let mut state = self.lock();
        if state.is_held {
            return Err(Closed::Busy);
        }
        if state.handle.is_none() || (self.is_owned && state.is_finished) {
            return Err(Closed::Unknown);
        }
        state.is_held = true;
        Ok(Held(self.clone()))
    }

    /// Shuts and closes what nobody needs any more.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        if !self.is_owned || !state.is_finished {
            return;
        }
        if let Some(handle) = &state.handle
            && self.direction.writes()
            && !state.is_written
        {
            // What is no socket says so.
            let _ = rustix::net::shutdown(handle, rustix::net::Shutdown::Write);
        }
        let is_used = state.is_read || state.is_written;
        // A holder may still read.
        let is_needed = state.is_held && self.direction == Direction::Both;
        if !is_used && !is_needed {
            let handle = state.handle.take();
            // Closed when it is free for others: some file systems take their time.
            drop(state);
            drop(handle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn of(&mut self, side: Side) -> &mut bool {
        match side {
            Side::Source => &mut self.is_read,
            Side::Destination => &mut self.is_written,
        }
    }
}

/// An endpoint as its holder has it. A drop frees the name.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the bindings want it public")]
pub struct Held(Arc<Channel>);

impl Held {
    /// Begins to use one direction.
    pub(crate) fn begin(&self, side: Side) -> Result<Use, Cause> {
        let channel = &self.0;
        let has_direction = match side {
            Side::Source => channel.direction.reads(),
            Side::Destination => channel.direction.writes(),
        };
        let mut state = channel.lock();
        let is_over = state.is_finished && side == Side::Destination;
        let Some(handle) = state.handle.clone().filter(|_| has_direction && !is_over) else {
            return Err(Cause::Io(side, Errno::BADF));
        };
        let is_used = if channel.has_position {
            state.is_read || state.is_written
        } else {
            *state.of(side)
        };
        if is_used {
            return Err(Cause::Io(side, Errno::BUSY));
        }
        *state.of(side) = true;
        Ok(Use {
            handle: Some(handle),
            channel: channel.clone(),
            side,
        })
    }

    /// What is read, as a stream of its own; `spent` ends its waits.
    pub(crate) fn input(&self, spent: Cancel) -> Result<DynInputStream, Closed> {
        let reading = self.begin(Side::Source).map_err(closed)?;
        Ok(Box::new(
            streams::Input::new(reading, spent).map_err(closed)?,
        ))
    }

    /// What is written, as [`input`](Self::input).
    pub(crate) fn output(&self, spent: Cancel) -> Result<DynOutputStream, Closed> {
        let writing = self.begin(Side::Destination).map_err(closed)?;
        Ok(Box::new(
            streams::Output::new(writing, spent).map_err(closed)?,
        ))
    }

    /// No more will be written.
    pub(crate) fn finish(&self) {
        let mut state = self.0.lock();
        state.is_finished = true;
        self.0.settle(state);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_held = false;
        // The next holder of what is shared begins anew.
        state.is_finished &= self.0.is_owned;
        self.0.settle(state);
    }
}

/// A direction in use, until this is dropped.
#[derive(Debug)]
pub(crate) struct Use {
    /// Gone before the channel is told.
    handle: Option<Handle>,
    channel: Arc<Channel>,
    side: Side,
}

impl Use {
    pub(crate) fn handle(&self) -> Result<Handle, Cause> {
        self.handle.clone().ok_or(Cause::Panicked)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.handle = None;
        let mut state = self.channel.lock();
        *state.of(self.side) = false;
        self.channel.settle(state);
    }
}

/// What a guest hears who wants a stream. No text of the system goes through.
fn closed(cause: Cause) -> Closed {
    Closed::Because(match cause {
        Cause::Io(_, Errno::BUSY) => return Closed::Busy,
        Cause::Io(Side::Source, Errno::BADF) => "it cannot be read, or no more",
        Cause::Io(Side::Destination, Errno::BADF) => "it cannot be written, or no more",
        Cause::Io(_, Errno::ISDIR) => "it is a directory",
        Cause::Unsupported(Unsupported::Kind(_, Refused::Messages)) => {
            "it is a socket that listens or carries messages, and no stream of bytes"
        }
        Cause::Unsupported(_) => "it is of a kind that is no stream of bytes",
        _ => "the system does not say what it is",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn pipe() -> (std::io::PipeReader, OwnedFd) {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader, writer.into())
    }

    fn grant(endpoint: Endpoint) -> Arc<Channel> {
        Arc::new(Channel::new(endpoint))
    }

    #[test]
    fn an_endpoint_has_one_holder_and_is_free_when_dropped() {
        let (_reader, writer) = pipe();
        let channel = grant(Endpoint::owned(writer));
        let held = channel.open().unwrap();
        assert_eq!(channel.open().unwrap_err(), Closed::Busy);
        drop(held);
        assert!(channel.is_there());
        drop(channel.open().unwrap());
    }

    #[test]
    fn what_is_finished_is_closed_when_its_last_use_ends() {
        let (mut reader, writer) = pipe();
        let channel = grant(Endpoint::owned(writer));
        let held = channel.open().unwrap();
        let writing = held.begin(Side::Destination).unwrap();
        held.finish();
        assert!(channel.lock().handle.is_some());
        assert_eq!(
            held.begin(Side::Destination).unwrap_err(),
            Cause::Io(Side::Destination, Errno::BADF)
        );
        drop(held);
        assert_eq!(channel.open().unwrap_err(), Closed::Unknown);
        assert!(!channel.is_there());
        drop(writing);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_socket_that_is_finished_is_read_on_until_it_is_dropped() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let channel = grant(Endpoint::owned(ours));
        let held = channel.open().unwrap();
        held.finish();
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        drop(held.begin(Side::Source).unwrap());
        drop(held);
        assert_eq!(channel.open().unwrap_err(), Closed::Unknown);
        // Closed, and not only shut.
        assert!(channel.lock().handle.is_none());
    }

    #[test]
    fn what_is_shared_outlives_its_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let channel = grant(Endpoint::shared(ours));
        for _ in 0..2 {
            let held = channel.open().unwrap();
            drop(held.begin(Side::Destination).unwrap());
            held.finish();
            assert!(held.begin(Side::Destination).is_err());
            assert!(theirs.read(&mut [0]).is_err(), "it was shut");
        }
    }

    #[test]
    fn what_is_only_read_is_closed_by_its_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let channel = grant(Endpoint::owned(ours).direction(Direction::Read));
        let held = channel.open().unwrap();
        let reading = held.begin(Side::Source).unwrap();
        assert_eq!(
            held.begin(Side::Source).unwrap_err(),
            Cause::Io(Side::Source, Errno::BUSY)
        );
        assert!(held.begin(Side::Destination).is_err());
        held.finish();
        assert!(channel.lock().handle.is_some());
        drop(reading);
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        assert!(held.begin(Side::Source).is_err());
    }

    #[test]
    fn a_file_has_one_user_for_both_directions() {
        let channel = grant(Endpoint::owned(tempfile::tempfile().unwrap()));
        let held = channel.open().unwrap();
        let reading = held.begin(Side::Source).unwrap();
        assert!(held.begin(Side::Destination).is_err());
        drop(reading);
        assert!(held.begin(Side::Destination).is_ok());
    }
}
