//! `read`: whole files, under both linkers.

use copyist_engine::{Cause, Errno, Options, Side};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};

use crate::bindings::types::{Failure, Source};
use crate::bindings::{read, sync};
use crate::convert;
use crate::copier::ReadRequest;
use crate::ctx::CopyCtxView;
use crate::ticket::Ended;

impl CopyCtxView<'_> {
    fn read_request(
        &self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<ReadRequest, Failure>> {
        let window = self.options(options)?.window;
        if window.is_some_and(|window| window.destination_offset != 0) {
            let nowhere = Cause::Io(Side::Destination, Errno::INVAL);
            return Ok(Err(convert::refused(nowhere)));
        }
        Ok(match self.source(source)? {
            Ok((source, rights)) => Ok(ReadRequest {
                source,
                rights,
                window,
                limit,
            }),
            Err(cause) => Err(convert::refused(cause)),
        })
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
        match self.read_request(source, options, limit)? {
            Ok(request) => answer(self.ctx.copier().submit_read(request).await),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        match self.read_request(source, options, limit)? {
            Ok(request) => answer(self.ctx.copier().submit_read_text(request).await),
            Err(failure) => Ok(Err(failure)),
        }
    }
}

impl sync::read::Host for CopyCtxView<'_> {
    fn bytes(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<Vec<u8>, Failure>> {
        match self.read_request(source, options, limit)? {
            Ok(request) => answer(self.ctx.copier().submit_read(request).wait()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Options>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        match self.read_request(source, options, limit)? {
            Ok(request) => answer(self.ctx.copier().submit_read_text(request).wait()),
            Err(failure) => Ok(Err(failure)),
        }
    }
}
