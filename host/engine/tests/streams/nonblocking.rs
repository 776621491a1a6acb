//! Bytes that are read and written beside a copy, by calls that do not sleep.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use copyist_engine::{Cancel, Cause, Errno, Handle, NonBlocking, Passed, Refused, Unsupported};
use rustix::fs::{Mode, OFlags};

use super::child::alone;
use super::support::{
    PATIENCE, Place, drain, fill, non_blocking, pipe, put, socket, take, tcp, terminal,
};

fn handle(fd: impl Into<OwnedFd>) -> Handle {
    Arc::new(File::from(fd.into()))
}

fn reader(fd: impl Into<OwnedFd>) -> NonBlocking {
    NonBlocking::reader(handle(fd), Cancel::new()).unwrap()
}

fn writer(fd: impl Into<OwnedFd>) -> NonBlocking {
    NonBlocking::writer(handle(fd), Cancel::new()).unwrap()
}

/// Counts wakes, and waits for one.
#[derive(Default)]
struct Alarm {
    wakes: Mutex<usize>,
    changed: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.wakes.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

impl Alarm {
    fn wait_for(&self, count: usize) {
        let wakes = self.wakes.lock().unwrap();
        let (_wakes, time) = self
            .changed
            .wait_timeout_while(wakes, PATIENCE, |wakes| *wakes < count)
            .unwrap();
        assert!(!time.timed_out(), "nobody is woken");
    }
}

fn ready(line: &mut NonBlocking, alarm: &Arc<Alarm>) -> Poll<()> {
    let waker = Waker::from(alarm.clone());
    line.poll_ready(&mut Context::from_waker(&waker))
}

/// Waits as an executor does.
fn wait(line: &mut NonBlocking) {
    let alarm = Arc::<Alarm>::default();
    for wakes in 1.. {
        if ready(line, &alarm).is_ready() {
            return;
        }
        alarm.wait_for(wakes);
    }
}

fn sources() -> Vec<(&'static str, OwnedFd, OwnedFd)> {
    let ((reader, writer), (open_reader, open_writer)) = (pipe(), pipe());
    non_blocking(&open_reader);
    let ((ours, theirs), (tcp_ours, tcp_theirs)) = (socket(), tcp());
    let ((master, slave), (other_master, other_slave)) = (terminal(), terminal());
    vec![
        ("pipe", reader, writer),
        ("open pipe", open_reader, open_writer),
        ("socket", ours.into(), theirs.into()),
        ("tcp", tcp_ours.into(), tcp_theirs.into()),
        ("terminal", slave, master),
        ("master", other_master, other_slave),
    ]
}

#[test]
fn no_more_is_taken_than_is_asked_for_and_the_flags_stay() {
    for (kind, ours, theirs) in sources() {
        let kept = ours.try_clone().unwrap();
        let before = rustix::fs::fcntl_getfl(&kept).unwrap();
        let mut line = reader(ours);
        let mut buffer = [0; 6];
        assert_eq!(line.read(&mut buffer), Ok(Passed::Later), "{kind}");
        put(&theirs, b"headerbody");
        wait(&mut line);
        assert_eq!(line.read(&mut buffer), Ok(Passed::Bytes(6)), "{kind}");
        assert_eq!(&buffer, b"header", "{kind}");
        drop(line);
        assert_eq!(take(&kept, 4), b"body", "{kind}");
        assert_eq!(rustix::fs::fcntl_getfl(&kept).unwrap(), before, "{kind}");
    }
}

#[test]
fn an_end_is_none_before_somebody_has_written() {
    for (kind, ours, theirs) in sources() {
        if kind == "terminal" {
            continue;
        }
        let mut line = reader(ours);
        drop(theirs);
        wait(&mut line);
        for _ in 0..2 {
            assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Bytes(0)), "{kind}");
        }
    }
    let place = Place::new();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fifo = rustix::fs::open(place.fifo("fifo"), flags, Mode::empty()).unwrap();
    let mut line = reader(fifo);
    let alarm = Arc::default();
    assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Later));
    assert!(ready(&mut line, &alarm).is_pending());
    let writer = File::options().write(true).open(place.path("fifo"));
    drop(writer.unwrap());
    alarm.wait_for(1);
    assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Bytes(0)));
}

#[test]
fn what_is_full_takes_bytes_again_when_there_is_room() {
    for (kind, theirs, ours) in sources() {
        if kind == "terminal" || kind == "master" {
            continue;
        }
        let before = fill(&ours);
        let mut line = writer(ours);
        assert_eq!(line.write(b"text"), Ok(Passed::Later), "{kind}");
        let alarm = Arc::default();
        assert!(ready(&mut line, &alarm).is_pending(), "{kind}");
        assert!(take(&theirs, before).iter().all(|byte| *byte == b'f'));
        alarm.wait_for(1);
        assert!(ready(&mut line, &alarm).is_ready(), "{kind}");
        assert_eq!(line.write(b"text"), Ok(Passed::Bytes(4)), "{kind}");
        drop(line);
        assert_eq!(drain(theirs), b"text", "{kind}");
    }
}

#[test]
fn a_cancel_ends_the_wait_and_all_that_come_later() {
    let (idle, _writer) = pipe();
    let cancel = Cancel::new();
    let mut line = NonBlocking::reader(handle(idle), cancel.clone()).unwrap();
    let alarm = Arc::default();
    assert!(ready(&mut line, &alarm).is_pending());
    cancel.cancel();
    alarm.wait_for(1);
    for _ in 0..2 {
        assert!(ready(&mut line, &alarm).is_ready());
        assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Later));
    }
}

#[test]
fn the_last_waker_is_woken_and_none_of_a_wait_that_is_over() {
    let (ours, theirs) = pipe();
    let mut line = reader(ours);
    let alarms: [Arc<Alarm>; 3] = Default::default();
    for alarm in &alarms[..2] {
        assert!(ready(&mut line, alarm).is_pending());
    }
    put(&theirs, b"text");
    alarms[1].wait_for(1);
    assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Bytes(4)));
    // What the old wait said is no longer true.
    assert!(ready(&mut line, &alarms[2]).is_pending());
    drop(line);
    drop(theirs);
    let wakes = alarms.map(|alarm| *alarm.wakes.lock().unwrap());
    assert_eq!(wakes, [0, 1, 0]);
}

/// Where poll(2) says ready again and again and nothing is there, one would turn in circles.
#[test]
fn who_is_told_ready_for_nothing_pauses() {
    let (ours, theirs) = pipe();
    let thief = ours.try_clone().unwrap();
    let mut line = reader(ours);
    let alarm = Arc::default();
    for _ in 0..4 {
        put(&theirs, b"x");
        assert!(ready(&mut line, &alarm).is_ready());
        take(&thief, 1);
        assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Later));
    }
    put(&theirs, b"text");
    assert!(ready(&mut line, &alarm).is_pending());
    alarm.wait_for(1);
    assert_eq!(line.read(&mut [0; 4]), Ok(Passed::Bytes(4)));
    // And believes it again.
    put(&theirs, b"x");
    assert!(ready(&mut line, &alarm).is_ready());
}

#[test]
fn a_file_is_read_and_written_where_it_stands() {
    let file = tempfile::tempfile().unwrap();
    let mut kept = file.try_clone().unwrap();
    let mut line = writer(file.try_clone().unwrap());
    assert!(ready(&mut line, &Arc::default()).is_ready());
    assert_eq!(line.write(b"headerbody"), Ok(Passed::Bytes(10)));
    kept.rewind().unwrap();
    let mut line = reader(file);
    let mut buffer = [0; 6];
    assert!(ready(&mut line, &Arc::default()).is_ready());
    assert_eq!(line.read(&mut buffer), Ok(Passed::Bytes(6)));
    let mut rest = String::new();
    kept.read_to_string(&mut rest).unwrap();
    assert_eq!((&buffer, &*rest), (b"header", "body"));
}

#[test]
fn what_a_copy_would_refuse_is_refused() {
    let refusal = |fd: OwnedFd| NonBlocking::reader(handle(fd), Cancel::new()).unwrap_err();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    assert!(matches!(
        refusal(listener.into()),
        Cause::Unsupported(Unsupported::Kind(_, Refused::Messages))
    ));
    let directory = File::open(Place::new().path(".")).unwrap();
    assert!(matches!(
        refusal(directory.into()),
        Cause::Io(_, Errno::ISDIR)
    ));
    let (ours, theirs) = pipe();
    assert!(matches!(refusal(theirs), Cause::Io(_, Errno::BADF)));
    let writing = NonBlocking::writer(handle(ours), Cancel::new());
    assert!(matches!(writing, Err(Cause::Io(_, Errno::BADF))));
}

#[test]
#[expect(unsafe_code, reason = "std and rustix have no call for it")]
fn a_reader_that_is_gone_is_an_error_and_no_signal() {
    alone(a_reader_that_is_gone_is_an_error_and_no_signal, || {
        // SAFETY: no handler is installed, but one taken out.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_ne!(before, libc::SIG_ERR);
        let (theirs, ours) = pipe();
        drop(theirs);
        let mut line = writer(ours);
        assert!(ready(&mut line, &Arc::default()).is_ready());
        assert_eq!(line.write(b"text"), Err(Errno::PIPE));
        // It is not pending either.
        line.write(b"text").unwrap_err();
    });
}
