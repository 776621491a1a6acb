//! The system itself, on which every call is seen, some are answered by the test, and it is known
//! that a copy waits: it is in poll(2), with time to spend.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use copyist_engine::Errno;
use copyist_engine::sys::{self, Layer, Result, Sys, Watch, Way};
use rustix::fs::OFlags;

/// As long as anything may take that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A call, and how many bytes it was to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read(Way),
    Write(Way, usize),
    Splice,
    SendFile,
    Reopen,
    PunchHole,
    /// poll(2) that does not wait.
    Look,
    /// poll(2) that may.
    Wait,
    /// Any other.
    Other,
}

type Hook = dyn Fn(Call) -> Option<Errno> + Send + Sync;

/// See the module.
pub(crate) struct Watched {
    native: Arc<dyn Sys>,
    hook: Box<Hook>,
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
struct Log {
    calls: Vec<Call>,
    /// Waits that found nothing at first.
    waits: usize,
}

impl Watched {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(|_| None)
    }

    /// Before each call `hook` is asked; what it says is the call's error.
    pub(crate) fn with(hook: impl Fn(Call) -> Option<Errno> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            native: sys::native(),
            hook: Box::new(hook),
            log: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// How many waits there have been that found nothing at first.
    pub(crate) fn waits(&self) -> usize {
        self.log().waits
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.log().calls.clone()
    }

    /// How many of them are such.
    pub(crate) fn count(&self, is_such: impl Fn(Call) -> bool) -> usize {
        let log = self.log();
        log.calls.iter().filter(|call| is_such(**call)).count()
    }

    /// Returns when there have been so many waits.
    pub(crate) fn wait_for(&self, count: usize) {
        self.until(|log| log.waits >= count, "no copy waits");
    }

    /// Returns when there have been so many of these calls.
    pub(crate) fn wait_for_calls(&self, such: Call, count: usize) {
        let is_there = |log: &Log| log.calls.iter().filter(|call| **call == such).count() >= count;
        self.until(is_there, "no such call");
    }

    fn until(&self, is_so: impl Fn(&Log) -> bool, otherwise: &str) {
        let (log, time) = self
            .changed
            .wait_timeout_while(self.log(), PATIENCE, |log| !is_so(log))
            .unwrap_or_else(PoisonError::into_inner);
        let calls = log.calls.len();
        drop(log);
        assert!(!time.timed_out(), "{otherwise}: {calls} calls");
    }

    /// A test that fails must not take the copy's clean-up with it.
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self, call: Call) -> Result<()> {
        let answer = (self.hook)(call);
        self.log().calls.push(call);
        self.changed.notify_all();
        answer.map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Layer for Watched {
    /// Asked for by each call that has no method here.
    fn below(&self) -> &dyn Sys {
        let _ = self.made(Call::Other);
        &*self.native
    }

    fn poll(&self, watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize> {
        if timeout == Some(Duration::ZERO) {
            self.made(Call::Look)?;
            return self.native.poll(watches, timeout);
        }
        self.made(Call::Wait)?;
        // One that finds something does not wait.
        let found = self.native.poll(watches, Some(Duration::ZERO))?;
        if found > 0 {
            return Ok(found);
        }
        self.log().waits += 1;
        self.changed.notify_all();
        self.native.poll(watches, timeout)
    }

    fn read_stream(&self, fd: BorrowedFd<'_>, way: Way, buffer: &mut [u8]) -> Result<usize> {
        self.made(Call::Read(way))?;
        self.native.read_stream(fd, way, buffer)
    }

    fn write_stream(&self, fd: BorrowedFd<'_>, way: Way, bytes: &[u8]) -> Result<usize> {
        self.made(Call::Write(way, bytes.len()))?;
        self.native.write_stream(fd, way, bytes)
    }

    fn splice(
        &self,
        source: BorrowedFd<'_>,
        source_offset: Option<u64>,
        destination: BorrowedFd<'_>,
        destination_offset: Option<u64>,
        length: usize,
    ) -> Result<usize> {
        self.made(Call::Splice)?;
        self.native.splice(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        )
    }

    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize> {
        self.made(Call::SendFile)?;
        self.native
            .send_file(source, source_offset, destination, length)
    }

    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
        self.made(Call::Reopen)?;
        self.native.reopen(fd, flags)
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        self.made(Call::PunchHole)?;
        self.native.punch_hole(fd, offset, length)
    }
}
