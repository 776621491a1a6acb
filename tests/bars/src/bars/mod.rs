//! The bars, one a file.

mod beside_std;
mod data_calls;
mod overhead;
mod start;
mod system_calls;

use std::path::PathBuf;

use clap::ValueEnum;
use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use crate::args::Args;
use crate::place::Place;
use crate::row::Row;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bar {
    /// What a guest sees of a large copy beyond the engine's own span
    Overhead,
    /// The data calls of that copy, with and without a guest
    DataCalls,
    /// The same copy by the guest's own `std::fs::copy`
    BesideStd,
    /// The system calls of small copies and of a read
    SystemCalls,
    /// The start of `copyist run`
    Start,
}

impl Bar {
    pub(crate) const ALL: [Self; 5] = [
        Self::Overhead,
        Self::DataCalls,
        Self::BesideStd,
        Self::SystemCalls,
        Self::Start,
    ];

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Overhead => "what a guest sees beyond the engine's span",
            Self::DataCalls => "data calls of a large copy",
            Self::BesideStd => "beside the guest's std::fs::copy",
            Self::SystemCalls => "system calls",
            Self::Start => "start of `copyist run`",
        }
    }

    /// What is counted is the same in every build.
    const fn is_timed(self) -> bool {
        matches!(self, Self::Overhead | Self::BesideStd | Self::Start)
    }

    pub(crate) fn measure(self, bench: &Bench) -> Result<Vec<Row>> {
        if self.is_timed() && cfg!(debug_assertions) {
            bail!("this is no release build; `cargo bars` makes one");
        }
        match self {
            Self::Overhead => overhead::measure(bench),
            Self::DataCalls => data_calls::measure(bench),
            Self::BesideStd => beside_std::measure(bench),
            Self::SystemCalls => system_calls::measure(bench),
            Self::Start => start::measure(bench),
        }
    }
}

/// What they share.
pub(crate) struct Bench {
    pub(crate) place: Place,
    pub(crate) size: u64,
    pub(crate) time_copy: PathBuf,
    pub(crate) many: PathBuf,
    pub(crate) plugin: PathBuf,
}

impl Bench {
    pub(crate) fn new(args: &Args) -> Result<Self> {
        Ok(Self {
            place: Place::new(&args.dir)?,
            size: args.size.as_u64(),
            time_copy: program("copyist-bars-guest", "time_copy")?,
            many: program("copyist-bars-guest", "many")?,
            plugin: program("copyist-example-plugin", "copyist-example-plugin")?,
        })
    }
}

/// Builds a guest program, in release as all guests are.
fn program(package: &str, name: &str) -> Result<PathBuf> {
    let built = copyist_guest_build::build(package, &[name]).context("no guest to measure")?;
    match built.into_iter().next() {
        Some(component) => Ok(component.path),
        None => bail!("{package} has no program {name}"),
    }
}
