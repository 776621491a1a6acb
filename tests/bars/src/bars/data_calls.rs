//! A large copy, with the size of a call fixed: a guest's makes the calls that the engine alone
//! makes.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytesize::ByteSize;
use copyist_engine::{
    Base, Cancel, Destination, Environment, Location, Options, Pool, PoolOptions, Request, Source,
    Tuning,
};
use copyist_wasmtime::CopyCtx;
use wasmtime::Result;
use wasmtime::error::Context as _;

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, Run, WasiFiles};
use crate::recording::{Call, Recording};
use crate::row::{Row, Verdict};

const CALL: usize = 4 << 20;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let from = bench.place.file("large", bench.size)?;
    let tuning = Tuning {
        call_size: NonZeroUsize::new(CALL),
        ..Tuning::default()
    };
    let alone = alone(bench, &from, tuning)?;
    let mut rows = Vec::new();
    for linking in Linking::ALL {
        let asked = asked(bench, &from, tuning, linking)?;
        let same = asked == alone;
        rows.push(Row {
            bar: format!(
                "{} in calls of {}: what a guest's makes, {}",
                ByteSize(bench.size).display().iec(),
                ByteSize(CALL as u64).display().iec(),
                linking.name()
            ),
            measured: if same {
                format!("{} data calls, the same", asked.len())
            } else {
                let first = asked
                    .iter()
                    .zip(&alone)
                    .position(|(one, other)| one != other);
                format!(
                    "{} data calls, {} alone; the first that differs is {}",
                    asked.len(),
                    alone.len(),
                    first.unwrap_or_else(|| asked.len().min(alone.len()))
                )
            },
            bound: "those of the engine alone".to_owned(),
            verdict: Verdict::of(same && !alone.is_empty()),
        });
    }
    Ok(rows)
}

fn alone(bench: &Bench, from: &str, tuning: Tuning) -> Result<Vec<Call>> {
    let directory = bench.place.open()?;
    let at = |name: &str| Location {
        base: Base::Beneath(directory.clone()),
        path: name.into(),
        follow: true,
    };
    let recording = Arc::new(Recording::default());
    let request = Request {
        source: Source::Path(at(from)),
        destination: Destination::Path(at("to")),
        options: Options {
            tuning,
            ..Options::default()
        },
    };
    let environment = Environment::new(recording.clone());
    copyist_engine::copy_in(&environment, request, &Cancel::new())
        .context("the engine alone cannot copy")?;
    bench.place.remove("to")?;
    Ok(recording.data_calls())
}

fn asked(bench: &Bench, from: &str, tuning: Tuning, linking: Linking) -> Result<Vec<Call>> {
    let recording = Arc::new(Recording::default());
    let pool = Pool::with_environment(PoolOptions::default(), Environment::new(recording.clone()));
    let copy = CopyCtx::builder()
        .tuning(tuning)
        .pool(Arc::new(pool))
        .build();
    Guest::load(&bench.time_copy, linking)?.run(Run {
        place: &bench.place,
        words: &[from, "to"],
        copy,
        files: WasiFiles::OnThisThread,
    })?;
    bench.place.remove("to")?;
    Ok(recording.data_calls())
}
