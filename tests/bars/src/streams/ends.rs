//! A copy's two ends with their peers, made anew for each.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::OFlags;
use wasmtime::Result;

use super::peer::Peer;

/// What an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Pipe,
    /// Of the Unix domain, as the standard streams of a child often are.
    Socket,
    /// To the machine itself.
    Tcp,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Pipe => "a pipe",
            Self::Socket => "a Unix socket",
            Self::Tcp => "a TCP socket",
        }
    }
}

/// Whether a call on them waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    Wait,
    /// As on what an embedder gives away.
    DoNotWait,
}

pub(crate) struct Ends {
    pub(crate) source: File,
    pub(crate) destination: File,
    pub(crate) peers: Peers,
}

/// Who must end when both ends are closed.
pub(crate) struct Peers {
    peers: Vec<Peer>,
    size: u64,
}

impl Ends {
    /// So many bytes, of `file` where the source is one.
    pub(crate) fn new(
        source: Kind,
        destination: Kind,
        calls: Calls,
        file: &Path,
        size: u64,
    ) -> Result<Self> {
        let mut peers = Vec::new();
        let source = match source {
            Kind::File => File::open(file)?,
            kind => {
                let (near, far) = pair(kind)?;
                peers.push(Peer::feed(far, size));
                set(&near, calls)?;
                near
            }
        };
        let (far, near) = pair(destination)?;
        peers.push(Peer::drain(far));
        set(&near, calls)?;
        Ok(Self {
            source,
            destination: near,
            peers: Peers { peers, size },
        })
    }
}

impl Peers {
    pub(crate) fn end(self) -> Result<()> {
        for peer in self.peers {
            peer.had(self.size)?;
        }
        Ok(())
    }
}

/// What is read, and what is written; of a socket either does both.
pub(crate) fn pair(kind: Kind) -> Result<(File, File)> {
    let (one, other): (OwnedFd, OwnedFd) = match kind {
        Kind::File | Kind::Pipe => {
            let (reader, writer) = std::io::pipe()?;
            (reader.into(), writer.into())
        }
        Kind::Socket => {
            let (one, other) = UnixStream::pair()?;
            (one.into(), other.into())
        }
        Kind::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let one = TcpStream::connect(listener.local_addr()?)?;
            let (other, _) = listener.accept()?;
            (one.into(), other.into())
        }
    };
    Ok((one.into(), other.into()))
}

pub(crate) fn set(end: &File, calls: Calls) -> Result<()> {
    if calls == Calls::DoNotWait {
        let flags = rustix::fs::fcntl_getfl(end)?;
        rustix::fs::fcntl_setfl(end, flags | OFlags::NONBLOCK)?;
    }
    Ok(())
}
