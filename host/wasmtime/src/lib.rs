//! Lets components that run in wasmtime copy files at the speed of the host.
//!
//! A host that already gives its guests `wasi:filesystem` by
//! [`wasmtime_wasi`] adds a [`CopyCtx`] to its store's data and one call to its linker:
//!
//! ```
//! use copyist_wasmtime::{CopyCtx, CopyCtxView, CopyView};
//! use wasmtime::component::{Linker, ResourceTable};
//! use wasmtime::{Engine, Store};
//! use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
//!
//! struct State {
//!     wasi: WasiCtx,
//!     copy: CopyCtx,
//!     table: ResourceTable,
//! }
//!
//! impl WasiView for State {
//!     fn ctx(&mut self) -> WasiCtxView<'_> {
//!         WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
//!     }
//! }
//!
//! impl CopyView for State {
//!     fn copy(&mut self) -> CopyCtxView<'_> {
//!         CopyCtxView { ctx: &mut self.copy, table: &mut self.table }
//!     }
//! }
//!
//! # fn main() -> wasmtime::Result<()> {
//! let engine = Engine::default();
//! let mut linker = Linker::<State>::new(&engine);
//! wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
//! copyist_wasmtime::add_to_linker(&mut linker)?;
//!
//! let state = State {
//!     wasi: WasiCtx::builder().build(),
//!     // At most 1 GiB a copy, whatever the guest asks for.
//!     copy: CopyCtx::builder().max_bytes(1 << 30).build(),
//!     table: ResourceTable::new(),
//! };
//! // Ends whatever this store copies, from any thread; for a deadline there is an `EpochClock`.
//! let interrupt = state.copy.interrupt_handle();
//! let store = Store::new(&engine, state);
//! # let _ = (store, interrupt);
//! # Ok(())
//! # }
//! ```
//!
//! # What a guest can do
//!
//! It names files by the descriptors that it holds, which are wasmtime-wasi's own, in the same
//! [`ResourceTable`](wasmtime::component::ResourceTable); a copy gives it nothing that
//! `wasi:filesystem` would not, but for the permission bits of its source (read, write, execute): a
//! source needs the right to be read, a destination the right to be written, every path stays beneath
//! its directory, and neither setuid bits nor owners nor capabilities are carried over unless the
//! builder grants it.
//!
//! # Channels
//!
//! What an embedder grants under a name by [`CopyCtxBuilder::endpoint`], a pipe, a socket, a terminal,
//! a guest opens by `endpoints.open`. It is a source or a destination like any other, and a stream of
//! `wasi:io` for what goes before and after. [`Endpoint::owned`] gives a descriptor away,
//! [`Endpoint::shared`] lends one. Nothing that a guest does with it blocks a thread of the host's on
//! the peer, but for a call under [`add_to_linker_sync`].
//!
//! # Threads
//!
//! Copies run on the threads of a bounded [`Pool`](copyist_engine::Pool), one for the process unless
//! [`CopyCtxBuilder::pool`] gives another. A call waits for its copy without holding a thread under
//! [`add_to_linker`], and on its thread under [`add_to_linker_sync`].
//!
//! # Interrupts
//!
//! wasmtime looks at a store's epoch when wasm code runs, not while the guest waits in a host call.
//! [`InterruptHandle::interrupt`] ends that wait with `Trap::Interrupt`, whatever the kernel is
//! doing, and makes every later call trap too; a store that traps is spent.
//!
//! An [`EpochClock`] does so when a deadline passes, and ends as well a guest that computes, or that
//! waits in any other host function: use it where you would call `Engine::increment_epoch`. On a
//! store that is attached to a clock, the handle ends a guest that computes too, at the next tick.
//!
//! # Below WASI
//!
//! A host that implements `wasi:filesystem` itself calls [`Copier::submit`] with open files and the
//! rights that its guest has to them.

#![deny(missing_docs)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("copyist-wasmtime runs on Linux and macOS");

mod bindings;
mod channel;
mod clock;
mod convert;
mod copier;
mod ctx;
mod endpoint;
mod exclude;
mod host;
mod job;
mod options;
mod pump;
mod report;
mod rights;
mod span;
mod store_state;
mod ticket;

pub use clock::{Attachment, Deadline, EpochClock, Measure, Ticks};
pub use copier::{Copier, CopyRequest, CopyTreeRequest, ReadRequest};
/// The engine that copies, for the types that cross its boundary.
pub use copyist_engine as engine;
pub use ctx::{CopyCtx, CopyCtxBuilder, CopyCtxView, CopyView};
pub use endpoint::{Direction, Endpoint};
pub use host::{CopyHost, add_to_linker, add_to_linker_sync};
pub use report::{Report, Started, What};
pub use rights::Rights;
pub use store_state::InterruptHandle;
pub use ticket::{Ended, Ticket};
