//! Copies of which an end is in this process.

use std::fs;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use copyist_engine::{
    Cancel, Cause, Destination, Errno, Error, Feed, Mechanism, Options, Owner, Passed, Pool,
    PoolOptions, Request, Side, Source, Summary, copy,
};

use super::support::{Place, drain, fill, into, pattern, pipe};

const LENGTH: usize = 3_000_001;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn waker() -> Waker {
    Arc::new(Unpark(thread::current())).into()
}

/// Puts all of it, as there is room, then its end.
fn put_all(feed: &Feed, mut bytes: &[u8], end: Result<(), Errno>) -> Result<(), Errno> {
    let waker = waker();
    while !bytes.is_empty() {
        match feed.room(&waker)? {
            Passed::Later => thread::park(),
            Passed::Bytes(room) => {
                let put = feed.put(&bytes[..room.min(bytes.len())])?;
                bytes = &bytes[put..];
            }
        }
    }
    feed.end(end);
    Ok(())
}

fn take_all(feed: &Feed) -> Result<Vec<u8>, Errno> {
    let waker = waker();
    let mut all = Vec::new();
    let mut buffer = [0; 10_000];
    loop {
        match feed.take(&mut buffer, &waker)? {
            Passed::Later => thread::park(),
            Passed::Bytes(0) => {
                feed.settle();
                return Ok(all);
            }
            Passed::Bytes(taken) => all.extend_from_slice(&buffer[..taken]),
        }
    }
}

type Outcome = Result<Summary, Error>;

/// Both drivers.
fn by_each(run: impl Fn(&dyn Fn(Request, Cancel) -> Outcome)) {
    run(&|request, cancel| copy(request, &cancel));
    let pool = Pool::new(PoolOptions::default());
    run(&|request, cancel| {
        let (tell, outcome) = std::sync::mpsc::channel();
        pool.copy(Owner(1), request, cancel, move |answer| {
            let _ = tell.send(answer);
        });
        outcome.recv().unwrap()
    });
}

fn request(source: Source, destination: Destination) -> Request {
    Request {
        source,
        destination,
        options: Options::default(),
    }
}

#[test]
fn what_is_put_comes_out_in_a_file_and_the_other_way_round() {
    let bytes = pattern(LENGTH);
    by_each(|run| {
        let place = Place::new();
        let feed = Feed::new();
        let done = thread::scope(|scope| {
            scope.spawn(|| put_all(&feed, &bytes, Ok(())).unwrap());
            let source = Source::Feed(feed.clone());
            run(request(source, place.destination("file")), Cancel::new()).unwrap()
        });
        assert_eq!(
            (done.bytes, done.method),
            (LENGTH as u64, Some(Mechanism::ReadWrite))
        );
        assert!(fs::read(place.path("file")).unwrap() == bytes);
        let feed = Feed::new();
        thread::scope(|scope| {
            let taker = scope.spawn(|| take_all(&feed).unwrap());
            let destination = Destination::Feed(feed.clone());
            let done = run(request(place.source("file"), destination), Cancel::new()).unwrap();
            assert_eq!(done.bytes, LENGTH as u64);
            assert!(taker.join().unwrap() == bytes);
        });
        // And from one into another.
        let (from, to) = (Feed::new(), Feed::new());
        thread::scope(|scope| {
            scope.spawn(|| put_all(&from, &bytes, Ok(())).unwrap());
            let taker = scope.spawn(|| take_all(&to).unwrap());
            let request = request(Source::Feed(from.clone()), Destination::Feed(to.clone()));
            run(request, Cancel::new()).unwrap();
            assert!(taker.join().unwrap() == bytes);
        });
    });
}

#[test]
fn nothing_is_asked_for_before_the_destination_has_room() {
    let pool = Pool::new(PoolOptions::default());
    let (reader, writer) = pipe();
    let filled = fill(&writer);
    let feed = Feed::new();
    let cancel = Cancel::new();
    let (tell, outcome) = std::sync::mpsc::channel();
    pool.copy(
        Owner(1),
        request(Source::Feed(feed.clone()), into(writer)),
        cancel,
        move |answer| {
            let _ = tell.send(answer);
        },
    );
    while pool.waiting() != 1 {
        thread::yield_now();
    }
    assert_eq!(feed.room(Waker::noop()), Ok(Passed::Later));
    assert_eq!(feed.put(b"early"), Ok(0));
    let collector = thread::spawn(move || drain(reader));
    put_all(&feed, b"in time", Ok(())).unwrap();
    assert_eq!(outcome.recv().unwrap().unwrap().bytes, 7);
    let all = collector.join().unwrap();
    assert_eq!(&all[filled..], b"in time");
}

#[test]
fn either_end_hears_why_the_other_went() {
    by_each(|run| {
        let place = Place::new();
        let broken = Feed::new();
        thread::scope(|scope| {
            scope.spawn(|| put_all(&broken, b"some", Err(Errno::CONNRESET)).unwrap());
            let source = Source::Feed(broken.clone());
            let request = request(source, place.destination("new"));
            let error = run(request, Cancel::new()).unwrap_err();
            assert_eq!(error.cause, Cause::Io(Side::Source, Errno::CONNRESET));
            assert_eq!(error.done.bytes, 4);
        });
        assert!(place.names().is_empty());
        fs::write(place.path("file"), pattern(100)).unwrap();
        let refused = Feed::new();
        refused.refuse(Errno::PIPE);
        let request = request(place.source("file"), Destination::Feed(refused));
        let error = run(request, Cancel::new()).unwrap_err();
        assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::PIPE));
        // What was read and not delivered is counted.
        assert_eq!((error.done.bytes, error.done.consumed), (0, 100));
    });
}

#[test]
fn a_cancel_ends_a_wait_for_a_feed_and_tells_it() {
    by_each(|run| {
        let place = Place::new();
        let feed = Feed::new();
        let cancel = Cancel::new();
        thread::scope(|scope| {
            let (feed, cancel) = (&feed, &cancel);
            scope.spawn(move || {
                // It waits once it asks.
                let waker = waker();
                while feed.room(&waker) == Ok(Passed::Later) {
                    thread::park();
                }
                cancel.cancel();
            });
            let source = Source::Feed(feed.clone());
            let request = request(source, place.destination("new"));
            let error = run(request, cancel.clone()).unwrap_err();
            assert_eq!(error.cause, Cause::Cancelled);
        });
        assert!(place.names().is_empty());
        assert_eq!(feed.put(b"late"), Err(Errno::CANCELED));
    });
}

/// Who takes was about to, and is not told.
#[test]
fn what_was_put_and_not_taken_is_not_counted_as_there() {
    by_each(|run| {
        let place = Place::new();
        fs::write(place.path("file"), pattern(1000)).unwrap();
        let feed = Feed::new();
        let cancel = Cancel::new();
        let mut buffer = [0; 100];
        assert_eq!(feed.take(&mut buffer, Waker::noop()), Ok(Passed::Later));
        let error = thread::scope(|scope| {
            let (feed, cancel) = (&feed, &cancel);
            scope.spawn(move || {
                while feed.left() == 0 {
                    thread::yield_now();
                }
                // Some of them it has.
                let mut some = [0; 30];
                assert_eq!(feed.take(&mut some, Waker::noop()), Ok(Passed::Bytes(30)));
                cancel.cancel();
            });
            let destination = Destination::Feed(feed.clone());
            run(request(place.source("file"), destination), cancel.clone()).unwrap_err()
        });
        assert_eq!(error.cause, Cause::Cancelled);
        assert_eq!((error.done.bytes, error.done.consumed), (30, 1000));
        let late = feed.take(&mut buffer, Waker::noop());
        assert_eq!(late, Err(Errno::CANCELED));
    });
}
