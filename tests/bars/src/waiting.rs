//! The waits that a deadline ends, each with a guest's words and what keeps it waiting.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use copyist_wasmtime::{CopyCtx, CopyCtxBuilder, Endpoint};
use wasmtime::Result;

use crate::bars;
use crate::place::Place;
use crate::streams::ends::{self, Kind};

/// Where a guest is when its time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    IdlePipe,
    SilentSocket,
    FullPipe,
    FullSocket,
    NoWriter,
    NoReader,
    Job,
    Stream,
    /// It copies a large file.
    Regular,
}

impl Wait {
    pub(crate) const ALL: [Self; 9] = [
        Self::IdlePipe,
        Self::SilentSocket,
        Self::FullPipe,
        Self::FullSocket,
        Self::NoWriter,
        Self::NoReader,
        Self::Job,
        Self::Stream,
        Self::Regular,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::IdlePipe => "an idle pipe",
            Self::SilentSocket => "a silent socket",
            Self::FullPipe => "a full pipe",
            Self::FullSocket => "a full socket",
            Self::NoWriter => "a FIFO without a writer",
            Self::NoReader => "a FIFO without a reader",
            Self::Job => "a job",
            Self::Stream => "a read of a stream",
            Self::Regular => "a regular copy",
        }
    }

    /// The words of the guest program `wait`.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::IdlePipe | Self::SilentSocket => &["small", "scratch", "@in", "to"],
            Self::FullPipe | Self::FullSocket => &["small", "scratch", "large", "@out"],
            Self::NoWriter => &["small", "scratch", "fifo-0", "to"],
            Self::NoReader => &["small", "scratch", "small", "fifo-0"],
            Self::Job => &["small", "scratch", "fifo", "to", "--jobs=1"],
            Self::Stream => &["small", "scratch", "@in", "to", "--stream"],
            Self::Regular => &["small", "scratch", "large", "to"],
        }
    }

    /// What it is granted, and who is at the other end.
    pub(crate) fn granted(self) -> Result<(CopyCtxBuilder, Option<File>)> {
        let mut copy = CopyCtx::builder();
        let (name, kind) = match self {
            Self::IdlePipe | Self::Stream => ("in", Kind::Pipe),
            Self::SilentSocket => ("in", Kind::Socket),
            Self::FullPipe => ("out", Kind::Pipe),
            Self::FullSocket => ("out", Kind::Socket),
            Self::NoWriter | Self::NoReader | Self::Job | Self::Regular => return Ok((copy, None)),
        };
        let (reader, writer) = ends::pair(kind)?;
        let (near, far) = if name == "in" {
            (reader, writer)
        } else {
            (writer, reader)
        };
        copy.endpoint(name, Endpoint::owned(OwnedFd::from(near)));
        Ok((copy, Some(far)))
    }
}

/// What the guests read and write: `small` and `large`, and a FIFO.
pub(crate) fn prepare(place: &Place, size: u64) -> Result<()> {
    place.file("small", 4096)?;
    place.file("large", size)?;
    let fifo = place.path().join("fifo-0");
    if fs::metadata(&fifo).is_err() {
        bars::make_fifo(&fifo)?;
    }
    Ok(())
}
