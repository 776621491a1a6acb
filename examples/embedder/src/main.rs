//! A wasmtime host that lets its guests copy: `embedder COMPONENT DIRECTORY [ARGUMENT..]` runs a
//! component that sees one directory as `/`, for a minute at most.

use std::time::Duration;

use copyist_wasmtime::{CopyCtx, CopyCtxView, CopyView, EpochClock};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, Result, Store, bail};
use wasmtime_wasi::p2::bindings::Command;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

struct State {
    wasi: WasiCtx,
    copy: CopyCtx,
    // One table for both: that is how a copy finds the guest's descriptors.
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [component, directory, ..] = arguments.as_slice() else {
        bail!("usage: embedder COMPONENT DIRECTORY [ARGUMENT..]");
    };
    let mut config = Config::new();
    config.epoch_interruption(true);
    let engine = Engine::new(&config)?;
    // Ends guests whose time is up, wherever they are. One serves all stores.
    let clock = EpochClock::owning(&engine, Duration::from_millis(10))?;
    let component = Component::from_file(&engine, component)?;
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    copyist_wasmtime::add_to_linker(&mut linker)?;

    let state = State {
        wasi: WasiCtx::builder()
            .inherit_stdio()
            .args(&arguments[2..])
            .preopened_dir(directory, "/", FsPerms::ReadWrite)?
            .build(),
        copy: CopyCtx::builder().max_total_bytes(10 << 30).build(),
        table: ResourceTable::new(),
    };
    let mut store = Store::new(&engine, state);
    let timeout = Duration::from_secs(60);
    let ended = clock.run(&mut store, timeout, async |store| {
        let command = Command::instantiate_async(&mut *store, &component, &linker).await?;
        command.wasi_cli_run().call_run(store).await
    });
    if ended.await?.is_err() {
        bail!("the guest failed");
    }
    Ok(())
}
