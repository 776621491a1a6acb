//! What a copy can read from and write to.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use wasip2::filesystem::types::PathFlags;

/// A location as the host takes it.
pub(crate) use crate::bindings::copyist::copy::types::Location as Host;

use crate::bindings::copyist::copy::types as wit;
use crate::error::{Name, Problem};
use crate::preopens;
use crate::{Descriptor, Endpoint, HeldDestination, HeldSource};

/// Where bytes come from.
///
/// Made by `into` from a path, from a [`Location`], from a pair of a directory handle and a name
/// beneath it, from an open file, or from an [`Endpoint`]. More kinds will follow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A file by name.
    Path(Location<'a>),
    /// An open file, which needs the right to be read. It is read from its first byte, or from the
    /// window's offset.
    File(&'a Descriptor),
    /// A channel that the host granted, from where it stands.
    Endpoint(&'a Endpoint),
}

/// Where bytes go.
///
/// Made by `into` from a path, from a [`Location`], from a pair of a directory handle and a name
/// beneath it, from an open file, or from an [`Endpoint`]. More kinds will follow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Destination<'a> {
    /// A file by name, in a directory that may be changed. It is created where it does not exist.
    Path(Location<'a>),
    /// An open file, which needs the right to be written.
    File(&'a Descriptor),
    /// A channel that the host granted.
    Endpoint(&'a Endpoint),
}

/// A file by name.
#[derive(Clone, Debug)]
pub struct Location<'a> {
    /// Absent, the granted directory that holds the path is looked up.
    dir: Option<&'a Descriptor>,
    path: Cow<'a, Path>,
    follow: bool,
}

impl<'a> Location<'a> {
    /// A path as `std::fs` takes it: beneath the granted directory whose name is its longest
    /// prefix. A relative one starts at the working directory, which is `/` until
    /// [`std::env::set_current_dir`] moves it.
    pub fn new<P: AsRef<Path> + ?Sized>(path: &'a P) -> Self {
        Location {
            dir: None,
            path: Cow::Borrowed(path.as_ref()),
            follow: true,
        }
    }

    /// A path beneath a directory handle, which it cannot leave: an absolute path, a `..` above
    /// the directory and a symbolic link that leads out of it are not permitted.
    pub fn beneath<P: AsRef<Path> + ?Sized>(dir: &'a Descriptor, path: &'a P) -> Self {
        Location {
            dir: Some(dir),
            ..Location::new(path)
        }
    }

    /// Whether a symbolic link as the last component is followed, as it is unless this says no.
    /// Where it is not, a link is an error; as the destination of a copy that replaces, the link
    /// itself is replaced.
    #[must_use]
    pub fn follow_link(self, follow: bool) -> Self {
        Location { follow, ..self }
    }

    fn owned(path: PathBuf) -> Self {
        Location {
            dir: None,
            path: Cow::Owned(path),
            follow: true,
        }
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn resolve(&self) -> Result<wit::Location<'a>, Problem> {
        let path = self.path.to_str().ok_or(Problem::NotUtf8)?;
        let (dir, path) = match self.dir {
            Some(dir) => (dir, path.to_owned()),
            None => preopens::find(path)
                .ok_or_else(|| Problem::NotGranted(preopens::names().collect()))?,
        };
        let path_flags = if self.follow {
            PathFlags::SYMLINK_FOLLOW
        } else {
            PathFlags::empty()
        };
        Ok(wit::Location {
            dir,
            path_flags,
            path,
        })
    }
}

impl Source<'_> {
    /// As its author wrote it, for errors.
    pub(crate) fn name(&self) -> Name {
        match self {
            Source::Path(location) => Name::Path(location.name()),
            Source::File(_) => Name::File,
            Source::Endpoint(endpoint) => Name::Endpoint(endpoint.name().to_owned()),
        }
    }

    pub(crate) fn resolve(&self) -> Result<wit::Source<'_>, Problem> {
        match self {
            Source::Path(location) => Ok(wit::Source::Path(location.resolve()?)),
            Source::File(file) => Ok(wit::Source::File(file)),
            Source::Endpoint(endpoint) => Ok(wit::Source::Channel(endpoint.host())),
        }
    }
}

impl Destination<'_> {
    /// As its author wrote it, for errors.
    pub(crate) fn name(&self) -> Name {
        match self {
            Destination::Path(location) => Name::Path(location.name()),
            Destination::File(_) => Name::File,
            Destination::Endpoint(endpoint) => Name::Endpoint(endpoint.name().to_owned()),
        }
    }

    pub(crate) fn resolve(&self) -> Result<wit::Destination<'_>, Problem> {
        match self {
            Destination::Path(location) => Ok(wit::Destination::Path(location.resolve()?)),
            Destination::File(file) => Ok(wit::Destination::File(file)),
            Destination::Endpoint(endpoint) => Ok(wit::Destination::Channel(endpoint.host())),
        }
    }
}

macro_rules! from_end {
    ($($end:ty => |$value:ident| $location:expr),* $(,)?) => {$(
        impl<'a> From<$end> for Source<'a> {
            fn from($value: $end) -> Self {
                Source::Path($location)
            }
        }
        impl<'a> From<$end> for Destination<'a> {
            fn from($value: $end) -> Self {
                Destination::Path($location)
            }
        }
        impl<'a> From<$end> for HeldSource<'a> {
            fn from($value: $end) -> Self {
                HeldSource::Path($location)
            }
        }
        impl<'a> From<$end> for HeldDestination<'a> {
            fn from($value: $end) -> Self {
                HeldDestination::Path($location)
            }
        }
    )*};
}

macro_rules! from_name {
    ($($end:ty => |$value:ident| $location:expr),* $(,)?) => {$(
        impl<'a> From<$end> for Location<'a> {
            fn from($value: $end) -> Self {
                $location
            }
        }
    )*
        from_end! { $($end => |$value| $location),* }
    };
}

// One impl for `P: AsRef<Path>` would leave no room for handles.
from_end! {
    Location<'a> => |location| location,
}

from_name! {
    (&'a Descriptor, &'a str) => |end| Location::beneath(end.0, end.1),
    (&'a Descriptor, &'a Path) => |end| Location::beneath(end.0, end.1),
    &'a str => |path| Location::new(path),
    &'a String => |path| Location::new(path),
    &'a OsStr => |path| Location::new(path),
    &'a OsString => |path| Location::new(path),
    &'a Path => |path| Location::new(path),
    &'a PathBuf => |path| Location::new(path),
    String => |path| Location::owned(path.into()),
    OsString => |path| Location::owned(path.into()),
    PathBuf => |path| Location::owned(path),
}

impl<'a> From<&'a Descriptor> for Source<'a> {
    fn from(file: &'a Descriptor) -> Self {
        Source::File(file)
    }
}

impl<'a> From<&'a Descriptor> for Destination<'a> {
    fn from(file: &'a Descriptor) -> Self {
        Destination::File(file)
    }
}

impl<'a> From<&'a Endpoint> for Source<'a> {
    fn from(endpoint: &'a Endpoint) -> Self {
        Source::Endpoint(endpoint)
    }
}

impl<'a> From<&'a Endpoint> for Destination<'a> {
    fn from(endpoint: &'a Endpoint) -> Self {
        Destination::Endpoint(endpoint)
    }
}
