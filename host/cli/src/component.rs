//! From a file to something that can be called, or a line that says why not.

use std::path::Path;

use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Cache, Config, Engine, Result, bail};

use crate::store::State;

/// An engine with the compilation cache on: a component is compiled at its first run.
pub(crate) fn engine() -> Result<Engine> {
    let mut config = Config::new();
    // For the timeout of a guest that loops.
    config.epoch_interruption(true);
    // Where there is no place for a cache (no home directory), the component is compiled anew.
    config.cache(Cache::from_file(None).ok());
    Engine::new(&config)
}

/// Reads, compiles and links a component.
pub(crate) fn load(engine: &Engine, path: &Path) -> Result<InstancePre<State>> {
    let name = path.display();
    // A FIFO or a device would be read for ever, before any timeout.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        bail!("{name} is no file; name a component, a .wasm file");
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => bail!("cannot read {name}: {error}; name a component, a .wasm file"),
    };
    if !is_component(&bytes) {
        bail!("{name} is no component; build the guest for the target wasm32-wasip2");
    }
    let component = match Component::from_binary(engine, &bytes) {
        Ok(component) => component,
        Err(error) => bail!("{name} is no valid component: {error:#}"),
    };
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    copyist_wasmtime::add_to_linker(&mut linker)?;
    if let Some(import) = unknown_import(engine, &component) {
        bail!(
            "{name} imports {import}, which this host does not have; it has WASI 0.2 (cli) and \
             copyist:copy 0.2"
        );
    }
    match linker.instantiate_pre(&component) {
        Ok(component) => Ok(component),
        Err(error) => bail!("{name} needs more than this host has; try a newer one: {error:#}"),
    }
}

/// Whether the file begins as a component does: the magic number, then layer 1 in place of 0.
fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[1, 0])
}

/// The first import that no interface of this host can serve.
fn unknown_import(engine: &Engine, component: &Component) -> Option<String> {
    const KNOWN: [&str; 7] = [
        "copyist:copy/",
        "wasi:cli/",
        "wasi:clocks/",
        "wasi:filesystem/",
        "wasi:io/",
        "wasi:random/",
        "wasi:sockets/",
    ];
    component
        .component_type()
        .imports(engine)
        .map(|(name, _)| name.to_owned())
        .find(|name| {
            let version = name.rsplit_once('@').map_or("", |(_, version)| version);
            !version.starts_with("0.2.") || !KNOWN.iter().any(|known| name.starts_with(known))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_module_is_no_component() {
        assert!(is_component(b"\0asm\x0d\0\x01\0"));
        assert!(!is_component(b"\0asm\x01\0\0\0"));
        assert!(!is_component(b"#!/bin/sh"));
        assert!(!is_component(b""));
    }
}
