//! The seam: every system call that the copier makes goes through [`Sys`].
//!
//! [`native`] is the system itself. Tests put another one in its place that records the calls,
//! fails them by a schedule, or plays another platform. What a platform must supply stands in
//! `unix.rs`, which takes the calls that differ from `linux.rs` or `other.rs`.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::plan::Platform;

mod beneath;
mod listing;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod readers;
mod signals;
mod streams;
mod unix;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod os;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod os;

pub use listing::{Listed, Listing};
pub use os::Readers;
pub use signals::FatalSignalsBlocked;

/// What a system call answers.
pub type Result<T> = std::result::Result<T, Errno>;

/// Where a path starts.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// At this directory, and resolution stays beneath it: absolute paths, `..` above it and
    /// links out of it answer `EPERM`. An `O_PATH` descriptor will do.
    Beneath(BorrowedFd<'a>),
    /// At the working directory of the process, going anywhere.
    Ambient,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, or a pipe without a name.
    Fifo,
    /// A socket.
    Socket,
    /// A terminal, or another device that is read and written as a stream.
    Character,
    /// A disk or a part of one.
    Block,
    /// None of these: what eventfd(2), epoll_create(2) and others make.
    Unknown,
}

/// How bytes are taken from a stream and put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// read(2) and write(2), which sleep unless the description has `O_NONBLOCK`.
    Plain,
    /// recv(2) and send(2) with `MSG_DONTWAIT`, and no SIGPIPE.
    Message,
    /// preadv2(2) and pwritev2(2) with `RWF_NOWAIT`.
    NoWait,
}

/// What a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// None at all.
    No,
    /// A terminal that programs run on.
    Slave,
    /// The other side of one (pty(7)), which must not be opened once more: that makes a new one.
    Master,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes, or the end.
    Read,
    /// Room.
    Write,
    /// Nothing but that nobody is at the other end any more.
    Gone,
}

/// What poll(2) tells of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// What the wait is for has come, or an error that the next call will tell.
    pub ready: bool,
    /// Nobody is at the other end any more.
    pub gone: bool,
}

/// A descriptor that is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// Which.
    pub fd: BorrowedFd<'a>,
    /// What for.
    pub interest: Interest,
    /// What came.
    pub answer: Readiness,
}

impl<'a> Watch<'a> {
    /// One that nothing is known of.
    pub fn new(fd: BorrowedFd<'a>, interest: Interest) -> Self {
        Self {
            fd,
            interest,
            answer: Readiness::default(),
        }
    }
}

/// Seconds since 1970 (negative before) and nanoseconds above them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// What fstat(2) tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// What it is.
    pub kind: Kind,
    /// The file system's device.
    pub device: u64,
    /// The inode; 0 on file systems that give none.
    pub inode: u64,
    /// Of a device: which it is. There may be several names of one.
    pub represents: u64,
    /// Permission, setuid, setgid and sticky bits.
    pub mode: u32,
    /// The user that it belongs to.
    pub owner: u32,
    /// The group that it belongs to.
    pub group: u32,
    /// How many names it has.
    pub links: u64,
    /// What it says of its length in bytes.
    pub size: u64,
    /// Allocated units of 512 bytes; 0 for the files of procfs and sysfs, whatever their size.
    pub blocks: u64,
    /// The preferred size of a read or write in bytes.
    pub block_size: u64,
    /// Last access.
    pub accessed: Time,
    /// Last change of the content.
    pub modified: Time,
    /// Last change of content or attributes.
    pub changed: Time,
}

impl FileInfo {
    /// What stands for an end that is in this process and no file.
    pub(crate) fn of_feed() -> Self {
        Self {
            kind: Kind::Fifo,
            device: 0,
            inode: 0,
            mode: 0o666,
            represents: 0,
            owner: 0,
            group: 0,
            links: 1,
            size: 0,
            blocks: 0,
            block_size: 0,
            accessed: Time::default(),
            modified: Time::default(),
            changed: Time::default(),
        }
    }

    /// Whether both describe one file, or one disk. Without an inode number nobody can tell.
    pub fn is_same_file(&self, other: &Self) -> bool {
        if self.kind == Kind::Block && other.kind == Kind::Block {
            return self.represents == other.represents;
        }
        self.inode != 0 && self.device == other.device && self.inode == other.inode
    }
}

/// Makes the seam of one list of calls: [`Sys`], and [`Layer`], which has each of them by what lies
/// below.
macro_rules! system_calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(&self $(, $argument:ident: $kind:ty)* $(,)?) -> $answer:ty;
    )*) => {
        /// The system calls that the copier makes. One method is one call, but where it says
        /// otherwise; none of them retries on `EINTR`.
        pub trait Sys: Debug + Send + Sync {
            $($(#[$doc])* fn $name(&self $(, $argument: $kind)*) -> $answer;)*
        }

        /// A system over another one: what it does not say itself it passes on.
        pub trait Layer: Debug + Send + Sync {
            /// The system that it lies over.
            fn below(&self) -> &dyn Sys;

            /// Comes before each call that is passed on.
            fn before(&self, _call: &'static str) {}

            /// Comes after each call that was passed on.
            fn after(&self, _call: &'static str) {}

            $($(#[$doc])* fn $name(&self $(, $argument: $kind)*) -> $answer {
                self.before(stringify!($name));
                let answer = self.below().$name($($argument),*);
                self.after(stringify!($name));
                answer
            })*
        }

        impl<L: Layer> Sys for L {
            $(fn $name(&self $(, $argument: $kind)*) -> $answer {
                Layer::$name(self $(, $argument)*)
            })*
        }
    };
}

system_calls! {
    /// Whose plan applies.
    fn platform(&self) -> Platform;
    /// Opens a path. `O_CLOEXEC`, `O_NONBLOCK` and `O_NOCTTY` are the caller's to give.
    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd>;
    /// Closes a descriptor and tells what the file system says to it: some report a full disk or
    /// quota only here.
    fn close(&self, fd: OwnedFd) -> Result<()>;
    /// fstat(2).
    fn stat(&self, fd: BorrowedFd<'_>) -> Result<FileInfo>;
    /// Whether the file lies on a local file system that is known to report every error where it
    /// happens, and none at close(2) (fstatfs(2)).
    fn is_local(&self, fd: BorrowedFd<'_>) -> Result<bool>;
    /// fstatat(2) of one name, not following a link.
    fn stat_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo>;
    /// readlinkat(2) of one name.
    fn read_link_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf>;
    /// The file status flags (`F_GETFL`).
    fn status_flags(&self, fd: BorrowedFd<'_>) -> Result<OFlags>;
    /// Shares all of the source's storage with the destination (`FICLONE`).
    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()>;
    /// Shares a part of the source's storage with the destination (`FICLONERANGE`): all of it, or
    /// none. A length of 0 reaches to the end.
    fn clone_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: u64,
    ) -> Result<()>;
    /// copy_file_range(2) at explicit offsets.
    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize>;
    /// copy_file_range(2) of descriptors that cannot be valid: `EBADF` where the call exists and is
    /// not denied.
    fn probe_copy_range(&self) -> Result<()>;
    /// sendfile(2) from an explicit offset to the file position of the destination.
    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize>;
    /// splice(2), which does not wait for a pipe. With an offset where the end is no stream.
    fn splice(
        &self,
        source: BorrowedFd<'_>,
        source_offset: Option<u64>,
        destination: BorrowedFd<'_>,
        destination_offset: Option<u64>,
        length: usize,
    ) -> Result<usize>;
    /// Reads from a stream.
    fn read_stream(&self, fd: BorrowedFd<'_>, way: Way, buffer: &mut [u8]) -> Result<usize>;
    /// Writes to a stream.
    fn write_stream(&self, fd: BorrowedFd<'_>, way: Way, bytes: &[u8]) -> Result<usize>;
    /// Waits for any of these, no longer than this (poll(2)), and tells how many have something to
    /// say.
    fn poll(&self, watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize>;
    /// Watches for readers that come to a FIFO and leave it again, by a descriptor of its name.
    fn watch_readers(&self, name: BorrowedFd<'_>) -> Result<Readers>;
    /// Whether it is a terminal, and which side of one.
    fn terminal(&self, fd: BorrowedFd<'_>) -> Result<Terminal>;
    /// Whether a socket carries a stream of bytes: `false` for one that listens, or that carries
    /// messages (getsockopt(2), `SO_ACCEPTCONN` and `SO_TYPE`).
    fn is_stream_socket(&self, fd: BorrowedFd<'_>) -> Result<bool>;
    /// The size of a block device in bytes.
    fn device_size(&self, fd: BorrowedFd<'_>) -> Result<u64>;
    /// Where the next data is, at `offset` or after it (lseek(2), `SEEK_DATA`). Moves the file
    /// position.
    fn seek_data(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64>;
    /// Where the next hole is, at `offset` or after it (lseek(2), `SEEK_HOLE`). Moves the file
    /// position.
    fn seek_hole(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64>;
    /// Takes away what is allocated to a part of a file, which then reads as zeros; the length stays
    /// (fallocate(2), `FALLOC_FL_PUNCH_HOLE`).
    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;
    /// Opens the same file once more, with a position and flags of its own. `O_CLOEXEC`,
    /// `O_NONBLOCK` and `O_NOCTTY` are the caller's to give.
    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd>;
    /// Moves the file position (lseek(2), from the start).
    fn seek(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<()>;
    /// pread(2).
    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// pread(2) into the spare capacity of a vector, whose length grows by what was read.
    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize>;
    /// pwrite(2).
    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize>;
    /// Writes at the end of a file opened with `O_APPEND`. Its position stays where the platform
    /// has a call for that. Up to two calls.
    fn append(&self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize>;
    /// ftruncate(2).
    fn truncate(&self, fd: BorrowedFd<'_>, length: u64) -> Result<()>;
    /// fchmod(2).
    fn set_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<()>;
    /// fchown(2).
    fn set_owner(&self, fd: BorrowedFd<'_>, owner: u32, group: u32) -> Result<()>;
    /// The names of all extended attributes (flistxattr(2)).
    fn xattr_names(&self, fd: BorrowedFd<'_>) -> Result<Vec<OsString>>;
    /// The value of one (fgetxattr(2)).
    fn xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>>;
    /// fsetxattr(2).
    fn set_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr, value: &[u8]) -> Result<()>;
    /// fremovexattr(2).
    fn remove_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
    /// futimens(2).
    fn set_times(&self, fd: BorrowedFd<'_>, accessed: Time, modified: Time) -> Result<()>;
    /// Tells the kernel that the file is read from start to end: one advice, for the whole file.
    fn advise_sequential(&self, fd: BorrowedFd<'_>) -> Result<()>;
    /// Puts the file on stable storage (fsync(2)).
    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()>;
    /// Takes an exclusive advisory lock that ends with the descriptor (flock(2)), without waiting.
    fn lock(&self, fd: BorrowedFd<'_>) -> Result<()>;
    /// Takes a shared advisory lock that ends with the descriptor (flock(2)), without waiting.
    fn lock_shared(&self, fd: BorrowedFd<'_>) -> Result<()>;
    /// Whether anybody on this machine has the file open to be written, asked by a descriptor that is
    /// open to read and no more: by a lease (fcntl(2), `F_SETLEASE`), which is given back at once. Up
    /// to three calls.
    fn has_writer(&self, fd: BorrowedFd<'_>) -> Result<bool>;
    /// One more descriptor of the same open file (fcntl(2), `F_DUPFD_CLOEXEC`).
    fn duplicate(&self, fd: BorrowedFd<'_>) -> Result<OwnedFd>;
    /// Tells `each` the names in a directory, without `.` and `..`, until it breaks off. As many calls
    /// of getdents(2) as it takes, on a descriptor of its own.
    fn list(
        &self,
        directory: BorrowedFd<'_>,
        each: &mut dyn FnMut(&OsStr) -> ControlFlow<()>,
    ) -> Result<()>;
    /// Begins to list a directory that is open to be read; the listing moves its file position. More
    /// calls of getdents(2) follow as the listing goes on.
    fn entries(&self, directory: BorrowedFd<'_>) -> Result<Listing>;
    /// Opens the directory above (`..`), wherever that is. For what only asks who somebody is: nothing
    /// may be resolved from there.
    fn above(&self, directory: BorrowedFd<'_>) -> Result<OwnedFd>;
    /// mkdirat(2).
    fn make_directory(&self, directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<()>;
    /// symlinkat(2).
    fn make_link(&self, target: &Path, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
    /// mknodat(2): a FIFO, the name of a socket, or a device, which stands for `represents`.
    fn make_node(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
        represents: u64,
    ) -> Result<()>;
    /// linkat(2): one more name for what has the first one, which is not followed.
    fn add_name(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        to_directory: BorrowedFd<'_>,
        to_name: &OsStr,
    ) -> Result<()>;
    /// chmod(2) of what has a name, if that is of this kind, which is no link. Up to four calls.
    fn set_mode_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
    ) -> Result<()>;
    /// fchownat(2), not following a link.
    fn set_owner_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        owner: u32,
        group: u32,
    ) -> Result<()>;
    /// utimensat(2), not following a link.
    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        accessed: Time,
        modified: Time,
    ) -> Result<()>;
    /// Puts all of the file system on stable storage in which this lies (syncfs(2)). `ENOSYS` where the
    /// platform has no such call.
    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()>;
    /// Which mount it is reached through, by a number (statx(2), `STATX_MNT_ID`).
    fn mount(&self, fd: BorrowedFd<'_>) -> Result<u64>;
    /// Gives a file without a name (`O_TMPFILE`) one. Up to two calls.
    fn link_unnamed(
        &self,
        fd: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<()>;
    /// renameat(2) within one directory, over whatever has the new name.
    fn rename(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()>;
    /// The same, but `EEXIST` if something has the new name. Up to three calls.
    fn rename_exclusive(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()>;
    /// unlinkat(2) of a file.
    fn unlink(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()>;
}

/// The flag that opens a file without a name, where the platform has it.
pub(crate) const UNNAMED: Option<OFlags> = os::UNNAMED;
/// Enough to resolve names at, and no more.
pub(crate) const DIRECTORY_ONLY: OFlags = os::DIRECTORY_ONLY;
/// Opens a file without opening what it stands for, where the platform can.
pub(crate) const PATH_ONLY: Option<OFlags> = os::PATH_ONLY;

/// The system that the process runs on.
pub fn native() -> Arc<dyn Sys> {
    Arc::new(unix::Native)
}
