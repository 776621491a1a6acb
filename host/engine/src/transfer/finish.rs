//! The phases after the bytes, from Trim to the sync of the directory.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::{Flow, LONGEST_PAUSE, Phase, Transfer, at_destination, at_source, parts};
use crate::durability;
use crate::error::{Cause, Side};
use crate::metadata;
use crate::plan::Mechanism;
use crate::request::{Durability, Existing};
use crate::staging::Close;
use crate::stream::Stream;
use crate::sys::Kind;

impl Transfer {
    pub(super) fn trim(&mut self) -> Result<Flow, Cause> {
        self.settle_last_hole()?;
        let (source, before, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let is_whole = self.request.options.window.is_none() || target.is_new();
        if is_whole && !target.appends && target.is_file() {
            target.cut(sys, self.span.destination + self.summary.bytes)?;
        }
        // A copy of one call is over before anything could be noticed, unless the end was not where
        // it was to be; in a longer one, a change shows in the times. (The files of procfs and sysfs
        // never are as long as they say, and that is no change.)
        let has_times = before.kind == Kind::Regular;
        if has_times && (self.data_calls > 1 || self.surprised) && !self.summary.changed {
            let after = sys.stat(source).map_err(at_source)?;
            self.summary.changed = (after.size, after.modified) != (before.size, before.modified)
                && !target.is(&before);
        }
        Ok(Flow::Next(Phase::Meta))
    }

    pub(super) fn meta(&mut self) -> Result<Flow, Cause> {
        let (from, source, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let options = &self.request.options;
        self.summary.lost |= if source.kind == Kind::Regular && target.is_file() {
            metadata::apply(sys, options, from, &source, target)?
        } else {
            metadata::leave(sys, options, target)?
        };
        Ok(Flow::Next(Phase::Sync))
    }

    pub(super) fn sync(&mut self) -> Result<Flow, Cause> {
        let durable = self.request.options.durability != Durability::None;
        let target = self.target.as_ref().ok_or(Cause::Panicked)?;
        if let Some(feed) = target.stream.as_ref().and_then(Stream::feed) {
            feed.end(Ok(()));
            if !feed.is_settled(&self.waker).map_err(at_destination)? {
                return self.blocked(Side::Destination);
            }
        }
        if durable || (self.saw_io_error && target.is_file()) {
            self.environment
                .sys()
                .sync(target.fd()?)
                .map_err(at_destination)?;
        }
        if durable && !self.is_of_a_tree {
            self.directory = match target.directory_to_sync(self.environment.sys(), &self.request) {
                Err(Errno::AGAIN) => return Ok(Flow::Later(LONGEST_PAUSE)),
                answer => answer.map_err(at_destination)?,
            };
        }
        Ok(Flow::Next(Phase::Publish))
    }

    pub(super) fn publish(&mut self) -> Result<Flow, Cause> {
        let (source, info, target) = parts(&self.source, &mut self.target)?;
        let by_kernel_alone = self.moved_by[Mechanism::ReadWrite as usize] == 0
            && self.moved_by[Mechanism::SendFile as usize] == 0
            && self.summary.bytes > 0;
        let sys = self.environment.sys();
        let support = self.environment.support();
        // Nothing can go wrong at close(2) on a local file system, and the two files share one if
        // the kernel copied between them with these calls. Elsewhere a look at the file now allows
        // to remove it, and nothing else, if close(2) reports a full quota.
        let is_silent = by_kernel_alone && support.is_local(sys, info.device, source);
        if !is_silent {
            target.identify(sys)?;
        }
        // An old file is not given up for a guess: Linux 5.3 to 5.18 copies between file systems too.
        let close = if is_silent && target.is_on(info.device) {
            Close::Last
        } else {
            target.when_closed(sys, support)?
        };
        match target.publish(sys, close) {
            Ok(()) => {}
            Err(Errno::EXIST) if target.yields() => {
                return match self.request.options.existing {
                    Existing::Refuse => Err(at_destination(Errno::EXIST)),
                    Existing::Write => {
                        target.replace_from_now_on();
                        Ok(Flow::Moved(0))
                    }
                    // Somebody was faster, and what stands there is newer than anything.
                    Existing::Skip | Existing::Update => Ok(Flow::Skipped),
                };
            }
            Err(errno) => return Err(at_destination(errno)),
        }
        Ok(Flow::Next(Phase::SyncDirectory))
    }

    pub(super) fn sync_directory(&mut self) -> Result<Flow, Cause> {
        if let Some(directory) = &self.directory {
            durability::sync(self.environment.sys(), directory.as_fd()).map_err(at_destination)?;
        }
        Ok(Flow::Done)
    }
}
