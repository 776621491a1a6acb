//! System calls that only tests make and that no crate here wraps.

#![allow(
    unsafe_code,
    reason = "mounts without a place, and leases, have no safe wrapper here"
)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A tmpfs of its own that no mount table shows and that is gone with its handle. Root only.
pub(crate) fn tmpfs(size: &CStr) -> io::Result<File> {
    // SAFETY: the strings of these calls end in NUL and outlive them, and descriptors that come
    // back are nobody else's.
    let context = unsafe { fd(libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 1))? };
    let configure =
        |command: libc::c_uint, key: *const libc::c_char, value: *const libc::c_char| {
            let fd = context.as_raw_fd();
            // SAFETY: as above.
            answer(unsafe { libc::syscall(libc::SYS_fsconfig, fd, command, key, value, 0) })
        };
    const SET_STRING: libc::c_uint = 1;
    const CREATE: libc::c_uint = 6;
    configure(SET_STRING, c"size".as_ptr(), size.as_ptr())?;
    configure(CREATE, std::ptr::null(), std::ptr::null())?;
    // SAFETY: as above.
    let mount = unsafe { fd(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0))? };
    Ok(mount.into())
}

/// The same directory by another mount, which no mount table shows either. Root only.
pub(crate) fn bind(directory: &Path) -> io::Result<File> {
    const CLONE: libc::c_uint = 1;
    const CLOEXEC: libc::c_uint = 0o2_000_000;
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: as above.
    let mount = unsafe {
        fd(libc::syscall(
            libc::SYS_open_tree,
            libc::AT_FDCWD,
            path.as_ptr(),
            CLONE | CLOEXEC,
        ))?
    };
    Ok(mount.into())
}

/// Makes a mount from [`bind`] one that nobody can write to.
pub(crate) fn make_read_only(mount: &File) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const READ_ONLY: u64 = 1;
    let attributes = Attributes {
        set: READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the structure is of the size that is told, and outlives the call.
    answer(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    })
}

/// Takes a lease on an open file, or gives it up: others who open it wait, or are told to come
/// again.
pub(crate) fn lease(file: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed. The holder is told of the others by SIGIO, which is ignored.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        answer(libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind).into())
    }
}

fn answer(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// # Safety
///
/// A descriptor in the answer must be new.
unsafe fn fd(fd: libc::c_long) -> io::Result<OwnedFd> {
    answer(fd)?;
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the caller's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
