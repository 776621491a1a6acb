//! The command as whoever starts it sees it: exit status, what it prints, what is left.

#![allow(
    clippy::unwrap_used,
    reason = "what a test does outside of its functions fails it too"
)]

mod bars;
mod command;
mod endpoints;
mod failures;
mod grants;
mod help;
mod reports;
mod status;
mod terminal;
mod timeouts;
