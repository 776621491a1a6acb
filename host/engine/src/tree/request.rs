//! What a caller asks for of a tree.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::request::{Location, Options};

/// What becomes of symbolic links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Links of the same text are made.
    #[default]
    Keep,
    /// What they lead to is copied; beneath a handle no link leads out of it.
    Follow,
    /// They are left out.
    Skip,
}

/// What becomes of FIFOs, names of sockets, and devices. Their content is never copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// They are failures.
    #[default]
    Refuse,
    /// They are left out.
    Skip,
    /// The same are made, which the embedder must grant.
    Keep,
}

/// Tells which entries are left out.
pub trait Exclude: fmt::Debug + Send + Sync {
    /// Whether this one is, by its path beneath the tree's root. What lies beneath a directory that is
    /// left out is not asked for.
    fn is_excluded(&self, path: &Path, is_directory: bool) -> bool;
}

/// What an embedder allows of trees beyond what WASI lets a guest do, beside
/// [`Options::grants`](Options). All off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeGrants {
    /// FIFOs, names of sockets, and devices may be made anew.
    pub special_files: bool,
    /// Symbolic links may be made that lead to an absolute path, or above the tree's root.
    pub leaving_links: bool,
}

/// Bounds on a tree, beside those of [`Options::limits`], whose `bytes` are those of the whole tree
/// here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeLimits {
    /// Entries looked at, the root among them.
    pub entries: Option<u64>,
    /// Directories beneath each other; of a root without directories 1.
    pub depth: Option<u32>,
}

/// How to copy a tree.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// How each file is copied. A window and `source_start` have no meaning here and are refused.
    /// [`existing`](Options::existing) holds for every entry but directories, which are always gone
    /// into where they exist.
    pub entries: Options,
    /// What becomes of symbolic links.
    pub symlinks: Symlinks,
    /// What becomes of special files.
    pub special: Special,
    /// Where another file system is mounted, the directory is made and not gone into. By the mount,
    /// so that bind mounts count.
    pub one_file_system: bool,
    /// Go on after an entry that fails: a success then, with [`failed`](crate::Summary::failed) above
    /// 0. Limits, a cancel and the end of the time given end the tree all the same.
    pub keep_going: bool,
    /// What is left out.
    pub exclude: Option<Arc<dyn Exclude>>,
    /// Bounds.
    pub limits: TreeLimits,
    /// What the embedder allows.
    pub grants: TreeGrants,
}

/// One tree.
#[derive(Clone, Debug)]
pub struct TreeRequest {
    /// Its root: most often a directory.
    pub source: Location,
    /// What the copy of the root is to be: not the directory into which it goes. Where a directory
    /// stands there the two become one.
    pub destination: Location,
    /// How to copy.
    pub options: TreeOptions,
}
