//! What is known not to work, so that it is not tried for every file.
//!
//! An answer counts for the file systems that gave it and for a while, never for the process: one
//! odd destination must not turn a fast path off for all others
//! (<https://github.com/oven-sh/bun/pull/43244>), and a mount can be replaced. Only a system call
//! that the kernel does not have, or that a filter denies whatever it is given, is ruled out
//! everywhere, after a probe which cannot mean anything else
//! (<https://github.com/rust-lang/rust/issues/79274>).

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::plan::Mechanism;
use crate::sys::Sys;

/// How long an answer is believed. A remount or a kernel module loaded meanwhile is found after it.
const EXPIRY: Duration = Duration::from_secs(300);
/// More pairs than any machine mounts in earnest; beyond it the memory starts anew.
const MOST_ENTRIES: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    mechanism: Mechanism,
    source: u64,
    /// `None`: the source's file system refuses whatever the destination.
    destination: Option<u64>,
}

/// Memory of refusals, shared by the copies of an [`Environment`](crate::Environment).
#[derive(Default)]
pub(crate) struct Support {
    refused: Mutex<HashMap<Key, Instant>>,
    no_copy_range: AtomicBool,
    local: Mutex<HashMap<u64, (bool, Instant)>>,
}

impl Support {
    /// Whether a mechanism is worth a try from this device to that one.
    pub(crate) fn allows(
        &self,
        mechanism: Mechanism,
        source: u64,
        destination: Option<u64>,
    ) -> bool {
        if mechanism == Mechanism::CopyRange && self.no_copy_range.load(Ordering::Relaxed) {
            return false;
        }
        let refused = lock(&self.refused);
        let live = |destination| {
            refused
                .get(&Key {
                    mechanism,
                    source,
                    destination,
                })
                .is_some_and(|since| since.elapsed() < EXPIRY)
        };
        !live(None) && destination.is_none_or(|device| !live(Some(device)))
    }

    /// Whether it is worth a system call to learn the destination's device: something is known of
    /// this source with one destination or another.
    pub(crate) fn depends_on_destination(&self, source: u64) -> bool {
        lock(&self.refused).iter().any(|(key, since)| {
            key.source == source && key.destination.is_some() && since.elapsed() < EXPIRY
        })
    }

    /// Draws the lesson from a refusal. Asks for the destination's device only if it needs it.
    pub(crate) fn learn(
        &self,
        sys: &dyn Sys,
        mechanism: Mechanism,
        errno: Errno,
        source: u64,
        destination: impl FnOnce() -> Option<u64>,
    ) {
        match (mechanism, errno) {
            // The kernel looks at the two super blocks first (EXDEV), then whether the source's
            // file system can clone at all: so these two answers are about the source alone.
            // ENOTTY is what kernels before 4.5 and some FUSE servers say.
            (Mechanism::Clone, Errno::OPNOTSUPP | Errno::NOTTY) => {
                self.remember(mechanism, source, None);
            }
            (Mechanism::Clone | Mechanism::CopyRange, Errno::XDEV)
            | (Mechanism::CopyRange, Errno::OPNOTSUPP) => {
                if let Some(destination) = destination() {
                    self.remember(mechanism, source, Some(destination));
                }
            }
            // Absent (ENOSYS) or denied by a seccomp filter (EPERM)? An immutable file says EPERM
            // too; two descriptors that cannot be valid get EBADF from a kernel that has the call.
            (Mechanism::CopyRange, Errno::NOSYS | Errno::PERM) => {
                if matches!(
                    sys.probe_copy_range(),
                    Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS)
                ) {
                    self.no_copy_range.store(true, Ordering::Relaxed);
                }
            }
            // Everything else may be about this one file.
            _ => {}
        }
    }

    /// Whether a device is a local file system whose close(2) has nothing to report. Asked once a
    /// device, and again after a while: the number of one that is gone goes to the next mount.
    pub(crate) fn is_local(&self, sys: &dyn Sys, device: u64, fd: BorrowedFd<'_>) -> bool {
        let known = lock(&self.local).get(&device).copied();
        if let Some((is_local, since)) = known
            && since.elapsed() < EXPIRY
        {
            return is_local;
        }
        // Not under the lock, where a mount that does not answer would hold up every copy.
        let is_local = sys.is_local(fd).unwrap_or(false);
        let mut local = lock(&self.local);
        if local.len() >= MOST_ENTRIES {
            local.clear();
        }
        local.insert(device, (is_local, Instant::now()));
        is_local
    }

    fn remember(&self, mechanism: Mechanism, source: u64, destination: Option<u64>) {
        let mut refused = lock(&self.refused);
        if refused.len() >= MOST_ENTRIES {
            refused.clear();
        }
        refused.insert(
            Key {
                mechanism,
                source,
                destination,
            },
            Instant::now(),
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A map of plain values is whole whatever panicked while it was held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::sys::{self, Layer};

    fn learn(support: &Support, mechanism: Mechanism, errno: Errno, source: u64, to: u64) {
        support.learn(&*sys::native(), mechanism, errno, source, || Some(to));
    }

    // https://github.com/oven-sh/bun/pull/43244, https://github.com/libuv/libuv/issues/3354
    #[test]
    fn bun_43244_a_refusal_counts_for_its_pair_alone() {
        let support = Support::default();
        learn(&support, Mechanism::CopyRange, Errno::XDEV, 1, 2);
        assert!(!support.allows(Mechanism::CopyRange, 1, Some(2)));
        assert!(support.allows(Mechanism::CopyRange, 1, Some(1)));
        assert!(support.allows(Mechanism::CopyRange, 2, Some(1)));
        assert!(support.allows(Mechanism::CopyRange, 1, None));
        assert!(support.allows(Mechanism::Clone, 1, Some(2)));
        assert!(support.depends_on_destination(1));
        assert!(!support.depends_on_destination(2));
    }

    #[test]
    fn a_source_that_cannot_clone_needs_no_look_at_the_destination() {
        let support = Support::default();
        support.learn(
            &*sys::native(),
            Mechanism::Clone,
            Errno::OPNOTSUPP,
            1,
            || panic!("the answer is about the source"),
        );
        assert!(!support.allows(Mechanism::Clone, 1, None));
        assert!(!support.depends_on_destination(1));
    }

    // https://github.com/rust-lang/rust/issues/79274
    #[test]
    fn rust_79274_one_files_eperm_does_not_rule_the_call_out() {
        let support = Support::default();
        learn(&support, Mechanism::CopyRange, Errno::PERM, 1, 1);
        assert!(support.allows(Mechanism::CopyRange, 1, Some(1)));
    }

    #[test]
    fn what_may_be_about_one_file_is_forgotten() {
        let support = Support::default();
        for errno in [Errno::INVAL, Errno::TXTBSY, Errno::BADF, Errno::IO] {
            for mechanism in Mechanism::ALL {
                learn(&support, mechanism, errno, 1, 1);
                assert!(support.allows(mechanism, 1, Some(1)), "{mechanism} {errno}");
            }
        }
    }

    #[test]
    fn many_refusals_are_remembered_side_by_side_and_no_more_than_may_be() {
        let support = Support::default();
        let most = MOST_ENTRIES as u64;
        for device in 1..=most {
            learn(&support, Mechanism::Clone, Errno::XDEV, device, 0);
        }
        for device in 1..=most {
            assert!(!support.allows(Mechanism::Clone, device, Some(0)));
        }
        learn(&support, Mechanism::Clone, Errno::XDEV, most + 1, 0);
        assert!(!support.allows(Mechanism::Clone, most + 1, Some(0)));
        assert!(support.allows(Mechanism::Clone, 1, Some(0)));
    }

    #[test]
    fn a_device_is_asked_about_once_and_no_more_are_remembered_than_may_be() {
        let support = Support::default();
        let sys = Asked(sys::native(), AtomicUsize::new(0));
        let most = MOST_ENTRIES as u64;
        for device in 0..=most {
            for _ in 0..2 {
                assert_eq!(
                    support.is_local(&sys, device, rustix::fs::CWD),
                    device % 2 == 0
                );
            }
            let known = lock(&support.local).len() as u64;
            assert_eq!(known, device % most + 1);
        }
        assert_eq!(sys.1.into_inner() as u64, most + 1);
    }

    /// Counts how often it is asked whether something is local, which is so every other time.
    #[derive(Debug)]
    struct Asked(Arc<dyn Sys>, AtomicUsize);

    impl Layer for Asked {
        fn below(&self) -> &dyn Sys {
            &*self.0
        }

        fn is_local(&self, _fd: BorrowedFd<'_>) -> sys::Result<bool> {
            Ok(self.1.fetch_add(1, Ordering::Relaxed).is_multiple_of(2))
        }
    }
}
