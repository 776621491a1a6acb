//! Holes: which parts of the source are data, asked one extent at a time.
//!
//! The walk is a hint as everything is that a file system tells of a file: it must make progress,
//! and what makes none is no walk. It never decides where the source ends; a read does.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::sys::{FileInfo, Result, Sys};

/// Zeros are left out in units of this size: below it no file system has a hole, and each costs a
/// write more.
pub(crate) const BLOCK: usize = 4096;

/// What begins at an offset of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// Data, up to here.
    Data(u64),
    /// A hole, up to here.
    Hole(u64),
    /// Nobody knows; from here on all is data.
    Unknown,
}

/// Whether it is worth to ask for holes: the source has fewer blocks than its size needs. Compressed
/// files do too; of them the first answer is that all is data.
pub(crate) fn may_have_holes(source: &FileInfo) -> bool {
    source.blocks.saturating_mul(512) < source.size
}

/// What begins at `offset`, in a source that says it is `size` long. Up to two calls.
pub(crate) fn region(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    offset: u64,
    size: u64,
) -> Result<Region> {
    if offset >= size {
        // It grew, or ends here: a read tells.
        return Ok(Region::Unknown);
    }
    match sys.seek_hole(source, offset) {
        Err(Errno::INTR) => return Err(Errno::INTR),
        // EINVAL from procfs; ENOTSUP from Lustre and old NFS.
        Err(_) => return Ok(Region::Unknown),
        // Of a file that is all data, such as a compressed one, this one call tells it.
        Ok(hole) if hole > offset => return Ok(Region::Data(hole)),
        Ok(hole) if hole < offset => return Ok(Region::Unknown),
        Ok(_) => {}
    }
    match sys.seek_data(source, offset) {
        // No data up to the end. On a file that is being written the end may have moved; what is
        // beyond the size of before is read.
        Err(Errno::NXIO) => Ok(Region::Hole(size)),
        Err(Errno::INTR) => Err(Errno::INTR),
        Ok(data) if data > offset => Ok(Region::Hole(data.min(size))),
        // The file system changed its mind: data begins where it just had a hole. Such answers flip
        // for ever on a file that is being written (https://bugs.gnu.org/15574).
        Ok(_) | Err(_) => Ok(Region::Unknown),
    }
}

/// The first run of bytes that are all zero in whole blocks, or of which no block is: whether it is
/// zeros, and its length.
pub(crate) fn first_run(bytes: &[u8]) -> (bool, usize) {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let is_zero = |block: &[u8]| block == &ZEROS[..block.len()];
    let mut blocks = bytes.chunks(BLOCK);
    let Some(first) = blocks.next() else {
        return (false, 0);
    };
    let zeros = is_zero(first);
    let length = blocks
        .take_while(|block| is_zero(block) == zeros)
        .fold(first.len(), |length, block| length + block.len());
    (zeros, length)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sys::{Layer, native};

    /// A file system that gives these answers whatever it is asked.
    #[derive(Debug)]
    struct Answers {
        below: Arc<dyn Sys>,
        hole: Result<u64>,
        data: Result<u64>,
    }

    impl Layer for Answers {
        fn below(&self) -> &dyn Sys {
            &*self.below
        }

        fn seek_hole(&self, _fd: BorrowedFd<'_>, _offset: u64) -> Result<u64> {
            self.hole
        }

        fn seek_data(&self, _fd: BorrowedFd<'_>, _offset: u64) -> Result<u64> {
            self.data
        }
    }

    #[test]
    fn a_region_ends_beyond_its_start_or_is_none() {
        use Region::{Data, Hole, Unknown};
        let table = [
            (Ok(101), Err(Errno::NXIO), Ok(Data(101))),
            (Ok(2000), Err(Errno::NXIO), Ok(Data(2000))),
            (Ok(100), Ok(101), Ok(Hole(101))),
            (Ok(100), Ok(2000), Ok(Hole(1000))),
            (Ok(100), Err(Errno::NXIO), Ok(Hole(1000))),
            // Answers that make no sense, or contradict each other.
            (Ok(99), Ok(101), Ok(Unknown)),
            (Ok(100), Ok(100), Ok(Unknown)),
            (Ok(100), Ok(99), Ok(Unknown)),
            (Err(Errno::INVAL), Ok(101), Ok(Unknown)),
            (Ok(100), Err(Errno::INVAL), Ok(Unknown)),
            // No answers.
            (Err(Errno::INTR), Ok(101), Err(Errno::INTR)),
            (Ok(100), Err(Errno::INTR), Err(Errno::INTR)),
        ];
        let fd = rustix::fs::CWD;
        for (hole, data, expected) in table {
            let below = native();
            let sys = Answers { below, hole, data };
            assert_eq!(region(&sys, fd, 100, 1000), expected, "{hole:?}, {data:?}");
            assert_eq!(region(&sys, fd, 1000, 1000), Ok(Unknown));
            assert_eq!(region(&sys, fd, 1001, 1000), Ok(Unknown));
        }
    }

    #[test]
    fn a_source_with_a_block_for_every_byte_has_no_holes() {
        for (size, blocks, expected) in [
            (0, 0, false),
            (1, 0, true),
            (4096, 8, false),
            (4097, 8, true),
            (4095, 8, false),
            (u64::MAX, u64::MAX, false),
        ] {
            let source = FileInfo {
                size,
                blocks,
                ..FileInfo::of_feed()
            };
            assert_eq!(may_have_holes(&source), expected, "{size}, {blocks}");
        }
    }

    #[test]
    fn runs_are_of_whole_blocks() {
        let mut bytes = vec![0; 3 * BLOCK];
        assert_eq!(first_run(&bytes), (true, 3 * BLOCK));
        bytes[2 * BLOCK - 1] = 1;
        assert_eq!(first_run(&bytes), (true, BLOCK));
        assert_eq!(first_run(&bytes[BLOCK..]), (false, BLOCK));
        assert_eq!(first_run(&bytes[2 * BLOCK - 1..]), (false, BLOCK));
        assert_eq!(first_run(&bytes[..10]), (true, 10));
        assert_eq!(first_run(&[]), (false, 0));
    }
}
