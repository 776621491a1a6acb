//! The engine between two ends that its caller holds.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::channel;

use copyist_engine::{
    Cancel, Destination, Environment, Mechanism, Options, Owner, Pool, PoolOptions, Request,
    Source, Summary,
};
use wasmtime::Result;
use wasmtime::error::Context as _;

/// Who drives the copy.
pub(crate) enum Driver {
    /// The thread that asks.
    Caller(Environment),
    /// One of the pool's, as for all guests.
    Pool(Pool),
}

impl Driver {
    pub(crate) fn caller(environment: Environment) -> Self {
        Self::Caller(environment)
    }

    pub(crate) fn pool(environment: Environment) -> Self {
        Self::Pool(Pool::with_environment(PoolOptions::default(), environment))
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Caller(_) => "on the calling thread",
            Self::Pool(_) => "by the pool",
        }
    }

    /// Copies, and tells by which mechanism.
    pub(crate) fn copy(
        &self,
        source: File,
        destination: File,
        zero_copy: bool,
    ) -> Result<Option<Mechanism>> {
        let request = Request {
            source: Source::File(Arc::new(source)),
            destination: Destination::File(Arc::new(destination)),
            options: Options {
                zero_copy,
                ..Options::default()
            },
        };
        let summary: Summary = match self {
            Self::Caller(environment) => {
                copyist_engine::copy_in(environment, request, &Cancel::new())
                    .context("the engine cannot copy")?
            }
            Self::Pool(pool) => {
                let (tell, told) = channel();
                pool.copy(Owner(0), request, Cancel::new(), move |outcome| {
                    let _ = tell.send(outcome);
                });
                told.recv()?.context("the engine cannot copy")?
            }
        };
        Ok(summary.method)
    }
}
