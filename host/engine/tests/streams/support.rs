//! Streams, and copies that run beside the test.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use copyist_engine::{
    Base, Cancel, Cause, Destination, Environment, Error, Handle, Location, Options, Request,
    Source, Summary, Tuning, copy_in,
};
use rustix::fs::{FileType, Mode, OFlags};
use tempfile::TempDir;

pub(crate) use super::calls::{Call, PATIENCE, Watched};

/// A directory of the test's own.
pub(crate) struct Place {
    directory: TempDir,
    handle: Handle,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let handle = Arc::new(File::open(directory.path()).unwrap());
        Self { directory, handle }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        make_fifo(&self.path(name));
        self.path(name)
    }

    pub(crate) fn at(&self, name: &str) -> Location {
        Location {
            base: Base::Beneath(self.handle.clone()),
            path: name.into(),
            follow: false,
        }
    }

    pub(crate) fn source(&self, name: &str) -> Source {
        Source::Path(self.at(name))
    }

    pub(crate) fn destination(&self, name: &str) -> Destination {
        Destination::Path(self.at(name))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn make_fifo(path: &Path) {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
}

pub(crate) fn from(fd: impl Into<OwnedFd>) -> Source {
    Source::File(Arc::new(File::from(fd.into())))
}

pub(crate) fn into(fd: impl Into<OwnedFd>) -> Destination {
    Destination::File(Arc::new(File::from(fd.into())))
}

/// A pipe: what is read from, what is written to. Both may block.
pub(crate) fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap()
}

pub(crate) fn socket() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

/// A connection over the loopback, with buffers that do not grow.
pub(crate) fn tcp() -> (std::net::TcpStream, std::net::TcpStream) {
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
    const BUFFER: usize = 32 << 10;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    // Handed on to what is accepted.
    set_socket_recv_buffer_size(&listener, BUFFER).unwrap();
    let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let theirs = listener.accept().unwrap().0;
    for end in [&ours, &theirs] {
        set_socket_send_buffer_size(end, BUFFER).unwrap();
    }
    set_socket_recv_buffer_size(&ours, BUFFER).unwrap();
    (ours, theirs)
}

/// A terminal: its master and its slave, raw, so that bytes come over as they are.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::pty::OpenptFlags;
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let slave = rustix::fs::open(
        name,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    let mut attributes = rustix::termios::tcgetattr(&slave).unwrap();
    attributes.make_raw();
    rustix::termios::tcsetattr(&slave, rustix::termios::OptionalActions::Now, &attributes).unwrap();
    (master, slave)
}

pub(crate) fn non_blocking(fd: impl AsFd) {
    let flags = rustix::fs::fcntl_getfl(&fd).unwrap();
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK).unwrap();
}

/// Fills a stream until it takes no more, and says how much went in.
pub(crate) fn fill(fd: impl AsFd) -> usize {
    let flags = rustix::fs::fcntl_getfl(&fd).unwrap();
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK).unwrap();
    let mut all = 0;
    let chunk = [b'f'; 4096];
    // Whole chunks first, then what room is left.
    for length in [4096, 1] {
        while let Ok(written) = rustix::io::write(&fd, &chunk[..length]) {
            all += written;
        }
    }
    rustix::fs::fcntl_setfl(&fd, flags).unwrap();
    all
}

pub(crate) fn drain(fd: impl Into<OwnedFd>) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::from(fd.into()).read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) fn take(fd: impl AsFd, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut file = File::from(fd.as_fd().try_clone_to_owned().unwrap());
    file.read_exact(&mut bytes).unwrap();
    bytes
}

pub(crate) fn put(fd: impl AsFd, bytes: &[u8]) {
    let mut file = File::from(fd.as_fd().try_clone_to_owned().unwrap());
    file.write_all(bytes).unwrap();
}

/// Bytes in which nothing repeats where a copy at a wrong place could hide.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64)
        .flat_map(|word| word.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(length)
        .collect()
}

/// A copy on a thread of its own.
pub(crate) struct Running {
    sys: Arc<Watched>,
    pub(crate) cancel: Cancel,
    outcome: Receiver<Result<Summary, Error>>,
    thread: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(source: Source, destination: Destination, options: Options) -> Self {
        Self::start_on(Watched::new(), source, destination, options)
    }

    pub(crate) fn start_on(
        sys: Arc<Watched>,
        source: Source,
        destination: Destination,
        options: Options,
    ) -> Self {
        let cancel = Cancel::new();
        let environment = Environment::new(sys.clone());
        let request = Request {
            source,
            destination,
            options,
        };
        let token = cancel.clone();
        let (tell, outcome) = channel();
        let thread = std::thread::spawn(move || {
            // Nobody listens any more where the test has failed.
            let _ = tell.send(copy_in(&environment, request, &token));
        });
        Self {
            sys,
            cancel,
            outcome,
            thread,
        }
    }

    /// Returns when the copy waits, for the first time or the n-th.
    pub(crate) fn waits(&self, count: usize) {
        self.sys.wait_for(count);
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn end(self) -> Result<Summary, Error> {
        let outcome = self.outcome.recv_timeout(PATIENCE);
        let outcome = outcome.expect("the copy neither ends nor panics in a minute");
        self.thread.join().unwrap();
        outcome
    }

    /// Ends, and not well: why, and how far it had come.
    #[track_caller]
    pub(crate) fn fails(self) -> (Cause, Summary) {
        let error = self.end().expect_err("the copy was to fail");
        (error.cause, error.done)
    }
}

/// Whatever works best, and nothing but reads and writes.
pub(crate) fn both_ways() -> [Options; 2] {
    let fallback = Options {
        tuning: Tuning {
            force_fallback: true,
            ..Tuning::default()
        },
        ..Options::default()
    };
    [Options::default(), fallback]
}

/// A copy that need not wait for anybody.
pub(crate) fn copy(
    source: Source,
    destination: Destination,
    options: Options,
) -> Result<Summary, Error> {
    Running::start(source, destination, options).end()
}
