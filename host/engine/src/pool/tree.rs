//! A tree on the threads of a pool.

use std::fmt;
use std::sync::{Arc, Weak};

use super::Owner;
use super::task::{Next, Task};
use super::workers::{Shared, Turn};
use crate::bell::Bell;
use crate::cancel::Cancel;
use crate::sys::Readiness;
use crate::transfer::Waits;
use crate::tree::{Executor, Part, PartStep};

/// Puts the parts of one tree among what its owner has in the queue.
pub(super) struct PartsOf {
    /// Parts stand in the pool's queue and know the tree, which knows this.
    pub(super) pool: Weak<Shared>,
    pub(super) owner: Owner,
}

impl Executor for PartsOf {
    fn wants_more(&self) -> bool {
        self.pool
            .upgrade()
            .is_some_and(|pool| pool.lock().has_room(&pool))
    }

    fn execute(&self, mut part: Part) {
        let Some(pool) = self.pool.upgrade() else {
            part.refuse();
            return;
        };
        pool.enqueue(self.owner, Box::new(PartTask(part)), Turn::Last);
    }
}

struct PartTask(Part);

impl Task for PartTask {
    fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> Next {
        match self.0.run(begin, is_waited_for) {
            PartStep::Ended => Next::Ended,
            PartStep::Again => Next::Again,
            PartStep::Later(pause) => Next::Later(pause),
        }
    }

    fn waits(&self) -> Waits<'_> {
        Waits::default()
    }

    fn woken(&mut self, _source: Readiness, _destination: Readiness) {}

    fn bell(&self) -> Option<Arc<Bell>> {
        None
    }

    fn cancel(&self) -> &Cancel {
        self.0.cancel()
    }

    /// What it has opened and made is given up by a thread of the pool.
    fn has_begun(&self) -> bool {
        true
    }

    fn refuse(mut self: Box<Self>) {
        self.0.refuse();
    }
}

impl fmt::Debug for PartTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
