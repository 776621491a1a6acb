//! What a thread of the pool works on.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::cancel::{Cancel, Watched};
use crate::environment::Environment;
use crate::error::{Cause, Error};
use crate::pace::SLICE;
use crate::progress::Progress;
use crate::read::{self, ReadRequest};
use crate::request::Request;
use crate::summary::Summary;
use crate::sys::Readiness;
use crate::transfer::{Step, Transfer, Waits};

/// How long a copy waits on its thread, which costs less than to hand it over and back.
const LITTLE: Duration = Duration::from_micros(500);
/// The same of one that has moved something since the last time. Its wait is mostly over long before,
/// and a time that comes after the kernel's next tick costs it nothing to set and to take back (with
/// half a millisecond, 64 KiB through a pipe took 30 % longer).
const FLOWING: Duration = SLICE;

/// What to do with a task that ran.
pub(super) enum Next {
    Ended,
    /// Others wait; it comes back in its turn.
    Again,
    Later(Duration),
    /// An end is not ready.
    Wait,
}

/// Something that ends with exactly one call of its `done`, even if it is dropped.
pub(super) trait Task: Send + fmt::Debug {
    /// Works until it has ended or should give way. `begin` is called before each step.
    fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> Next;

    /// What it waits for, after [`Next::Wait`].
    fn waits(&self) -> Waits<'_>;

    /// What its wait has brought.
    fn woken(&mut self, source: Readiness, destination: Readiness);

    /// What rings where one of its ends is in this process.
    fn bell(&self) -> Option<Arc<Bell>>;

    /// What ends it.
    fn cancel(&self) -> &Cancel;

    /// Whether there may be something to clean up.
    fn has_begun(&self) -> bool;

    /// Ends it before it could.
    fn refuse(self: Box<Self>);
}

type Done<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// Calls its function once, when it is dropped: with the outcome that it was told, or with a panic's.
struct Caller<T> {
    done: Option<Done<T>>,
    outcome: Option<Result<T, Error>>,
}

impl<T> Caller<T> {
    fn new(done: Done<T>) -> Self {
        Self {
            done: Some(done),
            outcome: None,
        }
    }

    fn tell(&mut self, outcome: Result<T, Error>) {
        self.outcome.get_or_insert(outcome);
    }
}

impl<T> Drop for Caller<T> {
    fn drop(&mut self) {
        let outcome = self.outcome.take();
        if let Some(done) = self.done.take() {
            done(outcome.unwrap_or_else(|| Err(ended_by(Cause::Panicked))));
        }
    }
}

fn ended_by(cause: Cause) -> Error {
    Error {
        cause,
        path: None,
        done: Summary::default(),
    }
}

// In both tasks the work stands before the caller, so that a drop cleans up before it tells. Who is
// told finds its own handles given up too: a file that it closes then is closed, and one that was
// written can be executed (execve(2), `ETXTBSY`).

pub(super) struct CopyTask {
    environment: Environment,
    transfer: Transfer,
    bell: Option<Arc<Bell>>,
    cancel: Cancel,
    /// What ends it in the queue, until it has a thread.
    queued: Option<Watched>,
    caller: Caller<Summary>,
}

impl CopyTask {
    pub(super) fn new(
        environment: Environment,
        request: Request,
        cancel: Cancel,
        queued: Option<Watched>,
        done: Done<Summary>,
    ) -> Self {
        let mut transfer = Transfer::new(environment.clone(), request);
        let bell = transfer.has_feed().then(Arc::<Bell>::default);
        if let Some(bell) = &bell {
            transfer.set_waker(bell.clone().into());
        }
        Self {
            transfer,
            bell,
            environment,
            cancel,
            queued,
            caller: Caller::new(done),
        }
    }

    pub(super) fn watch(&self) -> Progress {
        self.transfer.watch()
    }

    /// Whether an end was ready so soon.
    fn wait_a_little(&mut self, longest: Duration) -> bool {
        if self.bell.is_some() {
            return false;
        }
        let sys = self.environment.sys();
        match self.transfer.waits().poll(sys, None, Some(longest)) {
            Ok([source, destination]) => {
                self.transfer.woken(source, destination);
                source.ready || destination.ready
            }
            Err(_) => false,
        }
    }
}

impl Task for CopyTask {
    fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> Next {
        self.queued = None;
        let started = Instant::now();
        let mut flows = false;
        loop {
            begin();
            let step = if self.cancel.is_cancelled() {
                self.transfer.cancel()
            } else {
                self.transfer.step(u64::MAX)
            };
            match step {
                Step::Moved(moved) => flows |= moved > 0,
                Step::Later(pause) => return Next::Later(pause),
                Step::Wait => {
                    // A stream that flows is ready again before another thread could be told.
                    let longest = if flows { FLOWING } else { LITTLE };
                    flows = false;
                    if is_waited_for() || !self.wait_a_little(longest) {
                        return Next::Wait;
                    }
                }
                Step::Done(summary) => {
                    self.caller.tell(Ok(summary));
                    return Next::Ended;
                }
                Step::Failed(error) => {
                    self.caller.tell(Err(error));
                    return Next::Ended;
                }
            }
            if started.elapsed() > SLICE && is_waited_for() {
                return Next::Again;
            }
        }
    }

    fn waits(&self) -> Waits<'_> {
        self.transfer.waits()
    }

    fn woken(&mut self, source: Readiness, destination: Readiness) {
        self.transfer.woken(source, destination);
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        self.bell.clone()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn has_begun(&self) -> bool {
        self.transfer.has_begun()
    }

    fn refuse(mut self: Box<Self>) {
        if let Step::Failed(error) = self.transfer.cancel() {
            self.caller.tell(Err(error));
        }
    }
}

impl fmt::Debug for CopyTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transfer.fmt(f)
    }
}

pub(super) struct ReadTask {
    environment: Environment,
    request: ReadRequest,
    cancel: Cancel,
    queued: Option<Watched>,
    caller: Caller<Vec<u8>>,
}

impl ReadTask {
    pub(super) fn new(
        environment: Environment,
        request: ReadRequest,
        cancel: Cancel,
        queued: Option<Watched>,
        done: Done<Vec<u8>>,
    ) -> Self {
        Self {
            environment,
            request,
            cancel,
            queued,
            caller: Caller::new(done),
        }
    }
}

impl Task for ReadTask {
    fn run(&mut self, begin: &dyn Fn(), _is_waited_for: &dyn Fn() -> bool) -> Next {
        self.queued = None;
        begin();
        let outcome = read::read_in(&self.environment, &self.request, &self.cancel);
        self.caller.tell(outcome);
        Next::Ended
    }

    fn waits(&self) -> Waits<'_> {
        Waits::default()
    }

    fn woken(&mut self, _source: Readiness, _destination: Readiness) {}

    fn bell(&self) -> Option<Arc<Bell>> {
        None
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// It runs to its end at once.
    fn has_begun(&self) -> bool {
        false
    }

    fn refuse(mut self: Box<Self>) {
        self.caller.tell(Err(ended_by(Cause::Cancelled)));
    }
}

impl fmt::Debug for ReadTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}
