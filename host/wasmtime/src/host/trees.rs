//! Trees: as copies, but that both ends are names.

use copyist_engine::{Error, Side, TreeRequest};
use wasmtime::component::Resource;
use wasmtime::{Result, Trap};

use crate::bindings::types::{Failure, Location};
use crate::convert;
use crate::copier::{CopyTreeRequest, refused};
use crate::ctx::CopyCtxView;
use crate::job::Job;
use crate::options::Asked;
use crate::report::What;
use crate::ticket::{Ended, Ticket};

type Engine = copyist_engine::Summary;

impl CopyCtxView<'_> {
    pub(super) fn submit_tree(
        &self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<Ticket<Engine>> {
        Ok(match self.tree(source, destination, options)? {
            Ok(request) => self.ctx.copier().submit_tree(request),
            Err(ticket) => ticket,
        })
    }

    pub(super) fn begin_tree(
        &mut self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<std::result::Result<Resource<Job>, Failure>> {
        let started = match self.tree(source, destination, options)? {
            Ok(request) => self.ctx.copier().submit_tree_job(request),
            Err(ticket) => Err(ticket.wait()),
        };
        match started {
            Ok(job) => Ok(Ok(self.table.push(job)?)),
            Err(Ended::With(Err(error))) => Ok(Err(convert::failure(error))),
            Err(Ended::Interrupted | Ended::With(Ok(_))) => Err(Trap::Interrupt.into()),
        }
    }

    /// What is asked for, or how it ended where it cannot even be asked for.
    fn tree(
        &self,
        source: Location,
        destination: Location,
        options: Option<Resource<Asked>>,
    ) -> Result<std::result::Result<CopyTreeRequest, Ticket<Engine>>> {
        let asked = self.asked(options)?;
        let source = self.root(source, Side::Source)?;
        let destination = self.root(destination, Side::Destination)?;
        let why: Error = match (source.found, destination.found, asked.of_tree()) {
            (Ok((source, source_rights)), Ok((destination, destination_rights)), Ok(options)) => {
                return Ok(Ok(CopyTreeRequest {
                    request: TreeRequest {
                        source,
                        destination,
                        options,
                    },
                    source_rights,
                    destination_rights,
                }));
            }
            (Err(cause), ..) => refused(cause, source.path.clone()),
            (_, Err(cause), _) => refused(cause, destination.path.clone()),
            (.., Err(cause)) => refused(cause, None),
        };
        let copier = self.ctx.copier();
        Ok(Err(copier.refuse(
            What::Tree,
            source.path,
            destination.path,
            why,
        )))
    }
}
