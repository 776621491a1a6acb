//! A store on a clock.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use wasmtime::{Result, Store, Trap};

use super::core::Core;
use super::deadline::Measure;
use super::deadlines::Id;
use super::watch::Watch;
use crate::ctx::CopyView;

/// A store's deadline, which can be moved from any thread until it has passed.
///
/// Dropped, it takes the deadline with it, and the store is again as one that is attached to no
/// clock: its wasm traps from the next tick on. Keep it as long as the guest is called.
#[must_use = "a store traps without it"]
pub struct Attachment<M: Measure> {
    core: Arc<Core>,
    watch: Arc<Watch>,
    id: Id,
    measure: PhantomData<M>,
}

impl<M: Measure> Attachment<M> {
    pub(super) fn new(core: Arc<Core>, watch: Arc<Watch>, id: Id) -> Self {
        Self {
            core,
            watch,
            id,
            measure: PhantomData,
        }
    }

    /// Gives the guest so much longer. Without a deadline it needs none.
    ///
    /// As the others, it tells whether it came in time: once its deadline has passed a store is
    /// spent, and `false` is the answer.
    pub fn extend(&self, by: M) -> bool {
        self.change(|due| due.map(|due| due.saturating_add(by.units())))
    }

    /// Gives the guest so long from now, whatever it had before: for the next call of a store.
    pub fn set(&self, after: M) -> bool {
        self.change(|_| Some(self.core.now().saturating_add(after.units())))
    }

    /// Takes the deadline away: for a store that is not called for a while.
    pub fn clear(&self) -> bool {
        self.change(|_| None)
    }

    fn change(&self, change: impl FnOnce(Option<u64>) -> Option<u64>) -> bool {
        self.core.lock().change(self.id, change)
    }

    /// What is left until the deadline: nothing where it has passed, `None` where there is none.
    pub fn remaining(&self) -> Option<M> {
        let left = match self.core.lock().due(self.id) {
            Some(due) => due.saturating_sub(self.core.now()),
            None if self.has_passed() => 0,
            None => return None,
        };
        Some(M::of(left))
    }

    /// Whether the deadline has passed: what tells it from another reason for `Trap::Interrupt`.
    pub fn has_passed(&self) -> bool {
        self.watch.has_passed()
    }

    /// As [`EpochClock::run`](super::EpochClock::run), for a store that is attached already: this
    /// deadline holds, and may be moved meanwhile.
    ///
    /// # Errors
    ///
    /// The calls' own; `Trap::Interrupt` where the store was interrupted.
    ///
    /// # Panics
    ///
    /// Where it is another store than that which was attached.
    pub async fn run<T: CopyView + 'static, R>(
        &self,
        store: &mut Store<T>,
        calls: impl AsyncFnOnce(&mut Store<T>) -> Result<R>,
    ) -> Result<R> {
        let interrupt = self.watch.interrupt();
        let is_own = interrupt.is_same(&store.data_mut().copy().ctx.interrupt_handle());
        assert!(is_own, "the store is the one that was attached");
        let mut call = pin!(calls(store));
        let mut interrupted = pin!(interrupt.interrupted());
        poll_fn(|context| {
            // First: a guest that can trap by itself says where it was, and one that has ended has
            // ended.
            if let Poll::Ready(ended) = call.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
            interrupted
                .as_mut()
                .poll(context)
                .map(|()| Err(Trap::Interrupt.into()))
        })
        .await
    }
}

impl<M: Measure> Drop for Attachment<M> {
    fn drop(&mut self) {
        self.watch.detach();
        self.core.forget(self.id);
    }
}

impl<M: Measure> fmt::Debug for Attachment<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("remaining", &self.remaining())
            .field("store", self.watch.interrupt())
            .finish()
    }
}
