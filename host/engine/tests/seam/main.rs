//! The copier over a system that keeps a record of its calls, and fails or alters some of them.

#![cfg(target_os = "linux")]

mod bench;
mod budget;
mod cancel;
mod holes;
mod leftovers;
mod matrix;
mod memory;
mod pieces;
mod pool;
mod quota;
mod read;
mod reported;
mod scheduled;
mod sweep;
mod syncs;
mod trace;
