//! The system itself, which counts what a copy between streams asks of it.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use copyist_engine::Errno;
use copyist_engine::sys::{self, Layer, Result, Sys, Watch};

pub(crate) struct Counting {
    native: Arc<dyn Sys>,
    /// Each poll(2) that waits.
    pub(crate) waits: AtomicU64,
    /// Each that does not.
    pub(crate) looks: AtomicU64,
    /// Calls that moved something.
    pub(crate) moves: AtomicU64,
    /// Calls that could not, and looks that saw nothing.
    pub(crate) stalls: AtomicU64,
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            native: sys::native(),
            waits: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
        }
    }
}

impl fmt::Debug for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

impl Layer for Counting {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn splice(
        &self,
        source: BorrowedFd<'_>,
        source_offset: Option<u64>,
        destination: BorrowedFd<'_>,
        destination_offset: Option<u64>,
        length: usize,
    ) -> Result<usize> {
        let answer = self.native.splice(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        );
        let count = match answer {
            Err(Errno::AGAIN) => &self.stalls,
            _ => &self.moves,
        };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    fn poll(&self, watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize> {
        let answer = self.native.poll(watches, timeout);
        if timeout == Some(Duration::ZERO) {
            self.looks.fetch_add(1, Ordering::Relaxed);
            let saw_nothing = watches.iter().all(|watch| !watch.answer.ready);
            self.stalls
                .fetch_add(u64::from(saw_nothing), Ordering::Relaxed);
        } else {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}
