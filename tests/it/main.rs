//! What a guest gets from the real host: programs of `tests/guests`, under both linkers.

#![allow(
    clippy::unwrap_used,
    reason = "what a test does outside of its functions fails it too"
)]

mod answer;
mod attributes;
mod clock;
mod endpoints;
mod ends;
mod failures;
mod fuzz;
mod host;
mod hostile;
mod interrupts;
mod jobs;
mod memory;
mod options;
mod paths;
mod peers;
mod place;
mod programs;
mod quotas;
mod reading;
mod reports;
mod rights;
mod rounds;
mod stdio;
mod streams;
mod submit;
mod system;
mod trees;
mod waits;
