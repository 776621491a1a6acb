//! Pipes, sockets, terminals and FIFOs, and what is at their other end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;

use crate::place::skipped;

/// A pipe: what is read from, what is written to. Both may block.
pub(crate) fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap()
}

pub(crate) fn socket() -> (OwnedFd, OwnedFd) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours.into(), theirs.into())
}

/// A connection over the loopback.
pub(crate) fn tcp() -> (OwnedFd, OwnedFd) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours.into(), listener.accept().unwrap().0.into())
}

/// A terminal: its slave and its master, raw, so that bytes come over as they are. None, and said
/// aloud, where the system has none to give.
pub(crate) fn terminal() -> Option<(OwnedFd, OwnedFd)> {
    let Ok(master) = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY) else {
        skipped("there are no terminals here");
        return None;
    };
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    let mut attributes = rustix::termios::tcgetattr(&slave).unwrap();
    attributes.make_raw();
    rustix::termios::tcsetattr(&slave, rustix::termios::OptionalActions::Now, &attributes).unwrap();
    Some((slave, master))
}

/// A FIFO that is open for reading, which waits for nobody.
pub(crate) fn fifo(path: &Path) -> OwnedFd {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

pub(crate) fn flags(fd: impl AsFd) -> OFlags {
    rustix::fs::fcntl_getfl(fd).unwrap()
}

pub(crate) fn non_blocking(fd: impl AsFd) {
    rustix::fs::fcntl_setfl(&fd, flags(&fd) | OFlags::NONBLOCK).unwrap();
}

/// Fills a stream until it takes no more, and says how much went in. Its flags are as before then.
pub(crate) fn fill(fd: impl AsFd) -> usize {
    let before = flags(&fd);
    non_blocking(&fd);
    let mut all = 0;
    // Whole chunks first, then what room is left.
    for length in [4096, 1] {
        while let Ok(written) = rustix::io::write(&fd, &[b'f'; 4096][..length]) {
            all += written;
        }
    }
    rustix::fs::fcntl_setfl(&fd, before).unwrap();
    all
}

/// All that comes, to the end.
pub(crate) fn drain(fd: OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::from(fd).read_to_end(&mut bytes).unwrap();
    bytes
}

/// So many bytes.
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

/// Who puts all these bytes, and then the end.
pub(crate) fn feeder(fd: OwnedFd, bytes: &[u8]) -> JoinHandle<()> {
    let bytes = bytes.to_vec();
    std::thread::spawn(move || put(&fd, &bytes))
}

/// Who takes so many bytes.
pub(crate) fn taker(fd: OwnedFd, length: usize) -> JoinHandle<(OwnedFd, Vec<u8>)> {
    std::thread::spawn(move || {
        let bytes = take(&fd, length);
        (fd, bytes)
    })
}
