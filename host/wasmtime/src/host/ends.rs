//! From what a guest names to open files and rights.

use std::path::PathBuf;

use copyist_engine::{
    Base, Cause, Destination, Errno, Feed, Handle, Location, Options, Side, Source,
};
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::PathFlags;

use crate::bindings::types as wit;
use crate::channel::{Held, Use};
use crate::ctx::CopyCtxView;
use crate::options::Asked;
use crate::pump::Handles;
use crate::rights::Rights;

/// What stands behind the handle that a guest named. One that is no handle at all is the host's
/// business and traps; anything else is the guest's error.
pub(super) struct End<T> {
    pub(super) found: std::result::Result<(T, Rights), Cause>,
    /// The path that the guest gave, where it gave one.
    pub(super) path: Option<PathBuf>,
    /// In use from now on, where it is a channel.
    pub(super) channel: Option<Use>,
}

impl<T> End<T> {
    pub(super) fn without_path(found: std::result::Result<(T, Rights), Cause>) -> Self {
        Self {
            found,
            path: None,
            channel: None,
        }
    }
}

impl CopyCtxView<'_> {
    /// Streams are noted in `lent`, since they are to be pumped.
    pub(super) fn source(&self, source: wit::Source, lent: &mut Handles) -> Result<End<Source>> {
        match source {
            wit::Source::Path(location) => self.location(location, Side::Source, Source::Path),
            wit::Source::File(file) => self.file(&file, Side::Source, Source::File),
            wit::Source::Channel(endpoint) => self.channel(&endpoint, Side::Source, Source::File),
            wit::Source::Input(stream) => {
                let feed = Feed::new();
                lent.input = Some((stream, feed.clone()));
                Ok(End::without_path(Ok((Source::Feed(feed), Rights::ALL))))
            }
        }
    }

    /// As [`source`](Self::source).
    pub(super) fn destination(
        &self,
        destination: wit::Destination,
        lent: &mut Handles,
    ) -> Result<End<Destination>> {
        match destination {
            wit::Destination::Path(location) => {
                self.location(location, Side::Destination, Destination::Path)
            }
            wit::Destination::File(file) => self.file(&file, Side::Destination, Destination::File),
            wit::Destination::Channel(endpoint) => {
                self.channel(&endpoint, Side::Destination, Destination::File)
            }
            wit::Destination::Output(stream) => {
                let feed = Feed::new();
                lent.output = Some((stream, feed.clone()));
                Ok(End::without_path(Ok((
                    Destination::Feed(feed),
                    Rights::ALL,
                ))))
            }
        }
    }

    fn channel<T>(
        &self,
        endpoint: &Resource<Held>,
        side: Side,
        end: fn(Handle) -> T,
    ) -> Result<End<T>> {
        let channel = match self.table.get(endpoint)?.begin(side) {
            Ok(channel) => channel,
            Err(cause) => return Ok(End::without_path(Err(cause))),
        };
        Ok(End {
            found: channel.handle().map(|handle| (end(handle), Rights::ALL)),
            path: None,
            channel: Some(channel),
        })
    }

    fn file<T>(
        &self,
        file: &Resource<Descriptor>,
        side: Side,
        end: fn(Handle) -> T,
    ) -> Result<End<T>> {
        let found = match self.table.get(file)? {
            Descriptor::File(file) => Ok((end(file.file.clone()), Rights::of_file(file))),
            Descriptor::Dir(_) => Err(Cause::Io(side, Errno::ISDIR)),
        };
        Ok(End::without_path(found))
    }

    fn location<T>(
        &self,
        location: wit::Location,
        side: Side,
        end: fn(Location) -> T,
    ) -> Result<End<T>> {
        let path = PathBuf::from(location.path);
        let found = match self.table.get(&location.dir)? {
            Descriptor::Dir(directory) => Ok((
                end(Location {
                    base: Base::Beneath(directory.dir.clone()),
                    path: path.clone(),
                    follow: location.path_flags.contains(PathFlags::SYMLINK_FOLLOW),
                }),
                Rights::of_directory(directory),
            )),
            Descriptor::File(_) => Err(Cause::Io(side, Errno::NOTDIR)),
        };
        Ok(End {
            found,
            path: Some(path),
            channel: None,
        })
    }

    /// The root of a tree.
    pub(super) fn root(&self, location: wit::Location, side: Side) -> Result<End<Location>> {
        self.location(location, side, |location| location)
    }

    pub(super) fn options(&self, options: Option<Resource<Asked>>) -> Result<Options> {
        Ok(match options {
            Some(options) => self.table.get(&options)?.files.clone(),
            None => Options::default(),
        })
    }

    /// All of them, for a tree.
    pub(super) fn asked(&self, options: Option<Resource<Asked>>) -> Result<Asked> {
        Ok(match options {
            Some(options) => self.table.get(&options)?.clone(),
            None => Asked::default(),
        })
    }
}
