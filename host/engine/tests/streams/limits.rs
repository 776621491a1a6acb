//! Bounds on what is copied of a stream, and streams that take or give little at a time.

use std::fs;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use copyist_engine::{Cause, Limit, Limits, Options, Quota, Sparse, Summary, Tuning, Window};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::pipe::fcntl_setpipe_size;

use super::support::{
    Place, Running, both_ways, copy, drain, from, into, pattern, pipe, put, socket, take, tcp,
};

/// Whichever mechanism moves them, in one call or in many.
fn ways() -> Vec<Options> {
    let [plain, fallback] = both_ways();
    let piecewise = Options {
        tuning: Tuning {
            call_size: NonZeroUsize::new(333),
            ..Tuning::default()
        },
        ..Options::default()
    };
    let zeros = Options {
        sparse: Sparse::Always,
        ..Options::default()
    };
    vec![plain, fallback, piecewise, zeros]
}

fn sources(bytes: &[u8]) -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe();
    let (ours, theirs) = socket();
    let (tcp_ours, tcp_theirs) = tcp();
    let all: Vec<(_, OwnedFd, OwnedFd)> = vec![
        ("pipe", reader, writer),
        ("socket", ours.into(), theirs.into()),
        ("tcp", tcp_ours.into(), tcp_theirs.into()),
    ];
    for (_, _, writer) in &all {
        put(writer, bytes);
    }
    all
}

fn of_bytes(options: &Options, bytes: u64) -> Options {
    Options {
        limits: Limits {
            bytes: Some(bytes),
            total: None,
        },
        ..options.clone()
    }
}

fn window(options: &Options, length: u64) -> Options {
    Options {
        window: Some(Window {
            source_offset: 0,
            length: Some(length),
            destination_offset: 0,
        }),
        ..options.clone()
    }
}

/// Into a file and into a pipe that somebody reads: what came there, or no file.
fn into_each(run: impl Fn(&Place, Option<OwnedFd>)) -> [Option<Vec<u8>>; 2] {
    let place = Place::new();
    run(&place, None);
    let file = fs::read(place.path("out")).ok();
    let (reader, writer) = pipe();
    let collector = thread::spawn(move || drain(reader));
    run(&Place::new(), Some(writer));
    [file, Some(collector.join().unwrap())]
}

fn start(place: &Place, source: OwnedFd, pipe: Option<OwnedFd>, options: Options) -> Running {
    let destination = match pipe {
        Some(writer) => into(writer),
        None => place.destination("out"),
    };
    Running::start(from(source), destination, options)
}

#[test]
fn a_window_ends_where_it_says_and_leaves_the_rest_in_the_stream() {
    let bytes = pattern(10_000);
    for options in ways() {
        for length in [0, 1, 4096, 9_999, 10_000] {
            for number in 0..sources(&bytes).len() {
                let all = into_each(|place, pipe| {
                    let (name, source, writer) = sources(&bytes).swap_remove(number);
                    let kept = source.try_clone().unwrap();
                    // It does not wait to see whether there is more.
                    let running = start(place, source, pipe, window(&options, length));
                    let done = running.end().unwrap();
                    assert_eq!((done.bytes, done.consumed), (length, length), "{name}");
                    drop(writer);
                    let left = drain(kept);
                    assert!(left == bytes[usize::try_from(length).unwrap()..], "{name}");
                });
                for came in all {
                    assert!(came.unwrap() == bytes[..usize::try_from(length).unwrap()]);
                }
            }
        }
    }
}

#[test]
fn a_limit_lets_nothing_through_beyond_it_and_says_what_it_took() {
    let bytes = pattern(10_000);
    for options in ways() {
        for limit in [0, 1, 4096, 9_999] {
            for number in 0..sources(&bytes).len() {
                let all = into_each(|place, pipe| {
                    let (name, source, writer) = sources(&bytes).swap_remove(number);
                    let kept = source.try_clone().unwrap();
                    let running = start(place, source, pipe, of_bytes(&options, limit));
                    let (cause, done) = running.fails();
                    assert_eq!(cause, Cause::Limit(Limit::Bytes), "{name}");
                    // One byte tells that there is more.
                    assert_eq!((done.bytes, done.consumed), (limit, limit + 1), "{name}");
                    drop(writer);
                    let left = drain(kept);
                    assert!(
                        left == bytes[usize::try_from(limit).unwrap() + 1..],
                        "{name}"
                    );
                    assert!(place.names().is_empty(), "{name}");
                });
                assert_eq!(all[0], None);
                assert!(all[1].as_deref().unwrap() == &bytes[..usize::try_from(limit).unwrap()]);
            }
        }
    }
}

#[test]
fn a_source_that_ends_at_its_limit_is_copied() {
    let bytes = pattern(10_000);
    for options in ways() {
        for number in 0..sources(&bytes).len() {
            let all = into_each(|place, pipe| {
                let (name, source, writer) = sources(&bytes).swap_remove(number);
                let running = start(place, source, pipe, of_bytes(&options, 10_000));
                // Its writer alone knows that this is the end.
                running.waits(1);
                assert!(!running.has_ended(), "{name}");
                drop(writer);
                let done = running.end().unwrap();
                assert_eq!((done.bytes, done.consumed), (10_000, 10_000), "{name}");
            });
            for came in all {
                assert!(came.unwrap() == bytes);
            }
        }
    }
}

#[test]
fn a_quota_is_shared_and_what_was_not_used_is_there_for_others() {
    for options in ways() {
        let quota = Arc::new(Quota::new(10_000));
        let options = Options {
            limits: Limits {
                bytes: None,
                total: Some(quota.clone()),
            },
            ..options
        };
        let place = Place::new();
        // Those who wait hold nothing of it.
        let (idle, idle_writer) = pipe();
        let waiting = Running::start(from(idle), place.destination("idle"), options.clone());
        waiting.waits(1);
        put(&idle_writer, b"some");
        waiting.waits(2);
        assert_eq!(quota.left(), 9_996);
        let (reader, writer) = pipe();
        put(&writer, &pattern(6_000));
        drop(writer);
        copy(from(reader), place.destination("one"), options.clone()).unwrap();
        assert_eq!(quota.left(), 3_996);
        let (reader, writer) = pipe();
        put(&writer, &pattern(6_000));
        drop(writer);
        let failed = copy(from(reader), place.destination("two"), options).unwrap_err();
        assert_eq!(failed.cause, Cause::Limit(Limit::TotalBytes));
        assert_eq!((failed.done.bytes, failed.done.consumed), (3_996, 3_997));
        assert_eq!(quota.left(), 0);
        put(&idle_writer, b"more");
        let (cause, done) = waiting.fails();
        assert_eq!(cause, Cause::Limit(Limit::TotalBytes));
        assert_eq!((done.bytes, done.consumed), (4, 5));
        assert_eq!(place.names(), ["one"]);
    }
}

/// A file into a stream: the limit is known before a byte is put, where the file says its size.
#[test]
fn a_file_that_is_too_long_does_not_reach_the_stream() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(10_000)).unwrap();
    for options in ways() {
        let (reader, writer) = pipe();
        let limited = of_bytes(&options, 9_999);
        let failed = copy(place.source("in"), into(writer), limited).unwrap_err();
        assert_eq!(failed.cause, Cause::Limit(Limit::Bytes));
        assert!(drain(reader).is_empty());
        let (reader, writer) = pipe();
        let part = copy(place.source("in"), into(writer), window(&options, 5_000));
        assert_eq!(part.unwrap().bytes, 5_000);
        assert!(drain(reader) == pattern(5_000));
    }
}

fn small_streams() -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe();
    fcntl_setpipe_size(&writer, 4096).unwrap();
    let (ours, theirs) = socket();
    set_socket_send_buffer_size(&ours, 1).unwrap();
    let (tcp_ours, tcp_theirs) = tcp();
    set_socket_send_buffer_size(&tcp_ours, 1).unwrap();
    vec![
        ("pipe", reader, writer),
        ("socket", theirs.into(), ours.into()),
        ("tcp", tcp_theirs.into(), tcp_ours.into()),
    ]
}

// https://github.com/rpm-software-management/librepo/issues/398,
// https://github.com/bytecodealliance/wasmtime/issues/8340
#[test]
fn librepo_398_what_a_write_did_not_take_is_written_by_the_next() {
    const LENGTH: usize = 200_003;
    let place = Place::new();
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    let zero_copy = Options {
        zero_copy: true,
        ..Options::default()
    };
    for options in [ways(), vec![zero_copy]].concat() {
        for (name, reader, writer) in small_streams() {
            // Takes odd amounts, one byte among them.
            let collector = thread::spawn(move || {
                let mut came = Vec::new();
                for round in 1.. {
                    let length = (round * 7919 % 5000 + 1).min(LENGTH - came.len());
                    came.extend(take(&reader, length));
                    if came.len() == LENGTH {
                        return came;
                    }
                }
                came
            });
            let done = copy(place.source("in"), into(writer), options.clone()).unwrap();
            assert_eq!(done.bytes, LENGTH as u64, "{name}");
            assert!(collector.join().unwrap() == pattern(LENGTH), "{name}");
        }
    }
}

#[test]
fn bytes_that_come_one_by_one_all_come() {
    const LENGTH: usize = 500;
    for options in ways() {
        for number in 0..small_streams().len() {
            let all = into_each(|place, pipe| {
                let (name, reader, writer) = small_streams().swap_remove(number);
                let feeder = thread::spawn(move || {
                    for byte in pattern(LENGTH) {
                        put(&writer, &[byte]);
                    }
                });
                let done: Summary = start(place, reader, pipe, options.clone()).end().unwrap();
                feeder.join().unwrap();
                assert_eq!(done.bytes, LENGTH as u64, "{name}");
            });
            for came in all {
                assert!(came.unwrap() == pattern(LENGTH));
            }
        }
    }
}
