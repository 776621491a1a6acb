//! A copy that is cancelled before it had a thread ends there and then: nobody waits for a thread
//! only to hear that nothing was done.

use super::workers::{Shared, contain};
use crate::cancel::Wake;

/// The cancel of a copy that waits for its first thread.
impl Wake for Shared {
    fn wake(&self) {
        self.withdraw_cancelled();
    }
}

impl Shared {
    /// Ends what is cancelled and has made no call, on this thread. What has begun needs one of the
    /// pool's, to take back what it made.
    pub(super) fn withdraw_cancelled(&self) {
        loop {
            let mut state = self.lock();
            let queue = &mut state.queue;
            let found = queue.remove(|task| task.cancel().is_cancelled() && !task.has_begun());
            drop(state);
            let Some(task) = found else { return };
            contain(|| task.refuse());
        }
    }
}
