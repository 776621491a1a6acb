//! A clock that ticks by itself.

use std::io::{Error, ErrorKind, Result};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use wasmtime::Engine;

use super::core::{Core, Time};

/// Starts the thread, which ends with the clock or with the engine.
pub(super) fn start(engine: &Engine, period: Duration) -> Result<(Arc<Core>, JoinHandle<()>)> {
    if period.is_zero() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the period of a clock is zero",
        ));
    }
    let (alive, stop) = channel();
    let core = Arc::new(Core::new(engine, Time::Elapsed(Instant::now(), alive)));
    let weak = Arc::downgrade(&core);
    let thread = Builder::new()
        .name("copyist-clock".to_owned())
        .spawn(move || tick(&weak, &stop, period))?;
    Ok((core, thread))
}

fn tick(core: &Weak<Core>, stop: &Receiver<()>, period: Duration) {
    while stop.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        let is_needed = core.upgrade().is_some_and(|core| core.tick());
        if !is_needed {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than anything takes that must come.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Whether the thread ends.
    fn ends(thread: JoinHandle<()>) -> bool {
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(thread.join().is_ok()));
        told.recv_timeout(PATIENCE) == Ok(true)
    }

    #[test]
    fn the_thread_ends_with_its_clock() {
        let engine = Engine::default();
        // Long enough that no tick ends it.
        let (core, thread) = start(&engine, Duration::from_secs(3600)).unwrap();
        drop(core);
        assert!(ends(thread));
    }

    #[test]
    fn the_thread_ends_with_its_engine() {
        let engine = Engine::default();
        let (core, thread) = start(&engine, Duration::from_millis(1)).unwrap();
        drop(engine);
        assert!(ends(thread));
        drop(core);
    }

    #[test]
    fn a_clock_has_a_period() {
        let refused = start(&Engine::default(), Duration::ZERO).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
}
