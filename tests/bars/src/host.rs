//! A host as embedders build it, and one guest in it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use copyist_engine::{Environment, Mechanism, Pool, PoolOptions, sys};
use copyist_wasmtime::{CopyCtx, CopyCtxView, CopyView, EpochClock};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::error::Context as _;
use wasmtime::{Cache, Config, Engine, Result, Store, Trap, bail};
use wasmtime_wasi::p2::bindings::{CommandPre, sync};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

use crate::args::Linking;
use crate::place::Place;

/// The name of a copy that is timed.
pub(crate) const TO: &str = "to";

/// A program that is compiled and linked.
pub(crate) struct Guest {
    engine: Engine,
    program: Program,
    /// Where what it asks for is copied; none for where all others are.
    pool: Option<Arc<Pool>>,
}

enum Program {
    Async(CommandPre<State>, tokio::runtime::Runtime),
    Sync(sync::CommandPre<State>),
}

/// One run of it.
pub(crate) struct Run<'a> {
    /// What it is granted, as `place`.
    pub(crate) place: &'a Place,
    /// Its arguments; those without dashes are names in the place.
    pub(crate) words: &'a [&'a str],
    pub(crate) copy: CopyCtx,
    pub(crate) files: WasiFiles,
}

/// Where wasmtime-wasi makes the guest's own file calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WasiFiles {
    OnThisThread,
    /// Its default.
    OnAnotherThread,
}

/// A copy of the guest's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// By the guest's own clock.
    pub(crate) seen: Duration,
    /// By the engine's; zero where the guest copied by itself.
    pub(crate) engine: Duration,
    /// What moved the most; none where the guest copied by itself.
    pub(crate) method: Option<Mechanism>,
}

impl Guest {
    pub(crate) fn load(path: &Path, linking: Linking) -> Result<Self> {
        let mut config = Config::new();
        // As `copyist run` has it.
        config.epoch_interruption(true);
        config.cache(Cache::from_file(None).ok());
        let engine = Engine::new(&config)?;
        let component = Component::from_file(&engine, path)?;
        let mut linker = Linker::new(&engine);
        let program = match linking {
            Linking::Async => {
                wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
                copyist_wasmtime::add_to_linker(&mut linker)?;
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                Program::Async(
                    CommandPre::new(linker.instantiate_pre(&component)?)?,
                    runtime,
                )
            }
            Linking::Sync => {
                wasmtime_wasi::p2::add_to_linker_sync(&mut linker)?;
                copyist_wasmtime::add_to_linker_sync(&mut linker)?;
                Program::Sync(sync::CommandPre::new(linker.instantiate_pre(&component)?)?)
            }
        };
        Ok(Self {
            engine,
            program,
            pool: None,
        })
    }

    /// With a memory of its own of what does not work: the number of a device may have been that of
    /// another file system a moment ago.
    pub(crate) fn with_fresh_memory(self) -> Self {
        let environment = Environment::new(sys::native());
        let pool = Pool::with_environment(PoolOptions::default(), environment);
        Self {
            pool: Some(Arc::new(pool)),
            ..self
        }
    }

    /// Runs it in a store of its own and tells what it printed.
    pub(crate) fn run(&self, run: Run<'_>) -> Result<String> {
        let (mut store, output) = self.store(run)?;
        // Nothing ticks.
        store.set_epoch_deadline(1);
        let ended = match &self.program {
            Program::Async(program, runtime) => runtime.block_on(call(program, &mut store)),
            Program::Sync(program) => call_sync(program, &mut store),
        };
        if ended.context("the guest failed")?.is_err() {
            bail!("the guest failed: see above");
        }
        Ok(String::from_utf8(output.contents().to_vec())?)
    }

    /// Runs it on a clock, and tells how long after its deadline its caller had the answer: what is
    /// left of it goes with the store, after that.
    pub(crate) fn answer(
        &self,
        run: Run<'_>,
        clock: &EpochClock,
        after: Duration,
    ) -> Result<(Duration, Left)> {
        let (mut store, _) = self.store(run)?;
        let started = Instant::now();
        let attached = clock.attach(&mut store, after);
        let ended = match &self.program {
            Program::Async(program, runtime) => {
                runtime.block_on(attached.run(&mut store, async |store| call(program, store).await))
            }
            Program::Sync(program) => call_sync(program, &mut store),
        };
        let late = started.elapsed().saturating_sub(after);
        match ended {
            Err(error) if error.downcast_ref() == Some(&Trap::Interrupt) => {
                Ok((late, Left { _store: store }))
            }
            Err(error) => Err(error.context("it did not wait")),
            Ok(_) => bail!("it did not wait"),
        }
    }

    /// Runs many at once on one thread, this one. They do not end.
    pub(crate) fn run_all<'a>(self, runs: impl Iterator<Item = Run<'a>>) -> Result<()> {
        let Program::Async(program, runtime) = &self.program else {
            bail!("a thread has one guest without async");
        };
        let mut tasks = tokio::task::JoinSet::new();
        for run in runs {
            let (mut store, _) = self.store(run)?;
            store.set_epoch_deadline(1);
            let program = program.clone();
            let guest = async move { call(&program, &mut store).await };
            tasks.spawn_on(guest, runtime.handle());
        }
        let ended = runtime.block_on(tasks.join_next());
        bail!("a guest has ended: {ended:?}");
    }

    fn store(&self, run: Run<'_>) -> Result<(Store<State>, MemoryOutputPipe)> {
        let output = MemoryOutputPipe::new(1 << 16);
        let mut wasi = WasiCtx::builder();
        wasi.arg("guest")
            .stdout(output.clone())
            .inherit_stderr()
            .allow_blocking_current_thread(run.files == WasiFiles::OnThisThread)
            .preopened_dir(run.place.path(), "place", FsPerms::ReadWrite)?;
        for word in run.words {
            if word.starts_with("--") {
                wasi.arg(word);
            } else {
                wasi.arg(format!("place/{word}"));
            }
        }
        let state = State {
            wasi: wasi.build(),
            copy: run.copy,
            table: ResourceTable::new(),
        };
        Ok((Store::new(&self.engine, state), output))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs `time_copy` of `from` to a new file, which is removed again.
    pub(crate) fn time(
        &self,
        place: &Place,
        from: &str,
        files: WasiFiles,
        more: Vec<String>,
    ) -> Result<Timed> {
        let timed = self.time_and_keep(place, from, files, more)?;
        place.remove(TO)?;
        Ok(timed)
    }

    /// The same, and [`TO`] stays.
    pub(crate) fn time_and_keep(
        &self,
        place: &Place,
        from: &str,
        files: WasiFiles,
        more: Vec<String>,
    ) -> Result<Timed> {
        let summary = Arc::new(Mutex::new((Duration::ZERO, None)));
        let told = summary.clone();
        let mut copy = CopyCtx::builder();
        copy.on_copy(move |report| {
            if let Ok(summary) = report.outcome {
                *told.lock().unwrap_or_else(PoisonError::into_inner) =
                    (summary.elapsed, summary.method);
            }
        });
        if let Some(pool) = &self.pool {
            copy.pool(pool.clone());
        }
        let mut words = vec![from, TO];
        words.extend(more.iter().map(String::as_str));
        let printed = self.run(Run {
            place,
            words: &words,
            copy: copy.build(),
            files,
        })?;
        let nanoseconds = printed
            .trim()
            .parse::<u64>()
            .context("the guest tells no time")?;
        let (engine, method) = *summary.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Timed {
            seen: Duration::from_nanos(nanoseconds),
            engine,
            method,
        })
    }
}

/// A store that was ended.
pub(crate) struct Left {
    _store: Store<State>,
}

async fn call(
    program: &CommandPre<State>,
    store: &mut Store<State>,
) -> Result<std::result::Result<(), ()>> {
    let command = program.instantiate_async(&mut *store).await?;
    command.wasi_cli_run().call_run(store).await
}

fn call_sync(
    program: &sync::CommandPre<State>,
    store: &mut Store<State>,
) -> Result<std::result::Result<(), ()>> {
    let command = program.instantiate(&mut *store)?;
    command.wasi_cli_run().call_run(store)
}

struct State {
    wasi: WasiCtx,
    copy: CopyCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl CopyView for State {
    fn copy(&mut self) -> CopyCtxView<'_> {
        CopyCtxView {
            ctx: &mut self.copy,
            table: &mut self.table,
        }
    }
}
