//! The system itself, with somebody at the calls that matter: who refuses them, waits in them, or
//! panics.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use copyist_wasmtime::engine::sys::{self, FileInfo, Layer, Result, Sys};
use copyist_wasmtime::engine::{Environment, Errno, Pool, PoolOptions};

/// As long as anything may take that must come. What waits so long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Clone,
    CopyRange,
    SendFile,
    Read,
    Write,
    Sync,
}

type Hook = dyn Fn(Call) -> Result<()> + Send + Sync;

/// The system, altered.
pub(crate) struct Altered {
    native: Arc<dyn Sys>,
    hook: Box<Hook>,
    /// Whether it has clones. It makes them by copying, which nobody above can tell.
    clones: bool,
    /// Whether files say that they are empty, as those of procfs.
    hides_sizes: bool,
}

impl Altered {
    /// On which `hook` is called before each [`Call`]; what it answers is the call's error.
    pub(crate) fn new(hook: impl Fn(Call) -> Result<()> + Send + Sync + 'static) -> Self {
        Self {
            native: sys::native(),
            hook: Box::new(hook),
            clones: false,
            hides_sizes: false,
        }
    }

    /// Where each call is noted.
    pub(crate) fn noting(calls: &Arc<Mutex<Vec<Call>>>) -> Self {
        let calls = calls.clone();
        Self::new(move |call| {
            calls.lock().unwrap().push(call);
            Ok(())
        })
    }

    /// On which a call of this kind fails.
    pub(crate) fn failing(which: Call, errno: Errno) -> Self {
        Self::new(move |call| if call == which { Err(errno) } else { Ok(()) })
    }

    pub(crate) fn with_clones() -> Self {
        Self {
            clones: true,
            ..Self::new(|_| Ok(()))
        }
    }

    pub(crate) fn without_sizes() -> Self {
        Self {
            hides_sizes: true,
            ..Self::new(|_| Ok(()))
        }
    }

    /// A pool of one thread on it, for which a call is stuck as soon as it has begun.
    pub(crate) fn pool(self) -> Arc<Pool> {
        let options = PoolOptions {
            threads: std::num::NonZeroUsize::MIN,
            stuck_after: Duration::ZERO,
            spare_threads: 0,
        };
        let environment = Environment::new(Arc::new(self));
        Arc::new(Pool::with_environment(options, environment))
    }

    fn before(&self, call: Call) -> Result<()> {
        (self.hook)(call)
    }
}

/// Where a copy stops until it is let through.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Default)]
struct Passage {
    reached: bool,
    open: bool,
}

impl Gate {
    /// The system on which the first bytes of any copy or read stop here.
    pub(crate) fn system(&self) -> Altered {
        let gate = self.clone();
        Altered::new(move |call| {
            if call != Call::Sync {
                gate.pass();
            }
            Ok(())
        })
    }

    fn pass(&self) {
        self.linger(PATIENCE);
    }

    /// Stands here until it is let through, but no longer than this.
    pub(crate) fn linger(&self, most: Duration) {
        let (passage, changed) = &*self.0;
        let mut state = passage.lock().unwrap();
        state.reached = true;
        changed.notify_all();
        drop(
            changed
                .wait_timeout_while(state, most, |state| !state.open)
                .unwrap(),
        );
    }

    /// Returns when a copy stands here, within a call of the system.
    pub(crate) fn wait_until_reached(&self) {
        let (passage, changed) = &*self.0;
        let state = passage.lock().unwrap();
        let (state, _) = changed
            .wait_timeout_while(state, PATIENCE, |state| !state.reached)
            .unwrap();
        assert!(state.reached, "no copy came here");
    }

    pub(crate) fn open(&self) {
        let (passage, changed) = &*self.0;
        passage.lock().unwrap().open = true;
        changed.notify_all();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.0.lock().unwrap().open
    }
}

impl fmt::Debug for Altered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Altered")
    }
}

impl Layer for Altered {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> Result<FileInfo> {
        let mut info = self.native.stat(fd)?;
        if self.hides_sizes {
            (info.size, info.blocks) = (0, 0);
        }
        Ok(info)
    }

    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        self.before(Call::Clone)?;
        if self.clones {
            return clone_by_copying(source, destination);
        }
        self.native.clone_file(source, destination)
    }

    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize> {
        self.before(Call::CopyRange)?;
        self.native.copy_range(
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
        self.before(Call::SendFile)?;
        self.native
            .send_file(source, source_offset, destination, length)
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.before(Call::Read)?;
        self.native.read(fd, buffer, offset)
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        self.before(Call::Read)?;
        self.native.read_spare(fd, buffer, offset)
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        self.before(Call::Write)?;
        self.native.write(fd, bytes, offset)
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.before(Call::Sync)?;
        self.native.sync(fd)
    }
}

fn clone_by_copying(source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut offset = 0;
    loop {
        let read = rustix::io::pread(source, &mut buffer, offset)?;
        if read == 0 {
            return Ok(());
        }
        let mut written = 0;
        while written < read {
            written +=
                rustix::io::pwrite(destination, &buffer[written..read], offset + written as u64)?;
        }
        offset += read as u64;
    }
}
