//! Trees to copy, and copies of them.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use copyist_engine::{
    Base, Cancel, Error, Grants, Handle, Location, Options, Owner, Pool, PoolOptions, Preserve,
    Special, Summary, TreeGrants, TreeOptions, TreeReport, TreeRequest, copy_tree,
};
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(120);

/// A directory of the test's own, by whose handle everything is named.
pub(crate) struct Place {
    directory: TempDir,
    pub(crate) handle: Handle,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let handle = Arc::new(File::open(directory.path()).unwrap());
        Self { directory, handle }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn dir(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn link(&self, to: impl AsRef<Path>, name: impl AsRef<Path>) {
        std::os::unix::fs::symlink(to, self.path(name)).unwrap();
    }

    pub(crate) fn fifo(&self, name: impl AsRef<Path>) {
        let mode = Mode::from_raw_mode(0o640);
        rustix::fs::mknodat(CWD, self.path(name), FileType::Fifo, mode, 0).unwrap();
    }

    pub(crate) fn at(&self, name: impl AsRef<Path>) -> Location {
        Location {
            base: Base::Beneath(self.handle.clone()),
            path: name.as_ref().into(),
            follow: false,
        }
    }

    pub(crate) fn request(&self, from: &str, to: &str, options: &TreeOptions) -> TreeRequest {
        TreeRequest {
            source: self.at(from),
            destination: self.at(to),
            options: options.clone(),
        }
    }

    /// On this thread.
    pub(crate) fn copy(
        &self,
        from: &str,
        to: &str,
        options: &TreeOptions,
    ) -> Result<Summary, Error> {
        copy_tree(self.request(from, to, options), &Cancel::new())
    }

    /// By a pool.
    pub(crate) fn copy_by(
        &self,
        threads: usize,
        from: &str,
        to: &str,
        options: &TreeOptions,
    ) -> (Result<Summary, Error>, TreeReport) {
        by_pool(threads, self.request(from, to, options), Cancel::new())
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self, name: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.path(name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn by_pool(
    threads: usize,
    request: TreeRequest,
    cancel: Cancel,
) -> (Result<Summary, Error>, TreeReport) {
    let pool = Pool::new(PoolOptions {
        threads: NonZeroUsize::new(threads).unwrap(),
        ..PoolOptions::default()
    });
    let (tell, outcome) = channel();
    let (_, report) = pool.copy_tree(Owner(1), request, cancel, move |answer| {
        let _ = tell.send(answer);
    });
    (outcome.recv_timeout(PATIENCE).unwrap(), report)
}

/// As `cp -a`, with all that only root may.
pub(crate) fn archive() -> TreeOptions {
    TreeOptions {
        entries: Options {
            preserve: Preserve::MODE
                | Preserve::TIMESTAMPS
                | Preserve::OWNERSHIP
                | Preserve::XATTRS
                | Preserve::ACLS
                | Preserve::LINKS,
            grants: Grants {
                special_mode_bits: true,
                ownership: true,
                privileged_xattrs: true,
            },
            ..Options::default()
        },
        special: Special::Keep,
        grants: TreeGrants {
            special_files: true,
            leaving_links: true,
        },
        ..TreeOptions::default()
    }
}

/// Some bytes that differ from place to place.
pub(crate) fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|place| u8::try_from((place * 31 + place / 255 + seed * 7) % 251).unwrap())
        .collect()
}
