//! A bounded number of threads that copy, fair between those who ask.

mod queue;
mod task;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::Error;
use crate::read::ReadRequest;
use crate::request::Request;
use crate::summary::Summary;
use crate::sys::FatalSignalsBlocked;

use queue::Queue;
use task::{CopyTask, Next, ReadTask, Task};

/// Whose copies these are: the pool takes turns between owners, not between copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub u64);

/// How a pool is made.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// How many threads copy at once at the most. They start when there is work.
    pub threads: NonZeroUsize,
    /// A system call that has lasted longer counts as stuck.
    pub stuck_after: Duration,
}

impl Default for PoolOptions {
    /// As many threads as processors, and four at the least, since a thread often waits for a
    /// device; a call is stuck after a second.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            threads: NonZeroUsize::new(processors.max(4)).unwrap_or(NonZeroUsize::MIN),
            stuck_after: Duration::from_secs(1),
        }
    }
}

/// Threads that copy.
///
/// A long copy gives way to the next owner every few milliseconds. A drop ends the copies that
/// wait for a thread, lets those that have one end, and waits for none of them. What a waiting copy
/// had made is removed by the pool's threads, not by the one that drops it.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: PoolOptions,
    environment: Environment,
    state: Mutex<State>,
    work: Condvar,
    epoch: Instant,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue<Box<dyn Task>>,
    workers: Vec<Arc<Worker>>,
    idle: usize,
    closed: bool,
}

/// One thread, as others see it.
#[derive(Debug, Default)]
struct Worker {
    /// When its current step began, in nanoseconds since the pool's epoch and at least 1; 0 between
    /// steps.
    since: AtomicU64,
}

impl Pool {
    /// A pool on the system that the process runs on. It starts no thread yet.
    pub fn new(options: PoolOptions) -> Self {
        Self::with_environment(options, Environment::native())
    }

    /// A pool on another system layer.
    pub fn with_environment(options: PoolOptions, environment: Environment) -> Self {
        Self {
            shared: Arc::new(Shared {
                options,
                environment,
                state: Mutex::default(),
                work: Condvar::new(),
                epoch: Instant::now(),
            }),
        }
    }

    /// Copies on one of the threads and then calls `done` there, exactly once. `done` must not
    /// block.
    pub fn copy(
        &self,
        owner: Owner,
        request: Request,
        cancel: Cancel,
        done: impl FnOnce(Result<Summary, Error>) + Send + 'static,
    ) {
        let environment = self.shared.environment.clone();
        self.submit(
            owner,
            Box::new(CopyTask::new(environment, request, cancel, Box::new(done))),
        );
    }

    /// Reads a whole file on one of the threads and then calls `done` there, exactly once. `done`
    /// must not block.
    pub fn read(
        &self,
        owner: Owner,
        request: ReadRequest,
        cancel: Cancel,
        done: impl FnOnce(Result<Vec<u8>, Error>) + Send + 'static,
    ) {
        let environment = self.shared.environment.clone();
        self.submit(
            owner,
            Box::new(ReadTask::new(environment, request, cancel, Box::new(done))),
        );
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.shared.lock().workers.len()
    }

    /// How many copies wait for a thread.
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// How many threads are in a system call that has lasted longer than
    /// [`stuck_after`](PoolOptions::stuck_after): a mount that does not answer, a clone of much
    /// unwritten data. The kernel cannot be made to end them.
    pub fn stuck(&self) -> usize {
        let now = self.shared.now();
        let limit = u64::try_from(self.shared.options.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        let state = self.shared.lock();
        state
            .workers
            .iter()
            .map(|worker| worker.since.load(Ordering::Relaxed))
            .filter(|since| *since != 0 && now.saturating_sub(*since) > limit)
            .count()
    }

    fn submit(&self, owner: Owner, task: Box<dyn Task>) {
        let mut state = self.shared.lock();
        state.queue.push(owner, task);
        // A copy that waits for its time will want a thread too.
        if state.idle >= state.queue.len_with_later()
            || state.workers.len() >= self.threads_allowed()
        {
            drop(state);
            self.shared.work.notify_one();
            return;
        }
        let worker = Arc::new(Worker::default());
        let name = format!("copyist-{}", state.workers.len());
        let shared = self.shared.clone();
        let thread = worker.clone();
        let started = std::thread::Builder::new()
            .name(name)
            .spawn(move || shared.work(&thread));
        match started {
            Ok(_) => state.workers.push(worker),
            // No more threads are to be had: the others get to it. Without any there is nobody,
            // and the caller is told.
            Err(_) if state.workers.is_empty() => {
                if let Some((_, task)) = state.queue.pop() {
                    drop(state);
                    task.refuse();
                }
            }
            Err(_) => {}
        }
    }

    fn threads_allowed(&self) -> usize {
        self.shared.options.threads.get()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let (begun, waiting): (Vec<_>, Vec<_>) = state
            .queue
            .drain()
            .into_iter()
            .partition(|(_, task)| task.has_begun());
        // The threads clean up after these, and then end.
        for (owner, task) in begun {
            state.queue.push(owner, task);
        }
        drop(state);
        self.shared.work.notify_all();
        for (_, task) in waiting {
            contain(|| task.refuse());
        }
    }
}

impl State {
    /// Whether a copy should give way. Not when the pool is gone: then nothing else begins.
    fn is_waited_for(&self) -> bool {
        !self.closed && self.queue.has_due(Instant::now())
    }
}

/// A panic, of the copier or of who is told of it, ends with this one task.
fn contain<T>(what: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(what)).ok()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of a task runs under this lock, so what panicked left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }

    fn work(&self, worker: &Worker) {
        let _signals = FatalSignalsBlocked::new();
        while let Some((owner, mut task)) = self.next() {
            let begin = || worker.since.store(self.now(), Ordering::Relaxed);
            if self.lock().closed {
                begin();
                contain(|| task.refuse());
                worker.since.store(0, Ordering::Relaxed);
                continue;
            }
            let is_waited_for = || self.lock().is_waited_for();
            let next = contain(|| task.run(&begin, &is_waited_for));
            match next {
                Some(Next::Again) => self.lock().queue.push_again(owner, task),
                Some(Next::Later(pause)) => {
                    let due = Instant::now() + pause;
                    self.lock().queue.push_later(owner, task, due);
                }
                // After a panic the drop cleans up and tells the caller. It must not happen while
                // the panic unwinds: a second one would end the process.
                Some(Next::Ended) | None => drop(contain(|| drop(task))),
            }
            worker.since.store(0, Ordering::Relaxed);
        }
    }

    /// The next task, when there is one. `None` when the pool is gone and nothing is left.
    fn next(&self) -> Option<(Owner, Box<dyn Task>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return state.queue.pop_any();
            }
            let now = Instant::now();
            if let Some(found) = state.queue.pop_due(now) {
                // This thread may have been the one that watched the time.
                if state.idle > 0 && state.queue.next_due().is_some() {
                    self.work.notify_one();
                }
                return Some(found);
            }
            state.idle += 1;
            state = match state.queue.next_due() {
                None => self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    self.work
                        .wait_timeout(state, due.saturating_duration_since(now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            state.idle -= 1;
        }
    }
}
