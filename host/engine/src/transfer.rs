//! One copy as a state machine that its caller drives.
//!
//! This is the only place that holds progress, goes on to the next mechanism, confirms an end and
//! counts. A mechanism makes one attempt (`strategy/`); what its answer means is decided here.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::environment::Environment;
use crate::error::{Cause, Error, Limit, Side, Unsupported};
use crate::limits::Allowance;
use crate::metadata;
use crate::pace::Pace;
use crate::plan::{Facts, Mechanism, Plan, plan};
use crate::request::{Durability, Existing, Handle, Reflink, Request, Source};
use crate::resolve;
use crate::span::Span;
use crate::strategy::read_write::Hand;
use crate::strategy::{self, Cursor};
use crate::summary::Summary;
use crate::sys::{FileInfo, Kind};
use crate::target::{self, Opened, Target};

/// What a step came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Call again. So many bytes reached the destination, often none.
    Moved(u64),
    /// Call again after this time: something stands in the way that goes away by itself and tells
    /// nobody, such as another process's lease on the file.
    Later(Duration),
    /// The copy succeeded.
    Done(Summary),
    /// The copy failed, and what it had made is removed as its options promise.
    Failed(Error),
}

/// A descriptor of the copy's own, or one that the caller holds too.
#[derive(Debug)]
pub(crate) enum Fd {
    Ours(OwnedFd),
    Theirs(Handle),
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ours(fd) => fd.as_fd(),
            Self::Theirs(handle) => handle.as_fd(),
        }
    }
}

/// Where a copy stands. Publishing is the point of no return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Open the source.
    Open,
    /// Open the destination and see that it is another file.
    Check,
    Clone,
    Data,
    /// Cut what is left of an older, longer file.
    Trim,
    Meta,
    Sync,
    /// Close the destination; give a staged file its name.
    Publish,
    /// Sync the directory in which a name was made.
    SyncDirectory,
    Ended,
}

enum Flow {
    Next(Phase),
    Moved(u64),
    Later,
    Skipped,
    Done,
}

/// The first pause of a copy that must try again.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// One copy under way. It makes about one system call a step and never sleeps.
///
/// A drop before the end cleans up as a failure does. While it runs, the thread should hold a
/// [`FatalSignalsBlocked`](crate::sys::FatalSignalsBlocked).
#[derive(Debug)]
pub struct Transfer {
    environment: Environment,
    request: Request,
    phase: Phase,
    source: Option<(Fd, FileInfo)>,
    target: Option<Target>,
    span: Span,
    /// The length that the source's size promises, until it proves wrong.
    expected: Option<u64>,
    plan: Plan,
    pace: Pace,
    hand: Hand,
    /// The file position of a destination of our own, which sendfile moves.
    position: u64,
    allowance: Allowance,
    hinted: bool,
    stalled_writes: u32,
    saw_io_error: bool,
    /// The end was not where the size said.
    surprised: bool,
    data_calls: u32,
    moved_by: [u64; Mechanism::ALL.len()],
    pause: Duration,
    summary: Summary,
    started: Option<Instant>,
    outcome: Option<Step>,
}

impl Transfer {
    /// A copy that has made no system call yet.
    pub fn new(environment: Environment, mut request: Request) -> Self {
        let options = &mut request.options;
        options.preserve |= options.require;
        Self {
            phase: Phase::Open,
            source: None,
            target: None,
            span: Span::default(),
            expected: None,
            plan: Plan::default(),
            pace: Pace::new(options.tuning),
            hand: Hand::default(),
            position: 0,
            allowance: Allowance::new(mem::take(&mut options.limits)),
            hinted: false,
            stalled_writes: 0,
            saw_io_error: false,
            surprised: false,
            data_calls: 0,
            moved_by: [0; Mechanism::ALL.len()],
            pause: FIRST_PAUSE,
            summary: Summary::default(),
            started: None,
            outcome: None,
            environment,
            request,
        }
    }

    /// Goes one step. A data call moves at most `budget` bytes. After the end it repeats the
    /// outcome.
    pub fn step(&mut self, budget: u64) -> Step {
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        self.started.get_or_insert_with(Instant::now);
        match self.advance(budget) {
            Ok(Flow::Next(phase)) => {
                self.phase = phase;
                Step::Moved(0)
            }
            Ok(Flow::Moved(bytes)) => Step::Moved(bytes),
            Ok(Flow::Later) => {
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                Step::Later(pause)
            }
            Ok(Flow::Skipped) => {
                self.discard();
                self.summary = Summary {
                    skipped: 1,
                    ..Summary::default()
                };
                self.moved_by = Default::default();
                self.count();
                self.end(Step::Done(self.summary.clone()))
            }
            Ok(Flow::Done) => {
                self.summary.files = 1;
                self.count();
                self.end(Step::Done(self.summary.clone()))
            }
            // A signal came first. The driver looks at its cancel and comes again.
            Err(Cause::Io(_, Errno::INTR)) if self.may_repeat() => Step::Moved(0),
            Err(cause) => self.fail(cause),
        }
    }

    /// Whether the phase can run again from its start. Not after close(2): whatever it answers, the
    /// descriptor is gone.
    fn may_repeat(&self) -> bool {
        let is_open = |target: &Target| target.fd().is_ok();
        self.phase != Phase::Publish || self.target.as_ref().is_some_and(is_open)
    }

    /// Ends the copy now. If it had already ended, its outcome stands; and what has its name already
    /// is no failure any more.
    pub fn cancel(&mut self) -> Step {
        while self.outcome.is_none() && self.phase == Phase::SyncDirectory {
            self.step(0);
        }
        match &self.outcome {
            Some(outcome) => outcome.clone(),
            None => self.fail(Cause::Cancelled),
        }
    }

    /// Whether it has made a system call.
    pub(crate) fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    /// What has been done so far.
    pub fn progress(&self) -> &Summary {
        &self.summary
    }

    fn advance(&mut self, budget: u64) -> Result<Flow, Cause> {
        match self.phase {
            Phase::Open => self.open(),
            Phase::Check => self.check(),
            Phase::Clone => self.clone_file(),
            Phase::Data => self.data(budget),
            Phase::Trim => self.trim(),
            Phase::Meta => self.meta(),
            Phase::Sync => self.sync(),
            Phase::Publish => self.publish(),
            Phase::SyncDirectory => self.sync_directory(),
            Phase::Ended => Ok(Flow::Done),
        }
    }

    // The source, and what can be refused before anything is touched.

    fn open(&mut self) -> Result<Flow, Cause> {
        let options = &self.request.options;
        let span = Span::of(options.window)?;
        metadata::check(options, &self.request.destination)?;
        target::check(options, &self.request.destination)?;
        let sys = self.environment.sys();
        let fd = match &self.request.source {
            Source::File(handle) => Fd::Theirs(handle.clone()),
            Source::Path(location) => {
                match resolve::open(sys, location, OFlags::RDONLY, rustix::fs::Mode::empty()) {
                    Ok(fd) => Fd::Ours(fd),
                    // Another process has a lease on the file, which the kernel is breaking now
                    // (fcntl(2), F_SETLEASE).
                    Err(Errno::AGAIN) => return Ok(Flow::Later),
                    // What open(2) says to a socket.
                    Err(Errno::NXIO) => return Err(Unsupported::Kind(Side::Source).into()),
                    Err(errno) => return Err(Cause::Io(Side::Source, errno)),
                }
            }
        };
        let info = sys
            .stat(fd.as_fd())
            .map_err(|errno| Cause::Io(Side::Source, errno))?;
        match info.kind {
            Kind::Regular => {}
            Kind::Directory => return Err(Cause::Io(Side::Source, Errno::ISDIR)),
            Kind::Symlink | Kind::Other => return Err(Unsupported::Kind(Side::Source).into()),
        }
        metadata::check_source(options, &info)?;
        let there = info.size.saturating_sub(span.source);
        let expected = span.left(0).min(there);
        span.check_room(expected)?;
        // A size without blocks may be a lie (sysfs); then the limit is met on the way.
        if info.blocks > 0 {
            self.allowance.foresee(expected)?;
        }
        self.span = span;
        self.source = Some((fd, info));
        self.expected = Some(expected);
        Ok(Flow::Next(Phase::Check))
    }

    fn check(&mut self) -> Result<Flow, Cause> {
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
        let target = self.target.insert(target);
        let options = &self.request.options;
        let mut plan = plan(
            sys.platform(),
            Facts {
                source_size: source.size,
                windowed: options.window.is_some(),
                appends: target.appends,
                destination_is_ours: target.is_ours(),
            },
            options.reflink,
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
        self.plan = plan;
        Ok(Flow::Next(if plan.contains(Mechanism::Clone) {
            Phase::Clone
        } else {
            Phase::Data
        }))
    }

    // The bytes.

    fn clone_file(&mut self) -> Result<Flow, Cause> {
        let (source, info, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let size = info.size;
        // FICLONE of a length that is no multiple of the block, onto a longer file, is refused
        // (https://github.com/uutils/coreutils/issues/3758).
        target.cut(sys, size)?;
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
            Err(errno) => {
                self.allowance.spend(0);
                self.refuse(Mechanism::Clone, Some(errno))?;
                return Ok(Flow::Next(Phase::Data));
            }
        }
        let made = sys.stat(target.fd()?).map_err(at_destination)?;
        let mut whole = made.size == size;
        if !whole {
            // The source grew or shrank, or the clone is cut short
            // (https://github.com/openzfs/zfs/issues/15728).
            let now = sys.stat(source).map_err(at_source)?.size;
            self.summary.changed = now != size;
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

    fn data(&mut self, budget: u64) -> Result<Flow, Cause> {
        if !self.hand.is_empty() {
            return self.deliver();
        }
        let left = self.span.left(self.summary.consumed);
        if left == 0 {
            return Ok(Flow::Next(Phase::Trim));
        }
        let Some(mechanism) = self.plan.current() else {
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
        let mut wanted = self.pace.length().min(budget.max(1));
        if mechanism == Mechanism::ReadWrite && self.request.options.tuning.call_size.is_none() {
            wanted = wanted.min(self.buffer_size()?);
        }
        wanted = wanted.min(left);
        // What is asked for beyond the end would be drawn from a quota that others share.
        if let Some(promised @ 1..) = promised {
            wanted = wanted.min(promised);
        }
        let length = match self.allowance.ask(wanted) {
            Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
            // It may be the end just here.
            Err(limit) => return self.end_or(limit),
        };
        if mechanism == Mechanism::ReadWrite {
            self.hint();
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
            Mechanism::Clone | Mechanism::CopyRange => {
                strategy::copy_range::attempt(sys, cursor, length)
            }
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
                if reads {
                    return Ok(Flow::Moved(0));
                }
                Ok(self.arrived(mechanism, moved))
            }
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) if reads => Ok(Flow::Later),
            Err(errno) if reads => Err(Cause::Io(Side::Source, errno)),
            Err(errno) => {
                self.refuse(mechanism, Some(errno))?;
                Ok(Flow::Moved(0))
            }
        }
    }

    /// Puts what the last read took.
    fn deliver(&mut self) -> Result<Flow, Cause> {
        let (source, _, target) = parts(&self.source, &mut self.target)?;
        let cursor = Cursor {
            source,
            source_offset: self.span.source + self.summary.consumed,
            destination: target.fd()?,
            destination_offset: self.span.destination + self.summary.bytes,
        };
        let appends = target.appends;
        match strategy::read_write::put(self.environment.sys(), cursor, &mut self.hand, appends) {
            // A write of something that claims success and does nothing, twice, is no progress.
            Ok(0) if self.stalled_writes > 0 => Err(Cause::Io(Side::Destination, Errno::IO)),
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
            Err(Errno::AGAIN) => Ok(Flow::Later),
            Err(errno) => Err(Cause::Io(Side::Destination, errno)),
        }
    }

    fn arrived(&mut self, mechanism: Mechanism, bytes: u64) -> Flow {
        self.summary.bytes += bytes;
        self.moved_by[mechanism as usize] += bytes;
        Flow::Moved(bytes)
    }

    /// A mechanism does not work here: remember what can be remembered, and go on to the next one
    /// from the same place. Full disks, quotas and memory are no matter of the mechanism.
    fn refuse(&mut self, mechanism: Mechanism, errno: Option<Errno>) -> Result<(), Cause> {
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
    fn confirm_end(&mut self, mechanism: Mechanism) -> Result<Flow, Cause> {
        match self.peek() {
            Ok(0) => Ok(self.at_end()),
            // It grew, or its size is a lie: from here on only a read tells the end.
            Ok(_) if self.expected == Some(self.summary.consumed) => {
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
            Err(Errno::AGAIN) => Ok(Flow::Later),
            Err(errno) => Err(Cause::Io(Side::Source, errno)),
        }
    }

    /// The limit is reached: an error, unless the source ends just here.
    fn end_or(&mut self, limit: Limit) -> Result<Flow, Cause> {
        match self.peek() {
            Ok(0) => Ok(self.at_end()),
            Ok(_) => Err(Cause::Limit(limit)),
            Err(Errno::INTR) => Ok(Flow::Moved(0)),
            Err(Errno::AGAIN) => Ok(Flow::Later),
            Err(errno) => Err(Cause::Io(Side::Source, errno)),
        }
    }

    /// Reads one byte at the cursor.
    fn peek(&self) -> Result<usize, Errno> {
        let (fd, _) = self.source.as_ref().ok_or(Errno::BADF)?;
        let offset = self.span.source + self.summary.consumed;
        self.environment.sys().read(fd.as_fd(), &mut [0], offset)
    }

    fn at_end(&mut self) -> Flow {
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

    // What follows the bytes.

    fn trim(&mut self) -> Result<Flow, Cause> {
        let (source, before, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        if self.request.options.window.is_none() && !target.appends {
            target.cut(sys, self.summary.bytes)?;
        }
        // A copy of one call is over before anything could be noticed, unless the end was not where
        // it was to be; in a longer one, a change shows in the times. (The files of procfs and sysfs
        // never are as long as they say, and that is no change.)
        if (self.data_calls > 1 || self.surprised) && !self.summary.changed {
            let after = sys.stat(source).map_err(at_source)?;
            self.summary.changed = (after.size, after.modified) != (before.size, before.modified)
                && !target.is(&before);
        }
        Ok(Flow::Next(Phase::Meta))
    }

    fn meta(&mut self) -> Result<Flow, Cause> {
        let (_, source, target) = parts(&self.source, &mut self.target)?;
        self.summary.lost |= metadata::apply(
            self.environment.sys(),
            &self.request.options,
            &source,
            target,
        )?;
        Ok(Flow::Next(Phase::Sync))
    }

    fn sync(&mut self) -> Result<Flow, Cause> {
        let durable = self.request.options.durability != Durability::None;
        if durable || self.saw_io_error {
            let target = self.target.as_ref().ok_or(Cause::Panicked)?;
            self.environment
                .sys()
                .sync(target.fd()?)
                .map_err(at_destination)?;
        }
        Ok(Flow::Next(Phase::Publish))
    }

    fn publish(&mut self) -> Result<Flow, Cause> {
        let (source, info, target) = parts(&self.source, &mut self.target)?;
        let by_kernel_alone = self.moved_by[Mechanism::ReadWrite as usize] == 0
            && self.moved_by[Mechanism::SendFile as usize] == 0
            && self.summary.bytes > 0;
        let sys = self.environment.sys();
        // Nothing can go wrong at close(2) on a local file system, and the two files share one if
        // the kernel copied between them with these calls. Elsewhere a look at the file now allows
        // to remove it, and nothing else, if close(2) reports a full quota.
        if !(by_kernel_alone
            && self
                .environment
                .support()
                .is_local(sys, info.device, source))
        {
            target.identify(sys)?;
        }
        match target.publish(sys) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
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

    fn sync_directory(&mut self) -> Result<Flow, Cause> {
        if self.request.options.durability != Durability::None
            && let Some(target) = &self.target
        {
            target
                .sync_directory(self.environment.sys(), &self.request)
                .map_err(at_destination)?;
        }
        Ok(Flow::Done)
    }

    // The end.

    fn fail(&mut self, cause: Cause) -> Step {
        self.discard();
        self.count();
        let path = match cause.side() {
            Some(Side::Source) => self.request.source.path(),
            Some(Side::Destination) => self.request.destination.path(),
            None => None,
        }
        .map(Path::to_owned);
        self.end(Step::Failed(Error {
            cause,
            path,
            done: self.summary.clone(),
        }))
    }

    /// Removes what was made and closes what was opened.
    fn discard(&mut self) {
        if let Some(mut target) = self.target.take() {
            target.discard(self.environment.sys(), &self.request);
        }
        self.close_source();
    }

    /// Nothing was written to it, so what close(2) says is of no interest.
    fn close_source(&mut self) {
        if let Some((Fd::Ours(fd), _)) = self.source.take() {
            let _ = self.environment.sys().close(fd);
        }
    }

    fn count(&mut self) {
        self.summary.elapsed = self.started.map_or(Duration::ZERO, |since| since.elapsed());
        self.summary.method = Mechanism::ALL
            .into_iter()
            .max_by_key(|mechanism| self.moved_by[*mechanism as usize])
            .filter(|mechanism| self.moved_by[*mechanism as usize] > 0);
    }

    fn end(&mut self, outcome: Step) -> Step {
        self.phase = Phase::Ended;
        self.target = None;
        self.close_source();
        self.hand = Hand::default();
        self.outcome = Some(outcome.clone());
        outcome
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if self.outcome.is_none() {
            self.discard();
        }
    }
}

/// The source, what it was at first, and the target: all there between Check and Publish.
fn parts<'a>(
    source: &'a Option<(Fd, FileInfo)>,
    target: &'a mut Option<Target>,
) -> Result<(BorrowedFd<'a>, FileInfo, &'a mut Target), Cause> {
    match (source, target) {
        (Some((fd, info)), Some(target)) => Ok((fd.as_fd(), *info, target)),
        _ => Err(Cause::Panicked),
    }
}

fn at_source(errno: Errno) -> Cause {
    Cause::Io(Side::Source, errno)
}

pub(crate) fn at_destination(errno: Errno) -> Cause {
    Cause::Io(Side::Destination, errno)
}

impl From<Unsupported> for Cause {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}

impl From<Limit> for Cause {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}
