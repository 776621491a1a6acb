//! Thousands of copies that wait at once: what each takes of memory, and a small copy beside them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use super::Bench;
use crate::args::Each;
use crate::crowd::COPIES;
use crate::quiet::Watch;
use crate::row::{Row, Verdict};
use crate::sample::{self, Sample};

const WAITS: usize = 5000;
const ROUNDS: usize = 60;
const MOST_TIME: f64 = 1.5;
const MOST_MEMORY: u64 = 8 << 10;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut idle = Process::start(bench, "idle", 1, Each::Idle, 0)?;
    let mut again = Process::start(bench, "again", 1, Each::Idle, 0)?;
    let mut jobs = Process::start(bench, "jobs", 1, Each::Jobs, WAITS)?;
    // It is needed for its memory alone.
    let idle_stores = Process::start(bench, "idle-stores", WAITS, Each::Idle, 0)?.end()?;
    let mut stores = Process::start(bench, "stores", WAITS, Each::Call, 0)?;
    let mut samples: [Sample; 4] = Default::default();
    let watch = Watch::start();
    for round in 0..=ROUNDS {
        let processes = [&mut idle, &mut jobs, &mut stores, &mut again];
        for (process, sample) in processes.into_iter().zip(&mut samples) {
            let took = process.copy()?;
            // The first starts threads.
            if round > 0 {
                sample.push(took);
            }
        }
    }
    let others = watch.others();
    let [alone, beside_jobs, beside_stores, alone_again] = &samples;
    let control = sample::differ(alone, alone_again);
    let idle = idle.end()?;
    again.end()?;
    let mut rows = Vec::new();
    for (what, has, base, beside) in [
        ("jobs of one store", jobs.end()?, idle, beside_jobs),
        (
            "calls of as many stores",
            stores.end()?,
            idle_stores,
            beside_stores,
        ),
    ] {
        let ratio = sample::ratio(beside, alone);
        let each = has.resident.saturating_sub(base.resident) / WAITS as u64;
        rows.push(Row {
            bar: format!("a copy of 4 KiB beside {WAITS} that wait, {what}"),
            measured: format!(
                "{ratio:.2} times: {:.1?} beside {:.1?} alone; A/A {control}, {others}",
                beside.lower_quartile() / COPIES,
                alone.lower_quartile() / COPIES
            ),
            bound: format!("<= {MOST_TIME} times"),
            verdict: others.or_void(control.or_void(Verdict::of(ratio <= MOST_TIME))),
        });
        rows.push(Row {
            bar: format!("memory of each of {WAITS} that wait, {what}"),
            measured: format!(
                "{each} bytes resident beyond the store; {} threads where {} were, {:.2} descriptors each",
                has.threads,
                base.threads,
                has.descriptors.saturating_sub(base.descriptors) as f64 / WAITS as f64
            ),
            bound: format!("< {MOST_MEMORY}, one thread more"),
            verdict: Verdict::of(each < MOST_MEMORY && has.threads <= base.threads + 1),
        });
    }
    Ok(rows)
}

/// A process of its own that holds a crowd.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    has: Has,
}

#[derive(Clone, Copy)]
struct Has {
    resident: u64,
    threads: usize,
    descriptors: usize,
}

impl Process {
    fn start(bench: &Bench, name: &str, stores: usize, each: Each, jobs: usize) -> Result<Self> {
        let directory = bench.place.directory(name)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["crowd", "--each", each.name(), "--program"])
            .arg(&bench.wait)
            .args(["--stores", &stores.to_string()])
            .args(["--jobs", &jobs.to_string()])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("it has no output")?);
        let has = Has {
            resident: 0,
            threads: 0,
            descriptors: 0,
        };
        let mut process = Self { child, lines, has };
        let line = process.line()?;
        let numbers: Vec<_> = line
            .split(' ')
            .map_while(|word| word.parse().ok())
            .collect();
        let [resident, threads, descriptors] = numbers[..] else {
            bail!("a crowd says {line:?}");
        };
        process.has = Has {
            resident: resident as u64,
            threads,
            descriptors,
        };
        Ok(process)
    }

    /// How long its copies take.
    fn copy(&mut self) -> Result<Duration> {
        let input = self.child.stdin.as_mut().context("it has no input")?;
        input.write_all(b"\n")?;
        Ok(Duration::from_nanos(self.line()?.parse()?))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            bail!("a crowd is gone");
        }
        Ok(line.trim().to_owned())
    }

    fn end(mut self) -> Result<Has> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(self.has)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where it has not ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
