//! Whole-file reads over answers that a file system gives once in a while.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use copyist_engine::{
    Cancel, Cause, Errno, Error, Limit, ReadOptions, ReadRequest, Refused, Side, Source,
    Unsupported, Window, read_in,
};

use crate::bench::{Bench, SIZE, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

fn read(bench: &Bench, sys: Scheduled, window: Option<Window>) -> Result<Vec<u8>, Error> {
    let request = ReadRequest {
        source: Source::Path(bench.at(SOURCE)),
        options: ReadOptions {
            window,
            ..ReadOptions::default()
        },
    };
    let sys = sys.at_most(3 * SIZE).shared();
    let answer = read_in(&sys.environment(), &request, &Cancel::new());
    sys.calls();
    answer
}

#[test]
fn every_error_is_the_sources_or_none() {
    let bench = Bench::new();
    for errno in [
        Errno::IO,
        Errno::ACCESS,
        Errno::STALE,
        Errno::NOMEM,
        Errno::NXIO,
        Errno::INTR,
        Errno::AGAIN,
    ] {
        for (op, n) in [
            (Op::Open, 1),
            (Op::Stat, 1),
            (Op::Read, 1),
            (Op::Read, 2),
            (Op::Close, 1),
        ] {
            let fails = Outcome::Fail(errno);
            let answer = read(&bench, Scheduled::new().rule(op, When::Nth(n), fails), None);
            let wanted = match (op, errno) {
                (Op::Close, _) | (_, Errno::INTR) | (Op::Open | Op::Read, Errno::AGAIN) => None,
                // What open(2) says to a socket.
                (Op::Open, Errno::NXIO) => Some(Cause::Unsupported(Unsupported::Kind(
                    Side::Source,
                    Refused::SocketName,
                ))),
                _ => Some(Cause::Io(Side::Source, errno)),
            };
            match (answer, wanted) {
                (Ok(bytes), None) => assert!(bytes == bench.content(), "{op:?} {errno:?}"),
                (Err(error), Some(cause)) => assert_eq!(error.cause, cause, "{op:?}"),
                (answer, wanted) => {
                    let length = answer.map(|bytes| bytes.len());
                    panic!("{op:?} {n} {errno:?}: {length:?}, and not {wanted:?}");
                }
            }
        }
    }
}

// https://github.com/nodejs/node/issues/50437
#[test]
fn node_50437_a_short_read_is_not_the_end_of_a_whole_file() {
    let bench = Bench::new();
    let window = Some(Window {
        source_offset: 1000,
        length: Some(5000),
        destination_offset: 0,
    });
    for short in [1, 7, 4095, SIZE] {
        let sys = || Scheduled::new().rule(Op::Read, When::From(1), Outcome::Short(short));
        assert!(read(&bench, sys(), None).unwrap() == bench.content());
        let bytes = read(&bench, sys(), window).unwrap();
        assert!(bytes == bench.content()[1000..6000]);
    }
}

#[test]
fn a_size_that_is_a_lie_is_only_a_hint() {
    for size in [0, 1, 65_535, 65_536, 65_537, 300_000] {
        let bench = Bench::of(noise(size, 3));
        for said in [0, 1, size / 2, size, size + 1, 2 * size] {
            let sys = Scheduled::new().forge(move |_, info| info.size = said as u64);
            let bytes = read(&bench, sys, None).unwrap();
            assert!(bytes == bench.content(), "{size} bytes, said to be {said}");
        }
    }
}

#[test]
fn a_file_that_changes_meanwhile_is_read_as_a_plain_read_would() {
    for n in [1, 2] {
        let bench = Bench::new();
        let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
        let source = source.unwrap();
        let grow = Outcome::after(move || {
            source
                .write_all_at(&noise(200_000, 4), SIZE as u64)
                .unwrap();
        });
        let sys = Scheduled::new().rule(Op::Read, When::Nth(n), grow);
        let bytes = read(&bench, sys, None).unwrap();
        let wanted = [bench.content(), &noise(200_000, 4)].concat();
        assert!(bytes == wanted, "{n}: {} bytes", bytes.len());

        let bench = Bench::new();
        let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
        let source = source.unwrap();
        let shrink = Outcome::after(move || source.set_len(100).unwrap());
        let sys = Scheduled::new().rule(Op::Read, When::Nth(n), shrink);
        let bytes = read(&bench, sys, None).unwrap();
        let reached = if n == 1 { 100 } else { SIZE };
        assert!(bytes == bench.content()[..reached]);
    }
}

#[test]
fn a_file_larger_than_the_limit_is_refused_unread() {
    let bench = Bench::new();
    for (limit, fits) in [(SIZE, true), (SIZE - 1, false)] {
        let sys = Scheduled::new().shared();
        let request = ReadRequest {
            source: Source::Path(bench.at(SOURCE)),
            options: ReadOptions {
                limit: Some(limit as u64),
                ..ReadOptions::default()
            },
        };
        let answer = read_in(&sys.environment(), &request, &Cancel::new());
        match answer {
            Ok(bytes) => assert!(fits && bytes == bench.content()),
            Err(error) => {
                assert!(!fits, "{error:?}");
                assert_eq!(error.cause, Cause::Limit(Limit::ReadSize));
                assert_eq!(sys.ops(), [Op::Open, Op::Stat, Op::Close]);
            }
        }
    }
}

#[test]
fn a_cancel_between_two_reads_is_heard() {
    let bench = Bench::new();
    let cancel = Cancel::new();
    let canceller = cancel.clone();
    let sys = Scheduled::new()
        .rule(
            Op::Read,
            When::Nth(3),
            Outcome::after(move || canceller.cancel()),
        )
        .rule(Op::Read, When::From(1), Outcome::Short(100))
        .shared();
    let request = ReadRequest {
        source: Source::Path(bench.at(SOURCE)),
        options: ReadOptions::default(),
    };
    let error = read_in(&sys.environment(), &request, &cancel).unwrap_err();
    assert_eq!(error.cause, Cause::Cancelled);
    assert_eq!(sys.calls_of(Op::Read).len(), 3);
}
