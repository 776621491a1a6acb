//! The system itself, which writes down the calls that move data.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use copyist_engine::sys::{self, Layer, Result, Sys};

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

impl Layer for Recording {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

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
}
