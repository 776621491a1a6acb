//! Whole trees.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its files ends there"
)]

#[path = "../files/support/child.rs"]
#[expect(dead_code, reason = "these tests need one half of it")]
mod child;
mod facts;
mod support;

mod attributes;
mod beside_cp;
mod calls;
mod ends_early;
mod kinds;
mod limits;
mod links;
mod merge;
mod roots;
mod shape;
mod swapped;

use copyist_bed::skipped;
