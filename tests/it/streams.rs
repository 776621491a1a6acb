//! Streams of `wasi:io` as ends of copies: those of files, of standard input and error, of connections
//! and of channels. Their bytes go through the host, and how is what is shown here.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use copyist_test_artifacts::STREAMS;
use copyist_wasmtime::Endpoint;
use copyist_wasmtime::engine::{Errno, Pool, PoolOptions};

use crate::answer::Answer;
use crate::ends::{drain, feeder, fill, pipe, put, take};
use crate::host::{Ended, Guest, Linking};
use crate::interrupts::start;
use crate::place::{Place, fnv1a, pattern};
use crate::stdio::{Sink, Tap};
use crate::system::PATIENCE;

/// More than is passed at once, and no multiple of it.
const OVER: usize = (64 << 10) + 1;
const LARGE: usize = 5_000_000;

fn guest(place: &Place) -> Guest {
    Guest::new(STREAMS).dir(place.root(), "w")
}

fn reading(guest: Guest, tap: &Tap) -> Guest {
    let tap = tap.clone();
    guest.wasi(move |wasi| {
        wasi.stdin(tap.clone());
    })
}

fn writing(guest: Guest, sink: &Sink) -> Guest {
    let sink = sink.clone();
    guest.wasi(move |wasi| {
        wasi.stderr(sink.clone());
    })
}

fn granting(guest: Guest, name: &str, endpoint: Endpoint) -> Guest {
    guest.copying(|copying| {
        copying.endpoint(name, endpoint);
    })
}

fn own_pool(guest: Guest) -> (Guest, Arc<Pool>) {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let guest = guest.copying(|copying| {
        copying.pool(pool.clone()).grace(PATIENCE);
    });
    (guest, pool)
}

fn steps(guest: Guest, linking: Linking, steps: &[&str]) -> Vec<Answer> {
    guest.args(steps.to_vec()).run(linking).answers()
}

fn begin(guest: Guest, linking: Linking, steps: &[&str]) -> Receiver<Ended> {
    start(guest.args(steps.to_vec()).prepare(linking))
}

fn end(told: &Receiver<Ended>) -> Ended {
    told.recv_timeout(PATIENCE).expect("the guest does not end")
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    let (_silent, pause) = channel::<()>();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        let _ = pause.recv_timeout(Duration::from_millis(1));
    }
}

type Grant = Box<dyn FnOnce(Guest) -> Guest>;

/// What has bytes for a guest: what it is granted, its words for it, and who puts them.
struct Input {
    name: &'static str,
    grant: Grant,
    open: String,
    feeder: Option<JoinHandle<()>>,
}

/// What a guest can write to, and who has what came.
struct Output {
    name: &'static str,
    grant: Grant,
    open: String,
    came: Box<dyn FnOnce() -> Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    File,
    Stdin,
    Channel,
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    File,
    Append,
    Stderr,
    Channel,
    Tcp,
}

const SOURCES: [From; 4] = [From::File, From::Stdin, From::Channel, From::Tcp];
const DESTINATIONS: [To; 5] = [To::File, To::Append, To::Stderr, To::Channel, To::Tcp];

/// Somebody on this machine who does this with the first who comes.
fn listening<T: Send + 'static>(
    meet: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = thread::spawn(move || meet(listener.accept().unwrap().0));
    (format!("tcp:tcp:{port}"), other)
}

fn networked(guest: Guest) -> Guest {
    guest.wasi(|wasi| {
        wasi.inherit_network().allow_tcp(true);
    })
}

fn input(kind: From, place: &Place, content: &[u8]) -> Input {
    let input = |open: &str, grant: Grant| Input {
        name: "%in",
        grant,
        open: open.into(),
        feeder: None,
    };
    match kind {
        From::File => {
            place.write("source", content);
            input("input:in:file=w/source", Box::new(|guest| guest))
        }
        From::Stdin => {
            let tap = Tap::default();
            tap.pour(content);
            tap.end(Ok(()));
            input(
                "input:in:stdin",
                Box::new(move |guest| reading(guest, &tap)),
            )
        }
        From::Channel => {
            let (reader, writer) = pipe();
            let endpoint = Endpoint::owned(reader);
            let grant = Box::new(|guest| granting(guest, "in", endpoint));
            Input {
                feeder: Some(feeder(writer, content)),
                ..input("input:in:channel=in", grant)
            }
        }
        From::Tcp => {
            let bytes = content.to_vec();
            let (open, feeder) = listening(move |mut peer| {
                peer.write_all(&bytes).unwrap();
                peer.shutdown(Shutdown::Write).unwrap();
            });
            Input {
                name: "%tcp",
                feeder: Some(feeder),
                ..input(&open, Box::new(networked))
            }
        }
    }
}

fn output(kind: To, place: &Place, content: &[u8]) -> Output {
    let output = |open: &str, grant: Grant, came| Output {
        name: "%out",
        grant,
        open: open.into(),
        came,
    };
    let file = |open: &str| {
        let path = place.path("written");
        let came = Box::new(move || std::fs::read(path).unwrap());
        output(open, Box::new(|guest| guest), came)
    };
    match kind {
        To::File => file("output:out:file=w/written"),
        To::Append => file("output:out:append=w/written"),
        To::Stderr => {
            let sink = Sink::default();
            sink.make_room(content.len() + 1);
            sink.let_flush();
            let bytes = sink.clone();
            let grant = Box::new(move |guest| writing(guest, &sink));
            output("output:out:stderr", grant, Box::new(move || bytes.bytes()))
        }
        To::Channel => {
            let (reader, writer) = pipe();
            let reader = thread::spawn(move || drain(reader));
            let endpoint = Endpoint::owned(writer);
            let grant = Box::new(|guest| granting(guest, "out", endpoint));
            let came = Box::new(move || reader.join().unwrap());
            output("output:out:channel=out", grant, came)
        }
        To::Tcp => {
            let (open, reader) = listening(|peer| drain(peer.into()));
            let came = Box::new(move || reader.join().unwrap());
            Output {
                name: "%tcp",
                ..output(&open, Box::new(networked), came)
            }
        }
    }
}

type Way = fn(&str, &str) -> Vec<String>;

/// How a guest copies: in one call, or by a job.
const WAYS: [Way; 2] = [
    |from, to| vec![format!("copy:{from}:{to}")],
    |from, to| vec![format!("start:{from}:{to}"), "wait".into()],
];

#[test]
fn what_a_stream_has_comes_into_a_file_whole() {
    for linking in Linking::BOTH {
        for kind in SOURCES {
            for size in [0, 1, OVER, LARGE] {
                for way in WAYS {
                    let content = pattern(size);
                    let place = Place::new();
                    let from = input(kind, &place, &content);
                    let guest = (from.grant)(guest(&place)).args([from.open]);
                    let ended = guest.args(way(from.name, "w/to")).run(linking);
                    let answer = ended.answers().pop().unwrap().done();
                    assert_eq!(answer.number("bytes"), size as u64, "{kind:?}");
                    assert_eq!(answer.number("consumed"), size as u64, "{kind:?}");
                    place.assert_holds("to", &content);
                    if let Some(feeder) = from.feeder {
                        feeder.join().unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_file_has_goes_into_a_stream_whole() {
    for linking in Linking::BOTH {
        for kind in DESTINATIONS {
            for size in [0, 1, OVER, LARGE] {
                for way in WAYS {
                    let content = pattern(size);
                    let place = Place::with("from", &content);
                    let to = output(kind, &place, &content);
                    let guest = (to.grant)(guest(&place)).args([to.open]);
                    let ended = guest.args(way("w/from", to.name)).run(linking);
                    let answer = ended.answers().pop().unwrap().done();
                    assert_eq!(answer.number("bytes"), size as u64, "{kind:?}");
                    assert!((to.came)() == content, "{kind:?}, {linking:?}");
                }
            }
        }
    }
}

#[test]
fn one_stream_goes_into_another_whole() {
    for linking in Linking::BOTH {
        for source in SOURCES {
            for destination in DESTINATIONS {
                // One connection at a time has one name.
                if (source, destination) == (From::Tcp, To::Tcp) {
                    continue;
                }
                for way in WAYS {
                    let content = pattern(OVER);
                    let place = Place::new();
                    let from = input(source, &place, &content);
                    let to = output(destination, &place, &content);
                    let guest = (to.grant)((from.grant)(guest(&place)));
                    let guest = guest.args([from.open, to.open]);
                    let ended = guest.args(way(from.name, to.name)).run(linking);
                    let answer = ended.answers().pop().unwrap().done();
                    assert_eq!(answer.number("bytes"), OVER as u64);
                    assert!((to.came)() == content, "{source:?} to {destination:?}");
                }
            }
        }
    }
}

#[test]
fn a_stream_is_read_whole() {
    for linking in Linking::BOTH {
        for kind in SOURCES {
            for size in [0, 1, OVER, LARGE] {
                let content = pattern(size);
                let place = Place::new();
                let from = input(kind, &place, &content);
                let words = [from.open, format!("read:{}", from.name)];
                let guest = (from.grant)(guest(&place)).args(words);
                let answer = guest.run(linking).answer().done();
                assert_eq!(answer.number("bytes"), size as u64, "{kind:?}");
                assert_eq!(answer.get("fnv"), fnv1a(&content), "{kind:?}");
            }
        }
    }
}

#[test]
fn a_stream_that_is_longer_than_may_be_read_is_a_failure() {
    for linking in Linking::BOTH {
        for kind in SOURCES {
            for (size, limit) in [(2000, 1999), (1, 0)] {
                let place = Place::new();
                let from = input(kind, &place, &pattern(size));
                let words = [from.open, format!("read:{}:{limit}", from.name)];
                let guest = (from.grant)(guest(&place)).args(words);
                guest.run(linking).answer().failed("limit:read-size", "-");
            }
        }
    }
}

/// The stream stands behind what was copied, and is the guest's as before.
#[test]
fn a_stream_that_was_lent_goes_on_after_the_copy() {
    for linking in Linking::BOTH {
        let place = Place::with("file", b"body");
        let (tap, sink) = (Tap::default(), Sink::default());
        tap.pour(b"header, body");
        tap.end(Ok(()));
        sink.make_room(1000);
        sink.let_flush();
        let guest = writing(reading(guest(&place), &tap), &sink);
        let words = [
            "input:in:stdin",
            "output:out:stderr",
            "copy:%in:w/absent/to",
            "copy:w/absent:%out",
            "take:in:8",
            "put:out:head ",
            "copy:w/file:%out",
            "put:out: tail",
            "copy:%in:w/to",
            "take:in:1",
            "copy:%in:w/again",
            "copy:w/file:%out",
        ];
        let mut answers = steps(guest, linking, &words);
        assert_eq!(answers[2].get("fnv"), fnv1a(b"header, "));
        assert_eq!(answers[6].number("bytes"), 4);
        assert_eq!(answers[7].get("end"), "closed");
        assert_eq!(answers[8].number("bytes"), 0);
        answers.remove(9).done();
        answers.remove(1).failed("no-entry", "source");
        answers.remove(0).failed("no-entry", "destination");
        place.assert_holds("to", b"body");
        place.assert_holds("again", b"");
        assert_eq!(sink.bytes(), b"head body tailbody");
    }
}

/// Bytes that were asked for stand in the stream, and come first.
#[test]
fn what_a_guest_has_asked_for_and_not_taken_is_copied() {
    for linking in Linking::BOTH {
        let content = pattern(OVER);
        for way in WAYS.map(|way| way("%in", "w/to")) {
            let place = Place::with("from", &content);
            let words = ["input:in:file=w/from", "ask:in:1000"];
            let guest = guest(&place).args(words).args(way);
            let answer = guest.run(linking).answers().pop().unwrap().done();
            assert_eq!(answer.number("bytes"), OVER as u64);
            place.assert_holds("to", &content);
        }
    }
}

#[test]
fn nothing_is_read_before_the_destination_has_room() {
    for linking in Linking::BOTH {
        for way in WAYS.map(|way| way("%in", "%out")) {
            let place = Place::new();
            let (tap, sink) = (Tap::default(), Sink::default());
            tap.pour(&pattern(OVER));
            tap.end(Ok(()));
            let guest = writing(reading(guest(&place), &tap), &sink);
            let (guest, pool) = own_pool(guest);
            let words = ["input:in:stdin", "output:out:stderr"];
            let told = start(guest.args(words).args(way).prepare(linking));
            until(|| pool.waiting() == 1);
            assert_eq!((tap.reads(), tap.taken()), (0, 0));
            sink.make_room(1);
            until(|| sink.length() == 1);
            assert!(tap.taken() > 0);
            sink.make_room(OVER);
            sink.let_flush();
            assert_eq!(
                end(&told).answers().pop().unwrap().number("bytes"),
                OVER as u64
            );
            assert!(sink.bytes() == pattern(OVER));
        }
    }
}

#[test]
fn success_means_that_all_is_flushed() {
    for linking in Linking::BOTH {
        for way in WAYS.map(|way| way("w/from", "%out")) {
            for flushes in [true, false] {
                let place = Place::with("from", &pattern(1000));
                let sink = Sink::default();
                sink.make_room(2000);
                let (guest, pool) = own_pool(writing(guest(&place), &sink));
                let words = ["output:out:stderr"];
                let told = start(guest.args(words).args(way.clone()).prepare(linking));
                until(|| sink.is_flushing() && pool.waiting() == 1);
                assert_eq!(sink.length(), 1000);
                assert!(told.try_recv().is_err(), "it does not wait for the flush");
                if flushes {
                    sink.let_flush();
                } else {
                    sink.fail(Errno::NOSPC);
                }
                let answer = end(&told).answers().pop().unwrap();
                if flushes {
                    assert_eq!(answer.done().number("bytes"), 1000);
                } else {
                    answer.failed("insufficient-space", "destination");
                }
            }
        }
    }
}

/// What came before the error is with the peer.
#[test]
fn a_stream_is_flushed_though_the_other_one_breaks_off() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let (tap, sink) = (Tap::default(), Sink::default());
        let (asked, go) = pipe();
        tap.pour(&pattern(1000));
        sink.make_room(2000);
        let guest = writing(reading(guest(&place), &tap), &sink);
        let guest = granting(guest, "go", Endpoint::owned(asked));
        let words = [
            "input:in:stdin",
            "output:out:stderr",
            "start:%in:%out",
            "wait",
            "byte:go",
        ];
        let told = begin(guest, linking, &words);
        until(|| sink.length() == 1000);
        tap.end(Err(Errno::IO));
        until(|| sink.is_flushing());
        sink.let_flush();
        put(&go, b"e");
        let answer = end(&told).answers().pop().unwrap().failed("io", "source");
        assert_eq!(answer.number("bytes"), 1000);
    }
}

#[test]
fn an_error_of_either_stream_is_told_with_its_side() {
    for linking in Linking::BOTH {
        for way in WAYS.map(|way| way("%in", "w/to")) {
            let place = Place::new();
            let tap = Tap::default();
            tap.pour(&pattern(1000));
            tap.end(Err(Errno::IO));
            let guest = reading(guest(&place), &tap);
            let ended = guest.args(["input:in:stdin"]).args(way).run(linking);
            let answer = ended.answers().pop().unwrap().failed("io", "source");
            assert_eq!(
                (answer.number("bytes"), answer.number("consumed")),
                (1000, 1000)
            );
            assert!(!place.exists("to"));
        }
        for way in WAYS.map(|way| way("w/from", "%out")) {
            let place = Place::with("from", &pattern(OVER));
            let sink = Sink::default();
            sink.make_room(1000);
            let (guest, pool) = own_pool(writing(guest(&place), &sink));
            let guest = guest.args(["output:out:stderr"]).args(way);
            let told = start(guest.prepare(linking));
            until(|| sink.length() == 1000 && pool.waiting() == 1);
            sink.fail(Errno::NOSPC);
            let answer = end(&told).answers().pop().unwrap();
            let answer = answer.failed("insufficient-space", "destination");
            assert_eq!(answer.number("bytes"), 1000);
        }
    }
}

/// What the copy has in hand when it is cancelled is gone from the one stream and not in the other.
#[test]
fn what_was_read_and_not_delivered_is_counted() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let (tap, sink) = (Tap::default(), Sink::default());
        tap.pour(&pattern(LARGE));
        sink.make_room(1000);
        let (asked, go) = pipe();
        let guest = writing(reading(guest(&place), &tap), &sink);
        let (guest, pool) = own_pool(granting(guest, "go", Endpoint::owned(asked)));
        let words = [
            "input:in:stdin",
            "output:out:stderr",
            "start:%in:%out",
            "byte:go",
            "cancel",
            "wait",
        ];
        let told = begin(guest, linking, &words);
        until(|| sink.length() == 1000 && pool.waiting() == 1);
        put(&go, b"c");
        let answer = end(&told).answers().pop().unwrap();
        let answer = answer.failed("cancelled", "-");
        assert_eq!(answer.number("consumed"), tap.taken() as u64);
        assert_eq!(answer.number("bytes"), 1000);
        assert!(sink.bytes() == pattern(1000));
        assert!(tap.taken() > 1000, "nothing was in hand");
    }
}

/// What a stream has taken from a job is with the peer when it takes it, however the job ended.
// https://github.com/WebAssembly/wasi-io/pull/74
#[test]
fn wasi_io_74_what_a_cancelled_job_has_written_is_not_lost() {
    for linking in Linking::BOTH {
        let place = Place::with("from", &pattern(LARGE));
        let (reader, writer) = pipe();
        let (asked, go) = pipe();
        let before = fill(&writer);
        // Room for some of the first bytes.
        let room = before / 2;
        take(&reader, room);
        let guest = granting(guest(&place), "out", Endpoint::owned(writer));
        let (guest, pool) = own_pool(granting(guest, "go", Endpoint::owned(asked)));
        let words = [
            "output:out:channel=out",
            "start:w/from:%out",
            "byte:go",
            "cancel",
            "wait",
            "copy:w/from:w/marker",
            "byte:go",
        ];
        let told = begin(guest, linking, &words);
        until(|| pool.waiting() == 1);
        put(&go, b"c");
        until(|| place.exists("marker"));
        // As much as goes into it at once.
        let (tell, came) = channel();
        let other = reader.try_clone().unwrap();
        thread::spawn(move || tell.send(take(&other, before - room + (64 << 10))));
        let came = came.recv_timeout(PATIENCE).expect("they are lost");
        put(&go, b"e");
        let answer = end(&told).answers().remove(1).failed("cancelled", "-");
        let came = [&came[before - room..], &drain(reader)].concat();
        assert_eq!(answer.number("bytes"), came.len() as u64);
        assert!(came == pattern(LARGE)[..came.len()]);
    }
}

/// A job has its streams as long as it lasts, and no longer.
#[test]
fn the_streams_of_a_job_go_with_it_in_any_order() {
    for linking in Linking::BOTH {
        for words in [
            &["watch", "abandon", "poll", "unwatch"][..],
            &["watch", "abandon", "unwatch"],
            &["watch", "unwatch", "abandon"],
            &["watch", "watch", "cancel", "poll", "abandon", "poll"],
            &["cancel", "wait", "abandon"],
            &["abandon"],
            &["watch"],
            &["watch", "leave"],
            &[],
        ] {
            let place = Place::new();
            let (tap, sink) = (Tap::default(), Sink::default());
            let guest = writing(reading(guest(&place), &tap), &sink);
            let start = ["input:in:stdin", "output:out:stderr", "start:%in:%out"];
            let (guest, pool) = own_pool(guest.args(start));
            guest.args(words.to_vec()).run(linking).output();
            until(|| pool.waiting() == 0 && tap.is_free() && sink.is_free());
        }
    }
}

#[test]
fn a_stream_that_was_handed_over_is_not_the_guests_any_more() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let tap = Tap::default();
        let words = ["input:in:stdin", "start:%in:w/to", "reuse:in"];
        let guest = reading(guest(&place), &tap);
        let ended = guest.args(words).run(linking);
        let refusal = ended.refusal().expect("it traps");
        assert!(refusal.contains("handle index"), "{refusal}");
        assert!(!place.exists("to"));
    }
}

/// Also where no job came of it.
#[test]
fn a_stream_is_handed_over_whatever_comes_of_the_start() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let tap = Tap::default();
        let words = ["input:in:stdin", "start:%in:r/to", "reuse:in"];
        let guest = reading(guest(&place), &tap).read_only_dir(place.root(), "r");
        let ended = guest.args(words).run(linking);
        let refusal = ended.refusal().expect("it traps");
        assert!(refusal.contains("handle index"), "{refusal}");
        assert_eq!(tap.reads(), 0);
    }
}

#[test]
fn a_stream_whose_pollable_is_left_is_not_handed_over() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let guest = reading(guest(&place), &Tap::default());
        let words = ["input:in:stdin", "subscribe:in", "start:%in:w/to"];
        let ended = guest.args(words).run(linking);
        let refusal = ended.refusal().expect("it traps");
        assert!(refusal.contains("child"), "{refusal}");
        assert!(!place.exists("to"));
    }
}

/// What is subscribed of a stream that is only lent is ready again afterwards.
#[test]
fn a_stream_whose_pollable_is_left_is_lent() {
    for linking in Linking::BOTH {
        let place = Place::new();
        let tap = Tap::default();
        tap.pour(b"bytes");
        tap.end(Ok(()));
        let guest = reading(guest(&place), &tap);
        let words = [
            "input:in:stdin",
            "subscribe:in",
            "copy:%in:w/to",
            "take:in:1",
        ];
        let answers = steps(guest, linking, &words);
        assert_eq!(answers[0].number("bytes"), 5);
        assert_eq!(answers[1].get("end"), "closed");
    }
}
