//! What an embedder is told of each copy.

use std::path::Path;
use std::time::Duration;

use copyist_engine::{Error, Progress, Summary};

/// Which function a guest called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// A file to a file.
    Copy,
    /// A tree to a tree.
    Tree,
    /// A whole file into the guest.
    Read,
}

impl What {
    /// The name that spans and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Tree => "tree",
            Self::Read => "read",
        }
    }
}

/// A copy that begins, for the embedder alone.
#[derive(Debug)]
pub struct Started<'a> {
    /// What was asked for.
    pub what: What,
    /// The guest's own path of the source, where it gave one.
    pub source: Option<&'a Path>,
    /// The guest's own path of the destination, where it gave one.
    pub destination: Option<&'a Path>,
    /// How far it has come, from then on. A clone tells the same.
    pub progress: &'a Progress,
}

/// A copy that has ended, for the embedder alone: a guest sees neither the system's answers nor
/// the times.
#[derive(Debug)]
pub struct Report<'a> {
    /// What was asked for.
    pub what: What,
    /// The guest's own path of the source, where it gave one.
    pub source: Option<&'a Path>,
    /// The guest's own path of the destination, where it gave one.
    pub destination: Option<&'a Path>,
    /// What came of it. A read's `bytes` are those that the guest got.
    pub outcome: Result<&'a Summary, &'a Error>,
    /// From the call to its end, the wait for a thread included.
    pub elapsed: Duration,
}
