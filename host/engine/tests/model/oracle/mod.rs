//! What must be true when a copy has ended, by what the contract promises.

mod allowed;
mod bytes;
mod kept;
mod left;

use copyist_engine::{
    Cause, Durability, Errno, Error, Side, Sparse, Step, Summary, Transfer, Unsupported, WriteMode,
};

use crate::case::{Case, Ending, Stage};
use crate::content::{BLOCK, Content, place};
use crate::layout::Fill;
use crate::schedule::{Change, Fault, Fired, Op};
use crate::world::{Id, Snapshot};

/// Nothing to complain of, or what.
pub(crate) type Verdict = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(crate) use allowed::refused;
pub(crate) use ensure;

/// How a copy came to its end.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Done(Summary),
    Failed(Error),
    Dropped,
}

/// Runs a case and holds it to all that is promised.
pub(crate) fn check(case: &Case) -> Result<Ended, String> {
    let stage = case.set_up();
    let (ended, moved) = drive(case, &stage)?;
    let after = stage.world.snapshot();
    let trial = Trial::new(case, &stage, &after);
    match trial.verdict(&ended, moved) {
        Ok(()) => Ok(ended),
        Err(complaint) => Err(trial.report(&ended, &complaint)),
    }
}

/// What a whole-file read and a copy may ask of the system, by what there is to move and what went
/// wrong.
fn most_calls(case: &Case, stage: &Stage) -> usize {
    let state = stage.world.state();
    let longest = state.history().iter().map(Vec::len).max().unwrap_or(0);
    let call = case.options.tuning.call_size.map_or(64 << 10, usize::from);
    let unit = call
        .min(case.habits.most)
        .min(usize::try_from(case.budget).unwrap_or(usize::MAX));
    // Storage is shared by the block.
    let block = usize::try_from(case.habits.block_size).unwrap_or(0).max(1);
    let whole = unit - unit % block;
    let unit = if whole > 0 { whole } else { unit };
    let pieces = longest / unit.max(1) + 1;
    let looks = case.options.sparse == Sparse::Always || !case.habits.local;
    let blocks = longest / place(BLOCK) + 1;
    let content = state.node(stage.source).content();
    let runs = content.map_or(0, Content::runs);
    let runs = usize::try_from(runs).unwrap_or(usize::MAX) + if looks { 2 * blocks } else { 0 };
    80 + 4 * pieces + 8 * runs + 8 * state.schedule.fired().len()
}

/// Drives it to its end, and tells how much its steps said to have moved.
fn drive(case: &Case, stage: &Stage) -> Result<(Ended, u64), String> {
    let request = stage.request.clone();
    let mut transfer = Transfer::new(stage.environment.clone(), request);
    let mut moved = 0;
    let mut most = most_calls(case, stage);
    for steps in 0.. {
        let step = match case.ending {
            Ending::Cancel(after) if steps == after => transfer.cancel(),
            Ending::Drop(after) if steps == after => {
                drop(transfer);
                return Ok((Ended::Dropped, moved));
            }
            _ => transfer.step(case.budget),
        };
        let ended = match step {
            Step::Moved(bytes) => {
                moved += bytes;
                None
            }
            Step::Done(summary) => Some(Ended::Done(summary)),
            Step::Failed(error) => Some(Ended::Failed(error)),
            _ => None,
        };
        let calls = stage.world.state().schedule.calls();
        // A phase without a call is a step too, and so is a part of a hole.
        let is_long = |most| calls > most || steps > most + 40;
        if is_long(most) {
            // More went wrong since then.
            most = most_calls(case, stage);
        }
        if is_long(most) {
            return Err(format!("{calls} calls in {steps} steps, and not {most}"));
        }
        if let Some(ended) = ended {
            let again = transfer.step(case.budget);
            let same = match (&ended, &again) {
                (Ended::Done(one), Step::Done(two)) => one == two,
                (Ended::Failed(one), Step::Failed(two)) => one.cause == two.cause,
                _ => false,
            };
            ensure!(same, "another outcome: {again:?} after {ended:?}");
            return Ok((ended, moved));
        }
    }
    unreachable!("the calls are bounded")
}

/// A case, and what was there before and after.
struct Trial<'a> {
    case: &'a Case,
    stage: &'a Stage,
    after: &'a Snapshot,
    fired: Vec<Fired>,
    /// What is copied, of the source as it was first and after each change.
    parts: Vec<Vec<u8>>,
    /// Where it goes.
    at: u64,
}

impl<'a> Trial<'a> {
    fn new(case: &'a Case, stage: &'a Stage, after: &'a Snapshot) -> Self {
        let state = stage.world.state();
        let window = case.options.window;
        let part = |all: &Vec<u8>| match window {
            None => all.clone(),
            Some(window) => {
                let length = all.len() as u64;
                let start = window.source_offset.min(length);
                let most = window.length.unwrap_or(u64::MAX);
                let end = start.saturating_add(most).min(length);
                all[place(start)..place(end)].to_vec()
            }
        };
        let mut parts: Vec<_> = state.history().iter().map(part).collect();
        // The model, which asks no file; the rest of the history is what the test itself did.
        parts[0] = part(&case.source.bytes(Fill::Noise));
        let at = if case.appends() {
            stage.before_size()
        } else {
            window.map_or(0, |window| window.destination_offset)
        };
        Self {
            case,
            stage,
            after,
            fired: state.schedule.fired().to_vec(),
            parts,
            at,
        }
    }

    fn report(&self, ended: &Ended, complaint: &str) -> String {
        format!(
            "{complaint}\n  ended: {ended:?}\n  fired: {:?}\n  names: {:?}",
            self.fired, self.after.names
        )
    }

    fn verdict(&self, ended: &Ended, moved: u64) -> Verdict {
        match ended {
            Ended::Done(summary) if summary.skipped > 0 => self.skipped(summary)?,
            Ended::Done(summary) => self.written(summary, moved)?,
            Ended::Failed(error) => self.failed(error)?,
            Ended::Dropped => {
                if !self.has_its_name() {
                    self.taken_back(None)?;
                }
            }
        }
        if let Ended::Done(done) | Ended::Failed(Error { done, .. }) = ended {
            self.counts(done)?;
        }
        self.source_is_untouched()?;
        self.handles_are_untouched()?;
        self.nothing_is_left()
    }

    fn skipped(&self, summary: &Summary) -> Verdict {
        ensure!(self.may_skip(), "skipped for no reason");
        let rest = Summary {
            elapsed: summary.elapsed,
            skipped: 1,
            ..Summary::default()
        };
        ensure!(*summary == rest, "skipped, and did more");
        self.taken_back(None)
    }

    fn written(&self, summary: &Summary, moved: u64) -> Verdict {
        let reasons = self.reasons();
        let moves = self.is_meddled()
            || self.changes().next().is_some()
            || self.has_false_end()
            || self.has_xattr_faults();
        ensure!(
            reasons.is_empty() || moves,
            "copied in spite of {reasons:?}"
        );
        // A source that others change meanwhile is newer by that.
        let is_newer = self.changes().next().is_some();
        ensure!(
            !self.may_skip() || self.is_meddled() || is_newer,
            "written, and not to be"
        );
        ensure!(
            (summary.files, summary.skipped) == (1, 0),
            "other than one file"
        );
        ensure!(
            summary.consumed == summary.bytes,
            "some bytes are still in hand"
        );
        self.length_is_right(summary)?;
        if summary.shared == 0 && self.changes().next().is_none() {
            ensure!(moved == summary.bytes, "the steps moved {moved}");
        }
        let aim = self.stage.aim.as_ref().ok_or("written to no name")?;
        let found = self.after.at(aim.path);
        if self.is_meddled() {
            // What has the name may be theirs. If it is the copy's, it is whole.
            let made = found.filter(|id| self.is_made(*id));
            return made.map_or(Ok(()), |id| self.bytes_are_right(id, summary.bytes, true));
        }
        let found = found.ok_or("nothing has the name")?;
        let replaced = self.case.options.write_mode == WriteMode::Replace;
        match aim.before {
            Some(before) if replaced => {
                ensure!(found != before, "the old file is not replaced");
                self.is_whole(before)?;
            }
            Some(before) => ensure!(found == before, "another file has the name"),
            None => {}
        }
        let node = self.after.node(found);
        let content = node.content().ok_or("no file")?;
        self.bytes_are_right(found, summary.bytes, true)?;
        self.storage_is_right(content, summary)?;
        self.attributes_are_right(node, aim.before, summary)?;
        self.is_durable(found, aim.before)
    }

    fn failed(&self, error: &Error) -> Verdict {
        let cause = &error.cause;
        let cancelled = matches!(self.case.ending, Ending::Cancel(_));
        let explained = self.reasons().contains(cause)
            || self.excuses().contains(cause)
            || self.fired.iter().any(|fired| self.explains(fired, cause))
            || (cancelled && *cause == Cause::Cancelled);
        ensure!(explained, "failed for no reason");
        let done = &error.done;
        ensure!(done.bytes <= done.consumed, "more put than taken");
        ensure!(
            (done.files, done.skipped) == (0, 0),
            "a failure that did something"
        );
        let path = match cause {
            Cause::Io(side, _) | Cause::Unsupported(Unsupported::Kind(side, _)) => Some(*side),
            Cause::Denied | Cause::SameFile | Cause::Unsupported(_) => Some(Side::Destination),
            _ => None,
        };
        let path = path.and_then(|side| match side {
            Side::Source => self.stage.request.source.path(),
            Side::Destination => self.stage.request.destination.path(),
        });
        ensure!(error.path.as_deref() == path, "the path of another end");
        if *cause == Cause::SameFile {
            let touched = self.stage.world.state().touched().clone();
            ensure!(touched.is_empty(), "one file, and it was touched");
        }
        if self.has_its_name() {
            return Ok(());
        }
        self.taken_back(Some(done))
    }

    /// Whether it failed or was dropped after the point of no return: the sync of the directory.
    fn has_its_name(&self) -> bool {
        let synced = self.stage.world.state().schedule.count(Op::Sync);
        let Some(aim) = &self.stage.aim else {
            return false;
        };
        let found = self.after.at(aim.path);
        let durable = self.case.options.durability != Durability::None;
        let dropped = matches!(self.case.ending, Ending::Drop(_));
        let directory_failed = self
            .fired
            .iter()
            .any(|fired| fired.op == Op::Sync && fired.of_name);
        let Some(found) = found.filter(|id| Some(*id) != aim.before) else {
            return false;
        };
        let moves = self.changes().next().is_some() || self.has_false_end();
        let length = self.after.node(found).content().map_or(0, Content::size);
        let mut lengths: Vec<_> = self.parts.iter().map(|part| part.len() as u64).collect();
        if moves {
            lengths.push(length.saturating_sub(self.at));
        }
        let mut lengths = lengths.into_iter();
        let whole = lengths.any(|bytes| self.bytes_are_right(found, bytes, true).is_ok());
        whole && (dropped || durable && synced > 0 && directory_failed)
    }

    fn longest(&self) -> u64 {
        self.parts.iter().map(Vec::len).max().unwrap_or(0) as u64
    }

    fn is_made(&self, id: Id) -> bool {
        self.stage.world.state().made().contains(&id)
    }

    fn is_meddled(&self) -> bool {
        self.fired
            .iter()
            .any(|fired| matches!(fired.fault, Fault::Name(_)))
    }

    /// Whether a read said that the source ends, where it does not.
    fn has_false_end(&self) -> bool {
        self.fired.iter().any(|fired| {
            fired.op == Op::Read && fired.side == Side::Source && fired.fault == Fault::Nothing
        })
    }

    /// Whether the system said something else of an attribute than what is true.
    fn has_xattr_faults(&self) -> bool {
        self.fired.iter().any(|fired| {
            matches!(
                fired.op,
                Op::XattrNames | Op::Xattr | Op::SetXattr | Op::RemoveXattr
            ) && fired.fault != Fault::Fail(Errno::INTR)
        })
    }

    fn changes(&self) -> impl Iterator<Item = Change> {
        self.fired.iter().filter_map(|fired| match fired.fault {
            Fault::Source(change) => Some(change),
            _ => None,
        })
    }
}

impl Stage {
    /// The length of the file that is written, before.
    fn before_size(&self) -> u64 {
        let before = self.aim.as_ref().and_then(|aim| aim.before);
        let content = before.and_then(|id| self.before.node(id).content());
        content.map_or(0, Content::size)
    }
}
