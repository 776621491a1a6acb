//! A flag that ends a copy, and the waits that it interrupts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};

/// Cancels the copies that were given it. Clones are one and the same.
///
/// A copy looks at it between system calls, each of which is bounded, and leaves behind what its
/// options promise for a failure. Once the copy has ended it has no effect.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    waits: Mutex<Waits>,
    sleepers: Condvar,
}

/// Those who wait, each under a number of its own.
#[derive(Default)]
struct Waits {
    next: u64,
    wakers: BTreeMap<u64, Arc<dyn Wake>>,
}

/// Ends a wait, from any thread. It must not block.
pub(crate) trait Wake: Send + Sync {
    fn wake(&self);
}

/// A wait that the cancel knows of, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    cancel: Cancel,
    number: u64,
}

impl Cancel {
    /// A new one, not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the copies that have this token, as soon as the call they are in returns. It does not
    /// wait for them. Any number of times, from any thread.
    pub fn cancel(&self) {
        self.0.requested.store(true, Ordering::Release);
        // The lock orders this after a waiter's look at the flag in `watch` or `sleep`: either that
        // look sees the flag, or the waiter stands in the list by now.
        let wakers = std::mem::take(&mut self.waits().wakers);
        self.0.sleepers.notify_all();
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Wakes this one when the cancel comes; `None` if it has come already.
    pub(crate) fn watch(&self, waker: Arc<dyn Wake>) -> Option<Watched> {
        let mut waits = self.waits();
        if self.is_cancelled() {
            return None;
        }
        let number = waits.next;
        waits.next += 1;
        waits.wakers.insert(number, waker);
        Some(Watched {
            cancel: self.clone(),
            number,
        })
    }

    /// Sleeps so long, or until cancelled.
    pub(crate) fn sleep(&self, duration: Duration) {
        let until = Instant::now() + duration;
        let mut guard = self.waits();
        while !self.is_cancelled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.0.sleepers.wait_timeout(guard, left);
            (guard, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Dropped after the lock is free: what it frees must not need it.
        let waker = self.cancel.waits().wakers.remove(&self.number);
        drop(waker);
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.wakers.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_cancel_before_the_sleep_is_seen() {
        let cancel = Cancel::new();
        cancel.cancel();
        cancel.sleep(Duration::from_secs(3600));
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn a_cancel_ends_the_sleep() {
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| cancel.sleep(Duration::from_secs(3600)));
            cancel.cancel();
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn each_wait_is_woken_once_and_none_that_has_ended() {
        let cancel = Cancel::new();
        let counts: [Arc<Count>; 3] = Default::default();
        let _first = cancel.watch(counts[0].clone()).unwrap();
        drop(cancel.watch(counts[1].clone()).unwrap());
        cancel.cancel();
        cancel.cancel();
        assert!(cancel.watch(counts[2].clone()).is_none());
        let woken = counts
            .each_ref()
            .map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [1, 0, 0]);
        assert_eq!(
            Arc::strong_count(&counts[1]),
            1,
            "an ended wait is forgotten"
        );
    }
}
