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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::native;

    #[test]
    fn thousands_that_wait_together_try_less_often() {
        let sys = native();
        let wait = |count| -> Vec<_> { (0..count).map(|_| Unread::new(&*sys, None)).collect() };
        let (few, many) = (wait(FEW), wait(2 * FEW));
        assert_eq!(Unread::longest_pause(), 4 * LONGEST);
        drop(many);
        assert_eq!(Unread::longest_pause(), 2 * LONGEST);
        drop(few);
        assert_eq!(Unread::longest_pause(), LONGEST);
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use std::os::fd::BorrowedFd;
        use std::sync::{Arc, Mutex};

        use rustix::fs::{CWD, FileType, Mode, mknodat, open};

        use super::*;
        use crate::sys::{Layer, Result};

        /// Keeps what files are opened with.
        #[derive(Debug)]
        struct Flags(Arc<dyn Sys>, Mutex<Vec<OFlags>>);

        impl Layer for Flags {
            fn below(&self) -> &dyn Sys {
                &*self.0
            }

            fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
                self.1.lock().expect("no panic").push(flags);
                self.0.reopen(fd, flags)
            }
        }

        #[test]
        fn no_try_waits_for_the_other_end() {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("fifo");
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
            let name = open(&path, OFlags::PATH, Mode::empty()).expect("its name");
            let sys = Flags(native(), Mutex::default());
            let unread = Unread::new(&sys, Some(name));
            assert!(matches!(unread.open(&sys), Some(Ok(Opened::Unread(None)))));
            let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
            drop(reader.expect("a reader"));
            assert!(matches!(unread.open(&sys), Some(Ok(Opened::Ready(_)))));
            let access = sys.1.into_inner().expect("no panic");
            let wanted = [
                OFlags::WRONLY,
                OFlags::WRONLY,
                OFlags::RDONLY,
                OFlags::WRONLY,
            ];
            assert_eq!(access, wanted.map(|access| ALWAYS | access));
        }
    }
}
