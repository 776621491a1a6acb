//! The last resort of the timeout. The clock ends a guest that computes, copies or waits; nothing ends
//! a host call that holds the main thread, an open(2) or read(2) which nobody answers, but the end of
//! the process.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::bars;
use crate::exit::Exit;
use crate::messages;

/// How long a run that was told to end may take to do so, and its copies to clean up.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Watches over a run until it is dropped.
pub(crate) struct Watchdog {
    _alive: mpsc::Sender<()>,
}

/// Starts to count. When the time is up and the grace too, the process ends.
pub(crate) fn start(timeout: Duration) -> std::io::Result<Watchdog> {
    let (alive, ended) = mpsc::channel::<()>();
    std::thread::Builder::new()
        .name("copyist-watchdog".to_owned())
        .spawn(move || {
            if ended.recv_timeout(timeout.saturating_add(GRACE)) == Err(RecvTimeoutError::Timeout) {
                bars::end(GRACE);
                timed_out(timeout);
                messages::flush(GRACE);
                #[expect(clippy::exit, reason = "the main thread will not come back to do it")]
                std::process::exit(Exit::TimedOut.status().into());
            }
        })?;
    Ok(Watchdog { _alive: alive })
}

/// Says so.
pub(crate) fn timed_out(timeout: Duration) {
    messages::complain(format_args!(
        "the guest was ended after {}; --timeout gives it longer",
        humantime::format_duration(timeout)
    ));
}
