//! The command as whoever starts it sees it: exit status, what it prints, what is left.

#![allow(
    clippy::unwrap_used,
    reason = "what a test does outside of its functions fails it too"
)]

mod command;
mod failures;
mod grants;
mod help;
mod reports;
mod status;
mod timeouts;
