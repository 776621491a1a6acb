//! What is asked of pipes, sockets and terminals, the same on every Unix.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::SocketType;
use rustix::net::sockopt;

use super::{Interest, Readiness, Result, Terminal, Watch};

/// What poll(2) tells whether it is asked or not.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

pub(super) fn poll(watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize> {
    let timeout = timeout.map(|time| Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    let mut entries: Vec<_> = watches
        .iter()
        .map(|watch| PollFd::from_borrowed_fd(watch.fd, events(watch.interest)))
        .collect();
    let answers = rustix::event::poll(&mut entries, timeout.as_ref())?;
    for (watch, entry) in watches.iter_mut().zip(&entries) {
        let came = entry.revents();
        let gone = came.intersects(GONE);
        watch.answer = Readiness {
            ready: gone || came.intersects(events(watch.interest)),
            gone,
        };
    }
    Ok(answers)
}

fn events(interest: Interest) -> PollFlags {
    match interest {
        Interest::Read => PollFlags::IN,
        Interest::Write => PollFlags::OUT,
        Interest::Gone => PollFlags::empty(),
    }
}

pub(super) fn terminal(fd: BorrowedFd<'_>) -> Terminal {
    if !rustix::termios::isatty(fd) {
        Terminal::No
    } else if rustix::pty::ptsname(fd, Vec::new()).is_ok() {
        Terminal::Master
    } else {
        Terminal::Slave
    }
}

pub(super) fn is_stream_socket(fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(sockopt::socket_type(fd)? == SocketType::STREAM && !sockopt::socket_acceptconn(fd)?)
}
