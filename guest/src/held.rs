//! What a job can read from and write to.

use wasip2::io::streams::{InputStream, OutputStream};

use crate::bindings::copyist::copy::types as wit;
use crate::error::{Name, Problem};
use crate::{Descriptor, Endpoint, Location};

/// Where the bytes of a [`Job`](crate::Job) come from.
///
/// Made by `into` from whatever a [`Source`](crate::Source) is made of, but that a stream is handed
/// over. More kinds will follow.
#[derive(Debug)]
#[non_exhaustive]
pub enum HeldSource<'a> {
    /// A file by name.
    Path(Location<'a>),
    /// An open file, which needs the right to be read. It may be closed while the job goes on.
    File(&'a Descriptor),
    /// A channel that the host granted. It may be dropped while the job goes on.
    Endpoint(&'a Endpoint),
    /// A stream, from where it stands. What was subscribed of it must be dropped before.
    Input(InputStream),
}

/// Where the bytes of a [`Job`](crate::Job) go.
///
/// Made by `into` from whatever a [`Destination`](crate::Destination) is made of, but that a stream is
/// handed over. More kinds will follow.
#[derive(Debug)]
#[non_exhaustive]
pub enum HeldDestination<'a> {
    /// A file by name, in a directory that may be changed. It is created where it does not exist.
    Path(Location<'a>),
    /// An open file, which needs the right to be written. It may be closed while the job goes on.
    File(&'a Descriptor),
    /// A channel that the host granted. It may be dropped while the job goes on.
    Endpoint(&'a Endpoint),
    /// A stream, where it stands. What was subscribed of it must be dropped before.
    Output(OutputStream),
}

impl<'a> HeldSource<'a> {
    /// As its author wrote it, for errors.
    pub(crate) fn name(&self) -> Name {
        match self {
            HeldSource::Path(location) => Name::Path(location.name()),
            HeldSource::File(_) => Name::File,
            HeldSource::Endpoint(endpoint) => Name::Endpoint(endpoint.name().to_owned()),
            HeldSource::Input(_) => Name::Stream,
        }
    }

    pub(crate) fn resolve(self) -> Result<wit::HeldSource<'a>, Problem> {
        Ok(match self {
            HeldSource::Path(location) => wit::HeldSource::Path(location.resolve()?),
            HeldSource::File(file) => wit::HeldSource::File(file),
            HeldSource::Endpoint(endpoint) => wit::HeldSource::Channel(endpoint.host()),
            HeldSource::Input(stream) => wit::HeldSource::Input(stream),
        })
    }
}

impl<'a> HeldDestination<'a> {
    /// As its author wrote it, for errors.
    pub(crate) fn name(&self) -> Name {
        match self {
            HeldDestination::Path(location) => Name::Path(location.name()),
            HeldDestination::File(_) => Name::File,
            HeldDestination::Endpoint(endpoint) => Name::Endpoint(endpoint.name().to_owned()),
            HeldDestination::Output(_) => Name::Stream,
        }
    }

    pub(crate) fn resolve(self) -> Result<wit::HeldDestination<'a>, Problem> {
        Ok(match self {
            HeldDestination::Path(location) => wit::HeldDestination::Path(location.resolve()?),
            HeldDestination::File(file) => wit::HeldDestination::File(file),
            HeldDestination::Endpoint(endpoint) => wit::HeldDestination::Channel(endpoint.host()),
            HeldDestination::Output(stream) => wit::HeldDestination::Output(stream),
        })
    }
}

impl<'a> From<&'a Descriptor> for HeldSource<'a> {
    fn from(file: &'a Descriptor) -> Self {
        HeldSource::File(file)
    }
}

impl<'a> From<&'a Descriptor> for HeldDestination<'a> {
    fn from(file: &'a Descriptor) -> Self {
        HeldDestination::File(file)
    }
}

impl From<InputStream> for HeldSource<'_> {
    fn from(stream: InputStream) -> Self {
        HeldSource::Input(stream)
    }
}

impl From<OutputStream> for HeldDestination<'_> {
    fn from(stream: OutputStream) -> Self {
        HeldDestination::Output(stream)
    }
}

impl<'a> From<&'a Endpoint> for HeldSource<'a> {
    fn from(endpoint: &'a Endpoint) -> Self {
        HeldSource::Endpoint(endpoint)
    }
}

impl<'a> From<&'a Endpoint> for HeldDestination<'a> {
    fn from(endpoint: &'a Endpoint) -> Self {
        HeldDestination::Endpoint(endpoint)
    }
}
