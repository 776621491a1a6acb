//! A regular copy that can be cancelled beside the same one with nothing that could end it.

use std::ffi::OsString;
use std::mem::size_of;
use std::process::Command;
use std::time::{Duration, Instant};

use copyist_engine::sys::FatalSignalsBlocked;
use copyist_engine::{Base, Cancel, Destination, Location, Options, Request, Source};
use wasmtime::Result;
use wasmtime::error::Context as _;

use super::Bench;
use crate::quiet::Watch;
use crate::repeat;
use crate::row::{Row, Verdict};
use crate::sample::{self, Sample};
use crate::shape::Shape;
use crate::strace::{self, Calls, RARE};
use crate::task;

const ROUNDS: usize = 60;
/// Copies a round, each some 20 us.
const COPIES: usize = 200;
/// Cancels, to see what one takes of memory.
const CANCELS: usize = 100_000;

/// To a new name, over an old one, and staged.
const SHAPES: [Shape; 3] = [Shape::New, Shape::InPlace, Shape::Replace];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    repeat::prepare(&bench.place)?;
    let mut rows = Vec::new();
    for shape in SHAPES {
        rows.push(calls(bench, shape)?);
    }
    rows.push(costs(bench)?);
    Ok(rows)
}

/// Where no call is made more, no descriptor is either.
fn calls(bench: &Bench, shape: Shape) -> Result<Row> {
    let bare = count(bench, shape, true)?;
    let whole = count(bench, shape, false)?;
    let more = whole.total() - bare.total();
    let makes = |calls: &Calls| calls.total() - calls.without(MAKERS).total();
    let descriptors = makes(&whole) - makes(&bare);
    Ok(Row {
        bar: format!("{}, cancellable beside not", shape.what()),
        measured: format!(
            "{more:.2} system calls and {descriptors:.2} descriptors more than {:.2}: {}",
            bare.total(),
            whole.beyond(&bare)
        ),
        bound: "0, 0".to_owned(),
        verdict: Verdict::of(more <= RARE && descriptors <= RARE),
    })
}

/// The calls that make descriptors, of those that a copy could make.
const MAKERS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "eventfd2",
    "pipe2",
    "epoll_create1",
    "timerfd_create",
    "dup",
    "fcntl",
    "inotify_init1",
];

fn words(shape: Shape, bare: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["engine".into(), "--shape".into(), shape.name().into()];
    words.extend(bare.then(|| "--bare".into()));
    words
}

fn count(bench: &Bench, shape: Shape, bare: bool) -> Result<Calls> {
    let words = words(shape, bare);
    let calls = strace::count(bench.place.path(), &words, &repeat::MARKS, repeat::COPIES)?;
    repeat::tidy(&bench.place)?;
    Ok(calls)
}

/// Told, and not bounded.
fn costs(bench: &Bench) -> Result<Row> {
    let (mut bare, mut again, mut whole) =
        (Sample::default(), Sample::default(), Sample::default());
    time(bench, true)?;
    let watch = Watch::start();
    for _ in 0..ROUNDS {
        bare.push(time(bench, true)?);
        whole.push(time(bench, false)?);
        again.push(time(bench, true)?);
    }
    let others = watch.others();
    let control = sample::differ(&bare, &again);
    let before = task::resident()?;
    let cancels: Vec<_> = (0..CANCELS).map(|_| Cancel::new()).collect();
    let each = task::resident()?.saturating_sub(before) / cancels.len() as u64;
    let instructions = match (instructions(bench, true)?, instructions(bench, false)?) {
        (Some(bare), Some(whole)) => format!("{:+.0} instructions", whole - bare),
        _ => "instructions not counted: perf has no such counter here".to_owned(),
    };
    Ok(Row {
        bar: format!("{}, cancellable beside not: costs", Shape::New.what()),
        measured: format!(
            "{instructions}; {:.3} of the time, A/A {control}, {others}; {} bytes in what holds a \
             cancel, and {each} in memory, with the {} bytes of its place in a list",
            sample::ratio(&whole, &bare),
            size_of::<Cancel>(),
            size_of::<Cancel>()
        ),
        bound: "told, not bounded".to_owned(),
        verdict: Verdict::Met,
    })
}

fn time(bench: &Bench, bare: bool) -> Result<Duration> {
    let _signals = FatalSignalsBlocked::new();
    let directory = bench.place.open()?;
    let at = |name: String| Location {
        base: Base::Beneath(directory.clone()),
        path: name.into(),
        follow: true,
    };
    let mut took = Duration::ZERO;
    for copy in 0..COPIES {
        let request = Request {
            source: Source::Path(at("small".to_owned())),
            destination: Destination::Path(at(format!("to-{copy}"))),
            options: Options::default(),
        };
        let started = Instant::now();
        if bare {
            repeat::bare(request)?;
        } else {
            copyist_engine::copy(request, &Cancel::new()).context("cannot copy")?;
        }
        took += started.elapsed();
    }
    repeat::tidy(&bench.place)?;
    Ok(took)
}

/// Of one copy, in user space; none where perf(1) has no counter for them.
fn instructions(bench: &Bench, bare: bool) -> Result<Option<f64>> {
    let output = Command::new("perf")
        .args(["stat", "-x,", "-e", "instructions:u", "--"])
        .arg(std::env::current_exe()?)
        .args(words(Shape::New, bare))
        .current_dir(bench.place.path())
        .output();
    repeat::tidy(&bench.place)?;
    // It need not be installed.
    let Ok(output) = output else { return Ok(None) };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("instructions"));
    let count = line.and_then(|line| line.split(',').next()?.parse::<f64>().ok());
    Ok(count.map(|count| count / f64::from(repeat::ALL)))
}
