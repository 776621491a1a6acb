//! Guests by the thousand that wait, in a process of their own, and small copies beside them.
//!
//! It prints what it has once all of them wait: its memory in bytes, its threads beside
//! those of the pool, its descriptors.
//! For each line that it reads then it makes some copies of 4 KiB, and prints how many nanoseconds
//! they took.

use std::fs;
use std::io::{BufRead, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use copyist_engine::{
    Base, Cancel, Destination, Location, Options, Owner, Pool, PoolOptions, Request, Source,
};
use copyist_wasmtime::CopyCtx;
use rustix::process::{Resource, getrlimit, setrlimit};
use wasmtime::Result;
use wasmtime::error::Context as _;

use crate::args::{Crowd, Each, Linking};
use crate::bars;
use crate::host::{Guest, Run, WasiFiles};
use crate::place::Place;
use crate::task;

/// Copies for each line that is read.
pub(crate) const COPIES: u32 = 20;

/// Who copies beside the guests.
const BESIDE: Owner = Owner(u64::MAX);

#[expect(clippy::print_stdout, reason = "for the process that asked")]
pub(crate) fn hold(crowd: &Crowd) -> Result<()> {
    raise_limit()?;
    let place = Place::given()?;
    place.file("small", 4096)?;
    let waits = match crowd.each {
        Each::Idle => 0,
        Each::Call => crowd.stores,
        Each::Jobs => crowd.stores * crowd.jobs,
    };
    for number in 0..waits {
        bars::make_fifo(&place.path().join(format!("from-{number}")))?;
    }
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let warmed = Arc::new(AtomicUsize::new(0));
    start(crowd, pool.clone(), warmed.clone())?;
    task::until("all guests wait", || {
        Ok(pool.waiting() == waits && warmed.load(Ordering::Relaxed) >= crowd.stores)
    })?;
    // What was set in motion comes to rest.
    task::pause(Duration::from_millis(200));
    println!(
        "{} {} {}",
        task::resident()?,
        // Those that copy come and go with the work, up to a bound.
        task::threads()?.len() - pool.threads(),
        task::descriptors()?
    );
    for line in stdin().lock().lines() {
        line?;
        println!("{}", beside(&pool, &place)?.as_nanos());
    }
    Ok(())
}

/// The guests, on a thread that goes with the process, or the process with it.
#[expect(
    clippy::exit,
    clippy::print_stderr,
    reason = "no guest ends unless something is wrong, and the process that asked is to see it"
)]
fn start(crowd: &Crowd, pool: Arc<Pool>, warmed: Arc<AtomicUsize>) -> Result<()> {
    let guest = Guest::load(&crowd.program, Linking::Async)?;
    let (stores, each, jobs) = (crowd.stores, crowd.each, crowd.jobs);
    std::thread::spawn(move || {
        let mut copy = CopyCtx::builder();
        copy.pool(pool).max_copies(jobs + 1).on_copy(move |_| {
            let _ = warmed.fetch_add(1, Ordering::Relaxed);
        });
        let words: Vec<[String; 5]> = (0..stores)
            .map(|number| {
                let (from, to, flag) = match each {
                    Each::Idle => ("none".into(), "none".into(), "--idle".into()),
                    Each::Call => (format!("from-{number}"), format!("to-{number}"), "".into()),
                    Each::Jobs => ("from".into(), "to".into(), format!("--jobs={jobs}")),
                };
                ["small".into(), "scratch".into(), from, to, flag]
            })
            .collect();
        let words: Vec<Vec<&str>> = words
            .iter()
            .map(|words| {
                words
                    .iter()
                    .map(String::as_str)
                    .filter(|word| !word.is_empty())
            })
            .map(Iterator::collect)
            .collect();
        let place = Place::given();
        let ended = place.and_then(|place| {
            guest.run_all(words.iter().map(|words| Run {
                place: &place,
                words,
                copy: copy.build(),
                files: WasiFiles::OnThisThread,
            }))
        });
        // The process that asked sees that it is gone.
        eprintln!("bars: {ended:?}");
        std::process::exit(1);
    });
    Ok(())
}

/// Copies of 4 KiB by the same pool.
fn beside(pool: &Pool, place: &Place) -> Result<Duration> {
    let directory = place.open()?;
    let at = |path: PathBuf| Location {
        base: Base::Beneath(directory.clone()),
        path,
        follow: true,
    };
    let mut took = Duration::ZERO;
    for _ in 0..COPIES {
        let request = Request {
            source: Source::Path(at("small".into())),
            destination: Destination::Path(at("beside".into())),
            options: Options::default(),
        };
        let (tell, told) = channel();
        let started = Instant::now();
        pool.copy(BESIDE, request, Cancel::new(), move |outcome| {
            let _ = tell.send(outcome);
        });
        told.recv()?.context("cannot copy")?;
        took += started.elapsed();
        fs::remove_file(place.path().join("beside"))?;
    }
    Ok(took)
}

/// Three descriptors for each that waits, and some more.
fn raise_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(())
}
