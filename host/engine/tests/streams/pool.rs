//! Copies that wait hold no thread of the pool.

use std::fs;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use copyist_engine::{
    Cancel, Cause, Destination, Error, Options, Owner, Pool, PoolOptions, Request, Source, Summary,
};

use super::child::alone;
use super::support::{Place, drain, fill, from, into, pattern, pipe, put, socket, take};

const PATIENCE: Duration = Duration::from_secs(60);

fn pool_of(threads: usize) -> Pool {
    Pool::new(PoolOptions {
        threads: NonZeroUsize::new(threads).unwrap(),
        ..PoolOptions::default()
    })
}

struct Copy {
    cancel: Cancel,
    outcome: Receiver<Result<Summary, Error>>,
}

impl Copy {
    fn start(pool: &Pool, source: Source, destination: Destination) -> Self {
        Self::of(pool, 1, source, destination, Options::default())
    }

    fn of(
        pool: &Pool,
        owner: u64,
        source: Source,
        destination: Destination,
        options: Options,
    ) -> Self {
        let cancel = Cancel::new();
        let (tell, outcome) = channel();
        let request = Request {
            source,
            destination,
            options,
        };
        pool.copy(Owner(owner), request, cancel.clone(), move |answer| {
            let _ = tell.send(answer);
        });
        Self { cancel, outcome }
    }

    fn end(self) -> Result<Summary, Error> {
        self.outcome.recv_timeout(PATIENCE).unwrap()
    }
}

/// Returns when so many copies wait and hold no thread.
fn wait_for(pool: &Pool, count: usize) {
    let begun = Instant::now();
    while pool.waiting() != count {
        assert!(begun.elapsed() < PATIENCE, "{} wait", pool.waiting());
        std::thread::yield_now();
    }
}

// https://github.com/bytecodealliance/wasmtime/issues/8392
#[test]
fn wasmtime_8392_copies_that_wait_keep_nobody_from_a_thread() {
    let place = Place::new();
    fs::write(place.path("file"), pattern(10_000)).unwrap();
    let pool = pool_of(2);
    let mut ends = Vec::new();
    let mut copies = Vec::new();
    for round in 0..50 {
        let (reader, writer) = pipe();
        let to = place.destination(&format!("to{round}"));
        copies.push(Copy::start(&pool, from(reader), to));
        ends.push(writer);
    }
    wait_for(&pool, 50);
    let done = Copy::start(&pool, place.source("file"), place.destination("copy")).end();
    assert_eq!(done.unwrap().bytes, 10_000);
    assert!(pool.threads() <= 2);
    for (round, (writer, copy)) in ends.into_iter().zip(copies).enumerate() {
        put(&writer, format!("round {round}").as_bytes());
        drop(writer);
        copy.end().unwrap();
        let wanted = format!("round {round}");
        assert_eq!(
            fs::read_to_string(place.path(&format!("to{round}"))).unwrap(),
            wanted
        );
    }
    wait_for(&pool, 0);
}

#[test]
fn a_stream_that_flows_slowly_comes_over_whole() {
    let pool = pool_of(2);
    let (reader, writer) = pipe();
    let (ours, theirs) = socket();
    let copy = Copy::start(&pool, from(reader), into(ours));
    let mut wanted = Vec::new();
    for round in 0..200 {
        let part = pattern(round * 7 + 1);
        put(&writer, &part);
        assert!(take(&theirs, part.len()) == part, "{round}");
        wanted.extend(part);
    }
    wait_for(&pool, 1);
    drop(writer);
    let done = copy.end().unwrap();
    assert_eq!(done.bytes, wanted.len() as u64);
}

#[test]
fn a_cancel_ends_every_wait_and_takes_back_what_was_made() {
    let place = Place::new();
    let pool = pool_of(2);
    place.fifo("unread");
    place.fifo("unwritten");
    fs::write(place.path("file"), pattern(300_000)).unwrap();
    let (_full_reader, full) = pipe();
    fill(&full);
    let (_idle, idle_source) = socket();
    let copies = vec![
        Copy::start(&pool, place.source("unwritten"), place.destination("new")),
        Copy::start(&pool, place.source("file"), place.destination("unread")),
        Copy::start(&pool, place.source("file"), into(full)),
        Copy::start(&pool, from(idle_source), place.destination("from socket")),
    ];
    wait_for(&pool, 4);
    assert_eq!(
        place.names(),
        ["file", "from socket", "new", "unread", "unwritten"]
    );
    for copy in &copies {
        copy.cancel.cancel();
    }
    for copy in copies {
        assert_eq!(copy.end().unwrap_err().cause, Cause::Cancelled);
    }
    wait_for(&pool, 0);
    assert_eq!(place.names(), ["file", "unread", "unwritten"]);
}

#[test]
fn a_dropped_pool_ends_what_waits() {
    let place = Place::new();
    let pool = pool_of(2);
    let (_writers, copies): (Vec<OwnedFd>, Vec<Copy>) = (0..10)
        .map(|round| {
            let (reader, writer) = pipe();
            let to = place.destination(&format!("to{round}"));
            (writer, Copy::start(&pool, from(reader), to))
        })
        .unzip();
    wait_for(&pool, 10);
    drop(pool);
    for copy in copies {
        assert_eq!(copy.end().unwrap_err().cause, Cause::Cancelled);
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn one_descriptor_may_be_waited_for_by_many() {
    let pool = pool_of(2);
    let (reader, writer) = pipe();
    let reader = std::sync::Arc::new(fs::File::from(reader));
    let place = Place::new();
    let copies: Vec<_> = (0..5)
        .map(|round| {
            let to = place.destination(&format!("to{round}"));
            Copy::start(&pool, Source::File(reader.clone()), to)
        })
        .collect();
    wait_for(&pool, 5);
    copies[0].cancel.cancel();
    wait_for(&pool, 4);
    put(&writer, b"for one of them");
    drop(writer);
    let all: u64 = copies
        .into_iter()
        .filter_map(|copy| copy.end().ok())
        .map(|done| done.bytes)
        .sum();
    assert_eq!(all, 15);
    // Both ends in one.
    let (ours, theirs) = socket();
    let ours = std::sync::Arc::new(fs::File::from(OwnedFd::from(ours)));
    let echo = Copy::start(&pool, Source::File(ours.clone()), Destination::File(ours));
    wait_for(&pool, 1);
    put(&theirs, b"an echo");
    assert_eq!(take(&theirs, 7), b"an echo");
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(echo.end().unwrap().bytes, 7);
    assert!(drain(theirs).is_empty());
}

#[test]
fn a_time_limit_ends_a_wait() {
    let pool = pool_of(1);
    let (reader, _writer) = pipe();
    let place = Place::new();
    let options = Options {
        timeout: Some(Duration::from_millis(20)),
        ..Options::default()
    };
    let copy = Copy::of(&pool, 1, from(reader), place.destination("new"), options);
    assert_eq!(copy.end().unwrap_err().cause, Cause::TimedOut);
    assert!(place.names().is_empty());
}

/// In a process of its own, where nobody else opens and starts anything.
#[test]
fn rounds_of_waits_leave_no_thread_and_no_descriptor() {
    alone(
        rounds_of_waits_leave_no_thread_and_no_descriptor,
        rounds_of_waits,
    );
}

fn rounds_of_waits() {
    let pool = pool_of(2);
    let place = Place::new();
    fs::write(place.path("file"), pattern(300_000)).unwrap();
    let count = |of: &str| fs::read_dir(of).unwrap().count();
    // The pool starts its second thread when it wants one.
    let held = || {
        [
            count("/proc/self/fd"),
            count("/proc/self/task") - pool.threads(),
        ]
    };
    let round = |number: usize| {
        let (reader, writer) = pipe();
        let copy = if number.is_multiple_of(2) {
            Copy::start(&pool, from(reader), place.destination("new"))
        } else {
            let copy = Copy::start(
                &pool,
                place.source("file"),
                into(writer.try_clone().unwrap()),
            );
            // Half-way written.
            take(&reader, 1000);
            copy
        };
        wait_for(&pool, 1);
        copy.cancel.cancel();
        let error = copy.end().unwrap_err();
        assert_eq!(error.cause, Cause::Cancelled);
        wait_for(&pool, 0);
        drop(writer);
    };
    for number in 0..20 {
        round(number);
    }
    let before = held();
    for number in 0..1000 {
        round(number);
    }
    assert!(pool.threads() <= 2);
    assert_eq!(held(), before);
    assert_eq!(place.names(), ["file"]);
}
