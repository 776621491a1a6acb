//! `copyist run`.

use std::future::{Future, pending};
use std::time::Duration;

use copyist_wasmtime::InterruptHandle;
use wasmtime::{Result, Store, Trap, bail};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::args::Run;
use crate::component;
use crate::exit::Exit;
use crate::messages;
use crate::store::State;
use crate::watchdog;

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
    let state = State::new(run)?;
    let copies = state.copy.interrupt_handle();
    let mut store = Store::new(&engine, state);
    // The watchdog's tick ends it; without one, nothing ticks.
    store.set_epoch_deadline(1);
    let watchdog = match run.timeout {
        Some(timeout) => Some(watchdog::start(timeout, engine, copies.clone())?),
        None => None,
    };
    let (watchdog, expired) = watchdog.unzip();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        tokio::select! {
            biased;
            ended = call(&command, &mut store) => Some(ended),
            () = wait(expired) => None,
        }
    });
    // Threads that wait for the standard input wait for ever.
    runtime.shutdown_background();
    // From here on nothing waits that it would have to end.
    drop(watchdog);
    match (ended, run.timeout) {
        (None, Some(timeout)) => Ok(timed_out(timeout, &copies)),
        (Some(Err(error)), Some(timeout))
            if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) =>
        {
            Ok(timed_out(timeout, &copies))
        }
        (Some(Ok(Ok(()))), _) => Ok(Exit::Guest(0)),
        (Some(Ok(Err(()))), _) => Ok(Exit::Guest(1)),
        (Some(Err(error)), _) => failed(run, &error),
        (None, None) => Ok(Exit::HostFailed),
    }
}

async fn call(
    command: &CommandPre<State>,
    store: &mut Store<State>,
) -> Result<std::result::Result<(), ()>> {
    let command = command.instantiate_async(&mut *store).await?;
    command.wasi_cli_run().call_run(store).await
}

/// Resolves when the time is up; never where there is no timeout.
async fn wait(expired: Option<impl Future>) {
    match expired {
        Some(expired) => {
            expired.await;
        }
        None => pending().await,
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
