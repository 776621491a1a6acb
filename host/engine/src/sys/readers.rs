//! Who opens a FIFO to read and leaves again between two looks at it (inotify(7)).
//!
//! One instance a process, since a user has 128 of them. A reader that stays needs no notice: the
//! next try to open finds it.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::Result;

static NOTICES: Mutex<Option<Notices>> = Mutex::new(None);

struct Notices {
    inotify: OwnedFd,
    /// Those who watch, by the number of the FIFO that they share.
    watched: HashMap<i32, Vec<Arc<AtomicBool>>>,
}

/// A FIFO that is watched until this is dropped.
#[derive(Debug)]
pub struct Readers {
    number: i32,
    left: Arc<AtomicBool>,
}

/// Watches a FIFO by a descriptor of its name.
pub(super) fn watch(name: BorrowedFd<'_>) -> Result<Readers> {
    let mut guard = notices();
    let notices = match &mut *guard {
        Some(notices) => notices,
        none => none.insert(Notices {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watched: HashMap::new(),
        }),
    };
    // Opening it tells little: writers do too. Only who has it read can close it so.
    let path = format!("/proc/self/fd/{}", name.as_raw_fd());
    let number = inotify::add_watch(&notices.inotify, path, WatchFlags::CLOSE_NOWRITE)?;
    let left = Arc::<AtomicBool>::default();
    notices
        .watched
        .entry(number)
        .or_default()
        .push(left.clone());
    Ok(Readers { number, left })
}

impl Readers {
    /// Whether somebody who had it open to read has closed it since the watch began.
    pub fn has_one_left(&self) -> bool {
        if let Some(notices) = &mut *notices() {
            notices.take_all();
        }
        self.left.load(Ordering::Relaxed)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let mut guard = notices();
        let Some(notices) = &mut *guard else {
            return;
        };
        let Some(watching) = notices.watched.get_mut(&self.number) else {
            return;
        };
        watching.retain(|left| !Arc::ptr_eq(left, &self.left));
        if watching.is_empty() {
            notices.watched.remove(&self.number);
            let _ = inotify::remove_watch(&notices.inotify, self.number);
        }
        // Nobody waits, so that nothing is kept open.
        if notices.watched.is_empty() {
            *guard = None;
        }
    }
}

impl Notices {
    fn take_all(&self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(self.inotify.as_fd(), &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    // Some are lost: each may have been about anybody.
                    for left in self.watched.values().flatten() {
                        left.store(true, Ordering::Relaxed);
                    }
                }
                Ok(event) => {
                    for left in self.watched.get(&event.wd()).into_iter().flatten() {
                        left.store(true, Ordering::Relaxed);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

fn notices() -> MutexGuard<'static, Option<Notices>> {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner)
}
