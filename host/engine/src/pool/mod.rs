//! A bounded number of threads that copy, fair between those who ask.

mod park;
mod queue;
mod task;
mod tree;
mod withdraw;
mod workers;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::Error;
use crate::progress::Progress;
use crate::read::ReadRequest;
use crate::request::Request;
use crate::summary::Summary;
use crate::tree::{Executor as _, Tree, TreeReport, TreeRequest};

use task::{CopyTask, ReadTask, Task};
use tree::PartsOf;
use workers::{Shared, Turn, contain};

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
    /// How many threads may be started in place of stuck ones.
    pub spare_threads: usize,
}

impl Default for PoolOptions {
    /// As many threads as processors, and four at the least, since a thread often waits for a
    /// device; a call is stuck after a second, and sixteen may be.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            threads: NonZeroUsize::new(processors.max(4)).unwrap_or(NonZeroUsize::MIN),
            stuck_after: Duration::from_secs(1),
            spare_threads: 16,
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

impl Pool {
    /// A pool on the system that the process runs on. It starts no thread yet.
    pub fn new(options: PoolOptions) -> Self {
        Self::with_environment(options, Environment::native())
    }

    /// A pool on another system layer.
    pub fn with_environment(options: PoolOptions, environment: Environment) -> Self {
        Self {
            shared: Arc::new(Shared::new(options, environment)),
        }
    }

    /// Copies on one of the threads and then calls `done` there, exactly once: or where it is
    /// cancelled before it had a thread, on the one that cancels. `done` must not block.
    ///
    /// The answer tells how far it has come.
    pub fn copy(
        &self,
        owner: Owner,
        request: Request,
        cancel: Cancel,
        done: impl FnOnce(Result<Summary, Error>) + Send + 'static,
    ) -> Progress {
        let environment = self.shared.environment.clone();
        let queued = cancel.watch(self.shared.clone());
        let task = CopyTask::new(environment, request, cancel.clone(), queued, Box::new(done));
        let progress = task.watch();
        self.submit(owner, &cancel, Box::new(task));
        progress
    }

    /// Reads a whole file on one of the threads and then calls `done`, as [`copy`](Self::copy) does.
    pub fn read(
        &self,
        owner: Owner,
        request: ReadRequest,
        cancel: Cancel,
        done: impl FnOnce(Result<Vec<u8>, Error>) + Send + 'static,
    ) {
        let environment = self.shared.environment.clone();
        let queued = cancel.watch(self.shared.clone());
        let task = ReadTask::new(environment, request, cancel.clone(), queued, Box::new(done));
        self.submit(owner, &cancel, Box::new(task));
    }

    /// Copies a tree on as many of the threads as it has work for, and then calls `done` on one of
    /// them, exactly once. `done` must not block.
    ///
    /// The answer tells how far it has come, and which entries failed or were left out.
    pub fn copy_tree(
        &self,
        owner: Owner,
        request: TreeRequest,
        cancel: Cancel,
        done: impl FnOnce(Result<Summary, Error>) + Send + 'static,
    ) -> (Progress, TreeReport) {
        let executor = PartsOf {
            pool: Arc::downgrade(&self.shared),
            owner,
        };
        let environment = self.shared.environment.clone();
        let executor = Arc::new(executor);
        let done = Box::new(done);
        let tree = Tree::new(environment, request, cancel, executor.clone(), done);
        let watch = tree.watch();
        executor.execute(tree.first_part());
        watch
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.shared.lock().workers.len()
    }

    /// How many copies wait for a thread.
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// How many copies wait for a pipe, a socket or a terminal, or for the reader of a FIFO. They hold
    /// no thread.
    pub fn waiting(&self) -> usize {
        let state = self.shared.lock();
        state.parked + state.queue.put_off()
    }

    /// How many threads are in a system call that has lasted longer than
    /// [`stuck_after`](PoolOptions::stuck_after): a mount that does not answer, a clone of much
    /// unwritten data. The kernel cannot be made to end them. Others take their place, up to
    /// [`spare_threads`](PoolOptions::spare_threads).
    pub fn stuck(&self) -> usize {
        let state = self.shared.lock();
        self.shared.stuck(&state)
    }

    fn submit(&self, owner: Owner, cancel: &Cancel, task: Box<dyn Task>) {
        self.shared.enqueue(owner, task, Turn::Last);
        // It may have come when the task was not in the queue yet.
        if cancel.is_cancelled() {
            self.shared.withdraw_cancelled();
        }
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
        let parked = state.parked;
        drop(state);
        self.shared.work.notify_all();
        for (_, task) in waiting {
            contain(|| task.refuse());
        }
        if parked > 0 {
            self.shared.unpark_all();
        }
    }
}
