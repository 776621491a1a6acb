//! An end that is a stream: a pipe, a socket, a terminal or another device. No call on it sleeps.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::Waker;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use crate::error::{Cause, Refused, Side, Unsupported};
use crate::feed::{Feed, Passed};
use crate::resolve::ALWAYS;
use crate::sys::{Interest, Kind, PATH_ONLY, Result, Sys, Terminal, Watch, Way};
use crate::transfer::Fd;

/// What a call on a stream came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// So many bytes moved; none read is the end.
    Moved(usize),
    /// Nothing could be moved now.
    Blocked,
    /// The system or the stream does not have this way; there is another.
    Again,
}

/// What sort of stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Pipe,
    Socket,
    Terminal,
    /// The side of a terminal from which programs are driven.
    Master,
    /// Another character device.
    Device,
    /// Somebody in this process.
    Feed,
}

/// How calls are kept from sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    /// They never do.
    By(Way),
    /// They might: each waits for poll(2) to say that it will not, and is small.
    Polled,
}

/// See the module. The descriptor itself stays where it is; a wait is for that one.
#[derive(Debug)]
pub(crate) struct Stream {
    side: Side,
    channel: Channel,
    /// The same stream with `O_NONBLOCK`, where the descriptor lacks it.
    private: Option<OwnedFd>,
    feed: Option<Feed>,
    /// Not known before the first byte goes through a buffer.
    care: Option<Care>,
    /// That has worked, so that an error is the stream's own.
    proven: bool,
    /// The descriptor has `O_NONBLOCK`.
    does_not_sleep: bool,
    /// A wait said that it is ready, and nothing has been tried since.
    ready: bool,
    /// It took less than it was given, so that the next attempt would come to nothing.
    full: bool,
    /// Nothing is read before poll(2) says so: until a writer comes, a FIFO reads as if it had
    /// ended (read(2) of one that was opened with `O_NONBLOCK`).
    unseen: bool,
}

impl Stream {
    /// What a descriptor of this kind is as a stream; `None` where it is none.
    pub(crate) fn of(
        sys: &dyn Sys,
        fd: &Fd,
        kind: Kind,
        side: Side,
    ) -> std::result::Result<Option<Self>, Cause> {
        if let Fd::Feed(feed) = fd {
            return Ok(Some(Self::of_feed(feed, side)));
        }
        let channel = match kind {
            Kind::Regular | Kind::Directory | Kind::Symlink | Kind::Block | Kind::Unknown => {
                return Ok(None);
            }
            Kind::Fifo => Channel::Pipe,
            Kind::Socket => match sys.is_stream_socket(fd.as_fd()) {
                Ok(true) => Channel::Socket,
                Ok(false) => return Err(Unsupported::Kind(side, Refused::Messages).into()),
                Err(errno) => return Err(Cause::Io(side, errno)),
            },
            Kind::Character => match sys.terminal(fd.as_fd()) {
                Ok(Terminal::Slave) => Channel::Terminal,
                Ok(Terminal::Master) => Channel::Master,
                Ok(Terminal::No) | Err(_) => Channel::Device,
            },
        };
        // What this copy opened has the flag.
        let flags = match fd {
            Fd::Ours(_) | Fd::Feed(_) => OFlags::NONBLOCK,
            Fd::Theirs(handle) => sys
                .status_flags(handle.as_fd())
                .map_err(|errno| Cause::Io(side, errno))?,
        };
        if PATH_ONLY.is_some_and(|path_only| flags.contains(path_only)) {
            return Err(Unsupported::Kind(side, Refused::NameOnly).into());
        }
        // It may be opened once more, and whoever may only write must not come to read by that.
        let access = flags & OFlags::RWMODE;
        if matches!(fd, Fd::Theirs(_))
            && match side {
                Side::Source => access == OFlags::WRONLY,
                Side::Destination => access == OFlags::RDONLY,
            }
        {
            return Err(Cause::Io(side, Errno::BADF));
        }
        Ok(Some(Self {
            side,
            channel,
            private: None,
            feed: None,
            care: None,
            proven: false,
            does_not_sleep: flags.contains(OFlags::NONBLOCK),
            ready: false,
            full: false,
            unseen: channel == Channel::Pipe && side == Side::Source,
        }))
    }

    pub(crate) fn of_feed(feed: &Feed, side: Side) -> Self {
        Self {
            side,
            channel: Channel::Feed,
            private: None,
            feed: Some(feed.clone()),
            care: None,
            proven: true,
            does_not_sleep: true,
            ready: false,
            full: false,
            unseen: false,
        }
    }

    /// The passage, where it is one: no poll(2) tells of it.
    pub(crate) fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel
    }

    pub(crate) fn is_socket(&self) -> bool {
        self.channel == Channel::Socket
    }

    /// Whether a call that knows nothing of streams can be made on its descriptor and not sleep.
    pub(crate) fn does_not_sleep(&self) -> bool {
        self.does_not_sleep
    }

    /// A wait for it ended.
    pub(crate) fn woken(&mut self) {
        self.ready = true;
        self.full = false;
        self.unseen = false;
    }

    /// It took so many of the bytes that it was given. A pipe or a socket that took fewer has no room
    /// left, which need not be found out by another call.
    pub(crate) fn took(&mut self, taken: usize, given: usize) {
        self.full = taken < given && matches!(self.channel, Channel::Pipe | Channel::Socket);
    }

    /// Whether it is known to have no room. Asked again it may.
    pub(crate) fn was_full(&mut self) -> bool {
        std::mem::take(&mut self.full)
    }

    /// Whether the next call would find something, as far as a look or the last wait tells.
    pub(crate) fn is_ready(&mut self, sys: &dyn Sys, fd: BorrowedFd<'_>) -> Result<bool> {
        if !self.ready {
            let interest = match self.side {
                Side::Source => Interest::Read,
                Side::Destination => Interest::Write,
            };
            let mut watch = [Watch::new(fd, interest)];
            sys.poll(&mut watch, Some(std::time::Duration::ZERO))?;
            if watch[0].answer.ready {
                self.woken();
            }
        }
        Ok(self.ready)
    }

    /// Something was tried, so what a wait said is no longer true.
    pub(crate) fn tried(&mut self) {
        self.ready = false;
    }

    /// Whether nobody has been seen at the other end of a FIFO that is read.
    pub(crate) fn is_unseen(&self) -> bool {
        self.unseen
    }

    /// Takes some bytes.
    pub(crate) fn read(
        &mut self,
        sys: &dyn Sys,
        fd: BorrowedFd<'_>,
        buffer: &mut [u8],
        waker: &Waker,
    ) -> Result<Attempt> {
        if let Some(feed) = &self.feed {
            return Ok(match feed.take(buffer, waker)? {
                Passed::Bytes(taken) => Attempt::Moved(taken),
                Passed::Later => Attempt::Blocked,
            });
        }
        let care = self.care(sys, fd);
        if (self.unseen || care == Care::Polled) && !self.is_ready(sys, fd)? {
            return Ok(Attempt::Blocked);
        }
        let way = match care {
            Care::By(way) => way,
            Care::Polled => Way::Plain,
        };
        let io = self.private.as_ref().map_or(fd, AsFd::as_fd);
        let answer = sys.read_stream(io, way, buffer);
        self.tried();
        match answer {
            // Its slave is closed (pty(7)).
            Err(Errno::IO) if self.channel == Channel::Master => Ok(Attempt::Moved(0)),
            answer => self.settle(care, answer),
        }
    }

    /// Puts some bytes.
    pub(crate) fn write(
        &mut self,
        sys: &dyn Sys,
        fd: BorrowedFd<'_>,
        bytes: &[u8],
        waker: &Waker,
    ) -> Result<Attempt> {
        if let Some(feed) = &self.feed {
            return Ok(match feed.room(waker)? {
                Passed::Bytes(_) => Attempt::Moved(feed.put(bytes)?),
                Passed::Later => Attempt::Blocked,
            });
        }
        if self.was_full() {
            return Ok(Attempt::Blocked);
        }
        let care = self.care(sys, fd);
        let (way, most) = match care {
            Care::By(way) => (way, usize::MAX),
            Care::Polled if !self.is_ready(sys, fd)? => return Ok(Attempt::Blocked),
            Care::Polled => (Way::Plain, self.promised()),
        };
        let io = self.private.as_ref().map_or(fd, AsFd::as_fd);
        let given = &bytes[..bytes.len().min(most)];
        let answer = sys.write_stream(io, way, given);
        self.tried();
        if let Ok(taken) = answer {
            self.took(taken, given.len());
        }
        self.settle(care, answer)
    }

    fn settle(&mut self, care: Care, answer: Result<usize>) -> Result<Attempt> {
        self.proven |= matches!(answer, Ok(_) | Err(Errno::AGAIN));
        match answer {
            Ok(moved) => Ok(Attempt::Moved(moved)),
            Err(Errno::AGAIN) => Ok(Attempt::Blocked),
            // The next way finds out what is true.
            Err(errno)
                if !self.proven
                    && is_refusal(errno)
                    && let Some(next) = next(care) =>
            {
                self.care = Some(next);
                Ok(Attempt::Again)
            }
            Err(errno) => Err(errno),
        }
    }

    /// How much a write may have that waited for poll(2) and must not sleep. That promises a pipe's
    /// room for so much (pipe(7)); a socket's for one packet, however small its buffer; a terminal's
    /// for one byte (tty_ioctl(2) tells of no more).
    fn promised(&self) -> usize {
        match self.channel {
            Channel::Pipe | Channel::Device => PIPE_BUF,
            Channel::Socket => 512,
            Channel::Terminal | Channel::Master => 1,
            Channel::Feed => usize::MAX,
        }
    }

    /// How calls are kept from sleeping, found out at the first.
    fn care(&mut self, sys: &dyn Sys, fd: BorrowedFd<'_>) -> Care {
        if let Some(care) = self.care {
            return care;
        }
        let care = self.find_care(sys, fd);
        self.care = Some(care);
        care
    }

    fn find_care(&mut self, sys: &dyn Sys, fd: BorrowedFd<'_>) -> Care {
        if self.channel == Channel::Socket {
            return Care::By(Way::Message);
        }
        if self.does_not_sleep {
            return Care::By(Way::Plain);
        }
        // Opening some devices once more does something, and a terminal's master makes a new one.
        if matches!(self.channel, Channel::Pipe | Channel::Terminal) {
            let access = match self.side {
                Side::Source => OFlags::RDONLY,
                Side::Destination => OFlags::WRONLY,
            };
            if let Ok(private) = sys.reopen(fd, ALWAYS | access) {
                self.private = Some(private);
                return Care::By(Way::Plain);
            }
        }
        Care::By(Way::NoWait)
    }
}

/// What a call answers that the system, this kind of stream or a seccomp filter does not know: EPERM
/// in containers, EACCES in LXC and on Android.
pub(crate) fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS
            | Errno::OPNOTSUPP
            | Errno::INVAL
            | Errno::PERM
            | Errno::ACCESS
            | Errno::NOTSOCK
            | Errno::SPIPE
    )
}

fn next(care: Care) -> Option<Care> {
    match care {
        Care::By(Way::Message) => Some(Care::By(Way::NoWait)),
        Care::By(Way::NoWait) => Some(Care::Polled),
        // It is the plain call itself that fails.
        Care::By(Way::Plain) | Care::Polled => None,
    }
}
