//! A descriptor that ends a poll(2) from another thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::cancel::Wake;

/// The lowest number that is none of the standard streams'. One of those may be closed in this
/// process, and whoever writes to it must not end a wait.
const ABOVE_STDIO: i32 = 3;

/// See the module: an eventfd(2) where there is one, else a pipe.
#[derive(Debug)]
pub(crate) struct WakeFd {
    reader: OwnedFd,
    /// The other end of the pipe.
    writer: Option<OwnedFd>,
}

impl WakeFd {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    pub(crate) fn new() -> Result<Self, Errno> {
        use rustix::event::EventfdFlags;
        let reader = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            reader: above_stdio(reader)?,
            writer: None,
        })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    pub(crate) fn new() -> Result<Self, Errno> {
        let (reader, writer) = rustix::pipe::pipe()?;
        let [reader, writer] = [above_stdio(reader)?, above_stdio(writer)?];
        for end in [&reader, &writer] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(Self {
            reader,
            writer: Some(writer),
        })
    }
}

fn above_stdio(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    if fd.as_raw_fd() >= ABOVE_STDIO {
        return Ok(fd);
    }
    rustix::io::fcntl_dupfd_cloexec(&fd, ABOVE_STDIO)
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl WakeFd {
    /// Forgets the wakes so far.
    pub(crate) fn clear(&self) {
        // A pipe may hold more, and then it is awake once more for nothing.
        let _ = rustix::io::read(&self.reader, &mut [0; 64]);
    }
}

impl std::task::Wake for WakeFd {
    fn wake(self: Arc<Self>) {
        Wake::wake(&*self);
    }
}

impl Wake for WakeFd {
    fn wake(&self) {
        // It cannot fail but for being full, and then it is awake.
        let writer = self.writer.as_ref().unwrap_or(&self.reader);
        let _ = rustix::io::write(writer, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{self, Interest, Watch};
    use std::time::Duration;

    #[test]
    fn a_wake_before_the_wait_or_in_it_ends_it() {
        let wake = WakeFd::new().unwrap();
        let sys = sys::native();
        let mut watch = [Watch::new(wake.as_fd(), Interest::Read)];
        assert_eq!(sys.poll(&mut watch, Some(Duration::ZERO)), Ok(0));
        std::thread::scope(|scope| {
            scope.spawn(|| Wake::wake(&wake));
            assert_eq!(sys.poll(&mut watch, None), Ok(1));
        });
        Wake::wake(&wake);
        assert_eq!(sys.poll(&mut watch, None), Ok(1));
        assert!(watch[0].answer.ready && !watch[0].answer.gone);
        wake.clear();
        assert_eq!(sys.poll(&mut watch, Some(Duration::ZERO)), Ok(0));
    }
}
