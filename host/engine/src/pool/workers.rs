//! The threads of a pool, and what they share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::queue::Queue;
use super::task::{Next, Task};
use super::{Owner, PoolOptions};
use crate::environment::Environment;
use crate::sys::FatalSignalsBlocked;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: PoolOptions,
    pub(super) environment: Environment,
    /// Tells this pool from others.
    pub(super) number: u64,
    state: Mutex<State>,
    pub(super) work: Condvar,
    epoch: Instant,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) queue: Queue<Box<dyn Task>>,
    pub(super) workers: Vec<Arc<Worker>>,
    idle: usize,
    /// Tasks that the reactor keeps.
    pub(super) parked: usize,
    /// Somebody looks after a while whether the threads are stuck.
    pub(super) is_watched_over: bool,
    pub(super) closed: bool,
}

/// One thread, as others see it.
#[derive(Debug, Default)]
pub(super) struct Worker {
    /// When its current step began, in nanoseconds since the pool's epoch and at least 1; 0 between
    /// steps.
    since: AtomicU64,
}

/// Where a task goes among those of its owner.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// It is new.
    Last,
    /// It has begun.
    Next,
}

impl State {
    /// Whether one more task would get a thread at once.
    pub(super) fn has_room(&self, pool: &Shared) -> bool {
        let threads = pool.options.threads.get();
        let free = self.idle + threads.saturating_sub(self.workers.len());
        !self.closed && self.queue.len() < free
    }

    /// Whether a copy should give way. Not when the pool is gone: then nothing else begins.
    fn is_waited_for(&self) -> bool {
        !self.closed && self.queue.has_due(Instant::now())
    }
}

/// A panic, of the copier or of who is told of it, ends with this one task.
pub(super) fn contain<T>(what: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(what)).ok()
}

impl Shared {
    pub(super) fn new(options: PoolOptions, environment: Environment) -> Self {
        static POOLS: AtomicU64 = AtomicU64::new(0);
        Self {
            options,
            environment,
            number: POOLS.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
            work: Condvar::new(),
            epoch: Instant::now(),
        }
    }

    /// Puts a task where a thread will take it, and starts one where there are too few.
    pub(super) fn enqueue(self: &Arc<Self>, owner: Owner, task: Box<dyn Task>, turn: Turn) {
        let mut state = self.lock();
        match turn {
            Turn::Last => state.queue.push(owner, task),
            Turn::Next => state.queue.push_again(owner, task),
        }
        if state.closed {
            // The others end when this was the last.
            drop(state);
            self.work.notify_all();
            return;
        }
        // A copy that waits for its time will want a thread too.
        if state.idle >= state.queue.len_with_later() {
            drop(state);
            self.work.notify_one();
        } else if state.workers.len() < self.threads_allowed(&state) {
            self.start_worker(state);
        } else {
            self.watch_over(state);
            self.work.notify_one();
        }
    }

    pub(super) fn start_worker(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let worker = Arc::new(Worker::default());
        let name = format!("copyist-{}", state.workers.len());
        let shared = self.clone();
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

    pub(super) fn threads_allowed(&self, state: &State) -> usize {
        let threads = self.options.threads.get();
        // They are counted only where it matters.
        if state.workers.len() < threads {
            return threads;
        }
        threads + self.stuck(state).min(self.options.spare_threads)
    }

    pub(super) fn stuck(&self, state: &State) -> usize {
        let now = self.now();
        let limit = u64::try_from(self.options.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        state
            .workers
            .iter()
            .map(|worker| worker.since.load(Ordering::Relaxed))
            .filter(|since| *since != 0 && now.saturating_sub(*since) > limit)
            .count()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code of a task runs under this lock, so what panicked left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }

    fn work(self: &Arc<Self>, worker: &Arc<Worker>) {
        let _signals = FatalSignalsBlocked::new();
        while let Some((owner, mut task)) = self.next(worker) {
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
                Some(Next::Wait) => self.park(owner, task),
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

    /// The next task, when there is one. `None` when the pool is gone and nothing is left, or when
    /// this thread stood in for another that is back.
    fn next(&self, worker: &Arc<Worker>) -> Option<(Owner, Box<dyn Task>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                match state.queue.pop_any() {
                    // Those that the reactor keeps come back now.
                    None if state.parked > 0 => {}
                    next => return next,
                }
            }
            let now = Instant::now();
            if let Some(found) = state.queue.pop_due(now) {
                // This thread may have been the one that watched the time.
                if state.idle > 0 && state.queue.next_due().is_some() {
                    self.work.notify_one();
                }
                return Some(found);
            }
            if state.workers.len() > self.threads_allowed(&state) {
                state.workers.retain(|other| !Arc::ptr_eq(other, worker));
                return None;
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
