//! What Linux has.

use std::ffi::OsStr;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, StatxFlags,
};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::ioctl;
use rustix::net::SendFlags;
use rustix::pipe::SpliceFlags;

use super::beneath;
use super::unix::{file_type, kind_of};
use super::{Kind, Result};
use crate::plan::Platform;

pub(super) const PLATFORM: Platform = Platform::Linux;
pub(super) const UNNAMED: Option<OFlags> = Some(OFlags::TMPFILE);
pub(super) const DIRECTORY_ONLY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
pub(super) const PATH_ONLY: Option<OFlags> = Some(OFlags::PATH);

/// openat2(2) says `EAGAIN` when a rename elsewhere made a `..` on the way uncertain. A handful of
/// tries is enough unless somebody renames in a loop; then the copy waits a little between tries.
const TRIES: usize = 4;

pub(super) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let mut answer = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        answer = rustix::fs::openat2(
            directory,
            path,
            flags,
            mode,
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        if !matches!(answer, Err(Errno::AGAIN)) {
            break;
        }
    }
    match answer {
        Err(Errno::XDEV) => Err(beneath::ESCAPE),
        // Before Linux 5.6, or denied by a seccomp filter: EPERM in containers, EACCES in LXC and on
        // Android. What is true of the file comes back from the other way.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            beneath::open(directory, path, flags, mode)
        }
        answer => answer,
    }
}

/// Magic numbers (statfs(2)) of disk file systems without a `flush` operation, so that close(2) has
/// nothing to report. overlayfs is not among them: it passes the flush on to what lies beneath.
const LOCAL: [u64; 5] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0xF2F5_2010, // F2FS
];

pub(super) fn is_local(fd: BorrowedFd<'_>) -> Result<bool> {
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the type of this field differs between architectures"
    )]
    let magic = rustix::fs::fstatfs(fd)?.f_type as u64 & 0xFFFF_FFFF;
    Ok(LOCAL.contains(&magic))
}

pub(super) fn clone_file(source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::ioctl_ficlone(destination, source)
}

#[expect(unsafe_code, reason = "rustix has the whole-file call alone")]
pub(super) fn clone_range(
    source: BorrowedFd<'_>,
    source_offset: u64,
    destination: BorrowedFd<'_>,
    destination_offset: u64,
    length: u64,
) -> Result<()> {
    /// `struct file_clone_range` (ioctl_ficlonerange(2)).
    #[repr(C)]
    struct Range {
        source: i64,
        source_offset: u64,
        source_length: u64,
        destination_offset: u64,
    }
    const FICLONERANGE: ioctl::Opcode = ioctl::opcode::write::<Range>(0x94, 13);
    let range = Range {
        source: source.as_raw_fd().into(),
        source_offset,
        source_length: length,
        destination_offset,
    };
    // SAFETY: the number and the layout are the kernel's, and the call writes nothing back.
    unsafe {
        ioctl::ioctl(
            destination,
            ioctl::Setter::<FICLONERANGE, Range>::new(range),
        )
    }
}

pub(super) fn copy_range(
    source: BorrowedFd<'_>,
    mut source_offset: u64,
    destination: BorrowedFd<'_>,
    mut destination_offset: u64,
    length: usize,
) -> Result<usize> {
    rustix::fs::copy_file_range(
        source,
        Some(&mut source_offset),
        destination,
        Some(&mut destination_offset),
        length,
    )
}

#[expect(unsafe_code, reason = "no wrapper takes a descriptor that is not one")]
pub(super) fn probe_copy_range() -> Result<()> {
    let null = std::ptr::null_mut::<libc::loff_t>();
    // SAFETY: no memory is passed, and -1 is no descriptor.
    let answer =
        unsafe { libc::syscall(libc::SYS_copy_file_range, -1, null, -1, null, 1_usize, 0) };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::NOSYS));
    }
    Ok(())
}

pub(super) fn send_file(
    source: BorrowedFd<'_>,
    mut source_offset: u64,
    destination: BorrowedFd<'_>,
    length: usize,
) -> Result<usize> {
    rustix::fs::sendfile(destination, source, Some(&mut source_offset), length)
}

pub(super) fn seek_data(fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
    rustix::fs::seek(fd, SeekFrom::Data(offset))
}

pub(super) fn seek_hole(fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
    rustix::fs::seek(fd, SeekFrom::Hole(offset))
}

pub(super) fn punch_hole(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(fd, flags, offset, length)
}

pub(super) fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, flags, Mode::empty())
}

#[expect(unsafe_code, reason = "rustix has no call for it")]
pub(super) fn device_size(fd: BorrowedFd<'_>) -> Result<u64> {
    const BLKGETSIZE64: ioctl::Opcode = ioctl::opcode::read::<usize>(0x12, 114);
    // SAFETY: the call writes a u64, and knows no other length whatever its number says.
    unsafe { ioctl::ioctl(fd, ioctl::Getter::<BLKGETSIZE64, u64>::new()) }
}

pub use super::readers::Readers;

pub(super) fn watch_readers(name: BorrowedFd<'_>) -> Result<Readers> {
    super::readers::watch(name)
}

pub(super) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

pub(super) fn splice(
    source: BorrowedFd<'_>,
    mut source_offset: Option<u64>,
    destination: BorrowedFd<'_>,
    mut destination_offset: Option<u64>,
    length: usize,
) -> Result<usize> {
    rustix::pipe::splice(
        source,
        source_offset.as_mut(),
        destination,
        destination_offset.as_mut(),
        length,
        SpliceFlags::NONBLOCK,
    )
}

/// "The current position" to preadv2(2) and pwritev2(2), which streams alone accept.
const CURRENT: u64 = u64::MAX;

pub(super) fn read_nowait(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    let mut slices = [IoSliceMut::new(buffer)];
    rustix::io::preadv2(fd, &mut slices, CURRENT, ReadWriteFlags::NOWAIT)
}

pub(super) fn write_nowait(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    rustix::io::pwritev2(fd, &[IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT)
}

pub(super) fn append(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    // With an offset, so that the file position, which others share, stays where it is. pwrite(2)
    // appends as well, but overwrites the start if somebody takes the flag away.
    let slices = [IoSlice::new(bytes)];
    match rustix::io::pwritev2(fd, &slices, 0, ReadWriteFlags::APPEND) {
        // Before Linux 4.16; a file system without write_iter; a seccomp filter.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS) => {
            rustix::io::write(fd, bytes)
        }
        answer => answer,
    }
}

pub(super) fn advise_sequential(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::Sequential)
}

pub(super) fn sync(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::fsync(fd)
}

#[expect(unsafe_code, reason = "rustix has no leases")]
pub(super) fn has_writer(fd: BorrowedFd<'_>) -> Result<bool> {
    /// `F_SETSIG`.
    const SET_SIGNAL: libc::c_int = 10;
    let control = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: the commands take a number and no memory.
        if unsafe { libc::fcntl(fd.as_raw_fd(), command, argument) } < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
        }
        Ok(())
    };
    // Whoever opens the file in the moment that the lease lasts makes the kernel send its holder a
    // signal: SIGIO, which ends a process that does not expect it, unless another one is chosen. SIGURG
    // is ignored where nobody wants it (signal(7)).
    control(SET_SIGNAL, libc::SIGURG)?;
    match control(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => control(libc::F_SETLEASE, libc::F_UNLCK).map(|()| false),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

pub(super) fn link_unnamed(
    fd: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &OsStr,
) -> Result<()> {
    match rustix::fs::linkat(fd, "", directory, name, AtFlags::EMPTY_PATH) {
        // Before Linux 6.10 an empty path asks for CAP_DAC_READ_SEARCH (open(2), O_TMPFILE).
        Err(Errno::NOENT) => rustix::fs::linkat(
            CWD,
            format!("/proc/self/fd/{}", fd.as_raw_fd()),
            directory,
            name,
            AtFlags::SYMLINK_FOLLOW,
        ),
        answer => answer,
    }
}

pub(super) fn rename_noreplace(directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
    rustix::fs::renameat_with(directory, old, directory, new, RenameFlags::NOREPLACE)
}

pub(super) fn make_node(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    kind: Kind,
    mode: u32,
    represents: u64,
) -> Result<()> {
    let mode = Mode::from_raw_mode(mode);
    rustix::fs::mknodat(directory, name, file_type(kind)?, mode, represents)
}

pub(super) fn set_mode_at(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    kind: Kind,
    mode: u32,
) -> Result<()> {
    // A name alone cannot be opened otherwise without doing something to what it stands for, and
    // fchmodat(2) by name follows a link that somebody puts there.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if kind_of(&rustix::fs::fstat(&opened)?) != kind {
        return Err(Errno::NOENT);
    }
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

pub(super) fn sync_file_system(fd: BorrowedFd<'_>) -> Result<()> {
    rustix::fs::syncfs(fd)
}

pub(super) fn mount(fd: BorrowedFd<'_>) -> Result<u64> {
    let answer = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    Ok(answer.stx_mnt_id)
}
