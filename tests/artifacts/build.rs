//! Builds the guest programs, and writes down where they are.

use std::path::{Path, PathBuf};
use std::{env, fs};

use copyist_guest_build::Component;

/// What the guest programs are made of, from the root of the workspace.
const SOURCES: [&str; 7] = [
    "Cargo.lock",
    "Cargo.toml",
    "guest/Cargo.toml",
    "guest/src",
    "tests/guests/Cargo.toml",
    "tests/guests/src",
    "wit",
];

fn main() {
    for source in SOURCES.map(|source| copyist_guest_build::workspace().join(source)) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    match copyist_guest_build::build("copyist-test-guests", &[]) {
        Ok(built) => {
            let list = list(
                &built
                    .into_iter()
                    .map(|guest| keep(guest, &out))
                    .collect::<Vec<_>>(),
            );
            fs::write(out.join("guests.rs"), list).expect("the list can be written");
        }
        // In one line, without a backtrace that says nothing more.
        Err(error) => println!("cargo::error={error}"),
    }
}

/// Copies a program, so that a later build of guests does not change it under a test.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the build, which no one else writes"
)]
fn keep(guest: Component, out: &Path) -> Component {
    let path = out.join(&guest.name).with_extension("wasm");
    fs::copy(&guest.path, &path).expect("the program can be copied");
    Component { path, ..guest }
}

/// A constant for each program, and the macros that name those of each suite.
fn list(guests: &[Component]) -> String {
    let constants = guests.iter().map(|Component { name, path }| {
        let constant = name.to_uppercase();
        format!("/// `tests/guests/src/bin/{name}.rs`\npub const {constant}: &str = {path:?};\n")
    });
    let (command, hosts): (Vec<_>, Vec<_>) = guests
        .iter()
        .map(|guest| &*guest.name)
        .partition(|name| name.starts_with("cli_"));
    [
        constants.collect(),
        each(
            "foreach_guest",
            "the hosts, which is every program but those of another suite",
            &hosts,
        ),
        each(
            "foreach_cli_guest",
            "the command, whose names begin with `cli_`",
            &command,
        ),
    ]
    .concat()
}

/// A macro that calls another one with each name.
fn each(name: &str, suite: &str, guests: &[&str]) -> String {
    let calls = guests
        .iter()
        .map(|guest| format!("        $each!({guest});\n"))
        .collect::<String>();
    format!(
        "
/// Calls a macro with the name of each guest program of the suite of {suite}.
#[macro_export]
macro_rules! {name} {{
    ($each:ident) => {{
{calls}    }};
}}
"
    )
}
