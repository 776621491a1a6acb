//! The phases Open and Check: the source, the destination, and what can be refused before anything is
//! touched.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::unread::Unread;
use super::{FIRST_PAUSE, Fd, Flow, LONGEST_PAUSE, Phase, Transfer, at_source};
use crate::error::{Cause, Refused, Side, Unsupported};
use crate::kind;
use crate::metadata;
use crate::plan::{Facts, Mechanism, plan};
use crate::request::{Durability, Options, Reflink, Source, Sparse};
use crate::resolve;
use crate::span::Span;
use crate::sparse;
use crate::strategy;
use crate::stream::Stream;
use crate::sys::{FileInfo, Kind};
use crate::target::{self, Opened, Target};

impl Transfer {
    pub(super) fn open(&mut self) -> Result<Flow, Cause> {
        let options = &self.request.options;
        let span = Span::of(options.window)?;
        metadata::check(options, &self.request.destination)?;
        target::check(options, &self.request.destination)?;
        let sys = self.environment.sys();
        let fd = match &self.request.source {
            Source::File(handle) => Fd::Theirs(handle.clone()),
            Source::Feed(feed) => Fd::Feed(feed.clone()),
            Source::Path(location) => {
                match resolve::open(sys, location, OFlags::RDONLY, Mode::empty()) {
                    Ok(fd) => Fd::Ours(fd),
                    // Another process has a lease on the file, which the kernel is breaking now
                    // (fcntl(2), F_SETLEASE).
                    Err(Errno::AGAIN) => return Ok(Flow::Later(LONGEST_PAUSE)),
                    Err(Errno::NXIO) => return Err(target::no_device(sys, location, Side::Source)),
                    Err(errno) => return Err(at_source(errno)),
                }
            }
        };
        let mut info = match &fd {
            Fd::Feed(_) => FileInfo::of_feed(),
            fd => sys.stat(fd.as_fd()).map_err(at_source)?,
        };
        kind::accept(info.kind, Side::Source)?;
        let from = Stream::of(sys, &fd, info.kind, Side::Source)?;
        if from.is_some() && span.source > 0 {
            return Err(Unsupported::Offset(Side::Source).into());
        }
        if info.kind == Kind::Block {
            info.size = sys.device_size(fd.as_fd()).map_err(at_source)?;
        }
        if info.kind == Kind::Regular {
            metadata::check_source(sys, options, fd.as_fd(), &info)?;
        } else if !options.require.is_empty() {
            return Err(Unsupported::Attribute.into());
        }
        if from.is_some() {
            self.span = span;
            self.from = from;
            self.source = Some((fd, info));
            return Ok(Flow::Next(Phase::Check));
        }
        let span = span.starting_at(options.source_start)?;
        self.span = span;
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
        self.source = Some((fd, info));
        self.expected = Some(expected);
        Ok(Flow::Next(Phase::Check))
    }

    pub(super) fn check(&mut self) -> Result<Flow, Cause> {
        let (_, source) = self.source.as_ref().ok_or(Cause::Panicked)?;
        let sys = self.environment.sys();
        let again = self.unread.as_ref().and_then(|unread| unread.open(sys));
        let opened = match again {
            Some(opened) => opened?,
            None => target::open(sys, &self.request, source)?,
        };
        let target = match opened {
            Opened::Ready(target) if self.is_of_a_tree && !target.is_file() => {
                let stream = Unsupported::Kind(Side::Destination, Refused::Stream);
                return Err(stream.into());
            }
            Opened::Ready(target) => target,
            Opened::Skip => return Ok(Flow::Skipped),
            Opened::Later => return Ok(Flow::Later(LONGEST_PAUSE)),
            Opened::Unread(_) if self.is_of_a_tree => {
                let stream = Unsupported::Kind(Side::Destination, Refused::Stream);
                return Err(stream.into());
            }
            Opened::Unread(name) => {
                if self.unread.is_none() {
                    self.unread = Some(Unread::new(sys, name));
                    return Ok(Flow::Moved(0));
                }
                return Ok(Flow::Later(Unread::longest_pause()));
            }
        };
        self.unread = None;
        self.pause = FIRST_PAUSE;
        check_stream(&self.request.options, &target, self.span)?;
        if target
            .info
            .is_some_and(|destination| is_one(source, &destination))
        {
            if !self.span.is_disjoint(target.appends) {
                return Err(Cause::SameFile);
            }
            // What is written must not become what is read: the source ends where it ended before.
            self.span.length = self.expected;
        }
        let may_have_holes = source.kind == Kind::Regular && sparse::may_have_holes(source);
        let target = self.target.insert(target);
        let options = &self.request.options;
        metadata::narrow(sys, options, source, target)?;
        let mut plan = plan(
            sys.platform(),
            Facts {
                source: target::end(source.kind, self.from.as_ref()),
                destination: target.end(),
                zero_copy: options.zero_copy,
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
            && self.span.source == 0
            && !(options.bounded_calls && source.size > self.clone_pace.length());
        self.plan = plan;
        // A stream takes zeros as it takes anything.
        let can_skip = !target.appends && target.stream.is_none();
        if may_have_holes && can_skip && options.sparse != Sparse::Never {
            self.begin_walk();
        }
        Ok(Flow::Next(if at_once && plan.contains(Mechanism::Clone) {
            Phase::Clone
        } else {
            Phase::Data
        }))
    }
}

/// Refuses what cannot be of a stream. It was there before, so that nothing was created.
fn check_stream(options: &Options, target: &Target, span: Span) -> Result<(), Cause> {
    if !target.is_file() && !options.require.is_empty() {
        return Err(Unsupported::Attribute.into());
    }
    if target.stream.is_none() {
        return Ok(());
    }
    if span.destination > 0 {
        return Err(Unsupported::Offset(Side::Destination).into());
    }
    if options.durability != Durability::None {
        return Err(Unsupported::Durability.into());
    }
    Ok(())
}

/// Whether what is written would be read again. Both sides of a socket or a terminal have one
/// identity, and what goes in at one comes out at the other.
fn is_one(source: &FileInfo, destination: &FileInfo) -> bool {
    !matches!(source.kind, Kind::Socket | Kind::Character) && destination.is_same_file(source)
}
