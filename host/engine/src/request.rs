//! What a caller asks for: two ends and how to copy between them.

use std::fmt;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cap_std::AmbientAuthority;

use crate::feed::Feed;
use crate::limits::Limits;
use crate::plan::Mechanism;
use crate::preserve::Preserve;

/// An open file or directory that somebody else may hold too. The copier never changes its
/// position or its flags.
pub type Handle = Arc<File>;

/// Where the resolution of a path starts, and whether it may leave that place.
#[derive(Clone)]
pub enum Base {
    /// Resolution stays beneath this directory. An `O_PATH` descriptor is enough.
    Beneath(Handle),
    /// The process's own view of the file system. The token says at the call that the sandbox is
    /// given up, as in cap-std; a host that serves guests never has one.
    Ambient(AmbientAuthority),
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beneath(handle) => f.debug_tuple("Beneath").field(handle).finish(),
            Self::Ambient(_) => f.write_str("Ambient"),
        }
    }
}

/// A name relative to a base.
#[derive(Clone, Debug)]
pub struct Location {
    /// Where resolution starts.
    pub base: Base,
    /// Any bytes but NUL. Beneath a handle: relative, and never above it.
    pub path: PathBuf,
    /// Whether a symbolic link as the last component is followed.
    pub follow: bool,
}

/// Where bytes come from: a file, a pipe, a connected socket, a terminal or another device.
#[derive(Clone, Debug)]
pub enum Source {
    /// Opened by the copy, and closed by it.
    Path(Location),
    /// A file is read by position, from the first byte or the window's offset; a stream from where
    /// it is.
    File(Handle),
    /// What somebody in this process puts.
    Feed(Feed),
}

/// Where bytes go: as [`Source`].
#[derive(Clone, Debug)]
pub enum Destination {
    /// Created where it does not exist.
    Path(Location),
    /// Written by position; where it was opened with `O_APPEND`, at its end. It keeps its flags,
    /// its mode, owner and access control list, and its length where it appends or a window is
    /// given.
    File(Handle),
    /// To somebody in this process who takes it.
    Feed(Feed),
}

impl Source {
    /// The path that was asked for, where it was asked for by path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(location) => Some(&location.path),
            Self::File(_) | Self::Feed(_) => None,
        }
    }
}

impl Destination {
    /// The path that was asked for, where it was asked for by path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(location) => Some(&location.path),
            Self::File(_) | Self::Feed(_) => None,
        }
    }
}

/// What to do where the destination exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Fail with `EEXIST`.
    Refuse,
    /// Leave it and succeed.
    Skip,
    /// Write it if the source's modification time is later, else leave it.
    Update,
    /// Write it by [`WriteMode`].
    #[default]
    Write,
}

/// How an existing file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Overwritten, then cut to the new length.
    #[default]
    InPlace,
    /// Staged in the same directory and renamed over it. Never falls back to `InPlace`.
    Replace,
}

/// Whether storage may be shared with the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// Or fail.
    Always,
    /// Never; copy_file_range(2), which may share, is not used either.
    Never,
}

/// Whether runs of zeros become holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sparse {
    /// Where the source has holes.
    #[default]
    Auto,
    /// Wherever zeros stand, in blocks of 4 KiB. Every byte goes through a buffer.
    Always,
    /// Nowhere: all is allocated, so nothing is shared either where the source has holes.
    Never,
}

/// What is on stable storage before success is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing in particular.
    #[default]
    None,
    /// The file, by fsync(2), and its directory where a name was made.
    Each,
    /// All files of a copy by one sync at its end. Of one file: as `Each`.
    End,
}

/// Part of a source and where it goes. Offsets and lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where reading starts; beyond the end nothing is copied.
    pub source_offset: u64,
    /// How much at the most; to the end if absent.
    pub length: Option<u64>,
    /// Where writing starts.
    pub destination_offset: u64,
}

/// What an embedder allows beyond what WASI lets a guest do. All off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Setuid, setgid and sticky bits are carried over when the mode is preserved: the first two
    /// where the copy has its source's owner or group.
    pub special_mode_bits: bool,
    /// User and group are carried over when ownership is preserved.
    pub ownership: bool,
    /// Extended attributes that only root may set are carried over when attributes are preserved:
    /// `security.capability`, `trusted.*`.
    pub privileged_xattrs: bool,
}

/// Switches for tests and measurements. The defaults are right for everything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuning {
    /// Use this mechanism alone, or fail: for tests that want to see a certain one at work.
    pub only: Option<Mechanism>,
    /// Go straight to the read and write loop, as on a file system that refuses everything else.
    pub force_fallback: bool,
    /// Bytes a data call, in place of a size that adapts to how long the calls take.
    pub call_size: Option<NonZeroUsize>,
}

/// How to copy.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What to do where the destination exists.
    pub existing: Existing,
    /// How an existing file is written.
    pub write_mode: WriteMode,
    /// Whether storage may be shared.
    pub reflink: Reflink,
    /// Whether runs of zeros become holes.
    pub sparse: Sparse,
    /// What is on stable storage at the end.
    pub durability: Durability,
    /// Kept where it can be; what cannot is in [`Summary::lost`](crate::Summary::lost).
    pub preserve: Preserve,
    /// Kept, or the copy fails.
    pub require: Preserve,
    /// Part of the source; the whole of it if absent.
    pub window: Option<Window>,
    /// Where a source that is a file begins, in bytes: what comes before is no part of it, and the
    /// window counts from here.
    pub source_start: u64,
    /// Pages of the source may be passed to a pipe, or to a socket with `O_NONBLOCK`: faster, and a
    /// later write to the source can show at the reader.
    pub zero_copy: bool,
    /// The copy fails with [`Cause::TimedOut`](crate::Cause::TimedOut) so long after it was asked
    /// for.
    pub timeout: Option<Duration>,
    /// What the embedder allows.
    pub grants: Grants,
    /// How much may be copied.
    pub limits: Limits,
    /// No call may take long, since somebody may end the copy by a deadline. A clone of much goes
    /// in pieces then, and is no snapshot of a source that is written meanwhile.
    pub bounded_calls: bool,
    /// For tests and measurements.
    pub tuning: Tuning,
}

/// One copy.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where bytes come from.
    pub source: Source,
    /// Where bytes go.
    pub destination: Destination,
    /// How to copy.
    pub options: Options,
}
