//! A large copy by the host beside one by the guest itself, in both settings that wasmtime-wasi has
//! for a guest's own file calls.

use bytesize::ByteSize;
use wasmtime::Result;

use super::Bench;
use crate::args::Linking;
use crate::host::{Guest, WasiFiles};
use crate::quiet::Watch;
use crate::row::{Row, Verdict};
use crate::sample::{self, Sample};

/// The ratios are far above 1.5, where fewer than 30 do.
const ROUNDS: usize = 7;
/// Copies by the host are quick, so there are more of them, for a control that means something.
const PAIRS: usize = 5;

const SETTINGS: [(WasiFiles, f64, &str); 2] = [
    (
        WasiFiles::OnThisThread,
        7.0,
        "on the calling thread, the faster setting",
    ),
    (
        WasiFiles::OnAnotherThread,
        10.0,
        "on other threads, the default",
    ),
];

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let from = bench.place.file("large", bench.size)?;
    let guest = Guest::load(&bench.time_copy, Linking::Async)?;
    let time = |files, by_std: bool| {
        let word = by_std.then(|| "--std".to_owned());
        Ok::<_, wasmtime::Error>(
            guest
                .time(&bench.place, &from, files, word.into_iter().collect())?
                .seen,
        )
    };
    let (mut ours, mut again) = (Sample::default(), Sample::default());
    let mut theirs: [Sample; 2] = Default::default();
    time(WasiFiles::OnThisThread, false)?;
    let watch = Watch::start();
    for _ in 0..ROUNDS {
        for _ in 0..PAIRS {
            ours.push(time(WasiFiles::OnThisThread, false)?);
            again.push(time(WasiFiles::OnThisThread, false)?);
        }
        for ((files, ..), theirs) in SETTINGS.into_iter().zip(&mut theirs) {
            theirs.push(time(files, true)?);
        }
    }
    let others = watch.others();
    let control = sample::differ(&ours, &again);
    let rate = |sample: &Sample| {
        #[expect(clippy::cast_precision_loss, reason = "a rate in three digits")]
        let bytes = bench.size as f64;
        bytes / sample.lower_quartile().as_secs_f64() / 1e6
    };
    Ok(SETTINGS
        .into_iter()
        .zip(&theirs)
        .map(|((_, least, what), theirs)| {
            let ratio = sample::ratio(theirs, &ours);
            Row {
                bar: format!(
                    "{} beside std::fs::copy {what}",
                    ByteSize(bench.size).display().iec()
                ),
                measured: format!(
                    "{ratio:.1} times: {:.0} MB/s beside {:.0} MB/s; A/A {control}, {others}",
                    rate(&ours),
                    rate(theirs)
                ),
                bound: format!(">= {least} times"),
                verdict: others.or_void(control.or_void(Verdict::of(ratio >= least))),
            }
        })
        .collect())
}
