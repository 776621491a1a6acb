//! The texts of errors, each saying what to do.

use std::fmt;

use crate::error::Problem;
use crate::{Cause, ErrorCode, Limit, Side};

pub(crate) fn problem(f: &mut fmt::Formatter<'_>, side: Side, problem: &Problem) -> fmt::Result {
    let end = name(side);
    match problem {
        Problem::NotGranted(granted) => {
            write!(
                f,
                "the {end} is in no directory that this component was granted: have one granted \
                 that holds it (as by `--dir`)"
            )?;
            for (index, name) in granted.iter().enumerate() {
                let before = if index == 0 {
                    ", or name a file in one of "
                } else {
                    ", "
                };
                write!(f, "{before}`{name}`")?;
            }
            Ok(())
        }
        Problem::NotUtf8 => {
            write!(
                f,
                "the path of the {end} is not UTF-8, as paths of WASI are: rename the file"
            )
        }
    }
}

pub(crate) fn cause(f: &mut fmt::Formatter<'_>, cause: &Cause) -> fmt::Result {
    f.write_str(match cause {
        Cause::Filesystem((side, code)) => return filesystem(f, *side, *code),
        Cause::Denied => {
            "the host does not allow it: the source must be granted for reading and the \
             destination for writing"
        }
        Cause::Limit(limit) => reached(*limit),
        Cause::Cancelled => "it was cancelled",
        Cause::TimedOut => "the time for it ran out: allow more, or copy less at once",
        Cause::SameFile => "both ends are the same file, which was left as it is",
        Cause::Unsupported => {
            "something that was asked for, or this kind of file, is not to be had here: \
             ask for less, or copy between other places"
        }
        Cause::Other(text) => text,
    })
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Source => "source",
        Side::Destination => "destination",
    }
}

fn reached(limit: Limit) -> &'static str {
    match limit {
        Limit::Bytes => "the host lets one copy have fewer bytes: have its limit raised",
        Limit::TotalBytes => "the bytes that the host lets this component copy are used up",
        Limit::Entries => "the tree has more entries than the host allows: copy parts of it",
        Limit::Depth => "the tree is deeper than the host allows: copy parts of it",
        Limit::Copies => "the host allows no more copies at once: wait for one to end",
        Limit::ReadSize => {
            "it is larger than the limit of the read: raise the limit, read a part, or copy the \
             file"
        }
    }
}

fn filesystem(f: &mut fmt::Formatter<'_>, side: Side, code: ErrorCode) -> fmt::Result {
    let end = name(side);
    let text = match (code, side) {
        (ErrorCode::NoEntry, Side::Source) => "does not exist: check its path",
        (ErrorCode::NoEntry, Side::Destination) => {
            "is in a directory that does not exist: create that first"
        }
        (ErrorCode::Access, _) => "is closed to the host by its permission bits: change them",
        (ErrorCode::NotPermitted, _) => {
            "is not permitted: it must lie within its granted directory, also after `..` and \
             symbolic links, and its file system must allow the change"
        }
        (ErrorCode::ReadOnly, _) => {
            "can only be read: have its directory granted for writing, or choose another"
        }
        (ErrorCode::Exist, _) => "exists already: choose to skip or to write it, or another name",
        (ErrorCode::IsDirectory, _) => "is a directory: name a file",
        (ErrorCode::NotDirectory, _) => {
            "has a file in its path where a directory must be: check its path"
        }
        (ErrorCode::Loop, _) => {
            "is a symbolic link that may not be followed, or one that leads round in a circle: \
             name the file itself"
        }
        (ErrorCode::NameTooLong, _) => "has a name too long for its file system: shorten it",
        (ErrorCode::InsufficientSpace, _) => {
            "is on a file system without space left: free some and copy again"
        }
        (ErrorCode::Quota, _) => "is beyond the disk quota: free some space, or have it raised",
        (ErrorCode::FileTooLarge, _) => {
            "is larger than its file system or the host's limit on files allows: choose another \
             file system, or copy a part"
        }
        (ErrorCode::IllegalByteSequence, _) => "is not UTF-8: read its bytes",
        (ErrorCode::BadDescriptor, Side::Source) => "is not open for reading: open it so",
        (ErrorCode::BadDescriptor, Side::Destination) => "is not open for writing: open it so",
        (ErrorCode::Overflow, _) => "has a window that ends beyond 2^63 - 1 bytes: make it smaller",
        (ErrorCode::InsufficientMemory, _) => {
            "needs more memory than there is: copy it, or read it in parts"
        }
        (ErrorCode::TextFileBusy, _) => "is a program that runs: replace it whole, or stop it",
        (ErrorCode::Busy, _) => "is in use: try again later",
        (ErrorCode::Io, _) => "could not be read or written: its device or connection failed",
        (other, _) => return write!(f, "the {end} failed with `{}`", other.name()),
    };
    write!(f, "the {end} {text}")
}
