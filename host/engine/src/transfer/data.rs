//! The phase Data: what a mechanism's answers mean, and where the end is.

use std::mem;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;

use super::holes::Put;
use super::{FIRST_PAUSE, Flow, LONGEST_PAUSE, Phase, Transfer, at_destination, at_source, parts};
use crate::error::{Cause, Limit, Unsupported};
use crate::plan::Mechanism;
use crate::request::Reflink;
use crate::strategy::{self, Cursor};

impl Transfer {
    pub(super) fn data(&mut self, budget: u64) -> Result<Flow, Cause> {
        if !self.hand.is_empty() {
            return self.deliver();
        }
        let into_stream = self
            .target
            .as_ref()
            .is_some_and(|target| target.stream.is_some());
        let left = self.span.left(self.summary.consumed);
        if left == 0 {
            return Ok(self.at_end());
        }
        // A clone has the holes of its source.
        if !self.plan.contains(Mechanism::Clone)
            && let Some(flow) = self.walk()?
        {
            return Ok(flow);
        }
        let Some(mechanism) = self.mechanism() else {
            return Err(match self.request.options.reflink {
                Reflink::Always => Unsupported::Clone,
                _ => Unsupported::Mechanism,
            }
            .into());
        };
        // The count says that all is there: a read of one byte tells, cheaper than one more kernel
        // copy, and it draws nothing from a quota. A size of 0 says nothing (procfs).
        let promised = self
            .expected
            .map(|all| all.saturating_sub(self.summary.consumed));
        if promised == Some(0) && (mechanism != Mechanism::ReadWrite || self.expected != Some(0)) {
            return self.confirm_end(mechanism);
        }
        if mechanism == Mechanism::Clone {
            return self.clone_piece(left);
        }
        let mut wanted = self.pace.length().min(budget.max(1));
        if mechanism == Mechanism::ReadWrite && self.request.options.tuning.call_size.is_none() {
            wanted = wanted.min(self.buffer_size()?);
        }
        wanted = wanted.min(left).min(self.until_region_ends());
        // What is asked for beyond the end would be drawn from a quota that others share.
        if let Some(promised @ 1..) = promised {
            wanted = wanted.min(promised);
        }
        let length = match self.allowance.ask(wanted) {
            Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
            // It may be the end just here.
            Err(limit) => return self.end_or(limit),
        };
        match mechanism {
            Mechanism::ReadWrite if self.from.is_some() => return self.take_from_stream(length),
            Mechanism::ReadWrite => self.hint(),
            Mechanism::Splice => return self.pass(mechanism, length),
            Mechanism::SendFile if into_stream => return self.pass(mechanism, length),
            Mechanism::Clone | Mechanism::CopyRange | Mechanism::SendFile => {}
        }
        let (source, _, target) = parts(&self.source, &mut self.target)?;
        let cursor = Cursor {
            source,
            source_offset: self.span.source + self.summary.consumed,
            destination: target.fd()?,
            destination_offset: self.span.destination + self.summary.bytes,
        };
        let sys = self.environment.sys();
        let started = Instant::now();
        let answer = match mechanism {
            // They went their own way above.
            Mechanism::Clone | Mechanism::Splice => Err(Errno::OPNOTSUPP),
            Mechanism::CopyRange => strategy::copy_range::attempt(sys, cursor, length),
            Mechanism::SendFile => {
                strategy::send_file::attempt(sys, cursor, &mut self.position, length)
            }
            Mechanism::ReadWrite => strategy::read_write::take(sys, cursor, &mut self.hand, length),
        };
        if answer == Ok(length) {
            self.pace.took(started.elapsed());
        }
        self.data_calls = self.data_calls.saturating_add(1);
        self.settle(mechanism, answer.map(|moved| moved.min(length)))
    }

    /// What a mechanism's answer means.
    fn settle(
        &mut self,
        mechanism: Mechanism,
        answer: Result<usize, Errno>,
    ) -> Result<Flow, Cause> {
        let reads = mechanism == Mechanism::ReadWrite;
        self.allowance.spend(answer.unwrap_or(0) as u64);
        match answer {
            Ok(0) if reads => Ok(self.at_end()),
            Ok(0) => self.confirm_end(mechanism),
            Ok(moved) => {
                let moved = moved as u64;
                self.pause = FIRST_PAUSE;
                self.summary.consumed += moved;
                if let Some(target) = &mut self.target {
                    target.fills();
                }
                if reads {
                    return Ok(Flow::Moved(0));
                }
                Ok(self.arrived(mechanism, moved))
            }
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) if reads => Ok(Flow::Later(LONGEST_PAUSE)),
            Err(errno) if reads => Err(at_source(errno)),
            Err(errno) => {
                self.refuse(mechanism, Some(errno))?;
                Ok(Flow::Moved(0))
            }
        }
    }

    /// Puts what the last read took.
    fn deliver(&mut self) -> Result<Flow, Cause> {
        if self
            .target
            .as_ref()
            .is_some_and(|target| target.stream.is_some())
        {
            return self.put_into_stream();
        }
        let most = match self.leave_out_zeros()? {
            Put::Nothing(flow) => return Ok(flow),
            Put::AtMost(most) => most,
        };
        let (source, _, target) = parts(&self.source, &mut self.target)?;
        let cursor = Cursor {
            source,
            source_offset: self.span.source + self.summary.consumed,
            destination: target.fd()?,
            destination_offset: self.span.destination + self.summary.bytes,
        };
        let appends = target.appends;
        let sys = self.environment.sys();
        match strategy::read_write::put(sys, cursor, &mut self.hand, most, appends) {
            // A write of something that claims success and does nothing, twice, is no progress.
            Ok(0) if self.stalled_writes > 0 => Err(at_destination(Errno::IO)),
            Ok(0) => {
                self.stalled_writes += 1;
                Ok(Flow::Moved(0))
            }
            Ok(put) => {
                self.stalled_writes = 0;
                self.pause = FIRST_PAUSE;
                Ok(self.arrived(Mechanism::ReadWrite, put as u64))
            }
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) => Ok(Flow::Later(LONGEST_PAUSE)),
            Err(errno) => Err(at_destination(errno)),
        }
    }

    pub(super) fn arrived(&mut self, mechanism: Mechanism, bytes: u64) -> Flow {
        self.summary.bytes += bytes;
        self.walk.data_ends(self.summary.bytes);
        self.moved_by[mechanism as usize] += bytes;
        Flow::Moved(bytes)
    }

    /// A mechanism does not work here: remember what can be remembered, and go on to the next one
    /// from the same place. Full disks, quotas and memory are no matter of the mechanism.
    pub(super) fn refuse(
        &mut self,
        mechanism: Mechanism,
        errno: Option<Errno>,
    ) -> Result<(), Cause> {
        if let Some(errno) = errno {
            match errno {
                Errno::NOSPC
                | Errno::DQUOT
                | Errno::NOMEM
                | Errno::PIPE
                | Errno::CONNRESET
                | Errno::CANCELED => return Err(at_destination(errno)),
                // Servers say it of good files (https://github.com/golang/go/issues/42334). The
                // read and write loop finds out; if it succeeds, the bytes are synced to be sure.
                Errno::IO => self.saw_io_error = true,
                _ => {}
            }
            let (_, info, target) = parts(&self.source, &mut self.target)?;
            let sys = self.environment.sys();
            self.environment
                .support()
                .learn(sys, mechanism, errno, info.device, || {
                    target.look(sys).ok().map(|info| info.device)
                });
        }
        self.summary.refused.push((mechanism, errno));
        self.plan.rule_out(mechanism);
        Ok(())
    }

    /// A kernel copier said that nothing is left, or the count says so. A read decides.
    pub(super) fn confirm_end(&mut self, mechanism: Mechanism) -> Result<Flow, Cause> {
        match self.peek() {
            Ok(0) => Ok(self.at_end()),
            // It grew, or its size is a lie: from here on only a read tells the end.
            Ok(_)
                if self
                    .expected
                    .is_some_and(|all| all <= self.summary.consumed) =>
            {
                self.expected = None;
                self.surprised = true;
                Ok(Flow::Moved(0))
            }
            // There is more, so it was the mechanism
            // (https://github.com/golang/go/issues/44272, https://lwn.net/Articles/846403/).
            Ok(_) => {
                self.refuse(mechanism, None)?;
                Ok(Flow::Moved(0))
            }
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) => Ok(Flow::Later(LONGEST_PAUSE)),
            Err(errno) => Err(at_source(errno)),
        }
    }

    /// The limit is reached: an error, unless the source ends just here.
    pub(super) fn end_or(&mut self, limit: Limit) -> Result<Flow, Cause> {
        if self.from.is_some() {
            return self.stream_end_or(limit);
        }
        match self.peek() {
            Ok(0) => Ok(self.at_end()),
            Ok(_) => Err(Cause::Limit(limit)),
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) => Ok(Flow::Later(LONGEST_PAUSE)),
            Err(errno) => Err(at_source(errno)),
        }
    }

    /// Reads one byte at the cursor.
    fn peek(&self) -> Result<usize, Errno> {
        let (fd, _) = self.source.as_ref().ok_or(Errno::BADF)?;
        let offset = self.span.source + self.summary.consumed;
        self.environment.sys().read(fd.as_fd(), &mut [0], offset)
    }

    pub(super) fn at_end(&mut self) -> Flow {
        self.surprised |= self
            .expected
            .is_some_and(|all| all != self.summary.consumed);
        Flow::Next(Phase::Trim)
    }

    fn buffer_size(&self) -> Result<u64, Cause> {
        let (_, info) = self.source.as_ref().ok_or(Cause::Panicked)?;
        let destination = self.target.as_ref().and_then(|target| target.info);
        Ok(strategy::read_write::buffer_size(
            info,
            destination.as_ref(),
        ))
    }

    /// Once a source: it is read from start to end. Cold reads of 32 and 64 KiB gain a third
    /// (https://github.com/oven-sh/bun/pull/34825). One advice a call: several in one are invalid.
    fn hint(&mut self) {
        if mem::replace(&mut self.hinted, true) {
            return;
        }
        if let Some((fd, _)) = &self.source {
            let _ = self.environment.sys().advise_sequential(fd.as_fd());
        }
    }
}
