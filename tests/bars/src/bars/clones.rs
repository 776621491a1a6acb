//! A clone of a large file, as a guest sees it, on a file system that makes them.

use std::time::Duration;

use bytesize::ByteSize;
use copyist_engine::Mechanism;
use wasmtime::{Result, bail};

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, WasiFiles};
use crate::images::{self, Image, Kind};
use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::sample::Sample;

const RUNS: usize = 30;
/// Each writes the whole file first.
const DIRTY_RUNS: usize = 3;
const MOST: Duration = Duration::from_millis(2);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let kind = Kind::Xfs;
    if let Some(why) = images::reason_for_none() {
        eprintln!("skipped: {}: {why}", kind.name());
        return Ok(Vec::new());
    }
    let image = Image::make(kind)?;
    let place = &image.place;
    let guest = Guest::load(&bench.time_copy, Linking::Async)?.with_fresh_memory();
    let from = place.file("large", bench.size)?;
    place.settle(&from)?;
    let (mut synced, mut dirty) = (Sample::default(), Sample::default());
    for round in 0..=RUNS {
        let took = clone(&guest, place, &from)?;
        // The first starts the pool's threads.
        if round > 0 {
            synced.push(took);
        }
    }
    for _ in 0..DIRTY_RUNS {
        place.remove(&from)?;
        place.file(&from, bench.size)?;
        dirty.push(clone(&guest, place, &from)?);
    }
    let took = synced.lower_quartile();
    Ok(vec![Row {
        bar: format!(
            "a clone of {} on {}, asked for by a guest",
            ByteSize(bench.size).display().iec(),
            kind.name()
        ),
        // What is not on the disk must go there first.
        measured: format!(
            "{took:.2?} (median {:.2?}); {:.0?} where all of it is dirty",
            synced.median(),
            dirty.median()
        ),
        bound: format!("< {MOST:?} where it is synced"),
        verdict: Verdict::of(took < MOST),
    }])
}

fn clone(guest: &Guest, place: &Place, from: &str) -> Result<Duration> {
    let timed = guest.time(place, from, WasiFiles::OnThisThread, Vec::new())?;
    if timed.method != Some(Mechanism::Clone) {
        bail!("it was copied by {:?}", timed.method);
    }
    Ok(timed.seen)
}
