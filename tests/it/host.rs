//! A host with copying granted, as an embedder writes it, twice: with async and without.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use copyist_wasmtime::{
    Attachment, CopyCtx, CopyCtxBuilder, CopyCtxView, CopyView, Deadline, EpochClock,
    InterruptHandle, Measure,
};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, Store, Trap};
use wasmtime_wasi::p2::bindings::{Command, sync};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::answer::Answer;
use crate::system::PATIENCE;

/// How the host's functions wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// On the thread that called the guest.
    Sync,
    /// Without a thread.
    Async,
}

impl Linking {
    pub(crate) const BOTH: [Self; 2] = [Self::Sync, Self::Async];
}

/// Whether wasm code looks at the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epochs {
    /// What ends a guest is the host's answer and nothing else, as if it had no loop and no function.
    Off,
    On,
}

impl Epochs {
    pub(crate) const BOTH: [Self; 2] = [Self::Off, Self::On];

    /// One for all tests.
    pub(crate) fn engine(self) -> &'static Engine {
        static OFF: LazyLock<Engine> = LazyLock::new(Engine::default);
        static ON: LazyLock<Engine> = LazyLock::new(|| {
            let mut config = Config::new();
            config.epoch_interruption(true);
            Engine::new(&config).unwrap()
        });
        match self {
            Self::Off => &OFF,
            Self::On => &ON,
        }
    }
}

/// What a guest prints, and no test's guest prints more.
const MOST_OUTPUT: usize = 16 << 20;

/// More than any guest holds at once; fewer than some hold one after the other, so that what is not
/// given up shows.
const MOST_HANDLES: usize = 15_000;

/// The component of a program, compiled once a process.
fn component(program: &'static str, epochs: Epochs) -> Component {
    type Compiled = HashMap<(&'static str, Epochs), Component>;
    static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap();
    let component = compiled
        .entry((program, epochs))
        .or_insert_with(|| Component::from_file(epochs.engine(), program).unwrap());
    component.clone()
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

/// What is granted beside the copying.
type Change = dyn Fn(&mut WasiCtxBuilder) + Send + Sync;

/// A guest program and what it is given.
#[derive(Clone)]
pub(crate) struct Guest {
    program: &'static str,
    epochs: Epochs,
    arguments: Vec<String>,
    preopens: Vec<(PathBuf, String, FsPerms)>,
    copy: CopyCtxBuilder,
    wasi: Vec<Arc<Change>>,
}

impl Guest {
    /// With nothing granted but the copying.
    pub(crate) fn new(program: &'static str) -> Self {
        Self {
            program,
            epochs: Epochs::Off,
            arguments: Vec::new(),
            preopens: Vec::new(),
            copy: CopyCtx::builder(),
            wasi: Vec::new(),
        }
    }

    /// On an engine with epochs or, if nothing is said, without.
    pub(crate) fn epochs(mut self, epochs: Epochs) -> Self {
        self.epochs = epochs;
        self
    }

    /// Adds arguments.
    pub(crate) fn args<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(words.into_iter().map(Into::into));
        self
    }

    /// Grants a directory that may be written.
    pub(crate) fn dir(mut self, host: impl AsRef<Path>, guest: &str) -> Self {
        self.preopens
            .push((host.as_ref().into(), guest.into(), FsPerms::ReadWrite));
        self
    }

    /// Grants a directory that may only be read.
    pub(crate) fn read_only_dir(mut self, host: impl AsRef<Path>, guest: &str) -> Self {
        self.preopens
            .push((host.as_ref().into(), guest.into(), FsPerms::ReadOnly));
        self
    }

    /// Changes how copying is granted.
    pub(crate) fn copying(mut self, change: impl FnOnce(&mut CopyCtxBuilder)) -> Self {
        change(&mut self.copy);
        self
    }

    /// Changes what else is granted.
    pub(crate) fn wasi(
        mut self,
        change: impl Fn(&mut WasiCtxBuilder) + Send + Sync + 'static,
    ) -> Self {
        self.wasi.push(Arc::new(change));
        self
    }

    /// Everything up to the call.
    pub(crate) fn prepare(self, linking: Linking) -> Prepared {
        let output = MemoryOutputPipe::new(MOST_OUTPUT);
        let errors = MemoryOutputPipe::new(MOST_OUTPUT);
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(output.clone())
            .stderr(errors.clone())
            .arg("guest")
            .args(&self.arguments);
        for (host, guest, permissions) in &self.preopens {
            wasi.preopened_dir(host, guest, *permissions).unwrap();
        }
        for change in &self.wasi {
            change(&mut wasi);
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(MOST_HANDLES);
        let state = State {
            wasi: wasi.build(),
            copy: self.copy.build(),
            table,
        };
        let engine = self.epochs.engine();
        let mut linker = Linker::new(engine);
        match linking {
            Linking::Sync => {
                wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
                copyist_wasmtime::add_to_linker_sync(&mut linker).unwrap();
            }
            Linking::Async => {
                wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
                copyist_wasmtime::add_to_linker(&mut linker).unwrap();
            }
        }
        Prepared {
            linking,
            component: component(self.program, self.epochs),
            linker,
            store: Store::new(engine, state),
            guest: self,
            output,
            errors,
        }
    }

    /// Calls the guest under this linker, and waits for its end.
    pub(crate) fn run(self, linking: Linking) -> Ended {
        self.prepare(linking).run()
    }
}

/// A guest that is about to be called.
pub(crate) struct Prepared {
    linking: Linking,
    guest: Guest,
    component: Component,
    linker: Linker<State>,
    store: Store<State>,
    output: MemoryOutputPipe,
    errors: MemoryOutputPipe,
}

impl Prepared {
    pub(crate) fn interrupt_handle(&self) -> InterruptHandle {
        self.store.data().copy.interrupt_handle()
    }

    /// Puts the store on a clock.
    pub(crate) fn attach<M: Measure>(
        &mut self,
        clock: &EpochClock<M>,
        deadline: impl Into<Deadline<M>>,
    ) -> Attachment<M> {
        clock.attach(&mut self.store, deadline)
    }

    pub(crate) fn run(mut self) -> Ended {
        let result = self.enter();
        self.end(result)
    }

    /// Calls the guest, which may be called again.
    pub(crate) fn enter(&mut self) -> wasmtime::Result<Result<(), ()>> {
        let _bound = Bound::new(self.guest.program);
        match self.linking {
            Linking::Sync => self.call_sync(),
            Linking::Async => runtime().block_on(self.call()),
        }
    }

    /// After the last call, which ended so.
    pub(crate) fn end(self, result: wasmtime::Result<Result<(), ()>>) -> Ended {
        let ended = Ended {
            linking: self.linking,
            result,
            output: String::from_utf8(self.output.contents().into()).unwrap(),
            errors: String::from_utf8(self.errors.contents().into()).unwrap(),
        };
        ended.tells_nothing_of_the_host(&self.guest);
        ended
    }

    fn call_sync(&mut self) -> wasmtime::Result<Result<(), ()>> {
        let command = sync::Command::instantiate(&mut self.store, &self.component, &self.linker)?;
        command.wasi_cli_run().call_run(&mut self.store)
    }

    /// The call itself, under the async linker.
    pub(crate) fn call(&mut self) -> impl Future<Output = wasmtime::Result<Result<(), ()>>> {
        assert_eq!(self.linking, Linking::Async);
        call(&self.component, &self.linker, &mut self.store)
    }

    /// The same, raced against the deadline that it has.
    pub(crate) async fn call_attached<M: Measure>(
        &mut self,
        attached: &Attachment<M>,
    ) -> wasmtime::Result<Result<(), ()>> {
        let (component, linker) = (&self.component, &self.linker);
        let calls = async |store: &mut Store<State>| call(component, linker, store).await;
        attached.run(&mut self.store, calls).await
    }

    /// The same, with a deadline of its own.
    pub(crate) async fn call_within<M: Measure>(
        &mut self,
        clock: &EpochClock<M>,
        deadline: impl Into<Deadline<M>>,
    ) -> wasmtime::Result<Result<(), ()>> {
        assert_eq!(self.linking, Linking::Async);
        let _bound = Bound::new(self.guest.program);
        let (component, linker) = (&self.component, &self.linker);
        clock
            .run(&mut self.store, deadline, async |store| {
                call(component, linker, store).await
            })
            .await
    }
}

async fn call(
    component: &Component,
    linker: &Linker<State>,
    store: &mut Store<State>,
) -> wasmtime::Result<Result<(), ()>> {
    let command = Command::instantiate_async(&mut *store, component, linker).await?;
    command.wasi_cli_run().call_run(store).await
}

/// Ends the process where a guest does not end: its thread cannot be ended alone.
struct Bound(#[expect(dead_code, reason = "its drop is what is waited for")] Sender<()>);

impl Bound {
    fn new(program: &'static str) -> Self {
        let (alive, ended) = channel::<()>();
        let test = thread::current().name().unwrap_or("a test").to_owned();
        thread::spawn(move || {
            if ended.recv_timeout(3 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Not by a macro: what those print in a test is kept until it ends.
                let _ = writeln!(io::stderr(), "{test}: {program} does not end");
                std::process::abort();
            }
        });
        Self(alive)
    }
}

/// One thread, and no more: a host call that blocked it would block all.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A guest that has ended. What it printed is shown when the test fails.
pub(crate) struct Ended {
    linking: Linking,
    result: wasmtime::Result<Result<(), ()>>,
    output: String,
    errors: String,
}

impl Ended {
    /// What a program printed that ended well.
    pub(crate) fn output(&self) -> &str {
        assert!(matches!(self.result, Ok(Ok(()))), "{:?}", self.result);
        &self.output
    }

    /// The lines of a program that ended well.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.output().lines().map(Answer::parse).collect()
    }

    /// The line of a program that ended well and prints just one.
    pub(crate) fn answer(&self) -> Answer {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "one line");
        answers.remove(0)
    }

    /// Why the guest was ended, where a trap did it.
    pub(crate) fn trap(&self) -> Option<Trap> {
        self.result.as_ref().err()?.downcast_ref().copied()
    }

    /// Why the guest was ended, in words, where it did not end by itself.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.result.as_ref().err().map(|error| format!("{error:#}"))
    }

    /// Paths of the host and the system's words are none of a guest's business, in any test.
    fn tells_nothing_of_the_host(&self, guest: &Guest) {
        let seen = [&self.output, &self.errors];
        let is_seen = |secret: &str| seen.iter().any(|text| text.contains(secret));
        for secret in ["os error", "Os {", "Errno"] {
            assert!(!is_seen(secret), "the guest saw {secret:?}");
        }
        for (host, name, _) in &guest.preopens {
            let host = host.to_str().unwrap();
            let knows_it = |text: &String| text.contains(host);
            if !knows_it(name) && !guest.arguments.iter().any(knows_it) {
                assert!(!is_seen(host), "the guest saw {host}");
            }
        }
    }
}

impl Drop for Ended {
    #[expect(
        clippy::print_stderr,
        reason = "the harness shows it where a test failed"
    )]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "the guest ({:?}) ended with {:?} and said\n{}{}",
                self.linking, self.result, self.output, self.errors
            );
        }
    }
}
