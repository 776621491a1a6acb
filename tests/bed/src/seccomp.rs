//! System calls that a filter denies, as container engines, sandboxes and Android do.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::places::skipped;

/// A system call that a profile may deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCall {
    /// copy_file_range(2)
    CopyFileRange,
    /// sendfile(2)
    Sendfile,
    /// splice(2)
    Splice,
    /// ioctl(2) with `FICLONE`, and no other.
    Ficlone,
    /// statx(2)
    Statx,
    /// openat2(2)
    Openat2,
    /// posix_fadvise(2)
    Fadvise64,
    /// preadv2(2)
    Preadv2,
    /// pwritev2(2)
    Pwritev2,
    /// fallocate(2)
    Fallocate,
    /// renameat2(2)
    Renameat2,
    /// sendto(2), which send(2) is.
    Sendto,
    /// recvfrom(2), which recv(2) is.
    Recvfrom,
    /// ioctl(2) with `TIOCGWINSZ`, by which isatty(3) finds out, and no other.
    Isatty,
}

/// A system call, and what the filter answers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The call.
    pub call: SystemCall,
    /// The answer.
    pub errno: Errno,
}

impl SystemCall {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::CopyFileRange,
        Self::Sendfile,
        Self::Splice,
        Self::Ficlone,
        Self::Statx,
        Self::Openat2,
        Self::Fadvise64,
        Self::Preadv2,
        Self::Pwritev2,
        Self::Fallocate,
        Self::Renameat2,
        Self::Sendto,
        Self::Recvfrom,
        Self::Isatty,
    ];

    fn number(self) -> i64 {
        match self {
            Self::CopyFileRange => libc::SYS_copy_file_range,
            Self::Sendfile => libc::SYS_sendfile,
            Self::Splice => libc::SYS_splice,
            Self::Ficlone | Self::Isatty => libc::SYS_ioctl,
            Self::Statx => libc::SYS_statx,
            Self::Openat2 => libc::SYS_openat2,
            Self::Fadvise64 => libc::SYS_fadvise64,
            Self::Preadv2 => libc::SYS_preadv2,
            Self::Pwritev2 => libc::SYS_pwritev2,
            Self::Fallocate => libc::SYS_fallocate,
            Self::Renameat2 => libc::SYS_renameat2,
            Self::Sendto => libc::SYS_sendto,
            Self::Recvfrom => libc::SYS_recvfrom,
        }
    }

    /// What must be its second argument to be denied.
    fn request(self) -> Option<u64> {
        match self {
            Self::Ficlone => Some(0x4004_9409),
            Self::Isatty => Some(0x5413),
            _ => None,
        }
    }
}

/// What filters answer: as container engines do, as a kernel without the call, and as LXC and
/// Android do.
pub const ERRNOS: [Errno; 3] = [Errno::PERM, Errno::NOSYS, Errno::ACCESS];

/// Runs `body` on a thread of its own, on which these calls are denied: on those that it starts,
/// too. Says aloud why not where the kernel has no filters.
///
/// A panic of `body` is one of the caller.
pub fn run_denied<T: Send>(denied: &[Denied], body: impl FnOnce() -> T + Send) -> Option<T> {
    let current = thread::current();
    let name = current.name().unwrap_or("a test").to_owned();
    thread::scope(|scope| {
        let run = || {
            // A thread keeps its filters and hands them on, so there is no way back from here.
            for denied in denied {
                if let Err(error) = deny(*denied) {
                    skipped(&format!("no seccomp filter: {error}"));
                    return None;
                }
            }
            Some(body())
        };
        let thread = thread::Builder::new()
            .name(name)
            .spawn_scoped(scope, run)
            .expect("a test's process has room for a thread");
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn deny(Denied { call, errno }: Denied) -> Result<(), seccompiler::Error> {
    // All that matches is denied where there is no condition.
    let mut conditions = Vec::new();
    if let Some(request) = call.request() {
        let is_it = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
        conditions.push(SeccompRule::new(vec![is_it])?);
    }
    let filter = SeccompFilter::new(
        BTreeMap::from([(call.number(), conditions)]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.raw_os_error().unsigned_abs()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    let program = BpfProgram::try_from(filter)?;
    seccompiler::apply_filter(&program)
}
