//! Who is at the other end of a copy, on a thread of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::thread::JoinHandle;

use wasmtime::{Result, bail};

/// What a peer reads and writes at once: what a pipe holds.
const BLOCK: usize = 64 << 10;

/// Ends with its stream, and tells how many bytes it had.
pub(crate) struct Peer(JoinHandle<std::io::Result<u64>>);

impl Peer {
    /// Reads to the end.
    pub(crate) fn drain(mut from: File) -> Self {
        Self(std::thread::spawn(move || {
            let mut block = vec![0; BLOCK];
            let mut bytes = 0;
            loop {
                match from.read(&mut block)? {
                    0 => return Ok(bytes),
                    read => bytes += read as u64,
                }
            }
        }))
    }

    /// Writes so much, and closes.
    pub(crate) fn feed(mut to: File, size: u64) -> Self {
        Self(std::thread::spawn(move || {
            let block = vec![1; BLOCK];
            let mut left = size;
            while left > 0 {
                let length = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
                to.write_all(&block[..length])?;
                left -= length as u64;
            }
            Ok(size)
        }))
    }

    pub(crate) fn had(self, bytes: u64) -> Result<()> {
        match self.0.join() {
            Ok(Ok(had)) if had == bytes => Ok(()),
            Ok(had) => bail!("a peer had {had:?} of {bytes} bytes"),
            Err(_) => bail!("a peer panicked"),
        }
    }
}
