//! The content of a file as a file system keeps it: blocks of data, blocks that are allocated and
//! read as zeros, and holes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use copyist_engine::Errno;
use copyist_engine::sys::Result;

/// The size of a block.
pub(crate) const BLOCK: u64 = PAGE as u64;
/// No file is longer.
pub(crate) const LAST: u64 = i64::MAX as u64;

const PAGE: usize = 4096;
type Page = [u8; PAGE];

#[derive(Clone, Debug)]
enum Block {
    /// Allocated in advance: zeros that count.
    Unwritten,
    /// Shared with another file where both hold the same `Arc`.
    Data(Arc<Page>),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// By their number. One that is not here is a hole.
    blocks: BTreeMap<u64, Block>,
    size: u64,
}

impl Content {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Allocated units of 512 bytes.
    pub(crate) fn units(&self) -> u64 {
        self.blocks.len() as u64 * (BLOCK / 512)
    }

    /// The numbers of the blocks that are allocated.
    pub(crate) fn allocated(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// How often data and holes follow each other.
    pub(crate) fn runs(&self) -> u64 {
        let mut runs = 0;
        let mut last = None;
        for (number, block) in &self.blocks {
            let is_data = matches!(block, Block::Data(_));
            if last != Some((*number, is_data)) {
                runs += 2;
            }
            last = Some((number + 1, is_data));
        }
        runs
    }

    /// All of it, which must be little.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; place(self.size)];
        self.read(0, &mut bytes);
        bytes
    }

    /// As pread(2).
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let length = place(self.size.saturating_sub(offset).min(buffer.len() as u64));
        buffer[..length].fill(0);
        for (number, range, at) in pieces(offset, length) {
            if let Some(Block::Data(page)) = self.blocks.get(&number) {
                buffer[at..at + range.len()].copy_from_slice(&page[range]);
            }
        }
        length
    }

    /// As pwrite(2), of bytes that end before [`LAST`].
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (number, range, at) in pieces(offset, bytes.len()) {
            let part = &bytes[at..at + range.len()];
            if let Ok(whole) = Page::try_from(part) {
                self.blocks.insert(number, Block::Data(Arc::new(whole)));
            } else {
                self.page(number)[range].copy_from_slice(part);
            }
        }
        if !bytes.is_empty() {
            self.size = self.size.max(offset + bytes.len() as u64);
        }
    }

    /// As ftruncate(2).
    pub(crate) fn truncate(&mut self, length: u64) {
        if length < self.size {
            drop(self.blocks.split_off(&length.div_ceil(BLOCK)));
            let used = place(length % BLOCK);
            if used > 0
                && let Some(Block::Data(page)) = self.blocks.get_mut(&(length / BLOCK))
            {
                Arc::make_mut(page)[used..].fill(0);
            }
        }
        self.size = length;
    }

    /// As fallocate(2), `FALLOC_FL_PUNCH_HOLE`.
    pub(crate) fn punch(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let touched = offset / BLOCK..end.div_ceil(BLOCK);
        let numbers: Vec<_> = self
            .blocks
            .range(touched)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            let start = number * BLOCK;
            if offset <= start && start + BLOCK <= end {
                self.blocks.remove(&number);
            } else if let Some(Block::Data(page)) = self.blocks.get_mut(&number) {
                let from = place(offset.saturating_sub(start));
                let to = place(end.saturating_sub(start).min(BLOCK));
                Arc::make_mut(page)[from..to].fill(0);
            }
        }
    }

    /// Allocates what is a hole in the blocks of this range.
    pub(crate) fn allocate(&mut self, range: Range<u64>) {
        for number in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            self.blocks.entry(number).or_insert(Block::Unwritten);
        }
    }

    /// As lseek(2), `SEEK_DATA`.
    pub(crate) fn data(&self, offset: u64) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        let next = self
            .blocks
            .range(offset / BLOCK..)
            .find(|(_, block)| matches!(block, Block::Data(_)));
        match next {
            Some((number, _)) if number * BLOCK < self.size => Ok(offset.max(number * BLOCK)),
            _ => Err(Errno::NXIO),
        }
    }

    /// As lseek(2), `SEEK_HOLE`.
    pub(crate) fn hole(&self, offset: u64) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        let mut number = offset / BLOCK;
        while matches!(self.blocks.get(&number), Some(Block::Data(_))) {
            number += 1;
        }
        Ok(offset.max(number * BLOCK).min(self.size))
    }

    /// Shares a part of `source`, which ends where that file ends or where a block does. Holes
    /// become holes.
    pub(crate) fn share(&mut self, source: &Self, from: u64, to: u64, length: u64) {
        let whole = from.is_multiple_of(BLOCK) && to.is_multiple_of(BLOCK);
        assert!(whole, "storage is shared by the block");
        let blocks = length.div_ceil(BLOCK);
        let (first, target) = (from / BLOCK, to / BLOCK);
        let held: Vec<_> = self
            .blocks
            .range(target..target + blocks)
            .map(|(number, _)| *number)
            .collect();
        for number in held {
            self.blocks.remove(&number);
        }
        for (number, block) in source.blocks.range(first..first + blocks) {
            self.blocks.insert(number - first + target, block.clone());
        }
        if length > 0 {
            self.size = self.size.max(to + length);
        }
    }

    /// Copies a part of `source`, holes and all, as data.
    pub(crate) fn copy(&mut self, source: &Self, from: u64, to: u64, length: u64) {
        let mut bytes = vec![0; place(length)];
        source.read(from, &mut bytes);
        self.write(to, &bytes);
    }

    /// Whether the block that holds this byte is the same storage in both, or in neither any.
    pub(crate) fn shares(&self, at: u64, other: &Self, other_at: u64) -> bool {
        let ours = self.blocks.get(&(at / BLOCK));
        let theirs = other.blocks.get(&(other_at / BLOCK));
        match (ours, theirs) {
            (Some(Block::Data(ours)), Some(Block::Data(theirs))) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_some() == theirs.is_some(),
        }
    }

    fn page(&mut self, number: u64) -> &mut Page {
        let block = self.blocks.entry(number).or_insert(Block::Unwritten);
        if matches!(block, Block::Unwritten) {
            *block = Block::Data(Arc::new([0; PAGE]));
        }
        match block {
            Block::Data(page) => Arc::make_mut(page),
            Block::Unwritten => unreachable!("it is data by now"),
        }
    }
}

/// The blocks that a run of bytes touches: the number, the part of the block, and where that is in
/// the run.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = done;
        let cursor = offset + at as u64;
        let within = place(cursor % BLOCK);
        let taken = (PAGE - within).min(length - at);
        done += taken;
        Some((cursor / BLOCK, within..within + taken, at))
    })
}

/// An offset in a file of a test that fits memory.
pub(crate) fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset in a small file")
}
