//! `copyist run`.

use std::time::{Duration, Instant};

use copyist_wasmtime::{EpochClock, InterruptHandle};
use wasmtime::{Result, Store, Trap, bail};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::args::Run;
use crate::component;
use crate::endpoints;
use crate::exit::Exit;
use crate::messages;
use crate::store::State;
use crate::watchdog;

/// How exact a timeout is.
const PERIOD: Duration = Duration::from_millis(10);

/// Runs the component and tells how it ended. An error is the host's.
pub(crate) fn run(run: &Run) -> Result<Exit> {
    let engine = component::engine()?;
    let component = component::load(&engine, run.component())?;
    let Ok(command) = CommandPre::new(component) else {
        bail!(
            "{} exports no wasi:cli/run; build the guest as a program, not as a library",
            run.component().display()
        );
    };
    let begun = Instant::now();
    let Some(endpoints) = endpoints::open(&run.endpoints, run.timeout)? else {
        messages::complain(format_args!(
            "an endpoint waits for its other side; --timeout gives it longer"
        ));
        return Ok(Exit::TimedOut);
    };
    let left = |timeout: Duration| timeout.saturating_sub(begun.elapsed());
    let timeout = run.timeout.map(left);
    let state = State::new(run, endpoints)?;
    let copies = state.copy.interrupt_handle();
    let mut store = Store::new(&engine, state);
    let owning = |_| EpochClock::owning(&engine, PERIOD);
    let clock = timeout.map(owning).transpose()?;
    let watchdog = timeout.map(watchdog::start).transpose()?;
    let call = async |store: &mut Store<State>| {
        let command = command.instantiate_async(&mut *store).await?;
        command.wasi_cli_run().call_run(store).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        match timeout.zip(clock) {
            Some((timeout, clock)) => clock.run(&mut store, timeout, call).await,
            None => {
                // Nothing ticks.
                store.set_epoch_deadline(1);
                call(&mut store).await
            }
        }
    });
    // Threads that wait for the standard input wait for ever.
    runtime.shutdown_background();
    // From here on nothing waits that it would have to end.
    drop(watchdog);
    match (ended, run.timeout) {
        (Ok(Ok(())), _) => Ok(Exit::Guest(0)),
        (Ok(Err(())), _) => Ok(Exit::Guest(1)),
        (Err(error), Some(timeout)) if error.downcast_ref() == Some(&Trap::Interrupt) => {
            Ok(timed_out(timeout, &copies))
        }
        (Err(error), _) => failed(run, &error),
    }
}

/// The guest is ended. Its copy may still be taking back what it made, on a thread that would end
/// with the process.
fn timed_out(timeout: Duration, copies: &InterruptHandle) -> Exit {
    copies.wait_until_idle(watchdog::GRACE);
    watchdog::timed_out(timeout);
    Exit::TimedOut
}

/// A guest that exits by itself, or traps, or a host that fails.
fn failed(run: &Run, error: &wasmtime::Error) -> Result<Exit> {
    if let Some(I32Exit(status)) = error.downcast_ref() {
        // As exit(3): the low byte is what the parent sees.
        return Ok(Exit::Guest(status.to_le_bytes()[0]));
    }
    let name = run.component().display();
    if let Some(trap) = error.downcast_ref::<Trap>() {
        messages::complain(format_args!("{name} trapped: {trap}"));
        return Ok(Exit::Trapped);
    }
    bail!("{name} failed: {error:#}")
}
