//! One store as its clock sees it, and what its guest asks when it looks at the epoch.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering, fence};

use wasmtime::UpdateDeadline;

use super::core::Place;
use crate::store_state::InterruptHandle;

/// Shared by the clock, the attachment and the store.
#[derive(Debug)]
pub(super) struct Watch {
    interrupt: InterruptHandle,
    state: AtomicU8,
}

const WATCHED: u8 = 0;
/// Its deadline has passed.
const PASSED: u8 = 1;
/// Its attachment was dropped before.
const DETACHED: u8 = 2;

impl Watch {
    pub(super) fn new(interrupt: InterruptHandle) -> Self {
        Self {
            interrupt,
            state: AtomicU8::new(WATCHED),
        }
    }

    pub(super) fn interrupt(&self) -> &InterruptHandle {
        &self.interrupt
    }

    pub(super) fn pass(&self) {
        self.leave(PASSED);
    }

    pub(super) fn detach(&self) {
        self.leave(DETACHED);
    }

    /// The first reason stays.
    fn leave(&self, state: u8) {
        let _ = self
            .state
            .compare_exchange(WATCHED, state, Ordering::Release, Ordering::Relaxed);
    }

    pub(super) fn has_passed(&self) -> bool {
        self.state.load(Ordering::Acquire) == PASSED
    }

    /// Whether wasm goes no further: its time is up, whoever said so, or nobody watches over it any
    /// more.
    fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) != WATCHED || self.interrupt.is_interrupted()
    }
}

/// The one callback that a store has.
///
/// It is called at each tick, whoever made it, and looks at what the clock says. So it does not
/// matter that wasmtime's own deadline cannot be moved from outside the store, nor that somebody
/// else increments the engine's epoch.
pub(super) struct Callback {
    watch: Arc<Watch>,
    place: Place,
    yield_every: Option<NonZeroU64>,
    /// The tick of the last yield.
    yielded: u64,
}

impl Callback {
    pub(super) fn new(watch: Arc<Watch>, place: Place, yield_every: Option<NonZeroU64>) -> Self {
        let yielded = place.ticks();
        Self {
            watch,
            place,
            yield_every,
            yielded,
        }
    }

    pub(super) fn look(&mut self) -> UpdateDeadline {
        // After the epoch, which compiled code has just read: see `Core::tick`.
        fence(Ordering::Acquire);
        if self.watch.is_over() {
            return UpdateDeadline::Interrupt;
        }
        if let Some(every) = self.yield_every {
            let now = self.place.ticks();
            if now.saturating_sub(self.yielded) >= every.get() {
                self.yielded = now;
                // It looks again as soon as it goes on: its time may be up by then.
                return UpdateDeadline::Yield(0);
            }
        }
        UpdateDeadline::Continue(1)
    }
}
