//! The driver for a thread that has nothing else to do.

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::Error;
use crate::request::Request;
use crate::summary::Summary;
use crate::sys::FatalSignalsBlocked;
use crate::transfer::{Step, Transfer};

/// Copies on this thread and returns when it has ended.
///
/// It blocks while the kernel works: each data call is bounded to a few milliseconds, after which
/// `cancel` is looked at; opens, a clone (`FICLONE`) and fsync(2) take what they take. A copy
/// cancelled before it starts makes no system call.
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
    loop {
        let step = if cancel.is_cancelled() {
            transfer.cancel()
        } else {
            transfer.step(u64::MAX)
        };
        match step {
            Step::Moved(_) => {}
            Step::Later(pause) => cancel.sleep(pause),
            Step::Done(summary) => return Ok(summary),
            Step::Failed(error) => return Err(error),
        }
    }
}
