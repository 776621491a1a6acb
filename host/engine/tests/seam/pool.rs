//! The pool: a failure of one copy is its own, owners take turns, and everybody is told once.

use std::fs::OpenOptions;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use copyist_engine::{
    Cancel, Cause, Destination, Errno, Error, Mechanism, Owner, Pool, PoolOptions, ReadOptions,
    ReadRequest, Reflink, Request, Source, Summary,
};

use crate::bench::{Bench, CALL, SIZE, Shape, Start};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

/// How long a test waits for what must come before it fails. Nothing is measured by it.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(20)
}

/// A call that stops at a gate blocks there until the test opens it.
pub(crate) struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Whether a call is there, and whether it may go on.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Inner {
    fn set(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Whether it came to be in so much time.
    fn wait(&self, until: impl Fn((bool, bool)) -> bool, patience: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(state, patience, |state| !until(*state))
            .unwrap_or_else(PoisonError::into_inner);
        until(*waited.0)
    }
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// A call that blocks here and is then made.
    pub(crate) fn outcome(&self) -> Outcome {
        let inner = self.0.clone();
        Outcome::after(move || {
            inner.set(|state| state.0 = true);
            // Longer than anybody waits for what comes after it.
            let opened = inner.wait(|state| state.1, 3 * patience());
            assert!(opened, "nobody opens the gate");
        })
    }

    pub(crate) fn wait_until_reached(&self) {
        let reached = self.0.wait(|state| state.0, patience());
        assert!(reached, "no call comes to the gate");
    }

    pub(crate) fn open(&self) {
        self.0.set(|state| state.1 = true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

type Answer = Result<Summary, Error>;

fn pool(threads: usize, sys: &Arc<Scheduled>) -> Pool {
    let options = PoolOptions {
        threads: NonZeroUsize::new(threads).expect("at least one"),
        ..PoolOptions::default()
    };
    Pool::with_environment(options, sys.environment())
}

/// Reports a copy's outcome under a name.
fn tell<T>(to: &Sender<(T, Answer)>, name: T) -> impl FnOnce(Answer) + Send + use<T>
where
    T: Send + 'static,
{
    let to = to.clone();
    move |answer| drop(to.send((name, answer)))
}

fn next<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(patience()).expect("an answer")
}

/// The hook of a call that takes longer than a copy may go on while others wait.
fn longer_than_a_slice() {
    let until = Instant::now() + Duration::from_millis(6);
    while Instant::now() < until {
        thread::yield_now();
    }
}

#[test]
fn a_panic_is_an_error_to_its_caller_alone() {
    let bench = Bench::new();
    for shape in [Shape::New, Shape::Replace] {
        let sys = Scheduled::new()
            .rule(Op::CopyRange, When::Nth(2), Outcome::Panic)
            .shared();
        let pool = pool(1, &sys);
        let (send, receive) = channel();
        let request = bench.prepare(shape, Start::CopyRange);
        pool.copy(Owner(1), request, Cancel::new(), tell(&send, ()));
        let ((), answer) = next(&receive);
        let error = answer.unwrap_err();
        assert_eq!(error.cause, Cause::Panicked);
        // It had cleaned up by then.
        bench.assert_failed(shape, &error.done, &|| format!("{shape:?}"));

        let request = bench.prepare(shape, Start::CopyRange);
        pool.copy(Owner(1), request, Cancel::new(), tell(&send, ()));
        let ((), answer) = next(&receive);
        bench.assert_copied(shape, &answer.unwrap(), &|| format!("{shape:?}, the next"));
        assert_eq!(pool.threads(), 1);
    }
}

#[test]
fn a_panic_in_the_clean_up_too_is_still_an_error_to_its_caller_alone() {
    let bench = Bench::new();
    let sys = Scheduled::new()
        .rule(Op::CopyRange, When::Nth(2), Outcome::Panic)
        .rule(Op::Unlink, When::Nth(1), Outcome::Panic)
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    for name in ["first", "second"] {
        let request = bench.prepare(Shape::New, Start::CopyRange);
        pool.copy(Owner(1), request, Cancel::new(), tell(&send, name));
        let (told, answer) = next(&receive);
        assert_eq!(told, name);
        match name {
            "first" => assert_eq!(answer.unwrap_err().cause, Cause::Panicked),
            _ => bench.assert_copied(Shape::New, &answer.unwrap(), &|| name.into()),
        }
    }
    drop(pool);
    drop(send);
    assert!(receive.recv().is_err(), "somebody was told twice");
}

#[test]
fn a_panic_of_the_one_who_is_told_is_not_the_pools() {
    let bench = Bench::new();
    let pool = pool(1, &Scheduled::new().shared());
    let (send, receive) = channel();
    pool.copy(Owner(1), bench.request("one"), Cancel::new(), |_| {
        panic!("as the test wants")
    });
    pool.copy(
        Owner(1),
        bench.request("two"),
        Cancel::new(),
        tell(&send, ()),
    );
    next(&receive).1.unwrap();
    assert_eq!(pool.threads(), 1);
}

#[test]
fn owners_take_turns() {
    let bench = Bench::new();
    let gate = Gate::new();
    let sys = Scheduled::new()
        .rule(Op::Open, When::Nth(1), gate.outcome())
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    let copy = |owner, name: &'static str| {
        let done = tell(&send, name);
        pool.copy(Owner(owner), bench.request(name), Cancel::new(), done);
    };
    copy(0, "first");
    gate.wait_until_reached();
    for name in ["a1", "a2", "a3"] {
        copy(1, name);
    }
    copy(2, "b1");
    copy(3, "c1");
    copy(3, "c2");
    assert_eq!(pool.queued(), 6);
    gate.open();
    for _ in 0..7 {
        next(&receive).1.unwrap();
    }
    assert_eq!(pool.threads(), 1);
    // In turn, though one that takes long may come back in between: so of each owner the first.
    let mut order = sys.opened();
    order.retain(|path| {
        ["a1", "a2", "a3", "b1", "c1"]
            .iter()
            .any(|name| path.ends_with(name))
    });
    let order: Vec<_> = order
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(order, ["a1", "b1", "c1", "a2", "a3"]);
}

/// A source whose every read takes longer than a slice.
fn slow(bench: &Bench) -> (Scheduled, Request) {
    let sys = Scheduled::new().rule(Op::Read, When::From(1), Outcome::after(longer_than_a_slice));
    (sys, bench.prepare(Shape::New, Start::ReadWrite))
}

#[test]
fn a_long_copy_gives_way_to_another_owner() {
    let bench = Bench::new();
    let gate = Gate::new();
    let (sys, long) = slow(&bench);
    let sys = sys.rule(Op::Write, When::Nth(1), gate.outcome()).shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    pool.copy(Owner(1), long, Cancel::new(), tell(&send, "long"));
    gate.wait_until_reached();
    let mut short = bench.request("short");
    short.options.reflink = Reflink::Never;
    pool.copy(Owner(2), short, Cancel::new(), tell(&send, "short"));
    gate.open();
    let order = [next(&receive).0, next(&receive).0];
    assert_eq!(order, ["short", "long"]);
}

/// Otherwise all copies of an owner would be open at once, however many.
#[test]
fn a_copy_that_gave_way_ends_before_its_owners_next_one_begins() {
    let bench = Bench::new();
    let gate = Gate::new();
    let (sys, first) = slow(&bench);
    let sys = sys.rule(Op::Write, When::Nth(1), gate.outcome()).shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    pool.copy(Owner(1), first, Cancel::new(), tell(&send, "first"));
    gate.wait_until_reached();
    let mut second = bench.request("second");
    second.options.tuning.force_fallback = true;
    pool.copy(Owner(1), second, Cancel::new(), tell(&send, "second"));
    gate.open();
    let order = [next(&receive).0, next(&receive).0];
    assert_eq!(order, ["first", "second"]);
    let ops = sys.ops();
    let opens = ops.iter().filter(|op| **op == Op::Open).count();
    let first_close = ops.iter().position(|op| *op == Op::Close);
    let opened_before = ops[..first_close.unwrap()]
        .iter()
        .filter(|op| **op == Op::Open)
        .count();
    assert_eq!((opens, opened_before), (4, 2));
}

#[test]
fn a_call_that_does_not_return_is_counted_until_it_does() {
    let bench = Bench::new();
    let gate = Gate::new();
    let sys = Scheduled::new()
        .rule(Op::Read, When::Nth(2), gate.outcome())
        .shared();
    let options = PoolOptions {
        threads: NonZeroUsize::MIN,
        stuck_after: Duration::ZERO,
        spare_threads: 0,
    };
    let pool = Pool::with_environment(options, sys.environment());
    let (send, receive) = channel();
    assert_eq!(pool.stuck(), 0);
    let request = bench.prepare(Shape::New, Start::ReadWrite);
    pool.copy(Owner(1), request, Cancel::new(), tell(&send, ()));
    gate.wait_until_reached();
    assert_eq!(pool.stuck(), 1);
    gate.open();
    next(&receive).1.unwrap();
    // The caller is told from within, so the thread is out of it a moment later.
    wait_until(|| pool.stuck() == 0, "it is counted for ever");
    // Between the calls of a copy, and in a thread without work, nothing is stuck.
    assert_eq!(pool.threads(), 1);
}

// https://github.com/bytecodealliance/wasmtime/issues/8392: one stuck copy kept all others waiting.
#[test]
fn wasmtime_8392_others_take_the_place_of_stuck_threads_and_leave_when_they_are_back() {
    let bench = Bench::new();
    let gates = [Gate::new(), Gate::new()];
    let mut sys = Scheduled::new();
    for (n, gate) in gates.iter().enumerate() {
        sys = sys.rule(Op::Open, When::Nth(n + 1), gate.outcome());
    }
    let options = PoolOptions {
        threads: NonZeroUsize::MIN,
        stuck_after: Duration::from_millis(1),
        spare_threads: 1,
    };
    let pool = Pool::with_environment(options, sys.shared().environment());
    let (send, receive) = channel();
    let copy = |name: &'static str| {
        let done = tell(&send, name);
        pool.copy(Owner(1), bench.request(name), Cancel::new(), done);
    };
    copy("first");
    gates[0].wait_until_reached();
    // Nobody comes after it whose arrival would show that the only thread is stuck.
    copy("second");
    gates[1].wait_until_reached();
    assert_eq!(pool.threads(), 2);
    // There is one spare thread and no more.
    copy("third");
    wait_until(|| pool.stuck() == 2, "they are not counted");
    assert_eq!((pool.threads(), pool.queued()), (2, 1));
    gates[1].open();
    for name in ["second", "third"] {
        assert_eq!(next(&receive).0, name);
    }
    gates[0].open();
    assert_eq!(next(&receive).0, "first");
    wait_until(|| pool.threads() == 1, "the spare thread stays");
}

#[test]
fn a_thread_is_started_for_work_and_no_more_than_allowed() {
    let bench = Bench::new();
    let gates: Vec<_> = (0..3).map(|_| Gate::new()).collect();
    let mut sys = Scheduled::new();
    for (n, gate) in gates.iter().enumerate() {
        sys = sys.rule(Op::Open, When::Nth(n + 1), gate.outcome());
    }
    let pool = pool(2, &sys.shared());
    assert_eq!(pool.threads(), 0);
    let (send, receive) = channel();
    let copy = |name: &'static str| {
        let done = tell(&send, name);
        pool.copy(Owner(1), bench.request(name), Cancel::new(), done);
    };
    copy("one");
    gates[0].wait_until_reached();
    assert_eq!(pool.threads(), 1);
    copy("two");
    gates[1].wait_until_reached();
    assert_eq!(pool.threads(), 2);
    copy("three");
    assert_eq!((pool.threads(), pool.queued()), (2, 1));
    for gate in &gates {
        gate.open();
    }
    for _ in 0..3 {
        next(&receive).1.unwrap();
    }
    // Those that are idle by now do the next one.
    copy("four");
    next(&receive).1.unwrap();
    assert_eq!(pool.threads(), 2);
}

#[test]
fn a_copy_cancelled_in_the_queue_makes_no_call() {
    let bench = Bench::new();
    let gate = Gate::new();
    let sys = Scheduled::new()
        .rule(Op::Open, When::Nth(1), gate.outcome())
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    let done = tell(&send, "running");
    pool.copy(Owner(1), bench.request("to"), Cancel::new(), done);
    gate.wait_until_reached();
    let cancel = Cancel::new();
    let done = tell(&send, "queued");
    pool.copy(Owner(1), bench.request("never"), cancel.clone(), done);
    cancel.cancel();
    // It does not wait for a thread to say so.
    let (name, answer) = next(&receive);
    assert_eq!(
        (name, answer.unwrap_err().cause),
        ("queued", Cause::Cancelled)
    );
    assert_eq!(pool.queued(), 0);
    let late = bench.request("late");
    pool.copy(Owner(1), late, cancel.clone(), tell(&send, "late"));
    assert_eq!(next(&receive).0, "late");
    gate.open();
    assert_eq!(next(&receive).0, "running");
    assert_eq!(sys.calls_of(Op::Open).len(), 2);
}

#[test]
fn who_looks_on_sees_how_far_a_copy_is_and_costs_it_no_call() {
    let mut calls = Vec::new();
    for is_watched in [true, false] {
        let bench = Bench::new();
        let gate = Gate::new();
        if !is_watched {
            gate.open();
        }
        let sys = Scheduled::new()
            .rule(Op::CopyRange, When::Nth(3), gate.outcome())
            .shared();
        let pool = pool(1, &sys);
        let (send, receive) = channel();
        let request = bench.prepare(Shape::New, Start::CopyRange);
        let progress = pool.copy(Owner(1), request, Cancel::new(), tell(&send, ()));
        if is_watched {
            gate.wait_until_reached();
            assert_eq!(progress.bytes(), 2 * CALL as u64);
            assert_eq!(progress.total(), Some(SIZE as u64));
            assert_eq!((progress.entries(), progress.has_ended()), (0, false));
            gate.open();
        }
        let summary = next(&receive).1.unwrap();
        assert_eq!(progress.bytes(), summary.bytes);
        assert_eq!((progress.entries(), progress.has_ended()), (1, true));
        calls.push(sys.calls());
    }
    assert_eq!(calls[0], calls[1]);
    // One that fails says how far it came.
    let bench = Bench::new();
    let sys = Scheduled::new()
        .rule(Op::CopyRange, When::Nth(3), Outcome::Fail(Errno::NOSPC))
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    let request = bench.prepare(Shape::New, Start::CopyRange);
    let progress = pool.copy(Owner(1), request, Cancel::new(), tell(&send, ()));
    let error = next(&receive).1.unwrap_err();
    assert_eq!(error.done.bytes, 2 * CALL as u64);
    assert_eq!(progress.bytes(), error.done.bytes);
    assert_eq!((progress.entries(), progress.has_ended()), (0, true));
}

#[test]
fn a_cancel_ends_a_copy_that_waits_to_try_again() {
    let bench = Bench::new();
    let tried = Gate::new();
    tried.open();
    // A lease that is never given up.
    let sys = Scheduled::new()
        .rule(Op::Open, When::Nth(1), tried.outcome())
        .rule(Op::Open, When::From(2), Outcome::Fail(Errno::AGAIN))
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    let cancel = Cancel::new();
    let request = bench.prepare(Shape::New, Start::CopyRange);
    pool.copy(Owner(1), request, cancel.clone(), tell(&send, ()));
    tried.wait_until_reached();
    cancel.cancel();
    let error = next(&receive).1.unwrap_err();
    assert_eq!(error.cause, Cause::Cancelled);
    bench.assert_failed(Shape::New, &error.done, &|| "cancelled".into());
}

/// A file that another process has a lease on until the test says that it is free.
struct Leased {
    free: Arc<AtomicBool>,
    tries: Arc<AtomicUsize>,
}

impl Leased {
    const NAME: &str = "leased";

    fn new(bench: &Bench) -> Self {
        std::fs::write(bench.path(Self::NAME), "leased").expect("room");
        Self {
            free: Arc::default(),
            tries: Arc::default(),
        }
    }

    fn on(&self, sys: Scheduled) -> Scheduled {
        let (free, tries) = (self.free.clone(), self.tries.clone());
        sys.lease(Self::NAME, move || {
            tries.fetch_add(1, Ordering::SeqCst);
            !free.load(Ordering::SeqCst)
        })
    }

    fn request(&self, bench: &Bench) -> Request {
        let mut request = bench.request("to");
        request.source = Source::Path(bench.at(Self::NAME));
        request.options.tuning.only = Some(Mechanism::SendFile);
        request
    }

    fn wait_until_tried(&self) {
        wait_until(
            || self.tries.load(Ordering::SeqCst) > 0,
            "nobody tries to open it",
        );
    }
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let until = Instant::now() + patience();
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::yield_now();
    }
}

#[test]
fn a_copy_that_tries_again_is_not_kept_waiting_by_one_that_blocks() {
    let bench = Bench::new();
    let leased = Leased::new(&bench);
    let gate = Gate::new();
    let sys = Scheduled::new().rule(Op::CopyRange, When::Nth(1), gate.outcome());
    let pool = pool(2, &leased.on(sys).shared());
    let (send, receive) = channel();
    let request = leased.request(&bench);
    pool.copy(Owner(1), request, Cancel::new(), tell(&send, "patient"));
    leased.wait_until_tried();
    let request = bench.request("stuck");
    pool.copy(Owner(2), request, Cancel::new(), tell(&send, "stuck"));
    gate.wait_until_reached();
    leased.free.store(true, Ordering::SeqCst);
    let first = receive.recv_timeout(patience());
    gate.open();
    assert_eq!(first.expect("nobody tries again").0, "patient");
    assert_eq!(next(&receive).0, "stuck");
}

#[test]
fn a_copy_that_tries_again_gets_its_turn_from_a_long_one() {
    let bench = Bench::new();
    let leased = Leased::new(&bench);
    let sys = Scheduled::new().rule(
        Op::CopyRange,
        When::From(1),
        Outcome::after(longer_than_a_slice),
    );
    let pool = pool(1, &leased.on(sys).shared());
    let (send, receive) = channel();
    let request = leased.request(&bench);
    pool.copy(Owner(1), request, Cancel::new(), tell(&send, "patient"));
    leased.wait_until_tried();
    // It does not end while the test waits.
    let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
    source.unwrap().set_len(1 << 40).unwrap();
    let mut long = bench.request("long");
    long.options.tuning.call_size = NonZeroUsize::new(CALL);
    let cancel = Cancel::new();
    pool.copy(Owner(2), long, cancel.clone(), tell(&send, "long"));
    leased.free.store(true, Ordering::SeqCst);
    let first = receive.recv_timeout(patience());
    cancel.cancel();
    assert_eq!(first.expect("nobody gives way").0, "patient");
    assert_eq!(next(&receive).0, "long");
}

#[test]
fn a_drop_answers_everybody_once_and_cleans_up_elsewhere() {
    let bench = Bench::new();
    let (slow_start, blocked) = (Gate::new(), Gate::new());
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let noted = threads.clone();
    let (sys, begun) = slow(&bench);
    let sys = sys
        .rule(Op::Write, When::Nth(1), slow_start.outcome())
        .rule(Op::SendFile, When::Nth(1), blocked.outcome())
        .rule(
            Op::Unlink,
            When::From(1),
            Outcome::after(move || noted.lock().unwrap().push(thread::current().id())),
        )
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    // One has begun and gave way, one is in a call, some have not begun.
    pool.copy(Owner(1), begun, Cancel::new(), tell(&send, "begun"));
    slow_start.wait_until_reached();
    let mut in_a_call = bench.request("in a call");
    in_a_call.options.reflink = Reflink::Never;
    pool.copy(Owner(2), in_a_call, Cancel::new(), tell(&send, "in a call"));
    slow_start.open();
    blocked.wait_until_reached();
    for name in ["queued 1", "queued 2"] {
        pool.copy(
            Owner(1),
            bench.request(name),
            Cancel::new(),
            tell(&send, name),
        );
    }
    let told = tell(&send, "a read");
    let read = ReadRequest {
        source: Source::Path(bench.at(SOURCE)),
        options: ReadOptions::default(),
    };
    pool.read(Owner(3), read, Cancel::new(), move |answer| {
        told(answer.map(|_| Summary::default()));
    });
    drop(send);
    drop(pool);
    // What has not begun is told while the one thread is still in its call.
    let mut told: Vec<_> = (0..3).map(|_| next(&receive)).collect();
    told.sort_by_key(|(name, _)| *name);
    for ((name, answer), wanted) in told.iter().zip(["a read", "queued 1", "queued 2"]) {
        assert_eq!(*name, wanted);
        assert_eq!(answer.as_ref().unwrap_err().cause, Cause::Cancelled);
    }
    blocked.open();
    let mut rest: Vec<_> = receive.iter().collect();
    rest.sort_by_key(|(name, _)| *name);
    let names: Vec<_> = rest.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["begun", "in a call"], "each once, and no more");
    assert_eq!(rest[0].1.as_ref().unwrap_err().cause, Cause::Cancelled);
    assert!(rest[1].1.is_ok());
    assert!(!bench.path("to").exists(), "what had begun is left");
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), 1);
    assert_ne!(threads[0], thread::current().id());
}

#[test]
fn a_read_on_the_pool_is_told_too_and_panics_for_its_caller_alone() {
    let bench = Bench::new();
    let sys = Scheduled::new()
        .rule(Op::Read, When::Nth(2), Outcome::Panic)
        .shared();
    let pool = pool(1, &sys);
    let (send, receive) = channel();
    let read = || ReadRequest {
        source: Source::Path(bench.at(SOURCE)),
        options: ReadOptions::default(),
    };
    for _ in 0..2 {
        let send = send.clone();
        pool.read(Owner(1), read(), Cancel::new(), move |answer| {
            drop(send.send(answer));
        });
    }
    assert_eq!(next(&receive).unwrap_err().cause, Cause::Panicked);
    assert!(next(&receive).unwrap() == bench.content());
}

/// Who is told may close its files, and finds them closed: one that was written can be executed then.
#[test]
fn who_is_told_of_the_end_has_its_handles_back() {
    let bench = Bench::new();
    let pool = Pool::new(PoolOptions::default());
    let open = |name: &str, writes: bool| {
        let how = OpenOptions::new()
            .read(true)
            .write(writes)
            .open(bench.path(name));
        Arc::new(how.expect("a file of the test"))
    };
    bench.prepare(Shape::InPlace, Start::CopyRange);
    for cancelled in [false, true] {
        let cancel = Cancel::new();
        if cancelled {
            cancel.cancel();
        }
        let (from, to) = (open(SOURCE, false), open("to", true));
        let held = [Arc::downgrade(&from), Arc::downgrade(&to)];
        let mut request = bench.request("to");
        request.source = Source::File(from);
        request.destination = Destination::File(to);
        let (told, tells) = channel();
        pool.copy(Owner(1), request, cancel.clone(), move |_| {
            told.send(held.map(|handle| handle.strong_count()))
                .expect("the test waits");
        });
        assert_eq!(tells.recv_timeout(patience()), Ok([0, 0]), "{cancelled}");

        let from = open(SOURCE, false);
        let held = Arc::downgrade(&from);
        let request = ReadRequest {
            source: Source::File(from),
            options: ReadOptions::default(),
        };
        let (told, tells) = channel();
        pool.read(Owner(1), request, cancel, move |_| {
            told.send(held.strong_count()).expect("the test waits");
        });
        assert_eq!(tells.recv_timeout(patience()), Ok(0), "{cancelled}");
    }
}
