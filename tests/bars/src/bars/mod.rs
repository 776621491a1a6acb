//! The bars, one a file.

mod beside_std;
mod cancellable;
mod clones;
mod crowd;
mod data_calls;
mod deadlines;
mod holes;
mod into_streams;
mod late_reader;
mod one_wait;
mod overhead;
mod start;
mod system_calls;
mod throttled;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rustix::fs::{FileType, Mode};
use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use crate::apart::{self, Processors};
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
    /// A regular copy that can be cancelled beside one that cannot
    Cancellable,
    /// A copy that waits for ten seconds
    OneWait,
    /// Thousands of copies that wait
    Crowd,
    /// From a deadline to the caller's answer
    Deadlines,
    /// The same where the kernel throttles who writes
    Throttled,
    /// A FIFO whose reader comes late
    LateReader,
    /// A large file into a pipe
    FileIntoPipe,
    /// A pipe or a socket into a pipe
    StreamIntoPipe,
    /// A large file into a socket
    FileIntoSocket,
}

impl Bar {
    pub(crate) const ALL: [Self; 16] = [
        Self::Overhead,
        Self::DataCalls,
        Self::BesideStd,
        Self::SystemCalls,
        Self::Holes,
        Self::Clones,
        Self::Start,
        Self::Cancellable,
        Self::OneWait,
        Self::Crowd,
        Self::Deadlines,
        Self::Throttled,
        Self::LateReader,
        Self::FileIntoPipe,
        Self::StreamIntoPipe,
        Self::FileIntoSocket,
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
            Self::Cancellable => "a copy that can be cancelled",
            Self::OneWait => "a copy that waits",
            Self::Crowd => "thousands of copies that wait",
            Self::Deadlines => "from a deadline to the answer",
            Self::Throttled => "a deadline under write throttling",
            Self::LateReader => "a FIFO whose reader comes late",
            Self::FileIntoPipe => "a file into a pipe",
            Self::StreamIntoPipe => "a stream into a pipe",
            Self::FileIntoSocket => "a file into a socket",
        }
    }

    /// Whether it is about copies that wait.
    pub(crate) const fn is_of_waits(self) -> bool {
        matches!(
            self,
            Self::Cancellable
                | Self::OneWait
                | Self::Crowd
                | Self::Deadlines
                | Self::Throttled
                | Self::LateReader
                | Self::FileIntoPipe
                | Self::StreamIntoPipe
                | Self::FileIntoSocket
        )
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
            Self::Cancellable => cancellable::measure(bench),
            Self::OneWait | Self::LateReader => apart::measure(bench, self, Processors::All),
            Self::Crowd => crowd::measure(bench),
            Self::Deadlines => deadlines::measure(bench),
            Self::Throttled => throttled::measure(bench),
            Self::FileIntoPipe | Self::StreamIntoPipe | Self::FileIntoSocket => {
                apart::measure(bench, self, Processors::One)
            }
        }
    }

    /// In the process that was started for it.
    pub(crate) fn measure_apart(self, place: &Place, size: u64) -> Result<Vec<Row>> {
        match self {
            Self::OneWait => one_wait::measure(place),
            Self::LateReader => late_reader::measure(place),
            Self::FileIntoPipe => into_streams::measure(place, size, into_streams::FILE_INTO_PIPE),
            Self::StreamIntoPipe => {
                into_streams::measure(place, size, into_streams::STREAM_INTO_PIPE)
            }
            Self::FileIntoSocket => {
                into_streams::measure(place, size, into_streams::FILE_INTO_SOCKET)
            }
            _ => bail!("this bar is not measured in a process of its own"),
        }
    }
}

/// Makes a FIFO that this process may read and write.
pub(crate) fn make_fifo(path: &Path) -> Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0)?;
    Ok(())
}

/// What they share.
pub(crate) struct Bench {
    pub(crate) place: Place,
    pub(crate) size: u64,
    pub(crate) time_copy: PathBuf,
    pub(crate) many: PathBuf,
    pub(crate) wait: PathBuf,
    pub(crate) plugin: PathBuf,
}

impl Bench {
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let [many, time_copy, wait] =
            programs("copyist-bars-guest", ["many", "time_copy", "wait"])?;
        let [plugin] = programs("copyist-example-plugin", ["copyist-example-plugin"])?;
        Ok(Self {
            place: Place::new(&args.dir)?,
            size: args.size.as_u64(),
            time_copy,
            many,
            wait,
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
