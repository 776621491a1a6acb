//! From what a guest names to open files and rights.

use copyist_engine::{
    Base, Cause, Destination, Errno, Location, Options, Side, Source, Unsupported,
};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::PathFlags;

use crate::bindings::types as wit;
use crate::ctx::CopyCtxView;
use crate::rights::Rights;

/// A handle that is not one is the host's business and traps; anything else is the guest's error.
type Looked<T> = wasmtime::Result<Result<(T, Rights), Cause>>;

impl CopyCtxView<'_> {
    pub(super) fn source(&self, source: wit::Source) -> Looked<Source> {
        Ok(match source {
            wit::Source::Path(location) => self
                .location(location, Side::Source)?
                .map(|(location, rights)| (Source::Path(location), rights)),
            wit::Source::File(file) => match self.table.get(&file)? {
                Descriptor::File(file) => {
                    Ok((Source::File(file.file.clone()), Rights::of_file(file)))
                }
                Descriptor::Dir(_) => Err(Cause::Io(Side::Source, Errno::ISDIR)),
            },
            wit::Source::Channel(_) | wit::Source::Input(_) => {
                Err(Unsupported::Kind(Side::Source).into())
            }
        })
    }

    pub(super) fn destination(&self, destination: wit::Destination) -> Looked<Destination> {
        Ok(match destination {
            wit::Destination::Path(location) => self
                .location(location, Side::Destination)?
                .map(|(location, rights)| (Destination::Path(location), rights)),
            wit::Destination::File(file) => match self.table.get(&file)? {
                Descriptor::File(file) => {
                    Ok((Destination::File(file.file.clone()), Rights::of_file(file)))
                }
                Descriptor::Dir(_) => Err(Cause::Io(Side::Destination, Errno::ISDIR)),
            },
            wit::Destination::Channel(_) | wit::Destination::Output(_) => {
                Err(Unsupported::Kind(Side::Destination).into())
            }
        })
    }

    fn location(&self, location: wit::Location, side: Side) -> Looked<Location> {
        Ok(match self.table.get(&location.dir)? {
            Descriptor::Dir(directory) => Ok((
                Location {
                    base: Base::Beneath(directory.dir.clone()),
                    path: location.path.into(),
                    follow: location.path_flags.contains(PathFlags::SYMLINK_FOLLOW),
                },
                Rights::of_directory(directory),
            )),
            Descriptor::File(_) => Err(Cause::Io(side, Errno::NOTDIR)),
        })
    }

    pub(super) fn options(&self, options: Option<Resource<Options>>) -> wasmtime::Result<Options> {
        Ok(match options {
            Some(options) => self.table.get(&options)?.clone(),
            None => Options::default(),
        })
    }
}
