//! What tests copy on: a file system that misbehaves on purpose, real file systems, and a kernel
//! that denies calls.
//!
//! # A file system that misbehaves
//!
//! A [`Bed`] is a good file system in memory, until a file is told what to do wrong:
//!
//! ```
//! use copyist_bed::{Bed, Call, faults};
//!
//! // None where the process may not mount, which it says aloud.
//! if let Some(bed) = Bed::mount() {
//!     bed.add("broken", faults::EIO_AT_64K, vec![1; 100_000]);
//!     assert!(std::fs::read(bed.path().join("broken")).is_err());
//!     assert!(bed.calls_of("broken", Call::Read) < 10);
//! }
//! ```
//!
//! The faults that have a name stand in the table of [`faults`]; a new one is a line there. A test
//! can also list [`Rule`]s of its own. [`Bed::expect`] is for files that do not exist yet, and
//! [`Bed::expect_any`] for those whose names are not known.
//!
//! What hangs is waited for by [`Bed::wait_for_hang`] and answered by [`Bed::release`], or when the
//! bed is dropped. A process that ends meanwhile ends: its beds go with it.
//!
//! FUSE cannot do all: it has no files without a name here (`O_TMPFILE` is refused), it shares no
//! extents, and what it makes of some answers stands with [`Rule::Fails`].
//!
//! # Real file systems
//!
//! `bash ci/filesystems COMMAND...` mounts what the kernel has and runs a command. A test finds
//! them by [`filesystems`], which reads `COPYIST_FILESYSTEMS`, and needs a certain one by
//! [`filesystem`]. `bash ci/filesystems --inside COMMAND...` runs the command once on each, which
//! has the temporary directory (`TMPDIR`) then.
//!
//! What a test could not try it says by [`skipped`]. The script fails where somebody skipped what
//! is not listed in `ci/skips`.
//!
//! # A kernel that denies calls
//!
//! [`seccomp::run_denied`] runs a closure on a thread whose system calls go through a filter.

#![cfg(target_os = "linux")]

mod bed;
pub mod faults;
mod kernel;
mod places;
pub mod seccomp;
mod server;
mod store;

pub use bed::Bed;
pub use faults::{Call, Rule};
pub use places::{FILESYSTEMS, SKIPS, filesystem, filesystems, shares_storage, skipped};
