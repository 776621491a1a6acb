//! `endpoints`: granted channels by name. None of it waits, so that both linkers share it.

use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use crate::bindings::endpoints::{self, OpenError};
use crate::channel::{Closed, Held};
use crate::ctx::CopyCtxView;

impl From<Closed> for OpenError {
    fn from(why: Closed) -> Self {
        match why {
            Closed::Unknown => Self::Unknown,
            Closed::Busy => Self::Busy,
            Closed::Because(words) => Self::Other(words.to_owned()),
        }
    }
}

impl endpoints::Host for CopyCtxView<'_> {
    fn open(&mut self, name: String) -> Result<std::result::Result<Resource<Held>, OpenError>> {
        self.check_interrupt()?;
        let channel = self.ctx.channels().get(&name);
        match channel.map_or(Err(Closed::Unknown), |channel| channel.open()) {
            Ok(held) => Ok(Ok(self.table.push(held)?)),
            Err(why) => Ok(Err(why.into())),
        }
    }

    fn names(&mut self) -> Result<Vec<String>> {
        self.check_interrupt()?;
        let channels = self.ctx.channels().iter();
        let there = channels.filter(|(_, channel)| channel.is_there());
        Ok(there.map(|(name, _)| name.clone()).collect())
    }
}

impl endpoints::HostEndpoint for CopyCtxView<'_> {
    fn input(
        &mut self,
        endpoint: Resource<Held>,
    ) -> Result<std::result::Result<Resource<DynInputStream>, OpenError>> {
        self.check_interrupt()?;
        let spent = self.ctx.copier().spent();
        match self.table.get(&endpoint)?.input(spent) {
            Ok(stream) => Ok(Ok(self.table.push(stream)?)),
            Err(why) => Ok(Err(why.into())),
        }
    }

    fn output(
        &mut self,
        endpoint: Resource<Held>,
    ) -> Result<std::result::Result<Resource<DynOutputStream>, OpenError>> {
        self.check_interrupt()?;
        let spent = self.ctx.copier().spent();
        match self.table.get(&endpoint)?.output(spent) {
            Ok(stream) => Ok(Ok(self.table.push(stream)?)),
            Err(why) => Ok(Err(why.into())),
        }
    }

    fn finish(&mut self, endpoint: Resource<Held>) -> Result<()> {
        self.check_interrupt()?;
        self.table.get(&endpoint)?.finish();
        Ok(())
    }

    fn drop(&mut self, endpoint: Resource<Held>) -> Result<()> {
        self.table.delete(endpoint)?;
        Ok(())
    }
}
