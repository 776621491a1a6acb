//! One copy as a state machine that its caller drives.
//!
//! This is the only place that holds progress, goes on to the next mechanism, confirms an end and
//! counts. A mechanism makes one attempt (`strategy/`); what its answer means is decided here.

mod clone;
mod data;
mod finish;
mod holes;
mod open;
mod relay;
mod unread;
mod wait;

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::environment::Environment;
use crate::error::{Cause, Error, Limit, Side, Unsupported};
use crate::feed::Feed;
use crate::limits::{Allowance, Quota};
use crate::pace::Pace;
use crate::plan::{Mechanism, Plan};
use crate::progress::Progress;
use crate::request::{Destination, Handle, Request, Source};
use crate::span::Span;
use crate::strategy::read_write::Hand;
use crate::stream::Stream;
use crate::summary::Summary;
use crate::sys::FileInfo;
use crate::target::Target;

use holes::Walk;
use unread::Unread;
use wait::Stall;
pub use wait::Waits;

/// What a step came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Call again. So many bytes reached the destination, often none.
    Moved(u64),
    /// Call again after this time: something stands in the way that goes away by itself and tells
    /// nobody, such as another process's lease on the file.
    Later(Duration),
    /// Call again when [`Transfer::waits`] says so, after [`Transfer::woken`]: a stream has nothing
    /// to read, or no room.
    Wait,
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
    /// None: the end is in this process.
    Feed(Feed),
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ours(fd) => fd.as_fd(),
            Self::Theirs(handle) => handle.as_fd(),
            // No descriptor at all: whoever asks something of it hears EBADF.
            Self::Feed(_) => rustix::fs::CWD,
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
    /// Pauses get longer up to this.
    Later(Duration),
    Wait(Side),
    Skipped,
    Done,
}

/// The first pause of a copy that must try again.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest, for what goes away by itself.
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
    /// The source, where it is a stream.
    from: Option<Stream>,
    unread: Option<Unread>,
    /// The end that the copy waits for.
    waiting: Option<Side>,
    stall: Stall,
    /// Whom a feed wakes.
    waker: Waker,
    deadline: Option<Instant>,
    span: Span,
    /// The length that the source's size promises, until it proves wrong.
    expected: Option<u64>,
    plan: Plan,
    pace: Pace,
    clone_pace: Pace,
    hand: Hand,
    /// The file position of a destination of our own, which sendfile moves.
    position: u64,
    allowance: Allowance,
    walk: Walk,
    /// The directory in which a name is made, where it is synced.
    directory: Option<OwnedFd>,
    is_of_a_tree: bool,
    hinted: bool,
    stalled_writes: u32,
    saw_io_error: bool,
    /// The end was not where the size said.
    surprised: bool,
    data_calls: u32,
    moved_by: [u64; Mechanism::ALL.len()],
    pause: Duration,
    summary: Summary,
    progress: Progress,
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
            from: None,
            unread: None,
            waiting: None,
            stall: Stall::default(),
            waker: Waker::noop().clone(),
            // Beyond all time there is no end.
            deadline: options
                .timeout
                .and_then(|timeout| Instant::now().checked_add(timeout)),
            span: Span::default(),
            expected: None,
            plan: Plan::default(),
            pace: Pace::of_data(options.tuning),
            clone_pace: Pace::of_clones(options.tuning),
            hand: Hand::default(),
            position: 0,
            allowance: Allowance::new(mem::take(&mut options.limits)),
            walk: Walk::default(),
            directory: None,
            is_of_a_tree: false,
            hinted: false,
            stalled_writes: 0,
            saw_io_error: false,
            surprised: false,
            data_calls: 0,
            moved_by: [0; Mechanism::ALL.len()],
            pause: FIRST_PAUSE,
            summary: Summary::default(),
            progress: Progress::default(),
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
        self.waiting = None;
        if self.is_late() {
            return self.fail(Cause::TimedOut);
        }
        let flow = self.advance(budget);
        self.progress.note(self.summary.bytes, self.expected);
        match flow {
            Ok(Flow::Next(phase)) => {
                self.phase = phase;
                Step::Moved(0)
            }
            Ok(Flow::Moved(bytes)) => Step::Moved(bytes),
            Ok(Flow::Later(longest)) => {
                let pause = self.pause.min(longest);
                self.pause = (pause * 2).min(longest);
                Step::Later(pause)
            }
            Ok(Flow::Wait(side)) => {
                self.waiting = Some(side);
                Step::Wait
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

    /// What the source is, once it is open and before anything is made.
    pub(crate) fn source_info(&self) -> Option<&FileInfo> {
        let (_, info) = self.source.as_ref()?;
        (self.phase == Phase::Check).then_some(info)
    }

    /// Whether nothing is left to do but the sync of the file and the making of its name.
    pub(crate) fn is_staged(&self) -> bool {
        self.phase == Phase::Sync
    }

    /// It is one of a tree: its bytes count against the tree's, its destination is no stream, and the
    /// tree syncs the directories.
    pub(crate) fn is_of_a_tree(&mut self, bytes: Option<Arc<Quota>>) {
        self.is_of_a_tree = true;
        if let Some(quota) = bytes {
            self.allowance.draw_from(quota, Limit::Bytes);
        }
    }

    /// What has been done so far.
    pub fn progress(&self) -> &Summary {
        &self.summary
    }

    /// The same in short, for who looks on from another thread.
    pub fn watch(&self) -> Progress {
        self.progress.clone()
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

    /// Whether its time is over; not once the name is made, which is the success.
    fn is_late(&self) -> bool {
        self.phase != Phase::SyncDirectory
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn fail(&mut self, cause: Cause) -> Step {
        self.forget_last_hole();
        self.discard();
        if let Source::Feed(feed) = &self.request.source {
            // What was put and not taken came out of its source all the same.
            feed.refuse(Errno::CANCELED);
            self.summary.consumed += feed.left() as u64;
        }
        if let Destination::Feed(feed) = &self.request.destination {
            // What was put and not taken has not arrived, and does not later.
            let left = feed.revoke(Errno::CANCELED) as u64;
            self.summary.bytes -= left;
            self.moved_by[Mechanism::ReadWrite as usize] -= left;
        }
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

    /// Tells those at the other ends that nothing more is taken, and nothing more comes.
    fn close_feeds(&self, how: Result<(), Errno>) {
        if let Source::Feed(feed) = &self.request.source {
            feed.refuse(how.err().unwrap_or(Errno::PIPE));
        }
        if let Destination::Feed(feed) = &self.request.destination {
            feed.end(how);
        }
    }

    fn count(&mut self) {
        self.summary.elapsed = self.started.map_or(Duration::ZERO, |since| since.elapsed());
        self.summary.method = Mechanism::of_most(&self.moved_by);
    }

    fn end(&mut self, outcome: Step) -> Step {
        self.close_feeds(match &outcome {
            Step::Failed(_) => Err(Errno::CANCELED),
            _ => Ok(()),
        });
        self.phase = Phase::Ended;
        self.target = None;
        self.from = None;
        self.unread = None;
        self.close_source();
        self.hand = Hand::default();
        self.directory = None;
        self.progress.note(self.summary.bytes, self.expected);
        self.progress.end(self.summary.files);
        self.outcome = Some(outcome.clone());
        outcome
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if self.outcome.is_none() {
            self.close_feeds(Err(Errno::CANCELED));
            self.discard();
            self.progress.end(0);
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

pub(crate) fn at_source(errno: Errno) -> Cause {
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
