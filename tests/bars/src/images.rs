//! File systems of a kind, in images in memory.
//!
//! They are mounted in a mount namespace of this process's own: nobody else sees them, and they are
//! gone with it, however it ends. That is for root on Linux alone.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use crate::place::Place;

/// Set in the process that has the namespace.
const ENTERED: &str = "COPYIST_BARS_NAMESPACE";
/// Where a file system in memory lies over what the machine has there.
const ROOM: &str = "/mnt";
/// What an image may grow to.
const SIZE: u64 = 8 << 30;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Ext4, Self::Xfs];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The tool that makes one, and the package that has it.
    const fn tool(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => (
                "mkfs.ext4",
                "e2fsprogs",
                &[
                    "-q",
                    "-F",
                    "-E",
                    "nodiscard,lazy_itable_init=1,lazy_journal_init=1",
                ],
            ),
            Self::Xfs => (
                "mkfs.xfs",
                "xfsprogs",
                &["-q", "-f", "-K", "-m", "reflink=1"],
            ),
        }
    }
}

/// Starts this process once more, in a namespace of its own, where that may be.
pub(crate) fn enter() -> Result<()> {
    let is_root = cfg!(target_os = "linux") && rustix::process::geteuid().is_root();
    if !is_root || env::var_os(ENTERED).is_some() {
        return Ok(());
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command
    };
    // Root of a container often may not.
    if run(unshare().arg("true")).is_err() {
        return Ok(());
    }
    let error = unshare()
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(ENTERED, "")
        .exec();
    Err(error).context("unshare")
}

/// Why there can be no images here.
pub(crate) fn reason_for_none() -> Option<&'static str> {
    env::var_os(ENTERED)
        .is_none()
        .then_some("it needs root on Linux, with a mount namespace")
}

/// A file system, with a directory on it for what is measured.
pub(crate) struct Image {
    pub(crate) place: Place,
    // In the order in which they go.
    _mount: Mount,
    _memory: Mount,
}

impl Image {
    pub(crate) fn make(kind: Kind) -> Result<Self> {
        if let Some(why) = reason_for_none() {
            bail!("{why}");
        }
        let room = Path::new(ROOM);
        // For the image, and for what it is mounted on.
        let _memory = Mount::new(&["-t", "tmpfs", "-o", "size=90%", "tmpfs"], room)?;
        let image = room.join("image");
        File::create(&image)?.set_len(SIZE)?;
        let (tool, package, words) = kind.tool();
        run(Command::new(tool).args(words).arg(&image))
            .with_context(|| format!("on Debian, `apt-get install {package}` brings {tool}"))?;
        let directory = room.join(kind.name());
        fs::create_dir(&directory)?;
        let _mount = Mount::new(
            &["-o".as_ref(), "loop".as_ref(), image.as_os_str()],
            &directory,
        )?;
        Ok(Self {
            place: Place::new(&directory)?,
            _mount,
            _memory,
        })
    }
}

impl Image {
    /// Bounds how much of it may be dirty, whatever else the machine does, until that is dropped: who
    /// writes more waits for the disk.
    pub(crate) fn limit_dirty(&self, bytes: u64) -> Result<DirtyLimit> {
        let device = rustix::fs::stat(self.place.path())?.st_dev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let settings = PathBuf::from(format!("/sys/class/bdi/{major}:{minor}"));
        let mut before = Vec::new();
        // The bound in bytes is kept as a ratio.
        for name in ["strict_limit", "max_ratio"] {
            before.push((settings.join(name), fs::read(settings.join(name))?));
        }
        let limit = DirtyLimit(before);
        for (name, value) in [("strict_limit", 1), ("max_bytes", bytes)] {
            fs::write(settings.join(name), value.to_string())
                .with_context(|| format!("{name}, which Linux has from 6.2 on"))?;
        }
        Ok(limit)
    }
}

/// The settings of a device that were others before: it stays, for the next image.
pub(crate) struct DirtyLimit(Vec<(PathBuf, Vec<u8>)>);

impl Drop for DirtyLimit {
    fn drop(&mut self) {
        for (setting, before) in &self.0 {
            let _ = fs::write(setting, before);
        }
    }
}

struct Mount(PathBuf);

impl Mount {
    fn new(words: &[impl AsRef<OsStr>], point: &Path) -> Result<Self> {
        run(Command::new("mount").args(words).arg(point))?;
        Ok(Self(point.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If it fails, it goes with the process.
        let _ = run(Command::new("umount").arg(&self.0));
    }
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("no {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
