//! A descriptor that is read or written without a call that sleeps on a peer, for who does so byte by
//! byte beside a copy: a header before a body.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::bell::Bell;
use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Side};
use crate::feed::Passed;
use crate::kind;
use crate::reactor::{Parked, Reactor, Ticket};
use crate::request::Handle;
use crate::stream::{Attempt, Stream};
use crate::sys::{FatalSignalsBlocked, Interest, Readiness, Watch, Way};
use crate::transfer::{Fd, Waits};

/// After so many waits in a row that brought nothing the word of poll(2) is not taken any more, and it
/// is tried again after a pause: some devices say that they are always ready.
const MOST_FUTILE: u32 = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// See the module. Nothing is read beyond what is asked for, so that a copy of the same handle goes on
/// where this stopped. The flags of the handle stay as they are. What is a file, or a disk, moves its
/// position, and sleeps as long as its device does.
#[derive(Debug)]
pub struct NonBlocking {
    environment: Environment,
    handle: Handle,
    side: Side,
    /// Absent for a file.
    stream: Option<Stream>,
    /// Ends the waits.
    cancel: Cancel,
    wait: Option<Wait>,
    /// The last wait said that it is ready.
    answered: bool,
    /// Waits in a row that said so when it was not.
    futile: u32,
}

impl NonBlocking {
    /// To be read. Once `cancel` comes, nothing waits any more.
    ///
    /// # Errors
    ///
    /// What a copy from it would say.
    pub fn reader(handle: Handle, cancel: Cancel) -> Result<Self, Cause> {
        Self::new(handle, Side::Source, cancel)
    }

    /// To be written, as [`reader`](Self::reader).
    ///
    /// # Errors
    ///
    /// What a copy into it would say.
    pub fn writer(handle: Handle, cancel: Cancel) -> Result<Self, Cause> {
        Self::new(handle, Side::Destination, cancel)
    }

    fn new(handle: Handle, side: Side, cancel: Cancel) -> Result<Self, Cause> {
        let environment = Environment::native();
        let sys = environment.sys();
        let info = sys
            .stat(handle.as_fd())
            .map_err(|errno| Cause::Io(side, errno))?;
        kind::accept(info.kind, side)?;
        let stream = Stream::of(sys, &Fd::Theirs(handle.clone()), info.kind, side)?;
        Ok(Self {
            environment,
            handle,
            side,
            stream,
            cancel,
            wait: None,
            answered: false,
            futile: 0,
        })
    }

    /// Takes at most as many bytes as the buffer has room for; none is the end.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Passed, Errno> {
        self.wait = None;
        let sys = self.environment.sys();
        let fd = self.handle.as_fd();
        let answer = until_settled(|| match &mut self.stream {
            Some(stream) => stream.read(sys, fd, buffer, Waker::noop()),
            None => sys.read_stream(fd, Way::Plain, buffer).map(Attempt::Moved),
        });
        self.note(answer)
    }

    /// Puts as many of these bytes as there is room for.
    ///
    /// # Errors
    ///
    /// What the system says. Nobody who reads is `EPIPE`, and no signal.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Passed, Errno> {
        self.wait = None;
        let _signals = FatalSignalsBlocked::new();
        let sys = self.environment.sys();
        let fd = self.handle.as_fd();
        let answer = until_settled(|| match &mut self.stream {
            Some(stream) => stream.write(sys, fd, bytes, Waker::noop()),
            None => sys.write_stream(fd, Way::Plain, bytes).map(Attempt::Moved),
        });
        self.note(answer)
    }

    /// Waits until there is something to read, or room, or an error to be told; or the cancel. The
    /// waker of the last call is woken.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.cancel.is_cancelled() {
            return Poll::Ready(());
        }
        if self.wait.is_none() {
            if self.futile < MOST_FUTILE && self.is_ready() {
                self.answered = true;
                return Poll::Ready(());
            }
            self.wait = self.begin_wait(context.waker());
        }
        match &self.wait {
            Some(wait) if !wait.has_ended(context.waker()) => Poll::Pending,
            // Where nothing can wait, it is tried again.
            Some(_) | None => {
                self.wait = None;
                self.answered = true;
                Poll::Ready(())
            }
        }
    }

    fn is_ready(&self) -> bool {
        let mut watch = [Watch::new(self.handle.as_fd(), self.interest())];
        // Where it cannot be told, the next call tells.
        self.environment
            .sys()
            .poll(&mut watch, Some(Duration::ZERO))
            .is_err()
            || watch[0].answer.ready
    }

    fn begin_wait(&self, waker: &Waker) -> Option<Wait> {
        let reactor = Reactor::of_the_process()?;
        let end = Arc::new(End(Mutex::new(EndState {
            has_come: false,
            waker: Some(waker.clone()),
        })));
        let waiting = Waiting {
            handle: self.handle.clone(),
            interest: self.interest(),
            until: (self.futile >= MOST_FUTILE).then(|| Instant::now() + PAUSE),
            cancel: self.cancel.clone(),
            end: end.clone(),
        };
        let ticket = reactor.park(Box::new(waiting)).ok()?;
        Some(Wait {
            reactor,
            ticket,
            end,
        })
    }

    fn interest(&self) -> Interest {
        match self.side {
            Side::Source => Interest::Read,
            Side::Destination => Interest::Write,
        }
    }

    fn note(&mut self, answer: Result<Attempt, Errno>) -> Result<Passed, Errno> {
        let answered = std::mem::take(&mut self.answered);
        match answer? {
            Attempt::Moved(bytes) => {
                self.futile = 0;
                Ok(Passed::Bytes(bytes))
            }
            Attempt::Blocked | Attempt::Again => {
                self.futile += u32::from(answered);
                Ok(Passed::Later)
            }
        }
    }
}

/// Until a signal no longer comes first and the way is found that the stream has.
fn until_settled(mut attempt: impl FnMut() -> Result<Attempt, Errno>) -> Result<Attempt, Errno> {
    loop {
        match attempt() {
            Ok(Attempt::Again) | Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// A wait under way, which its drop ends.
#[derive(Debug)]
struct Wait {
    reactor: Arc<Reactor>,
    ticket: Ticket,
    end: Arc<End>,
}

impl Wait {
    /// If it has not, this one is woken when it does.
    fn has_ended(&self, waker: &Waker) -> bool {
        let mut state = self.end.lock();
        if !state.has_come {
            state.waker = Some(waker.clone());
        }
        state.has_come
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut state = self.end.lock();
        state.waker = None;
        let has_come = state.has_come;
        drop(state);
        if !has_come {
            self.reactor.unpark(self.ticket);
        }
    }
}

#[derive(Debug)]
struct End(Mutex<EndState>);

#[derive(Debug)]
struct EndState {
    has_come: bool,
    waker: Option<Waker>,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, EndState> {
        // Nothing that can panic runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the reactor keeps.
struct Waiting {
    handle: Handle,
    interest: Interest,
    /// In place of the handle.
    until: Option<Instant>,
    cancel: Cancel,
    end: Arc<End>,
}

impl Parked for Waiting {
    fn waits(&self) -> Waits<'_> {
        let end = self
            .until
            .is_none()
            .then(|| (self.handle.as_fd(), self.interest));
        Waits {
            source: end,
            destination: None,
            until: self.until,
        }
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        None
    }

    /// None.
    fn pool(&self) -> u64 {
        u64::MAX
    }

    fn resume(self: Box<Self>, _source: Readiness, _destination: Readiness) {
        let mut state = self.end.lock();
        state.has_come = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
