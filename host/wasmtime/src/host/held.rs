//! The ends of a job, which has them for itself: as those of a call, but that streams are handed over.

use copyist_engine::{Destination, Feed, Source};
use wasmtime::Result;

use super::ends::End;
use crate::bindings::types as wit;
use crate::ctx::CopyCtxView;
use crate::pump::{Handles, Streams};
use crate::rights::Rights;

impl CopyCtxView<'_> {
    /// Streams are noted in `held`, since they are to be pumped.
    pub(super) fn held_source(
        &mut self,
        source: wit::HeldSource,
        held: &mut Streams,
    ) -> Result<End<Source>> {
        let lent = match source {
            wit::HeldSource::Path(location) => wit::Source::Path(location),
            wit::HeldSource::File(file) => wit::Source::File(file),
            wit::HeldSource::Channel(endpoint) => wit::Source::Channel(endpoint),
            wit::HeldSource::Input(stream) => {
                let feed = Feed::new();
                held.input = Some((self.table.delete(stream)?, feed.clone()));
                return Ok(End::without_path(Ok((Source::Feed(feed), Rights::ALL))));
            }
        };
        self.source(lent, &mut Handles::default())
    }

    /// As [`held_source`](Self::held_source).
    pub(super) fn held_destination(
        &mut self,
        destination: wit::HeldDestination,
        held: &mut Streams,
    ) -> Result<End<Destination>> {
        let lent = match destination {
            wit::HeldDestination::Path(location) => wit::Destination::Path(location),
            wit::HeldDestination::File(file) => wit::Destination::File(file),
            wit::HeldDestination::Channel(endpoint) => wit::Destination::Channel(endpoint),
            wit::HeldDestination::Output(stream) => {
                let feed = Feed::new();
                held.output = Some((self.table.delete(stream)?, feed.clone()));
                let found = (Destination::Feed(feed), Rights::ALL);
                return Ok(End::without_path(Ok(found)));
            }
        };
        self.destination(lent, &mut Handles::default())
    }
}
