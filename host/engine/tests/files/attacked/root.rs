//! A root that a guest holds, what is around it, and who swaps names in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use copyist_engine::{Handle, Location};
use rustix::fs::{AtFlags, RenameFlags};
use tempfile::TempDir;

use crate::support::place::{names_in, open_as_guest};
use crate::support::{at, follow};

/// What may be read.
pub(super) const INSIDE: &[u8] = b"inside";
/// What is written.
const FROM: &[u8] = b"what is written";
const SECRET: &[u8] = b"what no guest may read";

/// What the links that are swapped in lead to.
const OUTER_FILE: &str = "../secret";
const OUTER_NOTHING: &str = "../nothing";
const OUTER_DIRECTORY: &str = "../outside";

/// See the module.
pub(super) struct Root {
    outer: TempDir,
    base: Handle,
    /// The directory that is reached by way of the one whose name is swapped.
    deep: Handle,
}

impl Root {
    /// On a file system in memory, where a swap takes microseconds; none if there is none.
    pub(super) fn new() -> Option<Self> {
        let memory = [std::env::temp_dir(), "/dev/shm".into()]
            .into_iter()
            .find(|directory| is_tmpfs(directory))?;
        let outer = tempfile::tempdir_in(memory).unwrap();
        let path = outer.path();
        fs::create_dir_all(path.join("outside/sub")).unwrap();
        for secret in ["secret", "outside/file", "outside/sub/file"] {
            fs::write(path.join(secret), SECRET).unwrap();
        }
        let root = path.join("root");
        fs::create_dir_all(root.join("directory/sub")).unwrap();
        for inside in ["leaf", "directory/sub/file"] {
            fs::write(root.join(inside), INSIDE).unwrap();
        }
        fs::write(root.join("from"), FROM).unwrap();
        symlink(OUTER_FILE, root.join("other leaf")).unwrap();
        symlink(OUTER_DIRECTORY, root.join("other directory")).unwrap();
        Some(Self {
            base: open_as_guest(&root),
            deep: open_as_guest(&root.join("directory/sub")),
            outer,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join("root").join(name)
    }

    pub(super) fn location(&self, path: &str, followed: bool) -> Location {
        if followed {
            follow(&self.base, path)
        } else {
            at(&self.base, path)
        }
    }

    /// Everything outside the root, with the times at which names and bytes changed.
    pub(super) fn outside(&self) -> Vec<String> {
        let mut state = Vec::new();
        let mut left = vec![self.outer.path().to_owned()];
        while let Some(path) = left.pop() {
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                left.extend(names_in(&path).iter().map(|name| path.join(name)));
                left.retain(|path| *path != self.path(""));
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            state.push(format!(
                "{path:?} {} {:o} {}.{:09} {}",
                metadata.ino(),
                metadata.mode(),
                metadata.ctime(),
                metadata.ctime_nsec(),
                content.escape_ascii()
            ));
        }
        state.sort();
        state
    }

    /// A file outside has the name that a copy makes.
    pub(super) fn put_outside(&self, name: &str) {
        let path = self.outer.path().join("outside/sub").join(name);
        fs::write(path, SECRET).unwrap();
    }

    /// Removes what a copy made, whatever the directory is called just now.
    pub(super) fn remove_deep(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.deep, name, AtFlags::empty());
    }

    pub(super) fn assert_no_leftovers(&self) {
        let names = [names_in(&self.path("")), names_in(&self.deep_path())].concat();
        assert!(
            !names.iter().any(|name| name.starts_with(".copyist-")),
            "{names:?}"
        );
    }

    fn deep_path(&self) -> PathBuf {
        ["directory", "other directory"]
            .map(|name| self.path(name))
            .into_iter()
            .find(|path| !path.is_symlink())
            .unwrap()
            .join("sub")
    }

    /// The file and the link to a secret. Where a copy has replaced the link, there is a new one.
    pub(super) fn swap_leaf(&self) {
        let (one, two) = (self.path("leaf"), self.path("other leaf"));
        if !one.is_symlink() && !two.is_symlink() {
            symlink(OUTER_FILE, self.path("link")).unwrap();
            fs::rename(self.path("link"), two).unwrap();
        }
        self.exchange("leaf", "other leaf");
    }

    /// Nothing or what a copy made, a link to a secret, nothing, and a link to where a file could be
    /// made.
    pub(super) fn toggle_leaf(&self) {
        for target in [OUTER_FILE, OUTER_NOTHING] {
            symlink(target, self.path("link")).unwrap();
            fs::rename(self.path("link"), self.path("leaf")).unwrap();
            // For about as long as there is none.
            let _ = fs::read_link(self.path("leaf"));
            let _ = fs::read_link(self.path("leaf"));
            // A copy that takes its own file back may have been faster.
            let _ = fs::remove_file(self.path("leaf"));
        }
    }

    /// The directory and the link to one outside.
    pub(super) fn swap_parent(&self) {
        self.exchange("directory", "other directory");
    }

    fn exchange(&self, one: &str, two: &str) {
        let flags = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(&self.base, one, &self.base, two, flags).unwrap();
    }
}

fn is_tmpfs(path: &Path) -> bool {
    /// statfs(2)
    const TMPFS: u64 = 0x0102_1994;
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the type of this field differs between architectures"
    )]
    let is = |found: rustix::fs::StatFs| found.f_type as u64 & 0xFFFF_FFFF == TMPFS;
    rustix::fs::statfs(path).is_ok_and(is)
}
