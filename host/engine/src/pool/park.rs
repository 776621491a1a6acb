//! Tasks that wait and hold no thread meanwhile.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::Owner;
use super::task::Task;
use super::workers::{Shared, State, Turn};
use crate::bell::Bell;
use crate::cancel::Cancel;
use crate::reactor::{Parked, Reactor};
use crate::sys::Readiness;
use crate::transfer::Waits;

/// A task on its way to be woken.
struct Waiting {
    pool: Arc<Shared>,
    owner: Owner,
    task: Box<dyn Task>,
}

impl Parked for Waiting {
    fn waits(&self) -> Waits<'_> {
        self.task.waits()
    }

    fn cancel(&self) -> &Cancel {
        self.task.cancel()
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        self.task.bell()
    }

    fn pool(&self) -> u64 {
        self.pool.number
    }

    fn resume(mut self: Box<Self>, source: Readiness, destination: Readiness) {
        self.task.woken(source, destination);
        let Self { pool, owner, task } = *self;
        pool.lock().parked -= 1;
        pool.enqueue(owner, task, Turn::Next);
    }
}

/// Looks, after a while in which nobody was free, whether the threads are stuck.
struct WatchOver {
    pool: Arc<Shared>,
    until: Instant,
    never: Cancel,
}

impl Parked for WatchOver {
    fn waits(&self) -> Waits<'_> {
        Waits {
            until: Some(self.until),
            ..Waits::default()
        }
    }

    fn cancel(&self) -> &Cancel {
        &self.never
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        None
    }

    fn pool(&self) -> u64 {
        self.pool.number
    }

    fn resume(self: Box<Self>, _source: Readiness, _destination: Readiness) {
        let mut state = self.pool.lock();
        state.is_watched_over = false;
        if state.queue.len() == 0 {
            return;
        }
        if state.workers.len() < self.pool.threads_allowed(&state) {
            self.pool.start_worker(state);
            state = self.pool.lock();
        }
        self.pool.watch_over(state);
    }
}

impl Shared {
    /// Gives a task that waits to the reactor, until an end is ready.
    pub(super) fn park(self: &Arc<Self>, owner: Owner, task: Box<dyn Task>) {
        let Some(reactor) = Reactor::of_the_process() else {
            let due = Instant::now() + crate::reactor::BLIND;
            self.lock().queue.push_later(owner, task, due);
            return;
        };
        let mut state = self.lock();
        if state.closed {
            state.queue.push_again(owner, task);
            return;
        }
        state.parked += 1;
        drop(state);
        let waiting = Box::new(Waiting {
            pool: self.clone(),
            owner,
            task,
        });
        if let Err(cancelled) = reactor.park(waiting) {
            cancelled.resume(Readiness::default(), Readiness::default());
        }
        // The pool may have been dropped while nobody found it there.
        if self.lock().closed {
            self.unpark_all();
        }
    }

    /// Takes back what waits. The pool is closed.
    pub(super) fn unpark_all(&self) {
        if let Some(reactor) = Reactor::of_the_process() {
            reactor.unpark_all(|parked| parked.pool() == self.number);
        }
    }

    /// All threads are busy and something waits for one. If they turn out to be stuck, others are
    /// started.
    pub(super) fn watch_over(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if self.options.spare_threads == 0 || state.is_watched_over || state.closed {
            return;
        }
        state.is_watched_over = true;
        drop(state);
        let watch = WatchOver {
            pool: self.clone(),
            until: Instant::now() + self.options.stuck_after,
            never: Cancel::new(),
        };
        if let Some(reactor) = Reactor::of_the_process() {
            let _ = reactor.park(Box::new(watch));
        } else {
            self.lock().is_watched_over = false;
        }
    }
}
