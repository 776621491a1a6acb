//! `read`: whole files, under both linkers.

use copyist_engine::{Cause, Errno, Options, Side};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};

use crate::bindings::types::{Failure, Source};
use crate::bindings::{read, sync};
use crate::convert;
use crate::copier::{Copier, ReadRequest, refused};
use crate::ctx::CopyCtxView;
use crate::report::What;
use crate::ticket::{Ended, Ticket};

impl CopyCtxView<'_> {
    fn submit_read<T: Send + 'static>(
        &self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
        submit: fn(&Copier, ReadRequest) -> Ticket<T>,
    ) -> Result<Ticket<T>> {
        let window = self.options(options)?.window;
        let source = self.source(source)?;
        let why = match source.found {
            // A read has no destination to begin anywhere in.
            Ok(_) if window.is_some_and(|window| window.destination_offset != 0) => {
                refused(Cause::Io(Side::Destination, Errno::INVAL), None)
            }
            Ok((source, rights)) => {
                let request = ReadRequest {
                    source,
                    rights,
                    window,
                    limit,
                };
                return Ok(submit(self.ctx.copier(), request));
            }
            Err(cause) => refused(cause, source.path.clone()),
        };
        Ok(self.ctx.copier().refuse(What::Read, source.path, None, why))
    }
}

fn answer<T>(ended: Ended<T>) -> Result<Result<T, Failure>> {
    match ended {
        Ended::With(outcome) => Ok(outcome.map_err(convert::failure)),
        Ended::Interrupted => Err(Trap::Interrupt.into()),
    }
}

impl read::Host for CopyCtxView<'_> {
    async fn bytes(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<Vec<u8>, Failure>> {
        answer(
            self.submit_read(source, options, limit, Copier::submit_read)?
                .await,
        )
    }

    async fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        answer(
            self.submit_read(source, options, limit, Copier::submit_read_text)?
                .await,
        )
    }
}

impl sync::read::Host for CopyCtxView<'_> {
    fn bytes(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<Vec<u8>, Failure>> {
        answer(
            self.submit_read(source, options, limit, Copier::submit_read)?
                .wait(),
        )
    }

    fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        answer(
            self.submit_read(source, options, limit, Copier::submit_read_text)?
                .wait(),
        )
    }
}
