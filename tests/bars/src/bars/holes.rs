//! A huge file that is all holes but for a little data, as a guest sees it: what is not there costs
//! neither time nor room.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use bytesize::ByteSize;
use wasmtime::Result;
use wasmtime::error::Context as _;

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, TO, WasiFiles};
use crate::images::{self, Image, Kind};
use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::sample::Sample;

const SIZE: u64 = 10 << 30;
const DATA: usize = 1 << 20;
/// In how many pieces the data lies.
const PIECES: [usize; 2] = [1, 16];

const RUNS: usize = 30;
const MOST: Duration = Duration::from_millis(5);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = rows(bench, &bench.place, "in memory")?;
    for kind in Kind::ALL {
        let name = kind.name();
        if let Some(why) = images::reason_for_none() {
            eprintln!("skipped: {name}: {why}");
            continue;
        }
        let measured = Image::make(kind).and_then(|image| self::rows(bench, &image.place, name));
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(Row::not_measured(&what(name, 1), &error)),
        }
    }
    Ok(rows)
}

fn rows(bench: &Bench, place: &Place, name: &str) -> Result<Vec<Row>> {
    let guest = Guest::load(&bench.time_copy, Linking::Async)?.with_fresh_memory();
    PIECES
        .into_iter()
        .map(|pieces| row(&guest, place, name, pieces))
        .collect()
}

fn row(guest: &Guest, place: &Place, name: &str, pieces: usize) -> Result<Row> {
    let from = sparse(place, pieces)?;
    let source = place.settle(&from)?;
    let mut seen = Sample::default();
    let mut allocated = 0;
    let mut method = None;
    for round in 0..=RUNS {
        let timed = guest.time_and_keep(place, &from, WasiFiles::OnThisThread, Vec::new())?;
        // The first finds out what works here.
        if round > 0 {
            seen.push(timed.seen);
        }
        method = timed.method;
        allocated = place.settle(TO)?.max(allocated);
        place.remove(TO)?;
    }
    let took = seen.lower_quartile();
    let room = |bytes| ByteSize(bytes).display().iec();
    Ok(Row {
        bar: what(name, pieces),
        measured: format!(
            "{took:.2?} (median {:.2?}) by {}, {} allocated",
            seen.median(),
            method.context("nothing was moved")?,
            room(allocated)
        ),
        bound: format!("< {MOST:?}, <= {}", room(source)),
        verdict: Verdict::of(took < MOST && allocated <= source),
    })
}

fn what(name: &str, pieces: usize) -> String {
    format!(
        "{} with {} of data in {pieces}, {name}, asked for by a guest",
        ByteSize(SIZE).display().iec(),
        ByteSize(DATA as u64).display().iec()
    )
}

/// A file with so many pieces of data at equal distances.
fn sparse(place: &Place, pieces: usize) -> Result<String> {
    let name = format!("holes-{pieces}");
    let file = File::create(place.path().join(&name))?;
    file.set_len(SIZE)?;
    let piece = vec![1; DATA / pieces];
    for number in 0..pieces as u64 {
        file.write_all_at(&piece, number * (SIZE / pieces as u64))?;
    }
    Ok(name)
}
