//! The phases Open and Check: the source, the destination, and what can be refused before anything is
//! touched.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Fd, Flow, Phase, Transfer, at_source};
use crate::error::{Cause, Side, Unsupported};
use crate::kind;
use crate::metadata;
use crate::plan::{Facts, Mechanism, plan};
use crate::request::{Reflink, Source, Sparse};
use crate::resolve;
use crate::span::Span;
use crate::sparse;
use crate::strategy;
use crate::target::{self, Opened};

impl Transfer {
    pub(super) fn open(&mut self) -> Result<Flow, Cause> {
        let options = &self.request.options;
        let span = Span::of(options.window)?;
        metadata::check(options, &self.request.destination)?;
        target::check(options, &self.request.destination)?;
        let sys = self.environment.sys();
        let fd = match &self.request.source {
            Source::File(handle) => Fd::Theirs(handle.clone()),
            Source::Path(location) => {
                match resolve::open(sys, location, OFlags::RDONLY, Mode::empty()) {
                    Ok(fd) => Fd::Ours(fd),
                    // Another process has a lease on the file, which the kernel is breaking now
                    // (fcntl(2), F_SETLEASE).
                    Err(Errno::AGAIN) => return Ok(Flow::Later),
                    // What open(2) says to a socket.
                    Err(Errno::NXIO) => return Err(Unsupported::Kind(Side::Source).into()),
                    Err(errno) => return Err(at_source(errno)),
                }
            }
        };
        let info = sys.stat(fd.as_fd()).map_err(at_source)?;
        kind::accept(info.kind, Side::Source)?;
        metadata::check_source(sys, options, fd.as_fd(), &info)?;
        let there = info.size.saturating_sub(span.source);
        let expected = span.left(0).min(there);
        span.check_room(expected)?;
        // A size without blocks may be a lie (sysfs); then the limit is met on the way. On a disk it
        // is a hole.
        let support = self.environment.support();
        let is_true =
            info.blocks > 0 || (expected > 0 && support.is_local(sys, info.device, fd.as_fd()));
        if is_true {
            self.allowance.foresee(expected)?;
        }
        self.span = span;
        self.source = Some((fd, info));
        self.expected = Some(expected);
        Ok(Flow::Next(Phase::Check))
    }

    pub(super) fn check(&mut self) -> Result<Flow, Cause> {
        let (_, source) = self.source.as_ref().ok_or(Cause::Panicked)?;
        let sys = self.environment.sys();
        let target = match target::open(sys, &self.request, source)? {
            Opened::Ready(target) => target,
            Opened::Skip => return Ok(Flow::Skipped),
            Opened::Later => return Ok(Flow::Later),
        };
        if target
            .info
            .is_some_and(|destination| destination.is_same_file(source))
        {
            if !self.span.is_disjoint(target.appends) {
                return Err(Cause::SameFile);
            }
            // What is written must not become what is read: the source ends where it ended before.
            self.span.length = self.expected;
        }
        let may_have_holes = sparse::may_have_holes(source);
        let target = self.target.insert(target);
        let options = &self.request.options;
        metadata::narrow(sys, options, source, target)?;
        let mut plan = plan(
            sys.platform(),
            Facts {
                source_size: source.size,
                aligned: strategy::clone::is_aligned(
                    source.block_size,
                    self.span.source,
                    self.span.destination,
                ),
                appends: target.appends,
                may_have_holes,
                destination_is_ours: target.is_ours(),
            },
            options.reflink,
            options.sparse,
            options.tuning,
        );
        // One look at the destination saves two refused calls. If it fails they are merely made.
        let support = self.environment.support();
        if target.info.is_none()
            && plan.depends_on_devices()
            && support.depends_on_destination(source.device)
        {
            let _ = target.look(sys);
        }
        if options.reflink != Reflink::Always {
            let destination = target.info.map(|info| info.device);
            for mechanism in [Mechanism::Clone, Mechanism::CopyRange] {
                if options.tuning.only != Some(mechanism)
                    && !support.allows(mechanism, source.device, destination)
                {
                    plan.rule_out(mechanism);
                }
            }
        }
        let at_once = options.window.is_none()
            && !(options.bounded_calls && source.size > self.clone_pace.length());
        self.plan = plan;
        if may_have_holes && !target.appends && options.sparse != Sparse::Never {
            self.begin_walk();
        }
        Ok(Flow::Next(if at_once && plan.contains(Mechanism::Clone) {
            Phase::Clone
        } else {
            Phase::Data
        }))
    }
}
