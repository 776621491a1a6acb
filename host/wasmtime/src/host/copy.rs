//! `copy`: the same request under both linkers; they differ in how they wait.

use copyist_engine::{Options, Request};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};

use crate::bindings::types::{Destination, Failure, Source, Summary};
use crate::bindings::{copy, sync};
use crate::convert;
use crate::copier::{CopyRequest, refused};
use crate::ctx::CopyCtxView;
use crate::report::What;
use crate::ticket::{Ended, Ticket};

type Engine = copyist_engine::Summary;

impl CopyCtxView<'_> {
    fn submit_copy(
        &self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Options>>,
    ) -> Result<Ticket<Engine>> {
        let options = self.options(options)?;
        let (source, destination) = (self.source(source)?, self.destination(destination)?);
        let why = match (source.found, destination.found) {
            (Ok((source, source_rights)), Ok((destination, destination_rights))) => {
                return Ok(self.ctx.copier().submit(CopyRequest {
                    request: Request {
                        source,
                        destination,
                        options,
                    },
                    source_rights,
                    destination_rights,
                }));
            }
            (Err(cause), _) => refused(cause, source.path.clone()),
            (_, Err(cause)) => refused(cause, destination.path.clone()),
        };
        let (source, destination) = (source.path, destination.path);
        Ok(self
            .ctx
            .copier()
            .refuse(What::Copy, source, destination, why))
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
        answer(self.submit_copy(source, destination, options)?.await)
    }
}

impl sync::copy::Host for CopyCtxView<'_> {
    fn transfer(
        &mut self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Options>>,
    ) -> Result<Result<Summary, Failure>> {
        answer(self.submit_copy(source, destination, options)?.wait())
    }
}
