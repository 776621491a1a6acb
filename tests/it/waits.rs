//! Every wait that a copy may come to, ended in every way in which one can end. It is reached first:
//! the pool says that the copy holds no thread, and the copy that all has gone over that could.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use copyist_test_artifacts::STREAMS;
use copyist_wasmtime::engine::{Errno, Pool, PoolOptions, Progress};
use copyist_wasmtime::{Endpoint, EpochClock, InterruptHandle, Ticks};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, FileType, Mode};
use wasmtime::Trap;

use crate::answer::Answer;
use crate::ends::{fifo, fill, non_blocking, pipe, put, socket, tcp, terminal};
use crate::host::{Epochs, Guest, Linking, Prepared, runtime};
use crate::place::{Place, pattern};
use crate::stdio::{Sink, Tap};
use crate::system::PATIENCE;

/// What comes before a source falls silent.
const EARLY: &[u8] = b"early";
/// More than any stream holds that is filled before.
const SOME: usize = 10_000;
/// More than a connection holds, whose buffers grow.
const MUCH: usize = 16 << 20;

type Grant = fn(OwnedFd) -> Endpoint;
const GRANTS: [Grant; 2] = [
    |fd: OwnedFd| Endpoint::owned(fd),
    |fd: OwnedFd| Endpoint::shared(fd),
];

/// Who is at the other end.
enum Peer {
    /// Nobody.
    Absent,
    /// Who wrote [`EARLY`] and is silent now.
    Silent(OwnedFd),
    /// Who writes to a FIFO by its name, as does the guest's end where it has one.
    Writer(#[expect(dead_code, reason = "it keeps the FIFO open")] File),
    /// Who does not read, with so much before it.
    Full(OwnedFd, usize),
    /// Who does not even accept.
    Deaf(TcpListener),
    Tap,
    Sink(Sink),
}

/// A copy that waits.
struct Row {
    name: &'static str,
    place: Place,
    guest: Guest,
    from: &'static str,
    to: &'static str,
    /// How much goes over before it waits.
    early: u64,
    peer: Peer,
}

/// A file `from` to be copied, one that is small, and a FIFO.
fn place(length: usize) -> Place {
    let place = Place::with("from", &pattern(length));
    place.write("small", b"bytes");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, place.path("fifo"), FileType::Fifo, mode, 0).unwrap();
    place
}

fn row(name: &'static str, from: &'static str, to: &'static str, peer: Peer) -> Row {
    let is_deaf = matches!(peer, Peer::Deaf(_)) || name.contains("tcp");
    let place = place(if is_deaf { MUCH } else { SOME });
    let has_come = matches!(peer, Peer::Silent(_) | Peer::Writer(_) | Peer::Tap);
    Row {
        name,
        guest: Guest::new(STREAMS).dir(place.root(), "w"),
        place,
        from,
        to,
        early: if has_come { EARLY.len() as u64 } else { 0 },
        peer,
    }
}

impl Row {
    fn steps(mut self, steps: &[&str]) -> Self {
        self.guest = self.guest.args(steps.to_vec());
        self
    }

    fn granting(mut self, name: &str, endpoint: Endpoint) -> Self {
        self.guest = self.guest.copying(|copying| {
            copying.endpoint(name, endpoint);
        });
        self
    }
}

/// Each with its reader and its writer.
fn channels() -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let ((reader, writer), (open_reader, open_writer)) = (pipe(), pipe());
    non_blocking(&open_reader);
    non_blocking(&open_writer);
    let ((ours, theirs), (tcp_ours, tcp_theirs)) = (socket(), tcp());
    vec![
        ("pipe", reader, writer),
        ("open pipe", open_reader, open_writer),
        ("socket", ours, theirs),
        ("tcp", tcp_ours, tcp_theirs),
    ]
}

/// Sources that have nothing, or nothing more.
fn idle() -> Vec<Row> {
    let mut rows = vec![row("unwritten fifo", "w/fifo", "w/to", Peer::Absent)];
    let silent = row("silent fifo", "w/fifo", "w/to", Peer::Absent);
    let writer = File::options()
        .read(true)
        .write(true)
        .open(silent.place.path("fifo"))
        .unwrap();
    put(&writer, EARLY);
    rows.push(Row {
        early: EARLY.len() as u64,
        peer: Peer::Writer(writer),
        ..silent
    });
    for grant in GRANTS {
        let terminal = terminal().map(|(slave, master)| ("terminal", slave, master));
        for (name, reader, writer) in channels().into_iter().chain(terminal) {
            put(&writer, EARLY);
            let idle = row(name, "@in", "w/to", Peer::Silent(writer));
            rows.push(idle.granting("in", grant(reader)));
        }
    }
    let (reader, writer) = pipe();
    put(&writer, EARLY);
    let stream = row("stream of a pipe", "%in", "w/to", Peer::Silent(writer));
    let stream = stream.granting("in", Endpoint::owned(reader));
    rows.push(stream.steps(&["input:in:channel=in"]));
    let tap = Tap::default();
    tap.pour(EARLY);
    let mut stdin = row("stdin", "%in", "w/to", Peer::Tap).steps(&["input:in:stdin"]);
    stdin.guest = stdin.guest.wasi(move |wasi| {
        wasi.stdin(tap.clone());
    });
    rows.push(stdin);
    rows.push(connected("idle tcp of wasi", "%tcp", "w/to"));
    rows
}

/// Destinations that take nothing, or nothing more.
fn full() -> Vec<Row> {
    let mut rows = vec![row("unread fifo", "w/from", "w/fifo", Peer::Absent)];
    let unread = row("full fifo", "w/from", "w/pipe", Peer::Absent);
    let reader = fifo(&unread.place.path("pipe"));
    let writer = File::options()
        .write(true)
        .open(unread.place.path("pipe"))
        .unwrap();
    let before = fill(&writer);
    rows.push(Row {
        peer: Peer::Full(reader, before),
        ..unread
    });
    for grant in GRANTS {
        let terminal = terminal().map(|(slave, master)| ("terminal", master, slave));
        for (name, reader, writer) in channels().into_iter().chain(terminal) {
            let before = fill(&writer);
            let full = row(name, "w/from", "@out", Peer::Full(reader, before));
            rows.push(full.granting("out", grant(writer)));
        }
    }
    let (reader, writer) = pipe();
    let before = fill(&writer);
    let peer = Peer::Full(reader, before);
    let stream = row("stream of a full pipe", "w/from", "%out", peer);
    let stream = stream.granting("out", Endpoint::owned(writer));
    rows.push(stream.steps(&["output:out:channel=out"]));
    let sink = Sink::default();
    let peer = Peer::Sink(sink.clone());
    let mut stderr = row("stderr", "w/from", "%err", peer).steps(&["output:err:stderr"]);
    stderr.guest = stderr.guest.wasi(move |wasi| {
        wasi.stderr(sink.clone());
    });
    rows.push(stderr);
    rows.push(connected("full tcp of wasi", "w/from", "%tcp"));
    // One stream after the other: either holds it up.
    let ((reader, writer), (out, into)) = (pipe(), pipe());
    put(&writer, EARLY);
    let before = fill(&into);
    let between = row(
        "full pipe behind a pipe",
        "@in",
        "@out",
        Peer::Full(out, before),
    );
    let mut between = between.granting("in", Endpoint::owned(reader));
    between = between.granting("out", Endpoint::owned(into));
    rows.push(between);
    rows
}

/// A connection of the guest's own to somebody who accepts it and no more.
fn connected(name: &'static str, from: &'static str, to: &'static str) -> Row {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let step = format!("tcp:tcp:{}", listener.local_addr().unwrap().port());
    let mut row = row(name, from, to, Peer::Deaf(listener)).steps(&[&step]);
    row.guest = row.guest.wasi(|wasi| {
        wasi.inherit_network().allow_tcp(true);
    });
    row
}

fn rows() -> Vec<Row> {
    idle().into_iter().chain(full()).collect()
}

/// Each on a thread of its own, since they wait.
fn each(linkings: &[Linking], check: impl Fn(Row, Linking) + Sync) {
    let failed = Mutex::new(Vec::new());
    let test = thread::current().name().unwrap_or_default().to_owned();
    thread::scope(|scope| {
        for &linking in linkings {
            for row in rows() {
                let (check, failed, name) = (&check, &failed, row.name);
                thread::Builder::new()
                    .name(format!("{test}: {name}, {linking:?}"))
                    .spawn_scoped(scope, move || {
                        let check = || check(row, linking);
                        let checked = std::panic::AssertUnwindSafe(check);
                        if std::panic::catch_unwind(checked).is_err() {
                            failed.lock().unwrap().push(format!("{name}, {linking:?}"));
                        }
                    })
                    .unwrap();
            }
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:?}");
}

/// What is looked at while a guest runs.
struct Watch {
    pool: Arc<Pool>,
    copy: Arc<Mutex<Option<Progress>>>,
    /// What the copy said at its end that it had done.
    done: Arc<Mutex<Option<u64>>>,
    early: u64,
}

impl Watch {
    /// Returns when the copy waits, with all behind it that could go over.
    fn wait(&self) {
        until(|| {
            let copy = self.copy.lock().unwrap();
            copy.as_ref().is_some_and(|copy| copy.bytes() >= self.early) && self.pool.waiting() == 1
        });
    }
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

/// A guest that goes as far as its copy, and does the rest when a byte says so.
fn prepare(row: &mut Row, linking: Linking, steps: &[String]) -> (Prepared, Watch, OwnedFd) {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let copy = Arc::<Mutex<Option<Progress>>>::default();
    let (reader, go) = pipe();
    let (seen, done) = (copy.clone(), Arc::<Mutex<Option<u64>>>::default());
    let ended = done.clone();
    let guest = row.guest.clone().args(steps.to_vec()).copying(|copying| {
        copying.pool(pool.clone()).grace(PATIENCE);
        copying.endpoint("go", Endpoint::owned(reader));
        copying.on_start(move |started| {
            let mut first = seen.lock().unwrap();
            first.get_or_insert_with(|| started.progress.clone());
        });
        copying.on_copy(move |report| {
            let bytes = report.outcome.unwrap_or_else(|error| &error.done).bytes;
            ended.lock().unwrap().get_or_insert(bytes);
        });
    });
    // Its builder has the channels, too.
    row.guest = Guest::new(STREAMS);
    let watch = Watch {
        pool,
        copy,
        done,
        early: row.early,
    };
    (guest.prepare(linking), watch, go)
}

type Returned = (Prepared, wasmtime::Result<Result<(), ()>>);

fn start(mut guest: Prepared) -> Receiver<Returned> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let result = guest.enter();
        // A test that has failed listens no more.
        let _ = tell.send((guest, result));
    });
    told
}

fn end(told: &Receiver<Returned>) -> Returned {
    told.recv_timeout(PATIENCE).expect("it does not end")
}

impl Row {
    fn copy(&self) -> String {
        format!("copy:{}:{}", self.from, self.to)
    }

    fn start(&self) -> String {
        format!("start:{}:{}", self.from, self.to)
    }

    /// Nothing new is there, and all that was.
    fn is_clean(&self) {
        let known = ["alive", "fifo", "from", "pipe", "small"];
        let names = self.place.names();
        assert!(
            names.iter().all(|name| known.contains(&&**name)),
            "{names:?}"
        );
    }

    /// What the copy says that it has written is there, once somebody reads it: no more, no less.
    fn delivered(&self, watch: &Watch) -> Option<OwnedFd> {
        let (peer, before) = match &self.peer {
            Peer::Full(peer, before) => (peer.try_clone().unwrap(), *before as u64),
            Peer::Deaf(listener) if self.to == "%tcp" => (listener.accept().unwrap().0.into(), 0),
            _ => return None,
        };
        let bytes = watch.done.lock().unwrap().expect("it has ended");
        let mut all = 0;
        until(|| {
            all += available(&peer).0;
            all >= before + bytes
        });
        assert_eq!(all, before + bytes);
        Some(peer)
    }

    /// What a failure counts is what has gone over.
    fn check_counts(&self, failure: &Answer) {
        let (bytes, consumed) = (failure.number("bytes"), failure.number("consumed"));
        assert!(bytes <= consumed, "{bytes} of {consumed}");
        match &self.peer {
            Peer::Silent(_) | Peer::Writer(_) | Peer::Tap => {
                assert_eq!((bytes, consumed), (self.early, self.early));
            }
            Peer::Sink(sink) => assert_eq!(sink.length() as u64, bytes),
            Peer::Deaf(_) if self.to == "%tcp" => {}
            Peer::Absent | Peer::Deaf(_) => assert_eq!((bytes, consumed), (0, 0)),
            Peer::Full(..) => {}
        }
    }

    /// Nothing of the guest's is open any more.
    fn is_closed(&self) {
        match &self.peer {
            Peer::Silent(peer) => assert_hung_up(peer),
            Peer::Full(peer, _) => drop(rest(peer)),
            Peer::Deaf(listener) => {
                let (peer, _) = listener.accept().unwrap();
                rest(&peer.into());
            }
            _ => {}
        }
    }
}

/// How much there is now, and whether that was all.
fn available(peer: &OwnedFd) -> (u64, bool) {
    non_blocking(peer);
    let (mut all, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match rustix::io::read(peer, &mut buffer) {
            Ok(read @ 1..) => all += read as u64,
            Err(Errno::AGAIN) => return (all, false),
            // A terminal or a connection that is cut off.
            Ok(0) | Err(_) => return (all, true),
        }
    }
}

/// How much there is up to the end, which comes.
#[track_caller]
fn rest(peer: &OwnedFd) -> u64 {
    let mut all = 0;
    until(|| {
        let (more, is_over) = available(peer);
        all += more;
        is_over
    });
    all
}

/// Whether the other side is closed, whatever stands in between.
#[track_caller]
fn assert_hung_up(peer: &OwnedFd) {
    const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::RDHUP);
    let mut polled = [PollFd::new(peer, PollFlags::RDHUP)];
    let most = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut polled, Some(&most)).unwrap();
    let seen = polled[0].revents();
    assert!(seen.intersects(GONE), "it is open: {seen:?}");
}

fn has_settled(interrupt: &InterruptHandle, watch: &Watch) {
    assert!(interrupt.wait_until_idle(PATIENCE), "it goes on");
    until(|| watch.pool.waiting() == 0);
}

/// With a trap; of a guest that waits for a job it is the next call that traps.
fn ends_with_a_trap(end_it: impl Fn(&mut Prepared) -> Box<dyn FnOnce()> + Sync) {
    for as_a_job in [false, true] {
        each(&Linking::BOTH, |mut row, linking| {
            let steps = match as_a_job {
                false => vec![row.copy()],
                true => vec![row.start(), "wait".to_owned()],
            };
            let (mut guest, watch, _go) = prepare(&mut row, linking, &steps);
            let end_it = end_it(&mut guest);
            let interrupt = guest.interrupt_handle();
            let told = start(guest);
            watch.wait();
            assert!(told.try_recv().is_err(), "it has ended");
            end_it();
            let (mut guest, result) = end(&told);
            let trap = result.as_ref().err();
            let trap = trap.and_then(|error| error.downcast_ref::<Trap>());
            assert_eq!(trap, Some(&Trap::Interrupt), "{result:?}");
            // wasmtime lets nobody into what has trapped.
            assert!(guest.enter().is_err());
            has_settled(&interrupt, &watch);
            row.is_clean();
            drop(guest);
            row.is_closed();
        });
    }
}

// https://github.com/bytecodealliance/wasmtime/issues/9188,
// https://github.com/bytecodealliance/wasmtime-go/issues/233
#[test]
fn wasmtime_9188_a_deadline_ends_every_wait_of_a_guest() {
    ends_with_a_trap(|guest| {
        let clock = EpochClock::fed(Epochs::Off.engine());
        let attached = guest.attach(&clock, Ticks(1));
        Box::new(move || {
            clock.tick();
            assert!(attached.has_passed());
        })
    });
}

// https://github.com/bytecodealliance/wasmtime/issues/9188
#[test]
fn wasmtime_9188_an_interrupt_ends_every_wait_of_a_guest() {
    ends_with_a_trap(|guest| {
        let interrupt = guest.interrupt_handle();
        Box::new(move || interrupt.interrupt())
    });
}

/// Long enough for every row to be seen waiting.
const TIMEOUT: &str = "--timeout=4000000000";

/// By a failure, after which the guest copies something else.
fn fails(
    steps: impl Fn(&Row) -> Vec<String> + Sync,
    lends: bool,
    cause: &str,
    end_it: fn(&OwnedFd),
) {
    each(&Linking::BOTH, |mut row, linking| {
        let mut steps = steps(&row);
        steps.extend(["copy:w/small:w/alive", "byte:go"].map(str::to_owned));
        let (guest, watch, go) = prepare(&mut row, linking, &steps);
        let interrupt = guest.interrupt_handle();
        let told = start(guest);
        watch.wait();
        end_it(&go);
        until(|| row.place.exists("alive") && interrupt.in_flight() == 0);
        assert_eq!(watch.pool.waiting(), 0);
        // A stream that was lent is the guest's again, who drops it in the end.
        if lends {
            put(&go, b"e");
        }
        let peer = row.delivered(&watch);
        if !lends {
            put(&go, b"e");
        }
        let (guest, result) = end(&told);
        let ended = guest.end(result);
        let mut answers = ended.answers();
        answers.pop().unwrap().done();
        row.check_counts(&answers.pop().unwrap().failed(cause, "-"));
        row.is_clean();
        row.place.assert_holds("alive", b"bytes");
        match peer {
            Some(peer) => assert_eq!(rest(&peer), 0),
            None => row.is_closed(),
        }
    });
}

#[test]
fn the_time_that_a_guest_gives_ends_every_wait_and_the_guest_goes_on() {
    let steps = |row: &Row| vec![row.copy(), TIMEOUT.to_owned()];
    fails(steps, true, "timed-out", |_| {});
}

#[test]
fn the_time_that_a_guest_gives_ends_every_wait_of_a_job_and_the_guest_goes_on() {
    let steps = |row: &Row| vec![row.start(), "wait".to_owned(), TIMEOUT.to_owned()];
    fails(steps, false, "timed-out", |_| {});
}

#[test]
fn a_guest_cancels_every_wait_of_a_job_and_goes_on() {
    let words = ["byte:go", "cancel", "wait"].map(str::to_owned);
    let steps = |row: &Row| [row.start()].into_iter().chain(words.clone()).collect();
    fails(steps, false, "cancelled", |go| put(go, b"c"));
}

#[test]
fn a_guest_that_drops_a_job_ends_every_wait_of_it_and_goes_on() {
    each(&Linking::BOTH, |mut row, linking| {
        let words = ["byte:go", "abandon", "copy:w/small:w/alive"];
        let steps: Vec<_> = [row.start()]
            .into_iter()
            .chain(words.map(str::to_owned))
            .collect();
        let (guest, watch, go) = prepare(&mut row, linking, &steps);
        let told = start(guest);
        watch.wait();
        put(&go, b"d");
        let (guest, result) = end(&told);
        assert_eq!(watch.pool.waiting(), 0, "the drop has not waited");
        row.is_clean();
        guest.end(result).answers().remove(1).done();
        row.place.assert_holds("alive", b"bytes");
        row.is_closed();
    });
}

/// The call first: a dropped future.
#[test]
fn a_store_that_is_dropped_ends_every_wait_of_a_call() {
    each(&[Linking::Async], |mut row, linking| {
        let steps = [row.copy()];
        let (mut guest, watch, _go) = prepare(&mut row, linking, &steps);
        let interrupt = guest.interrupt_handle();
        let watch = Arc::new(watch);
        runtime().block_on(async {
            let watch = watch.clone();
            let waiting = tokio::task::spawn_blocking(move || watch.wait());
            tokio::select! {
                _ = guest.call() => panic!("the call has ended"),
                waiting = waiting => waiting.unwrap(),
            }
        });
        drop(guest);
        has_settled(&interrupt, &watch);
        row.is_clean();
        row.is_closed();
    });
}

#[test]
fn a_store_that_is_dropped_ends_every_wait_of_a_job() {
    each(&Linking::BOTH, |mut row, linking| {
        let steps = [row.start(), "byte:go".to_owned(), "leave".to_owned()];
        let (guest, watch, go) = prepare(&mut row, linking, &steps);
        let interrupt = guest.interrupt_handle();
        let told = start(guest);
        watch.wait();
        put(&go, b"l");
        let (guest, result) = end(&told);
        result.unwrap().unwrap();
        drop(guest);
        has_settled(&interrupt, &watch);
        row.is_clean();
        row.is_closed();
    });
}
