//! A flag that ends a copy, and the wait that it can interrupt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Cancels the copies that were given it. Clones are one and the same.
///
/// A copy looks at it between system calls, each of which is bounded, and leaves behind what its
/// options promise for a failure. Once the copy has ended it has no effect.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requested: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
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
        // Taking the lock orders this after a waiter's look at the flag: either that look sees the
        // flag, or the waiter is in `wait` by now and gets the notification.
        drop(self.0.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.wake.notify_all();
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Sleeps so long, or until cancelled.
    pub(crate) fn sleep(&self, duration: Duration) {
        let guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.0
                .wake
                .wait_timeout_while(guard, duration, |()| !self.is_cancelled()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
