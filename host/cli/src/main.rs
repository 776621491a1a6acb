//! The `copyist` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    copyist::main(std::env::args_os())
}
