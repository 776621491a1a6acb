//! Granted channels.

use wasmtime::component::Resource;

use crate::bindings::endpoints;
use crate::ctx::CopyCtxView;

/// A granted channel. None can be made in this version, so that no guest ever holds one.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the bindings want it public")]
pub enum Endpoint {}

impl endpoints::Host for CopyCtxView<'_> {}

impl endpoints::HostEndpoint for CopyCtxView<'_> {
    fn drop(&mut self, endpoint: Resource<Endpoint>) -> wasmtime::Result<()> {
        self.table.delete(endpoint)?;
        Ok(())
    }
}
