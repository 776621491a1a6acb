//! The phase Clone: all bytes at once, or none.

use rustix::io::Errno;

use super::{Flow, Phase, Transfer, at_destination, at_source, parts};
use crate::error::Cause;
use crate::plan::Mechanism;
use crate::request::Reflink;
use crate::strategy;

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
        let mut made = sys.stat(target.fd()?).map_err(at_destination)?;
        let mut whole = made.size == size;
        if !whole {
            // The source grew or shrank, or the clone is cut short
            // (https://github.com/openzfs/zfs/issues/15728), or the old file was longer.
            let now = sys.stat(source).map_err(at_source)?.size;
            self.summary.changed = now != size;
            if target.cut(sys, now)? {
                made.size = now;
            }
            whole = now == made.size;
        }
        // What it has grown by counts too.
        if !whole || self.allowance.ask_for_all(made.size).is_err() {
            sys.truncate(target.fd()?, 0).map_err(at_destination)?;
            self.allowance.spend(0);
            self.refuse(Mechanism::Clone, None)?;
            return Ok(Flow::Next(Phase::Data));
        }
        target.grew_to(made.size);
        self.allowance.spend(made.size);
        self.summary.bytes = made.size;
        self.summary.consumed = made.size;
        self.summary.shared = made.size;
        self.moved_by[Mechanism::Clone as usize] = made.size;
        self.summary.method = Some(Mechanism::Clone);
        Ok(Flow::Next(Phase::Trim))
    }
}
