//! A large copy: what the guest sees of it, less the engine's own span of the same copy.

use std::time::Duration;

use bytesize::ByteSize;
use wasmtime::Result;

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, WasiFiles};
use crate::row::{Row, Verdict};
use crate::sample::Sample;

/// Under each linker.
const RUNS: usize = 30;

const MOST: Duration = Duration::from_micros(300);
/// And a thousandth of the span.
const SHARE: u32 = 1000;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let from = bench.place.file("large", bench.size)?;
    let guests = Linking::ALL
        .map(|linking| Guest::load(&bench.time_copy, linking))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let mut samples: [(Sample, Sample); 2] = Default::default();
    for round in 0..=RUNS {
        for (guest, (over, spans)) in guests.iter().zip(&mut samples) {
            let timed = guest.time(&bench.place, &from, WasiFiles::OnThisThread, Vec::new())?;
            // The first round starts the pool's threads.
            if round > 0 {
                over.push(timed.seen.saturating_sub(timed.engine));
                spans.push(timed.engine);
            }
        }
    }
    Ok(Linking::ALL
        .into_iter()
        .zip(&samples)
        .map(|(linking, (over, spans))| row(linking, bench.size, over, spans))
        .collect())
}

/// Both times are of the same copy, so there is nothing to control: what else the machine does
/// only ever adds to the difference.
fn row(linking: Linking, size: u64, over: &Sample, spans: &Sample) -> Row {
    let span = spans.lower_quartile();
    let most = MOST + span / SHARE;
    Row {
        bar: format!(
            "{} asked for by a guest, {}",
            ByteSize(size).display().iec(),
            linking.name()
        ),
        measured: format!(
            "{:.0?} more than {span:.1?} (median {:.0?})",
            over.lower_quartile(),
            over.median()
        ),
        bound: format!("<= {most:.0?} (300 us + 0.1 %)"),
        verdict: Verdict::of(over.lower_quartile() <= most),
    }
}
