//! System calls that no crate here wraps.

#![expect(
    unsafe_code,
    reason = "mounts without a place, and a table of descriptors of a thread's own, have no safe wrapper here"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Gives the thread a table of descriptors of its own, with 0, 1 and 2 alone, which its threads
/// share.
///
/// The caller must be the first code of its thread and hold no descriptor: to close one that was
/// opened in another table would close another one.
pub(crate) fn leave_descriptors() -> io::Result<()> {
    const UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: no memory is passed. What is closed are copies of the process's descriptors, which
    // nobody on this thread has, as its caller promises.
    answer(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, UNSHARE) })
}

/// Keeps the process from making a core dump. The kernel makes one when all threads have stopped,
/// but before any of them lets go of its descriptors; so a call of a bed that hangs would wait for
/// the server to end, and the server for the call.
pub(crate) fn make_no_core_dump() -> io::Result<()> {
    // SAFETY: no memory is passed.
    answer(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into())
}

/// A file system of its own that no mount table shows and that is gone with its last user.
pub(crate) fn mount(kind: &CStr, options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_uint = 1;
    // SAFETY: of all calls here: the strings end in NUL and outlive the call, and descriptors
    // that come back are nobody else's.
    let context = unsafe { fd(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC))? };
    let configure = |command: libc::c_uint, key: Option<&CStr>, value: Option<&CStr>| {
        let pointer = |string: Option<&CStr>| string.map_or(std::ptr::null(), CStr::as_ptr);
        let (key, value) = (pointer(key), pointer(value));
        // SAFETY: as above.
        answer(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                command,
                key,
                value,
                0,
            )
        })
    };
    const SET_FLAG: libc::c_uint = 0;
    const SET_STRING: libc::c_uint = 1;
    const CREATE: libc::c_uint = 6;
    for (key, value) in options {
        let key = CString::new(*key)?;
        let value = CString::new(*value)?;
        if value.is_empty() {
            configure(SET_FLAG, Some(&key), None)?;
        } else {
            configure(SET_STRING, Some(&key), Some(&value))?;
        }
    }
    configure(CREATE, None, None)?;
    // SAFETY: as above.
    unsafe {
        fd(libc::syscall(
            libc::SYS_fsmount,
            context.as_raw_fd(),
            CLOEXEC,
            0,
        ))
    }
}

/// Whether another file has the first of its bytes by the same storage (FIEMAP).
pub(crate) fn shares_storage(file: BorrowedFd<'_>) -> io::Result<bool> {
    /// `struct fiemap` with one `struct fiemap_extent`.
    #[repr(C)]
    #[derive(Default)]
    struct Map {
        start: u64,
        length: u64,
        flags: u32,
        mapped: u32,
        count: u32,
        reserved: u32,
        extent: [u64; 5],
        extent_flags: u32,
        extent_reserved: [u32; 3],
    }
    const FIEMAP: libc::c_ulong = 0xC020_660B;
    const SYNC: u32 = 1;
    const SHARED: u32 = 0x2000;
    let mut map = Map {
        length: u64::MAX,
        flags: SYNC,
        count: 1,
        ..Map::default()
    };
    // SAFETY: the structure is what the call reads and writes, with room for the one extent that
    // it says, and outlives the call.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) }.into())?;
    Ok(map.mapped == 1 && map.extent_flags & SHARED != 0)
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
