//! The phase Data where an end is a stream.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::{FIRST_PAUSE, Flow, Transfer, at_destination, at_source, parts};
use crate::error::{Cause, Limit, Side};
use crate::plan::Mechanism;
use crate::strategy::splice::{self, Place};
use crate::stream::{Attempt, Channel, Stream, is_refusal};

impl Transfer {
    /// Takes up to `length` bytes of a source that is a stream; of those beyond a limit none.
    pub(super) fn take_from_stream(&mut self, length: usize) -> Result<Flow, Cause> {
        // What comes from a feed is somebody's to keep until there is room for it.
        if self.from.as_ref().is_some_and(|from| from.feed().is_some()) {
            let (_, _, target) = parts(&self.source, &mut self.target)?;
            if !target.has_room(self.environment.sys(), &self.waker)? {
                self.allowance.spend(0);
                return self.blocked(Side::Destination);
            }
        }
        let answer = self.read_stream(length);
        self.allowance.spend(match answer {
            Ok(Attempt::Moved(taken)) => taken as u64,
            _ => 0,
        });
        match answer {
            Ok(Attempt::Moved(0)) => Ok(self.at_end()),
            Ok(Attempt::Moved(_)) => Ok(Flow::Moved(0)),
            Ok(Attempt::Blocked) => self.blocked(Side::Source),
            Ok(Attempt::Again) | Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(errno) => Err(at_source(errno)),
        }
    }

    /// The limit is reached. Whether the stream ends here only a read tells, and what it brings is
    /// taken and goes nowhere.
    pub(super) fn stream_end_or(&mut self, limit: Limit) -> Result<Flow, Cause> {
        match self.read_stream(1) {
            Ok(Attempt::Moved(0)) => Ok(self.at_end()),
            Ok(Attempt::Moved(_)) => Err(Cause::Limit(limit)),
            Ok(Attempt::Blocked) => self.blocked(Side::Source),
            Ok(Attempt::Again) | Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(errno) => Err(at_source(errno)),
        }
    }

    /// Nobody reads the destination any more: an error, unless the source ends just here
    /// (<https://github.com/WebAssembly/wasi-cli/issues/81>).
    fn stream_end_or_gone(&mut self) -> Result<Flow, Cause> {
        match self.read_stream(1) {
            Ok(Attempt::Moved(0)) => Ok(self.at_end()),
            Ok(Attempt::Moved(_) | Attempt::Blocked) => Err(at_destination(Errno::PIPE)),
            Ok(Attempt::Again) | Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(errno) => Err(at_source(errno)),
        }
    }

    fn read_stream(&mut self, length: usize) -> Result<Attempt, Errno> {
        let (Some((fd, _)), Some(from)) = (&self.source, &mut self.from) else {
            return Err(Errno::BADF);
        };
        let sys = self.environment.sys();
        let answer = from.read(sys, fd.as_fd(), self.hand.room(length), &self.waker);
        if let Ok(Attempt::Moved(taken)) = answer {
            self.hand.fill(taken);
            self.summary.consumed += taken as u64;
            self.stall.ends();
            self.pause = FIRST_PAUSE;
            self.data_calls = self.data_calls.saturating_add(1);
        }
        answer
    }

    /// Puts what is in hand into a destination that is a stream.
    pub(super) fn put_into_stream(&mut self) -> Result<Flow, Cause> {
        let (_, _, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let answer = target.write_stream(sys, self.hand.bytes(), &self.waker)?;
        match answer {
            Ok(Attempt::Moved(0)) if self.stalled_writes > 0 => Err(at_destination(Errno::IO)),
            Ok(Attempt::Moved(0)) => {
                self.stalled_writes += 1;
                Ok(Flow::Moved(0))
            }
            Ok(Attempt::Moved(put)) => {
                self.stalled_writes = 0;
                self.stall.ends();
                self.hand.skip(put);
                Ok(self.arrived(Mechanism::ReadWrite, put as u64))
            }
            Ok(Attempt::Blocked) => self.blocked(Side::Destination),
            Ok(Attempt::Again) | Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(errno) => Err(at_destination(errno)),
        }
    }

    /// Moves up to `length` bytes between a pipe and something else, or from a file into a socket on
    /// which no call sleeps.
    pub(super) fn pass(&mut self, mechanism: Mechanism, length: usize) -> Result<Flow, Cause> {
        let (source, _, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let mut seen = false;
        if let Some(from) = &mut self.from {
            // splice(2) sleeps in a socket, whatever it is told of pipes; and a FIFO that nobody has
            // written to yet is no pipe at its end.
            let must_look = from.is_unseen() || from.channel() != Channel::Pipe;
            if must_look && !from.is_ready(sys, source).map_err(at_source)? {
                self.allowance.spend(0);
                return self.blocked(Side::Source);
            }
            seen = must_look;
            from.tried();
        }
        if let Some(stream) = &mut target.stream
            && stream.was_full()
        {
            self.allowance.spend(0);
            return self.blocked(Side::Destination);
        }
        let taken = self.span.source + self.summary.consumed;
        let put = self.span.destination + self.summary.bytes;
        let destination = target.fd()?;
        let answer = if mechanism == Mechanism::SendFile {
            sys.send_file(source, taken, destination, length)
        } else {
            let source = Place {
                fd: source,
                offset: self.from.is_none().then_some(taken),
            };
            let destination = Place {
                fd: destination,
                offset: target.stream.is_none().then_some(put),
            };
            splice::attempt(sys, source, destination, length)
        };
        let answer = answer.map(|moved| moved.min(length));
        self.allowance.spend(answer.unwrap_or(0) as u64);
        self.data_calls = self.data_calls.saturating_add(1);
        match answer {
            // The end, or a refusal: a read tells.
            Ok(0) if self.from.is_some() => {
                self.plan.rule_out(mechanism);
                Ok(Flow::Moved(0))
            }
            Ok(0) => self.confirm_end(mechanism),
            Ok(moved) => {
                // A file had the rest.
                if self.from.is_none()
                    && let Some(stream) = &mut target.stream
                {
                    stream.took(moved, length);
                }
                self.stall.ends();
                self.pause = FIRST_PAUSE;
                self.summary.consumed += moved as u64;
                Ok(self.arrived(mechanism, moved as u64))
            }
            Err(Errno::AGAIN) => self.one_is_blocked(seen),
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::PIPE) if self.from.is_some() => self.stream_end_or_gone(),
            // A socket tells its error once, and the read after it would be the end. What else these
            // are is that splice(2) does not work here, which it tells at the first call.
            Err(errno)
                if self.from.as_ref().is_some_and(Stream::is_socket)
                    && errno != Errno::NOMEM
                    && (self.moved_by[mechanism as usize] > 0 || !is_refusal(errno)) =>
            {
                Err(at_source(errno))
            }
            Err(errno) => {
                self.refuse(mechanism, Some(errno))?;
                Ok(Flow::Moved(0))
            }
        }
    }
}
