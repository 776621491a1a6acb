//! The system itself, with somebody who looks at the calls that matter here and may refuse them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use copyist_engine::sys::{self, At, FileInfo, Result, Sys, Time};
use copyist_engine::{Environment, Errno, Platform};
use rustix::fs::{Mode, OFlags};

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    Open(&'a Path, OFlags),
    Read,
    Write,
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

/// Methods that only pass on.
macro_rules! pass_on {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $answer {
            self.native.$name($($argument),*)
        })*
    };
}

impl Sys for Hooked {
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

    pass_on! {
        fn platform() -> Platform;
        fn close(fd: OwnedFd) -> Result<()>;
        fn stat(fd: BorrowedFd<'_>) -> Result<FileInfo>;
        fn is_local(fd: BorrowedFd<'_>) -> Result<bool>;
        fn stat_at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo>;
        fn read_link_at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf>;
        fn status_flags(fd: BorrowedFd<'_>) -> Result<OFlags>;
        fn clone_file(source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()>;
        fn copy_range(
            source: BorrowedFd<'_>,
            source_offset: u64,
            destination: BorrowedFd<'_>,
            destination_offset: u64,
            length: usize
        ) -> Result<usize>;
        fn probe_copy_range() -> Result<()>;
        fn send_file(
            source: BorrowedFd<'_>,
            source_offset: u64,
            destination: BorrowedFd<'_>,
            length: usize
        ) -> Result<usize>;
        fn seek(fd: BorrowedFd<'_>, offset: u64) -> Result<()>;
        fn seek_data(fd: BorrowedFd<'_>, offset: u64) -> Result<u64>;
        fn seek_hole(fd: BorrowedFd<'_>, offset: u64) -> Result<u64>;
        fn punch_hole(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;
        fn reopen(fd: BorrowedFd<'_>) -> Result<OwnedFd>;
        fn append(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize>;
        fn truncate(fd: BorrowedFd<'_>, length: u64) -> Result<()>;
        fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> Result<()>;
        fn set_owner(fd: BorrowedFd<'_>, owner: u32, group: u32) -> Result<()>;
        fn xattr_names(fd: BorrowedFd<'_>) -> Result<Vec<OsString>>;
        fn xattr(fd: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>>;
        fn set_xattr(fd: BorrowedFd<'_>, name: &OsStr, value: &[u8]) -> Result<()>;
        fn remove_xattr(fd: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
        fn clone_to(
            source: BorrowedFd<'_>,
            destination: BorrowedFd<'_>,
            destination_offset: u64
        ) -> Result<()>;
        fn set_times(fd: BorrowedFd<'_>, accessed: Time, modified: Time) -> Result<()>;
        fn advise_sequential(fd: BorrowedFd<'_>) -> Result<()>;
        fn lock(fd: BorrowedFd<'_>) -> Result<()>;
        fn unlink(directory: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
    }
}
