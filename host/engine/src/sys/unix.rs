//! The system itself. What differs by platform is taken from `os`.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::{
    At, FileInfo, Kind, Listing, Readers, Result, Sys, Terminal, Time, Watch, Way, os, signals,
    streams,
};
use crate::plan::Platform;

/// Linux lists and keeps no more than this (xattr(7)).
const XATTR_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Native;

impl Sys for Native {
    fn platform(&self) -> Platform {
        os::PLATFORM
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        match at {
            At::Beneath(directory) => os::open_beneath(directory, path, flags, mode),
            At::Ambient => rustix::fs::openat(rustix::fs::CWD, path, flags, mode),
        }
    }

    #[expect(unsafe_code, reason = "std and rustix drop what close(2) answers")]
    fn close(&self, fd: OwnedFd) -> Result<()> {
        // SAFETY: the descriptor was owned and is given up here. Whatever the answer, it is
        // closed: Linux and the BSDs release it before they report (close(2), "Dealing with error
        // returns"), so it is not closed again on EINTR.
        unsafe { rustix::io::try_close(fd.into_raw_fd()) }
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> Result<FileInfo> {
        rustix::fs::fstat(fd).map(|stat| info(&stat))
    }

    fn is_local(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        os::is_local(fd)
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo> {
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| info(&stat))
    }

    fn read_link_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf> {
        let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    fn status_flags(&self, fd: BorrowedFd<'_>) -> Result<OFlags> {
        rustix::fs::fcntl_getfl(fd)
    }

    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        os::clone_file(source, destination)
    }

    fn clone_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: u64,
    ) -> Result<()> {
        os::clone_range(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        )
    }

    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize> {
        written(os::copy_range(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        ))
    }

    fn probe_copy_range(&self) -> Result<()> {
        os::probe_copy_range()
    }

    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize> {
        written(os::send_file(source, source_offset, destination, length))
    }

    fn seek_data(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        os::seek_data(fd, offset)
    }

    fn seek_hole(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        os::seek_hole(fd, offset)
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        os::punch_hole(fd, offset, length)
    }

    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
        os::reopen(fd, flags)
    }

    fn splice(
        &self,
        source: BorrowedFd<'_>,
        source_offset: Option<u64>,
        destination: BorrowedFd<'_>,
        destination_offset: Option<u64>,
        length: usize,
    ) -> Result<usize> {
        written(os::splice(
            source,
            source_offset,
            destination,
            destination_offset,
            length,
        ))
    }

    fn read_stream(&self, fd: BorrowedFd<'_>, way: Way, buffer: &mut [u8]) -> Result<usize> {
        match way {
            Way::Plain => rustix::io::read(fd, buffer),
            Way::Message => rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT).map(|(n, _)| n),
            Way::NoWait => os::read_nowait(fd, buffer),
        }
    }

    fn write_stream(&self, fd: BorrowedFd<'_>, way: Way, bytes: &[u8]) -> Result<usize> {
        written(match way {
            Way::Plain => rustix::io::write(fd, bytes),
            Way::Message => rustix::net::send(fd, bytes, SendFlags::DONTWAIT | os::NO_SIGNAL),
            Way::NoWait => os::write_nowait(fd, bytes),
        })
    }

    fn poll(&self, watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize> {
        streams::poll(watches, timeout)
    }

    fn watch_readers(&self, name: BorrowedFd<'_>) -> Result<Readers> {
        os::watch_readers(name)
    }

    fn terminal(&self, fd: BorrowedFd<'_>) -> Result<Terminal> {
        Ok(streams::terminal(fd))
    }

    fn is_stream_socket(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        streams::is_stream_socket(fd)
    }

    fn device_size(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        os::device_size(fd)
    }

    fn seek(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<()> {
        rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(offset)).map(drop)
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        rustix::io::pread(fd, buffer, offset)
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        rustix::io::pread(fd, rustix::buffer::spare_capacity(buffer), offset)
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        written(rustix::io::pwrite(fd, bytes, offset))
    }

    fn append(&self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        written(os::append(fd, bytes))
    }

    fn truncate(&self, fd: BorrowedFd<'_>, length: u64) -> Result<()> {
        written(rustix::fs::ftruncate(fd, length))
    }

    fn set_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<()> {
        rustix::fs::fchmod(fd, Mode::from_raw_mode(mode as _))
    }

    fn set_owner(&self, fd: BorrowedFd<'_>, owner: u32, group: u32) -> Result<()> {
        rustix::fs::fchown(
            fd,
            Some(rustix::fs::Uid::from_raw(owner)),
            Some(rustix::fs::Gid::from_raw(group)),
        )
    }

    fn xattr_names(&self, fd: BorrowedFd<'_>) -> Result<Vec<OsString>> {
        let mut list = Vec::with_capacity(XATTR_MAX);
        rustix::fs::flistxattr(fd, rustix::buffer::spare_capacity(&mut list))?;
        Ok(list
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| OsString::from_vec(name.to_vec()))
            .collect())
    }

    fn xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>> {
        let mut value = Vec::with_capacity(XATTR_MAX);
        rustix::fs::fgetxattr(fd, name, rustix::buffer::spare_capacity(&mut value))?;
        Ok(value)
    }

    fn set_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        rustix::fs::fsetxattr(fd, name, value, rustix::fs::XattrFlags::empty())
    }

    fn remove_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        rustix::fs::fremovexattr(fd, name)
    }

    fn set_times(&self, fd: BorrowedFd<'_>, accessed: Time, modified: Time) -> Result<()> {
        rustix::fs::futimens(fd, &timestamps(accessed, modified))
    }

    fn advise_sequential(&self, fd: BorrowedFd<'_>) -> Result<()> {
        os::advise_sequential(fd)
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        os::sync(fd)
    }

    fn lock(&self, fd: BorrowedFd<'_>) -> Result<()> {
        rustix::fs::flock(fd, rustix::fs::FlockOperation::NonBlockingLockExclusive)
    }

    fn lock_shared(&self, fd: BorrowedFd<'_>) -> Result<()> {
        rustix::fs::flock(fd, rustix::fs::FlockOperation::NonBlockingLockShared)
    }

    fn has_writer(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        os::has_writer(fd)
    }

    fn duplicate(&self, fd: BorrowedFd<'_>) -> Result<OwnedFd> {
        rustix::io::fcntl_dupfd_cloexec(fd, 0)
    }

    fn list(
        &self,
        directory: BorrowedFd<'_>,
        each: &mut dyn FnMut(&OsStr) -> ControlFlow<()>,
    ) -> Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && each(OsStr::from_bytes(name)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn entries(&self, directory: BorrowedFd<'_>) -> Result<Listing> {
        Listing::new(self.duplicate(directory)?)
    }

    fn above(&self, directory: BorrowedFd<'_>) -> Result<OwnedFd> {
        let flags = super::DIRECTORY_ONLY | OFlags::CLOEXEC;
        rustix::fs::openat(directory, "..", flags, Mode::empty())
    }

    fn make_directory(&self, directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<()> {
        rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode as _))
    }

    fn make_link(&self, target: &Path, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        rustix::fs::symlinkat(target, directory, name)
    }

    fn make_node(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
        represents: u64,
    ) -> Result<()> {
        os::make_node(directory, name, kind, mode, represents)
    }

    fn add_name(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        to_directory: BorrowedFd<'_>,
        to_name: &OsStr,
    ) -> Result<()> {
        rustix::fs::linkat(directory, name, to_directory, to_name, AtFlags::empty())
    }

    fn set_mode_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
    ) -> Result<()> {
        os::set_mode_at(directory, name, kind, mode)
    }

    fn set_owner_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        owner: u32,
        group: u32,
    ) -> Result<()> {
        rustix::fs::chownat(
            directory,
            name,
            Some(rustix::fs::Uid::from_raw(owner)),
            Some(rustix::fs::Gid::from_raw(group)),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    }

    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        accessed: Time,
        modified: Time,
    ) -> Result<()> {
        let times = timestamps(accessed, modified);
        rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        os::sync_file_system(fd)
    }

    fn mount(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        os::mount(fd)
    }

    fn link_unnamed(
        &self,
        fd: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<()> {
        os::link_unnamed(fd, directory, name)
    }

    fn rename(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        rustix::fs::renameat(directory, old, directory, new)
    }

    fn rename_exclusive(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        match os::rename_noreplace(directory, old, new) {
            // The file system or the kernel does not have it, or a seccomp filter denies it: link(2)
            // refuses an existing name too.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
                rustix::fs::linkat(directory, old, directory, new, AtFlags::empty())?;
                rustix::fs::unlinkat(directory, old, AtFlags::empty())
            }
            answer => answer,
        }
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        rustix::fs::unlinkat(directory, name, AtFlags::empty())
    }
}

#[allow(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unnecessary_cast,
    clippy::useless_conversion,
    reason = "the types of these fields differ between platforms; all values fit the wider ones"
)]
fn info(stat: &Stat) -> FileInfo {
    let raw_mode = stat.st_mode as _;
    FileInfo {
        kind: kind_of(stat),
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        represents: stat.st_rdev as u64,
        mode: u32::from(Mode::from_raw_mode(raw_mode).bits()),
        owner: stat.st_uid,
        group: stat.st_gid,
        links: stat.st_nlink as u64,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        block_size: u64::try_from(stat.st_blksize).unwrap_or(0),
        accessed: time(stat.st_atime as i64, stat.st_atime_nsec as i64),
        modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

pub(super) fn kind_of(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode as _) {
        FileType::RegularFile => Kind::Regular,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::Character,
        FileType::BlockDevice => Kind::Block,
        FileType::Unknown => Kind::Unknown,
    }
}

fn timestamps(accessed: Time, modified: Time) -> Timestamps {
    let timespec = |time: Time| Timespec {
        tv_sec: time.seconds as _,
        tv_nsec: time.nanoseconds as _,
    };
    Timestamps {
        last_access: timespec(accessed),
        last_modification: timespec(modified),
    }
}

/// What a special file is to mknodat(2).
pub(super) fn file_type(kind: Kind) -> Result<FileType> {
    match kind {
        Kind::Fifo => Ok(FileType::Fifo),
        Kind::Socket => Ok(FileType::Socket),
        Kind::Character => Ok(FileType::CharacterDevice),
        Kind::Block => Ok(FileType::BlockDevice),
        Kind::Regular | Kind::Directory | Kind::Symlink | Kind::Unknown => Err(Errno::INVAL),
    }
}

fn time(seconds: i64, nanoseconds: i64) -> Time {
    Time {
        seconds,
        nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
    }
}

/// These two errors come with a signal.
fn written<T>(answer: Result<T>) -> Result<T> {
    if matches!(answer, Err(Errno::FBIG | Errno::PIPE)) {
        signals::consume();
    }
    answer
}
