//! Clones: all bytes at once in the phase Clone, and pieces in the phase Data.

use std::time::Instant;

use rustix::io::Errno;

use super::{Flow, Phase, Transfer, at_destination, at_source, parts};
use crate::error::Cause;
use crate::plan::Mechanism;
use crate::request::Reflink;
use crate::strategy::{self, Cursor};

impl Transfer {
    pub(super) fn clone_file(&mut self) -> Result<Flow, Cause> {
        let (source, info, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let size = info.size;
        match self.allowance.ask_for_all(size) {
            Ok(()) => {}
            // The size may be a lie (sysfs); then the limit is met on the way.
            Err(_) if info.blocks == 0 && self.request.options.reflink != Reflink::Always => {
                self.plan.rule_out(Mechanism::Clone);
                return Ok(Flow::Next(Phase::Data));
            }
            Err(limit) => return Err(limit.into()),
        }
        match strategy::clone::attempt(sys, source, target.fd()?) {
            Ok(()) => {}
            Err(Errno::INTR) => return Ok(Flow::Moved(0)),
            // A length that is no multiple of the block is not cloned onto a longer file
            // (https://github.com/uutils/coreutils/issues/3758); but btrfs says the same of files of
            // which one has no checksums. Then one that is required must not cost the old file its
            // end.
            Err(Errno::INVAL)
                if self.request.options.reflink == Reflink::Always
                    && target.is_longer_than(size) =>
            {
                let was = target.look(sys)?;
                match strategy::clone::trial(sys, source, target.fd()?, &was) {
                    Ok(()) => {
                        target.fills();
                        target.grew_to(u64::MAX);
                        target.cut(sys, size)?;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => self.refuse(Mechanism::Clone, Some(errno))?,
                }
                return Ok(if self.plan.contains(Mechanism::Clone) {
                    Flow::Moved(0)
                } else {
                    Flow::Next(Phase::Data)
                });
            }
            Err(Errno::INVAL) if target.cut(sys, size)? => return Ok(Flow::Moved(0)),
            Err(errno) => {
                self.allowance.spend(0);
                self.refuse(Mechanism::Clone, Some(errno))?;
                return Ok(Flow::Next(Phase::Data));
            }
        }
        target.fills();
        let mut made = sys.stat(target.fd()?).map_err(at_destination)?;
        let old = target.least_length();
        let mut whole = made.size == size && old < size;
        if !whole {
            // The source grew or shrank, or the clone is cut short
            // (https://github.com/openzfs/zfs/issues/15728), or the old file was as long.
            let now = sys.stat(source).map_err(at_source)?.size;
            self.summary.changed = now != size;
            if made.size == old && old > 0 {
                // Behind what is shared stand its own bytes, and its length does not tell where. What
                // the source had both before and after is shared.
                whole = now <= size;
                if whole && target.cut(sys, now)? {
                    made.size = now;
                }
            } else {
                whole = now == made.size;
            }
        }
        // What it has grown by counts too.
        if !whole || self.allowance.ask_for_all(made.size).is_err() {
            sys.truncate(target.fd()?, 0).map_err(at_destination)?;
            target.grew_to(0);
            self.allowance.spend(0);
            self.refuse(Mechanism::Clone, None)?;
            return Ok(Flow::Next(Phase::Data));
        }
        target.grew_to(made.size);
        self.allowance.spend(made.size);
        self.summary.bytes = made.size;
        self.summary.consumed = made.size;
        self.summary.shared = made.size;
        self.walk.data_ends(made.size);
        self.moved_by[Mechanism::Clone as usize] = made.size;
        self.summary.method = Some(Mechanism::Clone);
        Ok(Flow::Next(Phase::Trim))
    }

    /// Shares the next piece, no more than `left` bytes of it. A call says nothing of how much it
    /// shared, so that the source is asked before for its end and the destination after.
    pub(super) fn clone_piece(&mut self, left: u64) -> Result<Flow, Cause> {
        let (source, before, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let cursor = Cursor {
            source,
            source_offset: self.span.source + self.summary.consumed,
            destination: target.fd()?,
            destination_offset: self.span.destination + self.summary.bytes,
        };
        let size = sys.stat(source).map_err(at_source)?.size;
        let there = size.saturating_sub(cursor.source_offset);
        if there == 0 {
            return self.confirm_end(Mechanism::Clone);
        }
        let cuts = self.request.options.window.is_none() || target.is_new();
        // Onto the middle of a block, which keeps what follows it, nothing is shared.
        let keeps_tail =
            !cuts && target.is_longer_than(cursor.destination_offset + there.min(left));
        let last = if keeps_tail { u64::MAX } else { there };
        let wanted = self.clone_pace.length().min(left).min(there);
        let granted = self.allowance.ask(wanted)?;
        let length = strategy::clone::shareable(before.block_size, last, granted);
        if length == 0 {
            self.allowance.spend(0);
            self.plan.rule_out(Mechanism::Clone);
            return Ok(Flow::Moved(0));
        }
        let started = Instant::now();
        let answer = strategy::clone::part(sys, cursor, length);
        self.data_calls = self.data_calls.saturating_add(1);
        let end = cursor.destination_offset + length;
        match answer {
            Ok(()) if sys.stat(cursor.destination).map_err(at_destination)?.size < end => {
                target.fills();
                self.allowance.spend(0);
                self.refuse(Mechanism::Clone, None)?;
            }
            Ok(()) => {
                target.fills();
                self.clone_pace.took(started.elapsed());
                self.allowance.spend(length);
                self.summary.consumed += length;
                self.summary.shared += length;
                return Ok(self.arrived(Mechanism::Clone, length));
            }
            Err(errno) => {
                self.allowance.spend(0);
                let shrank = sys.stat(source).map_err(at_source)?.size < size;
                // The end of the source in the middle of a block: as of a whole file above.
                let is_end = length == there && cuts;
                let may_cut =
                    self.request.options.reflink != Reflink::Always || self.summary.shared > 0;
                let again = errno == Errno::INTR
                    || (errno == Errno::INVAL
                        && (shrank || (is_end && may_cut && target.cut(sys, end)?)));
                if !again {
                    self.refuse(Mechanism::Clone, Some(errno))?;
                }
            }
        }
        Ok(Flow::Moved(0))
    }
}
