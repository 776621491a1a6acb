//! `jobs`: none of it waits, so that both linkers share it.

use copyist_engine::{TreeEntry, TreeReport};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};
use wasmtime_wasi::p2::{DynPollable, subscribe};

use super::copy::answer;
use crate::bindings::jobs;
use crate::bindings::types::{Failure, Summary};
use crate::convert;
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

/// No guest makes the host hold more of them twice.
const LONGEST_PAGE: usize = 1000;

fn page(
    job: &Job,
    of: fn(&TreeReport, usize, usize) -> Vec<TreeEntry>,
    offset: u64,
    max: u32,
) -> Vec<Failure> {
    let Some(report) = job.report() else {
        return Vec::new();
    };
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let most = usize::try_from(max)
        .unwrap_or(LONGEST_PAGE)
        .min(LONGEST_PAGE);
    of(report, from, most)
        .into_iter()
        .map(convert::entry)
        .collect()
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

    fn failures(&mut self, job: Resource<Job>, offset: u64, max: u32) -> Result<Vec<Failure>> {
        Ok(page(self.job(&job)?, TreeReport::failed, offset, max))
    }

    fn skipped(&mut self, job: Resource<Job>, offset: u64, max: u32) -> Result<Vec<Failure>> {
        Ok(page(self.job(&job)?, TreeReport::skipped, offset, max))
    }

    fn drop(&mut self, job: Resource<Job>) -> Result<()> {
        self.table.delete(job)?.drop_alone();
        Ok(())
    }
}
