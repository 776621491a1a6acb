//! Builds the guest programs, and writes down where they are.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

const PACKAGE: &str = "copyist-test-guests";
/// What the guest programs are made of, from the root of the workspace.
const SOURCES: [&str; 6] = [
    "tests/guests/Cargo.toml",
    "tests/guests/src",
    "guest/Cargo.toml",
    "guest/src",
    "wit",
    "Cargo.lock",
];

fn main() {
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            copyist_guest_build::workspace().join(source).display()
        );
    }
    match copyist_guest_build::build(PACKAGE, &[]) {
        Ok(components) => write(&components),
        // In one line, without a backtrace that says nothing more.
        Err(error) => println!("cargo::error={error}"),
    }
}

/// Each program is copied, so that a later build of guests does not change it under a test.
fn write(components: &[copyist_guest_build::Component]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names it"));
    let mut constants = String::new();
    let mut calls = String::new();
    for component in components {
        let name = &component.name;
        let path = out.join(name).with_extension("wasm");
        fs::copy(&component.path, &path).expect("the program can be copied");
        let constant = name.to_uppercase();
        writeln!(
            constants,
            "/// `tests/guests/src/bin/{name}.rs`\npub const {constant}: &str = {path:?};"
        )
        .unwrap();
        writeln!(calls, "        $each!({name});").unwrap();
    }
    let list = format!(
        "{constants}
/// Calls a macro with the name of every guest program.
#[macro_export]
macro_rules! foreach_guest {{
    ($each:ident) => {{
{calls}    }};
}}
"
    );
    fs::write(out.join("guests.rs"), list).expect("the list can be written");
}
