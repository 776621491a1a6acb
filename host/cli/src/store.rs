//! What the store of a run holds.

use std::io::{self, IsTerminal};

use copyist_wasmtime::engine::{Grants, TreeGrants, TreeLimits};
use copyist_wasmtime::{CopyCtx, CopyCtxBuilder, CopyCtxView, CopyView};
use wasmtime::component::ResourceTable;
use wasmtime::{Result, bail};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

use crate::args::{Grant, Preopen, ReportFormat, Run};
use crate::bars;
use crate::endpoints::{Grant as Granted, Opened};
use crate::report;
use crate::screen::GuestStream;

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) copy: CopyCtx,
    table: ResourceTable,
}

impl State {
    /// What the command line grants, with the endpoints opened.
    pub(crate) fn new(run: &Run, endpoints: Opened) -> Result<Self> {
        let mut wasi = WasiCtx::builder();
        // One guest, and a watchdog on a thread of its own: nothing else needs this thread.
        wasi.inherit_stdio().allow_blocking_current_thread(true);
        let mut copy = copy(run);
        // The lines of a report are for a program, whatever the terminal.
        let has = |is_it: fn(&Granted) -> bool| run.endpoints.iter().any(is_it);
        let has_stdout = has(Granted::is_stdout);
        if run.report.is_none()
            && !(has_stdout && io::stdout().is_terminal())
            && let Some(bars) = bars::start()
        {
            copy.on_start(bars);
            if io::stdout().is_terminal() {
                wasi.stdout(GuestStream::Output);
            }
            wasi.stderr(GuestStream::Errors);
        }
        // Both would take from one stream, or write into each other's bytes.
        if has(Granted::is_stdin) {
            wasi.stdin(io::empty());
        }
        if has_stdout {
            wasi.stdout(io::empty());
        }
        for (name, endpoint) in endpoints {
            copy.endpoint(name, endpoint);
        }
        wasi.arg(run.component().to_string_lossy())
            .args(run.arguments());
        for variable in &run.variables {
            match variable.split_once('=') {
                Some((name, value)) => {
                    wasi.env(name, value);
                }
                None => match std::env::var(variable) {
                    Ok(value) => {
                        wasi.env(variable, value);
                    }
                    Err(error) => {
                        bail!("--env {variable}: {error}; give it a value by {variable}=VALUE")
                    }
                },
            }
        }
        for (option, preopens, permissions) in [
            ("--dir", &run.dirs, FsPerms::ReadWrite),
            ("--ro-dir", &run.read_only_dirs, FsPerms::ReadOnly),
        ] {
            for Preopen { host, guest } in preopens {
                if let Err(error) = wasi.preopened_dir(host, guest, permissions) {
                    bail!(
                        "{option} {}: {error:#}; name a directory that is there",
                        host.display()
                    );
                }
            }
        }
        Ok(Self {
            wasi: wasi.build(),
            copy: copy.build(),
            table: ResourceTable::new(),
        })
    }
}

fn copy(run: &Run) -> CopyCtxBuilder {
    let mut copy = CopyCtx::builder();
    if let Some(bytes) = run.max_bytes {
        copy.max_total_bytes(bytes.as_u64());
    }
    copy.tree_limits(TreeLimits {
        entries: run.max_entries,
        depth: run.max_depth,
    });
    let mut grants = Grants::default();
    let mut of_trees = TreeGrants::default();
    for grant in &run.grants {
        match grant {
            Grant::SpecialModeBits => grants.special_mode_bits = true,
            Grant::Ownership => grants.ownership = true,
            Grant::PrivilegedXattrs => grants.privileged_xattrs = true,
            Grant::SpecialFiles => of_trees.special_files = true,
            Grant::LeavingLinks => of_trees.leaving_links = true,
        }
    }
    copy.grants(grants).tree_grants(of_trees);
    match run.report {
        None => {}
        Some(ReportFormat::Json) => {
            copy.on_copy(report::json);
        }
    }
    copy
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
