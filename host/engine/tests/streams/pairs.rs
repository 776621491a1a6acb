//! Every pair of ends: the bytes, the mechanism, and what a wait holds up.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread;

use copyist_engine::{Destination, Mechanism, Options, Source, Sparse, Tuning};

use super::support::{
    Place, Running, Watched, copy, drain, from, into, non_blocking, pattern, pipe, put, socket,
    tcp, terminal,
};

/// More than any stream holds.
const LENGTH: usize = 3_000_001;

/// What gives a stream's bytes, then its end.
fn feed(fd: impl Into<OwnedFd>, bytes: Vec<u8>) -> thread::JoinHandle<()> {
    let fd = fd.into();
    thread::spawn(move || put(&fd, &bytes))
}

/// A source of each kind that a stream can be, with its bytes coming.
fn sources(bytes: &[u8]) -> Vec<(&'static str, Source, thread::JoinHandle<()>)> {
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_reader);
    let (ours, theirs) = socket();
    let (tcp_ours, tcp_theirs) = tcp();
    let bytes = || bytes.to_vec();
    vec![
        ("pipe", from(reader), feed(writer, bytes())),
        ("open pipe", from(open_reader), feed(open_writer, bytes())),
        ("socket", from(ours), feed(theirs, bytes())),
        ("tcp", from(tcp_ours), feed(tcp_theirs, bytes())),
    ]
}

/// A destination of each kind, with somebody who reads it to its end.
fn destinations() -> Vec<(&'static str, Destination, thread::JoinHandle<Vec<u8>>)> {
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_writer);
    let (ours, theirs) = socket();
    let (open_ours, open_theirs) = socket();
    open_ours.set_nonblocking(true).unwrap();
    let (tcp_ours, tcp_theirs) = tcp();
    let collect = |fd: OwnedFd| thread::spawn(move || drain(fd));
    vec![
        ("pipe", into(writer), collect(reader)),
        ("open pipe", into(open_writer), collect(open_reader)),
        ("socket", into(ours), collect(theirs.into())),
        ("open socket", into(open_ours), collect(open_theirs.into())),
        ("tcp", into(tcp_ours), collect(tcp_theirs.into())),
    ]
}

fn ways() -> Vec<Options> {
    let plain = Options::default();
    let zero_copy = Options {
        zero_copy: true,
        ..Options::default()
    };
    let fallback = Options {
        tuning: Tuning {
            force_fallback: true,
            ..Tuning::default()
        },
        ..Options::default()
    };
    vec![plain, zero_copy, fallback]
}

#[test]
fn every_stream_into_every_other() {
    let bytes = pattern(LENGTH);
    for options in ways() {
        for place in 0..destinations().len() {
            for (name, source, feeder) in sources(&bytes) {
                let (to, destination, collector) = destinations().swap_remove(place);
                let what = format!("{name} to {to}");
                let done = copy(source, destination, options.clone()).unwrap();
                feeder.join().unwrap();
                assert!(collector.join().unwrap() == bytes, "{what}");
                let all = LENGTH as u64;
                assert_eq!(
                    (done.bytes, done.consumed, done.files),
                    (all, all, 1),
                    "{what}"
                );
                let splices = to.ends_with("pipe") && !options.tuning.force_fallback;
                let expected = if splices {
                    Mechanism::Splice
                } else {
                    Mechanism::ReadWrite
                };
                assert_eq!(done.method, Some(expected), "{what}");
            }
        }
    }
}

// https://github.com/oven-sh/bun/issues/14054: a pipe into a file was refused.
#[test]
fn bun_14054_every_stream_into_a_file_and_a_file_into_every_stream() {
    let bytes = pattern(LENGTH);
    for options in ways() {
        let place = Place::new();
        fs::write(place.path("file"), &bytes).unwrap();
        fs::write(place.path("old"), vec![b'o'; 2 * LENGTH]).unwrap();
        for name in ["new", "old"] {
            for (kind, source, feeder) in sources(&bytes) {
                let done = copy(source, place.destination(name), options.clone()).unwrap();
                feeder.join().unwrap();
                let what = format!("{kind} to {name}");
                assert!(fs::read(place.path(name)).unwrap() == bytes, "{what}");
                assert_eq!(done.bytes, LENGTH as u64, "{what}");
                assert!(!done.changed, "{what}");
                if kind.ends_with("pipe") && !options.tuning.force_fallback {
                    assert_eq!(done.method, Some(Mechanism::Splice), "{what}");
                }
            }
        }
        for (kind, destination, collector) in destinations() {
            let done = copy(place.source("file"), destination, options.clone()).unwrap();
            assert!(collector.join().unwrap() == bytes, "to {kind}");
            let expected = match kind {
                "pipe" | "open pipe" if options.zero_copy => Mechanism::Splice,
                "open socket" if options.zero_copy => Mechanism::SendFile,
                _ => Mechanism::ReadWrite,
            };
            assert_eq!(done.method, Some(expected), "to {kind}");
        }
    }
}

#[test]
fn a_terminal_gives_and_takes_bytes() {
    let place = Place::new();
    let bytes = pattern(100_000);
    fs::write(place.path("file"), &bytes).unwrap();
    let (master, slave) = terminal();
    let collector = {
        let master = master.try_clone().unwrap();
        thread::spawn(move || super::support::take(&master, 100_000))
    };
    let done = copy(
        place.source("file"),
        into(slave.try_clone().unwrap()),
        Options::default(),
    )
    .unwrap();
    assert!(collector.join().unwrap() == bytes);
    assert_eq!(done.bytes, 100_000);
    // From the master, until the slave is closed: it answers EIO then, and that is the end.
    let running = Running::start(from(master), place.destination("out"), Options::default());
    put(&slave, b"some words");
    running.waits(1);
    drop(slave);
    assert_eq!(running.end().unwrap().bytes, 10);
    assert_eq!(fs::read(place.path("out")).unwrap(), b"some words");
}

/// As cp --sparse=always of a pipe.
#[test]
fn zeros_from_a_stream_become_holes() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let mut bytes = vec![0; 2 << 20];
    bytes[1_000_000] = 1;
    let (reader, writer) = pipe();
    let feeder = feed(writer, bytes.clone());
    let options = Options {
        sparse: Sparse::Always,
        ..Options::default()
    };
    copy(from(reader), place.destination("out"), options).unwrap();
    feeder.join().unwrap();
    assert!(fs::read(place.path("out")).unwrap() == bytes);
    let blocks = fs::metadata(place.path("out")).unwrap().blocks();
    assert!(blocks * 512 < 1 << 20, "{blocks} blocks");
}

// https://github.com/golang/go/issues/75304: it turned in circles while the pipe was full.
#[test]
fn go_75304_a_full_end_is_waited_for_and_not_tried_again() {
    let place = Place::new();
    fs::write(place.path("file"), pattern(LENGTH)).unwrap();
    let (ours, theirs) = socket();
    let sys = Watched::new();
    let (reader, writer) = pipe();
    put(&theirs, &pattern(200_000));
    let running = Running::start_on(sys.clone(), from(ours), into(writer), Options::default());
    running.waits(1);
    // Whoever waits for the right end is not woken by the other, which has bytes.
    put(&theirs, b"more");
    let before = sys.waits();
    let collector = thread::spawn(move || drain(reader));
    drop(theirs);
    assert_eq!(running.end().unwrap().bytes, 200_004);
    assert_eq!(collector.join().unwrap().len(), 200_004);
    assert!(before < 4, "{before} waits for one reader");
}
