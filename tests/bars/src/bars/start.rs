//! `copyist run` of a guest that it has compiled before, from the start of the process to its end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use super::Bench;
use crate::row::{Row, Verdict};
use crate::sample::Sample;

const RUNS: usize = 30;
const MOST: Duration = Duration::from_millis(100);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let from = bench.place.file("small", 4096)?;
    bench.place.directory("out")?;
    // A cache of its own, so that the first run is a cold one on every machine.
    let cache = bench.place.directory("cache")?;
    let run = || {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["copyist", "--", "copyist", "run", "--dir"])
            .arg({
                let mut grant = bench.place.path().as_os_str().to_owned();
                grant.push("::place");
                grant
            })
            .arg(&bench.plugin)
            .args(["place/out".to_owned(), format!("place/{from}")])
            .env("XDG_CACHE_HOME", &cache)
            .stdout(Stdio::null());
        let started = Instant::now();
        let status = command.status().context("the command does not start")?;
        let took = started.elapsed();
        if !status.success() {
            bail!("`copyist run` failed: {status}");
        }
        // Else the plugin finds it up to date.
        bench.place.remove(&format!("out/{from}"))?;
        Ok(took)
    };
    let cold = run()?;
    let mut warm = Sample::default();
    for _ in 0..RUNS {
        warm.push(run()?);
    }
    let took = warm.lower_quartile();
    Ok(vec![Row {
        bar: "a warm `copyist run` of the example plugin".to_owned(),
        measured: format!(
            "{took:.1?} (median {:.1?}, the first {cold:.0?})",
            warm.median()
        ),
        bound: format!("< {MOST:?}"),
        verdict: Verdict::of(took < MOST),
    }])
}
