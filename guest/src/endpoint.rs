//! Channels that the host granted under a name: pipes, sockets, terminals.

use std::error::Error;
use std::fmt;
use std::io;

use wasip2::io::streams::{InputStream, OutputStream};

use crate::bindings::copyist::copy::endpoints::{self as wit, OpenError};

/// Opens the channel that the host granted under this name. Nobody else can until it is dropped.
///
/// ```no_run
/// use std::io::Write;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = copyist_guest::endpoint("client")?;
/// client.output()?.write_all(b"here it comes\n")?;
/// copyist_guest::copy("in/photo.raw", &client)?;
/// client.finish();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) where nothing was granted under this name, and
/// [`ResourceBusy`](io::ErrorKind::ResourceBusy) while somebody holds it.
pub fn endpoint(name: &str) -> Result<Endpoint, EndpointError> {
    let name = name.to_owned();
    match wit::open(&name) {
        Ok(host) => Ok(Endpoint { host, name }),
        Err(why) => Err(EndpointError { name, why }),
    }
}

/// The names of all channels that were granted, but of those that are gone.
#[must_use]
pub fn endpoints() -> Vec<String> {
    wit::names()
}

/// A granted channel: a source or a destination by `&`, or a stream. A drop frees its name, and leaves
/// alone what uses it.
#[derive(Debug)]
pub struct Endpoint {
    host: wit::Endpoint,
    name: String,
}

impl Endpoint {
    /// The name that it was granted under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What comes, as a stream: for a header before a body that is copied. No more is taken than is
    /// read, and the copy goes on where this stopped, once the stream is dropped.
    ///
    /// # Errors
    ///
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) while a copy or another stream reads, and
    /// [`Unsupported`](io::ErrorKind::Unsupported) where it cannot be read at all.
    pub fn input(&self) -> Result<InputStream, EndpointError> {
        self.host.input().map_err(|why| self.failed(why))
    }

    /// What goes out, as a stream: for a header before a body that is copied, once the stream is
    /// dropped. The drop waits until all that was written is on its way.
    ///
    /// # Errors
    ///
    /// As [`input`](Self::input), of what writes.
    pub fn output(&self) -> Result<OutputStream, EndpointError> {
        self.host.output().map_err(|why| self.failed(why))
    }

    /// No more will be written, once what writes to it now has ended: the other side sees the end. It
    /// waits for nothing.
    pub fn finish(&self) {
        self.host.finish();
    }

    pub(crate) fn host(&self) -> &wit::Endpoint {
        &self.host
    }

    fn failed(&self, why: OpenError) -> EndpointError {
        EndpointError {
            name: self.name.clone(),
            why,
        }
    }
}

/// Why there is no endpoint, or no stream over one.
///
/// Its text is for a person and says what to do. It turns into an [`io::Error`] of its
/// [`kind`](EndpointError::kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError {
    name: String,
    why: OpenError,
}

impl EndpointError {
    /// The kind that an [`io::Error`] would have.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self.why {
            OpenError::Unknown => io::ErrorKind::NotFound,
            OpenError::Busy => io::ErrorKind::ResourceBusy,
            OpenError::Other(_) => io::ErrorKind::Unsupported,
        }
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.why {
            OpenError::Unknown => write!(
                f,
                "there is no endpoint `{name}`, or no more: have one granted (as by `--endpoint`)"
            ),
            OpenError::Busy => write!(
                f,
                "the endpoint `{name}` is in use: drop what holds it, or wait for the copy to end"
            ),
            OpenError::Other(why) => write!(f, "the endpoint `{name}` is no such stream: {why}"),
        }
    }
}

impl Error for EndpointError {}

impl From<EndpointError> for io::Error {
    fn from(error: EndpointError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do_and_keeps_its_kind() {
        let error = |why| EndpointError {
            name: "out".to_owned(),
            why,
        };
        let unknown = error(OpenError::Unknown);
        assert_eq!(
            unknown.to_string(),
            "there is no endpoint `out`, or no more: have one granted (as by `--endpoint`)"
        );
        let unknown = io::Error::from(unknown);
        assert_eq!(unknown.kind(), io::ErrorKind::NotFound);
        assert!(unknown.downcast::<EndpointError>().is_ok());
        let busy = error(OpenError::Busy);
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        let other = error(OpenError::Other("it cannot be read".to_owned()));
        assert_eq!(other.kind(), io::ErrorKind::Unsupported);
        assert!(other.to_string().ends_with("stream: it cannot be read"));
    }
}
