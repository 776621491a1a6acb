//! Copies on file systems that misbehave, under a kernel that denies calls, and on file systems
//! that share storage.
//!
//! What a test needs and does not find (root, FUSE, XFS) it says, and passes.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its files ends there"
)]

mod attributes;
mod broken;
mod changing;
mod clones;
mod denied;
mod holes;
mod offload;
mod pieces;
mod sizes;
mod support;
