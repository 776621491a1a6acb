//! `read`: whole files and streams to their ends, under both linkers.

use copyist_engine::{
    Cause, Destination, Errno, Error, Feed, Limit, Options, Request, Side, Summary,
};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};
use wasmtime_wasi::runtime::in_tokio;

use crate::bindings::types::{Failure, Source};
use crate::bindings::{read, sync};
use crate::channel::Uses;
use crate::convert;
use crate::copier::{Copier, CopyRequest, ReadRequest, refused};
use crate::ctx::CopyCtxView;
use crate::options::Asked;
use crate::pump::{Handles, Lent, Memory};
use crate::report::What;
use crate::rights::Rights;
use crate::ticket::{Ended, Ticket};

/// What a read came to before it is waited for.
enum Submitted<'a, T> {
    File(Ticket<T>),
    /// A stream, whose bytes are collected as they come.
    Stream(Box<Collecting<'a, T>>),
}

struct Collecting<'a, T> {
    ticket: Ticket<Summary>,
    lent: Lent<'a>,
    convert: fn(Vec<u8>) -> std::result::Result<T, Cause>,
}

/// Both ways to read: into bytes, or into text.
struct Kind<T> {
    submit: fn(&Copier, ReadRequest) -> Ticket<T>,
    convert: fn(Vec<u8>) -> std::result::Result<T, Cause>,
}

const BYTES: Kind<Vec<u8>> = Kind {
    submit: Copier::submit_read,
    convert: Ok,
};

const TEXT: Kind<String> = Kind {
    submit: Copier::submit_read_text,
    convert: |bytes| String::from_utf8(bytes).map_err(|_| Cause::NotUtf8),
};

impl CopyCtxView<'_> {
    fn submit_read<T: Send + 'static>(
        &mut self,
        source: Source,
        options: Option<Resource<Asked>>,
        limit: u64,
        kind: Kind<T>,
    ) -> Result<Submitted<'_, T>> {
        let options = self.options(options)?;
        let window = options.window;
        let mut lent = Handles::default();
        let mut source = self.source(source, &mut lent)?;
        let mut uses = Uses::new(source.channel.take(), None);
        let why = match source.found {
            // A read has no destination to begin anywhere in.
            Ok(_) if window.is_some_and(|window| window.destination_offset != 0) => {
                refused(Cause::Io(Side::Destination, Errno::INVAL), None)
            }
            Ok((source, rights)) if !(lent.is_empty() && uses.is_empty()) => {
                let limit = limit.min(self.ctx.copier().max_read());
                let mut options = Options {
                    window,
                    ..Options::default()
                };
                match uses.place(&mut options) {
                    Ok(()) => {
                        let ends = (source, rights, uses);
                        return self.collect(ends, options, limit, lent, kind.convert);
                    }
                    Err(cause) => refused(cause, None),
                }
            }
            Ok((source, rights)) => {
                let request = ReadRequest {
                    source,
                    rights,
                    window,
                    limit,
                };
                return Ok(Submitted::File((kind.submit)(self.ctx.copier(), request)));
            }
            Err(cause) => refused(cause, source.path.clone()),
        };
        let copier = self.ctx.copier();
        Ok(Submitted::File(copier.refuse(
            What::Read,
            source.path,
            None,
            why,
        )))
    }

    /// Reads a stream to its end, as a copy into memory.
    fn collect<T>(
        &mut self,
        (source, rights, uses): (copyist_engine::Source, Rights, Uses),
        options: Options,
        limit: u64,
        lent: Handles,
        convert: fn(Vec<u8>) -> std::result::Result<T, Cause>,
    ) -> Result<Submitted<'_, T>> {
        let feed = Feed::new();
        let request = CopyRequest {
            request: Request {
                source,
                destination: Destination::Feed(feed.clone()),
                options,
            },
            source_rights: rights,
            destination_rights: Rights::ALL,
        };
        let ticket = self.ctx.copier().submit_as(What::Read, request, uses);
        let mut lent = Lent::take(self.table, lent)?;
        let memory = Memory {
            limit,
            ..Memory::default()
        };
        lent.streams.memory = Some((memory, feed));
        Ok(Submitted::Stream(Box::new(Collecting {
            ticket,
            lent,
            convert,
        })))
    }
}

impl<T> Collecting<'_, T> {
    async fn end(mut self: Box<Self>) -> Result<Ended<T>> {
        let ended = self.lent.streams.carry(self.ticket).await?;
        let memory = self.lent.streams.memory.take().map(|(memory, _)| memory);
        let memory = memory.unwrap_or_default();
        Ok(match ended {
            Ended::Interrupted => Ended::Interrupted,
            Ended::With(Err(mut error)) => {
                if memory.is_over {
                    error.cause = Cause::Limit(Limit::ReadSize);
                }
                Ended::With(Err(error))
            }
            Ended::With(Ok(done)) => {
                Ended::With((self.convert)(memory.bytes).map_err(|cause| Error {
                    cause,
                    path: None,
                    done,
                }))
            }
        })
    }
}

impl<T: Send> Submitted<'_, T> {
    async fn end(self) -> Result<Ended<T>> {
        match self {
            Self::File(ticket) => Ok(ticket.await),
            Self::Stream(collecting) => collecting.end().await,
        }
    }

    fn wait(self) -> Result<Ended<T>> {
        match self {
            Self::File(ticket) => Ok(ticket.wait()),
            Self::Stream(collecting) => in_tokio(collecting.end()),
        }
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
        options: Option<Resource<Asked>>,
        limit: u64,
    ) -> Result<Result<Vec<u8>, Failure>> {
        answer(
            self.submit_read(source, options, limit, BYTES)?
                .end()
                .await?,
        )
    }

    async fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Asked>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        answer(
            self.submit_read(source, options, limit, TEXT)?
                .end()
                .await?,
        )
    }
}

impl sync::read::Host for CopyCtxView<'_> {
    fn bytes(
        &mut self,
        source: Source,
        options: Option<Resource<Asked>>,
        limit: u64,
    ) -> Result<Result<Vec<u8>, Failure>> {
        answer(self.submit_read(source, options, limit, BYTES)?.wait()?)
    }

    fn text(
        &mut self,
        source: Source,
        options: Option<Resource<Asked>>,
        limit: u64,
    ) -> Result<Result<String, Failure>> {
        answer(self.submit_read(source, options, limit, TEXT)?.wait()?)
    }
}
