//! Directories to copy in, each on a file system of its own kind.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use copyist_engine::{Destination, Handle, Source};
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use super::{at, skipped};

/// Where Linux has a tmpfs.
const SHARED_MEMORY: &str = "/dev/shm";

/// A directory that is gone after the test, with the handle that a guest would hold.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) base: Handle,
    directory: TempDir,
}

impl Place {
    /// In the temporary directory.
    pub(crate) fn disk() -> Self {
        Self::new("disk", tempfile::tempdir().unwrap())
    }

    /// On tmpfs, if it is there and another file system than the temporary directory's.
    pub(crate) fn memory() -> Option<Self> {
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        let there = device(Path::new(SHARED_MEMORY));
        if there.is_none() || there == device(&std::env::temp_dir()) {
            skipped("no tmpfs beside the temporary directory");
            return None;
        }
        match tempfile::tempdir_in(SHARED_MEMORY) {
            Ok(directory) => Some(Self::new("memory", directory)),
            Err(error) => {
                skipped(&format!("{SHARED_MEMORY}: {error}"));
                None
            }
        }
    }

    fn new(name: &'static str, directory: TempDir) -> Self {
        Self {
            name,
            base: open_as_guest(directory.path()),
            directory,
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn source(&self, name: impl AsRef<Path>) -> Source {
        Source::Path(at(&self.base, name))
    }

    pub(crate) fn destination(&self, name: impl AsRef<Path>) -> Destination {
        Destination::Path(at(&self.base, name))
    }

    /// Makes a file, or gives it other bytes.
    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(crate) fn inode(&self, name: impl AsRef<Path>) -> u64 {
        self.path(name).symlink_metadata().unwrap().ino()
    }

    pub(crate) fn mode(&self, name: impl AsRef<Path>) -> u32 {
        self.path(name).symlink_metadata().unwrap().mode() & 0o7777
    }

    pub(crate) fn set_mode(&self, name: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Whether the copier believes what this file system says of holes.
    pub(crate) fn is_trusted(&self) -> bool {
        copyist_engine::sys::native().is_local(self.base.as_fd()) == Ok(true)
    }

    /// Opens a file to be read.
    pub(crate) fn open(&self, name: impl AsRef<Path>) -> Handle {
        Arc::new(File::open(self.path(name)).unwrap())
    }

    /// Opens a file to be read and written, and makes it where it does not exist.
    pub(crate) fn open_to_write(&self, name: impl AsRef<Path>) -> Handle {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path(name))
            .unwrap();
        Arc::new(file)
    }

    /// What the directory holds, sorted; leftovers of a copy too.
    pub(crate) fn names(&self) -> Vec<String> {
        names_in(self.directory.path())
    }

    /// The same, without what the copy had to find.
    #[track_caller]
    pub(crate) fn assert_names(&self, expected: &[&str], what: &str) {
        assert_eq!(self.names(), expected, "{what}");
    }
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A directory as wasmtime opens its preopens: good for names beneath it and nothing else.
pub(crate) fn open_as_guest(directory: &Path) -> Handle {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::empty()).unwrap();
    Arc::new(File::from(fd))
}

/// A directory on each file system.
pub(crate) fn places() -> Vec<Place> {
    let mut places = vec![Place::disk()];
    places.extend(Place::memory());
    places
}

/// From each file system to each, and whether that is the same one.
pub(crate) fn pairs() -> Vec<(Place, Place, bool)> {
    let mut pairs = vec![(Place::disk(), Place::disk(), true)];
    if let Some(memory) = Place::memory() {
        pairs.push((Place::disk(), memory, false));
    }
    if let (Some(one), Some(two)) = (Place::memory(), Place::memory()) {
        pairs.push((one, two, true));
    }
    if let Some(memory) = Place::memory() {
        pairs.push((memory, Place::disk(), false));
    }
    pairs
}
