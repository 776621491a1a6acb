//! What ends a wait besides what is waited for: the cancel, and the time that the caller gave.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use copyist_engine::{
    Cancel, Cause, Destination, Environment, Limits, Options, Request, Source, Step, Transfer,
    WriteMode, copy_in,
};

use super::child::alone;
use super::support::{
    Call, Place, Running, Watched, both_ways, drain, fill, from, into, non_blocking, pattern, pipe,
    put, socket, take, tcp, terminal,
};

/// More than any stream here holds that was filled before.
const LENGTH: usize = 300_000;

/// A copy that waits, and what must stay open meanwhile.
struct Case {
    name: &'static str,
    source: Source,
    destination: Destination,
    options: Options,
    _peers: Vec<OwnedFd>,
}

/// Files from which, and FIFOs from and to which, the cases copy.
fn prepare() -> Place {
    let place = Place::new();
    place.fifo("unread");
    place.fifo("unwritten");
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    fs::write(place.path("old"), b"as it was").unwrap();
    place
}

const PREPARED: [&str; 4] = ["in", "old", "unread", "unwritten"];

/// Every end that can keep a copy waiting, and every mechanism that meets it.
fn cases(place: &Place, options: &Options) -> Vec<Case> {
    let case = |name, source, destination, peers| Case {
        name,
        source,
        destination,
        options: options.clone(),
        _peers: peers,
    };
    let new = || place.destination("new");
    let file = || place.source("in");
    let mut cases = vec![
        case("no writer", place.source("unwritten"), new(), vec![]),
        case("no reader", file(), place.destination("unread"), vec![]),
    ];
    let mut idle = |name, ours: OwnedFd, theirs: OwnedFd| {
        cases.push(case(name, from(ours), new(), vec![theirs]));
    };
    let (reader, writer) = pipe();
    idle("idle pipe", reader, writer);
    let (reader, writer) = pipe();
    non_blocking(&reader);
    idle("idle open pipe", reader, writer);
    let (ours, theirs) = socket();
    idle("idle socket", ours.into(), theirs.into());
    let (ours, theirs) = tcp();
    idle("idle tcp", ours.into(), theirs.into());
    let (master, slave) = terminal();
    idle("idle terminal", slave, master);
    let (master, slave) = terminal();
    idle("idle master", master, slave);
    let mut full = |name, ours: OwnedFd, theirs: OwnedFd| {
        fill(&ours);
        cases.push(case(name, file(), into(ours), vec![theirs]));
    };
    let (reader, writer) = pipe();
    full("full pipe", writer, reader);
    let (reader, writer) = pipe();
    non_blocking(&writer);
    full("full open pipe", writer, reader);
    let (ours, theirs) = socket();
    full("full socket", ours.into(), theirs.into());
    let (ours, theirs) = socket();
    ours.set_nonblocking(true).unwrap();
    full("full open socket", ours.into(), theirs.into());
    let (ours, theirs) = tcp();
    full("full tcp", ours.into(), theirs.into());
    let (master, slave) = terminal();
    full("full terminal", slave, master);
    let (master, slave) = terminal();
    full("full master", master, slave);
    cases.extend(between_streams(options));
    cases
}

/// Of which either end may be the one that holds the copy up.
fn between_streams(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    let pipes = || {
        let (reader, writer) = pipe();
        (reader, writer)
    };
    let sockets = || {
        let (ours, theirs) = socket();
        (OwnedFd::from(ours), OwnedFd::from(theirs))
    };
    type Pair<'a> = &'a dyn Fn() -> (OwnedFd, OwnedFd);
    let table: [(&str, &str, Pair<'_>, Pair<'_>); 4] = [
        ("idle pipe to pipe", "pipe to full pipe", &pipes, &pipes),
        (
            "idle pipe to socket",
            "pipe to full socket",
            &pipes,
            &sockets,
        ),
        (
            "idle socket to pipe",
            "socket to full pipe",
            &sockets,
            &pipes,
        ),
        (
            "idle socket to socket",
            "socket to full",
            &sockets,
            &sockets,
        ),
    ];
    for (idle, full, source, destination) in table {
        for name in [idle, full] {
            let (from_here, feeder) = source();
            let (reader, to_here) = destination();
            if name == full {
                put(&feeder, b"some");
                fill(&to_here);
            }
            cases.push(Case {
                name,
                source: from(from_here),
                destination: into(to_here),
                options: options.clone(),
                _peers: vec![feeder, reader],
            });
        }
    }
    cases
}

fn all_cases(run: impl Fn(&Place, Case)) {
    let [plain, fallback] = both_ways();
    let zero_copy = Options {
        zero_copy: true,
        ..Options::default()
    };
    for options in [plain, fallback, zero_copy] {
        let place = prepare();
        for case in cases(&place, &options) {
            run(&place, case);
        }
    }
}

/// What is left: nothing new, all that was there.
fn assert_untouched(place: &Place, what: &str) {
    assert_eq!(place.names(), PREPARED, "{what}");
    assert_eq!(fs::read(place.path("old")).unwrap(), b"as it was", "{what}");
    for fifo in ["unread", "unwritten"] {
        let kind = fs::metadata(place.path(fifo)).unwrap().file_type();
        assert!(kind.is_fifo(), "{what}");
    }
}

/// Returns when the copy waits: in poll(2), or for the next try to open a FIFO that nobody reads.
fn until_it_waits(sys: &Watched, name: &str) {
    if name == "no reader" {
        sys.wait_for_calls(Call::Reopen, 2);
    } else {
        sys.wait_for(1);
    }
}

// https://github.com/bytecodealliance/wasmtime/issues/9188: nothing ended a call into the host.
#[test]
fn wasmtime_9188_a_cancel_ends_every_wait() {
    all_cases(|place, case| {
        let sys = Watched::new();
        let name = case.name;
        let running = Running::start_on(sys.clone(), case.source, case.destination, case.options);
        until_it_waits(&sys, name);
        assert!(!running.has_ended(), "{name}");
        running.cancel.cancel();
        let (cause, done) = running.fails();
        assert_eq!(cause, Cause::Cancelled, "{name}");
        assert_eq!(done.files, 0, "{name}");
        // What is on its way makes some room when it arrives.
        if !matches!(name, "full tcp" | "full terminal" | "full master") {
            assert_eq!(done.bytes, 0, "{name}");
        }
        assert_untouched(place, name);
    });
}

// https://github.com/bytecodealliance/wasmtime/issues/9188
#[test]
fn wasmtime_9188_the_time_given_ends_every_wait() {
    all_cases(|place, case| {
        let name = case.name;
        // More of it where the machine is so busy that none was left for a wait.
        let mut timeout = Duration::from_millis(5);
        loop {
            let sys = Watched::new();
            let options = Options {
                timeout: Some(timeout),
                ..case.options.clone()
            };
            let (source, destination) = (case.source.clone(), case.destination.clone());
            let running = Running::start_on(sys.clone(), source, destination, options);
            let (cause, _) = running.fails();
            assert_eq!(cause, Cause::TimedOut, "{name}");
            assert_untouched(place, name);
            if sys.waits() > 0 || sys.count(|call| call == Call::Reopen) > 1 {
                break;
            }
            timeout *= 4;
        }
    });
}

/// A limit that the source may end at: whether it does, only its writer knows.
#[test]
fn a_cancel_ends_the_wait_for_the_end_at_a_limit() {
    for options in both_ways() {
        let place = prepare();
        let (reader, writer) = pipe();
        put(&writer, b"some");
        let options = Options {
            limits: Limits {
                bytes: Some(4),
                total: None,
            },
            ..options
        };
        let running = Running::start(from(reader), place.destination("new"), options);
        running.waits(1);
        assert_eq!(fs::read(place.path("new")).unwrap(), b"some");
        running.cancel.cancel();
        let (cause, done) = running.fails();
        assert_eq!(cause, Cause::Cancelled);
        assert_eq!((done.bytes, done.consumed), (4, 4));
        assert_untouched(&place, "at a limit");
    }
}

#[test]
fn what_went_into_a_stream_before_a_cancel_is_counted() {
    for options in both_ways() {
        let place = prepare();
        let (reader, writer) = pipe();
        let running = Running::start(place.source("in"), into(writer), options);
        running.waits(1);
        let mut came = take(&reader, 10_000);
        running.waits(2);
        running.cancel.cancel();
        let (cause, done) = running.fails();
        assert_eq!(cause, Cause::Cancelled);
        came.extend(drain(reader));
        assert_eq!(done.bytes, came.len() as u64);
        assert!(came == pattern(LENGTH)[..came.len()]);
        assert!(done.consumed >= done.bytes && done.consumed <= LENGTH as u64);
    }
}

/// What was taken out of a stream is gone from there, so it says how much that was.
#[test]
fn what_was_taken_and_went_nowhere_is_counted() {
    for options in both_ways() {
        for in_pipes in [true, false] {
            let (source, feeder): (OwnedFd, OwnedFd) = if in_pipes {
                pipe()
            } else {
                let (ours, theirs) = socket();
                (ours.into(), theirs.into())
            };
            let (_reader, writer) = pipe();
            put(&feeder, &pattern(60_000));
            fill(&writer);
            let ours = source.try_clone().unwrap();
            let running = Running::start(from(source), into(writer), options.clone());
            running.waits(1);
            running.cancel.cancel();
            let (cause, done) = running.fails();
            assert_eq!(cause, Cause::Cancelled);
            drop(feeder);
            let left = drain(ours);
            let taken = usize::try_from(done.consumed).unwrap();
            assert_eq!(done.bytes, 0);
            assert!(left == pattern(60_000)[taken..], "{taken} of it is gone");
            // The kernel moves none where there is no room.
            assert_eq!(taken > 0, options.tuning.force_fallback, "{taken}");
        }
    }
}

#[test]
fn a_file_that_was_there_keeps_what_was_not_written_yet() {
    for options in both_ways() {
        for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
            let place = prepare();
            fs::write(place.path("old"), vec![b'o'; 5000]).unwrap();
            let (reader, writer) = pipe();
            let options = Options {
                write_mode,
                ..options.clone()
            };
            let running = Running::start(from(reader), place.destination("old"), options);
            running.waits(1);
            put(&writer, &pattern(1000));
            running.waits(2);
            running.cancel.cancel();
            let (cause, done) = running.fails();
            assert_eq!(cause, Cause::Cancelled);
            assert_eq!((done.bytes, done.consumed), (1000, 1000));
            let mut wanted = vec![b'o'; 5000];
            if write_mode == WriteMode::InPlace {
                wanted[..1000].copy_from_slice(&pattern(1000));
            }
            assert!(
                fs::read(place.path("old")).unwrap() == wanted,
                "{write_mode:?}"
            );
            assert_eq!(place.names(), PREPARED);
        }
    }
}

#[test]
fn a_copy_that_was_cancelled_before_makes_no_call() {
    let place = prepare();
    for case in cases(&place, &Options::default()) {
        let sys = Watched::new();
        let cancel = Cancel::new();
        cancel.cancel();
        let request = Request {
            source: case.source,
            destination: case.destination,
            options: case.options,
        };
        let failed = copy_in(&Environment::new(sys.clone()), request, &cancel).unwrap_err();
        assert_eq!(failed.cause, Cause::Cancelled, "{}", case.name);
        assert_eq!(failed.done.consumed, 0, "{}", case.name);
        assert_eq!(sys.calls(), [], "{}", case.name);
    }
    assert_untouched(&place, "before");
}

#[test]
fn after_the_end_a_cancel_changes_nothing() {
    let place = Place::new();
    let (reader, writer) = pipe();
    put(&writer, b"all of it");
    drop(writer);
    let request = Request {
        source: from(reader),
        destination: place.destination("new"),
        options: Options::default(),
    };
    let mut transfer = Transfer::new(Environment::native(), request);
    loop {
        match transfer.step(u64::MAX) {
            Step::Moved(_) => {}
            Step::Done(done) => break assert_eq!(done.bytes, 9),
            step => panic!("{step:?}"),
        }
    }
    assert!(matches!(transfer.cancel(), Step::Done(_)));
    assert_eq!(fs::read(place.path("new")).unwrap(), b"all of it");
    // And the driver's.
    let (reader, writer) = pipe();
    let running = Running::start(from(reader), place.destination("other"), Options::default());
    running.waits(1);
    let cancel = running.cancel.clone();
    drop(writer);
    running.end().unwrap();
    cancel.cancel();
    assert_eq!(place.names(), ["new", "other"]);
}

#[test]
fn many_cancels_are_one() {
    let place = prepare();
    let (reader, _writer) = pipe();
    let running = Running::start(from(reader), place.destination("new"), Options::default());
    running.waits(1);
    let cancel = running.cancel.clone();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    cancel.cancel();
                }
            });
        }
    });
    assert_eq!(running.fails().0, Cause::Cancelled);
    cancel.cancel();
    assert_untouched(&place, "many");
}

#[test]
fn one_cancel_ends_all_that_have_it() {
    let place = prepare();
    let cancel = Cancel::new();
    let sys = Watched::new();
    let (writers, copies): (Vec<_>, Vec<_>) = (0..5)
        .map(|number| {
            let (reader, writer) = pipe();
            let request = Request {
                source: from(reader),
                destination: place.destination(&format!("new{number}")),
                options: Options::default(),
            };
            let (environment, cancel) = (Environment::new(sys.clone()), cancel.clone());
            let copy = thread::spawn(move || copy_in(&environment, request, &cancel));
            (writer, copy)
        })
        .unzip();
    sys.wait_for(5);
    cancel.cancel();
    for copy in copies {
        assert_eq!(copy.join().unwrap().unwrap_err().cause, Cause::Cancelled);
    }
    assert_untouched(&place, "five");
    drop(writers);
}

/// The numbers of the descriptors that wake a wait.
fn wake_fds() -> Vec<u32> {
    numbers_of("anon_inode:[eventfd]")
}

fn numbers_of(target: &str) -> Vec<u32> {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let is_it = fs::read_link(&path).is_ok_and(|link| link.as_os_str() == target);
            is_it.then(|| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
        })
        .collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Looks, at each of its calls, how many descriptors there are that wake a wait.
fn counting() -> (Arc<Watched>, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let sys = {
        let most = most.clone();
        Watched::with(move |_| {
            most.fetch_max(wake_fds().len(), Ordering::Relaxed);
            None
        })
    };
    (sys, most)
}

#[test]
fn only_a_copy_that_waits_has_what_wakes_it() {
    alone(only_a_copy_that_waits_has_what_wakes_it, || {
        let place = prepare();
        let run = |source, destination| {
            let (sys, most) = counting();
            let running = Running::start_on(sys.clone(), source, destination, Options::default());
            running.end().unwrap();
            assert!(sys.calls().len() > 4);
            most.load(Ordering::Relaxed)
        };
        assert_eq!(run(place.source("in"), place.destination("copy")), 0);
        let (reader, writer) = pipe();
        assert_eq!(run(place.source("old"), into(writer)), 0);
        assert_eq!(run(from(reader), place.destination("out")), 0);
        let (ours, theirs) = socket();
        assert_eq!(run(place.source("old"), into(ours)), 0);
        assert_eq!(run(from(theirs), place.destination("out")), 0);
        // Nor does one that waits for a reader to come.
        let (sys, most) = counting();
        let to = place.destination("unread");
        let running = Running::start_on(sys.clone(), place.source("old"), to, Options::default());
        sys.wait_for_calls(Call::Reopen, 3);
        drain(File::open(place.path("unread")).unwrap());
        running.end().unwrap();
        assert_eq!(most.load(Ordering::Relaxed), 0);
        // One for all its waits, and none afterwards.
        let before = descriptors();
        let (reader, writer) = pipe();
        let running = Running::start(from(reader), place.destination("out"), Options::default());
        for wait in 1..10 {
            running.waits(wait);
            assert_eq!(wake_fds().len(), 1);
            put(&writer, b"more");
        }
        drop(writer);
        running.end().unwrap();
        assert_eq!((wake_fds().len(), descriptors()), (0, before));
    });
}

/// Standard streams of a process may be closed, and whoever writes to one must not wake a copy.
#[test]
#[expect(
    unsafe_code,
    reason = "closing a standard stream may break whoever uses it"
)]
fn what_wakes_a_wait_is_no_standard_stream() {
    alone(what_wakes_a_wait_is_no_standard_stream, || {
        let place = prepare();
        let (reader, writer) = pipe();
        let saved: Vec<OwnedFd> = [
            std::io::stdin().as_fd(),
            std::io::stdout().as_fd(),
            std::io::stderr().as_fd(),
        ]
        .into_iter()
        .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 10).unwrap())
        .collect();
        // Nothing is printed before they are back.
        for standard in 0..3 {
            // SAFETY: in this process of its own nobody reads or writes them meanwhile.
            unsafe { rustix::io::close(standard) };
        }
        let running = Running::start(from(reader), place.destination("new"), Options::default());
        running.waits(1);
        let wakers = wake_fds();
        drop(writer);
        let done = running.end();
        for (standard, saved) in (0..3).zip(&saved) {
            use std::os::fd::AsRawFd;
            // SAFETY: all that this test opened under these numbers is closed by now.
            unsafe { libc::dup2(saved.as_raw_fd(), standard) };
        }
        assert_eq!(wakers.len(), 1);
        assert!(wakers[0] > 2, "{wakers:?}");
        done.unwrap();
    });
}

#[test]
fn rounds_of_waits_leave_no_thread_and_no_descriptor() {
    alone(rounds_of_waits_leave_no_thread_and_no_descriptor, || {
        let place = prepare();
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        let round = |number: usize| {
            let mut cases = cases(&place, &both_ways()[number % 2]);
            let case = cases.swap_remove(number / 2 % cases.len());
            drop(cases);
            let sys = Watched::new();
            let name = case.name;
            let running =
                Running::start_on(sys.clone(), case.source, case.destination, case.options);
            until_it_waits(&sys, name);
            running.cancel.cancel();
            assert_eq!(running.fails().0, Cause::Cancelled, "{name}");
        };
        for number in 0..100 {
            round(number);
        }
        let (threads_before, descriptors_before) = (threads(), descriptors());
        for number in 0..1000 {
            round(number);
        }
        assert_eq!(descriptors(), descriptors_before);
        // The kernel lists a thread a little longer than it runs.
        for _ in 0..1_000_000 {
            if threads() == threads_before {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(threads(), threads_before);
        assert_untouched(&place, "1,000 rounds");
    });
}
