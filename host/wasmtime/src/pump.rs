//! Streams of `wasi:io` as ends of a copy.
//!
//! They have no descriptor, so that their bytes go through the host: from a stream into a
//! [`Feed`] of the copy, or the other way round. Nothing is read from a stream before the copy has
//! room for it, and a copy into one succeeds when the stream is flushed.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use copyist_engine::{Errno, Feed, Passed, Summary};
use wasmtime::Result;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::pipe::{ClosedInputStream, ClosedOutputStream};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamError};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};

use crate::ticket::{Ended, Ticket};

/// The most that is passed at once: wasmtime-wasi reads and writes no more in one call.
const CHUNK: usize = 64 << 10;

/// The streams of one copy, with the other sides of its feeds.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) input: Option<(DynInputStream, Feed)>,
    pub(crate) output: Option<(DynOutputStream, Feed)>,
    /// Where the bytes go that no stream takes.
    pub(crate) memory: Option<(Memory, Feed)>,
}

/// Bytes that are collected, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) bytes: Vec<u8>,
    pub(crate) limit: u64,
    /// There were more.
    pub(crate) is_over: bool,
}

impl Streams {
    /// Passes the bytes of a job's streams beside it. Each task ends with the copy, or when its handle
    /// is dropped.
    pub(crate) fn run(self) -> Vec<AbortOnDropJoinHandle<()>> {
        let input = self.input.map(|(mut stream, feed)| {
            spawn(async move {
                // There is no call that could trap: the job fails.
                if pump_in(&mut stream, &feed).await.is_err() {
                    feed.end(Err(Errno::IO));
                }
            })
        });
        let output = self.output.map(|(mut stream, feed)| {
            spawn(async move {
                if pump_out(&mut stream, &feed).await.is_err() {
                    feed.refuse(Errno::IO);
                }
            })
        });
        input.into_iter().chain(output).collect()
    }

    /// Waits for a copy and pumps its streams meanwhile. A stream that traps ends both.
    pub(crate) async fn carry(&mut self, mut ticket: Ticket<Summary>) -> Result<Ended<Summary>> {
        let mut pumps: Vec<Pin<Box<dyn Future<Output = Result<()>> + Send + '_>>> = Vec::new();
        if let Some((stream, feed)) = &mut self.input {
            pumps.push(Box::pin(pump_in(stream, feed)));
        }
        if let Some((stream, feed)) = &mut self.output {
            pumps.push(Box::pin(pump_out(stream, feed)));
        }
        if let Some((memory, feed)) = &mut self.memory {
            pumps.push(Box::pin(collect(memory, feed)));
        }
        poll_fn(|context| poll(&mut ticket, &mut pumps, context)).await
    }
}

fn poll(
    ticket: &mut Ticket<Summary>,
    pumps: &mut Vec<Pin<Box<dyn Future<Output = Result<()>> + Send + '_>>>,
    context: &mut Context<'_>,
) -> Poll<Result<Ended<Summary>>> {
    if let Poll::Ready(ended) = Pin::new(ticket).poll(context) {
        return Poll::Ready(Ok(ended));
    }
    let mut trap = Ok(());
    pumps.retain_mut(|pump| match pump.as_mut().poll(context) {
        Poll::Pending => true,
        Poll::Ready(ended) => {
            if ended.is_err() {
                trap = ended;
            }
            false
        }
    });
    match trap {
        Ok(()) => Poll::Pending,
        Err(trap) => Poll::Ready(Err(trap)),
    }
}

async fn pump_in(stream: &mut DynInputStream, feed: &Feed) -> Result<()> {
    // An error is the copy's, which has ended and says why.
    while let Ok(room) = room(feed).await {
        let bytes = match stream.read(room.min(CHUNK)) {
            Ok(bytes) if bytes.is_empty() => {
                stream.ready().await;
                continue;
            }
            Ok(bytes) => bytes,
            Err(StreamError::Closed) => {
                feed.end(Ok(()));
                break;
            }
            Err(StreamError::LastOperationFailed(error)) => {
                feed.end(Err(errno(&error)));
                break;
            }
            Err(StreamError::Trap(error)) => return Err(error),
        };
        if feed.put(&bytes).is_err() {
            break;
        }
    }
    Ok(())
}

async fn pump_out(stream: &mut DynOutputStream, feed: &Feed) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        let room = match permit(stream).await {
            Ok(room) => room,
            Err(error) => return refuse(feed, error),
        };
        buffer.resize(room.min(CHUNK), 0);
        match poll_fn(|context| take(feed, &mut buffer, context)).await {
            Ok(0) => break,
            Ok(taken) => {
                if let Err(error) = stream.write(Bytes::copy_from_slice(&buffer[..taken])) {
                    return refuse(feed, error);
                }
            }
            // The copy failed, and says why. What has come before is not held back.
            Err(_) => {
                if stream.flush().is_ok() {
                    let _ = permit(stream).await;
                }
                return Ok(());
            }
        }
    }
    if let Err(error) = stream.flush() {
        return refuse(feed, error);
    }
    // It is flushed when it may be written again (wasi:io/streams, `flush`).
    match permit(stream).await {
        Ok(_) => {
            feed.settle();
            Ok(())
        }
        Err(error) => refuse(feed, error),
    }
}

async fn collect(memory: &mut Memory, feed: &Feed) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    while let Ok(taken) = poll_fn(|context| take(feed, &mut buffer, context)).await {
        if taken == 0 {
            feed.settle();
            break;
        }
        let all = memory.bytes.len() as u64 + taken as u64;
        if all > memory.limit {
            memory.is_over = true;
            feed.refuse(Errno::FBIG);
            break;
        }
        memory.bytes.extend_from_slice(&buffer[..taken]);
    }
    Ok(())
}

/// How much may be written to a stream, once that is anything.
async fn permit(stream: &mut DynOutputStream) -> Result<usize, StreamError> {
    loop {
        stream.ready().await;
        match stream.check_write()? {
            0 => {}
            room => return Ok(room),
        }
    }
}

fn refuse(feed: &Feed, error: StreamError) -> Result<()> {
    match error {
        StreamError::Closed => feed.refuse(Errno::PIPE),
        StreamError::LastOperationFailed(error) => feed.refuse(errno(&error)),
        StreamError::Trap(error) => return Err(error),
    }
    Ok(())
}

async fn room(feed: &Feed) -> Result<usize, Errno> {
    poll_fn(|context| match feed.room(context.waker()) {
        Ok(Passed::Bytes(room)) => Poll::Ready(Ok(room)),
        Ok(Passed::Later) => Poll::Pending,
        Err(errno) => Poll::Ready(Err(errno)),
    })
    .await
}

fn take(feed: &Feed, buffer: &mut [u8], context: &mut Context<'_>) -> Poll<Result<usize, Errno>> {
    match feed.take(buffer, context.waker()) {
        Ok(Passed::Bytes(taken)) => Poll::Ready(Ok(taken)),
        Ok(Passed::Later) => Poll::Pending,
        Err(errno) => Poll::Ready(Err(errno)),
    }
}

/// What the system said, where it was the system.
fn errno(error: &wasmtime::Error) -> Errno {
    error
        .downcast_ref::<std::io::Error>()
        .and_then(Errno::from_io_error)
        .unwrap_or(Errno::IO)
}

/// Streams that a guest lent for one call. They stand in the table as closed ones meanwhile, and are
/// put back however the call ends.
pub(crate) struct Lent<'a> {
    table: &'a mut ResourceTable,
    input: Option<Resource<DynInputStream>>,
    output: Option<Resource<DynOutputStream>>,
    pub(crate) streams: Streams,
}

/// Which of a call's ends are streams, by their handles, with the copy's sides of their feeds.
#[derive(Default)]
pub(crate) struct Handles {
    pub(crate) input: Option<(Resource<DynInputStream>, Feed)>,
    pub(crate) output: Option<(Resource<DynOutputStream>, Feed)>,
}

impl Handles {
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }
}

impl<'a> Lent<'a> {
    pub(crate) fn take(table: &'a mut ResourceTable, handles: Handles) -> Result<Self> {
        let mut streams = Streams::default();
        let (mut input, mut output) = (None, None);
        if let Some((handle, feed)) = handles.input {
            let place = table.get_mut(&handle)?;
            streams.input = Some((mem::replace(place, Box::new(ClosedInputStream)), feed));
            input = Some(handle);
        }
        if let Some((handle, feed)) = handles.output {
            let place = table.get_mut(&handle)?;
            streams.output = Some((mem::replace(place, Box::new(ClosedOutputStream)), feed));
            output = Some(handle);
        }
        Ok(Self {
            table,
            input,
            output,
            streams,
        })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let (Some(handle), Some((stream, _))) = (&self.input, self.streams.input.take())
            && let Ok(place) = self.table.get_mut(handle)
        {
            *place = stream;
        }
        if let (Some(handle), Some((stream, _))) = (&self.output, self.streams.output.take())
            && let Ok(place) = self.table.get_mut(handle)
        {
            *place = stream;
        }
    }
}
