//! Why a copy ended early, and how far it had come.

use std::fmt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::summary::Summary;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where bytes come from.
    Source,
    /// Where bytes go.
    Destination,
}

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Bytes of one copy.
    Bytes,
    /// Bytes of all copies together.
    TotalBytes,
    /// Bytes of a whole-file read.
    ReadSize,
    /// Entries of a tree.
    Entries,
    /// Directories beneath each other in a tree.
    Depth,
    /// Copies under way at once. The engine takes what it is given; a host counts.
    Copies,
}

/// What was asked for and cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsupported {
    /// A kind of file that is not copied.
    Kind(Side, Refused),
    /// A clone was required and the file system makes none here.
    Clone,
    /// This attribute cannot be kept.
    Attribute,
    /// A file cannot be replaced through its open descriptor, nor in part.
    Replace,
    /// A stream has no offsets at which a window could begin.
    Offset(Side),
    /// A tree is copied whole.
    Window,
    /// A pattern of what is to be left out that is none, or more of them than are taken.
    Pattern,
    /// What goes into a stream cannot be put on stable storage.
    Durability,
    /// The one mechanism that the tuning allows does not work here.
    Mechanism,
}

/// What cannot be copied from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// A symbolic link that was not to be followed.
    Link,
    /// The name of a socket, which only connect(2) opens.
    SocketName,
    /// A FIFO, the name of a socket, or a device, in a tree that takes none.
    Special,
    /// A socket that listens, or that carries messages rather than a stream.
    Messages,
    /// A descriptor that stands for a name alone (`O_PATH`).
    NameOnly,
    /// No file, pipe, socket or device: what eventfd(2), epoll_create(2) and others make.
    Unknown,
    /// A pipe, socket or device, where only a regular file will do.
    Stream,
}

/// Why a copy failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system answered so, at that end.
    Io(Side, Errno),
    /// The embedder did not grant what was required.
    Denied,
    /// A bound was reached; nothing beyond it was written.
    Limit(Limit),
    /// The caller cancelled.
    Cancelled,
    /// The time that the caller gave is over.
    TimedOut,
    /// Both ends are one file, or a tree would be copied into itself; nothing was touched.
    SameFile,
    /// It cannot be had here.
    Unsupported(Unsupported),
    /// A whole-file read found bytes that are not UTF-8.
    NotUtf8,
    /// The copier itself failed: a defect, for its caller alone.
    Panicked,
}

impl Cause {
    /// The end whose fault it is, or that a person would look at.
    pub(crate) fn side(&self) -> Option<Side> {
        match self {
            Self::Io(side, _)
            | Self::Unsupported(Unsupported::Kind(side, _) | Unsupported::Offset(side)) => {
                Some(*side)
            }
            Self::NotUtf8 => Some(Side::Source),
            Self::Denied | Self::SameFile | Self::Unsupported(_) => Some(Side::Destination),
            Self::Limit(_) | Self::Cancelled | Self::TimedOut | Self::Panicked => None,
        }
    }
}

/// A copy that ended early.
#[derive(Clone, Debug)]
pub struct Error {
    /// Why.
    pub cause: Cause,
    /// The path that was asked for, of the end that failed, where it was asked for by path.
    pub path: Option<PathBuf>,
    /// How far it had come.
    pub done: Summary,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "a symbolic link, which was not to be followed",
            Self::SocketName => "the name of a socket, which can be connected to and not opened",
            Self::Special => {
                "a FIFO, the name of a socket or a device; trees leave these out unless asked"
            }
            Self::Messages => {
                "a socket that listens or carries messages; connected streams are copied"
            }
            Self::NameOnly => "a descriptor that was opened as a name alone (O_PATH)",
            Self::Unknown => "no file, pipe, socket or device",
            Self::Stream => "a pipe, socket or device, where only a regular file will do",
        })
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(side, what) => write!(f, "the {side} is {what}"),
            Self::Offset(side) => write!(f, "the {side} is a stream, which has no offsets"),
            Self::Pattern => {
                f.write_str("a pattern of what to leave out cannot be read, or there are too many")
            }
            Self::Window => f.write_str("a tree is copied whole, and has no window"),
            Self::Durability => {
                f.write_str("what goes into a stream cannot be put on stable storage")
            }
            Self::Clone => f.write_str("a clone was required and cannot be made here"),
            Self::Attribute => f.write_str("an attribute was required and cannot be kept here"),
            Self::Replace => f.write_str(
                "a file is replaced by its path and as a whole, not by a descriptor or in part",
            ),
            Self::Mechanism => f.write_str("the one mechanism allowed does not work here"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(side, errno) => {
                write!(f, "{side}: {}", std::io::Error::from(*errno))
            }
            Self::Denied => f.write_str("the host did not grant what was required"),
            Self::Limit(Limit::Bytes) => f.write_str("the limit of bytes a copy was reached"),
            Self::Limit(Limit::TotalBytes) => {
                f.write_str("the limit of bytes of all copies was reached")
            }
            Self::Limit(Limit::Entries) => f.write_str("the limit of entries was reached"),
            Self::Limit(Limit::Depth) => f.write_str("the limit of depth was reached"),
            Self::Limit(Limit::Copies) => {
                f.write_str("as many copies as are allowed are under way")
            }
            Self::Limit(Limit::ReadSize) => f.write_str("the file is larger than the read's limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::TimedOut => f.write_str("the time given for it is over"),
            Self::SameFile => f.write_str("the destination is the source, or lies in it"),
            Self::Unsupported(what) => what.fmt(f),
            Self::NotUtf8 => f.write_str("the file is not UTF-8 text"),
            Self::Panicked => f.write_str("the copier panicked; this is a defect in it"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.cause),
            None => self.cause.fmt(f),
        }
    }
}

impl std::error::Error for Cause {}

impl std::error::Error for Error {}
