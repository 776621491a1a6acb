//! Copies of real files on real file systems: tmpfs and whatever holds the temporary directory,
//! each to itself and to the other.
//!
//! What a test needs and does not find (root, a second file system) it says, and passes.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its files ends there"
)]

mod support;

mod append;
mod attacked;
mod attributes;
mod beside_cp;
mod carried;
mod changing;
mod durability;
mod escape;
mod existing;
mod failures;
mod holes;
mod killed;
mod large;
mod leases;
mod limits;
mod mode;
mod mounts;
mod read;
mod refused;
mod replace;
mod same_file;
mod secrets;
mod sizes;
mod stale_pages;
mod starts;
mod sweep;
mod virtual_files;
mod windows;
