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
            let side = failed_side(
                &failure,
                source_path(&source),
                destination_path(&destination),
            );
            Error::failed(call(), side, failure)
        })
    }
}

/// Which end a failure is about, the ends being named by the paths that the host was given. Where
/// the cause does not say it the path does, unless both ends have the same one, each beneath a
/// directory of its own.
pub(crate) fn failed_side(
    failure: &Failure,
    source: Option<&str>,
    destination: Option<&str>,
) -> Option<Side> {
    if let Cause::Filesystem((side, _)) = failure.cause {
        return Some(side);
    }
    let path = failure.path.as_deref()?;
    match (source == Some(path), destination == Some(path)) {
        (true, false) => Some(Side::Source),
        (false, true) => Some(Side::Destination),
        _ => None,
    }
}

fn source_path<'a>(source: &'a wit::Source<'_>) -> Option<&'a str> {
    match source {
        wit::Source::Path(location) => Some(&location.path),
        _ => None,
    }
}

fn destination_path<'a>(destination: &'a wit::Destination<'_>) -> Option<&'a str> {
    match destination {
        wit::Destination::Path(location) => Some(&location.path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn the_cause_tells_the_side_or_else_a_path_that_only_one_end_has() {
        let side = |cause, path: Option<&str>, ends: (&str, &str)| {
            let path = path.map(str::to_owned);
            let failure = Failure {
                cause,
                path,
                done: Summary::default(),
            };
            failed_side(&failure, Some(ends.0), Some(ends.1))
        };
        let full = Cause::Filesystem((Side::Destination, ErrorCode::InsufficientSpace));
        assert_eq!(side(full, Some("a"), ("a", "a")), Some(Side::Destination));
        assert_eq!(
            side(Cause::Denied, Some("a"), ("a", "b")),
            Some(Side::Source)
        );
        assert_eq!(
            side(Cause::Denied, Some("b"), ("a", "b")),
            Some(Side::Destination)
        );
        assert_eq!(side(Cause::Denied, Some("a"), ("a", "a")), None);
        assert_eq!(side(Cause::Cancelled, None, ("a", "b")), None);
    }
}
