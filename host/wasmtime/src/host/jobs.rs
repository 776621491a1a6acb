//! `jobs`: none of it waits, so that both linkers share it.

use wasmtime::component::Resource;
use wasmtime::{Result, Trap};
use wasmtime_wasi::p2::{DynPollable, subscribe};

use super::copy::answer;
use crate::bindings::jobs;
use crate::bindings::types::{Failure, Summary};
use crate::ctx::CopyCtxView;
use crate::job::Job;

impl CopyCtxView<'_> {
    /// Every call of an interrupted store traps, so that a guest which woke from a poll ends too.
    pub(super) fn check_interrupt(&self) -> Result<()> {
        if self.ctx.interrupt_handle().is_interrupted() {
            return Err(Trap::Interrupt.into());
        }
        Ok(())
    }

    fn job(&self, job: &Resource<Job>) -> Result<&Job> {
        self.check_interrupt()?;
        Ok(self.table.get(job)?)
    }
}

impl jobs::Host for CopyCtxView<'_> {}

impl jobs::HostJob for CopyCtxView<'_> {
    fn subscribe(&mut self, job: Resource<Job>) -> Result<Resource<DynPollable>> {
        let settlement = self.job(&job)?.settlement();
        // No child of the job: it goes with its pollable.
        let settlement = self.table.push(settlement)?;
        subscribe(self.table, settlement)
    }

    fn progress(&mut self, job: Resource<Job>) -> Result<jobs::Progress> {
        let progress = self.job(&job)?.progress();
        Ok(jobs::Progress {
            bytes: progress.map_or(0, copyist_engine::Progress::bytes),
            total: progress.and_then(copyist_engine::Progress::total),
            entries: progress.map_or(0, copyist_engine::Progress::entries),
        })
    }

    fn cancel(&mut self, job: Resource<Job>) -> Result<()> {
        self.job(&job)?.cancel();
        Ok(())
    }

    fn outcome(
        &mut self,
        job: Resource<Job>,
    ) -> Result<Option<std::result::Result<Summary, Failure>>> {
        self.job(&job)?.outcome().map(answer).transpose()
    }

    fn drop(&mut self, job: Resource<Job>) -> Result<()> {
        self.table.delete(job)?.drop_alone();
        Ok(())
    }
}
