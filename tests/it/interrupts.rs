//! A copy that lasts does not keep its guest: it can be interrupted, dropped and outlived.
//!
//! The engine of these tests has no epochs and the guests have no loop after the call, so it is the
//! host's function that ends them.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use copyist_test_artifacts::{READ_FILE, TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::engine::{Cause, Pool, Tuning};
use copyist_wasmtime::{CopyCtxBuilder, Report};
use wasmtime::Trap;

use crate::host::{Ended, Guest, Linking, Prepared, runtime};
use crate::place::{Place, pattern};
use crate::system::{Altered, Call, Gate, PATIENCE};

/// Why the copies of a store ended, as their observer hears of it: when they have cleaned up.
fn causes(copying: &mut CopyCtxBuilder) -> Receiver<Option<Cause>> {
    let (tell, told) = channel();
    copying.on_copy(move |report: &Report<'_>| {
        let cause = report.outcome.err().map(|error| error.cause.clone());
        // A test that has failed listens no more.
        let _ = tell.send(cause);
    });
    told
}

/// A guest whose copies stop at the gate.
pub(crate) fn held(guest: Guest, gate: &Gate) -> (Guest, Arc<Pool>, Receiver<Option<Cause>>) {
    let pool = gate.system().pool();
    let mut told = None;
    let guest = guest.copying(|copying| {
        told = Some(causes(copying.pool(pool.clone())));
    });
    (guest, pool, told.unwrap())
}

/// Runs a guest on a thread of its own, for who must not wait for it without bound.
pub(crate) fn start(guest: Prepared) -> Receiver<Ended> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let _ = tell.send(guest.run());
    });
    told
}

pub(crate) fn copying(place: &Place, words: &[&str]) -> Guest {
    Guest::new(TRANSFER_PATH)
        .dir(place.root(), "w")
        .args(["w/from", "w/to"])
        .args(words.to_vec())
}

#[test]
fn an_interrupt_ends_the_call_while_the_system_is_still_in_it() {
    for linking in Linking::BOTH {
        for (program, words) in [
            (TRANSFER_PATH, &["w/from", "w/to"][..]),
            (TRANSFER_PATH, &["w/from", "w/to", "--replace"]),
            (TRANSFER_FILE, &["w/from", "w/old"]),
            (READ_FILE, &["w/from"]),
            (READ_FILE, &["w/from", "--text"]),
        ] {
            let place = Place::with("from", &pattern(1000));
            place.write("old", b"old");
            let gate = Gate::default();
            let guest = Guest::new(program)
                .dir(place.root(), "w")
                .args(words.to_vec());
            let (guest, pool, told) = held(guest, &gate);
            let guest = guest.prepare(linking);
            let interrupt = guest.interrupt_handle();
            let ended = start(guest);
            gate.wait_until_reached();
            assert_eq!(interrupt.in_flight(), 1);
            interrupt.interrupt();
            let ended = ended
                .recv_timeout(PATIENCE)
                .expect("the call has not ended");
            assert_eq!(ended.trap(), Some(Trap::Interrupt));
            assert!(!gate.is_open(), "the system's call has returned");
            // It is still there, and counted.
            assert_eq!((pool.stuck(), interrupt.in_flight()), (1, 1));
            gate.open();
            assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
            assert_eq!(place.names(), ["from", "old"], "{words:?}");
        }
    }
}

#[test]
fn who_waits_for_an_interrupted_store_hears_when_all_is_cleaned_up() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(1000));
        let gate = Gate::default();
        let (guest, _, _) = held(copying(&place, &[]), &gate);
        let guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        gate.wait_until_reached();
        interrupt.interrupt();
        ended
            .recv_timeout(PATIENCE)
            .expect("the call has not ended");
        assert!(!interrupt.wait_until_idle(Duration::ZERO));
        gate.open();
        assert!(interrupt.wait_until_idle(PATIENCE));
        assert_eq!(place.names(), ["from"]);
        assert_eq!(interrupt.in_flight(), 0);
    }
}

#[test]
fn a_call_that_comes_after_the_interrupt_traps_too() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let before = place.snapshot();
        for (program, words) in [
            (TRANSFER_PATH, &["w/from", "w/to"][..]),
            (READ_FILE, &["w/from"]),
            (READ_FILE, &["w/from", "--text"]),
            // What would be refused anyhow: a guest that tries for ever is ended as well.
            (TRANSFER_PATH, &["w/from", "r/to"]),
            (TRANSFER_FILE, &["w/from", "w/from", "--destination=r"]),
            (TRANSFER_FILE, &["w/from", "w/", "--destination=r"]),
        ] {
            let guest = Guest::new(program)
                .dir(place.root(), "w")
                .read_only_dir(place.root(), "r")
                .args(words.to_vec())
                .prepare(linking);
            let interrupt = guest.interrupt_handle();
            interrupt.interrupt();
            interrupt.interrupt();
            assert_eq!(guest.run().trap(), Some(Trap::Interrupt), "{words:?}");
        }
        assert!(place.snapshot() == before, "something has changed");
    }
}

#[test]
fn an_interrupt_is_for_its_store_alone() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let spent = copying(&place, &[]).prepare(linking);
        spent.interrupt_handle().interrupt();
        copying(&place, &[]).run(linking).answer().done();
        assert_eq!(spent.run().trap(), Some(Trap::Interrupt));
    }
}

/// Polls the call until its copy stands at the gate.
async fn reach(call: impl Future<Output = wasmtime::Result<Result<(), ()>>>, gate: &Gate) {
    let gate = gate.clone();
    let reached = tokio::task::spawn_blocking(move || gate.wait_until_reached());
    tokio::select! {
        _ = call => panic!("the call has ended"),
        reached = reached => reached.unwrap(),
    }
}

#[test]
fn a_call_that_is_dropped_is_cancelled_and_takes_back_what_it_made() {
    for (mode, exists) in [
        (&[][..], false),
        (&["--replace"], false),
        (&["--replace"], true),
    ] {
        let place = Place::with("from", &pattern(1000));
        if exists {
            place.write("to", b"old");
        }
        let before = place.snapshot();
        let gate = Gate::default();
        let (guest, _, told) = held(copying(&place, mode), &gate);
        let mut guest = guest.prepare(Linking::Async);
        let interrupt = guest.interrupt_handle();
        // `reach` drops the call where it stands.
        runtime().block_on(reach(guest.call(), &gate));
        assert!(!gate.is_open());
        assert!(told.try_recv().is_err(), "the copy has ended");
        assert_eq!(interrupt.in_flight(), 1);
        gate.open();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
        assert!(place.snapshot() == before, "{mode:?}");
    }
}

/// A copy that has no end: its source grows as fast as it is read, and each call takes a while.
fn endless(place: &Place, gate: &Gate) -> Arc<Pool> {
    let (gate, source) = (gate.clone(), place.path("from"));
    Altered::new(move |_| {
        gate.linger(Duration::from_millis(50));
        let grown = File::options().append(true).open(&source);
        grown.and_then(|mut file| file.write_all(b"more")).unwrap();
        Ok(())
    })
    .pool()
}

/// Within the grace the drop waits, so that who comes after it finds all clean.
#[test]
fn a_drop_waits_for_a_copy_that_ends_within_the_grace() {
    let place = Place::with("from", &pattern(1000));
    let gate = Gate::default();
    let pool = endless(&place, &gate);
    let guest = copying(&place, &["--reflink=never"]).copying(|copying| {
        copying.pool(pool).grace(PATIENCE).tuning(Tuning {
            call_size: NonZeroUsize::new(1),
            ..Tuning::default()
        });
    });
    let mut guest = guest.prepare(Linking::Async);
    let interrupt = guest.interrupt_handle();
    // `reach` drops the call.
    runtime().block_on(reach(guest.call(), &gate));
    assert_eq!(place.names(), ["from"]);
    assert_eq!(interrupt.in_flight(), 0);
}

/// A panic that happens once, at the first bytes.
fn defect() -> Arc<Pool> {
    let panicked = std::sync::Once::new();
    Altered::new(move |call| {
        if call != Call::Sync && !panicked.is_completed() {
            panicked.call_once(|| {});
            panic!("as the test wants");
        }
        Ok(())
    })
    .pool()
}

#[test]
fn a_panic_is_an_error_to_its_caller_and_the_next_copy_works() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            let place = Place::with("from", &pattern(1000));
            let pool = defect();
            let answers = copying(&place, &["w/from", "w/next"])
                .args(mode.to_vec())
                .copying(|copying| {
                    copying.pool(pool.clone());
                })
                .run(linking)
                .answers();
            let [first, next] = answers.try_into().unwrap();
            first.failed("other", "-");
            next.done();
            place.assert_holds("next", &pattern(1000));
            assert_eq!(place.names(), ["from", "next"]);
        }
        let place = Place::with("from", &pattern(1000));
        let pool = defect();
        let read = || {
            Guest::new(READ_FILE)
                .dir(place.root(), "w")
                .args(["w/from"])
                .copying(|copying| {
                    copying.pool(pool.clone());
                })
                .run(linking)
                .answer()
        };
        read().failed("other", "-");
        read().done();
    }
}

/// The observer is the embedder's; its defect is not the guest's to wait for.
#[test]
fn a_panic_of_the_observer_keeps_nobody_waiting() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let guest = copying(&place, &[])
            .copying(|copying| {
                copying.on_copy(|_| panic!("as the test wants"));
            })
            .prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest).recv_timeout(PATIENCE).expect("nobody is told");
        ended.answer().failed("other", "-");
        assert_eq!(interrupt.in_flight(), 0);
    }
}
