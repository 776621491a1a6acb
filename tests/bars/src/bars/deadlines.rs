//! From a deadline to the caller's answer, on a clock that ticks every ten milliseconds: wherever the
//! guest waits, on a machine that does nothing else and beside copies of many gigabytes.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use copyist_engine::{
    Cancel, Destination, Options, Owner, Pool, PoolOptions, Reflink, Request, Source,
};
use copyist_wasmtime::EpochClock;
use wasmtime::Result;
use wasmtime::error::Context as _;

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, Run, WasiFiles};
use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::sample::Sample;
use crate::waiting::{self, Wait};

pub(super) const TICK: Duration = Duration::from_millis(10);
pub(super) const MOST: Duration = Duration::from_millis(20);
/// Of each wait.
const DEADLINES: u32 = 100;
/// By when a guest waits that was just called.
const SOON: Duration = Duration::from_millis(8);

/// Copies at once beside the guests, for as many threads as the pool has by default.
const BESIDE: usize = 4;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    waiting::prepare(&bench.place, bench.size)?;
    let mut rows = Vec::new();
    for linking in Linking::ALL {
        rows.push(row(bench, linking, None)?);
    }
    for linking in Linking::ALL {
        rows.push(row(bench, linking, Some(BESIDE))?);
    }
    Ok(rows)
}

fn row(bench: &Bench, linking: Linking, beside: Option<usize>) -> Result<Row> {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let guest = Guest::load(&bench.wait, linking)?;
    let clock = EpochClock::owning(guest.engine(), TICK)?;
    let load = beside
        .map(|copies| Load::start(bench, &pool, copies))
        .transpose()?;
    let (mut worst, mut where_) = (Duration::ZERO, Wait::Job);
    let mut all = Sample::default();
    for wait in Wait::ALL {
        let mut sample = Sample::default();
        for number in 0..DEADLINES {
            // Ten milliseconds in steps, so that it passes anywhere between two ticks.
            let after = SOON + TICK * (number * 37 % DEADLINES) / DEADLINES;
            let late = answer(bench, &guest, &clock, wait, &pool, after)?;
            sample.push(late);
            all.push(late);
        }
        if sample.percentile(99) > worst {
            (worst, where_) = (sample.percentile(99), wait);
        }
    }
    let copied = load.map(Load::end).transpose()?;
    Ok(Row {
        bar: format!(
            "from a deadline to the answer, {}{}",
            linking.name(),
            if copied.is_some() {
                ", amid regular copies"
            } else {
                ""
            }
        ),
        measured: format!(
            "99th percentile at the most {worst:.1?} ({}), median {:.1?}, of {} waits {DEADLINES} \
             times{}",
            where_.name(),
            all.median(),
            Wait::ALL.len(),
            copied.map_or_else(String::new, |bytes| format!(
                "; {} copied beside",
                ByteSize(bytes).display().iec()
            ))
        ),
        bound: format!("<= {MOST:?} each"),
        verdict: Verdict::of(worst <= MOST),
    })
}

fn answer(
    bench: &Bench,
    guest: &Guest,
    clock: &EpochClock,
    wait: Wait,
    pool: &Arc<Pool>,
    after: Duration,
) -> Result<Duration> {
    let (mut copy, _peer) = wait.granted()?;
    let run = Run {
        place: &bench.place,
        words: wait.words(),
        copy: copy.pool(pool.clone()).build(),
        files: WasiFiles::OnThisThread,
    };
    let (late, _left) = guest
        .answer(run, clock, after)
        .with_context(|| wait.name().to_owned())?;
    Ok(late)
}

/// Copies without end, by the same pool.
struct Load {
    stop: Arc<AtomicBool>,
    cancel: Cancel,
    bytes: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<Result<()>>>,
}

impl Load {
    fn start(bench: &Bench, pool: &Arc<Pool>, copies: usize) -> Result<Self> {
        let (stop, cancel, bytes) = (Arc::default(), Cancel::new(), Arc::default());
        let threads = (0..copies).map(|number| {
            let (pool, cancel): (_, Cancel) = (pool.clone(), cancel.clone());
            let (stop, bytes): (Arc<AtomicBool>, Arc<AtomicU64>) =
                (Arc::clone(&stop), Arc::clone(&bytes));
            let (from, to) = ends(&bench.place, number)?;
            Ok(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let request = Request {
                        source: Source::File(from.clone()),
                        destination: Destination::File(to.clone()),
                        options: Options {
                            reflink: Reflink::Never,
                            ..Options::default()
                        },
                    };
                    let (tell, told) = std::sync::mpsc::channel();
                    let owner = Owner(u64::MAX - number as u64);
                    pool.copy(owner, request, cancel.clone(), move |outcome| {
                        let _ = tell.send(outcome);
                    });
                    let moved = match told.recv()? {
                        Ok(summary) => summary.bytes,
                        // At the end.
                        Err(error) => error.done.bytes,
                    };
                    bytes.fetch_add(moved, Ordering::Relaxed);
                }
                Ok(())
            }))
        });
        let threads = threads.collect::<Result<Vec<_>>>()?;
        Ok(Self {
            stop,
            cancel,
            bytes,
            threads,
        })
    }

    /// Ends them, and tells how much they have copied.
    fn end(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.cancel.cancel();
        for thread in self.threads {
            thread.join().ok().context("a load panicked")??;
        }
        Ok(self.bytes.load(Ordering::Relaxed))
    }
}

/// The large file, and another to write it to: the same one again and again, of which there is no
/// more memory to be had from the system.
fn ends(place: &Place, number: usize) -> Result<(Arc<File>, Arc<File>)> {
    let from = File::open(place.path().join("large"))?;
    let to = File::create(place.path().join(format!("beside-{number}")))?;
    Ok((Arc::new(from), Arc::new(to)))
}
