//! The bytes: the same as in the source, where they belong, and stored as was asked for.

use std::collections::BTreeSet;

use copyist_engine::{Side, Sparse, Summary};

use super::{Trial, Verdict, ensure};
use crate::content::{BLOCK, Content, place};
use crate::schedule::{Change, Op};
use crate::world::{Id, Says, Seeks};

impl Trial<'_> {
    pub(super) fn length_is_right(&self, summary: &Summary) -> Verdict {
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
    pub(super) fn bytes_are_right(&self, id: Id, bytes: u64, ended: bool) -> Verdict {
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

    pub(super) fn part_is_right(&self, found: &[u8], ended: bool) -> Verdict {
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
    pub(super) fn storage_is_right(&self, content: &Content, summary: &Summary) -> Verdict {
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
        let allocated: BTreeSet<_> = content.allocated().collect();
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
        let known = self.case.habits.seeks == Seeks::Honest
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
}
