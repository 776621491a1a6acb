//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::bars::Bar;
use crate::shape::Shape;

/// Measures what copyist promises about speed. Takes some five minutes, on a machine that does
/// nothing else. Root also sees it on file systems that are made for it in memory.
#[derive(Debug, Parser)]
#[command(name = "cargo bars", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) helper: Option<Helper>,

    /// Measure only these
    #[arg(long, value_enum, value_name = "BAR", value_delimiter = ',')]
    pub(crate) only: Vec<Bar>,

    /// A directory in memory, for files that are gone at the end
    #[arg(long, default_value = "/dev/shm")]
    pub(crate) dir: PathBuf,

    /// The size of the large file, of which two must fit
    #[arg(long, default_value = "1GiB")]
    pub(crate) size: bytesize::ByteSize,
}

/// What the command does in a process of its own, to be watched there.
#[derive(Debug, Subcommand)]
pub(crate) enum Helper {
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
