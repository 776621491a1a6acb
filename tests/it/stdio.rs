//! Standard streams of a guest that do as a test says, and count what is done with them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use copyist_wasmtime::engine::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// The most in one call: what the streams of wasmtime-wasi have.
const MOST: usize = 64 << 10;

/// What is read: bytes that come when the test pours them.
#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Shared<Poured>>);

/// What is written: as much as the test makes room for.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Shared<Filled>>);

#[derive(Default)]
struct Shared<T> {
    state: Mutex<T>,
    changed: Notify,
}

#[derive(Default)]
struct Poured {
    bytes: VecDeque<u8>,
    end: Option<Result<(), Errno>>,
    reads: usize,
    taken: usize,
}

#[derive(Default)]
struct Filled {
    room: usize,
    bytes: Vec<u8>,
    may_flush: bool,
    is_flushing: bool,
    failure: Option<Errno>,
}

impl<T> Shared<T> {
    fn with<A>(&self, act: impl FnOnce(&mut T) -> A) -> A {
        let answer = act(&mut self.state.lock().unwrap());
        self.changed.notify_waiters();
        answer
    }

    async fn until(&self, is_so: impl Fn(&T) -> bool) {
        loop {
            // Made before the look, so that what comes after that is heard.
            let changed = self.changed.notified();
            if is_so(&self.state.lock().unwrap()) {
                return;
            }
            changed.await;
        }
    }
}

impl Tap {
    pub(crate) fn pour(&self, bytes: &[u8]) {
        self.0.with(|state| state.bytes.extend(bytes));
    }

    /// No more comes, or it breaks off.
    pub(crate) fn end(&self, why: Result<(), Errno>) {
        self.0.with(|state| state.end = Some(why));
    }

    /// How often it was read, well or not.
    pub(crate) fn reads(&self) -> usize {
        self.0.state.lock().unwrap().reads
    }

    /// Whether nobody has it but the test.
    pub(crate) fn is_free(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// How many bytes were taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.state.lock().unwrap().taken
    }
}

impl Sink {
    pub(crate) fn make_room(&self, room: usize) {
        self.0.with(|state| state.room += room);
    }

    pub(crate) fn let_flush(&self) {
        self.0.with(|state| state.may_flush = true);
    }

    /// It breaks off.
    pub(crate) fn fail(&self, why: Errno) {
        self.0.with(|state| state.failure = Some(why));
    }

    /// Whether nobody has it but the test.
    pub(crate) fn is_free(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.state.lock().unwrap().bytes.clone()
    }

    pub(crate) fn length(&self) -> usize {
        self.0.state.lock().unwrap().bytes.len()
    }

    pub(crate) fn is_flushing(&self) -> bool {
        self.0.state.lock().unwrap().is_flushing
    }
}

fn failed(why: Errno) -> StreamError {
    StreamError::LastOperationFailed(std::io::Error::from(why).into())
}

#[async_trait]
impl Pollable for Tap {
    async fn ready(&mut self) {
        let is_ready = |state: &Poured| !state.bytes.is_empty() || state.end.is_some();
        self.0.until(is_ready).await;
    }
}

#[async_trait]
impl InputStream for Tap {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.0.with(|state| {
            state.reads += 1;
            let length = state.bytes.len().min(size).min(MOST);
            if length == 0 {
                return match state.end {
                    Some(Ok(())) => Err(StreamError::Closed),
                    Some(Err(why)) => Err(failed(why)),
                    None => Ok(Bytes::new()),
                };
            }
            state.taken += length;
            Ok(state.bytes.drain(..length).collect::<Vec<_>>().into())
        })
    }
}

impl Filled {
    fn permit(&self) -> usize {
        if self.is_flushing && !self.may_flush {
            0
        } else {
            self.room.min(MOST)
        }
    }
}

#[async_trait]
impl Pollable for Sink {
    async fn ready(&mut self) {
        let is_ready = |state: &Filled| state.permit() > 0 || state.failure.is_some();
        self.0.until(is_ready).await;
    }
}

#[async_trait]
impl OutputStream for Sink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.with(|state| {
            if bytes.len() > state.permit() {
                return Err(StreamError::trap("there was no permit for it"));
            }
            state.room -= bytes.len();
            state.bytes.extend_from_slice(&bytes);
            Ok(())
        })
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.0.with(|state| state.is_flushing = true);
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.0.with(|state| match state.failure {
            Some(why) => Err(failed(why)),
            None => {
                state.is_flushing &= !state.may_flush;
                Ok(state.permit())
            }
        })
    }
}

impl IsTerminal for Tap {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl IsTerminal for Sink {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Tap {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        unreachable!("the guests are of WASI 0.2")
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

impl StdoutStream for Sink {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        unreachable!("the guests are of WASI 0.2")
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}
