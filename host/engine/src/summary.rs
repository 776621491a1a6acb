//! What a copy did.

use std::time::Duration;

use rustix::io::Errno;

use crate::plan::Mechanism;
use crate::preserve::Preserve;

/// What a copy did. Sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Written to the destination or shared with the source.
    pub bytes: u64,
    /// Of them, shared by a clone.
    pub shared: u64,
    /// Taken from the source: more than `bytes` where the copy ended with some in hand.
    pub consumed: u64,
    /// The mechanism that moved most of the bytes; none if no byte was moved.
    pub method: Option<Mechanism>,
    /// Files written.
    pub files: u64,
    /// Of a tree: directories made or gone into.
    pub directories: u64,
    /// Of a tree: symbolic links made, and further names of files that were copied already.
    pub links: u64,
    /// Of a tree: FIFOs, names of sockets, and devices made.
    pub special: u64,
    /// Entries left as they were, or left out.
    pub skipped: u64,
    /// Of a tree: entries that could not be copied.
    pub failed: u64,
    /// What was to be preserved and could not be.
    pub lost: Preserve,
    /// The source changed while it was copied: its length is not what it was at first or, where
    /// the copy took several calls, its times.
    pub changed: bool,
    /// From the first step to the outcome; what waited for a thread before is not in it.
    pub elapsed: Duration,
    /// The mechanisms that were tried and refused, in order, each with the system's answer
    /// (`None`: it claimed success and moved nothing).
    pub refused: Vec<(Mechanism, Option<Errno>)>,
}
