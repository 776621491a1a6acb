//! `copy`: the same request under both linkers; they differ in how they wait.

use std::path::PathBuf;

use copyist_engine::{Error, Options, Request};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};
use wasmtime_wasi::runtime::in_tokio;

use super::ends::End;
use crate::bindings::types::{
    Destination, Failure, HeldDestination, HeldSource, Location, Source, Summary,
};
use crate::bindings::{copy, sync};
use crate::channel::Uses;
use crate::convert;
use crate::copier::{CopyRequest, refused};
use crate::ctx::CopyCtxView;
use crate::job::Job;
use crate::options::Asked;
use crate::pump::{Handles, Lent, Streams};
use crate::report::What;
use crate::ticket::{Ended, Ticket};

type Engine = copyist_engine::Summary;

impl CopyCtxView<'_> {
    fn submit_copy(
        &self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Asked>>,
        lent: &mut Handles,
    ) -> Result<Ticket<Engine>> {
        let options = self.options(options)?;
        let source = self.source(source, lent)?;
        let destination = self.destination(destination, lent)?;
        Ok(match request(source, destination, options) {
            Ok((request, uses)) => self.ctx.copier().submit_as(What::Copy, request, uses),
            Err(refusal) => self.refuse(*refusal),
        })
    }

    fn start(
        &mut self,
        source: HeldSource,
        destination: HeldDestination,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Resource<Job>, Failure>> {
        let options = self.options(options)?;
        let mut held = Streams::default();
        let source = self.held_source(source, &mut held)?;
        let destination = self.held_destination(destination, &mut held)?;
        let started = match request(source, destination, options) {
            Ok((request, uses)) => self.ctx.copier().submit_job(request, uses),
            Err(refusal) => Err(self.refuse(*refusal).wait()),
        };
        match started {
            Ok(job) => Ok(Ok(self.table.push(job.with_pumps(held.run()))?)),
            Err(Ended::With(Err(error))) => Ok(Err(convert::failure(error))),
            Err(Ended::Interrupted | Ended::With(Ok(_))) => Err(Trap::Interrupt.into()),
        }
    }

    /// It ends at once.
    fn refuse(&self, refusal: Refusal) -> Ticket<Engine> {
        let Refusal {
            source,
            destination,
            why,
        } = refusal;
        let copier = self.ctx.copier();
        copier.refuse(What::Copy, source, destination, why)
    }
}

/// Ends that cannot even be asked for.
struct Refusal {
    source: Option<PathBuf>,
    destination: Option<PathBuf>,
    why: Error,
}

/// Both ends as one request, with the channels among them.
fn request(
    source: End<copyist_engine::Source>,
    destination: End<copyist_engine::Destination>,
    mut options: Options,
) -> std::result::Result<(CopyRequest, Uses), Box<Refusal>> {
    let mut uses = Uses::new(source.channel, destination.channel);
    let placed = uses.place(&mut options);
    let why = match (source.found, destination.found) {
        (Ok((source, source_rights)), Ok((destination, destination_rights))) => match placed {
            Ok(()) => {
                let request = CopyRequest {
                    request: Request {
                        source,
                        destination,
                        options,
                    },
                    source_rights,
                    destination_rights,
                };
                return Ok((request, uses));
            }
            Err(cause) => refused(cause, None),
        },
        (Err(cause), _) => refused(cause, source.path.clone()),
        (_, Err(cause)) => refused(cause, destination.path.clone()),
    };
    Err(Box::new(Refusal {
        source: source.path,
        destination: destination.path,
        why,
    }))
}

pub(super) fn answer(ended: Ended<Engine>) -> Result<Result<Summary, Failure>> {
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
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Summary, Failure>> {
        let mut lent = Handles::default();
        let ticket = self.submit_copy(source, destination, options, &mut lent)?;
        if lent.is_empty() {
            return answer(ticket.await);
        }
        let mut lent = Lent::take(self.table, lent)?;
        answer(lent.streams.carry(ticket).await?)
    }

    fn start_transfer(
        &mut self,
        source: HeldSource,
        destination: HeldDestination,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Resource<Job>, Failure>> {
        self.start(source, destination, options)
    }

    async fn tree(
        &mut self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Summary, Failure>> {
        let ticket = self.submit_tree(source, destination, options)?;
        answer(ticket.await)
    }

    fn start_tree(
        &mut self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Resource<Job>, Failure>> {
        self.begin_tree(source, destination, options)
    }
}

impl sync::copy::Host for CopyCtxView<'_> {
    fn transfer(
        &mut self,
        source: Source,
        destination: Destination,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Summary, Failure>> {
        let mut lent = Handles::default();
        let ticket = self.submit_copy(source, destination, options, &mut lent)?;
        if lent.is_empty() {
            return answer(ticket.wait());
        }
        let mut lent = Lent::take(self.table, lent)?;
        answer(in_tokio(lent.streams.carry(ticket))?)
    }

    fn start_transfer(
        &mut self,
        source: HeldSource,
        destination: HeldDestination,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Resource<Job>, Failure>> {
        self.start(source, destination, options)
    }

    fn tree(
        &mut self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Summary, Failure>> {
        answer(self.submit_tree(source, destination, options)?.wait())
    }

    fn start_tree(
        &mut self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<Result<Resource<Job>, Failure>> {
        self.begin_tree(source, destination, options)
    }
}
