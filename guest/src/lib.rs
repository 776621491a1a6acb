//! Copy files at the speed of the host, from inside a WebAssembly component.
//!
//! The component asks and the host moves the bytes: none of them crosses the component's memory,
//! and the host clones, or copies within its kernel, where its file systems can.
//!
//! ```no_run
//! use copyist_guest::{CopyOptions, Preserve};
//!
//! fn main() -> Result<(), copyist_guest::Error> {
//!     // As std::fs::copy, with an answer that says what was done.
//!     let summary = copyist_guest::copy("in/photo.raw", "out/photo.raw")?;
//!     println!("{} bytes by {}", summary.bytes, summary.method);
//!
//!     // A reader of out/config sees the old file or the new one, never a mixture.
//!     CopyOptions::new()
//!         .replace(true)
//!         .preserve(Preserve::MODE | Preserve::TIMESTAMPS)
//!         .copy("in/config", "out/config")?;
//!
//!     let text = copyist_guest::read_to_string("in/config")?;
//!     println!("{}", text.lines().count());
//!     Ok(())
//! }
//! ```
//!
//! Build for `wasm32-wasip2`, and run in a host that links `copyist:copy`: `copyist run --dir . plugin.wasm`,
//! or any program that embeds wasmtime and adds the crate `copyist-wasmtime` to its linker.
//!
//! # Ends
//!
//! An end of a copy is whatever turns into a [`Source`] or a [`Destination`]: a path as `std::fs`
//! takes it, a name beneath a directory handle, or an open [`Descriptor`] of the [`wasip2`] crate.
//! A [`std::fs::File`] cannot be one, since the standard library does not give out the handle
//! behind it: name its path, or open it by [`Descriptor::open_at`].
//!
//! # Blocking
//!
//! Every function here returns when its copy has ended, well or not; but for [`start()`], which
//! returns a [`Job`] at once. A host that interrupts the component meanwhile ends it with a trap,
//! which no code of the component sees.
//!
//! # Where the words are explained
//!
//! [`Summary`], [`Progress`], [`Cause`] and the values of the options are those of the package
//! `copyist:copy@0.2.0`, whose names are in kebab-case: where their documentation says
//! `existing.skip`, it is [`Existing::Skip`] here.

#![deny(missing_docs)]

mod bindings;
mod copy;
mod end;
mod endpoint;
mod error;
mod held;
mod job;
mod kind;
mod options;
mod paths;
mod preopens;
mod read;
mod summary;
mod tree;
mod words;

pub use crate::bindings::copyist::copy::jobs::Progress;
pub use crate::bindings::copyist::copy::types::{
    Cause, Durability, Existing, Limit, Method, Preserve, Reflink, Side, Sparse, Special, Summary,
    Symlinks, Window,
};
pub use crate::copy::copy;
pub use crate::end::{Destination, Location, Source};
pub use crate::endpoint::{Endpoint, EndpointError, endpoint, endpoints};
pub use crate::error::Error;
pub use crate::held::{HeldDestination, HeldSource};
pub use crate::job::{Job, start};
pub use crate::options::CopyOptions;
pub use crate::read::{ReadOptions, read, read_to_string};
pub use crate::tree::{CopiedTree, TreeEntry, TreeOptions, copy_tree};
#[doc(no_inline)]
pub use wasip2::filesystem::types::{Descriptor, ErrorCode};
#[doc(no_inline)]
pub use wasip2::io::poll::Pollable;
