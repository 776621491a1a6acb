//! A deadline ends a guest wherever it is.
//!
//! The clocks are fed by the tests, so that a deadline passes when a test says so; without it these
//! guests would not end. Where the engine has no epochs, nothing but the host's functions and the
//! clock can end a guest, as one that has neither a loop nor a function after its call.

use std::future::Future;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use copyist_test_artifacts::{CLI_END, READ_FILE, TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::engine::Cause;
use copyist_wasmtime::{Attachment, Deadline, EpochClock, Ticks};
use wasmtime::Trap;

use crate::host::{Ended, Epochs, Guest, Linking, runtime};
use crate::interrupts::{copying, held, start};
use crate::place::{Place, pattern};
use crate::system::{Gate, PATIENCE};

/// A clock for the guests on such an engine.
fn fed(epochs: Epochs) -> EpochClock<Ticks> {
    EpochClock::fed(epochs.engine())
}

fn ticks(clock: &EpochClock<Ticks>, count: u32) {
    for _ in 0..count {
        clock.tick();
    }
}

/// A guest that does this, on an engine with epochs.
fn doing(what: &str) -> Guest {
    Guest::new(CLI_END).args([what]).epochs(Epochs::On)
}

fn trap(result: &wasmtime::Result<Result<(), ()>>) -> Option<Trap> {
    result.as_ref().err()?.downcast_ref().copied()
}

/// What the guest came to that is ended by now.
#[track_caller]
fn ended(guest: &Receiver<Ended>) -> Ended {
    guest.recv_timeout(PATIENCE).expect("it has not ended")
}

#[track_caller]
fn assert_waits(guest: &Receiver<Ended>, attached: &Attachment<Ticks>) {
    assert!(!attached.has_passed());
    assert!(matches!(guest.try_recv(), Err(TryRecvError::Empty)));
}

#[test]
fn a_deadline_ends_a_call_while_the_system_is_still_in_it() {
    for (linking, epochs) in everywhere() {
        for (program, words) in [
            (TRANSFER_PATH, &["w/from", "w/to"][..]),
            (TRANSFER_FILE, &["w/from", "w/old"]),
            (READ_FILE, &["w/from"]),
            (READ_FILE, &["w/from", "--text"]),
        ] {
            let place = Place::with("from", &pattern(1000));
            place.write("old", b"old");
            let gate = Gate::default();
            let guest = Guest::new(program)
                .epochs(epochs)
                .dir(place.root(), "w")
                .args(words.to_vec());
            let (guest, _, told) = held(guest, &gate);
            let mut guest = guest.prepare(linking);
            let clock = fed(epochs);
            let attached = guest.attach(&clock, Ticks(2));
            let guest = start(guest);
            gate.wait_until_reached();
            clock.tick();
            assert_waits(&guest, &attached);
            clock.tick();
            assert!(attached.has_passed());
            assert_eq!(ended(&guest).trap(), Some(Trap::Interrupt), "{words:?}");
            assert!(!gate.is_open(), "the system's call has returned");
            gate.open();
            assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
            assert_eq!(place.names(), ["from", "old"], "{words:?}");
        }
    }
}

fn everywhere() -> impl Iterator<Item = (Linking, Epochs)> {
    let with = |linking| Epochs::BOTH.map(|epochs| (linking, epochs));
    Linking::BOTH.into_iter().flat_map(with)
}

#[test]
fn a_call_after_the_deadline_traps_too() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", b"bytes");
        let before = place.snapshot();
        let mut guest = copying(&place, &[]).epochs(epochs).prepare(linking);
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        clock.tick();
        // One more clock changes nothing any more.
        let again = guest.attach(&fed(epochs), Ticks(1000));
        assert_eq!(guest.run().trap(), Some(Trap::Interrupt));
        assert!(attached.has_passed() && !again.has_passed());
        assert!(place.snapshot() == before, "something has changed");
    }
}

/// Runs a guest, while this clock ticks without end.
fn run_ticking(guest: crate::host::Prepared, clock: &EpochClock<Ticks>) -> Ended {
    let guest = start(guest);
    loop {
        match guest.try_recv() {
            Ok(ended) => return ended,
            Err(TryRecvError::Empty) => clock.tick(),
            Err(TryRecvError::Disconnected) => panic!("the guest's thread has panicked"),
        }
        thread::yield_now();
    }
}

#[test]
fn a_guest_that_computes_is_ended() {
    for linking in Linking::BOTH {
        let mut guest = doing("loop").prepare(linking);
        let clock = fed(Epochs::On);
        let attached = guest.attach(&clock, Ticks(1000));
        let ended = run_ticking(guest, &clock);
        assert_eq!(ended.trap(), Some(Trap::Interrupt));
        assert!(attached.has_passed());
    }
}

/// By whom else it may be: the interrupt alone would end it in its copies only.
#[test]
fn an_interrupt_ends_a_guest_that_computes_and_is_attached() {
    for linking in Linking::BOTH {
        let mut guest = doing("loop").prepare(linking);
        let clock = fed(Epochs::On);
        let attached = guest.attach(&clock, Deadline::none());
        guest.interrupt_handle().interrupt();
        let ended = run_ticking(guest, &clock);
        assert_eq!(ended.trap(), Some(Trap::Interrupt));
        assert!(!attached.has_passed());
    }
}

#[test]
fn a_deadline_that_is_extended_is_met_later() {
    for (linking, epochs) in everywhere() {
        for moved in [
            (|attached| attached.extend(Ticks(2))) as fn(&Attachment<Ticks>) -> bool,
            |attached| attached.set(Ticks(3)),
        ] {
            let place = Place::with("from", &pattern(1000));
            let gate = Gate::default();
            let (guest, _, _) = held(copying(&place, &[]).epochs(epochs), &gate);
            let mut guest = guest.prepare(linking);
            let clock = fed(epochs);
            let attached = guest.attach(&clock, Ticks(1));
            assert_eq!(attached.remaining(), Some(Ticks(1)));
            let guest = start(guest);
            gate.wait_until_reached();
            assert!(moved(&attached));
            assert_eq!(attached.remaining(), Some(Ticks(3)));
            ticks(&clock, 2);
            assert_eq!(attached.remaining(), Some(Ticks(1)));
            assert_waits(&guest, &attached);
            clock.tick();
            assert_eq!(ended(&guest).trap(), Some(Trap::Interrupt));
            gate.open();
        }
    }
}

#[test]
fn a_deadline_that_has_passed_is_not_moved_any_more() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", b"bytes");
        let mut guest = copying(&place, &[]).epochs(epochs).prepare(linking);
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        clock.tick();
        assert!(!attached.extend(Ticks(1)) && !attached.set(Ticks(1)) && !attached.clear());
        assert!(attached.has_passed());
        assert_eq!(attached.remaining(), Some(Ticks(0)));
        assert_eq!(guest.run().trap(), Some(Trap::Interrupt));
    }
}

#[test]
fn a_store_without_a_deadline_may_be_called_again_with_a_new_one() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", b"bytes");
        let guest = copying(&place, &["--existing=write"]).epochs(epochs);
        let mut guest = guest.prepare(linking);
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        guest.enter().unwrap().unwrap();
        assert!(attached.clear());
        assert_eq!(attached.remaining(), None);
        // Without a deadline, none is met, and there is nothing to extend.
        ticks(&clock, 100);
        assert!(attached.extend(Ticks(1)));
        assert_eq!(attached.remaining(), None);
        guest.enter().unwrap().unwrap();
        assert!(attached.set(Ticks(1)));
        guest.enter().unwrap().unwrap();
        clock.tick();
        let result = guest.enter();
        assert_eq!(trap(&result), Some(Trap::Interrupt));
        guest.end(result);
    }
}

#[test]
fn each_store_of_an_engine_has_its_own_deadline() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", &pattern(1000));
        let clock = fed(epochs);
        let guests = [2, 1].map(|deadline| {
            let gate = Gate::default();
            let (guest, _, _) = held(copying(&place, &[]).epochs(epochs), &gate);
            let mut guest = guest.prepare(linking);
            let attached = guest.attach(&clock, Ticks(deadline));
            let guest = start(guest);
            gate.wait_until_reached();
            (guest, attached, gate)
        });
        let [later, sooner] = &guests;
        clock.tick();
        assert_eq!(ended(&sooner.0).trap(), Some(Trap::Interrupt));
        assert_waits(&later.0, &later.1);
        clock.tick();
        assert_eq!(ended(&later.0).trap(), Some(Trap::Interrupt));
        for (_, _, gate) in guests {
            gate.open();
        }
    }
}

/// Which makes the epoch go faster than the clock.
#[test]
fn who_else_increments_the_epoch_brings_no_deadline_nearer() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", &pattern(1000));
        let gate = Gate::default();
        let (guest, _, _) = held(copying(&place, &[]).epochs(epochs), &gate);
        let mut guest = guest.prepare(linking);
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        let faster = || epochs.engine().increment_epoch();
        (0..100).for_each(|_| faster());
        let guest = start(guest);
        gate.wait_until_reached();
        (0..100).for_each(|_| faster());
        assert_waits(&guest, &attached);
        gate.open();
        ended(&guest).answer().done();
    }
}

#[test]
fn a_store_that_was_never_attached_traps_at_once() {
    for linking in Linking::BOTH {
        let guest = doing("return").prepare(linking);
        assert_eq!(guest.run().trap(), Some(Trap::Interrupt));
    }
}

#[test]
fn an_attachment_takes_its_deadline_with_it() {
    for (linking, epochs) in everywhere() {
        let place = Place::with("from", &pattern(1000));
        let gate = Gate::default();
        let (guest, _, _) = held(copying(&place, &[]).epochs(epochs), &gate);
        let mut guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        let guest = start(guest);
        gate.wait_until_reached();
        drop(attached);
        clock.tick();
        assert!(!interrupt.is_interrupted());
        gate.open();
        let ended = ended(&guest);
        match epochs {
            Epochs::Off => {
                ended.answer().done();
            }
            // Nobody watches over it.
            Epochs::On => assert_eq!(ended.trap(), Some(Trap::Interrupt)),
        }
        place.assert_holds("to", &pattern(1000));
    }
}

#[test]
fn who_keeps_no_attachment_finds_out() {
    for linking in Linking::BOTH {
        let mut guest = doing("return").prepare(linking);
        drop(guest.attach(&fed(Epochs::On), Ticks(1000)));
        assert_eq!(guest.run().trap(), Some(Trap::Interrupt));
    }
}

#[test]
fn an_attachment_outlives_its_store() {
    for (linking, epochs) in everywhere() {
        let mut guest = doing("return").epochs(epochs).prepare(linking);
        let interrupt = guest.interrupt_handle();
        let clock = fed(epochs);
        let attached = guest.attach(&clock, Ticks(1));
        guest.run().output();
        assert_eq!(attached.remaining(), None);
        assert!(!attached.extend(Ticks(1)) && !attached.set(Ticks(1)) && !attached.clear());
        clock.tick();
        assert!(!attached.has_passed() && !interrupt.is_interrupted());
    }
}

#[test]
fn a_store_is_on_the_clock_that_it_was_attached_to_last() {
    for (linking, epochs) in everywhere() {
        let mut guest = doing("return").epochs(epochs).prepare(linking);
        let (first, second) = (fed(epochs), fed(epochs));
        let before = guest.attach(&first, Ticks(1));
        let attached = guest.attach(&second, Ticks(1));
        assert!(!before.extend(Ticks(1)) && attached.extend(Ticks(1)));
        ticks(&first, 2);
        second.tick();
        // Nor does the end of the first matter.
        drop(before);
        assert!(!attached.has_passed());
        guest.run().output();
    }
}

#[test]
#[should_panic(expected = "one engine")]
fn a_store_of_another_engine_is_refused() {
    let mut guest = doing("return").prepare(Linking::Sync);
    drop(guest.attach(&fed(Epochs::Off), Ticks(1)));
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls by hand, so that nothing is left to chance.
fn poll<F: Future>(call: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    call.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

/// It waits in wasi:io/poll, where neither an epoch nor a cancel of copies ends it.
#[test]
fn a_call_that_waits_in_another_host_function_is_ended() {
    for epochs in Epochs::BOTH {
        let mut guest = doing("sleep").epochs(epochs).prepare(Linking::Async);
        let clock = fed(epochs);
        let runtime = runtime();
        let _in = runtime.enter();
        let wakes = Arc::new(Wakes::default());
        let mut call = Box::pin(guest.call_within(&clock, Ticks(2)));
        assert!(poll(call.as_mut(), &wakes).is_pending());
        clock.tick();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        assert!(poll(call.as_mut(), &wakes).is_pending());
        clock.tick();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "the clock wakes it");
        let Poll::Ready(result) = poll(call.as_mut(), &wakes) else {
            panic!("it still waits");
        };
        assert_eq!(trap(&result), Some(Trap::Interrupt));
        drop(call);
        // All that it had is given up, and the store is spent.
        assert_eq!(Arc::strong_count(&wakes), 1);
        assert!(guest.interrupt_handle().is_interrupted());
    }
}

#[test]
fn the_deadline_of_a_call_that_waits_can_be_moved() {
    let mut guest = doing("sleep").prepare(Linking::Async);
    let clock = fed(Epochs::On);
    let attached = guest.attach(&clock, Ticks(1));
    let runtime = runtime();
    let _in = runtime.enter();
    let wakes = Arc::new(Wakes::default());
    let mut call = Box::pin(guest.call_attached(&attached));
    assert!(poll(call.as_mut(), &wakes).is_pending());
    assert!(attached.extend(Ticks(1)));
    clock.tick();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    clock.tick();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    let Poll::Ready(result) = poll(call.as_mut(), &wakes) else {
        panic!("it still waits");
    };
    assert_eq!(trap(&result), Some(Trap::Interrupt));
}

#[test]
#[should_panic(expected = "the one that was attached")]
fn a_store_has_no_other_stores_deadline() {
    let [mut guest, mut other] = [(); 2].map(|()| doing("sleep").prepare(Linking::Async));
    let attached = other.attach(&fed(Epochs::On), Ticks(1));
    drop(runtime().block_on(guest.call_attached(&attached)));
}

#[test]
fn who_interrupts_the_store_ends_a_call_without_a_deadline() {
    let mut guest = doing("sleep").epochs(Epochs::Off).prepare(Linking::Async);
    let interrupt = guest.interrupt_handle();
    let clock = fed(Epochs::Off);
    let result = runtime().block_on(async {
        let mut call = pin!(guest.call_within(&clock, Deadline::none()));
        let wakes = Arc::new(Wakes::default());
        assert!(poll(call.as_mut(), &wakes).is_pending());
        interrupt.interrupt();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        call.await
    });
    assert_eq!(trap(&result), Some(Trap::Interrupt));
}

/// Where the guest can trap by itself it does, so that the error says where it was.
#[test]
fn a_call_that_waits_for_its_copy_traps_in_it() {
    let place = Place::with("from", &pattern(1000));
    let gate = Gate::default();
    let (guest, _, told) = held(copying(&place, &[]), &gate);
    let mut guest = guest.prepare(Linking::Async);
    let clock = fed(Epochs::Off);
    let wakes = Arc::new(Wakes::default());
    let mut call = Box::pin(guest.call_within(&clock, Ticks(1)));
    assert!(poll(call.as_mut(), &wakes).is_pending());
    gate.wait_until_reached();
    clock.tick();
    let Poll::Ready(result) = poll(call.as_mut(), &wakes) else {
        panic!("it still waits");
    };
    assert_eq!(trap(&result), Some(Trap::Interrupt));
    let error = format!("{:?}", result.unwrap_err());
    assert!(error.contains("wasm backtrace"), "{error}");
    drop(call);
    assert!(!gate.is_open());
    gate.open();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
}

#[test]
fn a_call_that_ends_in_time_hands_over_its_result_and_may_be_made_again() {
    for epochs in Epochs::BOTH {
        let place = Place::with("from", b"bytes");
        let guest = copying(&place, &["--existing=write"]).epochs(epochs);
        let mut guest = guest.prepare(Linking::Async);
        let clock = fed(epochs);
        for _ in 0..2 {
            let result = runtime().block_on(guest.call_within(&clock, Ticks(1)));
            result.unwrap().unwrap();
            // The deadline went with the call.
            ticks(&clock, 2);
            assert!(!guest.interrupt_handle().is_interrupted());
        }
        guest.end(Ok(Ok(()))).answers();
    }
}

#[test]
fn a_call_that_is_dropped_takes_its_deadline_with_it() {
    let mut guest = doing("sleep").prepare(Linking::Async);
    let interrupt = guest.interrupt_handle();
    let clock = fed(Epochs::On);
    let runtime = runtime();
    let _in = runtime.enter();
    let wakes = Arc::new(Wakes::default());
    let mut call = Box::pin(guest.call_within(&clock, Ticks(1)));
    assert!(poll(call.as_mut(), &wakes).is_pending());
    drop(call);
    clock.tick();
    assert!(!interrupt.is_interrupted());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
}

/// As embedders do it, whose runtimes move futures from thread to thread.
#[test]
fn a_call_can_be_a_task_of_its_own() {
    let clock = fed(Epochs::On);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let tasks = ["sleep", "loop", "sleep", "loop"].map(|what| {
        let (clock, mut guest) = (clock.clone(), doing(what).prepare(Linking::Async));
        let deadline = Deadline::after(Ticks(1000)).yielding(NonZeroU64::MIN);
        runtime.spawn(async move { guest.call_within(&clock, deadline).await })
    });
    while !tasks.iter().all(|task| task.is_finished()) {
        clock.tick();
        thread::yield_now();
    }
    for task in tasks {
        let result = runtime.block_on(task).unwrap();
        assert_eq!(trap(&result), Some(Trap::Interrupt));
    }
}

/// With one thread for all, none would come on if the guest did not yield.
#[test]
fn a_guest_that_computes_lets_others_run() {
    let mut guest = doing("loop").prepare(Linking::Async);
    let interrupt = guest.interrupt_handle();
    let clock = fed(Epochs::On);
    let deadline = Deadline::none().yielding(NonZeroU64::new(3).unwrap());
    let result = thread::scope(|scope| {
        let done = scope.spawn(|| {
            runtime().block_on(async {
                let others = async {
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    interrupt.interrupt();
                };
                tokio::join!(guest.call_within(&clock, deadline), others).0
            })
        });
        while !done.is_finished() {
            clock.tick();
            thread::yield_now();
        }
        done.join().unwrap()
    });
    assert_eq!(trap(&result), Some(Trap::Interrupt));
}

#[test]
fn a_guest_that_yields_is_called_with_async() {
    let mut guest = doing("return").prepare(Linking::Sync);
    let clock = fed(Epochs::On);
    let deadline = Deadline::after(Ticks(1000)).yielding(NonZeroU64::MIN);
    let _attached = guest.attach(&clock, deadline);
    let error = guest.enter().unwrap_err();
    assert!(error.to_string().contains("_async"), "{error}");
}

const PERIOD: Duration = Duration::from_millis(1);

#[test]
fn a_clock_that_ticks_by_itself_ends_guests_wherever_they_are() {
    let clock = || EpochClock::owning(Epochs::On.engine(), PERIOD).unwrap();
    for linking in Linking::BOTH {
        let mut guest = doing("loop").prepare(linking);
        // The attachment keeps it.
        let attached = guest.attach(&clock(), 10 * PERIOD);
        assert_eq!(guest.run().trap(), Some(Trap::Interrupt));
        assert!(attached.has_passed());

        let place = Place::with("from", &pattern(1000));
        let gate = Gate::default();
        let (guest, _, _) = held(copying(&place, &[]).epochs(Epochs::On), &gate);
        let mut guest = guest.prepare(linking);
        let clock = clock();
        let attached = guest.attach(&clock, Deadline::none());
        let guest = start(guest);
        gate.wait_until_reached();
        assert!(attached.set(PERIOD));
        assert_eq!(ended(&guest).trap(), Some(Trap::Interrupt));
        assert!(!gate.is_open());
        gate.open();
    }
    let mut guest = doing("sleep").prepare(Linking::Async);
    let result = runtime().block_on(guest.call_within(&clock(), 10 * PERIOD));
    assert_eq!(trap(&result), Some(Trap::Interrupt));
}

#[test]
fn a_guest_that_ends_in_time_is_not_ended_by_a_clock_that_ticks_by_itself() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let mut guest = copying(&place, &[]).epochs(Epochs::On).prepare(linking);
        let clock = EpochClock::owning(Epochs::On.engine(), PERIOD).unwrap();
        let attached = guest.attach(&clock, Duration::MAX);
        assert!(attached.remaining() > Some(Duration::from_secs(3600)));
        guest.run().answer().done();
    }
}
