//! `copy`: the same request under both linkers; they differ in how they wait.

use copyist_engine::{Options, Request};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};

use crate::bindings::types::{Destination, Failure, Source, Summary};
use crate::bindings::{copy, sync};
use crate::convert;
use crate::copier::CopyRequest;
use crate::ctx::CopyCtxView;
use crate::ticket::Ended;

type Engine = copyist_engine::Summary;

impl CopyCtxView<'_> {
    fn copy_request(
        &self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Options>>,
    ) -> Result<Result<CopyRequest, Failure>> {
        let options = self.options(options)?;
        let (source, destination) = match (self.source(source)?, self.destination(destination)?) {
            (Ok(source), Ok(destination)) => (source, destination),
            (Err(cause), _) | (_, Err(cause)) => return Ok(Err(convert::refused(cause))),
        };
        Ok(Ok(CopyRequest {
            request: Request {
                source: source.0,
                destination: destination.0,
                options,
            },
            source_rights: source.1,
            destination_rights: destination.1,
        }))
    }
}

fn answer(ended: Ended<Engine>) -> Result<Result<Summary, Failure>> {
    match ended {
        Ended::With(Ok(summary)) => Ok(Ok(convert::summary(summary))),
        Ended::With(Err(error)) => Ok(Err(convert::failure(error))),
        Ended::Interrupted => Err(Trap::Interrupt.into()),
    }
}

impl copy::Host for CopyCtxView<'_> {
    async fn transfer(
        &mut self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Options>>,
    ) -> Result<Result<Summary, Failure>> {
        match self.copy_request(source, destination, options)? {
            Ok(request) => answer(self.ctx.copier().submit(request).await),
            Err(failure) => Ok(Err(failure)),
        }
    }
}

impl sync::copy::Host for CopyCtxView<'_> {
    fn transfer(
        &mut self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Options>>,
    ) -> Result<Result<Summary, Failure>> {
        match self.copy_request(source, destination, options)? {
            Ok(request) => answer(self.ctx.copier().submit(request).wait()),
            Err(failure) => Ok(Err(failure)),
        }
    }
}
