//! What an embedder grants under a name: a pipe, a socket, a terminal, or a file that is read and
//! written like one.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use copyist_engine::{Cancel, Cause, Handle, NonBlocking};
use rustix::fs::OFlags;

/// Which way bytes go through an [`Endpoint`], seen from the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The guest reads.
    Read,
    /// The guest writes.
    Write,
    /// The guest does both.
    Both,
}

impl Direction {
    /// Whether the guest may read.
    pub fn reads(self) -> bool {
        self != Self::Write
    }

    /// Whether the guest may write.
    pub fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A descriptor that a guest may open by name, once
/// [`CopyCtxBuilder::endpoint`](crate::CopyCtxBuilder::endpoint) grants it. It can be copied from and
/// to, and read and written as a stream of `wasi:io`; whichever it is, no call sleeps on the peer.
///
/// What is copied is a stream of bytes: a pipe, a connected socket, a terminal or another device. A
/// regular file is read and written from its position on, which moves, and never cut. Anything else is
/// refused when it is used; [`check`](Self::check) tells before.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) handle: Handle,
    pub(crate) is_owned: bool,
    pub(crate) direction: Direction,
}

impl Endpoint {
    /// Gives the descriptor away. It is closed once the guest has finished it and dropped it, or when
    /// the context and its builders are gone. Its open file description may get `O_NONBLOCK`, without
    /// which nothing is passed into a socket but through a buffer.
    pub fn owned(fd: impl Into<OwnedFd>) -> Self {
        let fd = fd.into();
        if let Ok(flags) = rustix::fs::fcntl_getfl(&fd) {
            // Where that fails it is used as a shared one is.
            let _ = rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK);
        }
        Self::new(fd, true)
    }

    /// Lends a descriptor, mostly a duplicate, whose open file description others use too. Its flags
    /// never change, and what the guest finishes stays open.
    pub fn shared(fd: impl Into<OwnedFd>) -> Self {
        Self::new(fd.into(), false)
    }

    /// The standard input of the process, shared. What has been read ahead of it by others, such as
    /// [`std::io::stdin`] or a guest's `wasi:cli/stdin` that inherits it, is not in it: give the guest
    /// one or the other.
    ///
    /// # Errors
    ///
    /// Where it is closed, or no descriptor is left.
    pub fn stdin() -> io::Result<Self> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self::shared(fd).direction(Direction::Read))
    }

    /// The standard output of the process, shared, as [`stdin`](Self::stdin).
    ///
    /// # Errors
    ///
    /// As [`stdin`](Self::stdin).
    pub fn stdout() -> io::Result<Self> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::shared(fd).direction(Direction::Write))
    }

    /// What the guest may do with it. Unless this says so, whatever the descriptor was opened for.
    #[must_use]
    pub fn direction(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }

    /// Whether it can be copied from and to at all, in its direction.
    ///
    /// # Errors
    ///
    /// What a copy would say.
    pub fn check(&self) -> Result<(), Cause> {
        if self.direction.reads() {
            NonBlocking::reader(self.handle.clone(), Cancel::new())?;
        }
        if self.direction.writes() {
            NonBlocking::writer(self.handle.clone(), Cancel::new())?;
        }
        Ok(())
    }

    fn new(fd: OwnedFd, is_owned: bool) -> Self {
        let access = rustix::fs::fcntl_getfl(&fd).map(|flags| flags & OFlags::RWMODE);
        let direction = match access {
            Ok(OFlags::RDONLY) => Direction::Read,
            Ok(OFlags::WRONLY) => Direction::Write,
            _ => Direction::Both,
        };
        Self {
            handle: Arc::new(File::from(fd)),
            is_owned,
            direction,
        }
    }
}
