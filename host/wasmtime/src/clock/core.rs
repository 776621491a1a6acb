//! What a clock is below its faces: a count of ticks, and who is ended at which.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use wasmtime::{Engine, EngineWeak};

use super::deadline::Units;
use super::deadlines::{Deadlines, Id};
use super::watch::Watch;

pub(super) struct Core {
    /// Weak, so that a clock keeps no engine.
    engine: EngineWeak,
    ticks: Arc<AtomicU64>,
    time: Time,
    deadlines: Mutex<Deadlines<Arc<Watch>>>,
}

/// In what the deadlines are.
pub(super) enum Time {
    /// Nanoseconds since then. The clock's own thread ends when the other end is dropped.
    Elapsed(
        Instant,
        #[expect(dead_code, reason = "its drop is what is waited for")] Sender<()>,
    ),
    /// Ticks.
    Counted,
}

impl Core {
    pub(super) fn new(engine: &Engine, time: Time) -> Self {
        Self {
            engine: engine.weak(),
            ticks: Arc::default(),
            time,
            deadlines: Mutex::default(),
        }
    }

    pub(super) fn is_of(&self, engine: &Engine) -> bool {
        self.engine
            .upgrade()
            .is_some_and(|own| Engine::same(&own, engine))
    }

    /// A tick, and whether the engine is still there.
    pub(super) fn tick(&self) -> bool {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        let due = {
            let mut deadlines = self.lock();
            let due = deadlines.take_due(self.now());
            // Under the lock, so that who comes too late to move a deadline finds it passed.
            for watch in &due {
                watch.pass();
            }
            due
        };
        // wasmtime reads and increments the epoch without any order. A guest that sees this tick
        // sees that its time is up, and one that wakes by the interrupt below sees this tick.
        fence(Ordering::Release);
        let engine = self.engine.upgrade();
        if let Some(engine) = &engine {
            engine.increment_epoch();
        }
        for watch in due {
            // It calls wakers, which are the executor's. The panic of one is not to stop the clock
            // for all.
            let _ = catch_unwind(AssertUnwindSafe(|| watch.interrupt().interrupt()));
        }
        engine.is_some()
    }

    pub(super) fn now(&self) -> u64 {
        match &self.time {
            Time::Elapsed(since, _) => since.elapsed().units(),
            Time::Counted => self.ticks.load(Ordering::Relaxed),
        }
    }

    /// Watches over a store, which gets a place for its callback.
    pub(super) fn register(self: &Arc<Self>, after: Option<u64>, watch: Arc<Watch>) -> (Id, Place) {
        let mut deadlines = self.lock();
        let due = after.map(|after| self.now().saturating_add(after));
        let id = deadlines.insert(due, watch);
        let place = Place {
            core: Arc::downgrade(self),
            ticks: self.ticks.clone(),
            id,
        };
        (id, place)
    }

    pub(super) fn forget(&self, id: Id) {
        let watch = self.lock().remove(id);
        // Without the lock: it may be the last that knows of a task, whose drop may come here again.
        drop(watch);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Deadlines<Arc<Watch>>> {
        // Nothing that can panic runs under this lock.
        self.deadlines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store's place in its clock, given up when the store is dropped or attached anew.
///
/// It keeps no clock: one with nobody who waits for a deadline need not tick.
pub(super) struct Place {
    core: Weak<Core>,
    ticks: Arc<AtomicU64>,
    id: Id,
}

impl Place {
    /// The ticks of the clock, those of nobody else.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.forget(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_state::InterruptHandle;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Wake, Waker};

    fn store() -> InterruptHandle {
        InterruptHandle::new(Arc::default())
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("as the test wants");
        }
    }

    #[test]
    fn an_executor_that_panics_stops_no_clock() {
        let engine = Engine::default();
        let core = Arc::new(Core::new(&engine, Time::Counted));
        let stores = [store(), store(), store()];
        let _places = stores
            .each_ref()
            .map(|store| core.register(Some(1), Arc::new(Watch::new(store.clone()))));
        let mut running = pin!(stores[1].interrupted());
        let waker = Waker::from(Arc::new(Panics));
        let polled = running.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert!(core.tick());
        assert!(stores.iter().all(InterruptHandle::is_interrupted));
    }

    #[test]
    fn a_clock_keeps_no_engine_and_tells_when_it_is_gone() {
        let engine = Engine::default();
        let core = Core::new(&engine, Time::Counted);
        assert!(core.is_of(&engine) && !core.is_of(&Engine::default()));
        assert!(core.tick());
        drop(engine);
        assert!(!core.tick());
    }

    /// Whoever drops a watch may drop the store by it, which gives up its place in turn.
    #[test]
    fn what_leaves_a_clock_is_dropped_where_the_clock_is_free() {
        struct Drops(Arc<Core>);

        impl Wake for Drops {
            fn wake(self: Arc<Self>) {}
        }

        impl Drop for Drops {
            fn drop(&mut self) {
                assert!(self.0.deadlines.try_lock().is_ok());
            }
        }

        let engine = Engine::default();
        let core = Arc::new(Core::new(&engine, Time::Counted));
        let store = store();
        let (_, place) = core.register(Some(1), Arc::new(Watch::new(store.clone())));
        let mut running = Box::pin(store.interrupted());
        let waker = Waker::from(Arc::new(Drops(core.clone())));
        let polled = running.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(waker);
        #[expect(
            clippy::mem_forget,
            reason = "so that the store's state has the last waker"
        )]
        std::mem::forget(running);
        drop(store);
        drop(place);
        assert_eq!(Arc::strong_count(&core), 1, "the waker is gone");
    }
}
