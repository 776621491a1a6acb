//! Peers that go: who reads, which is an error unless all is said; and who writes, which is the end
//! unless the system says that it was none.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use copyist_engine::sys::Way;
use copyist_engine::{Cause, Destination, Errno, Options, Side, Source};
use rustix::fs::OFlags;
use rustix::net::sockopt::set_socket_linger;

use super::child::alone;
use super::support::{
    Call, Place, Running, Watched, both_ways, copy, drain, from, into, non_blocking, pattern, pipe,
    put, socket, take, tcp, terminal,
};

/// More than any stream here holds.
const LENGTH: usize = 1_000_000;

const GONE: Cause = Cause::Io(Side::Destination, Errno::PIPE);

/// A reader of a FIFO whose open does not wait for a writer.
fn reader_of(place: &Place, name: &str) -> OwnedFd {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags);
    let reader = options.open(place.path(name)).unwrap();
    rustix::fs::fcntl_setfl(&reader, OFlags::empty()).unwrap();
    reader.into()
}

/// Destinations, each with who reads it.
fn destinations(place: &Place) -> Vec<(&'static str, Destination, OwnedFd)> {
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_writer);
    let (ours, theirs) = socket();
    let (open_ours, open_theirs) = socket();
    open_ours.set_nonblocking(true).unwrap();
    let (master, slave) = terminal();
    if !place.names().contains(&"out".to_owned()) {
        place.fifo("out");
    }
    vec![
        ("pipe", into(writer), reader),
        ("open pipe", into(open_writer), open_reader),
        ("socket", into(ours), theirs.into()),
        ("open socket", into(open_ours), open_theirs.into()),
        ("terminal", into(slave), master),
        ("FIFO", place.destination("out"), reader_of(place, "out")),
    ]
}

/// Sources that say nothing, each with who could write to it.
fn idle_sources() -> Vec<(&'static str, Source, OwnedFd)> {
    let (reader, writer) = pipe();
    let (ours, theirs) = socket();
    let (tcp_ours, tcp_theirs) = tcp();
    vec![
        ("pipe", from(reader), writer),
        ("socket", from(ours), theirs.into()),
        ("tcp", from(tcp_ours), tcp_theirs.into()),
    ]
}

#[test]
fn a_copy_that_waits_for_its_source_hears_that_nobody_reads_it_any_more() {
    for options in both_ways() {
        let place = Place::new();
        for number in 0..idle_sources().len() {
            for (to, destination, reader) in destinations(&place) {
                let (name, source, _writer) = idle_sources().swap_remove(number);
                let what = format!("{name} to {to}");
                let running = Running::start(source, destination, options.clone());
                running.waits(1);
                drop(reader);
                let (cause, done) = running.fails();
                assert_eq!(cause, GONE, "{what}");
                assert_eq!((done.bytes, done.consumed), (0, 0), "{what}");
            }
        }
    }
}

// https://github.com/WebAssembly/wasi-cli/issues/81,
// https://github.com/bytecodealliance/wasmtime/issues/11018
#[test]
fn wasi_cli_81_an_end_is_no_failure_because_its_reader_went_after_it() {
    for options in both_ways() {
        let place = Place::new();
        let bytes = pattern(1000);
        fs::write(place.path("in"), &bytes).unwrap();
        for (to, destination, reader) in destinations(&place) {
            // All is said before it goes.
            let done = copy(place.source("in"), destination, options.clone()).unwrap();
            assert!(take(&reader, 1000) == bytes, "{to}");
            assert_eq!(done.bytes, 1000, "{to}");
        }
        for number in 0..idle_sources().len() {
            for (to, destination, reader) in destinations(&place) {
                let (name, source, writer) = idle_sources().swap_remove(number);
                let what = format!("{name} to {to}");
                let running = Running::start(source, destination, options.clone());
                running.waits(1);
                put(&writer, &bytes);
                assert!(take(&reader, 1000) == bytes, "{what}");
                running.waits(2);
                drop(writer);
                drop(reader);
                let done = running
                    .end()
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(done.bytes, 1000, "{what}");
            }
            // Nor where nothing was to be said at all.
            for (to, destination, reader) in destinations(&place) {
                let (name, source, writer) = idle_sources().swap_remove(number);
                let what = format!("nothing of {name} to {to}");
                drop(writer);
                // The name of a FIFO that nobody reads is waited at.
                let _reader = (to == "FIFO").then_some(reader);
                let done = copy(source, destination, options.clone());
                let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!((done.bytes, done.consumed), (0, 0), "{what}");
            }
        }
    }
}

/// The other part of the same.
#[test]
fn wasi_cli_81_bytes_for_which_there_is_no_reader_are_a_failure() {
    for options in both_ways() {
        let place = Place::new();
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        for (to, destination, reader) in destinations(&place) {
            let running = Running::start(place.source("in"), destination, options.clone());
            running.waits(1);
            take(&reader, 100);
            drop(reader);
            let (cause, done) = running.fails();
            let expected = match to {
                // What a terminal says that was hung up.
                "terminal" => Cause::Io(Side::Destination, Errno::IO),
                _ => GONE,
            };
            assert_eq!(cause, expected, "{to}");
            assert!(done.bytes >= 100 && done.bytes < LENGTH as u64, "{to}");
            assert!(done.consumed >= done.bytes, "{to}");
        }
        // No more than a byte of what it has is taken from a source for nobody.
        let (reader, writer) = pipe();
        let (gone, to) = pipe();
        drop(gone);
        put(&writer, b"some");
        drop(writer);
        let kept = reader.try_clone().unwrap();
        let failed = copy(from(reader), into(to), options.clone()).unwrap_err();
        assert_eq!(failed.cause, GONE);
        let left = drain(kept).len() as u64;
        assert_eq!((failed.done.bytes, failed.done.consumed), (0, 4 - left));
        assert!(left == 3 || options.tuning.force_fallback, "{left}");
    }
}

/// SIGPIPE would end a process that does nothing about it.
#[test]
#[expect(unsafe_code, reason = "std has no call for what a signal does")]
fn no_signal_reaches_the_process() {
    alone(no_signal_reaches_the_process, || {
        // SAFETY: no handler is set; what it does by default is what every other process has.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_ne!(before, libc::SIG_ERR);
        let place = Place::new();
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        // What there is to write with, from the best to the last.
        let systems: [fn(Call) -> bool; 3] = [
            |_| false,
            |call| call == Call::Reopen,
            |call| match call {
                Call::Write(way, _) => way != Way::Plain,
                call => call == Call::Reopen,
            },
        ];
        let zero_copy = Options {
            zero_copy: true,
            ..Options::default()
        };
        let [plain, fallback] = both_ways();
        for options in [plain, fallback, zero_copy] {
            for is_denied in systems {
                let sys = || Watched::with(move |call| is_denied(call).then_some(Errno::PERM));
                for (to, destination, reader) in destinations(&place) {
                    let source = place.source("in");
                    let running = Running::start_on(sys(), source, destination, options.clone());
                    running.waits(1);
                    drop(reader);
                    let (cause, _) = running.fails();
                    assert!(matches!(cause, Cause::Io(Side::Destination, _)), "{to}");
                }
                for number in 0..idle_sources().len() {
                    for (to, destination, reader) in destinations(&place) {
                        let (_, source, writer) = idle_sources().swap_remove(number);
                        // The test must not meet the signal itself.
                        let _kept = source.clone();
                        let running =
                            Running::start_on(sys(), source, destination, options.clone());
                        running.waits(1);
                        // Which of the two is seen first does not matter.
                        drop(reader);
                        let _ = rustix::io::write(&writer, b"some");
                        let (cause, _) = running.fails();
                        assert!(matches!(cause, Cause::Io(Side::Destination, _)), "{to}");
                    }
                }
            }
        }
        // The threads on which they ran are gone with their masks; this one never had one.
    });
}

/// A connection that was cut off is not at its end.
#[test]
fn a_reset_is_an_error_and_no_end() {
    for options in both_ways() {
        for into_a_pipe in [false, true] {
            let place = Place::new();
            let (ours, theirs) = tcp();
            let (reader, writer) = pipe();
            let destination = if into_a_pipe {
                into(writer)
            } else {
                place.destination("new")
            };
            let running = Running::start(from(ours), destination, options.clone());
            running.waits(1);
            put(&theirs, b"the first part");
            running.waits(2);
            // close(2) sends a reset (socket(7), SO_LINGER).
            set_socket_linger(&theirs, Some(Duration::ZERO)).unwrap();
            drop(theirs);
            let (cause, done) = running.fails();
            assert_eq!(cause, Cause::Io(Side::Source, Errno::CONNRESET));
            assert_eq!((done.bytes, done.consumed), (14, 14));
            assert!(place.names().is_empty());
            if into_a_pipe {
                assert_eq!(drain(reader), b"the first part");
            }
        }
        // Whoever goes without having read all cuts a local connection off too.
        let place = Place::new();
        let (ours, theirs) = socket();
        put(&ours, b"unread");
        let running = Running::start(from(ours), place.destination("new"), options);
        running.waits(1);
        drop(theirs);
        assert_eq!(running.fails().0, Cause::Io(Side::Source, Errno::CONNRESET));
        assert!(place.names().is_empty());
    }
}

/// What a connection came to is told once, whoever asks; the read after it says that it has ended.
#[test]
fn an_error_that_is_told_once_is_not_taken_for_a_refusal() {
    let told = [
        (Call::Splice, Errno::TIMEDOUT),
        (Call::Splice, Errno::HOSTUNREACH),
        (Call::Splice, Errno::ACCESS),
        (Call::Read(Way::Message), Errno::TIMEDOUT),
        (Call::Read(Way::Message), Errno::ACCESS),
    ];
    for (such, errno) in told {
        let place = Place::new();
        let (ours, theirs) = socket();
        let (reader, writer) = pipe();
        let destination = if such == Call::Splice {
            into(writer)
        } else {
            place.destination("new")
        };
        let calls = std::sync::atomic::AtomicUsize::new(0);
        // The first finds bytes, or finds none; the next is told.
        let sys = Watched::with(move |call| {
            let tells =
                call == such && calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
            tells.then_some(errno)
        });
        put(&theirs, b"some");
        drop(theirs);
        let running = Running::start_on(sys, from(ours), destination, Options::default());
        let (cause, done) = running.fails();
        assert_eq!(cause, Cause::Io(Side::Source, errno), "{such:?}");
        assert_eq!(done.bytes, 4, "{such:?}");
        assert!(place.names().is_empty());
        drop(reader);
    }
}
