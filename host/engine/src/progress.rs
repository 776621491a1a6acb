//! How far a copy has come, for who looks on from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A copy's own account, which it writes and others read: no lock, no system call on either side.
/// Clones are one and the same.
///
/// The figures are read one by one, so that between two of them the copy may have gone on.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
    /// 0 where nothing is promised.
    total: AtomicU64,
    entries: AtomicU64,
    ended: AtomicBool,
}

impl Progress {
    /// Written to the destination or shared with the source so far; after the end what the
    /// [`Summary`](crate::Summary) says.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How many bytes there will be, by the word of the source: the rest of a file's size, or what a
    /// window takes of it. Files that grow, shrink or lie make it wrong. A stream promises nothing,
    /// a size of 0 promises nothing either (procfs), and nor does a tree, which is walked while it is
    /// copied.
    pub fn total(&self) -> Option<u64> {
        Some(self.0.total.load(Ordering::Relaxed)).filter(|total| *total > 0)
    }

    /// What is copied as a whole: of one file 1 once it has succeeded, of a tree its entries so far.
    pub fn entries(&self) -> u64 {
        self.0.entries.load(Ordering::Relaxed)
    }

    /// Whether the copy has ended, well or not. What it says of itself then stays, and is seen whole
    /// by who has seen this.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    pub(crate) fn note(&self, bytes: u64, total: Option<u64>) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
        self.0.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }

    /// A part of a tree has done so much more.
    pub(crate) fn add(&self, bytes: u64, entries: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.entries.fetch_add(entries, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, entries: u64) {
        self.0.entries.store(entries, Ordering::Relaxed);
        self.0.ended.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_nothing_promises_nothing() {
        let progress = Progress::default();
        let seen = progress.clone();
        assert_eq!((seen.bytes(), seen.total()), (0, None));
        progress.note(7, Some(0));
        assert_eq!((seen.bytes(), seen.total()), (7, None));
        progress.note(8, Some(9));
        assert_eq!((seen.bytes(), seen.total()), (8, Some(9)));
        assert!(!seen.has_ended());
        progress.end(1);
        assert_eq!((seen.entries(), seen.has_ended()), (1, true));
    }
}
