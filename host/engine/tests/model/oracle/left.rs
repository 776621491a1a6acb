//! What a copy leaves: what it made where it succeeded, what was there where it did not, and nothing
//! else.

use std::ffi::OsStr;

use copyist_engine::{Errno, Existing, Mechanism, Reflink, Side, Summary, WriteMode};

use super::{Trial, Verdict, ensure};
use crate::case::{Attribute, Ending, To};
use crate::schedule::{Fault, Op, When};
use crate::world::{Id, Node, is_staged};

impl Trial<'_> {
    /// After a failure: what was there is there, and nothing else.
    pub(super) fn taken_back(&self, done: Option<&Summary>) -> Verdict {
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
        let (was, is) = (self.stage.before.node(before), self.after.node(before));
        if is.content().is_none() {
            return Ok(());
        }
        // Where nothing of the source is in it, it is as open to others as before.
        let may_hold = done.consumed > 0 || self.was_called(&[Op::Clone, Op::CloneRange]);
        // After it is closed there is no way back.
        let set = (self.fired.iter()).any(|fired| matches!(fired.op, Op::SetMode | Op::Close));
        // Of a source without a byte it may have got the mode already.
        let last = self.stage.before.node(self.stage.source).mode;
        let same = |one: u32, other: u32| one & 0o777 == other & 0o777;
        ensure!(
            may_hold || set || same(is.mode, was.mode) || same(is.mode, last),
            "it has another mode than before"
        );
        self.bytes_are_right(before, done.bytes, false)
    }

    /// A file is as it was.
    pub(super) fn is_whole(&self, id: Id) -> Verdict {
        let was = self.stage.before.node(id);
        ensure!(self.after.node(id).is_as(was), "the old file is not whole");
        Ok(())
    }

    pub(super) fn source_is_untouched(&self) -> Verdict {
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

    pub(super) fn handles_are_untouched(&self) -> Verdict {
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
                node.xattrs.get(OsStr::new(name)).cloned()
            };
            ensure!(
                list(was) == list(is),
                "somebody else's file changed its list"
            );
        }
        Ok(())
    }

    pub(super) fn nothing_is_left(&self) -> Verdict {
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
    pub(super) fn cleaning_failed(&self) -> bool {
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
    pub(super) fn counts(&self, done: &Summary) -> Verdict {
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
        let interrupted = (done.refused.iter()).any(|(_, why)| *why == Some(Errno::INTR));
        ensure!(!interrupted, "a signal is no refusal");
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
        self.does_not_spin()?;
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

    /// A write that claims success and puts nothing is tried once more, and no more.
    fn does_not_spin(&self) -> Verdict {
        let mut writes = self.fired.iter().filter(|fired| fired.op == Op::Write);
        if writes.any(|fired| fired.fault != Fault::Nothing) {
            return Ok(());
        }
        let stalled = self.fired.iter().filter(|fired| fired.op == Op::Write);
        let single = self.case.rules.iter().filter(|rule| {
            rule.fault == Fault::Nothing && matches!(rule.when, When::Call(_) | When::Of(_, _, 1))
        });
        ensure!(
            stalled.count() <= 2 + single.count(),
            "it writes nothing over and over"
        );
        Ok(())
    }

    pub(super) fn was_called(&self, ops: &[Op]) -> bool {
        let state = self.stage.world.state();
        ops.iter().any(|op| state.schedule.count(*op) > 0)
    }
}
