//! What waits makes no calls, and a stall costs one poll(2).

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use copyist_engine::sys::Way;
use copyist_engine::{Base, Cause, Destination, Errno, Location, Options, Source, Window};

use super::support::{
    Call, Place, Running, Watched, both_ways, drain, fill, from, into, non_blocking, pattern, pipe,
    put, socket, take, terminal,
};

/// Lets some time pass, in which nothing is to happen.
fn a_while() {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(Duration::from_millis(100));
}

fn is_poll(call: Call) -> bool {
    matches!(call, Call::Look | Call::Wait)
}

fn moves(call: Call) -> bool {
    matches!(
        call,
        Call::Read(_) | Call::Write(..) | Call::Splice | Call::SendFile
    )
}

fn device(name: &str) -> Location {
    Location {
        base: Base::Beneath(Arc::new(fs::File::open("/dev").unwrap())),
        path: name.into(),
        follow: false,
    }
}

// https://github.com/golang/go/issues/75304
#[test]
fn go_75304_a_wait_makes_no_calls() {
    for options in both_ways() {
        let place = Place::new();
        fs::write(place.path("in"), pattern(1_000_000)).unwrap();
        let idle = || {
            let (reader, writer) = pipe();
            (from(reader), writer)
        };
        let full = || {
            let (reader, writer) = pipe();
            fill(&writer);
            (into(writer), reader)
        };
        let (ours, theirs) = socket();
        let (master, slave) = terminal();
        let (from_idle, _writer) = idle();
        let (into_full, _reader) = full();
        let (ready, ready_writer) = pipe();
        put(&ready_writer, b"some");
        let (other_full, _other_reader) = full();
        let copies = [
            (from_idle, place.destination("a")),
            (from(ours), place.destination("b")),
            (from(slave), place.destination("c")),
            (place.source("in"), into_full),
            (from(ready), other_full),
        ];
        for (source, destination) in copies {
            let sys = Watched::new();
            let running = Running::start_on(sys.clone(), source, destination, options.clone());
            running.waits(1);
            let calls = sys.calls().len();
            a_while();
            assert_eq!(sys.calls().len(), calls);
            running.cancel.cancel();
            running.fails();
        }
        drop((theirs, master));
    }
}

/// A signal ends a poll(2) and says nothing of the ends: the wait is the same afterwards.
#[test]
fn signals_do_not_make_a_wait_a_spin() {
    for options in both_ways() {
        let place = Place::new();
        let (reader, writer) = pipe();
        let signals = AtomicUsize::new(0);
        let sys = Watched::with(move |call| {
            let is_hit = call == Call::Wait && signals.fetch_add(1, Ordering::Relaxed) < 50;
            is_hit.then_some(Errno::INTR)
        });
        let running =
            Running::start_on(sys.clone(), from(reader), place.destination("out"), options);
        // It waits, and does not merely try again from time to time.
        running.waits(1);
        let calls = sys.calls().len();
        // A look at the FIFO, and the wait.
        assert!(sys.count(is_poll) <= 2 * 52, "{}", sys.count(is_poll));
        a_while();
        assert_eq!(sys.calls().len(), calls);
        put(&writer, b"some");
        running.waits(2);
        drop(writer);
        assert_eq!(running.end().unwrap().bytes, 4);
    }
}

/// A reader that takes a page at a time, each when the copy waits for it.
fn stalls(sys: &Watched, reader: &OwnedFd, rounds: usize) {
    for round in 0..rounds {
        sys.wait_for(round + 1);
        take(reader, 4096);
    }
}

/// So many stalls for want of room that there is none for want of bytes.
const ROUNDS: usize = 15;

#[test]
fn a_stall_between_pipes_costs_one_poll() {
    let (reader, writer) = pipe();
    let (other_reader, other_writer) = pipe();
    let filled = fill(&other_writer);
    put(&writer, &pattern(65_536));
    let sys = Watched::new();
    let running = Running::start_on(
        sys.clone(),
        from(reader),
        into(other_writer),
        Options::default(),
    );
    stalls(&sys, &other_reader, ROUNDS);
    sys.wait_for(ROUNDS + 1);
    // One a stall, and one to see that the pipe was written to.
    let polls = sys.count(is_poll);
    assert!(polls <= ROUNDS + 2, "{polls} polls");
    let splices = sys.count(|call| call == Call::Splice);
    assert!(splices <= 2 * ROUNDS + 2, "{splices} calls");
    drop(writer);
    let left = filled + 65_536 - ROUNDS * 4096;
    assert_eq!(drain(other_reader).len(), left);
    assert_eq!(running.end().unwrap().bytes, 65_536);
}

/// A socket is looked at before each splice(2), which would sleep in it.
#[test]
fn a_stall_behind_a_socket_costs_one_wait() {
    let (ours, theirs) = socket();
    let (reader, writer) = pipe();
    let filled = fill(&writer);
    put(&theirs, &pattern(65_536));
    let sys = Watched::new();
    let running = Running::start_on(sys.clone(), from(ours), into(writer), Options::default());
    stalls(&sys, &reader, ROUNDS);
    sys.wait_for(ROUNDS + 1);
    let waits = sys.count(|call| call == Call::Wait);
    assert_eq!(waits, ROUNDS + 1);
    let (looks, splices) = (
        sys.count(|call| call == Call::Look),
        sys.count(|call| call == Call::Splice),
    );
    assert_eq!(looks, splices);
    assert!(splices <= 2 * ROUNDS + 2, "{splices} calls");
    drop(theirs);
    let left = filled + 65_536 - ROUNDS * 4096;
    assert_eq!(drain(reader).len(), left);
    assert_eq!(running.end().unwrap().bytes, 65_536);
}

#[test]
fn a_file_into_a_stream_costs_one_poll_a_stall_too() {
    for is_open in [false, true] {
        let place = Place::new();
        fs::write(place.path("in"), pattern(1_000_000)).unwrap();
        let (reader, writer) = pipe();
        fill(&writer);
        if is_open {
            non_blocking(&writer);
        }
        let sys = Watched::new();
        let running = Running::start_on(
            sys.clone(),
            place.source("in"),
            into(writer),
            Options::default(),
        );
        stalls(&sys, &reader, ROUNDS);
        sys.wait_for(ROUNDS + 1);
        let (polls, writes) = (
            sys.count(is_poll),
            sys.count(|call| matches!(call, Call::Write(..))),
        );
        assert!(polls <= ROUNDS + 1, "{polls} polls");
        assert!(writes <= 2 * ROUNDS + 2, "{writes} writes");
        running.cancel.cancel();
        running.fails();
    }
}

/// Some devices say that they are ready whenever they are asked.
#[test]
fn what_is_always_ready_and_has_nothing_is_asked_less_and_less() {
    let table = [
        (Source::Path(device("zero")), None),
        (Source::Path(device("zero")), Some(device("null"))),
    ];
    for (number, (source, destination)) in table.into_iter().enumerate() {
        let place = Place::new();
        let blocked = move |call| match (number, call) {
            (0, Call::Read(_)) | (1, Call::Write(..)) => Some(Errno::AGAIN),
            _ => None,
        };
        let sys = Watched::with(blocked);
        let destination = match destination {
            Some(device) => Destination::Path(device),
            None => place.destination("out"),
        };
        let options = Options {
            window: Some(Window {
                source_offset: 0,
                length: Some(1000),
                destination_offset: 0,
            }),
            timeout: Some(Duration::from_millis(500)),
            ..Options::default()
        };
        let running = Running::start_on(sys.clone(), source, destination, options);
        assert_eq!(running.fails().0, Cause::TimedOut);
        let tries = sys.count(moves);
        // A few at once, then 1, 2, 4, .. 50 ms apart.
        assert!(tries < 40, "{tries} tries");
        assert!(place.names().is_empty());
    }
}

/// And it goes on as soon as something moves again.
#[test]
fn what_was_always_ready_and_comes_round_is_copied() {
    let place = Place::new();
    let tries = AtomicUsize::new(0);
    let sys = Watched::with(move |call| {
        let is_early = matches!(call, Call::Read(_)) && tries.fetch_add(1, Ordering::Relaxed) < 8;
        is_early.then_some(Errno::AGAIN)
    });
    let (reader, writer) = pipe();
    non_blocking(&reader);
    put(&writer, b"some");
    let running = Running::start_on(
        sys.clone(),
        from(reader),
        place.destination("out"),
        both_ways()[1].clone(),
    );
    // By now it waits as it should.
    running.waits(1);
    put(&writer, b" more");
    running.waits(2);
    drop(writer);
    assert_eq!(running.end().unwrap().bytes, 9);
}

#[test]
fn what_never_waits_is_never_polled_for() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(100_000)).unwrap();
    fs::write(place.path("small"), pattern(1000)).unwrap();
    let (reader, writer) = pipe();
    let (ours, _theirs) = socket();
    let copies = [
        (place.source("in"), place.destination("out")),
        (place.source("small"), into(writer)),
        (place.source("small"), into(ours)),
    ];
    for (source, destination) in copies {
        let sys = Watched::new();
        let running = Running::start_on(sys.clone(), source, destination, Options::default());
        running.end().unwrap();
        assert_eq!(sys.count(is_poll), 0, "{:?}", sys.calls());
    }
    // A pipe is looked at once: until a writer has come, a FIFO reads as if it had ended.
    let sys = Watched::new();
    let to = place.destination("piped");
    let running = Running::start_on(sys.clone(), from(reader), to, Options::default());
    running.end().unwrap();
    assert_eq!(sys.count(is_poll), 1);
}

/// Zeros are bytes to a stream: nobody asks where they are, nor tries to make a hole there.
#[test]
fn the_holes_of_a_file_cost_nothing_where_they_go_into_a_stream() {
    let place = Place::new();
    let file = fs::File::create(place.path("in")).unwrap();
    file.set_len(1 << 20).unwrap();
    for zero_copy in [false, true] {
        let (reader, writer) = pipe();
        let collector = thread::spawn(move || drain(reader));
        let sys = Watched::new();
        let options = Options {
            zero_copy,
            ..Options::default()
        };
        let running = Running::start_on(sys.clone(), place.source("in"), into(writer), options);
        running.end().unwrap();
        assert!(collector.join().unwrap() == vec![0; 1 << 20]);
        assert_eq!(sys.count(|call| call == Call::PunchHole), 0);
    }
}

/// Two that wait for each other's end of one socket wake once each, not for ever.
#[test]
fn an_echo_sends_back_what_it_gets_and_sleeps_in_between() {
    let (ours, theirs) = socket();
    let ours = Arc::new(fs::File::from(OwnedFd::from(ours)));
    let sys = Watched::new();
    let running = Running::start_on(
        sys.clone(),
        Source::File(ours.clone()),
        Destination::File(ours),
        Options::default(),
    );
    for round in 1..=10 {
        running.waits(round);
        put(&theirs, b"an echo");
        assert_eq!(take(&theirs, 7), b"an echo");
    }
    running.waits(11);
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(running.end().unwrap().bytes, 70);
    let reads = sys.count(|call| call == Call::Read(Way::Message));
    assert!(reads <= 2 * 11 + 1, "{reads} reads");
}
