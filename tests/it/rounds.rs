//! What is left of copies that waited and were cancelled: no thread, and no descriptor.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use copyist_test_artifacts::STREAMS;
use copyist_wasmtime::Endpoint;
use copyist_wasmtime::engine::{Pool, PoolOptions};
use rustix::fs::{CWD, FileType, Mode};

use crate::ends::{non_blocking, pipe, put};
use crate::host::{Guest, Linking};
use crate::interrupts::start;
use crate::place::{Place, pattern, skipped};
use crate::stdio::{Sink, Tap};
use crate::system::PATIENCE;

const ROUNDS: usize = 1000;
/// After which all is started that a host starts once.
const FIRST: usize = 40;
/// Set in the process that has nobody else's threads and descriptors.
const ALONE: &str = "COPYIST_TEST_ALONE";

/// How many threads and descriptors this process has.
fn held() -> Option<[usize; 2]> {
    let count = |directory| Some(std::fs::read_dir(directory).ok()?.count());
    Some([count("/proc/self/task")?, count("/proc/self/fd")?])
}

fn until(what: impl Fn() -> String, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    let (_silent, pause) = channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not come: {}", what());
        let _ = pause.recv_timeout(Duration::from_micros(100));
    }
}

/// All that there is, and does not wait for more.
fn empty(fd: impl AsFd) -> usize {
    let (mut all, mut buffer) = (0, [0; 4096]);
    while let Ok(read @ 1..) = rustix::io::read(&fd, &mut buffer) {
        all += read;
    }
    all
}

#[test]
fn a_thousand_rounds_of_waits_leave_no_thread_and_no_descriptor() {
    if held().is_none() {
        return skipped("no list of threads and descriptors");
    }
    if std::env::var_os(ALONE).is_some() {
        for linking in Linking::BOTH {
            rounds(linking);
        }
        return;
    }
    let test = "rounds::a_thousand_rounds_of_waits_leave_no_thread_and_no_descriptor";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn rounds(linking: Linking) {
    let place = Place::with("from", &pattern(1 << 20));
    let mode = Mode::RUSR | Mode::WUSR;
    for name in ["fifo", "unread"] {
        rustix::fs::mknodat(CWD, place.path(name), FileType::Fifo, mode, 0).unwrap();
    }
    let mut options = File::options();
    let fifo = options.read(true).write(true).open(place.path("fifo"));
    let fifo = fifo.unwrap();
    let ((asked, go), (idle, _silent), (reader, out)) = (pipe(), pipe(), pipe());
    non_blocking(&reader);
    let (tap, sink) = (Tap::default(), Sink::default());
    sink.let_flush();
    // Some have nothing to begin with, some are half-way through.
    let ends = [
        "@idle:w/to",
        "w/fifo:w/to",
        "w/from:@out",
        "w/from:w/unread",
        "%stdin:w/to",
        "w/from:%stderr",
        "%stdin:@out",
    ];
    let rounds = format!("rounds:{ROUNDS}:{}", ends.join(":"));
    let pool = Arc::new(Pool::new(PoolOptions {
        threads: NonZeroUsize::MIN,
        spare_threads: 0,
        ..PoolOptions::default()
    }));
    let moved = Arc::new(AtomicU64::new(0));
    let (tell, told) = (moved.clone(), channel());
    let (stdin, stderr) = (tap.clone(), sink.clone());
    let (started, start_of) = told;
    let guest = Guest::new(STREAMS)
        .dir(place.root(), "w")
        .args([rounds])
        .wasi(move |wasi| {
            wasi.stdin(stdin.clone()).stderr(stderr.clone());
        })
        .copying(|copying| {
            copying.pool(pool.clone()).grace(PATIENCE);
            copying.endpoint("go", Endpoint::owned(asked));
            copying.endpoint("idle", Endpoint::owned(idle));
            copying.endpoint("out", Endpoint::owned(out));
            copying.on_start(move |copy| drop(started.send(copy.progress.clone())));
            copying.on_copy(move |copy| {
                let done = copy.outcome.unwrap_or_else(|error| &error.done);
                tell.fetch_add(done.bytes, Ordering::Relaxed);
            });
        });
    let guest = guest.prepare(linking);
    let interrupt = guest.interrupt_handle();
    let ended = start(guest);
    let (mut before, mut put_in, mut came) = (None, 0, 0);
    for round in 0..ROUNDS {
        if round == FIRST {
            before = held();
        }
        if round == ROUNDS - 1 {
            // All of the others are gone.
            let mut now = held();
            let begun = Instant::now();
            while now != before && begun.elapsed() < PATIENCE {
                std::thread::yield_now();
                now = held();
            }
            assert_eq!(now, before, "threads, descriptors");
        }
        let early: u64 = match ends[round % ends.len()] {
            "w/fifo:w/to" => {
                put(&fifo, b"early");
                put_in += 5;
                5
            }
            "w/from:@out" => 1,
            "%stdin:w/to" => {
                tap.pour(b"early");
                put_in += 5;
                5
            }
            "w/from:%stderr" => {
                sink.make_room(100);
                100
            }
            _ => 0,
        };
        put(&go, b"s");
        let progress = start_of.recv_timeout(PATIENCE).expect("it does not start");
        let what = || {
            let copy = ends[round % ends.len()];
            let (bytes, waiting) = (progress.bytes(), pool.waiting());
            format!("{linking:?}, {round}, {copy}: {bytes} of {early} bytes, {waiting} waiting")
        };
        until(what, || progress.bytes() >= early && pool.waiting() == 1);
        put(&go, b"c");
        until(what, || {
            progress.has_ended() && pool.waiting() == 0 && interrupt.in_flight() == 0
        });
        came += empty(&reader);
        assert!(!place.exists("to"));
    }
    let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
    ended.output();
    let all = put_in + came + sink.length();
    assert_eq!(moved.load(Ordering::Relaxed), all as u64);
}
