//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::bars::Bar;
use crate::shape::Shape;

/// Measures what copyist promises about speed. Takes some ten minutes, on a machine that does
/// nothing else. Root also sees it on file systems that are made for it in memory.
#[derive(Debug, Parser)]
#[command(name = "cargo bars", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Measure only these
    #[arg(long, value_enum, value_name = "BAR", value_delimiter = ',')]
    pub(crate) only: Vec<Bar>,

    /// A directory in memory, for files that are gone at the end
    #[arg(long, default_value = "/dev/shm", global = true)]
    pub(crate) dir: PathBuf,

    /// The size of the large file, of which two must fit
    #[arg(long, default_value = "1GiB", global = true)]
    pub(crate) size: bytesize::ByteSize,
}

/// Which bars, or what the command does in a process of its own, to be watched there.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what copies promise that wait, and nothing else: some six minutes
    Waits,
    /// Measure one bar in the working directory, for the process that asked
    #[command(hide = true)]
    Apart {
        #[arg(value_enum)]
        bar: Bar,
    },
    /// Hold copies that wait, and time others beside them
    #[command(hide = true)]
    Crowd(Crowd),
    /// Let the engine copy over and over
    #[command(hide = true)]
    Engine(Repeat),
    /// Let a guest copy over and over
    #[command(hide = true)]
    Guest(Repeat),
    /// Be the `copyist` command
    #[command(hide = true)]
    Copyist {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Repeat {
    #[arg(long, value_enum)]
    pub(crate) shape: Shape,
    /// The guest program, where a guest asks.
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "async")]
    pub(crate) linking: Linking,
    /// Without anything that could end a copy.
    #[arg(long)]
    pub(crate) bare: bool,
}

/// Guests that all do the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Crowd {
    #[arg(long)]
    pub(crate) program: PathBuf,
    #[arg(long)]
    pub(crate) stores: usize,
    #[arg(long, value_enum)]
    pub(crate) each: Each,
    /// Of each store.
    #[arg(long, default_value_t = 0)]
    pub(crate) jobs: usize,
}

/// What a guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Each {
    /// Waits in a call.
    Call,
    /// Holds jobs that wait.
    Jobs,
    /// Waits for something else.
    Idle,
}

impl Each {
    /// As on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Jobs => "jobs",
            Self::Idle => "idle",
        }
    }
}

/// Which of the two functions links the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Linking {
    Async,
    Sync,
}

impl Linking {
    pub(crate) const ALL: [Self; 2] = [Self::Async, Self::Sync];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }
}
