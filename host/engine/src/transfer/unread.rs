//! A FIFO as the destination that nobody reads yet.
//!
//! No event tells that a reader has come, so that it is tried again and again; and a reader that came
//! and left between two tries has ended the wait, as it would have ended that of open(2).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Fd, at_destination};
use crate::error::Cause;
use crate::resolve::ALWAYS;
use crate::sys::{Readers, Sys};
use crate::target::{Opened, Target};

/// The longest pause between two tries. Twice as long would keep half of the readers waiting for
/// more than 9 ms.
const LONGEST: Duration = Duration::from_millis(16);
/// So many wait without being any slower for it.
const FEW: u32 = 64;

/// How many copies of the process wait so.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// See the module.
#[derive(Debug)]
pub(super) struct Unread {
    /// By what it can be opened, where the platform has that; else it is by its path.
    name: Option<OwnedFd>,
    readers: Option<Readers>,
}

impl Unread {
    /// Begins to watch it, before it is tried once more: who comes and leaves after that is seen.
    pub(super) fn new(sys: &dyn Sys, name: Option<OwnedFd>) -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        let readers = name
            .as_ref()
            .and_then(|name| sys.watch_readers(name.as_fd()).ok());
        Self { name, readers }
    }

    /// Tries once more to open it. `None`: by its path.
    pub(super) fn open(&self, sys: &dyn Sys) -> Option<Result<Opened, Cause>> {
        let name = self.name.as_ref()?;
        let writing = ALWAYS | OFlags::WRONLY;
        Some(match sys.reopen(name.as_fd(), writing) {
            Err(Errno::NXIO) if self.readers.as_ref().is_some_and(Readers::has_one_left) => {
                settle(sys, name)
            }
            Err(Errno::NXIO) => Ok(Opened::Unread(None)),
            // There is no procfs here.
            Err(_) => return None,
            Ok(fd) => Target::existing(sys, Fd::Ours(fd)).map(Opened::Ready),
        })
    }

    /// The longest pause before the next try. Thousands that wait together try less often.
    pub(super) fn longest_pause() -> Duration {
        LONGEST * (1 + WAITING.load(Ordering::Relaxed) / FEW)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reader came and left. What open(2) would have answered is a descriptor of a FIFO that nobody
/// reads, which is had by being the reader oneself for a moment; the first write to it fails.
fn settle(sys: &dyn Sys, name: &OwnedFd) -> Result<Opened, Cause> {
    let reader = sys.reopen(name.as_fd(), ALWAYS | OFlags::RDONLY);
    let writer = sys.reopen(name.as_fd(), ALWAYS | OFlags::WRONLY);
    drop(reader);
    match writer {
        Ok(fd) => Target::existing(sys, Fd::Ours(fd)).map(Opened::Ready),
        // It may not be read by this process.
        Err(Errno::NXIO) => Err(at_destination(Errno::PIPE)),
        Err(errno) => Err(at_destination(errno)),
    }
}
