//! What a copy has beside its bytes: attributes, and its place on stable storage.

use std::ffi::OsStr;

use copyist_engine::{Durability, Errno, Preserve, Summary, WriteMode};

use super::{Trial, Verdict, ensure};
use crate::case::Attribute;
use crate::schedule::{Fault, Op};
use crate::world::{Form, Id, Node};

impl Trial<'_> {
    pub(super) fn attributes_are_right(
        &self,
        node: &Node,
        before: Option<Id>,
        summary: &Summary,
    ) -> Verdict {
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
            let name = OsStr::new(attribute.name());
            self.case.attributes.contains(&attribute) && node.xattrs.contains_key(name)
        };
        if !one_file {
            ensure!(
                !has(Attribute::Privileged) || options.grants.privileged_xattrs,
                "an attribute that nobody granted"
            );
        }
        // Where the system says that there are none, there are none.
        if self.has_xattr_faults() {
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
    pub(super) fn is_durable(&self, found: Id, before: Option<Id>) -> Verdict {
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
}
