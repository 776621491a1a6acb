//! What must be true when a copy has ended, by what the contract promises.

use copyist_engine::{
    Cause, Durability, Errno, Error, Existing, Limit, Mechanism, Preserve, Reflink, Refused, Side,
    Sparse, Step, Summary, Transfer, Unsupported, WriteMode,
};
use rustix::fs::OFlags;

use crate::case::{Attribute, Case, Ending, From, Place, Stage, Standing, To};
use crate::content::{BLOCK, Content, LAST, place};
use crate::layout::Fill;
use crate::schedule::{Change, Fault, Fired, Op};
use crate::world::{Clones, Form, Id, Node, Says, Snapshot, is_staged};

/// Nothing to complain of, or what.
pub(crate) type Verdict = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
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

    // What may happen.

    /// Every reason why this cannot be copied, without any fault.
    fn reasons(&self) -> Vec<Cause> {
        let case = self.case;
        let options = &case.options;
        let io = Cause::Io;
        let mut reasons = Vec::new();
        self.reasons_of_options(&mut reasons);
        match case.from {
            From::Missing => reasons.push(io(Side::Source, Errno::NOENT)),
            From::Link(false) => reasons.push(io(Side::Source, Errno::LOOP)),
            From::Directory => reasons.push(io(Side::Source, Errno::ISDIR)),
            From::Fifo | From::Socket => {
                reasons.extend(refused(Side::Source));
            }
            From::Path | From::Link(true) | From::Descriptor(..) => {}
        }
        let longest = self.longest();
        if options.limits.bytes.is_some_and(|limit| limit < longest) {
            reasons.push(Cause::Limit(Limit::Bytes));
        }
        if case.quota.is_some_and(|limit| limit < longest) {
            reasons.push(Cause::Limit(Limit::TotalBytes));
        }
        self.reasons_of_destination(&mut reasons);
        reasons
    }

    /// What may stand in the way, without any fault.
    fn excuses(&self) -> Vec<Cause> {
        let case = self.case;
        let options = &case.options;
        let mut excuses = Vec::new();
        if let From::Descriptor(flags, _) = case.from
            && flags.contains(OFlags::WRONLY)
        {
            excuses.push(Cause::Io(Side::Source, Errno::BADF));
        }
        if let To::Descriptor { flags, .. } = case.to
            && !writes(flags)
        {
            excuses.push(Cause::Io(Side::Destination, Errno::BADF));
            excuses.push(Cause::Io(Side::Destination, Errno::INVAL));
        }
        if options.reflink == Reflink::Always && !self.clones_surely() {
            excuses.push(Unsupported::Clone.into_cause());
        }
        if options.tuning.only.is_some() {
            excuses.push(Unsupported::Mechanism.into_cause());
            excuses.push(Unsupported::Clone.into_cause());
        }
        // The owner that it would run as may not be the source's.
        if options.require.contains(Preserve::MODE) && case.mode & 0o7000 != 0 {
            excuses.push(Cause::Denied);
        }
        if case.habits.says != Says::Truth {
            excuses.push(Cause::Io(Side::Destination, Errno::OVERFLOW));
            excuses.push(Cause::Io(Side::Destination, Errno::FBIG));
            excuses.push(Cause::Io(Side::Destination, Errno::INVAL));
        }
        if let Says::Page(said) = case.habits.says {
            if options.limits.bytes.is_some_and(|limit| limit < said) {
                excuses.push(Cause::Limit(Limit::Bytes));
            }
            if case.quota.is_some_and(|limit| limit < said) {
                excuses.push(Cause::Limit(Limit::TotalBytes));
            }
        }
        excuses
    }

    fn reasons_of_options(&self, reasons: &mut Vec<Cause>) {
        let options = &self.case.options;
        if let Some(window) = options.window {
            let ends = [
                (
                    Side::Source,
                    window.source_offset,
                    window.length.unwrap_or(0),
                ),
                (
                    Side::Destination,
                    window.destination_offset,
                    window.length.unwrap_or(self.longest()),
                ),
            ];
            for (side, offset, length) in ends {
                if offset.checked_add(length).is_none_or(|end| end > LAST) {
                    reasons.push(Cause::Io(side, Errno::OVERFLOW));
                }
            }
        }
        let special = self.case.mode & 0o7000 != 0;
        let has = |attribute| self.case.attributes.contains(&attribute);
        if options.require.contains(Preserve::OWNERSHIP) && !options.grants.ownership
            || options.require.contains(Preserve::MODE)
                && special
                && !options.grants.special_mode_bits
            || options.require.contains(Preserve::XATTRS)
                && has(Attribute::Privileged)
                && !options.grants.privileged_xattrs
        {
            reasons.push(Cause::Denied);
        }
        let kept = has(Attribute::User) || has(Attribute::Privileged);
        if !self.case.habits.xattrs
            && (options.require.contains(Preserve::XATTRS) && kept
                || options.require.contains(Preserve::ACLS) && has(Attribute::AccessList))
        {
            reasons.push(Cause::Io(Side::Destination, Errno::OPNOTSUPP));
        }
    }

    fn reasons_of_destination(&self, reasons: &mut Vec<Cause>) {
        let options = &self.case.options;
        let replaces = options.write_mode == WriteMode::Replace;
        let refuses = options.existing == Existing::Refuse;
        let mut at = |errno| reasons.push(Cause::Io(Side::Destination, errno));
        let (place, standing, follow) = match self.case.to {
            To::Descriptor { .. } => {
                if refuses {
                    at(Errno::EXIST);
                }
                if replaces {
                    reasons.push(Unsupported::Replace.into_cause());
                }
                let access = Preserve::MODE | Preserve::OWNERSHIP | Preserve::ACLS;
                if options.require.intersects(access) {
                    reasons.push(Unsupported::Attribute.into_cause());
                }
                if self.case.is_one_file() && !self.is_disjoint() {
                    reasons.push(Cause::SameFile);
                }
                return;
            }
            To::Path {
                place,
                standing,
                follow,
            } => (place, standing, follow),
        };
        match place {
            Place::Nowhere => return at(Errno::NOENT),
            Place::InFile => return at(Errno::NOTDIR),
            Place::Slash => return at(Errno::ISDIR),
            Place::Here | Place::Below => {}
        }
        if standing == Standing::Nothing {
            return;
        }
        if refuses {
            at(Errno::EXIST);
        }
        let is_link = matches!(standing, Standing::LinkToOld | Standing::LinkToSource);
        match standing {
            Standing::Directory => at(Errno::ISDIR),
            Standing::Dangling if follow => at(Errno::NOENT),
            Standing::Dangling if !replaces => at(Errno::LOOP),
            _ if is_link && !follow && !replaces => at(Errno::LOOP),
            Standing::Fifo | Standing::Socket => {
                reasons.extend(refused(Side::Destination));
            }
            _ if self.case.is_one_file() && (replaces || !self.is_disjoint()) => {
                reasons.push(Cause::SameFile);
            }
            _ => {}
        }
        if replaces && options.window.is_some() {
            reasons.push(Unsupported::Replace.into_cause());
        }
    }

    /// Whether the two parts of one file have nothing in common, wherever that file ends.
    fn is_disjoint(&self) -> bool {
        let Some(window) = self.case.options.window else {
            return false;
        };
        let Some(length) = window.length else {
            return false;
        };
        let (from, to) = (window.source_offset, window.destination_offset);
        self.case.appends()
            || from.saturating_add(length) <= to
            || to.saturating_add(length) <= from
    }

    /// Whether a clone that is required can be had, beyond doubt.
    fn clones_surely(&self) -> bool {
        let case = self.case;
        let options = &case.options;
        let old = self.stage.aim.as_ref().and_then(|aim| aim.before);
        let device = match (&case.to, old) {
            (
                To::Path {
                    place: Place::Below,
                    ..
                }
                | To::Descriptor { same: false, .. },
                _,
            ) if case.across => 2,
            _ => 1,
        };
        let readable =
            !matches!(case.from, From::Descriptor(flags, _) if flags.contains(OFlags::WRONLY));
        let writable = !matches!(case.to, To::Descriptor { flags, .. } if !writes(flags));
        readable
            && writable
            && case.habits.platform == copyist_engine::Platform::Linux
            && case.habits.clones == Clones::Always
            && case.habits.says == Says::Truth
            // What may be shared begins at blocks, of which the system may say something else.
            && case.habits.block_size > 0
            && case.habits.block_size.is_multiple_of(BLOCK)
            && device == 1
            && options.window.is_none()
            && !case.appends()
            && options.sparse == Sparse::Auto
            && !options.tuning.force_fallback
            && options.tuning.only.is_none()
            // A piece may be less than a block.
            && !(options.bounded_calls && options.tuning.call_size.is_some())
    }

    /// Whether what is there may be left as it is.
    fn may_skip(&self) -> bool {
        let there = match self.case.to {
            To::Descriptor { .. } => true,
            To::Path {
                place: Place::Here | Place::Below,
                standing,
                ..
            } => standing != Standing::Nothing,
            To::Path { .. } => false,
        };
        let meddled = self
            .fired
            .iter()
            .any(|fired| matches!(fired.fault, Fault::Name(_)));
        match self.case.options.existing {
            Existing::Skip => there || meddled,
            Existing::Update => {
                meddled
                    || there && {
                        let before = self.stage.aim.as_ref().and_then(|aim| aim.before);
                        let source = self.stage.before.node(self.stage.source).modified;
                        before.is_some_and(|id| self.stage.before.node(id).modified >= source)
                    }
            }
            Existing::Refuse | Existing::Write => false,
        }
    }

    /// Whether a fault that came to pass may end the copy so.
    fn explains(&self, fired: &Fired, cause: &Cause) -> bool {
        const FINAL: [Errno; 6] = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::NOMEM,
            Errno::PIPE,
            Errno::CONNRESET,
            Errno::CANCELED,
        ];
        let options = &self.case.options;
        let none_left = matches!(
            cause,
            Cause::Unsupported(Unsupported::Clone | Unsupported::Mechanism)
        ) && (options.reflink == Reflink::Always || options.tuning.only.is_some());
        let errno = match fired.fault {
            Fault::Fail(errno) => errno,
            Fault::Nothing if fired.op == Op::Write => {
                return *cause == Cause::Io(Side::Destination, Errno::IO);
            }
            Fault::Nothing | Fault::CutShort if fired.op.is_copier() => return none_left,
            Fault::Source(_) => {
                return none_left
                    || matches!(cause, Cause::Limit(_))
                    || *cause == Cause::Io(Side::Destination, Errno::OVERFLOW)
                    || *cause == Cause::Io(Side::Destination, Errno::FBIG)
                    || *cause == Cause::Io(Side::Destination, Errno::INVAL);
            }
            Fault::Name(_) => {
                return matches!(
                    cause,
                    Cause::Io(Side::Destination, Errno::EXIST | Errno::NOENT)
                        | Cause::Unsupported(Unsupported::Replace)
                );
            }
            _ => return false,
        };
        let at = |side| *cause == Cause::Io(side, errno);
        let required = !options.require.is_empty();
        match fired.op {
            op if op.is_copier() => none_left || FINAL.contains(&errno) && at(Side::Destination),
            // After an interruption it is closed, and renamed or not: nobody knows.
            Op::Close => fired.side == Side::Destination && at(Side::Destination),
            Op::Rename | Op::RenameExclusive => at(Side::Destination),
            _ if errno == Errno::INTR => false,
            // Somebody sweeps, for as many names as are tried.
            Op::Lock | Op::Open if errno == Errno::AGAIN => {
                *cause == Cause::Io(Side::Destination, Errno::EXIST)
            }
            Op::Open if errno == Errno::NXIO => {
                refused(fired.side).contains(cause) || at(fired.side)
            }
            Op::Open => at(fired.side),
            Op::Read | Op::Write => errno != Errno::AGAIN && at(fired.side),
            Op::Stat | Op::StatAt | Op::ReadLinkAt | Op::StatusFlags | Op::Truncate | Op::Link => {
                at(fired.side)
            }
            Op::Sync => at(Side::Destination) && !(fired.of_name && errno == Errno::INVAL),
            Op::SetMode => at(Side::Destination),
            Op::SetOwner
            | Op::SetTimes
            | Op::XattrNames
            | Op::Xattr
            | Op::SetXattr
            | Op::RemoveXattr => required && at(fired.side),
            _ => false,
        }
    }

    // What did happen.

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
        let moves = self.is_meddled() || self.changes().next().is_some() || self.has_false_end();
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

    // What it left.

    /// After a failure: what was there is there, and nothing else.
    fn taken_back(&self, done: Option<&Summary>) -> Verdict {
        if !self.cleaning_failed() {
            let state = self.stage.world.state();
            let left = self
                .after
                .names
                .values()
                .find(|id| state.made().contains(id));
            ensure!(left.is_none(), "what it made is left");
        }
        if self.is_meddled() {
            return Ok(());
        }
        let options = &self.case.options;
        let in_place = self.case.is_of_descriptor() || options.write_mode == WriteMode::InPlace;
        if !self.cleaning_failed() {
            ensure!(
                self.after.names == self.stage.before.names,
                "other names than before"
            );
        }
        let Some(aim) = &self.stage.aim else {
            return Ok(());
        };
        let Some(before) = aim.before else {
            return Ok(());
        };
        ensure!(
            self.after.at(aim.path) == Some(before),
            "another file has the name"
        );
        let Some(done) = done.filter(|_| in_place) else {
            // Dropped in place, it may hold anything.
            return if in_place && done.is_none() && matches!(self.case.ending, Ending::Drop(_)) {
                Ok(())
            } else {
                self.is_whole(before)
            };
        };
        if self.after.node(before).content().is_none() {
            return Ok(());
        }
        self.bytes_are_right(before, done.bytes, false)
    }

    /// A file is as it was.
    fn is_whole(&self, id: Id) -> Verdict {
        let was = self.stage.before.node(id);
        ensure!(self.after.node(id).is_as(was), "the old file is not whole");
        Ok(())
    }

    fn source_is_untouched(&self) -> Verdict {
        if self.case.is_one_file() {
            return Ok(());
        }
        let state = self.stage.world.state();
        ensure!(
            !state.touched().contains(&self.stage.source),
            "the source was touched"
        );
        Ok(())
    }

    fn handles_are_untouched(&self) -> Verdict {
        let theirs = self.stage.handles.iter().zip(&self.stage.held);
        for (handle, held) in theirs {
            ensure!(
                self.stage.world.held(handle) == *held,
                "a descriptor of the caller's moved"
            );
        }
        if let To::Descriptor { .. } = self.case.to
            && let Some(before) = self.stage.aim.as_ref().and_then(|aim| aim.before)
        {
            let (was, is) = (self.stage.before.node(before), self.after.node(before));
            let access = |node: &Node| (node.mode, node.owner, node.group);
            ensure!(
                access(was) == access(is),
                "somebody else's file changed mode"
            );
            let list = |node: &Node| {
                let name = Attribute::AccessList.name();
                node.xattrs.get(std::ffi::OsStr::new(name)).cloned()
            };
            ensure!(
                list(was) == list(is),
                "somebody else's file changed its list"
            );
        }
        Ok(())
    }

    fn nothing_is_left(&self) -> Verdict {
        let open = self.stage.world.left_open();
        ensure!(open == 0, "{open} descriptors are left open");
        if !self.cleaning_failed() {
            let mut names = self.after.names.keys();
            let left = names.find(|path| path.file_name().is_some_and(is_staged));
            ensure!(left.is_none(), "{left:?} is left");
        }
        // What others made is theirs.
        let state = self.stage.world.state();
        ensure!(
            state.wronged().is_empty(),
            "it removed what it had not made"
        );
        let refuses = matches!(
            self.case.options.existing,
            Existing::Refuse | Existing::Skip
        );
        ensure!(
            !refuses || state.displaced().is_empty(),
            "it replaced what was to be left"
        );
        for id in state.foreign() {
            let existing = self.case.options.existing;
            if matches!(existing, Existing::Refuse | Existing::Skip) {
                ensure!(
                    !state.touched().contains(id),
                    "somebody else's file changed"
                );
            }
        }
        Ok(())
    }

    /// Whether what removes a file could not be done.
    fn cleaning_failed(&self) -> bool {
        let cleaning = self.fired.iter().filter(|fired| match fired.op {
            Op::Unlink | Op::StatAt => true,
            Op::Stat | Op::Open => fired.side == Side::Destination,
            _ => false,
        });
        let mut interruptions = 0;
        for fired in cleaning {
            match fired.fault {
                Fault::Fail(Errno::INTR) => interruptions += 1,
                Fault::Fail(_) => return true,
                _ => {}
            }
        }
        // Signal after signal.
        interruptions >= 8
    }

    /// The numbers, whatever became of the copy.
    fn counts(&self, done: &Summary) -> Verdict {
        let options = &self.case.options;
        ensure!(done.shared <= done.bytes, "more shared than written");
        let limit = options.limits.bytes.unwrap_or(u64::MAX);
        ensure!(done.bytes <= limit, "more than the limit");
        let wanted = options.preserve | options.require;
        ensure!(wanted.contains(done.lost), "lost what nobody wanted");
        let refused: Vec<_> = done.refused.iter().map(|(how, _)| *how).collect();
        let mut once = refused.clone();
        once.sort();
        once.dedup();
        ensure!(once.len() == refused.len(), "refused twice");
        if let Some(quota) = &self.stage.quota
            && done.skipped == 0
        {
            let drawn = self.case.quota.unwrap_or(0) - quota.left();
            let taken = done.consumed;
            // What was foreseen of a source that shrank is drawn.
            let exact = self.changes().next().is_none();
            ensure!(
                drawn == taken || (!exact && drawn >= taken),
                "{drawn} drawn from the quota, and {taken} taken"
            );
        }
        let never = options.reflink == Reflink::Never;
        let copier = matches!(done.method, Some(Mechanism::Clone | Mechanism::CopyRange));
        ensure!(!(never && copier), "shared against the caller's will");
        if options.reflink == Reflink::Always && done.bytes > 0 && done.files > 0 {
            ensure!(done.shared == done.bytes, "not all is shared");
        }
        ensure!(
            (done.shared > 0) <= self.was_called(&[Op::Clone, Op::CloneRange]),
            "shared without a clone"
        );
        Ok(())
    }

    fn was_called(&self, ops: &[Op]) -> bool {
        let state = self.stage.world.state();
        ops.iter().any(|op| state.schedule.count(*op) > 0)
    }

    fn length_is_right(&self, summary: &Summary) -> Verdict {
        let lengths = || self.parts.iter().map(|part| part.len() as u64);
        let (first, bytes) = (self.parts[0].len() as u64, summary.bytes);
        let (least, most) = (lengths().min(), lengths().max());
        let false_end = self.has_false_end();
        if self.changes().next().is_none() {
            ensure!(!summary.changed, "nothing changed the source");
            if false_end {
                ensure!(bytes <= first, "longer than the source");
            } else {
                ensure!(bytes == first, "{bytes} bytes, and not {first}");
            }
            return Ok(());
        }
        ensure!(Some(bytes) <= most, "longer than the source ever was");
        if !false_end {
            ensure!(Some(bytes) >= least, "shorter than the source ever was");
        }
        let resized = self
            .changes()
            .any(|change| !matches!(change, Change::Rewrite(..)));
        let told = self.parts[self.stage.world.state().told()].len() as u64;
        if resized && bytes != told && !false_end && self.case.habits.says == Says::Truth {
            ensure!(summary.changed, "of another length, and not said");
        }
        Ok(())
    }

    /// The destination has so many bytes of the source where they belong, and what was there before
    /// elsewhere; after a failure the rest of what is written in place is nobody's.
    fn bytes_are_right(&self, id: Id, bytes: u64, ended: bool) -> Verdict {
        let content = self.after.node(id).content().ok_or("no file")?;
        let before = self.stage.aim.as_ref().and_then(|aim| aim.before);
        // A file that the copy made has nothing old in it.
        let is_new = self.is_made(id);
        let old = match before {
            Some(id) if !is_new => self.stage.before.node(id).content(),
            _ => None,
        };
        let old = old.map(Content::bytes).unwrap_or_default();
        let old_length = old.len() as u64;
        let keeps = self.case.options.window.is_some() || self.case.appends();
        let end = if bytes == 0 { 0 } else { self.at + bytes };
        let length = content.size();
        if ended {
            let lengths = match (!is_new, keeps) {
                (true, true) => [end.max(old_length); 2],
                (true, false) => [bytes; 2],
                // What was foreseen is not there.
                (false, _) if bytes == 0 => [0, self.at],
                (false, _) => [end; 2],
            };
            ensure!(
                lengths.contains(&length),
                "{length} bytes long, and not {lengths:?}"
            );
        } else {
            ensure!(length >= end, "{length} bytes long, and {bytes} counted");
            if keeps {
                ensure!(length >= old_length, "an old file was cut");
            }
        }
        let mut found = vec![0; place(bytes)];
        if bytes > 0 {
            content.read(self.at, &mut found);
        }
        self.part_is_right(&found, ended)?;
        // Around it.
        let at = place(self.at.min(old_length));
        let mut around = vec![0; at];
        content.read(0, &mut around);
        ensure!(around == old[..at], "what is before it changed");
        if keeps {
            let from = if bytes == 0 { 0 } else { end };
            let mut rest = vec![0; place(old_length.saturating_sub(from))];
            content.read(from, &mut rest);
            let from = place(from.min(old_length));
            // Storage that was shared and not counted, since nobody could tell how much.
            let unknown = !ended
                && self
                    .fired
                    .iter()
                    .any(|fired| fired.op == Op::Stat && fired.side == Side::Destination);
            ensure!(rest == old[from..] || unknown, "what is behind it changed");
        }
        // Between an old file's end and the part there is nothing.
        for number in content.allocated() {
            let start = number * BLOCK;
            let gap = old_length.max(start)..self.at.min(start + BLOCK);
            if gap.start < gap.end {
                let mut gap_bytes = vec![0; place(gap.end - gap.start)];
                content.read(gap.start, &mut gap_bytes);
                ensure!(
                    gap_bytes.iter().all(|byte| *byte == 0),
                    "something in the gap"
                );
            }
        }
        Ok(())
    }

    fn part_is_right(&self, found: &[u8], ended: bool) -> Verdict {
        let whole = |part: &&Vec<u8>| part.get(..found.len()).is_some_and(|part| part == found);
        if self.parts.iter().find(whole).is_some() {
            return Ok(());
        }
        // Who failed had no time to see that what it took for a hole was cut off.
        let shrank = self
            .changes()
            .any(|change| matches!(change, Change::Shrink(_)));
        for (at, byte) in found.iter().enumerate() {
            if !ended && shrank && *byte == 0 {
                continue;
            }
            let was = self.parts.iter().any(|part| part.get(at) == Some(byte));
            ensure!(was, "byte {at} of {} never was in the source", found.len());
        }
        Ok(())
    }

    /// Holes where they are wanted, and storage that is shared or not.
    fn storage_is_right(&self, content: &Content, summary: &Summary) -> Verdict {
        let options = &self.case.options;
        if self.changes().next().is_some() || summary.bytes == 0 {
            return Ok(());
        }
        let source = self.after.node(self.stage.source);
        let source = source.content().ok_or("no source")?;
        let blocks = |offset: u64| offset / BLOCK..(offset + summary.bytes).div_ceil(BLOCK);
        if summary.shared == summary.bytes {
            let from = options.window.map_or(0, |window| window.source_offset);
            for block in 0..summary.bytes.div_ceil(BLOCK) {
                let (ours, theirs) = (self.at + block * BLOCK, from + block * BLOCK);
                ensure!(content.shares(ours, source, theirs), "not shared");
            }
        }
        let allocated: std::collections::BTreeSet<_> = content.allocated().collect();
        if options.sparse == Sparse::Never && self.case.source.has_holes() {
            let hole = blocks(self.at).find(|block| !allocated.contains(block));
            ensure!(hole.is_none(), "a hole in block {hole:?}");
        }
        // Where every call moved all that it was asked for, and every block lies in one of them.
        let plain = self.fired.is_empty() && options.window.is_none() && !self.case.appends();
        let calls = options
            .tuning
            .call_size
            .is_none_or(|size| size.get() % 4096 == 0);
        let calls = calls && self.case.habits.says == Says::Truth;
        let whole = plain && calls && self.case.budget == u64::MAX && self.case.habits.punches;
        // Of a block that is copied in part, an old file keeps the rest.
        let whole_blocks = 0..summary.bytes / BLOCK;
        if whole && options.sparse == Sparse::Always {
            for block in whole_blocks.clone() {
                let start = place(block * BLOCK);
                let part = &self.parts[0][start..start + 4096];
                let zeros = part.iter().all(|byte| *byte == 0);
                ensure!(
                    !zeros || !allocated.contains(&block),
                    "zeros in block {block}"
                );
            }
        }
        let known = self.case.habits.seeks == crate::world::Seeks::Honest
            && options.sparse == Sparse::Auto
            && options.tuning.only.is_none();
        if whole && known && self.case.source.has_holes() {
            for block in whole_blocks {
                let is_hole = source.data(block * BLOCK) != Ok(block * BLOCK);
                let is_kept = summary.shared > 0;
                ensure!(
                    is_kept || !is_hole || !allocated.contains(&block),
                    "the hole in block {block} is filled"
                );
            }
        }
        Ok(())
    }

    fn attributes_are_right(&self, node: &Node, before: Option<Id>, summary: &Summary) -> Verdict {
        let options = &self.case.options;
        let wanted = options.preserve | options.require;
        let kept = |attribute| wanted.contains(attribute) && !summary.lost.contains(attribute);
        ensure!(
            !summary.lost.intersects(options.require),
            "lost what was required"
        );
        // As it was when it was opened.
        let source = self.stage.before.node(self.stage.source);
        let before = before.map(|id| self.stage.before.node(id));
        let replaced = options.write_mode == WriteMode::Replace && !self.case.is_of_descriptor();
        let one_file = self.case.is_one_file();
        if kept(Preserve::MODE) {
            ensure!(node.mode == source.mode, "another mode than its source");
        } else if !wanted.contains(Preserve::MODE) && !wanted.contains(Preserve::OWNERSHIP) {
            let old_file = before.filter(|node| matches!(node.form, Form::File(_)));
            let mode = match old_file {
                Some(old) if replaced => old.mode & 0o777,
                Some(old) => old.mode,
                None => source.mode & 0o777 & !self.case.habits.umask,
            };
            ensure!(node.mode == mode, "mode {:o}, and not {mode:o}", node.mode);
        }
        let special = node.mode & 0o7000;
        let had = before.map_or(0, |node| node.mode) & 0o7000;
        ensure!(
            special & !had == 0 || options.grants.special_mode_bits,
            "special bits that nobody granted"
        );
        if kept(Preserve::TIMESTAMPS) && !one_file && self.changes().next().is_none() {
            ensure!(node.modified == source.modified, "another time");
        }
        if kept(Preserve::OWNERSHIP) {
            ensure!(
                (node.owner, node.group) == (source.owner, source.group),
                "another owner"
            );
        }
        if !options.grants.ownership && !one_file {
            let was = before.filter(|_| !replaced);
            let owner = was.map_or(0, |node| node.owner);
            ensure!(node.owner == owner, "an owner that nobody granted");
        }
        let has = |attribute: Attribute| {
            let name = std::ffi::OsStr::new(attribute.name());
            self.case.attributes.contains(&attribute) && node.xattrs.contains_key(name)
        };
        if !one_file {
            ensure!(
                !has(Attribute::Privileged) || options.grants.privileged_xattrs,
                "an attribute that nobody granted"
            );
        }
        // Where the system says that there are none, there are none.
        let denied = self.fired.iter().any(|fired| {
            matches!(
                fired.op,
                Op::XattrNames | Op::Xattr | Op::SetXattr | Op::RemoveXattr
            ) && fired.fault != Fault::Fail(Errno::INTR)
        });
        if denied {
            return Ok(());
        }
        if kept(Preserve::XATTRS) && self.case.attributes.contains(&Attribute::User) {
            ensure!(has(Attribute::User), "an attribute is not there");
        }
        if kept(Preserve::ACLS) && self.case.attributes.contains(&Attribute::AccessList) {
            ensure!(has(Attribute::AccessList), "the list is not there");
        }
        Ok(())
    }

    /// What was to be on stable storage is there.
    fn is_durable(&self, found: Id, before: Option<Id>) -> Verdict {
        let eio = self
            .fired
            .iter()
            .any(|fired| fired.op.is_copier() && fired.fault == Fault::Fail(Errno::IO));
        let durable = self.case.options.durability != Durability::None;
        if durable || eio {
            ensure!(!self.after.node(found).dirty, "it is not on the disk");
        }
        if !durable {
            return Ok(());
        }
        let state = self.stage.world.state();
        let staged = self.case.options.write_mode == WriteMode::Replace;
        ensure!(
            !staged || self.case.is_of_descriptor() || !state.named_dirty().contains(&found),
            "it had its name before it was on the disk"
        );
        let no_sync = self
            .fired
            .iter()
            .any(|fired| fired.op == Op::Sync && fired.fault == Fault::Fail(Errno::INVAL));
        if before != Some(found) && !no_sync {
            let dirty = self.after.nodes.iter().any(|node| {
                matches!(&node.form, Form::Directory(names) if names.values().any(|id| *id == found))
                    && node.dirty
            });
            ensure!(!dirty, "its name is not on the disk");
        }
        Ok(())
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

fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

trait IntoCause {
    fn into_cause(self) -> Cause;
}

impl IntoCause for Unsupported {
    fn into_cause(self) -> Cause {
        Cause::Unsupported(self)
    }
}

/// How an end is refused that is neither file nor stream: the name of a socket and whatever else the
/// model has no content for.
pub(crate) fn refused(side: Side) -> [Cause; 4] {
    let kind = |what| Cause::Unsupported(Unsupported::Kind(side, what));
    [
        kind(Refused::SocketName),
        kind(Refused::Unknown),
        kind(Refused::Stream),
        Cause::Io(side, Errno::NXIO),
    ]
}
