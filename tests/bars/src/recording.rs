//! The system itself, which writes down the calls that move data.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use copyist_engine::Platform;
use copyist_engine::sys::{self, At, FileInfo, Result, Sys, Time};
use rustix::fs::{Mode, OFlags};

/// A data call: its name, where it read and wrote, and how much it was asked to move and did.
pub(crate) type Call = (&'static str, u64, u64, usize, Result<usize>);

pub(crate) struct Recording {
    native: Arc<dyn Sys>,
    calls: Mutex<Vec<Call>>,
}

impl Recording {
    /// Takes what was written down.
    pub(crate) fn data_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record(
        &self,
        name: &'static str,
        source: u64,
        destination: u64,
        length: usize,
        answer: Result<usize>,
    ) -> Result<usize> {
        let call = (name, source, destination, length, answer);
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        answer
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            native: sys::native(),
            calls: Mutex::default(),
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recording")
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

impl Sys for Recording {
    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        let answer = self.native.clone_file(source, destination);
        self.record("clone", 0, 0, 0, answer.map(|()| 0)).map(drop)
    }

    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize> {
        let answer = self.native.copy_range(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        );
        self.record(
            "copy_range",
            source_offset,
            destination_offset,
            length,
            answer,
        )
    }

    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize> {
        let answer = self
            .native
            .send_file(source, source_offset, destination, length);
        self.record("send_file", source_offset, 0, length, answer)
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let length = buffer.len();
        let answer = self.native.read(fd, buffer, offset);
        self.record("read", offset, 0, length, answer)
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        let length = buffer.capacity() - buffer.len();
        let answer = self.native.read_spare(fd, buffer, offset);
        self.record("read", offset, 0, length, answer)
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        let answer = self.native.write(fd, bytes, offset);
        self.record("write", 0, offset, bytes.len(), answer)
    }

    pass_on! {
        fn platform() -> Platform;
        fn open(at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd>;
        fn close(fd: OwnedFd) -> Result<()>;
        fn stat(fd: BorrowedFd<'_>) -> Result<FileInfo>;
        fn is_local(fd: BorrowedFd<'_>) -> Result<bool>;
        fn stat_at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo>;
        fn read_link_at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf>;
        fn status_flags(fd: BorrowedFd<'_>) -> Result<OFlags>;
        fn probe_copy_range() -> Result<()>;
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
        fn sync(fd: BorrowedFd<'_>) -> Result<()>;
        fn lock(fd: BorrowedFd<'_>) -> Result<()>;
        fn link_unnamed(fd: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
        fn rename(directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()>;
        fn rename_exclusive(directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()>;
        fn unlink(directory: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
    }
}
