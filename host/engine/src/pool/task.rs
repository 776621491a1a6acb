//! What a thread of the pool works on.

use std::fmt;
use std::time::{Duration, Instant};

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Error};
use crate::read::{self, ReadRequest};
use crate::request::Request;
use crate::summary::Summary;
use crate::transfer::{Step, Transfer};

/// How long a copy goes on while others wait.
const SLICE: Duration = Duration::from_millis(5);

/// What to do with a task that ran.
pub(super) enum Next {
    Ended,
    /// Others wait; it comes back in its turn.
    Again,
    Later(Duration),
}

/// Something that ends with exactly one call of its `done`, even if it is dropped.
pub(super) trait Task: Send + fmt::Debug {
    /// Works until it has ended or should give way. `begin` is called before each step.
    fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> Next;

    /// Whether there may be something to clean up.
    fn has_begun(&self) -> bool;

    /// Ends it before it could.
    fn refuse(self: Box<Self>);
}

type Done<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// Calls its function once: with an outcome, or with a panic's if it is dropped without.
struct Caller<T>(Option<Done<T>>);

impl<T> Caller<T> {
    fn tell(&mut self, outcome: Result<T, Error>) {
        if let Some(done) = self.0.take() {
            done(outcome);
        }
    }
}

impl<T> Drop for Caller<T> {
    fn drop(&mut self) {
        self.tell(Err(ended_by(Cause::Panicked)));
    }
}

fn ended_by(cause: Cause) -> Error {
    Error {
        cause,
        path: None,
        done: Summary::default(),
    }
}

// In both tasks the work stands before the caller, so that a drop cleans up before it tells.

pub(super) struct CopyTask {
    transfer: Transfer,
    cancel: Cancel,
    caller: Caller<Summary>,
}

impl CopyTask {
    pub(super) fn new(
        environment: Environment,
        request: Request,
        cancel: Cancel,
        done: Done<Summary>,
    ) -> Self {
        Self {
            transfer: Transfer::new(environment, request),
            cancel,
            caller: Caller(Some(done)),
        }
    }
}

impl Task for CopyTask {
    fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> Next {
        let started = Instant::now();
        loop {
            begin();
            let step = if self.cancel.is_cancelled() {
                self.transfer.cancel()
            } else {
                self.transfer.step(u64::MAX)
            };
            match step {
                Step::Moved(_) => {}
                Step::Later(pause) => return Next::Later(pause),
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
    caller: Caller<Vec<u8>>,
}

impl ReadTask {
    pub(super) fn new(
        environment: Environment,
        request: ReadRequest,
        cancel: Cancel,
        done: Done<Vec<u8>>,
    ) -> Self {
        Self {
            environment,
            request,
            cancel,
            caller: Caller(Some(done)),
        }
    }
}

impl Task for ReadTask {
    fn run(&mut self, begin: &dyn Fn(), _is_waited_for: &dyn Fn() -> bool) -> Next {
        begin();
        let outcome = read::read_in(&self.environment, &self.request, &self.cancel);
        self.caller.tell(outcome);
        Next::Ended
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
