//! Builds the workspace's guest programs as components: from a build script before the tests that
//! run them, and from a program that shows one.
//!
//! ```no_run
//! let components = copyist_guest_build::build("copyist-example-plugin", &[])?;
//! # Ok::<(), copyist_guest_build::Error>(())
//! ```

mod environment;
mod target;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The target that guests are built for.
pub const TARGET: &str = "wasm32-wasip2";

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    /// The name of its binary target.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
}

/// Why guests could not be built, in one line that says what to do.
#[derive(Debug)]
pub struct Error(String);

/// Builds the programs `bins` of `package`, or all that it has, and returns them by name.
///
/// It waits where another build of guests is under way. An outer cargo is not waited for: guests
/// have a target directory of their own.
///
/// # Errors
///
/// The target is missing and could not be added, or the programs do not compile; what the compiler
/// says goes to the standard error.
pub fn build(package: &str, bins: &[&str]) -> Result<Vec<Component>, Error> {
    target::ensure()?;
    let mut cargo = environment::clean(environment::program("CARGO", "cargo"));
    cargo
        .current_dir(workspace())
        .args([
            "build",
            "--release",
            "--target",
            TARGET,
            "--package",
            package,
        ])
        .arg("--target-dir")
        .arg(target_dir())
        .arg("--message-format=json-render-diagnostics");
    match bins {
        [] => cargo.arg("--bins"),
        _ => cargo.args(bins.iter().flat_map(|bin| ["--bin", bin])),
    };
    let built = run(cargo.stderr(Stdio::inherit()))?;
    if !built.status.success() {
        return Err(Error(format!(
            "the guest programs of `{package}` do not build: see above"
        )));
    }
    let mut components = components(&built.stdout);
    components.sort();
    Ok(components)
}

/// The root of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    // Two above this package.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this package is in tests/")
}

/// Where guests are built.
#[must_use]
pub fn target_dir() -> PathBuf {
    let outer = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace().join(outer).join("guests")
}

/// The executables that cargo reports, one JSON message a line.
fn components(messages: &[u8]) -> Vec<Component> {
    let messages = messages.split(|&byte| byte == b'\n');
    messages
        .filter_map(|message| {
            let message: Value = serde_json::from_slice(message).ok()?;
            Some(Component {
                path: message["executable"].as_str()?.into(),
                name: message["target"]["name"].as_str()?.to_owned(),
            })
        })
        .collect()
}

fn run(command: &mut Command) -> Result<std::process::Output, Error> {
    command
        .output()
        .map_err(|error| Error::not_run(command, &error))
}

impl Error {
    fn not_run(command: &Command, error: &io::Error) -> Self {
        let program = command.get_program().display();
        Error(format!(
            "cannot run `{program}` ({error}): install Rust by rustup"
        ))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executables_are_components() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"lib"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"sdk"},"executable":"/t/sdk.wasm"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n",
        );
        let sdk = Component {
            name: "sdk".to_owned(),
            path: "/t/sdk.wasm".into(),
        };
        assert_eq!(components(messages.as_bytes()), [sdk]);
    }
}
