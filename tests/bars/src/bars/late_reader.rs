//! A FIFO as the destination whose reader comes late: how soon it has its first byte, and what the
//! wait costs until then.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use copyist_engine::sys::{self, Layer, Sys};
use copyist_engine::{
    Base, Cancel, Destination, Environment, Location, Options, Owner, Pool, PoolOptions, Request,
    Source,
};
use rustix::fs::OFlags;
use wasmtime::Result;
use wasmtime::error::Context as _;

use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::sample::Sample;
use crate::task;

const READERS: u64 = 100;
const MOST: Duration = Duration::from_millis(9);
/// How long the pauses between tries take to grow to their longest, and more.
const SETTLED: Duration = Duration::from_millis(60);
/// Of which each reader comes at another moment: longer than a pause.
const SPREAD: u64 = 50_000;

const ALONE: Duration = Duration::from_secs(10);
const MOST_TRIES: u64 = 70;
/// Of one core.
const MOST_TIME: f64 = 0.001;

/// The system itself, which counts the tries to open a FIFO.
struct Tries {
    native: Arc<dyn Sys>,
    tries: AtomicU64,
}

impl fmt::Debug for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tries")
    }
}

impl Layer for Tries {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> sys::Result<OwnedFd> {
        self.tries.fetch_add(1, Ordering::Relaxed);
        self.native.reopen(fd, flags)
    }
}

pub(crate) fn measure(place: &Place) -> Result<Vec<Row>> {
    place.file("small", 4096)?;
    let tries = Arc::new(Tries {
        native: sys::native(),
        tries: AtomicU64::new(0),
    });
    let environment = Environment::new(tries.clone());
    let pool = Pool::with_environment(PoolOptions::default(), environment);
    let mut delays = Sample::default();
    // As good as random, and the same in every run.
    for reader in 0..READERS {
        let spread = reader * 7919 * 31 % SPREAD;
        delays.push(first_byte(place, &pool, Duration::from_micros(spread))?);
    }
    let median = delays.median();
    Ok(vec![
        Row {
            bar: "a reader that comes late to a FIFO, to its first byte".to_owned(),
            measured: format!(
                "median {median:.1?} (lower quartile {:.1?}) of {READERS}",
                delays.lower_quartile()
            ),
            bound: format!("<= {MOST:?}"),
            verdict: Verdict::of(median <= MOST),
        },
        alone(place, &pool, &tries)?,
    ])
}

/// From the reader's open to its first byte.
fn first_byte(place: &Place, pool: &Pool, spread: Duration) -> Result<Duration> {
    let fifo = fifo(place)?;
    let (tell, told) = channel();
    pool.copy(Owner(0), request(place)?, Cancel::new(), move |outcome| {
        let _ = tell.send(outcome);
    });
    task::until("the copy waits", || Ok(pool.waiting() == 1))?;
    task::pause(SETTLED + spread);
    let started = Instant::now();
    let mut reader = File::open(&fifo)?;
    reader.read_exact(&mut [0])?;
    let took = started.elapsed();
    reader.read_to_end(&mut Vec::new())?;
    told.recv()?.context("the engine cannot copy")?;
    fs::remove_file(fifo)?;
    Ok(took)
}

/// What a wait does while nobody comes.
fn alone(place: &Place, pool: &Pool, tries: &Tries) -> Result<Row> {
    let fifo = fifo(place)?;
    let cancel = Cancel::new();
    pool.copy(Owner(0), request(place)?, cancel.clone(), |_| {});
    task::until("the copy waits", || Ok(pool.waiting() == 1))?;
    task::pause(SETTLED);
    let (tried, ran) = (tries.tries.load(Ordering::Relaxed), task::time_of_others()?);
    task::pause(ALONE);
    let tried = tries.tries.load(Ordering::Relaxed) - tried;
    let ran = task::time_of_others()?.saturating_sub(ran);
    cancel.cancel();
    task::until("it has ended", || Ok(pool.waiting() == 0))?;
    fs::remove_file(fifo)?;
    let a_second = tried / ALONE.as_secs();
    let part = ran.as_secs_f64() / ALONE.as_secs_f64();
    Ok(Row {
        bar: "a FIFO that nobody reads".to_owned(),
        measured: format!("{a_second} tries a second, {:.3} % of a core", part * 100.0),
        bound: format!("<= {MOST_TRIES}, < {} %", MOST_TIME * 100.0),
        verdict: Verdict::of(a_second <= MOST_TRIES && part < MOST_TIME),
    })
}

fn fifo(place: &Place) -> Result<std::path::PathBuf> {
    let path = place.path().join("fifo");
    super::make_fifo(&path)?;
    Ok(path)
}

fn request(place: &Place) -> Result<Request> {
    let directory = place.open()?;
    let at = |name: &str| Location {
        base: Base::Beneath(directory.clone()),
        path: name.into(),
        follow: true,
    };
    Ok(Request {
        source: Source::Path(at("small")),
        destination: Destination::Path(at("fifo")),
        options: Options::default(),
    })
}
