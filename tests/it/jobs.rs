//! Jobs: copies that their guest does not wait for. It looks after them, gives them up, is ended
//! itself, or goes away and leaves them.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use copyist_test_artifacts::{JOB, TRANSFER_PATH};
use copyist_wasmtime::engine::{Cause, Pool, PoolOptions};
use copyist_wasmtime::{CopyCtxBuilder, Report};
use rustix::fs::{CWD, FileType, Mode};
use wasmtime::Trap;

use crate::host::{Guest, Linking};
use crate::interrupts::{held, start};
use crate::place::Place;
use crate::system::{Altered, Gate, PATIENCE};

/// With a file `from` and two FIFOs, `fifo` and `other`, to which nobody has written yet.
fn place() -> Place {
    let place = Place::with("from", b"bytes");
    for name in ["fifo", "other"] {
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, place.path(name), FileType::Fifo, mode, 0).unwrap();
    }
    place
}

/// Has a FIFO open for both, so that it has neither an end nor a hurry.
fn held_open(place: &Place, fifo: &str) -> File {
    let mut options = File::options();
    let file = options.read(true).write(true).open(place.path(fifo));
    file.unwrap()
}

fn script(place: &Place, steps: &[&str]) -> Guest {
    Guest::new(JOB).dir(place.root(), "w").args(steps.to_vec())
}

/// A script whose copies are a pool's own, and whose drops wait for as long as it takes.
fn scripted(place: &Place, steps: &[&str]) -> (Guest, Arc<Pool>) {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let guest = script(place, steps).copying(|copying| {
        copying.pool(pool.clone()).grace(PATIENCE);
    });
    (guest, pool)
}

/// Waits for what comes soon.
#[track_caller]
fn wait_until(what: impl Fn() -> bool) {
    let since = Instant::now();
    while !what() {
        assert!(since.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_start_does_not_wait_for_a_source_that_has_nothing_yet() {
    for linking in Linking::BOTH {
        let place = place();
        let steps = [
            "start:w/fifo:w/to",
            "progress:0",
            "outcome:0",
            "copy:w/from:w/marker",
            "wait:0",
            "progress:0",
        ];
        let (guest, pool) = scripted(&place, &steps);
        let guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        // It is long past the start, and the copy waits without a thread.
        // The other one has made its file and ends a moment later.
        wait_until(|| place.exists("marker") && pool.waiting() == 1 && interrupt.in_flight() == 1);
        let mut writer = held_open(&place, "fifo");
        writer.write_all(b"from a pipe").unwrap();
        drop(writer);
        let ended = ended.recv_timeout(PATIENCE).expect("it has not ended");
        let [early, running, copied, waited, late] = ended.answers().try_into().unwrap();
        assert_eq!((early.number("bytes"), early.get("total")), (0, "-"));
        assert_eq!(early.number("entries"), 0);
        assert_eq!(running.get("running"), "true");
        copied.done();
        assert_eq!(waited.done().number("bytes"), 11);
        assert_eq!((late.number("bytes"), late.get("total")), (11, "-"));
        assert_eq!(late.number("entries"), 1);
        place.assert_holds("to", b"from a pipe");
    }
}

#[test]
fn a_cancel_counts_what_was_done() {
    for linking in Linking::BOTH {
        for old in [None, Some(b"old content")] {
            let place = place();
            if let Some(old) = old {
                place.write("to", old);
            }
            let mut writer = held_open(&place, "fifo");
            writer.write_all(b"early").unwrap();
            let steps = [
                "start:w/fifo:w/to",
                "until:0:5",
                "cancel:0",
                "wait:0",
                "outcome:0",
                "progress:0",
                "cancel:0",
                "wait:0",
            ];
            let (guest, _) = scripted(&place, &steps);
            let ended = guest.run(linking);
            let [waited, outcome, progress, again] = ended.answers().try_into().unwrap();
            for outcome in [waited, outcome, again] {
                let outcome = outcome.failed("cancelled", "-");
                assert_eq!(
                    (outcome.number("bytes"), outcome.number("consumed")),
                    (5, 5)
                );
            }
            assert_eq!(
                (progress.number("bytes"), progress.number("entries")),
                (5, 0)
            );
            if old.is_some() {
                place.assert_holds("to", b"earlyontent");
            } else {
                assert!(!place.exists("to"), "it is still there");
            }
        }
    }
}

#[test]
fn a_cancel_after_the_end_changes_nothing() {
    for linking in Linking::BOTH {
        let place = place();
        let steps = ["start:w/from:w/to", "wait:0", "cancel:0", "outcome:0"];
        for outcome in script(&place, &steps).run(linking).answers() {
            assert_eq!(outcome.done().number("bytes"), 5);
        }
        place.assert_holds("to", b"bytes");
    }
}

#[test]
fn a_job_that_is_cancelled_before_its_turn_says_so_at_once() {
    for linking in Linking::BOTH {
        let place = place();
        let gate = Gate::default();
        let steps = [
            "start:w/from:w/one",
            "start:w/from:w/two",
            "cancel:1",
            "wait:1",
            "copy:w/absent:w/three",
            "wait:0",
        ];
        // One that has been cancelled takes nobody's place.
        let (guest, pool, told) = held(script(&place, &steps), &gate);
        let guest = guest.copying(|copying| {
            copying.max_copies(2);
        });
        let ended = start(guest.prepare(linking));
        gate.wait_until_reached();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
        assert!(!gate.is_open());
        // The third one waits for the only thread.
        wait_until(|| pool.queued() == 1);
        assert!(!place.exists("two"));
        gate.open();
        let ended = ended.recv_timeout(PATIENCE).expect("it has not ended");
        let [cancelled, absent, first] = ended.answers().try_into().unwrap();
        let cancelled = cancelled.failed("cancelled", "-");
        assert_eq!(
            (cancelled.number("bytes"), cancelled.number("consumed")),
            (0, 0)
        );
        absent.failed("no-entry", "source");
        first.done();
    }
}

#[test]
fn a_job_and_its_pollables_are_dropped_in_any_order() {
    for linking in Linking::BOTH {
        for steps in [
            &["subscribe:0", "poll:0", "drop:0", "poll:0", "unsubscribe:0"][..],
            &["subscribe:0", "drop:0", "poll:0"],
            &["subscribe:0", "drop:0", "unsubscribe:0"],
            &["subscribe:0", "unsubscribe:0", "drop:0"],
            &["subscribe:0", "subscribe:0", "poll:0", "wait:0", "poll:0"],
            &["subscribe:0"],
            &["drop:0"],
        ] {
            let place = place();
            let steps = [&["start:w/from:w/to"], steps].concat();
            script(&place, &steps).run(linking).output();
        }
        // What is left of one that was dropped under way is ready when it has ended.
        let place = place();
        let steps = ["start:w/fifo:w/to", "subscribe:0", "drop:0", "poll:0"];
        let (guest, _) = scripted(&place, &steps);
        guest.run(linking).output();
        assert!(!place.exists("to"));
    }
}

#[test]
fn neither_ended_jobs_nor_pollables_stay_when_they_are_dropped() {
    for linking in Linking::BOTH {
        let place = place();
        // More than a guest may have at once.
        let steps = ["start:w/from:w/to", "wait:0", "turns:0:20000"];
        script(&place, &steps).run(linking).answer().done();
    }
}

#[test]
fn a_drop_takes_back_what_the_job_has_made() {
    for linking in Linking::BOTH {
        let place = place();
        let mut writer = held_open(&place, "fifo");
        writer.write_all(b"early").unwrap();
        let steps = [
            "start:w/fifo:w/to",
            "until:0:5",
            "drop:0",
            // Nothing is there any more that would be in the way.
            "copy:w/from:w/to",
        ];
        let (guest, pool) = scripted(&place, &steps);
        let guest = guest.args(["--existing=refuse"]);
        guest.run(linking).answer().done();
        assert_eq!(pool.waiting(), 0);
        place.assert_holds("to", b"bytes");
    }
}

#[test]
fn a_drop_does_not_wait_for_the_system() {
    for linking in Linking::BOTH {
        let place = place();
        let gate = Gate::default();
        let steps = ["start:w/from:w/to", "await:w/go", "drop:0"];
        let (guest, pool, told) = held(script(&place, &steps), &gate);
        let guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        gate.wait_until_reached();
        place.write("go", b"");
        let ended = ended.recv_timeout(PATIENCE).expect("it has not ended");
        assert_eq!(ended.output(), "");
        // It goes on without anybody, and is counted.
        assert!(!gate.is_open());
        assert_eq!((pool.stuck(), interrupt.in_flight()), (1, 1));
        gate.open();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
        assert!(!place.exists("to"));
    }
}

#[test]
fn an_interrupt_ends_a_guest_that_polls() {
    for linking in Linking::BOTH {
        for next in [
            "wait:0",
            "outcome:0",
            "progress:0",
            "cancel:0",
            "subscribe:0",
            "start:w/from:w/more",
            "copy:w/from:w/more",
        ] {
            let place = place();
            let steps = [
                "start:w/fifo:w/to",
                "subscribe:0",
                "copy:w/from:w/marker",
                "poll:0",
                next,
            ];
            let (guest, pool) = scripted(&place, &steps);
            let guest = guest.prepare(linking);
            let interrupt = guest.interrupt_handle();
            let ended = start(guest);
            wait_until(|| place.exists("marker") && pool.waiting() == 1);
            interrupt.interrupt();
            let ended = ended.recv_timeout(PATIENCE).expect("it polls for ever");
            assert_eq!(ended.trap(), Some(Trap::Interrupt), "{next}");
            assert!(interrupt.wait_until_idle(PATIENCE));
            assert!(!place.exists("to") && !place.exists("more"), "{next}");
        }
    }
}

/// One job is in a call of the system, which returns when all others have ended. If it were waited for
/// before those that the table has behind it are told, it would not end by itself.
#[test]
fn a_store_that_goes_away_tells_all_its_jobs_before_it_waits_for_one() {
    // More than the table has places free before that of the first.
    const QUEUED: usize = 200;
    for linking in Linking::BOTH {
        let place = place();
        let gate = Gate::default();
        let was_shut = Arc::new(AtomicBool::new(false));
        let (stop, seen) = (gate.clone(), was_shut.clone());
        let system = Altered::new(move |_| {
            stop.linger(PATIENCE / 4);
            seen.fetch_or(!stop.is_open(), Ordering::Relaxed);
            Ok(())
        });
        // It outlives the store, and so does not end what is queued.
        let pool = system.pool();
        let (cancelled, let_through) = (AtomicUsize::new(0), gate.clone());
        let mut steps = vec!["start:w/from:w/first"];
        steps.extend(["start:w/fifo:w/more"; QUEUED]);
        steps.extend(["await:w/go", "leave"]);
        let guest = script(&place, &steps).copying(|copying: &mut CopyCtxBuilder| {
            copying.pool(pool.clone()).grace(PATIENCE);
            copying.on_copy(move |_: &Report<'_>| {
                if cancelled.fetch_add(1, Ordering::Relaxed) + 1 == QUEUED {
                    let_through.open();
                }
            });
        });
        let guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        gate.wait_until_reached();
        place.write("go", b"");
        ended.recv_timeout(PATIENCE).expect("it waits").output();
        assert!(
            !was_shut.load(Ordering::Relaxed),
            "one was waited for alone"
        );
        wait_until(|| interrupt.in_flight() == 0);
        // The first may have been let through before it was told.
        assert!(!place.exists("more"));
    }
}

#[test]
fn a_store_that_goes_away_does_not_wait_for_the_system() {
    for linking in Linking::BOTH {
        let place = place();
        let gate = Gate::default();
        let steps = ["start:w/from:w/to", "await:w/go", "leave"];
        let (guest, _, told) = held(script(&place, &steps), &gate);
        let guest = guest.prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        gate.wait_until_reached();
        place.write("go", b"");
        ended.recv_timeout(PATIENCE).expect("it waits").output();
        assert!(!gate.is_open());
        assert_eq!(interrupt.in_flight(), 1);
        gate.open();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Some(Cause::Cancelled)));
        assert!(interrupt.wait_until_idle(PATIENCE));
        assert!(!place.exists("to"));
    }
}

#[test]
fn jobs_count_among_the_copies_under_way_until_they_have_ended() {
    for linking in Linking::BOTH {
        let place = place();
        let steps = [
            "start:w/fifo:w/a",
            "start:w/other:w/b",
            "start:w/from:w/c",
            "copy:w/from:w/c",
            "cancel:0",
            "wait:0",
            "start:w/from:w/c",
            "wait:3",
            "start:w/from:w/d",
            "wait:4",
            "wait:3",
        ];
        let (guest, _) = scripted(&place, &steps);
        let guest = guest.copying(|copying| {
            copying.max_copies(2);
        });
        let ended = guest.run(linking);
        let [third, copy, first, next, other, again] = ended.answers().try_into().unwrap();
        third.failed("limit:copies", "-");
        copy.failed("limit:copies", "-");
        first.failed("cancelled", "-");
        for done in [next, other, again] {
            done.done();
        }
        assert_eq!(place.names(), ["c", "d", "fifo", "from", "other"]);
    }
}

#[test]
fn a_start_fails_for_what_is_known_before_and_the_job_for_what_is_found_out() {
    for linking in Linking::BOTH {
        let place = place();
        let run = |steps: &[&str]| {
            let guest = script(&place, steps).read_only_dir(place.root(), "r");
            guest.run(linking).answer()
        };
        // A start that succeeds says nothing.
        let answer = run(&["start:r/from:r/to"]).failed("not-permitted", "destination");
        assert_eq!(answer.get("path"), "r/to");
        let answer = run(&["start:w/absent:w/to", "wait:0"]).failed("no-entry", "source");
        assert_eq!(answer.get("path"), "w/absent");
        run(&["start:w/from:w/from", "wait:0"]).failed("same-file", "-");
        assert_eq!(place.names(), ["fifo", "from", "other"]);
    }
}

/// The time that a guest gives is its own business: it hears that it is over, and goes on.
#[test]
fn a_copy_that_takes_longer_than_it_may_is_a_failure_and_no_trap() {
    let timeout = "--timeout=20000000";
    for linking in Linking::BOTH {
        let place = place();
        let mut writer = held_open(&place, "fifo");
        writer.write_all(b"early").unwrap();
        let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
        let answer = guest.args(["w/fifo", "w/to", timeout]).run(linking);
        let answer = answer.answer().failed("timed-out", "-");
        assert_eq!(answer.get("kind"), "TimedOut");
        let steps = ["start:w/other:w/to", "wait:0", "outcome:0", timeout];
        let ended = script(&place, &steps).run(linking);
        let [waited, again] = ended.answers().try_into().unwrap();
        waited.failed("timed-out", "-");
        again.failed("timed-out", "-");
        // None at all: nothing is looked at.
        let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
        let answer = guest.args(["w/absent", "w/to", "--timeout=0"]).run(linking);
        answer.answer().failed("timed-out", "-");
        assert_eq!(place.names(), ["fifo", "from", "other"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pages_are_passed_on_only_where_the_guest_allows_it() {
    for linking in Linking::BOTH {
        for (words, method) in [(&[][..], "read-write"), (&["--zero-copy"], "splice")] {
            let place = place();
            let _reader = held_open(&place, "fifo");
            let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
            let guest = guest.args(["w/from", "w/fifo"]).args(words.to_vec());
            let answer = guest.run(linking).answer().done();
            assert_eq!(answer.get("method"), method);
        }
    }
}

/// What an embedder hears of a copy's start, by which it shows how far it is.
#[test]
fn the_embedder_is_told_of_each_start_and_sees_the_progress() {
    for linking in Linking::BOTH {
        let place = place();
        let mut writer = held_open(&place, "fifo");
        writer.write_all(b"early").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let steps = [
            "start:w/fifo:w/to",
            "start:w/absent:w/to",
            "wait:1",
            "wait:0",
        ];
        let (guest, _) = scripted(&place, &steps);
        let guest = guest.copying(|copying| {
            copying.on_start(move |started| {
                let names = [started.source, started.destination];
                let names = names.map(|name| name.unwrap().to_str().unwrap().to_owned());
                let _ = tell.send((names, started.progress.clone()));
            });
        });
        let ended = start(guest.prepare(linking));
        let next = || told.recv_timeout(PATIENCE).unwrap();
        let (names, progress) = next();
        assert_eq!(names, ["fifo", "to"]);
        wait_until(|| progress.bytes() == 5);
        assert!(!progress.has_ended());
        let (names, failed) = next();
        assert_eq!(names, ["absent", "to"]);
        wait_until(|| failed.has_ended());
        assert_eq!((failed.bytes(), failed.entries()), (0, 0));
        drop(writer);
        let ended = ended.recv_timeout(PATIENCE).expect("it has not ended");
        assert_eq!(ended.answers().len(), 2);
        assert!(progress.has_ended());
        assert_eq!((progress.bytes(), progress.entries()), (5, 1));
        // What is refused before does not begin.
        let (tell, told) = std::sync::mpsc::channel();
        let guest = script(&place, &["copy:w/from:w/to"]).copying(|copying| {
            copying.max_copies(0).on_start(move |_| {
                let _ = tell.send(());
            });
        });
        guest.run(linking).answer().failed("limit:copies", "-");
        assert!(told.try_recv().is_err());
    }
}
