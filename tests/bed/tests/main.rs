//! Proofs that the bed does what its table says, by plain calls that no copier makes.
//!
//! Each is made twice, on a file with the fault and on a good one, and the two must differ.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its files ends there"
)]

mod endings;
mod faults;
mod good;
mod hangs;
mod seccomp;

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};

use copyist_bed::Bed;
use rustix::io::Errno;

/// So many bytes, none of them zero.
fn pattern(length: usize) -> Vec<u8> {
    (1..=251).cycle().take(length).collect()
}

fn open(bed: &Bed, name: &str) -> File {
    File::open(bed.path().join(name)).unwrap()
}

fn open_to_write(bed: &Bed, name: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options.open(bed.path().join(name)).unwrap()
}

/// One copy_file_range(2) of both from the same offset.
fn copy_range(from: &File, to: &File, offset: u64, length: usize) -> Result<usize, Errno> {
    let (mut source, mut destination) = (offset, offset);
    let (from, to) = (from.as_fd(), to.as_fd());
    rustix::fs::copy_file_range(from, Some(&mut source), to, Some(&mut destination), length)
}

/// close(2), and what it says.
#[expect(unsafe_code, reason = "the descriptor must not be used again")]
fn close(file: File) -> Result<(), Errno> {
    // SAFETY: `into_raw_fd` leaves nobody who uses or closes it.
    unsafe { rustix::io::try_close(file.into_raw_fd()) }
}

/// splice(2) of a file to itself, which is not allowed: one of the two has to be a pipe.
#[expect(
    unsafe_code,
    reason = "rustix has it behind a feature that nothing else here needs"
)]
fn splice(file: &File) -> Result<(), Errno> {
    let null = std::ptr::null_mut();
    // SAFETY: no memory is passed.
    let answer = unsafe { libc::splice(file.as_raw_fd(), null, file.as_raw_fd(), null, 1, 0) };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap());
    }
    Ok(())
}
