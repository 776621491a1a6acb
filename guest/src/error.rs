//! Why a copy or a read failed.

use std::fmt;
use std::io;

use crate::bindings::copyist::copy::types::Failure;
use crate::{Cause, ErrorCode, Side, Summary, kind, words};

/// Why a copy or a read failed, at which end, and how far it had come.
///
/// Its text is for a person: it names the ends as they were given, and says what to do. Programs
/// ask [`kind`](Error::kind) or, where that is too coarse, [`cause`](Error::cause). It turns into an
/// [`io::Error`] of the same kind, out of which [`io::Error::downcast`] takes it again.
#[derive(Clone, Debug)]
// Boxed: every function hands one back, and most hand back a success.
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    call: Call,
    side: Option<Side>,
    cause: Cause,
    /// Where the host was not asked at all.
    problem: Option<Problem>,
    summary: Summary,
}

/// What was to be done, with the ends as they were given.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Copy {
        from: Name,
        to: Name,
    },
    /// With the entry that failed, where one did.
    Tree {
        from: String,
        to: String,
        at: Option<String>,
    },
    Read {
        from: Name,
    },
}

/// What an end is to a person.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    Path(String),
    File,
    Stream,
    Endpoint(String),
}

/// Why a path cannot even be asked for.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    /// No granted directory holds it; these are granted.
    NotGranted(Vec<&'static str>),
    /// WASI has only paths of UTF-8.
    NotUtf8,
}

impl Error {
    /// One that the host was not needed for.
    pub(crate) fn before(call: Call, side: Side, problem: Problem) -> Self {
        let code = match problem {
            Problem::NotGranted(_) => ErrorCode::NoEntry,
            Problem::NotUtf8 => ErrorCode::IllegalByteSequence,
        };
        Error(Box::new(Inner {
            call,
            side: Some(side),
            cause: Cause::Filesystem((side, code)),
            problem: Some(problem),
            summary: Summary::default(),
        }))
    }

    /// One that the host answered, `side` being the end that it is about.
    pub(crate) fn failed(call: Call, side: Option<Side>, failure: Failure) -> Self {
        let Failure {
            cause,
            done: summary,
            ..
        } = failure;
        Error(Box::new(Inner {
            call,
            side,
            cause,
            problem: None,
            summary,
        }))
    }

    /// As [`failed`](Self::failed), of a tree: at the entry whose path the host says.
    pub(crate) fn of_tree(mut call: Call, failure: Failure) -> Self {
        if let Call::Tree { at, .. } = &mut call {
            at.clone_from(&failure.path);
        }
        let side = match failure.cause {
            Cause::Filesystem((side, _)) => Some(side),
            _ => None,
        };
        Error::failed(call, side, failure)
    }

    /// The kind that an [`io::Error`] would have: [`NotFound`](io::ErrorKind::NotFound) too where
    /// the component was granted no directory that holds the path.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        kind::of(&self.0.cause)
    }

    /// Why, in the words of the contract.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The end that failed, where one did and the host said which.
    #[must_use]
    pub fn side(&self) -> Option<Side> {
        self.0.side
    }

    /// The path of the end that failed, as it was given. Absent where [`side`](Error::side) is, and
    /// for an open file.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.call.path(self.0.side?)
    }

    /// What had been done. A destination that the copy had created is gone again, and so is what
    /// was to replace an old one; a destination that was overwritten has these bytes.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.0.summary
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            call,
            cause,
            problem,
            summary,
            ..
        } = &*self.0;
        write!(f, "cannot {call}")?;
        if summary.bytes > 0 {
            write!(f, " (it stopped after {} bytes)", summary.bytes)?;
        }
        f.write_str(": ")?;
        match (problem, self.side()) {
            (Some(problem), Some(side)) => words::problem(f, side, problem),
            _ => words::cause(f, cause),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.kind(), error)
    }
}

impl Call {
    fn path(&self, side: Side) -> Option<&str> {
        match (self, side) {
            (Call::Copy { from, .. } | Call::Read { from }, Side::Source) => from.path(),
            (Call::Copy { to, .. }, Side::Destination) => to.path(),
            (Call::Tree { from, .. }, Side::Source) => Some(from),
            (Call::Tree { to, .. }, Side::Destination) => Some(to),
            (Call::Read { .. }, Side::Destination) => None,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Copy { from, to } => write!(f, "copy {from} to {to}"),
            Call::Tree { from, to, at } => {
                write!(f, "copy the tree `{from}` to `{to}`")?;
                match at {
                    Some(at) => write!(f, ", at `{at}`"),
                    None => Ok(()),
                }
            }
            Call::Read { from } => write!(f, "read {from}"),
        }
    }
}

impl Name {
    fn path(&self) -> Option<&str> {
        match self {
            Name::Path(path) => Some(path),
            Name::File | Name::Stream | Name::Endpoint(_) => None,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Path(path) => write!(f, "`{path}`"),
            Name::File => f.write_str("an open file"),
            Name::Stream => f.write_str("a stream"),
            Name::Endpoint(name) => write!(f, "the endpoint `{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;

    fn copying() -> Call {
        Call::Copy {
            from: Name::Path("in/a".to_owned()),
            to: Name::Path("out/b".to_owned()),
        }
    }

    fn failed(side: Option<Side>, cause: Cause, bytes: u64) -> Error {
        let done = Summary {
            bytes,
            ..Summary::default()
        };
        Error::failed(
            copying(),
            side,
            Failure {
                cause,
                path: None,
                done,
            },
        )
    }

    #[test]
    fn it_names_the_ends_the_side_and_what_to_do() {
        let cause = Cause::Filesystem((Side::Destination, ErrorCode::InsufficientSpace));
        let error = failed(Some(Side::Destination), cause, 4096);
        assert_eq!(
            error.to_string(),
            "cannot copy `in/a` to `out/b` (it stopped after 4096 bytes): \
             the destination is on a file system without space left: free some and copy again",
        );
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            (error.side(), error.path()),
            (Some(Side::Destination), Some("out/b"))
        );
        assert_eq!(error.summary().bytes, 4096);
    }

    #[test]
    fn it_says_that_a_directory_must_be_granted() {
        let error = |granted| Error::before(copying(), Side::Source, Problem::NotGranted(granted));
        assert_eq!(
            error(vec!["/data", "out"]).to_string(),
            "cannot copy `in/a` to `out/b`: the source is in no directory that this component was \
             granted: have one granted that holds it (as by `--dir`), or name a file in one of \
             `/data`, `out`",
        );
        assert_eq!(
            error(vec![]).to_string(),
            "cannot copy `in/a` to `out/b`: the source is in no directory that this component was \
             granted: have one granted that holds it (as by `--dir`)",
        );
        assert_eq!(error(vec![]).kind(), io::ErrorKind::NotFound);
        assert_eq!(error(vec![]).path(), Some("in/a"));
    }

    #[test]
    fn a_failure_of_no_end_has_neither_side_nor_path() {
        let error = failed(None, Cause::SameFile, 0);
        assert_eq!((error.side(), error.path()), (None, None));
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn an_open_file_has_no_path() {
        let done = Summary::default();
        let cause = Cause::Limit(Limit::ReadSize);
        let failure = Failure {
            cause,
            path: None,
            done,
        };
        let call = Call::Read { from: Name::File };
        let error = Error::failed(call, Some(Side::Source), failure);
        assert_eq!(error.path(), None);
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error.to_string().starts_with("cannot read an open file: "),
            "{error}"
        );
    }

    #[test]
    fn an_io_error_keeps_the_kind_and_the_whole() {
        let cause = Cause::Filesystem((Side::Source, ErrorCode::NoEntry));
        let error = io::Error::from(failed(Some(Side::Source), cause.clone(), 0));
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.downcast::<Error>().unwrap().cause(), &cause);
    }

    #[test]
    fn nobody_is_told_to_try_a_cancelled_copy_again() {
        assert_eq!(
            failed(None, Cause::Cancelled, 0).kind(),
            io::ErrorKind::Other
        );
    }
}
