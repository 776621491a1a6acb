//! The bars, one a file.

mod beside_std;
mod clones;
mod data_calls;
mod holes;
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
    /// A huge file that is all holes but for a little data
    Holes,
    /// A clone, where the file system makes one
    Clones,
    /// The start of `copyist run`
    Start,
}

impl Bar {
    pub(crate) const ALL: [Self; 7] = [
        Self::Overhead,
        Self::DataCalls,
        Self::BesideStd,
        Self::SystemCalls,
        Self::Holes,
        Self::Clones,
        Self::Start,
    ];

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Overhead => "what a guest sees beyond the engine's span",
            Self::DataCalls => "data calls of a large copy",
            Self::BesideStd => "beside the guest's std::fs::copy",
            Self::SystemCalls => "system calls",
            Self::Holes => "a huge file with little data",
            Self::Clones => "a clone",
            Self::Start => "start of `copyist run`",
        }
    }

    /// What is counted is the same in every build.
    const fn is_timed(self) -> bool {
        !matches!(self, Self::DataCalls | Self::SystemCalls)
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
            Self::Holes => holes::measure(bench),
            Self::Clones => clones::measure(bench),
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
        let [many, time_copy] = programs("copyist-bars-guest", ["many", "time_copy"])?;
        let [plugin] = programs("copyist-example-plugin", ["copyist-example-plugin"])?;
        Ok(Self {
            place: Place::new(&args.dir)?,
            size: args.size.as_u64(),
            time_copy,
            many,
            plugin,
        })
    }
}

/// Builds guest programs, in release as all guests are; named in the order of the alphabet.
fn programs<const N: usize>(package: &str, names: [&str; N]) -> Result<[PathBuf; N]> {
    let built = copyist_guest_build::build(package, &names).context("no guest to measure")?;
    let paths: Vec<_> = built.into_iter().map(|component| component.path).collect();
    match paths.try_into() {
        Ok(paths) => Ok(paths),
        Err(_) => bail!("{package} has not the programs {names:?}"),
    }
}
