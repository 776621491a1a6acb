//! What a feed rings when a copy that waits for it can go on.

use std::sync::{Arc, PoisonError};
use std::task::Wake;

use crate::reactor::{Reactor, Ticket};
use crate::sync::{Mutex, MutexGuard};

/// One copy's. It may ring before the copy waits, and is remembered then.
#[derive(Debug, Default)]
pub(crate) struct Bell(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    has_rung: bool,
    parked: Option<(Arc<Reactor>, Ticket)>,
}

impl Bell {
    /// The copy waits from now on, unless it has rung since the last wait: then `false`.
    pub(crate) fn park(&self, reactor: &Arc<Reactor>, ticket: Ticket) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.has_rung) {
            return false;
        }
        state.parked = Some((reactor.clone(), ticket));
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut state = self.lock();
        // Also where it stands as parked: another wake may have ended that wait already.
        state.has_rung = true;
        let parked = state.parked.take();
        drop(state);
        if let Some((reactor, ticket)) = parked {
            reactor.unpark(ticket);
        }
    }
}
