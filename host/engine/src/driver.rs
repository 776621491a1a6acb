//! The driver for a thread that has nothing else to do.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::cancel::{Cancel, Watched};
use crate::environment::Environment;
use crate::error::Error;
use crate::request::Request;
use crate::summary::Summary;
use crate::sys::FatalSignalsBlocked;
use crate::transfer::{Step, Transfer};
use crate::wake::WakeFd;

/// How long a wait lasts that nothing can end, where no descriptor is left for what would.
const BLIND: Duration = Duration::from_millis(10);

/// Copies on this thread and returns when it has ended.
///
/// Where an end is a stream that has nothing to read, or no room, it waits in one poll(2), which
/// `cancel` ends. Otherwise it blocks while the kernel works: each data call is bounded to a few
/// milliseconds, after which `cancel` is looked at; opens, a clone (`FICLONE`) and fsync(2) take what
/// they take. A copy cancelled before it starts makes no system call.
///
/// # Errors
///
/// Whatever [`Cause`](crate::Cause) says. A new file, or the one that was to replace an old one, is
/// gone again; a file written in place has the bytes that [`Error::done`] counts. The sync of the
/// directory comes last: if it fails, the file stands there whole.
pub fn copy(request: Request, cancel: &Cancel) -> Result<Summary, Error> {
    copy_in(&Environment::native(), request, cancel)
}

/// As [`copy`], on another system layer.
///
/// # Errors
///
/// As [`copy`].
pub fn copy_in(
    environment: &Environment,
    request: Request,
    cancel: &Cancel,
) -> Result<Summary, Error> {
    // A copy that is cancelled already makes no call at all.
    let _signals = (!cancel.is_cancelled()).then(FatalSignalsBlocked::new);
    let mut transfer = Transfer::new(environment.clone(), request);
    let mut alarm = None;
    if transfer.has_feed() && !cancel.is_cancelled() {
        alarm = Alarm::new(cancel);
        if let Some(alarm) = &alarm {
            transfer.set_waker(alarm.wake.clone().into());
        }
    }
    loop {
        let step = if cancel.is_cancelled() {
            transfer.cancel()
        } else {
            transfer.step(u64::MAX)
        };
        match step {
            Step::Moved(_) => {}
            Step::Later(pause) => cancel.sleep(pause),
            Step::Wait => wait(environment, &mut transfer, cancel, &mut alarm),
            Step::Done(summary) => return Ok(summary),
            Step::Failed(error) => return Err(error),
        }
    }
}

/// What ends a wait when the cancel comes. Made at the first wait, for all that follow.
struct Alarm {
    wake: Arc<WakeFd>,
    _watched: Watched,
}

impl Alarm {
    fn new(cancel: &Cancel) -> Option<Self> {
        let wake = Arc::new(WakeFd::new().ok()?);
        let watched = cancel.watch(wake.clone())?;
        Some(Self {
            wake,
            _watched: watched,
        })
    }
}

fn wait(
    environment: &Environment,
    transfer: &mut Transfer,
    cancel: &Cancel,
    alarm: &mut Option<Alarm>,
) {
    if alarm.is_none() {
        *alarm = Alarm::new(cancel);
    }
    let longest = alarm.is_none().then_some(BLIND);
    if longest.is_some() && cancel.is_cancelled() {
        return;
    }
    let wake = alarm.as_ref().map(|alarm| alarm.wake.as_fd());
    let came = transfer.waits().poll(environment.sys(), wake, longest);
    match came {
        Ok([source, destination]) => {
            transfer.woken(source, destination);
            // A feed rings more than once.
            if let Some(alarm) = alarm
                && transfer.has_feed()
            {
                alarm.wake.clear();
            }
        }
        Err(Errno::INTR) => {}
        // No memory for it: the step tries again as if the wait had brought nothing.
        Err(_) => cancel.sleep(BLIND),
    }
}
