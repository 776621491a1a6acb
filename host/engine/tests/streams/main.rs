//! Copies of which an end is a stream, by the driver of one thread.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its files ends there"
)]

#[path = "../files/support/child.rs"]
#[expect(dead_code, reason = "these tests need one half of it")]
mod child;

mod amounts;
mod calls;
mod cancel;
mod denied;
mod devices;
mod feed;
mod fifos;
mod gone;
mod inherited;
mod limits;
mod nonblocking;
mod pairs;
mod pool;
mod spin;
mod stable;
mod support;

use copyist_bed::skipped;
