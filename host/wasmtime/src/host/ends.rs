//! From what a guest names to open files and rights.

use std::path::PathBuf;

use copyist_engine::{
    Base, Cause, Destination, Errno, Location, Options, Side, Source, Unsupported,
};
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::PathFlags;

use crate::bindings::types as wit;
use crate::ctx::CopyCtxView;
use crate::rights::Rights;

/// What stands behind the handle that a guest named. One that is no handle at all is the host's
/// business and traps; anything else is the guest's error.
pub(super) struct End<T> {
    pub(super) found: std::result::Result<(T, Rights), Cause>,
    /// The path that the guest gave, where it gave one.
    pub(super) path: Option<PathBuf>,
}

impl<T> End<T> {
    /// A channel or a stream, which this version does not copy.
    fn unsupported(side: Side) -> Self {
        Self {
            found: Err(Unsupported::Kind(side).into()),
            path: None,
        }
    }
}

impl CopyCtxView<'_> {
    pub(super) fn source(&self, source: wit::Source) -> Result<End<Source>> {
        match source {
            wit::Source::Path(location) => self.location(location, Side::Source, Source::Path),
            wit::Source::File(file) => self.file(&file, Side::Source, Source::File),
            wit::Source::Channel(_) | wit::Source::Input(_) => Ok(End::unsupported(Side::Source)),
        }
    }

    pub(super) fn destination(&self, destination: wit::Destination) -> Result<End<Destination>> {
        match destination {
            wit::Destination::Path(location) => {
                self.location(location, Side::Destination, Destination::Path)
            }
            wit::Destination::File(file) => self.file(&file, Side::Destination, Destination::File),
            wit::Destination::Channel(_) | wit::Destination::Output(_) => {
                Ok(End::unsupported(Side::Destination))
            }
        }
    }

    fn file<T>(
        &self,
        file: &Resource<Descriptor>,
        side: Side,
        end: fn(copyist_engine::Handle) -> T,
    ) -> Result<End<T>> {
        let found = match self.table.get(file)? {
            Descriptor::File(file) => Ok((end(file.file.clone()), Rights::of_file(file))),
            Descriptor::Dir(_) => Err(Cause::Io(side, Errno::ISDIR)),
        };
        Ok(End { found, path: None })
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
        })
    }

    pub(super) fn options(&self, options: Option<Resource<Options>>) -> Result<Options> {
        Ok(match options {
            Some(options) => self.table.get(&options)?.clone(),
            None => Options::default(),
        })
    }
}
