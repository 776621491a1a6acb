//! The `copyist` command, as a library so that another program can be it.

mod args;
mod bars;
mod component;
mod endpoints;
mod exit;
mod messages;
mod report;
mod run;
mod screen;
mod store;
mod watchdog;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use exit::Exit;

/// Does what the command line says, the program's own name first, and tells the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Help and version go to the standard output, and are no failure.
            let status = if error.use_stderr() {
                Exit::HostFailed.code()
            } else {
                ExitCode::SUCCESS
            };
            let _ = error.print();
            return status;
        }
    };
    let status = match args.command {
        Command::Run(run) => match run::run(&run) {
            Ok(exit) => exit.code(),
            Err(error) => exit::fail(&error),
        },
    };
    bars::end(watchdog::GRACE);
    messages::flush(watchdog::GRACE);
    status
}
