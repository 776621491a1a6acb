//! Copies files with the best mechanism that the two ends allow: a clone, copy_file_range(2),
//! sendfile(2), splice(2), or a read and write loop; and says which it was.
//!
//! ```
//! use std::fs::File;
//! use std::sync::Arc;
//! use copyist_engine::{Base, Cancel, Destination, Location, Options, Request, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # std::fs::write(temporary.path().join("from"), "some bytes")?;
//! let directory = Arc::new(File::open(temporary.path())?);
//! let at = |name: &str| Location {
//!     base: Base::Beneath(directory.clone()),
//!     path: name.into(),
//!     follow: false,
//! };
//! let request = Request {
//!     source: Source::Path(at("from")),
//!     destination: Destination::Path(at("to")),
//!     options: Options::default(),
//! };
//! let summary = copyist_engine::copy(request, &Cancel::new())?;
//! assert_eq!(summary.bytes, 10);
//! # Ok(())
//! # }
//! ```
//!
//! A copy is a state machine, [`Transfer`], that makes about one bounded system call a step and
//! never sleeps. [`copy`] drives one on the calling thread; a [`Pool`] drives many on a few threads.
//! Nothing here knows of WebAssembly, of async or of logging.

#![deny(missing_docs)]

#[cfg(not(unix))]
compile_error!("copyist copies on Linux and macOS; its engine needs a Unix system");

mod bell;
mod cancel;
mod driver;
mod durability;
mod environment;
mod error;
mod feed;
mod kind;
mod limits;
mod metadata;
mod nonblocking;
#[cfg(all(test, loom))]
mod orders;
mod pace;
mod plan;
mod pool;
mod preserve;
mod progress;
mod reactor;
mod read;
mod request;
mod resolve;
mod span;
mod sparse;
mod staging;
mod strategy;
mod stream;
mod summary;
mod support;
mod sweep;
mod sync;
pub mod sys;
mod target;
mod transfer;
mod tree;
mod wake;
mod xattrs;

pub use cancel::Cancel;
/// The token without which no [`Base::Ambient`] can be made.
pub use cap_std::{AmbientAuthority, ambient_authority};
pub use driver::{copy, copy_in};
pub use environment::Environment;
pub use error::{Cause, Error, Limit, Refused, Side, Unsupported};
pub use feed::{Feed, Passed};
pub use limits::{Limits, Quota};
pub use nonblocking::NonBlocking;
pub use plan::{Mechanism, Platform};
pub use pool::{Owner, Pool, PoolOptions};
pub use preserve::Preserve;
pub use progress::Progress;
pub use read::{ReadOptions, ReadRequest, read, read_in};
pub use request::{
    Base, Destination, Durability, Existing, Grants, Handle, Location, Options, Reflink, Request,
    Source, Sparse, Tuning, Window, WriteMode,
};
/// What the system answers, as it stands in [`Cause::Io`].
pub use rustix::io::Errno;
pub use summary::Summary;
pub use sweep::{Swept, sweep, sweep_in};
pub use transfer::{Step, Transfer, Waits};
pub use tree::{
    Exclude, Executor, Part, Special, Symlinks, TreeEntry, TreeGrants, TreeLimits, TreeOptions,
    TreeReport, TreeRequest, copy_tree, copy_tree_in,
};
