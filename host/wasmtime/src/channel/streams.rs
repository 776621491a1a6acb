//! A channel as a stream of `wasi:io`. Unlike those of wasmtime-wasi it reads nothing ahead, so that a
//! copy goes on where the guest stopped, and it needs no runtime: it waits in the engine's reactor.

use std::future::poll_fn;

use bytes::{Buf, Bytes};
use copyist_engine::{Cancel, Cause, Errno, NonBlocking, Passed};
use wasmtime::Trap;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::Use;

/// The most that goes through in one call: what the streams of wasmtime-wasi have.
const MOST: usize = 64 << 10;

/// What is read.
pub(super) struct Input {
    line: NonBlocking,
    spent: Cancel,
    has_ended: bool,
    _reading: Use,
}

/// What is written: up to [`MOST`] bytes stand here until there is room for them.
pub(super) struct Output {
    line: NonBlocking,
    spent: Cancel,
    pending: Bytes,
    /// Not told yet.
    failure: Option<Errno>,
    has_ended: bool,
    stalled: bool,
    _writing: Use,
}

/// The store was interrupted.
fn check(spent: &Cancel) -> StreamResult<()> {
    if spent.is_cancelled() {
        return Err(StreamError::Trap(Trap::Interrupt.into()));
    }
    Ok(())
}

fn failed(errno: Errno) -> StreamError {
    StreamError::LastOperationFailed(std::io::Error::from(errno).into())
}

impl Input {
    pub(super) fn new(reading: Use, spent: Cancel) -> Result<Self, Cause> {
        Ok(Self {
            line: NonBlocking::reader(reading.handle()?, spent.clone())?,
            spent,
            has_ended: false,
            _reading: reading,
        })
    }
}

#[async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        check(&self.spent)?;
        if self.has_ended {
            return Err(StreamError::Closed);
        }
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut buffer = vec![0; size.min(MOST)];
        match self.line.read(&mut buffer) {
            Ok(Passed::Later) => Ok(Bytes::new()),
            Ok(Passed::Bytes(0)) => {
                self.has_ended = true;
                Err(StreamError::Closed)
            }
            Ok(Passed::Bytes(taken)) => {
                buffer.truncate(taken);
                Ok(buffer.into())
            }
            Err(errno) => {
                self.has_ended = true;
                Err(failed(errno))
            }
        }
    }

    /// Others may read the same description, and be faster, any number of times.
    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        loop {
            self.ready().await;
            let bytes = self.read(size)?;
            if size == 0 || !bytes.is_empty() {
                return Ok(bytes);
            }
        }
    }
}

#[async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        if !self.has_ended {
            poll_fn(|context| self.line.poll_ready(context)).await;
        }
    }
}

impl Output {
    pub(super) fn new(writing: Use, spent: Cancel) -> Result<Self, Cause> {
        Ok(Self {
            line: NonBlocking::writer(writing.handle()?, spent.clone())?,
            spent,
            pending: Bytes::new(),
            failure: None,
            has_ended: false,
            stalled: false,
            _writing: writing,
        })
    }

    /// Writes what there is room for.
    fn push(&mut self) {
        while !self.pending.is_empty() {
            let failure = match self.line.write(&self.pending) {
                Ok(Passed::Later) => return,
                Ok(Passed::Bytes(0)) if self.stalled => Errno::IO,
                Ok(Passed::Bytes(put)) => {
                    self.stalled = put == 0;
                    self.pending.advance(put);
                    continue;
                }
                Err(errno) => errno,
            };
            self.failure = Some(failure);
            self.pending = Bytes::new();
        }
    }

    /// Writes what there is room for, and tells what went wrong, once.
    fn settle(&mut self) -> StreamResult<()> {
        check(&self.spent)?;
        self.push();
        if let Some(errno) = self.failure.take() {
            self.has_ended = true;
            return Err(failed(errno));
        }
        if self.has_ended {
            return Err(StreamError::Closed);
        }
        Ok(())
    }
}

#[async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.settle()?;
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.pending.is_empty() || bytes.len() > MOST {
            return Err(StreamError::trap(
                "more is written than there was a permit for",
            ));
        }
        self.pending = bytes;
        self.settle()
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.settle()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.settle()?;
        Ok(if self.pending.is_empty() { MOST } else { 0 })
    }

    /// It is dropped: what was written is not lost.
    async fn cancel(&mut self) {
        self.ready().await;
    }
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        self.push();
        while !self.pending.is_empty() && !self.spent.is_cancelled() {
            poll_fn(|context| self.line.poll_ready(context)).await;
            self.push();
        }
    }
}
