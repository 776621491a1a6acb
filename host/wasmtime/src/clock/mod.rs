//! Deadlines that a guest cannot outlast, wherever it is: [`EpochClock`].

mod attachment;
mod core;
mod deadline;
mod deadlines;
mod owning;
mod watch;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Engine, Result, Store};

use crate::ctx::CopyView;

use self::core::{Core, Time};
use self::watch::{Callback, Watch};

pub use attachment::Attachment;
pub use deadline::{Deadline, Measure, Ticks};

/// Increments an engine's epoch, and ends the guests whose time is up, in wasm code and in the host's
/// functions alike. Clones are one and the same.
///
/// wasmtime looks at the epoch in wasm code alone; a guest that waits in a host call reaches its
/// deadline unnoticed, and goes on after the call until the next loop or function. So this clock keeps
/// the deadlines itself. When one passes:
///
/// - the store's wasm traps at its next look at the epoch;
/// - a call of `copyist:copy` that waits traps at once, and so does every later one: all that the
///   store copies is interrupted, as by its [`InterruptHandle`](crate::InterruptHandle);
/// - a call under [`run`](Self::run) ends wherever it waits, also in another host function.
///
/// Each gives an error that downcasts to [`Trap::Interrupt`](wasmtime::Trap). The store is spent: a
/// guest that trapped, or whose call was dropped, cannot be entered again.
///
/// A clock is made by [`owning`](EpochClock::owning), which ticks on a thread of its own and whose
/// deadlines are in [`Duration`]s, or by [`fed`](EpochClock::fed), where the embedder ticks in place
/// of `Engine::increment_epoch` and deadlines are in [`Ticks`].
///
/// ```no_run
/// # use copyist_wasmtime::CopyView;
/// use std::time::Duration;
/// use copyist_wasmtime::EpochClock;
/// use wasmtime::component::{Component, Linker};
/// use wasmtime::{Config, Engine, Store, Trap};
/// use wasmtime_wasi::p2::bindings::Command;
/// # async fn embed<State: CopyView>(state: State, linker: Linker<State>) -> wasmtime::Result<()> {
///
/// let mut config = Config::new();
/// config.epoch_interruption(true);
/// let engine = Engine::new(&config)?;
/// // One for all stores of the engine.
/// let clock = EpochClock::owning(&engine, Duration::from_millis(10))?;
///
/// let component = Component::from_file(&engine, "plugin.wasm")?;
/// let mut store = Store::new(&engine, state);
/// let timeout = Duration::from_secs(5);
/// let ended = clock.run(&mut store, timeout, async |store| {
///     let command = Command::instantiate_async(&mut *store, &component, &linker).await?;
///     command.wasi_cli_run().call_run(store).await
/// });
/// match ended.await {
///     Err(error) if error.downcast_ref() == Some(&Trap::Interrupt) => {
///         println!("ended after {timeout:?}");
///     }
///     ended => println!("it ended by itself: {ended:?}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # What to know
///
/// - **`Config::epoch_interruption`** makes wasm look at the epoch. Without it copies and `run` end
///   all the same, and a guest that computes does not.
/// - **A store that no clock was attached to traps at once** where epochs are on: that is wasmtime's
///   rule, and a reminder. [`Deadline::none`] is for guests that have no deadline yet.
/// - **A deadline stays** when the call has ended, and passes while the store is idle: clear it, and
///   set it anew for the next call.
/// - **Precision**: a deadline is met at the first tick at or after it, so one period late at most,
///   and later by what the machine takes to run the clock's thread. Wasm notices at its next loop or
///   call of a function; where it looked just as the clock ticked, a tick later. A call under `run`
///   ends when its executor polls it.
/// - **Nothing ends a host function that blocks its thread**: under a sync linker, all of WASI that
///   waits; with async, what wasmtime-wasi does on the calling thread where the embedder allows
///   it. `copyist:copy` ends under both.
/// - **Somebody else who increments the epoch** makes guests look more often and changes nothing else:
///   deadlines and yields count this clock's time alone. Two clocks on an engine are no trouble.
/// - **The store's callback** (`Store::epoch_deadline_callback`) is the clock's, there being one a
///   store, and so is `Store::set_epoch_deadline`.
/// - **The cost**: deadlines are kept in their order, so a tick looks at the soonest and goes on to
///   those that are due; how many others there are does not matter. A guest that computes spends a
///   call into the host at each tick, one that waits nothing.
/// - **The thread** of an owning clock ends with the last of its clones and attachments, or with the
///   engine, which a clock does not keep.
pub struct EpochClock<M: Measure = Duration> {
    core: Arc<Core>,
    measure: PhantomData<M>,
}

impl EpochClock<Duration> {
    /// One that ticks by itself, once a period, on a thread of its own.
    ///
    /// # Errors
    ///
    /// Where the period is zero or there can be no thread.
    pub fn owning(engine: &Engine, period: Duration) -> io::Result<Self> {
        let (core, _) = owning::start(engine, period)?;
        Ok(Self::new(core))
    }
}

impl EpochClock<Ticks> {
    /// One that the embedder ticks.
    pub fn fed(engine: &Engine) -> Self {
        Self::new(Arc::new(Core::new(engine, Time::Counted)))
    }

    /// Increments the engine's epoch and ends who is due: call it in place of
    /// `Engine::increment_epoch`, from any thread but not from a signal handler. It does not wait
    /// for what it ends.
    pub fn tick(&self) {
        self.core.tick();
    }
}

impl<M: Measure> EpochClock<M> {
    fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            measure: PhantomData,
        }
    }

    /// Gives a store its deadline, and its one epoch callback, under either linker. A store that was
    /// attached before is on this clock from now on.
    ///
    /// # Panics
    ///
    /// Where the store is of another engine than the clock, which would never end it.
    pub fn attach<T: CopyView + 'static>(
        &self,
        store: &mut Store<T>,
        deadline: impl Into<Deadline<M>>,
    ) -> Attachment<M> {
        assert!(
            self.core.is_of(store.engine()),
            "the store and the clock have one engine"
        );
        let Deadline { after, yield_every } = deadline.into();
        let interrupt = store.data_mut().copy().ctx.interrupt_handle();
        let watch = Arc::new(Watch::new(interrupt));
        let (id, place) = self.core.register(after.map(M::units), watch.clone());
        if yield_every.is_some() {
            // For its side effect: whoever calls the store without async hears of it at the call,
            // not at the first yield.
            store.epoch_deadline_async_yield_and_update(1);
        }
        let mut callback = Callback::new(watch.clone(), place, yield_every);
        store.epoch_deadline_callback(move |_| Ok(callback.look()));
        // The first look is at once, since the store may have been interrupted before.
        store.set_epoch_deadline(0);
        Attachment::new(self.core.clone(), watch, id)
    }

    /// Makes calls of a store, of any kind and number, but no longer than the deadline: then the
    /// future of the calls is dropped wherever it waits, and the store is spent. An interrupt by the
    /// store's [`InterruptHandle`](crate::InterruptHandle) ends them in the same way.
    ///
    /// All that runs the guest belongs in there, such as the drop of its resources. Afterwards the
    /// store is attached to no clock.
    ///
    /// # Errors
    ///
    /// The calls' own; `Trap::Interrupt` where the store was interrupted.
    ///
    /// # Panics
    ///
    /// As [`attach`](Self::attach).
    pub async fn run<T: CopyView + 'static, R>(
        &self,
        store: &mut Store<T>,
        deadline: impl Into<Deadline<M>>,
        calls: impl AsyncFnOnce(&mut Store<T>) -> Result<R>,
    ) -> Result<R> {
        let attached = self.attach(store, deadline);
        attached.run(store, calls).await
    }
}

impl<M: Measure> Clone for EpochClock<M> {
    fn clone(&self) -> Self {
        Self::new(self.core.clone())
    }
}

impl<M: Measure> fmt::Debug for EpochClock<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochClock").finish_non_exhaustive()
    }
}
