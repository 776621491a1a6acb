//! A disk in a file, with a file system on it, and clones of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The file system on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    /// The least that mkfs takes, which is a hole at first.
    const fn size(self) -> u64 {
        match self {
            Self::Ext4 => 64 << 20,
            Self::Xfs => 300 << 20,
        }
    }

    fn format(self, image: &Path) {
        let mut command = match self {
            Self::Ext4 => Command::new("mkfs.ext4"),
            Self::Xfs => Command::new("mkfs.xfs"),
        };
        match self {
            Self::Ext4 => command.args(["-q", "-F", "-E", "nodiscard"]),
            Self::Xfs => command.args(["-q", "-f", "-K"]),
        };
        run(command.arg(image));
    }

    const fn options(self) -> &'static str {
        match self {
            // By default ext4 writes a file back by itself when it replaces another one.
            Self::Ext4 => "loop,noauto_da_alloc",
            // A clone has the identity of its original, which is mounted too.
            Self::Xfs => "loop,nouuid",
        }
    }
}

/// A directory whose files can be cloned, for disks.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// In memory; unmounted before its image goes.
    _own: Option<(Mounted, TempDir)>,
}

/// What the disks of a test take, and more.
const ROOM: u64 = 2 << 30;

impl Place {
    /// In memory where there is room, since it counts what comes to a disk and not how fast; else on
    /// the xfs of `ci/filesystems`, which says that here things may be mounted. Says aloud where
    /// nobody says so.
    pub(crate) fn new() -> Option<Self> {
        let path = copyist_bed::filesystem("xfs")?;
        let memory = Path::new("/dev/shm");
        let has_room = rustix::fs::statvfs(memory)
            .is_ok_and(|memory| memory.f_bavail * memory.f_frsize >= ROOM);
        if !has_room {
            return Some(Self { path, _own: None });
        }
        let directory = tempfile::tempdir_in(memory).unwrap();
        let image = directory.path().join("image");
        File::create_new(&image).unwrap().set_len(ROOM).unwrap();
        Kind::Xfs.format(&image);
        let path = directory.path().join("mounted");
        let mounted = Mounted::new(Kind::Xfs, &image, path.clone());
        Some(Self {
            path,
            _own: Some((mounted, directory)),
        })
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Disk {
    kind: Kind,
    image: File,
    mounted: Mounted,
    directory: TempDir,
}

impl Disk {
    /// A new one in a directory of its own there.
    pub(crate) fn new(kind: Kind, place: &Place) -> Self {
        let directory = tempfile::tempdir_in(&place.path).unwrap();
        let path = directory.path().join("image");
        let image = File::create_new(&path).unwrap();
        image.set_len(kind.size()).unwrap();
        kind.format(&path);
        let mounted = Mounted::new(kind, &path, directory.path().join("mounted"));
        Self {
            kind,
            image,
            mounted,
            directory,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.mounted.at
    }

    /// What is on it now. It is made in one call, between two writes of the file system's.
    pub(crate) fn clone_now(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        let clone = File::create_new(&path).unwrap();
        rustix::fs::ioctl_ficlone(&clone, &self.image).unwrap();
        path
    }

    /// Mounts a clone, which recovers, and throws it away after the look.
    pub(crate) fn look_at<T>(&self, clone: &Path, look: impl FnOnce(&Path) -> T) -> T {
        let mounted = Mounted::new(self.kind, clone, self.directory.path().join("clone"));
        let seen = look(&mounted.at);
        drop(mounted);
        fs::remove_file(clone).unwrap();
        seen
    }
}

/// A mount, whose loop device goes with it; also where nobody unmounts it, with the mount namespace.
#[derive(Debug)]
struct Mounted {
    at: PathBuf,
}

impl Mounted {
    fn new(kind: Kind, image: &Path, at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        let mut command = Command::new("mount");
        run(command.args(["-o", kind.options()]).arg(image).arg(&at));
        Self { at }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for lazily in [false, true] {
            let mut command = Command::new("umount");
            command.args(lazily.then_some("-l")).arg(&self.at);
            if command.status().is_ok_and(|status| status.success()) {
                return;
            }
        }
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
