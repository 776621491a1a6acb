//! An environment for a cargo within a cargo.

use std::env;
use std::ffi::OsString;
use std::process::Command;

/// What an outer cargo, or cargo clippy, sets for the crates that it builds. A nested one would
/// take the flags for its own, build into the outer's directory, or lint with another's options.
const FOREIGN: [&str; 13] = [
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
];
const FOREIGN_PREFIXES: [&str; 4] = ["CARGO_", "DEP_", "RUSTC_", "__CARGO"];

/// Where cargo keeps its packages and how it reaches them is the user's, and stays. So does the
/// jobserver, by which both together run no more compilers than one would.
const OWN_PREFIXES: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
];

/// The tool that an outer cargo names in `variable`, so that both are of one toolchain.
pub(crate) fn program(variable: &str, default: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| default.into())
}

/// A command without what an outer build left in the environment.
pub(crate) fn clean(program: OsString) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_foreign) {
            command.env_remove(name);
        }
    }
    command
}

fn is_foreign(name: &str) -> bool {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    FOREIGN.contains(&name) || starts(&FOREIGN_PREFIXES) && !starts(&OWN_PREFIXES)
}

#[cfg(test)]
mod tests {
    use super::is_foreign;

    #[test]
    fn an_outer_build_is_left_behind_and_the_users_settings_are_not() {
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_PROFILE_RELEASE_DEBUG",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "TARGET",
        ] {
            assert!(is_foreign(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "HOME",
            "PATH",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(!is_foreign(name), "{name}");
        }
    }
}
