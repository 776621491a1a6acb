//! Bytes to copy, and what stands in a file afterwards.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use copyist_engine::Errno;
use rustix::fs::SeekFrom;

/// So many bytes, different at every offset and never a run of zeros, so that a piece that is
/// missing, doubled or out of place shows.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    generate(0x9E37_79B9_7F4A_7C15, length)
}

/// So many other bytes: what stood in a destination before.
pub(crate) fn other(length: usize) -> Vec<u8> {
    generate(0xD1B5_4A32_D192_ED03, length)
}

fn generate(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Says where they differ, not all that they hold.
#[track_caller]
pub(crate) fn assert_same(actual: &[u8], expected: &[u8], what: &str) {
    if actual == expected {
        return;
    }
    let first = actual.iter().zip(expected).position(|(a, e)| a != e);
    panic!(
        "{what}: {} bytes instead of {}, which differ first at {first:?}",
        actual.len(),
        expected.len(),
    );
}

/// Compares two files of any size a piece at a time, and what is a hole in both not at all.
#[track_caller]
pub(crate) fn assert_same_files(one: &File, two: &File, what: &str) {
    let size = one.metadata().unwrap().len();
    assert_eq!(two.metadata().unwrap().len(), size, "{what}");
    let mut pieces = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut offset = 0;
    loop {
        offset = next_data(one, offset).min(next_data(two, offset));
        if offset >= size {
            return;
        }
        let lengths = (
            fill(one, &mut pieces.0, offset),
            fill(two, &mut pieces.1, offset),
        );
        assert_eq!(lengths.0, lengths.1, "{what}: lengths after {offset}");
        assert!(
            pieces.0[..lengths.0] == pieces.1[..lengths.1],
            "{what}: the files differ in the piece at {offset}"
        );
        offset += lengths.0 as u64;
    }
}

fn next_data(file: &File, offset: u64) -> u64 {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data,
        Err(Errno::NXIO) => u64::MAX,
        Err(_) => offset,
    }
}

fn fill(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    filled
}
