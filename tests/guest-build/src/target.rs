//! Makes sure that the target of guests is installed.

use std::path::Path;

use crate::{Error, TARGET, environment, run, workspace};

/// Adds the target by rustup where it is missing.
pub(crate) fn ensure() -> Result<(), Error> {
    if installed()? {
        return Ok(());
    }
    let mut rustup = environment::clean("rustup".into());
    // In the workspace, whose rust-toolchain.toml names the toolchain.
    rustup
        .current_dir(workspace())
        .args(["target", "add", TARGET]);
    match rustup.output() {
        Ok(added) if added.status.success() && installed()? => Ok(()),
        Ok(added) => {
            let said = String::from_utf8_lossy(&added.stderr);
            let reason = said
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or("no reason");
            Err(missing(reason.trim()))
        }
        Err(error) => Err(missing(&format!("rustup: {error}"))),
    }
}

/// Whether the compiler has a standard library for it.
fn installed() -> Result<bool, Error> {
    let mut rustc = environment::clean(environment::program("RUSTC", "rustc"));
    rustc
        .current_dir(workspace())
        .args(["--print", "target-libdir", "--target", TARGET]);
    let printed = run(&mut rustc)?;
    let path = String::from_utf8_lossy(&printed.stdout);
    Ok(printed.status.success() && Path::new(path.trim()).is_dir())
}

fn missing(reason: &str) -> Error {
    Error(format!(
        "the Rust target {TARGET} is missing: run `rustup target add {TARGET}` ({reason})"
    ))
}
