//! Copies by the engine and by a loop, in turn.

use std::path::Path;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use copyist_engine::{Environment, Mechanism, sys};
use wasmtime::{Result, bail};

use super::ends::{Calls, Ends, Kind};
use super::engine::Driver;
use crate::quiet::Watch;
use crate::row::{Row, Verdict};
use crate::sample::{self, Sample};

/// The ratios are near 1.
const ROUNDS: usize = 30;
/// For the choice of a buffer.
const TRIES: usize = 3;
const MOST: f64 = 1.10;

/// What is compared.
pub(crate) struct Case {
    pub(crate) source: Kind,
    pub(crate) destination: Kind,
    pub(crate) zero_copy: bool,
    /// How much of the large file's size: no more than it takes to see.
    pub(crate) part: Part,
    /// By which the engine must copy.
    pub(crate) mechanism: Mechanism,
    pub(crate) by: fn(&Ends, &mut [u8]) -> Result<()>,
    pub(crate) name: &'static str,
    /// Of which the best is taken.
    pub(crate) buffers: &'static [usize],
}

/// What one copy took: by the clock, and of the processor by all threads of this process, which the
/// others on the machine do not change much. Of a process bound to one processor they differ by what
/// others took, and by the moments when all of it waits.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    time: Duration,
    busy: Duration,
}

/// When it began.
struct Began(Instant, Duration);

impl Began {
    fn now() -> Self {
        Self(Instant::now(), busy())
    }

    fn end(self) -> Took {
        Took {
            time: self.0.elapsed(),
            busy: busy().saturating_sub(self.1),
        }
    }
}

/// Of several copies.
#[derive(Default)]
struct Taken {
    time: Sample,
    busy: Sample,
}

impl Taken {
    fn push(&mut self, took: Took) {
        self.time.push(took.time);
        self.busy.push(took.busy);
    }
}

fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Quarter,
}

impl Part {
    pub(crate) const fn of(self, size: u64) -> u64 {
        match self {
            Self::Whole => size,
            Self::Quarter => size / 4,
        }
    }
}

/// None that is used.
pub(crate) const NO_BUFFER: &[usize] = &[0];
pub(crate) const BUFFERS: &[usize] = &[64 << 10, 128 << 10, 256 << 10, 1 << 20];

impl Case {
    pub(crate) fn what(&self, size: u64) -> String {
        format!(
            "{} of {} into {}{}",
            ByteSize(size).display().iec(),
            self.source.name(),
            self.destination.name(),
            if self.zero_copy { ", zero-copy" } else { "" }
        )
    }

    pub(crate) fn measure(&self, file: &Path, size: u64) -> Result<Vec<Row>> {
        let environment = || Environment::new(sys::native());
        let drivers = [Driver::pool(environment()), Driver::caller(environment())];
        let mut buffer = vec![0; self.best_buffer(file, size)?];
        let (mut theirs, mut again) = (Taken::default(), Taken::default());
        let mut ours: [Taken; 2] = Default::default();
        for driver in &drivers {
            self.by_the_engine(driver, file, size)?;
        }
        let watch = Watch::start();
        for _ in 0..ROUNDS {
            theirs.push(self.by_the_loop(&mut buffer, file, size)?);
            for (driver, ours) in drivers.iter().zip(&mut ours) {
                ours.push(self.by_the_engine(driver, file, size)?);
            }
            again.push(self.by_the_loop(&mut buffer, file, size)?);
        }
        let others = watch.others();
        let control = sample::differ(&theirs.time, &again.time);
        let loop_ = match buffer.len() {
            0 => self.name.to_owned(),
            length => format!(
                "{} of {}",
                self.name,
                ByteSize(length as u64).display().iec()
            ),
        };
        Ok(drivers
            .iter()
            .zip(&ours)
            .map(|(driver, ours)| {
                let ratio = sample::ratio(&ours.time, &theirs.time);
                Row {
                    bar: format!("{}, {}", self.what(size), driver.name()),
                    measured: format!(
                        "{ratio:.3} of {loop_}: {:.1?} beside {:.1?}; A/A {control}, {others}; \
                         {:.3} of its processor time, A/A {}",
                        ours.time.lower_quartile(),
                        theirs.time.lower_quartile(),
                        sample::ratio(&ours.busy, &theirs.busy),
                        sample::differ(&theirs.busy, &again.busy)
                    ),
                    bound: format!("<= {MOST:.2}"),
                    verdict: others.or_void(control.or_void(Verdict::of(ratio <= MOST))),
                }
            })
            .collect())
    }

    fn best_buffer(&self, file: &Path, size: u64) -> Result<usize> {
        let mut best = (Duration::MAX, 0);
        for length in self.buffers.iter().copied() {
            if self.buffers.len() == 1 {
                return Ok(length);
            }
            let mut sample = Taken::default();
            for _ in 0..TRIES {
                sample.push(self.by_the_loop(&mut vec![0; length], file, size)?);
            }
            best = best.min((sample.time.lower_quartile(), length));
        }
        Ok(best.1)
    }

    fn by_the_loop(&self, buffer: &mut [u8], file: &Path, size: u64) -> Result<Took> {
        let ends = Ends::new(self.source, self.destination, Calls::Wait, file, size)?;
        let started = Began::now();
        (self.by)(&ends, buffer)?;
        let Ends {
            source,
            destination,
            peers,
        } = ends;
        drop((source, destination));
        peers.end()?;
        Ok(started.end())
    }

    pub(crate) fn by_the_engine(&self, driver: &Driver, file: &Path, size: u64) -> Result<Took> {
        let calls = Calls::DoNotWait;
        let ends = Ends::new(self.source, self.destination, calls, file, size)?;
        let Ends {
            source,
            destination,
            peers,
        } = ends;
        let started = Began::now();
        let mechanism = driver.copy(source, destination, self.zero_copy)?;
        peers.end()?;
        let took = started.end();
        if mechanism != Some(self.mechanism) {
            bail!("it was copied by {mechanism:?}");
        }
        Ok(took)
    }
}
