//! pread(2) and pwrite(2) through a buffer.

use std::ops::Range;

use super::Cursor;
use crate::sys::{FileInfo, Result, Sys};

/// What one read takes. From 128 KiB on the time is flat, and a buffer beyond the second-level
/// cache loses a quarter (2 GB on tmpfs: 256 KiB 2.25 s, 1 MiB 2.77 s).
const BUFFER: u64 = 256 << 10;
/// For a file that is smaller, or says that it is empty (procfs).
const SMALL_BUFFER: u64 = 64 << 10;
/// A block size is a wish of the file system, not a claim on memory.
const MOST_BUFFER: u64 = 1 << 20;

/// A buffer with the bytes that were taken and are not yet put.
#[derive(Debug, Default)]
pub(crate) struct Hand {
    buffer: Vec<u8>,
    filled: Range<usize>,
}

impl Hand {
    pub(crate) fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// What was taken and is not yet put.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// So much of it needs no writing.
    pub(crate) fn skip(&mut self, length: usize) {
        self.filled.start += length.min(self.filled.len());
    }

    /// Holds what came into the first bytes of its room.
    pub(crate) fn fill(&mut self, length: usize) {
        self.filled = 0..length.min(self.buffer.len());
    }

    /// Makes room for `length` bytes, which grows but never shrinks.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        if self.buffer.len() < length {
            self.buffer = vec![0; length];
        }
        &mut self.buffer[..length]
    }
}

/// Takes up to `length` bytes from the source. 0 is the end.
pub(crate) fn take(sys: &dyn Sys, at: Cursor<'_>, hand: &mut Hand, length: usize) -> Result<usize> {
    let taken = sys.read(at.source, hand.room(length), at.source_offset)?;
    hand.fill(taken);
    Ok(taken)
}

/// Puts what is in hand, at most so much of it.
pub(crate) fn put(
    sys: &dyn Sys,
    at: Cursor<'_>,
    hand: &mut Hand,
    most: usize,
    appends: bool,
) -> Result<usize> {
    let bytes = hand.bytes();
    let bytes = &bytes[..most.min(bytes.len())];
    let put = if appends {
        sys.append(at.destination, bytes)?
    } else {
        sys.write(at.destination, bytes, at.destination_offset)?
    };
    let put = put.min(bytes.len());
    hand.skip(put);
    Ok(put)
}

/// How much one read takes: 256 KiB, or the least multiple of both block sizes above it, so that
/// no block is read or written twice.
pub(crate) fn buffer_size(source: &FileInfo, destination: Option<&FileInfo>) -> u64 {
    if source.size < BUFFER {
        return SMALL_BUFFER.max(source.size.next_multiple_of(4096));
    }
    let ours = source.block_size.max(1);
    let theirs = destination.map_or(1, |info| info.block_size.max(1));
    match least_common_multiple(ours, theirs) {
        Some(block) if block <= MOST_BUFFER => BUFFER.next_multiple_of(block),
        _ => BUFFER,
    }
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Kind, Time};

    fn file(size: u64, block_size: u64) -> FileInfo {
        FileInfo {
            kind: Kind::Regular,
            device: 1,
            inode: 1,
            represents: 0,
            mode: 0o644,
            owner: 0,
            group: 0,
            links: 1,
            size,
            blocks: size.div_ceil(512),
            block_size,
            accessed: Time::default(),
            modified: Time::default(),
            changed: Time::default(),
        }
    }

    #[test]
    fn the_buffer_is_a_multiple_of_both_blocks() {
        const KIB: u64 = 1 << 10;
        const LARGE: u64 = 1 << 30;
        let table = [
            (4 * KIB, 4 * KIB, 256 * KIB),
            (512, 4 * KIB, 256 * KIB),
            // ZFS with an odd record size, and a RAID's stripe.
            (12 * KIB, 4 * KIB, 264 * KIB),
            (384 * KIB, 256 * KIB, 768 * KIB),
            (1024 * KIB, 4 * KIB, 1024 * KIB),
            // Beyond the bound, and nonsense from a file system that lies.
            (2048 * KIB, 4 * KIB, 256 * KIB),
            (u64::MAX, u64::MAX - 1, 256 * KIB),
            (0, 0, 256 * KIB),
        ];
        for (ours, theirs, expected) in table {
            assert_eq!(
                buffer_size(&file(LARGE, ours), Some(&file(0, theirs))),
                expected,
                "{ours} and {theirs}"
            );
        }
    }

    #[test]
    fn a_small_file_gets_a_small_buffer() {
        assert_eq!(buffer_size(&file(0, 4096), None), 64 << 10);
        assert_eq!(buffer_size(&file(10, 4096), None), 64 << 10);
        assert_eq!(buffer_size(&file(100_000, 4096), None), 102_400);
    }
}
