//! Waits: for which end, and what is known when one ends.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Flow, LONGEST_PAUSE, Transfer, at_destination};
use crate::error::{Cause, Side};
use crate::request::{Destination, Source};
use crate::stream::Stream;
use crate::sys::{self, Interest, Readiness, Sys, Watch};

/// After so many waits in a row that brought nothing the word of poll(2) is not taken any more: some
/// devices say that they are always ready.
const MOST_FUTILE: u32 = 4;

/// What a copy waits for: both ends at once, so that one which waits for its source learns that its
/// reader is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits<'a> {
    /// The source, where the wait is about it.
    pub source: Option<(BorrowedFd<'a>, Interest)>,
    /// The destination.
    pub destination: Option<(BorrowedFd<'a>, Interest)>,
    /// When the copy wants to be called whatever has come.
    pub until: Option<Instant>,
}

impl<'a> Waits<'a> {
    /// Waits, no longer than this, also for `alarm`; and tells what the two ends had to say.
    pub(crate) fn poll(
        &self,
        sys: &dyn Sys,
        alarm: Option<BorrowedFd<'a>>,
        longest: Option<Duration>,
    ) -> sys::Result<[Readiness; 2]> {
        let ends = [
            self.source,
            self.destination,
            alarm.map(|fd| (fd, Interest::Read)),
        ];
        let mut watches: Vec<_> = ends
            .into_iter()
            .flatten()
            .map(|(fd, interest)| Watch::new(fd, interest))
            .collect();
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        sys.poll(&mut watches, left.into_iter().chain(longest).min())?;
        let mut answers = watches.iter().map(|watch| watch.answer);
        let answer = |is_watched: bool| {
            is_watched
                .then(|| answers.next())
                .flatten()
                .unwrap_or_default()
        };
        Ok([self.source.is_some(), self.destination.is_some()].map(answer))
    }
}

/// What the last calls that could move nothing have shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    /// The end that holds a copy between two streams up, as far as is known: splice(2) does not say.
    side: Side,
    /// Waits in a row that said that something had come, when nothing had.
    futile: u32,
    /// The last wait said that something has come. One that merely ended, by a signal, says nothing.
    answered: bool,
    /// Whoever reads the destination is gone.
    reader_gone: bool,
}

impl Default for Stall {
    fn default() -> Self {
        Self {
            side: Side::Source,
            futile: 0,
            answered: false,
            reader_gone: false,
        }
    }
}

impl Stall {
    /// Something moved.
    pub(super) fn ends(&mut self) {
        self.futile = 0;
        self.answered = false;
    }
}

impl Transfer {
    /// What the copy waits for, after [`Step::Wait`](super::Step::Wait).
    pub fn waits(&self) -> Waits<'_> {
        // A feed wakes the copy by its waker.
        let has_fd = |stream: &Stream| stream.feed().is_none();
        let source = self
            .source
            .as_ref()
            .filter(|_| self.from.as_ref().is_some_and(has_fd))
            .map(|(fd, _)| fd.as_fd());
        let target = self.target.as_ref();
        let destination = target
            .filter(|target| target.stream.as_ref().is_some_and(has_fd))
            .and_then(|target| target.fd().ok());
        let until = self.deadline;
        match self.waiting {
            None => Waits {
                until,
                ..Waits::default()
            },
            Some(Side::Source) => Waits {
                source: source.map(|fd| (fd, Interest::Read)),
                destination: destination.map(|fd| (fd, Interest::Gone)),
                until,
            },
            Some(Side::Destination) => Waits {
                source: None,
                destination: destination.map(|fd| (fd, Interest::Write)),
                until,
            },
        }
    }

    /// Whom a [`Feed`](crate::Feed) wakes when it is ready. Without one, nobody is woken.
    pub fn set_waker(&mut self, waker: Waker) {
        self.waker = waker;
    }

    /// Whether a feed is one of the ends, so that a wait may end by the waker.
    pub(crate) fn has_feed(&self) -> bool {
        matches!(self.request.source, Source::Feed(_))
            || matches!(self.request.destination, Destination::Feed(_))
    }

    /// Tells what a wait has brought, before the next step. A wait that merely ended brought nothing.
    pub fn woken(&mut self, source: Readiness, destination: Readiness) {
        self.stall.answered = source.ready || destination.ready || destination.gone;
        match self.waiting {
            Some(Side::Source) => {
                if let Some(from) = &mut self.from
                    && source.ready
                {
                    from.woken();
                }
                self.stall.reader_gone |= destination.gone;
            }
            Some(Side::Destination) => {
                if let Some(target) = &mut self.target
                    && let Some(stream) = &mut target.stream
                    && destination.ready
                {
                    stream.woken();
                }
            }
            None => {}
        }
    }

    /// An end has nothing, or no room.
    pub(super) fn blocked(&mut self, side: Side) -> Result<Flow, Cause> {
        if side == Side::Source && self.stall.reader_gone {
            return Err(at_destination(Errno::PIPE));
        }
        self.stall.side = side;
        if mem::take(&mut self.stall.answered) {
            self.stall.futile += 1;
        }
        if self.stall.futile >= MOST_FUTILE {
            return Ok(Flow::Later(LONGEST_PAUSE));
        }
        Ok(Flow::Wait(side))
    }

    /// One of the two ends has nothing, or no room: the destination where the source was `seen` to
    /// have something. If the last wait said otherwise it was for the wrong one.
    pub(super) fn one_is_blocked(&mut self, seen: bool) -> Result<Flow, Cause> {
        let streams = (
            self.from.is_some(),
            self.target.as_ref().is_some_and(|t| t.stream.is_some()),
        );
        let side = match streams {
            (false, _) => Side::Destination,
            (_, false) => Side::Source,
            // It would have said so if it were the one.
            (true, true) if self.stall.reader_gone => Side::Source,
            (true, true) if self.stall.answered => match self.stall.side {
                Side::Source => Side::Destination,
                Side::Destination => Side::Source,
            },
            (true, true) if seen => Side::Destination,
            (true, true) => self.stall.side,
        };
        self.blocked(side)
    }
}
