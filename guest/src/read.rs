//! Whole files, or parts of them, in one call.

use crate::bindings::copyist::copy::read::{bytes, text};
use crate::bindings::copyist::copy::types as wit;
use crate::error::Call;
use crate::{Cause, CopyOptions, Error, Side, Source, Window};

/// Reads a whole file, as [`std::fs::read`]: the host makes one read of its size, and one call
/// crosses into the host.
///
/// ```no_run
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let bytes = copyist_guest::read("in/photo.raw")?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Cause::Limit`] with [`Limit::ReadSize`](crate::Limit::ReadSize) where the file is larger than
/// the host allows: nothing is cut.
pub fn read<'a>(from: impl Into<Source<'a>>) -> Result<Vec<u8>, Error> {
    ReadOptions::new().read(from)
}

/// Reads a whole file of UTF-8, as [`std::fs::read_to_string`].
///
/// # Errors
///
/// As [`read`]; what is not UTF-8 fails, and its [`Error::kind`] is
/// [`InvalidData`](std::io::ErrorKind::InvalidData).
pub fn read_to_string<'a>(from: impl Into<Source<'a>>) -> Result<String, Error> {
    ReadOptions::new().read_to_string(from)
}

/// Which part of a file to read, and how much of it at the most.
///
/// ```no_run
/// use copyist_guest::ReadOptions;
///
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let header = ReadOptions::new().length(512).read("in/archive.tar")?;
/// let config = ReadOptions::new().limit(1 << 20).read_to_string("in/config")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    offset: u64,
    length: Option<u64>,
    limit: u64,
}

impl ReadOptions {
    /// The whole file, whatever the host allows.
    #[must_use]
    pub fn new() -> Self {
        // The host has a limit of its own, and the lower one counts.
        ReadOptions {
            offset: 0,
            length: None,
            limit: u64::MAX,
        }
    }

    /// Where to begin, in bytes. Beyond the end nothing is read, which is no error.
    pub fn offset(&mut self, offset: u64) -> &mut Self {
        self.offset = offset;
        self
    }

    /// How many bytes to read. A file that ends before is read to its end, which is no error.
    pub fn length(&mut self, length: u64) -> &mut Self {
        self.length = Some(length);
        self
    }

    /// How many bytes may be read: where there are more the read fails.
    pub fn limit(&mut self, limit: u64) -> &mut Self {
        self.limit = limit;
        self
    }

    /// Reads as [`read`] does.
    ///
    /// # Errors
    ///
    /// As [`read`], with the lower of the host's limit and this one.
    pub fn read<'a>(&self, from: impl Into<Source<'a>>) -> Result<Vec<u8>, Error> {
        self.call(&from.into(), bytes)
    }

    /// Reads as [`read_to_string`] does.
    ///
    /// # Errors
    ///
    /// As [`read_to_string`], with the lower of the host's limit and this one. A part that begins or
    /// ends within a character is not UTF-8.
    pub fn read_to_string<'a>(&self, from: impl Into<Source<'a>>) -> Result<String, Error> {
        self.call(&from.into(), text)
    }

    fn call<T>(
        &self,
        from: &Source<'_>,
        read: impl FnOnce(&wit::Source<'_>, Option<&wit::Options>, u64) -> Result<T, wit::Failure>,
    ) -> Result<T, Error> {
        let call = || Call::Read { from: from.name() };
        let source = from
            .resolve()
            .map_err(|why| Error::before(call(), Side::Source, why))?;
        read(&source, self.to_host().as_ref(), self.limit).map_err(|failure| {
            // A cause that names no end is about the source if a path is named.
            let side = match failure.cause {
                Cause::Filesystem((side, _)) => Some(side),
                _ => failure.path.as_ref().map(|_| Side::Source),
            };
            Error::failed(call(), side, failure)
        })
    }

    fn to_host(&self) -> Option<wit::Options> {
        let (source_offset, length) = (self.offset, self.length);
        if (source_offset, length) == (0, None) {
            return None;
        }
        CopyOptions::new()
            .window(Window {
                source_offset,
                length,
                destination_offset: 0,
            })
            .to_host()
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions::new()
    }
}
