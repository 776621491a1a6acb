//! The system itself, with somebody who looks at the calls that matter here and may refuse them.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use copyist_engine::sys::{self, At, Layer, Result, Sys};
use copyist_engine::{Environment, Errno};
use rustix::fs::{Mode, OFlags};

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    Open(&'a Path, OFlags),
    Read,
    Write,
    SetMode,
    Sync(BorrowedFd<'a>),
    /// Renamed, or linked under its name.
    Publish,
}

type Hook = dyn Fn(Call<'_>) -> Option<Errno> + Send + Sync;

struct Hooked {
    native: Arc<dyn Sys>,
    hook: Box<Hook>,
}

/// A system layer on which `hook` is called before each [`Call`]; what it answers is the call's
/// error.
pub(crate) fn hooked(
    hook: impl Fn(Call<'_>) -> Option<Errno> + Send + Sync + 'static,
) -> Environment {
    Environment::new(Arc::new(Hooked {
        native: sys::native(),
        hook: Box::new(hook),
    }))
}

/// A file system that has no unnamed files, as many network file systems.
pub(crate) fn without_unnamed_files() -> Environment {
    hooked(|call| match call {
        Call::Open(_, flags) if flags.contains(OFlags::TMPFILE) => Some(Errno::OPNOTSUPP),
        _ => None,
    })
}

impl Hooked {
    fn before(&self, call: Call<'_>) -> Result<()> {
        match (self.hook)(call) {
            Some(errno) => Err(errno),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooked")
    }
}

impl Layer for Hooked {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        self.before(Call::Open(path, flags))?;
        self.native.open(at, path, flags, mode)
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.before(Call::Read)?;
        self.native.read(fd, buffer, offset)
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        self.before(Call::Read)?;
        self.native.read_spare(fd, buffer, offset)
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        self.before(Call::Write)?;
        self.native.write(fd, bytes, offset)
    }

    fn set_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<()> {
        self.before(Call::SetMode)?;
        self.native.set_mode(fd, mode)
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.before(Call::Sync(fd))?;
        self.native.sync(fd)
    }

    fn link_unnamed(
        &self,
        fd: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<()> {
        self.before(Call::Publish)?;
        self.native.link_unnamed(fd, directory, name)
    }

    fn rename(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        self.before(Call::Publish)?;
        self.native.rename(directory, old, new)
    }

    fn rename_exclusive(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        self.before(Call::Publish)?;
        self.native.rename_exclusive(directory, old, new)
    }
}
