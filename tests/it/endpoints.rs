//! Channels that the embedder grants under a name, as both ends of a copy and as streams.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use copyist_test_artifacts::ENDPOINTS;
use copyist_wasmtime::engine::{Pool, PoolOptions};
use copyist_wasmtime::{Direction, Endpoint};
use rustix::fs::OFlags;
use wasmtime::Trap;

use crate::answer::Answer;
use crate::ends::{
    drain, feeder, fifo, fill, flags, non_blocking, pipe, put, socket, take, taker, tcp, terminal,
};
use crate::host::{Ended, Guest, Linking, Prepared, runtime};
use crate::place::{Place, fnv1a, pattern};
use crate::system::PATIENCE;

/// More than any stream here holds.
const MUCH: usize = 1 << 20;
/// The same of a connection, whose buffers grow, also while somebody looks on who has filled them.
const MORE: usize = 16 << 20;

fn guest(place: &Place) -> Guest {
    Guest::new(ENDPOINTS).dir(place.root(), "w")
}

fn granting(guest: Guest, name: &str, endpoint: Endpoint) -> Guest {
    guest.copying(|copying| {
        copying.endpoint(name, endpoint);
    })
}

/// All answers of these steps.
fn steps(guest: Guest, linking: Linking, steps: &[&str]) -> Vec<Answer> {
    guest.args(steps.to_vec()).run(linking).answers()
}

/// Runs a guest on a thread of its own.
fn start(guest: Prepared) -> Receiver<Ended> {
    let (tell, told) = channel();
    thread::spawn(move || {
        // A test that has failed listens no more.
        let _ = tell.send(guest.run());
    });
    told
}

fn end(told: &Receiver<Ended>) -> Ended {
    told.recv_timeout(PATIENCE).expect("the guest does not end")
}

/// A pool whose waits can be counted.
fn own_pool(guest: Guest) -> (Guest, Arc<Pool>) {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let guest = guest.copying(|copying| {
        copying.pool(pool.clone());
    });
    (guest, pool)
}

/// Returns when a copy waits and holds no thread.
fn wait_for_wait(pool: &Pool) {
    let begun = Instant::now();
    while pool.waiting() == 0 {
        assert!(begun.elapsed() < PATIENCE, "no copy waits");
        thread::yield_now();
    }
}

type Grant = fn(OwnedFd) -> Endpoint;
const BOTH: [Grant; 2] = [
    |fd: OwnedFd| Endpoint::owned(fd),
    |fd: OwnedFd| Endpoint::shared(fd),
];

type Pair = (&'static str, OwnedFd, OwnedFd);

/// What can be read, and who writes it.
fn sources() -> Vec<Pair> {
    let ((pipe_reader, pipe_writer), (open_reader, open_writer)) = (pipe(), pipe());
    non_blocking(&open_reader);
    let ((ours, theirs), (tcp_ours, tcp_theirs)) = (socket(), tcp());
    vec![
        ("pipe", pipe_reader, pipe_writer),
        ("open pipe", open_reader, open_writer),
        ("socket", ours, theirs),
        ("tcp", tcp_ours, tcp_theirs),
    ]
}

/// What can be written, and who reads it.
fn destinations() -> Vec<Pair> {
    let ((pipe_reader, pipe_writer), (open_reader, open_writer)) = (pipe(), pipe());
    non_blocking(&open_writer);
    let ((ours, theirs), (tcp_ours, tcp_theirs)) = (socket(), tcp());
    let mut all = vec![
        ("pipe", pipe_writer, pipe_reader),
        ("open pipe", open_writer, open_reader),
        ("socket", ours, theirs),
        ("tcp", tcp_ours, tcp_theirs),
    ];
    all.extend(terminal().map(|(slave, master)| ("terminal", slave, master)));
    all
}

#[test]
fn every_kind_is_a_source_and_a_destination() {
    for linking in Linking::BOTH {
        for grant in BOTH {
            let content = pattern(MUCH);
            for (kind, ours, theirs) in sources() {
                let place = Place::new();
                let feeder = feeder(theirs, &content);
                let guest = granting(guest(&place), "in", grant(ours));
                let answers = steps(guest, linking, &["open:in", "copy:@in:w/to"]);
                feeder.join().unwrap();
                place.assert_holds("to", &content);
                assert_eq!(answers[1].number("bytes"), MUCH as u64, "{kind}");
            }
            for (kind, ours, theirs) in destinations() {
                let place = Place::with("from", &content);
                let taker = taker(theirs, MUCH);
                let guest = granting(guest(&place), "out", grant(ours));
                let answers = steps(guest, linking, &["open:out", "copy:w/from:@out"]);
                assert!(taker.join().unwrap().1 == content, "{kind}");
                assert_eq!(answers[1].number("bytes"), MUCH as u64, "{kind}");
            }
        }
    }
}

#[test]
fn two_channels_are_the_two_ends_of_one_copy() {
    for linking in Linking::BOTH {
        let content = pattern(MUCH);
        for place in 0..destinations().len() {
            for (from, reader, theirs) in sources() {
                let (to, writer, other) = destinations().swap_remove(place);
                let feeder = feeder(theirs, &content);
                let taker = taker(other, MUCH);
                let guest = Guest::new(ENDPOINTS).copying(|copying| {
                    copying.endpoint("in", Endpoint::owned(reader));
                    copying.endpoint("out", Endpoint::owned(writer));
                });
                let answers = steps(guest, linking, &["open:in", "open:out", "copy:@in:@out"]);
                feeder.join().unwrap();
                assert!(taker.join().unwrap().1 == content, "{from} to {to}");
                assert_eq!(answers[2].number("bytes"), MUCH as u64);
            }
        }
        // Both directions of one.
        let (ours, theirs) = socket();
        let guest = granting(Guest::new(ENDPOINTS), "echo", Endpoint::owned(ours));
        let other = theirs.try_clone().unwrap();
        put(&theirs, b"an echo");
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
        steps(guest, linking, &["open:echo", "copy:@echo:@echo"]);
        assert_eq!(take(other, 7), b"an echo");
    }
}

#[test]
fn a_fifo_waits_for_its_writer() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let reader = fifo(&place.path("fifo"));
        let guest = granting(guest(&place), "in", Endpoint::owned(reader));
        let (guest, pool) = own_pool(guest.args(["open:in", "copy:@in:w/to"]));
        let ended = start(guest.prepare(linking));
        wait_for_wait(&pool);
        let mut writer = File::options()
            .write(true)
            .open(place.path("fifo"))
            .unwrap();
        writer.write_all(b"better late").unwrap();
        drop(writer);
        let answers = end(&ended).answers();
        assert_eq!(answers[1].number("bytes"), 11);
        place.assert_holds("to", b"better late");
    }
}

#[test]
fn what_is_full_is_waited_for() {
    for linking in Linking::BOTH {
        for grant in BOTH {
            for (kind, ours, theirs) in destinations() {
                let content = pattern(if kind == "tcp" { MORE } else { 10_000 });
                let place = Place::with("from", &content);
                let before = fill(&ours);
                let guest = granting(guest(&place), "out", grant(ours));
                let (guest, pool) = own_pool(guest.args(["open:out", "copy:w/from:@out"]));
                let ended = start(guest.prepare(linking));
                wait_for_wait(&pool);
                let all = take(&theirs, before + content.len());
                assert!(all[before..] == content, "{kind}");
                let bytes = end(&ended).answers()[1].number("bytes");
                assert_eq!(bytes, content.len() as u64, "{kind}");
            }
        }
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_an_idle_source_and_a_full_destination() {
    for linking in Linking::BOTH {
        for (idle, ours, _theirs) in sources() {
            let place = Place::new();
            let guest = granting(guest(&place), "in", Endpoint::owned(ours));
            let (guest, pool) = own_pool(guest.args(["open:in", "copy:@in:w/to"]));
            let guest = guest.prepare(linking);
            let interrupt = guest.interrupt_handle();
            let ended = start(guest);
            wait_for_wait(&pool);
            interrupt.interrupt();
            assert_eq!(end(&ended).trap(), Some(Trap::Interrupt), "{idle}");
            assert!(interrupt.wait_until_idle(PATIENCE));
            assert_eq!(place.names(), [""; 0], "{idle}");
        }
        for (full, ours, _theirs) in destinations() {
            let place = Place::with("from", &pattern(if full == "tcp" { MORE } else { 10_000 }));
            fill(&ours);
            let guest = granting(guest(&place), "out", Endpoint::owned(ours));
            let (guest, pool) = own_pool(guest.args(["open:out", "copy:w/from:@out"]));
            let guest = guest.prepare(linking);
            let interrupt = guest.interrupt_handle();
            let ended = start(guest);
            wait_for_wait(&pool);
            interrupt.interrupt();
            assert_eq!(end(&ended).trap(), Some(Trap::Interrupt), "{full}");
            assert!(interrupt.wait_until_idle(PATIENCE));
        }
    }
}

/// A guest that waits in wasi:io, not in a copy. What it says before shows that it is about to.
#[test]
fn an_interrupt_ends_the_wait_of_a_stream() {
    for linking in Linking::BOTH {
        for step in ["input:in:1", "output:full:text", "late-output:full:text"] {
            let ((idle, _writer), (_reader, full)) = (pipe(), pipe());
            fill(&full);
            let (say, said) = pipe();
            let guest = Guest::new(ENDPOINTS).copying(|copying| {
                copying.endpoint("in", Endpoint::owned(idle));
                copying.endpoint("full", Endpoint::owned(full));
                copying.endpoint("said", Endpoint::owned(said));
            });
            // A drop cannot trap, and the next call does.
            let words = [
                "open:in",
                "open:full",
                "open:said",
                "output:said:now",
                step,
                "names",
            ];
            let guest = guest.args(words).prepare(linking);
            let interrupt = guest.interrupt_handle();
            let ended = start(guest);
            assert_eq!(take(&say, 3), b"now");
            thread::yield_now();
            interrupt.interrupt();
            assert_eq!(end(&ended).trap(), Some(Trap::Interrupt), "{step}");
        }
    }
}

#[test]
fn a_header_goes_before_the_body_and_the_end_after_it() {
    for linking in Linking::BOTH {
        let body = pattern(MUCH);
        for (kind, ours, theirs) in destinations() {
            if kind == "terminal" {
                continue;
            }
            let place = Place::with("from", &body);
            let reader = thread::spawn(move || drain(theirs));
            let guest = granting(guest(&place), "out", Endpoint::owned(ours));
            let words = [
                "open:out",
                "output:out:header",
                "copy:w/from:@out",
                "output:out:trailer",
                "finish:out",
                // Before the endpoint is dropped: the reader is told by the finish.
                "copy:w/from:w/again",
            ];
            let prepared = guest.args(words).prepare(linking);
            let ended = start(prepared);
            let all = reader.join().unwrap();
            end(&ended).answers();
            assert!(all == [b"header", &body[..], b"trailer"].concat(), "{kind}");
        }
    }
}

#[test]
fn a_header_is_taken_and_nothing_of_the_body() {
    for linking in Linking::BOTH {
        let body = pattern(100_000);
        for (kind, ours, theirs) in sources() {
            let place = Place::new();
            let feeder = feeder(theirs, &[b"header", &body[..]].concat());
            let guest = granting(guest(&place), "in", Endpoint::owned(ours));
            let words = ["open:in", "input:in:4", "input:in:2", "copy:@in:w/to"];
            let answers = steps(guest, linking, &words);
            feeder.join().unwrap();
            assert_eq!(answers[1].get("text"), "head", "{kind}");
            assert_eq!(answers[2].get("text"), "er", "{kind}");
            place.assert_holds("to", &body);
        }
    }
}

/// wasi:io has no buffer of ours that a guest could forget to flush.
// https://github.com/WebAssembly/wasi-io/pull/74
#[test]
fn wasi_io_74_what_was_written_and_not_flushed_is_not_lost() {
    for linking in Linking::BOTH {
        for grant in BOTH {
            let (reader, writer) = pipe();
            let before = fill(&writer);
            let guest = granting(Guest::new(ENDPOINTS), "out", grant(writer));
            let words = ["open:out", "late-output:out:text", "finish:out"];
            let ended = start(guest.args(words).prepare(linking));
            let all = take(&reader, before + 4);
            assert_eq!(all[before..], *b"text");
            end(&ended).answers();
        }
    }
}

#[test]
fn a_name_that_nobody_granted_is_unknown_and_one_that_is_held_busy() {
    for linking in Linking::BOTH {
        let ((reader, _writer), (_reader, writer)) = (pipe(), pipe());
        let guest = Guest::new(ENDPOINTS).copying(|copying| {
            copying.endpoint("b", Endpoint::owned(reader));
            copying.endpoint("a", Endpoint::owned(writer));
        });
        let words = [
            "names", "open:c", "open:a", "open:a", "names", "drop:a", "open:a", "finish:a",
            "names", "drop:a", "open:a", "names", "open:b",
        ];
        let answers = steps(guest, linking, &words);
        assert_eq!(answers[0].get("names"), "a,b");
        assert_eq!(answers[1].get("open"), "NotFound");
        assert_eq!(answers[3].get("open"), "ResourceBusy");
        assert_eq!(answers[4].get("names"), "a,b");
        // It was finished, and is gone.
        assert_eq!(answers[8].get("names"), "b");
        assert_eq!(answers[10].get("open"), "NotFound");
        assert_eq!(answers[11].get("names"), "b");
    }
}

#[test]
fn two_stores_do_not_hold_one_channel() {
    for linking in Linking::BOTH {
        let (reader, writer) = pipe();
        let place = Place::new();
        let guest = granting(guest(&place), "in", Endpoint::shared(reader));
        let (guest, pool) = own_pool(guest);
        let waits = guest.clone().args(["open:in", "copy:@in:w/to"]);
        let ended = start(waits.prepare(linking));
        wait_for_wait(&pool);
        let answers = steps(guest.clone(), linking, &["open:in"]);
        assert_eq!(answers[0].get("open"), "ResourceBusy");
        drop(writer);
        end(&ended).answers();
        // The store is gone, and the guest had dropped nothing.
        steps(guest, linking, &["open:in"]).remove(0).done();
    }
}

#[test]
fn a_call_that_is_dropped_gives_its_channel_back() {
    let (reader, writer) = pipe();
    let place = Place::new();
    let guest = granting(guest(&place), "in", Endpoint::shared(reader));
    let (guest, pool) = own_pool(guest);
    let waits = guest.clone().args(["open:in", "copy:@in:w/to"]);
    let mut waits = waits.prepare(Linking::Async);
    runtime().block_on(async {
        let pool = pool.clone();
        let waiting = tokio::task::spawn_blocking(move || wait_for_wait(&pool));
        tokio::select! {
            _ = waits.call() => panic!("the call has ended"),
            waiting = waiting => waiting.unwrap(),
        }
    });
    drop(waits);
    put(&writer, b"for the next");
    drop(writer);
    let answers = steps(guest, Linking::Async, &["open:in", "copy:@in:w/to"]);
    assert_eq!(answers[1].number("bytes"), 12);
}

#[test]
fn a_direction_has_one_user() {
    for linking in Linking::BOTH {
        let (ours, theirs) = socket();
        let place = Place::with("from", b"bytes");
        let guest = granting(guest(&place), "both", Endpoint::owned(ours));
        let words = [
            "open:both",
            "hold-input:both",
            "hold-input:both",
            "copy:@both:w/to",
            "output:both:text",
            "hold-output:both",
            "copy:w/from:@both",
            "release",
            "copy:w/from:@both",
        ];
        let mut answers = steps(guest, linking, &words);
        assert_eq!(answers[2].get("open"), "ResourceBusy");
        answers.remove(8).done();
        answers.remove(6).failed("busy", "destination");
        answers.remove(3).failed("busy", "source");
        assert!(!place.exists("to"));
        assert_eq!(drain(theirs), b"textbytes");
    }
}

#[test]
fn a_job_uses_its_channel_until_it_has_ended() {
    for linking in Linking::BOTH {
        let (ours, theirs) = socket();
        fill(&ours);
        let content = pattern(10_000);
        let place = Place::with("from", &content);
        let guest = granting(guest(&place), "both", Endpoint::owned(ours));
        let words = [
            "open:both",
            "start:w/from:@both",
            "copy:w/from:@both",
            "hold-output:both",
            "finish:both",
            "drop:both",
            "open:both",
            "copy:w/from:w/ready",
            "wait",
        ];
        let ended = start(guest.args(words).prepare(linking));
        let begun = Instant::now();
        while !place.exists("ready") {
            assert!(begun.elapsed() < PATIENCE);
            thread::yield_now();
        }
        // To its end: the finish came when the job had ended.
        let all = drain(theirs);
        assert!(all.ends_with(&content));
        let mut answers = end(&ended).answers();
        answers.remove(8).done();
        assert_eq!(answers[6].get("open"), "NotFound");
        assert_eq!(answers[3].get("open"), "ResourceBusy");
        answers.remove(2).failed("busy", "destination");
    }
}

#[test]
fn what_may_not_be_read_or_not_be_written_is_as_such_a_descriptor() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let (reader, writer) = pipe();
        let ((ours, _theirs), (others, _of_others)) = (socket(), socket());
        let guest = guest(&place).copying(|copying| {
            copying.endpoint("read", Endpoint::owned(reader));
            copying.endpoint("write", Endpoint::owned(writer));
            let narrowed = |fd: OwnedFd, direction| Endpoint::owned(fd).direction(direction);
            copying.endpoint("only-read", narrowed(ours, Direction::Read));
            copying.endpoint("only-write", narrowed(others, Direction::Write));
        });
        for (read, write) in [("read", "write"), ("only-read", "only-write")] {
            let words = [
                format!("open:{read}"),
                format!("open:{write}"),
                format!("copy:w/from:@{read}"),
                format!("copy:@{write}:w/to"),
                format!("hold-output:{read}"),
                format!("hold-input:{write}"),
            ];
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let mut answers = steps(guest.clone(), linking, &words);
            assert_eq!(answers[4].get("open"), "Unsupported");
            assert_eq!(answers[5].get("open"), "Unsupported");
            answers.remove(3).failed("bad-descriptor", "source");
            answers.remove(2).failed("bad-descriptor", "destination");
            assert!(!place.exists("to"));
        }
    }
}

#[test]
fn flags_of_what_is_shared_stay_and_what_is_owned_does_not_block() {
    for linking in Linking::BOTH {
        for (kind, ours, theirs) in sources() {
            let place = Place::new();
            let kept = ours.try_clone().unwrap();
            let before = flags(&kept);
            put(&theirs, b"header and body");
            drop(theirs);
            let guest = granting(guest(&place), "in", Endpoint::shared(ours));
            steps(guest, linking, &["open:in", "input:in:6", "copy:@in:w/to"]);
            assert_eq!(flags(&kept), before, "{kind}");
            place.assert_holds("to", b" and body");
        }
        for (kind, ours, theirs) in destinations() {
            let content = pattern(MUCH);
            let place = Place::with("from", &content);
            let kept = ours.try_clone().unwrap();
            let before = flags(&kept);
            let taker = taker(theirs, 4 + MUCH);
            let guest = granting(guest(&place), "out", Endpoint::shared(ours));
            let words = [
                "open:out",
                "output:out:head",
                "copy:w/from:@out",
                "finish:out",
            ];
            steps(guest, linking, &words);
            taker.join().unwrap();
            assert_eq!(flags(&kept), before, "{kind}");
        }
        // Without the flag, nothing but a buffer would be safe.
        let content = pattern(MUCH);
        let place = Place::with("from", &content);
        let (ours, theirs) = tcp();
        let kept = ours.try_clone().unwrap();
        let reader = thread::spawn(move || drain(theirs));
        let guest = granting(guest(&place), "out", Endpoint::owned(ours));
        let words = ["open:out", "copy:w/from:@out", "finish:out", "--zero-copy"];
        let answers = steps(guest, linking, &words);
        assert_eq!(answers[1].get("method"), "send-file");
        assert!(flags(kept).contains(OFlags::NONBLOCK));
        assert!(reader.join().unwrap() == content);
    }
}

#[test]
fn what_is_shared_goes_on_after_a_finish() {
    for linking in Linking::BOTH {
        let (ours, theirs) = socket();
        let kept = ours.try_clone().unwrap();
        let guest = granting(Guest::new(ENDPOINTS), "out", Endpoint::shared(ours));
        let words = [
            "open:out",
            "finish:out",
            "output:out:no",
            "drop:out",
            "open:out",
        ];
        let answers = steps(guest, linking, &words);
        assert_eq!(answers[2].get("open"), "Unsupported");
        put(&kept, b"more");
        assert_eq!(take(theirs, 4), b"more");
    }
}

/// Runs `body` in a child of this test binary, in which SIGPIPE ends a process, as where nobody has
/// said otherwise. Rust has.
fn with_default_signals(test: &str, body: impl FnOnce()) {
    const CHILD: &str = "COPYIST_TEST_SIGNALS";
    if std::env::var_os(CHILD).is_some() {
        #[expect(unsafe_code, reason = "std and rustix have no call for it")]
        // SAFETY: no handler is installed, but one taken out.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_ne!(before, libc::SIG_ERR);
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_reader_that_is_gone_is_an_error_and_no_signal() {
    let name = "endpoints::a_reader_that_is_gone_is_an_error_and_no_signal";
    with_default_signals(name, || {
        for linking in Linking::BOTH {
            for grant in BOTH {
                for (kind, ours, theirs) in destinations() {
                    if kind == "terminal" {
                        continue;
                    }
                    let place = Place::with("from", &pattern(MUCH));
                    drop(theirs);
                    let guest = granting(guest(&place), "out", grant(ours));
                    // A connection tells of it at the second packet.
                    let words = ["open:out", "copy:w/from:@out", "copy:w/from:@out"];
                    let mut answers = steps(guest.clone(), linking, &words);
                    answers.remove(2).failed("pipe", "destination");
                    let words = ["open:out", "output:out:text"];
                    let said = guest.args(words).run(linking);
                    assert!(said.output().ends_with("err stream\n"), "{kind}");
                }
            }
        }
    });
}

/// A file stands where the last copy or read has left it, as it would for a program that reads its
/// standard input and writes its standard output.
#[test]
fn a_file_is_read_and_written_from_where_it_stands() {
    for linking in Linking::BOTH {
        for grant in BOTH {
            let content = pattern(100_000);
            let place = Place::with("in", &[b"header", &content[..]].concat());
            place.write("out", b"old bytes, of which some stay");
            place.write("to", &pattern(200_000));
            let open = |name| {
                let mut options = File::options();
                options
                    .read(true)
                    .write(true)
                    .open(place.path(name))
                    .unwrap()
            };
            let (input, mut output) = (open("in"), open("out"));
            output.seek(SeekFrom::Start(4)).unwrap();
            let kept = input.try_clone().unwrap();
            let guest = guest(&place).copying(|copying| {
                copying.endpoint("in", grant(input.into()));
                copying.endpoint("out", grant(output.try_clone().unwrap().into()));
            });
            place.write("word", b"byte");
            let words = [
                "open:in",
                "open:out",
                "input:in:6",
                "copy:@in:w/to",
                "output:out:X",
                "copy:w/word:@out",
                "copy:w/word:@out",
            ];
            let answers = steps(guest, linking, &words);
            assert_eq!(answers[2].get("text"), "header");
            assert_eq!(answers[3].number("bytes"), 100_000);
            // The other end is written as it always is: to its new length.
            place.assert_holds("to", &content);
            place.assert_holds("out", b"old Xbytebyte which some stay");
            let mut rest = String::new();
            (&output).read_to_string(&mut rest).unwrap();
            assert_eq!(rest, " which some stay");
            assert_eq!((&kept).stream_position().unwrap(), 100_006);
        }
    }
}

#[test]
fn a_file_that_appends_is_appended_to() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b" new");
        place.write("log", b"old");
        let log = File::options()
            .append(true)
            .open(place.path("log"))
            .unwrap();
        let guest = granting(guest(&place), "log", Endpoint::owned(log));
        let words = [
            "open:log",
            "copy:w/from:@log",
            "output:log:!",
            "copy:w/from:@log",
        ];
        steps(guest, linking, &words);
        place.assert_holds("log", b"old new! new");
    }
}

#[test]
fn a_channel_is_read_whole() {
    for linking in Linking::BOTH {
        let content = pattern(300_000);
        for (kind, ours, theirs) in sources() {
            let feeder = feeder(theirs, &[b"header", &content[..]].concat());
            let guest = granting(Guest::new(ENDPOINTS), "in", Endpoint::owned(ours));
            let words = ["open:in", "input:in:6", "read:@in"];
            let answers = steps(guest, linking, &words);
            feeder.join().unwrap();
            assert_eq!(answers[2].number("bytes"), 300_000, "{kind}");
            assert_eq!(answers[2].get("fnv"), fnv1a(&content), "{kind}");
        }
    }
}

#[test]
fn a_window_of_a_channel_has_a_length_and_no_offset() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let (reader, writer) = pipe();
        put(&writer, b"0123456789");
        let guest = granting(guest(&place), "in", Endpoint::shared(reader));
        let run = |words: &[&str]| steps(guest.clone(), linking, words).remove(1);
        let words = ["open:in", "copy:@in:w/to", "--window=0:4:0"];
        assert_eq!(run(&words).number("bytes"), 4);
        let words = ["open:in", "copy:@in:w/to", "--window=1:4:0"];
        run(&words).failed("unsupported", "-");
        place.write("file", b"0123456789");
        let file = File::open(place.path("file")).unwrap();
        let guest = granting(guest.clone(), "file", Endpoint::owned(file));
        let words = ["open:file", "copy:@file:w/to", "--window=1:4:0"];
        steps(guest, linking, &words)
            .remove(1)
            .failed("unsupported", "-");
        place.assert_holds("to", b"0123");
    }
}

#[test]
fn what_is_no_stream_of_bytes_is_refused_by_name() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let directory = File::open(place.root()).unwrap();
        let endpoint = Endpoint::owned(listener);
        assert!(endpoint.check().is_err());
        let guest = guest(&place).copying(|copying| {
            copying.endpoint("listener", endpoint);
            copying.endpoint("directory", Endpoint::owned(directory));
        });
        let words = [
            "open:listener",
            "hold-input:listener",
            "copy:@listener:w/to",
            "open:directory",
            "hold-input:directory",
            "copy:@directory:w/to",
        ];
        let mut answers = steps(guest, linking, &words);
        assert!(answers[1].get("path").contains("listens"));
        assert!(answers[4].get("path").contains("directory"));
        answers.remove(5).failed("is-directory", "source");
        answers.remove(2).failed("unsupported", "-");
        assert!(!place.exists("to"));
    }
}

#[test]
fn a_closed_channel_is_closed() {
    for linking in Linking::BOTH {
        let (reader, writer) = pipe();
        let (other, _writer) = pipe();
        let guest = Guest::new(ENDPOINTS).copying(|copying| {
            copying.endpoint("out", Endpoint::owned(writer));
            copying.endpoint("in", Endpoint::owned(other));
        });
        // While the guest still holds it.
        let words = ["open:out", "finish:out", "open:in", "input:in:1"];
        let guest = guest.args(words).prepare(linking);
        let interrupt = guest.interrupt_handle();
        let ended = start(guest);
        assert_eq!(drain(reader), b"");
        interrupt.interrupt();
        end(&ended);
    }
}
