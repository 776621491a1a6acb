//! What one store has under way, and how it is interrupted.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use copyist_engine::{Cancel, Cause, Limit};

use crate::ticket::Interrupt;

/// Shared by a store's context, its copies and the handles that interrupt it.
#[derive(Default)]
pub(crate) struct StoreState {
    state: Mutex<State>,
    idle: Condvar,
    /// Comes with the interrupt, for what waits and is no copy.
    spent: Cancel,
}

#[derive(Default)]
struct State {
    interrupted: bool,
    next: u64,
    in_flight: HashMap<u64, InFlight>,
    /// Of who runs the store and gives up when it is interrupted. Only one can.
    runner: Option<Waker>,
    /// Threads that wait for it to be empty, so that nobody makes a system call to wake none.
    waiting: usize,
}

struct InFlight {
    copy: Weak<dyn Interrupt>,
    holder: Holder,
}

/// Who holds a copy, and ends it by letting go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A call of the guest, or the embedder.
    Call,
    /// The store's table, for the guest.
    Job,
}

/// Ends what a store copies, from any thread, any number of times.
///
/// The calls that wait trap with `Trap::Interrupt` at once, and so does every later one: a guest
/// that trapped cannot be entered again, so the store is spent. What the copies had made is removed
/// on their own threads.
#[derive(Clone)]
pub struct InterruptHandle(Arc<StoreState>);

impl InterruptHandle {
    pub(crate) fn new(state: Arc<StoreState>) -> Self {
        Self(state)
    }

    /// Interrupts the store. It does not wait for the copies to end.
    pub fn interrupt(&self) {
        let mut state = self.0.lock();
        state.interrupted = true;
        let in_flight = state.those(|_| true);
        let runner = state.runner.take();
        drop(state);
        for copy in in_flight {
            copy.interrupt();
        }
        self.0.spent.cancel();
        // Last, so that it finds what the guest makes of the others.
        if let Some(runner) = runner {
            runner.wake();
        }
    }

    /// Whether the store was interrupted, by whomever.
    pub fn is_interrupted(&self) -> bool {
        self.0.lock().interrupted
    }

    /// Whether both are of one store.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Waits until it is interrupted.
    pub(crate) fn interrupted(&self) -> Interrupted<'_> {
        Interrupted(&self.0)
    }

    /// How many copies the store has under way: those that wait for a thread, and those that were
    /// interrupted and have not cleaned up yet, among them.
    pub fn in_flight(&self) -> usize {
        self.0.lock().in_flight.len()
    }

    /// Waits until no copy is under way, so that all are cleaned up, but no longer than this, and
    /// tells whether none is. For who is about to end the process, which would end the copying
    /// threads where they are.
    pub fn wait_until_idle(&self, most: Duration) -> bool {
        let mut state = self.0.lock();
        state.waiting += 1;
        let (mut state, _) = self
            .0
            .idle
            .wait_timeout_while(state, most, |state| !state.in_flight.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state.in_flight.is_empty()
    }
}

impl std::fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        f.debug_struct("InterruptHandle")
            .field("interrupted", &state.interrupted)
            .field("in_flight", &state.in_flight.len())
            .finish()
    }
}

/// Resolves when a store is interrupted.
pub(crate) struct Interrupted<'a>(&'a StoreState);

impl Future for Interrupted<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.interrupted {
            return Poll::Ready(());
        }
        let old = state.runner.replace(context.waker().clone());
        drop(state);
        // Without the lock, since a waker may be the last that knows of a task which has the store.
        drop(old);
        Poll::Pending
    }
}

impl Drop for Interrupted<'_> {
    fn drop(&mut self) {
        let runner = self.0.lock().runner.take();
        drop(runner);
    }
}

/// A copy's place among those under way, given up when it is dropped.
pub(crate) struct Place {
    store: Arc<StoreState>,
    number: u64,
}

impl StoreState {
    /// Registers a copy, or says that there are `most` already. One that comes after the interrupt
    /// is interrupted before it starts.
    pub(crate) fn enter(
        self: &Arc<Self>,
        most: usize,
        holder: Holder,
        copy: &Arc<impl Interrupt + 'static>,
    ) -> Result<Place, Cause> {
        let mut state = self.lock();
        if state.interrupted {
            drop(state);
            copy.interrupt();
            return Err(Cause::Cancelled);
        }
        if state.in_flight.len() >= most {
            return Err(Cause::Limit(Limit::Copies));
        }
        let number = state.next;
        state.next += 1;
        let copy = Arc::downgrade(copy);
        state.in_flight.insert(number, InFlight { copy, holder });
        Ok(Place {
            store: self.clone(),
            number,
        })
    }

    /// What the interrupt cancels.
    pub(crate) fn spent(&self) -> Cancel {
        self.spent.clone()
    }

    /// Cancels all jobs, for a store whose table goes away: they are dropped one by one, and must not
    /// be waited for one by one.
    pub(crate) fn abandon_jobs(&self, until: Instant) {
        let jobs = self.lock().those(|holder| holder == Holder::Job);
        for job in jobs {
            job.abandon(until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn those(&self, are_meant: impl Fn(Holder) -> bool) -> Vec<Arc<dyn Interrupt>> {
        let copies = self.in_flight.values();
        copies
            .filter(|in_flight| are_meant(in_flight.holder))
            .filter_map(|in_flight| in_flight.copy.upgrade())
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.store.lock();
        state.in_flight.remove(&self.number);
        if state.in_flight.is_empty() && state.waiting > 0 {
            self.store.idle.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Copy(AtomicUsize);

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl std::task::Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Interrupt for Copy {
        fn interrupt(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn abandon(&self, _until: Instant) {
            self.0.fetch_add(10, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_interrupt_reaches_what_is_under_way_and_what_comes_later() {
        let store = Arc::new(StoreState::default());
        let handle = InterruptHandle::new(store.clone());
        let (first, ended, late) = <(Arc<Copy>, Arc<Copy>, Arc<Copy>)>::default();
        let place = store.enter(8, Holder::Call, &first).ok();
        drop(store.enter(8, Holder::Call, &ended));
        assert_eq!(handle.in_flight(), 1);
        handle.interrupt();
        assert!(store.enter(8, Holder::Call, &late).is_err());
        let counts = [&first, &ended, &late].map(|copy| copy.0.load(Ordering::Relaxed));
        assert_eq!(counts, [1, 0, 1]);
        // It is under way until it has cleaned up.
        assert!(!handle.wait_until_idle(Duration::ZERO));
        drop(place);
        assert!(handle.wait_until_idle(Duration::ZERO));
    }

    #[test]
    fn who_runs_the_store_is_woken_by_an_interrupt_and_forgotten_when_it_has_ended() {
        let store = Arc::new(StoreState::default());
        let handle = InterruptHandle::new(store.clone());
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        let mut poll = |running: &mut Interrupted<'_>| Pin::new(running).poll(&mut context);
        let mut ended = handle.interrupted();
        assert!(poll(&mut ended).is_pending());
        assert_eq!(Arc::strong_count(&wakes), 3);
        drop(ended);
        assert_eq!(Arc::strong_count(&wakes), 2);
        let mut running = handle.interrupted();
        assert!(poll(&mut running).is_pending());
        assert!(poll(&mut running).is_pending());
        // Held here twice, and there once.
        assert_eq!(Arc::strong_count(&wakes), 3);
        handle.interrupt();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(handle.is_interrupted());
        assert!(poll(&mut running).is_ready());
        assert!(poll(&mut handle.interrupted()).is_ready());
        drop(running);
        assert_eq!(Arc::strong_count(&wakes), 2);
    }

    #[test]
    fn a_table_that_goes_away_takes_the_jobs_with_it_and_no_call() {
        let store = Arc::new(StoreState::default());
        let (call, job, ended) = <(Arc<Copy>, Arc<Copy>, Arc<Copy>)>::default();
        let _places = [
            store.enter(8, Holder::Call, &call),
            store.enter(8, Holder::Job, &job),
        ];
        drop(store.enter(8, Holder::Job, &ended));
        store.abandon_jobs(Instant::now());
        let counts = [&call, &job, &ended].map(|copy| copy.0.load(Ordering::Relaxed));
        assert_eq!(counts, [0, 10, 0]);
    }

    #[test]
    fn a_place_is_free_again_when_its_copy_has_ended() {
        let store = Arc::new(StoreState::default());
        let copy = Arc::new(Copy::default());
        let place = store.enter(1, Holder::Call, &copy).ok();
        assert!(matches!(
            store.enter(1, Holder::Call, &copy),
            Err(Cause::Limit(Limit::Copies))
        ));
        drop(place);
        assert!(store.enter(1, Holder::Call, &copy).is_ok());
    }
}
