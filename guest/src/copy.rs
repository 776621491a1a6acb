//! Copying one file.

use crate::bindings::copyist::copy::copy::transfer;
use crate::bindings::copyist::copy::types::{self as wit, Failure};
use crate::error::Call;
use crate::{Cause, CopyOptions, Destination, Error, Side, Source, Summary};

/// Copies one file and waits for its end, in the host. As [`std::fs::copy`] it overwrites an
/// existing destination and gives a new one the permission bits of the source;
/// [`CopyOptions`] has everything else.
///
/// It copies to the real end of the source, whatever size that claims: files of /proc, and files
/// that grow or shrink meanwhile, are copied as a plain read would see them.
///
/// ```no_run
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let summary = copyist_guest::copy("in/photo.raw", "out/photo.raw")?;
/// println!("{} bytes, {} of them shared", summary.bytes, summary.shared);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Before the source is open and found to be a file, and an existing destination is known to be
/// another one, nothing is created or cut. A new destination of a copy that failed later is gone
/// again; one that was overwritten has the bytes that [`Error::summary`] counts.
pub fn copy<'a, 'b>(
    from: impl Into<Source<'a>>,
    to: impl Into<Destination<'b>>,
) -> Result<Summary, Error> {
    CopyOptions::new().copy(from, to)
}

impl CopyOptions {
    /// Copies one file by these options and waits for its end, in the host.
    ///
    /// # Errors
    ///
    /// As [`copy`], and [`Cause::Unsupported`] where something that these options insist on is not
    /// to be had between these two ends.
    pub fn copy<'a, 'b>(
        &self,
        from: impl Into<Source<'a>>,
        to: impl Into<Destination<'b>>,
    ) -> Result<Summary, Error> {
        let (from, to) = (from.into(), to.into());
        let call = || Call::Copy {
            from: from.name(),
            to: to.name(),
        };
        let source = from
            .resolve()
            .map_err(|why| Error::before(call(), Side::Source, why))?;
        let destination = to
            .resolve()
            .map_err(|why| Error::before(call(), Side::Destination, why))?;
        transfer(&source, &destination, self.to_host().as_ref()).map_err(|failure| {
            let side = failed_side(&failure, &source, &destination);
            Error::failed(call(), side, failure)
        })
    }
}

/// Which end a failure is about. Without a side in the cause its path tells, unless both ends have
/// the same path, each beneath a directory of its own.
fn failed_side(
    failure: &Failure,
    source: &wit::Source<'_>,
    destination: &wit::Destination<'_>,
) -> Option<Side> {
    if let Cause::Filesystem((side, _)) = failure.cause {
        return Some(side);
    }
    let path = failure.path.as_ref()?;
    let of_source = matches!(source, wit::Source::Path(location) if location.path == *path);
    let of_destination =
        matches!(destination, wit::Destination::Path(location) if location.path == *path);
    match (of_source, of_destination) {
        (true, false) => Some(Side::Source),
        (false, true) => Some(Side::Destination),
        _ => None,
    }
}
