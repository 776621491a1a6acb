//! The timeout: three ways to end a guest, since it may be in three places.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use copyist_wasmtime::InterruptHandle;
use tokio::sync::oneshot;
use wasmtime::Engine;

use crate::exit::Exit;
use crate::messages;

/// How long a run that was told to end may take to do so, and its copies to clean up.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Watches over a run until it is dropped.
pub(crate) struct Watchdog {
    _alive: mpsc::Sender<()>,
}

/// Starts to count. When the time is up, `expired` resolves.
pub(crate) fn start(
    timeout: Duration,
    engine: Engine,
    copies: InterruptHandle,
) -> std::io::Result<(Watchdog, oneshot::Receiver<()>)> {
    let (alive, ended) = mpsc::channel::<()>();
    let (expire, expired) = oneshot::channel();
    std::thread::Builder::new()
        .name("copyist-watchdog".to_owned())
        .spawn(move || {
            if ended.recv_timeout(timeout) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            // A guest that copies, one that loops, and one that waits in another host call.
            copies.interrupt();
            engine.increment_epoch();
            let _ = expire.send(());
            if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                // A host call that holds the main thread: an open(2) or read(2) which nobody
                // answers.
                timed_out(timeout);
                messages::flush(GRACE);
                #[expect(clippy::exit, reason = "the main thread will not come back to do it")]
                std::process::exit(Exit::TimedOut.status().into());
            }
        })?;
    Ok((Watchdog { _alive: alive }, expired))
}

/// Says so.
pub(crate) fn timed_out(timeout: Duration) {
    messages::complain(format_args!(
        "the guest was ended after {}; --timeout gives it longer",
        humantime::format_duration(timeout)
    ));
}
