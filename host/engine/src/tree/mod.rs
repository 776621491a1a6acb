//! Whole trees: walked once and copied on the way, by as many threads as their caller has.
//!
//! A [`Part`] of a tree is a stack of directories that are being listed. Who runs parts is an
//! [`Executor`]; where it has threads without work, a part gives away the next directory, or a batch of
//! the names of a large one, and otherwise goes on alone. So nothing is queued that nobody waits for,
//! and what is remembered of a tree grows with its depth, not with its size.
//!
//! Everything is done relative to open directories (`node.rs`). Files are copied by
//! [`Transfer`](crate::Transfer)s, each by its own rules.

mod directory;
mod driver;
mod file;
mod links;
mod name;
mod node;
mod part;
mod place;
mod report;
mod request;
mod root;
mod shared;

pub use driver::{copy_tree, copy_tree_in};
pub(crate) use part::PartStep;
pub use part::{Executor, Part};
pub use report::{TreeEntry, TreeReport};
pub use request::{Exclude, Special, Symlinks, TreeGrants, TreeLimits, TreeOptions, TreeRequest};
pub(crate) use shared::Tree;
