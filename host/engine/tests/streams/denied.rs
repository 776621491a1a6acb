//! Copies of streams under filters that deny system calls.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread;

use copyist_bed::seccomp::{Denied, ERRNOS, SystemCall, run_denied};
use copyist_engine::{Cause, Destination, Errno, Options, Side, Source};

use super::support::{
    Place, Running, both_ways, copy, drain, fill, from, into, non_blocking, pattern, pipe, put,
    socket, take, tcp, terminal,
};

/// More than a pipe or a socket holds.
const LENGTH: usize = 300_000;

type Ends = (OwnedFd, OwnedFd);

/// Each kind of stream: what is written to comes out at the other.
fn streams() -> Vec<(&'static str, Ends)> {
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_reader);
    non_blocking(&open_writer);
    let (ours, theirs) = socket();
    let (open_ours, open_theirs) = socket();
    open_ours.set_nonblocking(true).unwrap();
    let (tcp_ours, tcp_theirs) = tcp();
    vec![
        ("pipe", (reader, writer)),
        ("open pipe", (open_reader, open_writer)),
        ("socket", (theirs.into(), ours.into())),
        ("open socket", (open_theirs.into(), open_ours.into())),
        ("tcp", (tcp_theirs.into(), tcp_ours.into())),
    ]
}

fn stream(name: &str) -> Ends {
    let mut all = streams();
    let at = all.iter().position(|(kind, _)| *kind == name).unwrap();
    all.swap_remove(at).1
}

/// Writes all, whether the descriptor blocks or not.
fn feed(fd: OwnedFd) -> thread::JoinHandle<()> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::empty()).unwrap();
    thread::spawn(move || put(&fd, &pattern(LENGTH)))
}

fn collect(fd: OwnedFd) -> thread::JoinHandle<Vec<u8>> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::empty()).unwrap();
    thread::spawn(move || drain(fd))
}

fn check(what: &str, source: Source, destination: Destination, options: &Options) {
    let done = copy(source, destination, options.clone());
    let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(
        (done.bytes, done.consumed),
        (LENGTH as u64, LENGTH as u64),
        "{what}"
    );
}

fn all_pairs(what: &str) {
    let names: Vec<_> = streams().into_iter().map(|(name, _)| name).collect();
    let [plain, fallback] = both_ways();
    let zero_copy = Options {
        zero_copy: true,
        ..Options::default()
    };
    let place = Place::new();
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    for options in [plain, fallback, zero_copy] {
        for from_here in &names {
            let what = format!("{what}: {from_here} to a file");
            let (reader, writer) = stream(from_here);
            let feeder = feed(writer);
            check(&what, from(reader), place.destination("out"), &options);
            feeder.join().unwrap();
            assert!(
                fs::read(place.path("out")).unwrap() == pattern(LENGTH),
                "{what}"
            );
            for to_here in &names {
                let what = format!("{what}: {from_here} to {to_here}");
                let (reader, writer) = stream(from_here);
                let (other_reader, other_writer) = stream(to_here);
                let feeder = feed(writer);
                let collector = collect(other_reader);
                check(&what, from(reader), into(other_writer), &options);
                feeder.join().unwrap();
                assert!(collector.join().unwrap() == pattern(LENGTH), "{what}");
            }
        }
        for to_here in &names {
            let what = format!("{what}: a file to {to_here}");
            let (reader, writer) = stream(to_here);
            let collector = collect(reader);
            check(&what, place.source("in"), into(writer), &options);
            assert!(collector.join().unwrap() == pattern(LENGTH), "{what}");
        }
    }
    let what = format!("{what}: a terminal");
    let (master, slave) = terminal();
    let collector = thread::spawn(move || take(&master, LENGTH));
    check(&what, place.source("in"), into(slave), &Options::default());
    assert!(collector.join().unwrap() == pattern(LENGTH), "{what}");
}

/// A wait is ended by a cancel with a filter as without.
fn waits_end(what: &str) {
    let place = Place::new();
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    for (name, (reader, writer)) in streams() {
        let source = from(reader.try_clone().unwrap());
        let idle = Running::start(source, place.destination("new"), Options::default());
        idle.waits(1);
        idle.cancel.cancel();
        assert_eq!(idle.fails().0, Cause::Cancelled, "{what}: idle {name}");
        fill(&writer);
        let full = Running::start(place.source("in"), into(writer), Options::default());
        full.waits(1);
        full.cancel.cancel();
        assert_eq!(full.fails().0, Cause::Cancelled, "{what}: full {name}");
        drop(reader);
    }
    assert_eq!(place.names(), ["in"], "{what}");
}

/// Calls on streams, and what stands in for one another.
const PROFILES: [&[SystemCall]; 9] = [
    &[SystemCall::Sendto],
    &[SystemCall::Recvfrom],
    &[SystemCall::Splice],
    &[SystemCall::Preadv2],
    &[SystemCall::Pwritev2],
    &[SystemCall::Isatty],
    &[SystemCall::Recvfrom, SystemCall::Preadv2],
    &[SystemCall::Sendto, SystemCall::Pwritev2],
    &[
        SystemCall::Sendto,
        SystemCall::Preadv2,
        SystemCall::Splice,
        SystemCall::Sendfile,
    ],
];

// A filter that does not know a call answers EPERM, an old kernel ENOSYS, LXC and Android EACCES.
// https://github.com/oven-sh/bun/pull/47100: a copy to or from a socket failed where sendto or
// recvfrom was denied.
#[test]
fn bun_47100_all_bytes_come_over_where_calls_are_denied() {
    for errno in ERRNOS {
        for profile in PROFILES {
            let denied: Vec<_> = profile
                .iter()
                .map(|call| Denied { call: *call, errno })
                .collect();
            let what = format!("{profile:?} answer {errno}");
            run_denied(&denied, || {
                all_pairs(&what);
                waits_end(&what);
            });
        }
    }
}

// https://github.com/oven-sh/bun/pull/47100
#[test]
fn bun_47100_all_bytes_come_over_where_all_of_them_are_denied() {
    for errno in ERRNOS {
        let profile = SystemCall::ALL.map(|call| Denied { call, errno });
        let what = format!("all answer {errno}");
        run_denied(&profile, || {
            all_pairs(&what);
            waits_end(&what);
        });
    }
}

/// A denial does not hide what is true of the stream.
#[test]
fn a_true_error_is_still_one() {
    let profile = SystemCall::ALL.map(|call| Denied {
        call,
        errno: Errno::PERM,
    });
    run_denied(&profile, || {
        let place = Place::new();
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        for (name, (reader, writer)) in streams() {
            drop(reader);
            let failed = copy(place.source("in"), into(writer), Options::default());
            assert!(
                matches!(
                    failed.unwrap_err().cause,
                    Cause::Io(Side::Destination, Errno::PIPE | Errno::CONNRESET)
                ),
                "{name}"
            );
        }
        let alone = std::os::unix::net::UnixStream::pair().unwrap().0;
        rustix::net::shutdown(&alone, rustix::net::Shutdown::Read).unwrap();
        let ended = copy(from(alone), place.destination("out"), Options::default());
        assert_eq!(ended.unwrap().bytes, 0);
    });
}
