//! A copy that was handed in, for who waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use copyist_engine::{Cancel, Error, Progress};
use tokio::sync::Notify;

/// What a grace is at the most, so that it can be added to any time.
const LONGEST_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// How a wait ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// The copy ended so.
    With(Result<T, Error>),
    /// The store was interrupted. The copy is being cancelled and may still be cleaning up.
    Interrupted,
}

/// A copy under way. As a future it waits without a thread; [`wait`](Self::wait) waits on this one.
///
/// A drop cancels the copy and waits until both its ends are closed and what it made is gone, but
/// no longer than the grace: a call that the kernel does not end goes on without it, and cleans up
/// when it returns.
#[derive(Debug)]
pub struct Ticket<T> {
    shared: Arc<Shared<T>>,
    grace: Duration,
    pub(crate) progress: Option<Progress>,
}

/// What the copy, its waiter and an interrupt share.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    /// As `changed`, for the pollables of a job, of which there may be any number.
    settled: Notify,
    cancel: Cancel,
}

#[derive(Debug)]
struct State<T> {
    outcome: Option<Result<T, Error>>,
    /// The outcome is there, or was and has been taken.
    ended: bool,
    interrupted: bool,
    /// Nobody wants it any more, and whoever drops it waits no longer than this.
    until: Option<Instant>,
    waker: Option<Waker>,
    /// Threads in a wait, so that nobody makes a system call to wake none.
    waiting: usize,
}

/// What its store does to a copy, whatever the copy yields.
pub(crate) trait Interrupt: Send + Sync {
    fn interrupt(&self);

    /// Cancels it for a drop, which waits until then at the most. The first word counts.
    fn abandon(&self, until: Instant);
}

impl<T> Ticket<T> {
    pub(crate) fn new(grace: Duration, cancel: Cancel) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    outcome: None,
                    ended: false,
                    interrupted: false,
                    until: None,
                    waker: None,
                    waiting: 0,
                }),
                changed: Condvar::new(),
                settled: Notify::new(),
                cancel,
            }),
            grace: grace.min(LONGEST_GRACE),
            progress: None,
        }
    }

    /// How far the copy has come. None of a read, and where it was refused at once.
    pub fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// Ends the copy; its outcome says `Cancelled` unless it had ended before. It does not wait.
    pub fn cancel(&self) {
        self.shared.cancel.cancel();
    }

    /// How it ended, any number of times; none while it is under way.
    pub(crate) fn look(&self) -> Option<Ended<T>>
    where
        T: Clone,
    {
        let state = self.shared.lock();
        if state.interrupted {
            return Some(Ended::Interrupted);
        }
        state.outcome.clone().map(Ended::With)
    }

    /// Whether it has not ended and nobody has given it up.
    pub(crate) fn is_wanted(&self) -> bool {
        let state = self.shared.lock();
        !state.is_settled() && state.until.is_none()
    }

    /// When a drop that begins now has waited for long enough.
    pub(crate) fn end_of_grace(&self) -> Instant {
        Instant::now() + self.grace
    }

    /// Blocks this thread until the copy has ended or its store is interrupted.
    pub fn wait(self) -> Ended<T> {
        let mut state = self.shared.lock();
        loop {
            if let Some(ended) = state.take() {
                return ended;
            }
            state.waiting += 1;
            state = self
                .shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Ended<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended<T>> {
        let mut state = self.shared.lock();
        match state.take() {
            Some(ended) => Poll::Ready(ended),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        self.shared.give_up(self.end_of_grace());
        let mut state = self.shared.lock();
        // An interrupt answers at once and leaves the rest to the copy's own thread.
        let Some(until) = state.until.filter(|_| !state.is_settled()) else {
            return;
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        // There is no second wait after this one that a count too high would matter to.
        state.waiting += 1;
        drop(
            self.shared
                .changed
                .wait_timeout_while(state, left, |state| !state.is_settled()),
        );
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Option<Ended<T>> {
        // An interrupted store gets no outcome any more, even one that came just before.
        if self.interrupted {
            return Some(Ended::Interrupted);
        }
        self.outcome.take().map(Ended::With)
    }

    /// Whether nobody has to wait any more.
    fn is_settled(&self) -> bool {
        self.ended || self.interrupted
    }
}

impl<T> Shared<T> {
    /// The copy has ended.
    pub(crate) fn end(&self, outcome: Result<T, Error>) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        state.ended = true;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State<T>>) {
        let waker = state.waker.take();
        let waiting = state.waiting > 0;
        drop(state);
        if waiting {
            self.changed.notify_all();
        }
        self.settled.notify_waiters();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn give_up(&self, until: Instant) {
        let mut state = self.lock();
        if state.is_settled() || state.until.is_some() {
            return;
        }
        state.until = Some(until);
        // A copy that has not begun ends within the call.
        drop(state);
        self.cancel.cancel();
    }

    /// Waits until the copy has ended or its store is interrupted, and leaves the outcome.
    pub(crate) async fn settled(&self) {
        // Made before the look, so that what comes after that is heard.
        let settled = self.settled.notified();
        if !self.lock().is_settled() {
            settled.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Interrupt for Shared<T> {
    fn interrupt(&self) {
        let mut state = self.lock();
        state.interrupted = true;
        self.wake(state);
        // Only now: a copy that waits ends at once by it, and nobody is to hear of that.
        self.cancel.cancel();
    }

    fn abandon(&self, until: Instant) {
        self.give_up(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use copyist_engine::{Cause, Summary};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cancelled() -> Error {
        Error {
            cause: Cause::Cancelled,
            path: None,
            done: Summary::default(),
        }
    }

    fn ticket() -> Ticket<u32> {
        Ticket::new(Duration::ZERO, Cancel::new())
    }

    #[test]
    fn an_outcome_wakes_who_waits() {
        let mut ticket = ticket();
        let shared = ticket.shared().clone();
        let wakes = Arc::new(Counter::default());
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut ticket).poll(&mut context).is_pending());
        shared.end(Ok(7));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(matches!(
            Pin::new(&mut ticket).poll(&mut context),
            Poll::Ready(Ended::With(Ok(7)))
        ));
    }

    #[test]
    fn an_interrupt_answers_before_the_copy_has_ended() {
        let ticket = ticket();
        let shared = ticket.shared().clone();
        shared.interrupt();
        assert!(shared.cancel.is_cancelled());
        assert!(matches!(ticket.wait(), Ended::Interrupted));
        shared.end(Err(cancelled()));
    }

    #[test]
    fn a_drop_cancels_and_waits_for_the_end() {
        let ticket: Ticket<u32> = Ticket::new(Duration::from_secs(3600), Cancel::new());
        let shared = ticket.shared().clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !shared.cancel.is_cancelled() {
                    std::thread::yield_now();
                }
                shared.end(Err(cancelled()));
            });
            // Without the end it would wait an hour.
            drop(ticket);
        });
        assert!(shared.lock().ended);
    }

    #[test]
    fn a_copy_that_was_abandoned_is_waited_for_no_longer_than_was_said_first() {
        let ticket: Ticket<u32> = Ticket::new(Duration::from_secs(3600), Cancel::new());
        let shared = ticket.shared().clone();
        assert!(ticket.is_wanted());
        shared.abandon(Instant::now());
        shared.abandon(ticket.end_of_grace());
        assert!(shared.cancel.is_cancelled() && !ticket.is_wanted());
        // It would wait an hour.
        drop(ticket);
        assert!(!shared.lock().ended);
    }

    #[test]
    fn who_only_looks_leaves_the_outcome_and_is_told_of_it() {
        let ticket = ticket();
        let shared = ticket.shared().clone();
        let wakes = Arc::new(Counter::default());
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        let mut waits = [(); 2].map(|()| Box::pin(shared.settled()));
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut context).is_pending());
        }
        assert!(ticket.look().is_none());
        shared.end(Ok(7));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
        for mut wait in waits {
            assert!(wait.as_mut().poll(&mut context).is_ready());
            assert!(matches!(ticket.look(), Some(Ended::With(Ok(7)))));
        }
        shared.interrupt();
        assert!(matches!(ticket.look(), Some(Ended::Interrupted)));
    }

    #[test]
    fn a_drop_after_the_end_cancels_nothing() {
        let ticket = ticket();
        let shared = ticket.shared().clone();
        shared.end(Ok(1));
        drop(ticket);
        assert!(!shared.cancel.is_cancelled());
    }
}
