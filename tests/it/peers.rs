//! Copies whose peer is late, slow, or no peer at all: by name, by descriptor and by channel.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Instant;

use copyist_test_artifacts::{ENDPOINTS, JOB, READ_FILE, TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::Endpoint;
use copyist_wasmtime::engine::{Pool, PoolOptions};
use rustix::fs::{CWD, FileType, Mode};

use crate::ends::{drain, pipe, put, socket};
use crate::host::{Guest, Linking};
use crate::interrupts::start;
use crate::place::{Place, pattern};
use crate::system::PATIENCE;

/// More than a pipe or a socket holds.
const MUCH: usize = 1 << 20;

fn make_fifo(place: &Place, name: &str) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, place.path(name), FileType::Fifo, mode, 0).unwrap();
}

/// Who writes to a FIFO, and needs no reader for it.
fn writer(place: &Place, name: &str) -> File {
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .open(place.path(name))
        .unwrap()
}

fn pooled(guest: Guest, threads: usize) -> (Guest, Arc<Pool>) {
    let pool = Arc::new(Pool::new(PoolOptions {
        threads: NonZeroUsize::new(threads).unwrap(),
        spare_threads: 0,
        ..PoolOptions::default()
    }));
    let guest = guest.copying(|copying| {
        copying.pool(pool.clone());
    });
    (guest, pool)
}

#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

// https://github.com/oven-sh/bun/issues/37937, https://github.com/shelljs/shelljs/issues/727,
// https://github.com/elfmz/far2l/issues/1907
#[test]
fn bun_37937_a_late_writer_is_waited_for() {
    for linking in Linking::BOTH {
        let place = Place::new();
        make_fifo(&place, "fifo");
        let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
        let (guest, pool) = pooled(guest.args(["w/fifo", "w/to"]), 1);
        let ended = start(guest.prepare(linking));
        until(|| pool.waiting() == 1);
        // It opens in no time, since the copy reads.
        let mut late = File::options()
            .write(true)
            .open(place.path("fifo"))
            .unwrap();
        late.write_all(b"better late").unwrap();
        drop(late);
        let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
        assert_eq!(ended.answer().done().number("bytes"), 11);
        place.assert_holds("to", b"better late");
    }
}

/// By a descriptor of `wasi:filesystem`, and by a channel: neither has `O_NONBLOCK`.
// https://github.com/RayforceDB/rayforce/issues/572
#[test]
fn rayforce_572_a_fifo_that_is_open_ends_when_its_writer_closes_it() {
    for linking in Linking::BOTH {
        for by_channel in [false, true] {
            let place = Place::new();
            make_fifo(&place, "fifo");
            let mut writer = writer(&place, "fifo");
            let guest = if by_channel {
                let fifo = File::open(place.path("fifo")).unwrap();
                let guest = Guest::new(ENDPOINTS).args(["open:in", "copy:@in:w/to"]);
                guest.copying(|copying| {
                    copying.endpoint("in", Endpoint::shared(fifo));
                })
            } else {
                Guest::new(TRANSFER_FILE).args(["w/fifo", "w/to", "--create"])
            };
            let (guest, pool) = pooled(guest.dir(place.root(), "w"), 1);
            let ended = start(guest.prepare(linking));
            for (part, all) in [("one, ", 5), ("two", 8)] {
                until(|| pool.waiting() == 1);
                writer.write_all(part.as_bytes()).unwrap();
                until(|| pool.waiting() == 1 && place.stat("to").len() == all);
                assert!(ended.try_recv().is_err(), "it has ended");
            }
            drop(writer);
            let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
            let answer = ended.answers().pop().unwrap().done();
            assert_eq!(answer.number("bytes"), 8);
            place.assert_holds("to", b"one, two");
        }
    }
}

#[test]
fn a_late_reader_is_waited_for() {
    for linking in Linking::BOTH {
        let content = pattern(MUCH);
        let place = Place::with("from", &content);
        make_fifo(&place, "fifo");
        let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
        let (guest, pool) = pooled(guest.args(["w/from", "w/fifo"]), 1);
        let ended = start(guest.prepare(linking));
        until(|| pool.waiting() == 1);
        // Its open waits until the copy writes.
        let reader = File::open(place.path("fifo")).unwrap();
        assert!(drain(reader.into()) == content);
        let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
        assert_eq!(ended.answer().done().number("bytes"), MUCH as u64);
    }
}

#[test]
fn a_socket_that_pauses_goes_into_a_pipe_that_stalls() {
    for linking in Linking::BOTH {
        let content = pattern(MUCH);
        let ((from, writer), (reader, to)) = (socket(), pipe());
        let guest = Guest::new(ENDPOINTS).copying(|copying| {
            copying.endpoint("in", Endpoint::shared(from));
            copying.endpoint("out", Endpoint::shared(to));
        });
        let words = ["open:in", "open:out", "copy:@in:@out", "finish:out"];
        let (guest, pool) = pooled(guest.args(words), 1);
        let ended = start(guest.prepare(linking));
        until(|| pool.waiting() == 1);
        let (first, rest) = content.split_at(1000);
        put(&writer, first);
        assert!(crate::ends::take(&reader, 1000) == first);
        until(|| pool.waiting() == 1);
        let feeder = crate::ends::feeder(writer, rest);
        // Nobody reads, and the pipe is full.
        until(|| pool.waiting() == 1);
        assert!(crate::ends::take(&reader, rest.len()) == rest);
        feeder.join().unwrap();
        let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
        assert_eq!(ended.answers()[2].number("bytes"), MUCH as u64);
    }
}

/// open(2) answers ENXIO to it, as to a FIFO without a reader, and it is not waited for.
#[test]
fn the_name_of_a_socket_is_refused_and_nothing_is_created() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let _listener = UnixListener::bind(place.path("socket")).unwrap();
        for (words, side) in [
            (&["w/socket", "w/to"][..], "source"),
            (&["w/from", "w/socket"], "destination"),
            (&["w/socket", "w/to", "--replace"], "source"),
            (&["w/from", "w/socket", "--replace"], "destination"),
        ] {
            let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
            let answer = guest.args(words.to_vec()).run(linking).answer();
            answer.failed("unsupported", side);
            assert_eq!(place.names(), ["from", "socket"], "{words:?}");
        }
        let guest = Guest::new(READ_FILE).dir(place.root(), "w");
        let answer = guest.args(["w/socket"]).run(linking).answer();
        answer.failed("unsupported", "source");
    }
}

#[test]
fn a_copy_that_is_refused_creates_nothing_and_waits_for_nobody() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        make_fifo(&place, "fifo");
        make_fifo(&place, "other");
        std::fs::create_dir(place.path("directory")).unwrap();
        let _reader = writer(&place, "other");
        let before = place.snapshot();
        let mut wrong = Vec::new();
        for (words, cause, side) in [
            (&["w/directory", "w/to"][..], "is-directory", "source"),
            (&["w/fifo", "w/directory"], "is-directory", "destination"),
            (&["w/fifo", "w/absent/to"], "no-entry", "destination"),
            (&["w/fifo", "w/fifo"], "same-file", "-"),
            (
                &["w/fifo", "w/to", "--window=1:1:0"],
                "unsupported",
                "source",
            ),
            (
                &["w/fifo", "w/to", "--require=mode"],
                "unsupported",
                "destination",
            ),
            (
                &["w/fifo", "w/to", "--reflink=always"],
                "unsupported",
                "destination",
            ),
            (
                &["w/from", "w/other", "--window=0:1:1"],
                "unsupported",
                "destination",
            ),
            (
                &["w/from", "w/other", "--require=mode"],
                "unsupported",
                "destination",
            ),
            (
                &["w/from", "w/other", "--durability=each"],
                "unsupported",
                "destination",
            ),
            (
                &["w/from", "w/other", "--replace"],
                "unsupported",
                "destination",
            ),
            (
                &["w/fifo", "w/from", "--existing=refuse"],
                "exist",
                "destination",
            ),
            (
                &["w/from", "w/other", "--existing=refuse"],
                "exist",
                "destination",
            ),
        ] {
            let guest = Guest::new(TRANSFER_PATH).dir(place.root(), "w");
            // If it waits, it says so.
            let guest = guest.args(words.to_vec()).args(["--timeout=5000000000"]);
            let answer = guest.run(linking).answer();
            let found = [answer.get("cause"), answer.get("side")].map(str::to_owned);
            if found != [cause, side] {
                wrong.push((words, found));
            }
            assert!(place.snapshot() == before, "{words:?}");
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

// https://github.com/bytecodealliance/wasmtime/issues/8392
#[test]
fn wasmtime_8392_as_many_copies_wait_as_there_are_threads_and_others_go_through() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        for name in ["fifo", "unread"] {
            make_fifo(&place, name);
        }
        let steps = [
            "start:w/fifo:w/a",
            "start:w/from:w/unread",
            "await:w/go",
            "copy:w/from:w/b",
            "outcome:0",
            "outcome:1",
            "await:w/end",
        ];
        let guest = Guest::new(JOB).dir(place.root(), "w").args(steps);
        let (guest, pool) = pooled(guest, 2);
        let ended = start(guest.prepare(linking));
        until(|| pool.waiting() == 2);
        place.write("go", b"");
        until(|| place.exists("b"));
        // What another store does.
        for (program, words) in [
            (TRANSFER_PATH, &["w/from", "w/c"][..]),
            (READ_FILE, &["w/from"]),
        ] {
            let guest = Guest::new(program)
                .dir(place.root(), "w")
                .args(words.to_vec());
            let guest = guest.copying(|copying| {
                copying.pool(pool.clone());
            });
            let other = start(guest.prepare(linking));
            let other = other.recv_timeout(PATIENCE).expect("it waits, too");
            assert_eq!(other.answer().done().number("bytes"), 5);
        }
        assert_eq!(pool.waiting(), 2);
        assert!(pool.threads() <= 2);
        place.write("end", b"");
        let ended = ended.recv_timeout(PATIENCE).expect("it does not end");
        let [copied, first, second] = ended.answers().try_into().unwrap();
        copied.done();
        for waits in [first, second] {
            assert_eq!(waits.get("running"), "true");
        }
    }
}
