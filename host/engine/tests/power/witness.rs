//! Who clones the disk, and knows what each clone may hold.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::disk::Disk;

/// A clone of the disk.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) clone: PathBuf,
    /// The call that was about to be made, or had been.
    pub(crate) when: String,
    /// The version that had been reported as being on stable storage.
    pub(crate) oldest: u64,
    /// The last one that was being copied.
    pub(crate) newest: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) disk: Disk,
    started: AtomicU64,
    reported: AtomicU64,
    most: usize,
    moments: Mutex<Vec<Moment>>,
}

impl Witness {
    /// One that has seen enough after so many moments.
    pub(crate) fn new(disk: Disk, most: usize) -> Self {
        Self {
            disk,
            started: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            most,
            moments: Mutex::default(),
        }
    }

    /// A version is being copied from now on.
    pub(crate) fn starts(&self, version: u64) {
        self.started.store(version, Ordering::SeqCst);
    }

    /// A version is said to be on stable storage.
    pub(crate) fn is_told(&self, version: u64) {
        self.reported.store(version, Ordering::SeqCst);
    }

    pub(crate) fn has_seen_enough(&self) -> bool {
        self.moments().len() >= self.most
    }

    /// Clones the disk, unless enough was seen.
    pub(crate) fn look(&self, when: &str) {
        if self.has_seen_enough() {
            return;
        }
        let oldest = self.reported.load(Ordering::SeqCst);
        let name = format!("{}", self.moments().len());
        let clone = self.disk.clone_now(&name);
        let newest = self.started.load(Ordering::SeqCst);
        self.moments().push(Moment {
            clone,
            when: when.to_owned(),
            oldest,
            newest,
        });
    }

    pub(crate) fn take_moments(&self) -> Vec<Moment> {
        std::mem::take(&mut *self.moments())
    }

    fn moments(&self) -> std::sync::MutexGuard<'_, Vec<Moment>> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
