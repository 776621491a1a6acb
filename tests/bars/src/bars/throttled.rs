//! A deadline that ends a large copy on a disk which the kernel makes wait, since more is written
//! than the disk takes: the answer, and when the copy lets go of its descriptors.

use std::time::{Duration, Instant};

use bytesize::ByteSize;
use copyist_wasmtime::{CopyCtx, EpochClock};
use wasmtime::Result;

use super::Bench;
use super::deadlines::{MOST, TICK};
use crate::args::Linking;
use crate::host::{Guest, Run, WasiFiles};
use crate::images::{self, Image, Kind};
use crate::row::{Row, Verdict};
use crate::sample::Sample;
use crate::task;

const DEADLINES: u32 = 30;
/// By when the kernel throttles.
const SOON: Duration = Duration::from_millis(100);
/// How much may be dirty of the disk, and what goes beyond waits.
const DIRTY: u64 = 4 << 20;
const MOST_HELD: Duration = Duration::from_millis(300);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let kind = Kind::Ext4;
    if let Some(why) = images::reason_for_none() {
        eprintln!("skipped: {} under write throttling: {why}", kind.name());
        return Ok(Vec::new());
    }
    let image = Image::make(kind)?;
    let place = &image.place;
    place.file("small", 4096)?;
    place.file("large", bench.size)?;
    place.settle("large")?;
    let _limit = image.limit_dirty(DIRTY)?;
    let guest = Guest::load(&bench.wait, Linking::Async)?.with_fresh_memory();
    let clock = EpochClock::owning(guest.engine(), TICK)?;
    let (mut late, mut held) = (Sample::default(), Sample::default());
    let (mut moved, mut took) = (0_u64, Duration::ZERO);
    for number in 0..DEADLINES {
        let after = SOON + TICK * (number * 7 % DEADLINES) / DEADLINES;
        let (bytes, told) = std::sync::mpsc::channel();
        let run = Run {
            place,
            words: &["small", "scratch", "large", "to"],
            copy: {
                let mut copy = CopyCtx::builder();
                copy.on_copy(move |report| {
                    let summary = match report.outcome {
                        Ok(summary) => summary,
                        Err(error) => &error.done,
                    };
                    let _ = bytes.send((summary.bytes, report.elapsed));
                });
                copy.build()
            },
            files: WasiFiles::OnThisThread,
        };
        let (answered, left) = guest.answer(run, &clock, after)?;
        let since = Instant::now();
        late.push(answered);
        // The place is open in the store: what the copy has are its two files.
        let files = ["large", "to"].map(|name| place.path().join(name));
        task::until("the copy lets go", || {
            let open = files.iter().map(|file| task::descriptors_below(file));
            Ok(open.sum::<Result<usize>>()? == 0)
        })?;
        held.push(since.elapsed());
        drop(left);
        for (bytes, elapsed) in told.try_iter() {
            moved += bytes;
            took += elapsed;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate in three digits")]
    let rate = moved as f64 / took.as_secs_f64() / 1e6;
    Ok(vec![Row {
        bar: format!("a deadline on {}, throttled", kind.name()),
        measured: format!(
            "99th percentile of {DEADLINES}: answer after {:.1?}, descriptors let go after {:.1?} \
             more; written at {rate:.0} MB/s, with {} dirty at the most",
            late.percentile(99),
            held.percentile(99),
            ByteSize(DIRTY).display().iec()
        ),
        bound: format!("<= {MOST:?}, <= {MOST_HELD:?}"),
        verdict: Verdict::of(late.percentile(99) <= MOST && held.percentile(99) <= MOST_HELD),
    }])
}
