//! The contract's functions on a store.

mod copy;
mod endpoints;
mod ends;
mod held;
mod jobs;
mod options;
mod read;
mod trees;

use wasmtime::component::{HasData, Linker};

use crate::bindings::{copy as copy_bindings, read as read_bindings, sync, types};
use crate::ctx::{CopyCtxView, CopyView};

/// What the linker is told about a store's data.
#[derive(Debug)]
pub struct CopyHost;

impl HasData for CopyHost {
    type Data<'a> = CopyCtxView<'a>;
}

/// Gives components `copyist:copy`, for hosts that call them with async. A call that waits for its
/// copy holds no thread.
///
/// wasmtime-wasi's own `add_to_linker_async` or `add_to_linker_sync` gives them the descriptors.
///
/// # Errors
///
/// Where the linker has one of the interfaces already.
pub fn add_to_linker<T: CopyView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    add_shared(linker)?;
    copy_bindings::add_to_linker::<T, CopyHost>(linker, T::copy)?;
    read_bindings::add_to_linker::<T, CopyHost>(linker, T::copy)
}

/// Gives components `copyist:copy`, for hosts that call them without async. A call waits for its
/// copy on the calling thread.
///
/// # Errors
///
/// Where the linker has one of the interfaces already.
pub fn add_to_linker_sync<T: CopyView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    add_shared(linker)?;
    sync::copy::add_to_linker::<T, CopyHost>(linker, T::copy)?;
    sync::read::add_to_linker::<T, CopyHost>(linker, T::copy)
}

fn add_shared<T: CopyView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    crate::bindings::endpoints::add_to_linker::<T, CopyHost>(linker, T::copy)?;
    crate::bindings::jobs::add_to_linker::<T, CopyHost>(linker, T::copy)?;
    types::add_to_linker::<T, CopyHost>(linker, T::copy)
}
