//! A directory for files that are gone at the end.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use wasmtime::Result;
use wasmtime::error::Context as _;

pub(crate) struct Place {
    directory: Source,
}

/// Whether the directory is this process's own.
enum Source {
    Own { directory: TempDir, _keeper: Keeper },
    Given(PathBuf),
}

impl Place {
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("copyist-bars-")
            .tempdir_in(parent)
            .with_context(|| format!("no room to measure in {}", parent.display()))?;
        let _keeper = Keeper::of(directory.path())?;
        Ok(Self {
            directory: Source::Own { directory, _keeper },
        })
    }

    /// The working directory, which another process made.
    pub(crate) fn given() -> Result<Self> {
        Ok(Self {
            directory: Source::Given(std::env::current_dir()?),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match &self.directory {
            Source::Own { directory, .. } => directory.path(),
            Source::Given(path) => path,
        }
    }

    pub(crate) fn open(&self) -> Result<Arc<File>> {
        Ok(Arc::new(File::open(self.path())?))
    }

    pub(crate) fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Makes a file of so many bytes, unless it is there, and tells its name.
    pub(crate) fn file(&self, name: &str, size: u64) -> Result<String> {
        let path = self.path().join(name);
        if fs::metadata(&path).is_ok_and(|there| there.len() == size) {
            return Ok(name.to_owned());
        }
        let mut file = File::create(path)?;
        let mut state = 1_u64;
        let mut block = vec![0_u8; 1 << 20];
        let mut left = size;
        while left > 0 {
            for word in block.chunks_exact_mut(8) {
                // A linear congruential generator: Knuth's constants.
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                word.copy_from_slice(&state.to_le_bytes());
            }
            let length = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
            file.write_all(&block[..length])?;
            left -= length as u64;
        }
        Ok(name.to_owned())
    }

    /// Puts a file on the disk, and tells what is allocated to it in bytes.
    pub(crate) fn settle(&self, name: &str) -> Result<u64> {
        let file = File::open(self.path().join(name))?;
        file.sync_all()?;
        Ok(file.metadata()?.blocks() * 512)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.path().join(name)).with_context(|| format!("{name} is not there"))
    }
}

/// Removes the directory when this process is gone, also where a signal ended it: files in memory
/// that nobody removes stay there until the machine is restarted.
struct Keeper(Child);

impl Keeper {
    fn of(directory: &Path) -> Result<Self> {
        let keeper = Command::new("sh")
            .args(["-c", "read -r _; rm -rf -- \"$0\""])
            .arg(directory)
            .stdin(Stdio::piped())
            // A Ctrl-C is for the group of this process.
            .process_group(0)
            .spawn()
            .context("there is no sh")?;
        Ok(Self(keeper))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The end of its input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
