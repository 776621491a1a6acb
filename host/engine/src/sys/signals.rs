//! Signals that would end the process for what is an error of one copy.
//!
//! A write beyond `RLIMIT_FSIZE` raises SIGXFSZ, one into a pipe without a reader SIGPIPE; both
//! end a process that does nothing about them (setrlimit(2), pipe(7)). They go to the thread that
//! wrote, so it is enough to block them there and take them back after the error.

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Blocks SIGPIPE and SIGXFSZ in this thread until it is dropped, on the same thread.
///
/// [`copy`](crate::copy) and the pool's threads hold one. A thread of your own which copies many
/// small files saves two calls a copy by holding one throughout: an inner one makes no call.
#[derive(Debug)]
pub struct FatalSignalsBlocked {
    previous: Option<libc::sigset_t>,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl FatalSignalsBlocked {
    /// Blocks them.
    #[expect(unsafe_code, reason = "std and rustix have no call for a signal mask")]
    pub fn new() -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        let previous = (depth == 0).then(|| {
            let mut previous = MaybeUninit::uninit();
            // SAFETY: both sets are valid for the call, which fills the second.
            unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, &signals(), previous.as_mut_ptr());
                previous.assume_init()
            }
        });
        Self {
            previous,
            stays_on_its_thread: PhantomData,
        }
    }
}

impl Default for FatalSignalsBlocked {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for FatalSignalsBlocked {
    #[expect(unsafe_code, reason = "std and rustix have no call for a signal mask")]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if let Some(previous) = &self.previous {
            // SAFETY: the set was filled by the same call.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, previous, std::ptr::null_mut());
            }
        }
    }
}

/// Takes back the signal that came with an error, where this thread has it blocked.
#[expect(
    unsafe_code,
    reason = "std and rustix have no call for pending signals"
)]
pub(super) fn consume() {
    if DEPTH.get() == 0 {
        return;
    }
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the set is valid for the call, which fills it; the signals waited for are blocked
    // in this thread and pending, so the wait returns at once.
    unsafe {
        if libc::sigpending(pending.as_mut_ptr()) != 0 {
            return;
        }
        let pending = pending.assume_init();
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            if libc::sigismember(&pending, signal) == 1 {
                let mut set = MaybeUninit::uninit();
                libc::sigemptyset(set.as_mut_ptr());
                let mut set = set.assume_init();
                libc::sigaddset(&mut set, signal);
                let mut taken = 0;
                libc::sigwait(&set, &mut taken);
            }
        }
    }
}

#[expect(unsafe_code, reason = "the set is filled by the C library")]
fn signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        libc::sigaddset(&mut set, libc::SIGPIPE);
        libc::sigaddset(&mut set, libc::SIGXFSZ);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_beyond_the_limit_is_an_error_and_no_signal() {
        // The limit is the process's, so the write happens in a child of this test binary.
        const CHILD: &str = "COPYIST_TEST_FSIZE_CHILD";
        if std::env::var_os(CHILD).is_none() {
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "sys::signals::tests::a_write_beyond_the_limit_is_an_error_and_no_signal",
                    "--exact",
                ])
                .env(CHILD, "1")
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{status}");
            return;
        }
        rustix::process::setrlimit(
            rustix::process::Resource::Fsize,
            rustix::process::Rlimit {
                current: Some(4),
                maximum: Some(4),
            },
        )
        .unwrap();
        let file = tempfile::tempfile().unwrap();
        let sys = super::super::native();
        use std::os::fd::AsFd;
        {
            let _outer = FatalSignalsBlocked::new();
            let _inner = FatalSignalsBlocked::new();
            assert_eq!(
                sys.write(file.as_fd(), b"beyond", 8),
                Err(rustix::io::Errno::FBIG)
            );
        }
        // The mask is back as it was: a pending signal would end the process here.
    }
}
