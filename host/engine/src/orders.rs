//! A wait and what ends it, in every order in which two or three threads can come: no wake is lost,
//! and none comes twice. Run by `ci/loom`.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake as _;
use std::time::Duration;

use loom::thread;

use crate::bell::Bell;
use crate::cancel::{Cancel, Wake};
use crate::reactor::{Parked, Reactor};
use crate::sync::Ordering;
use crate::sys::{self, Interest, Readiness, Watch};
use crate::transfer::Waits;
use crate::wake::WakeFd;

/// So long that a wake which is lost would be missed.
const LONG: Duration = Duration::from_secs(3600);

/// How often something was woken. It takes no part in the order, and so is none of loom's.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wake for Count {
    fn wake(&self) {
        self.add();
    }
}

/// A copy that waits for nothing but its cancel and its bell.
struct Waiting {
    cancel: Cancel,
    bell: Option<Arc<Bell>>,
    resumed: Count,
}

impl Parked for Waiting {
    fn waits(&self) -> Waits<'_> {
        Waits::default()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        self.bell.clone()
    }

    fn pool(&self) -> u64 {
        1
    }

    fn resume(self: Box<Self>, _source: Readiness, _destination: Readiness) {
        self.resumed.add();
    }
}

/// A reactor without its thread, which has nothing to say here, and a copy to park there.
struct Park {
    reactor: Arc<Reactor>,
    cancel: Cancel,
    bell: Option<Arc<Bell>>,
    resumed: Count,
}

impl Park {
    fn new(bell: Option<Arc<Bell>>) -> Self {
        Self {
            reactor: Arc::new(Reactor::new().expect("a descriptor is to be had")),
            cancel: Cancel::new(),
            bell,
            resumed: Count::default(),
        }
    }

    /// Parks it, as the pool does.
    fn park(&self) {
        let waiting = Box::new(Waiting {
            cancel: self.cancel.clone(),
            bell: self.bell.clone(),
            resumed: self.resumed.clone(),
        });
        if let Err(cancelled) = self.reactor.park(waiting) {
            cancelled.resume(Readiness::default(), Readiness::default());
        }
    }
}

#[test]
fn a_cancel_is_seen_by_who_begins_to_wait_or_wakes_them() {
    loom::model(|| {
        let cancel = Cancel::new();
        let cancels = thread::spawn({
            let cancel = cancel.clone();
            move || cancel.cancel()
        });
        let woken = Count::default();
        let watched = cancel.watch(Arc::new(woken.clone()));
        let saw = watched.is_none();
        cancels.join().expect("it ends");
        assert_eq!(woken.get(), usize::from(!saw));
    });
}

/// What the driver of one thread does at its first wait.
#[test]
fn a_cancel_ends_a_poll_that_begins_meanwhile() {
    loom::model(|| {
        let cancel = Cancel::new();
        let cancels = thread::spawn({
            let cancel = cancel.clone();
            move || cancel.cancel()
        });
        let wake = Arc::new(WakeFd::new().expect("a descriptor is to be had"));
        let watched = cancel.watch(wake.clone());
        let saw = watched.is_none() && cancel.is_cancelled();
        // A poll without end would be asleep here until the other has come.
        cancels.join().expect("it ends");
        let mut watch = [Watch::new(wake.as_fd(), Interest::Read)];
        let ready = sys::native().poll(&mut watch, Some(Duration::ZERO));
        assert!(saw || ready == Ok(1));
    });
}

#[test]
fn a_cancel_ends_a_sleep_that_begins_meanwhile() {
    loom::model(|| {
        let cancel = Cancel::new();
        let cancels = thread::spawn({
            let cancel = cancel.clone();
            move || cancel.cancel()
        });
        // loom lets no time pass: it says so where nobody would wake it.
        cancel.sleep(LONG);
        cancels.join().expect("it ends");
    });
}

#[test]
fn one_cancel_of_two_at_once_ends_a_wait_that_begins_meanwhile() {
    loom::model(|| {
        let park = Park::new(None);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let cancel = park.cancel.clone();
                thread::spawn(move || cancel.cancel())
            })
            .collect();
        park.park();
        for other in others {
            other.join().expect("it ends");
        }
        assert_eq!(park.resumed.get(), 1);
    });
}

#[test]
fn a_bell_ends_a_wait_that_begins_meanwhile() {
    loom::model(|| {
        let bell = Arc::<Bell>::default();
        let park = Park::new(Some(bell.clone()));
        let rings = thread::spawn(move || bell.wake());
        park.park();
        rings.join().expect("it ends");
        assert_eq!(park.resumed.get(), 1);
    });
}

#[test]
fn a_bell_and_a_cancel_at_once_end_a_wait_together() {
    loom::model(|| {
        let bell = Arc::<Bell>::default();
        let park = Park::new(Some(bell.clone()));
        let rings = thread::spawn(move || bell.wake());
        let cancels = thread::spawn({
            let cancel = park.cancel.clone();
            move || cancel.cancel()
        });
        park.park();
        rings.join().expect("it ends");
        cancels.join().expect("it ends");
        assert_eq!(park.resumed.get(), 1);
    });
}

/// It may be for the first, which something else has ended, or for the second; once the first has
/// ended, it is for the second.
#[test]
fn a_bell_is_heard_by_the_wait_that_it_comes_in() {
    loom::model(|| {
        let bell = Arc::<Bell>::default();
        let park = Park::new(Some(bell.clone()));
        let rings = thread::spawn({
            let resumed = park.resumed.clone();
            move || {
                let before = resumed.get();
                bell.wake();
                before
            }
        });
        park.park();
        park.reactor.unpark_all(|parked| parked.pool() == 1);
        assert_eq!(park.resumed.get(), 1);
        park.park();
        let before = rings.join().expect("it ends");
        assert!(park.resumed.get() > before);
    });
}
