//! What a store needs to copy, and how an embedder makes it.

use std::sync::Arc;
use std::time::Duration;

use copyist_engine::{Grants, Pool, Quota, TreeGrants, TreeLimits, Tuning};
use wasmtime::component::ResourceTable;

use crate::channel::{Channel, Channels};
use crate::copier::{Copier, Policy};
use crate::endpoint::Endpoint;
use crate::report::{Report, Started};
use crate::store_state::InterruptHandle;

/// One store's right to copy, with its limits.
#[derive(Clone, Debug)]
pub struct CopyCtx {
    copier: Copier,
    channels: Channels,
}

impl CopyCtx {
    /// Starts one with the defaults: no bound on bytes, 256 copies at once, reads of 64 MiB,
    /// nothing granted.
    pub fn builder() -> CopyCtxBuilder {
        CopyCtxBuilder::default()
    }

    /// The core that takes plain descriptors.
    pub fn copier(&self) -> &Copier {
        &self.copier
    }

    pub(crate) fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Ends what this store copies. See [`InterruptHandle`].
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.copier.interrupt_handle()
    }
}

impl Default for CopyCtx {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Makes a [`CopyCtx`].
#[derive(Clone, Default)]
pub struct CopyCtxBuilder {
    policy: Policy,
    channels: Channels,
}

impl CopyCtxBuilder {
    /// Bytes of one copy or read; a hole counts like data. More is `limit(bytes)`, and where the
    /// source says so before, nothing is created.
    pub fn max_bytes(&mut self, bytes: u64) -> &mut Self {
        self.policy.max_bytes = Some(bytes);
        self
    }

    /// Bytes of all copies and reads together, of this store alone.
    pub fn max_total_bytes(&mut self, bytes: u64) -> &mut Self {
        self.quota(Arc::new(Quota::new(bytes)))
    }

    /// As [`max_total_bytes`](Self::max_total_bytes), shared with other stores.
    pub fn quota(&mut self, quota: Arc<Quota>) -> &mut Self {
        self.policy.total = Some(quota);
        self
    }

    /// Copies and reads under way at once, those that wait for a thread and jobs that have not ended
    /// included.
    pub fn max_copies(&mut self, copies: usize) -> &mut Self {
        self.policy.max_copies = copies;
        self
    }

    /// Bytes of a whole-file read, which the host holds in memory once.
    pub fn max_read_size(&mut self, bytes: u64) -> &mut Self {
        self.policy.max_read = bytes;
        self
    }

    /// What the guest may do beyond what WASI allows.
    pub fn grants(&mut self, grants: Grants) -> &mut Self {
        self.policy.grants = grants;
        self
    }

    /// What the guest may make in trees beyond what WASI allows.
    pub fn tree_grants(&mut self, grants: TreeGrants) -> &mut Self {
        self.policy.tree_grants = grants;
        self
    }

    /// How many entries a tree may have and how deep it may be. Its bytes are those of
    /// [`max_bytes`](Self::max_bytes), all together.
    pub fn tree_limits(&mut self, limits: TreeLimits) -> &mut Self {
        self.policy.tree_limits = limits;
        self
    }

    /// Switches for tests and measurements.
    pub fn tuning(&mut self, tuning: Tuning) -> &mut Self {
        self.policy.tuning = tuning;
        self
    }

    /// How long the drop of a call or a job waits for its copy to clean up, and that of a store for
    /// all of its jobs together. 50 ms unless set.
    pub fn grace(&mut self, grace: Duration) -> &mut Self {
        self.policy.grace = grace;
        self
    }

    /// The threads that copy. One pool serves the whole process unless set.
    pub fn pool(&mut self, pool: Arc<Pool>) -> &mut Self {
        self.policy.pool = pool;
        self
    }

    /// Called when a copy is handed to the threads, on the thread that asked; of whole-file reads
    /// not, which are one call of the system. It must not block.
    pub fn on_start(
        &mut self,
        observer: impl Fn(&Started<'_>) + Send + Sync + 'static,
    ) -> &mut Self {
        self.policy.starter = Some(Arc::new(observer));
        self
    }

    /// Called after each copy, on the copying thread; after one that was refused before it got
    /// there, on the thread that asked, and after one that was cancelled before, on the thread that
    /// cancelled it. It must not block.
    pub fn on_copy(&mut self, observer: impl Fn(&Report<'_>) + Send + Sync + 'static) -> &mut Self {
        self.policy.observer = Some(Arc::new(observer));
        self
    }

    /// Lets the guest open a channel under this name; one that had it before is no longer granted.
    ///
    /// Contexts that are built by this builder, or by its clones, share the endpoint: whichever guest
    /// opens it has it alone until it drops it.
    pub fn endpoint(&mut self, name: impl Into<String>, endpoint: Endpoint) -> &mut Self {
        let channel = Arc::new(Channel::new(endpoint));
        self.channels.insert(name.into(), channel);
        self
    }

    /// Makes the context.
    pub fn build(&self) -> CopyCtx {
        CopyCtx {
            copier: Copier::new(self.policy.clone()),
            channels: self.channels.clone(),
        }
    }
}

impl std::fmt::Debug for CopyCtxBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyCtxBuilder").finish_non_exhaustive()
    }
}

/// A store's [`CopyCtx`] and its table of resources, which is the one that WASI uses.
#[derive(Debug)]
pub struct CopyCtxView<'a> {
    /// The right to copy.
    pub ctx: &'a mut CopyCtx,
    /// Where the descriptors are.
    pub table: &'a mut ResourceTable,
}

/// Implemented by a store's data.
pub trait CopyView: Send {
    /// Lends both.
    fn copy(&mut self) -> CopyCtxView<'_>;
}

impl<T: CopyView> CopyView for &mut T {
    fn copy(&mut self) -> CopyCtxView<'_> {
        T::copy(self)
    }
}
