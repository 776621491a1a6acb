//! Which entries of a tree failed or were left out, for who looks on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Cause;

/// As many of either kind are remembered; all are counted.
const MOST: usize = 10_000;

/// An entry, and what was the matter with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path: the one that was asked for, and what lies beneath.
    pub path: PathBuf,
    /// Why it is told of.
    pub cause: Cause,
}

/// The entries of one tree so far. Clones are one and the same. The first 10,000 of either kind are
/// remembered.
#[derive(Clone, Debug, Default)]
pub struct TreeReport(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    failed: Vec<TreeEntry>,
    skipped: Vec<TreeEntry>,
}

impl TreeReport {
    /// Those that failed, from this number on and no more than so many, in the order in which they did.
    pub fn failed(&self, from: usize, most: usize) -> Vec<TreeEntry> {
        page(&self.lock().failed, from, most)
    }

    /// Those that were left out for a reason, as [`failed`](Self::failed).
    pub fn skipped(&self, from: usize, most: usize) -> Vec<TreeEntry> {
        page(&self.lock().skipped, from, most)
    }

    pub(super) fn add_failed(&self, entry: TreeEntry) {
        push(&mut self.lock().failed, entry);
    }

    pub(super) fn add_skipped(&self, entry: TreeEntry) {
        push(&mut self.lock().skipped, entry);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(entries: &mut Vec<TreeEntry>, entry: TreeEntry) {
    if entries.len() < MOST {
        entries.push(entry);
    }
}

fn page(entries: &[TreeEntry], from: usize, most: usize) -> Vec<TreeEntry> {
    entries.iter().skip(from).take(most).cloned().collect()
}
