//! A copy that its guest does not wait for: it stands in the store's table.

use std::sync::Arc;

use copyist_engine::{Progress, Summary, TreeReport};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::Pollable;
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;

use crate::store_state::StoreState;
use crate::ticket::{Ended, Shared, Ticket};

/// A copy under way, or its outcome.
///
/// The guest drops one alone. Otherwise it is the table that goes away, with all jobs of its store:
/// the first tells every other one, so that they end side by side and not one grace after the other.
#[expect(unreachable_pub, reason = "the bindings want it public")]
pub struct Job {
    ticket: Ticket<Summary>,
    /// Absent once the guest drops it.
    store: Option<Arc<StoreState>>,
    /// What of a tree failed or was left out.
    report: Option<TreeReport>,
    /// What passes the bytes of its streams. They end with the copy, or with the job.
    pumps: Vec<AbortOnDropJoinHandle<()>>,
}

impl Job {
    pub(crate) fn new(ticket: Ticket<Summary>, store: Arc<StoreState>) -> Self {
        Self {
            ticket,
            store: Some(store),
            report: None,
            pumps: Vec::new(),
        }
    }

    /// With what passes the bytes of its streams.
    pub(crate) fn with_pumps(mut self, pumps: Vec<AbortOnDropJoinHandle<()>>) -> Self {
        self.pumps = pumps;
        self
    }

    /// Of a tree.
    pub(crate) fn with_report(mut self, report: TreeReport) -> Self {
        self.report = Some(report);
        self
    }

    pub(crate) fn report(&self) -> Option<&TreeReport> {
        self.report.as_ref()
    }

    pub(crate) fn progress(&self) -> Option<&Progress> {
        self.ticket.progress()
    }

    pub(crate) fn cancel(&self) {
        self.ticket.cancel();
    }

    /// None while it is under way.
    pub(crate) fn outcome(&self) -> Option<Ended<Summary>> {
        self.ticket.look()
    }

    /// What a pollable stands on. It knows nothing of the table, so that it outlives the job.
    pub(crate) fn settlement(&self) -> Settlement {
        Settlement(self.ticket.shared().clone())
    }

    /// Drops it for the guest.
    pub(crate) fn drop_alone(mut self) {
        self.store = None;
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.ticket.fmt(f)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(store) = &self.store
            && self.ticket.is_wanted()
        {
            store.abandon_jobs(self.ticket.end_of_grace());
        }
        // The ticket waits, as it is dropped now.
    }
}

/// That a job has ended, or its store is interrupted.
pub(crate) struct Settlement(Arc<Shared<Summary>>);

#[async_trait]
impl Pollable for Settlement {
    async fn ready(&mut self) {
        self.0.settled().await;
    }
}
