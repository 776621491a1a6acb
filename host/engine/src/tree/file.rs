//! A file of a tree: its transfer, and what the tree adds to it.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use super::directory;
use super::links::{Claim, First, Key, add_name};
use super::node::{Ends, Node};
use super::part::Entered;
use super::place::Placed;
use super::shared::Tree;
use crate::error::{Cause, Refused, Side, Unsupported};
use crate::preserve::Preserve;
use crate::request::{Base, Destination, Durability, Handle, Location, Request, Source, WriteMode};
use crate::summary::Summary;
use crate::sys::{FileInfo, Kind, Listed};
use crate::transfer::{Step, Transfer};

/// See the module.
pub(super) struct Copying {
    pub(super) node: Arc<Node>,
    name: OsString,
    transfer: Transfer,
    /// What the tree wants to know of the source is known.
    looked: bool,
    /// A link that was followed led to it.
    is_link: bool,
    /// It is the first of several names.
    claim: Option<Key>,
    /// Links that could not be kept.
    lost: Preserve,
}

/// What a step of it came to.
pub(super) enum Moved {
    On,
    Later(Duration),
    /// With the entries that are to be done again.
    Ended(Vec<(Arc<Node>, Listed)>),
}

/// Begins to copy a file. `source` is where it is, if it is not the entry itself.
pub(super) fn begin(
    tree: &Arc<Tree>,
    node: &Arc<Node>,
    ends: &Ends,
    name: &OsStr,
    source: Option<Location>,
) -> Result<Entered, Cause> {
    let mut options = tree.options.entries.clone();
    if options.durability == Durability::End {
        // The tree's to do.
        options.durability = Durability::None;
    }
    let to = node.name_at_destination(name);
    if writes_through_names(tree, node, ends, to) {
        options.write_mode = WriteMode::Replace;
    }
    let is_link = source.is_some();
    let request = Request {
        source: Source::Path(source.unwrap_or_else(|| at(&ends.source, name))),
        destination: Destination::Path(at(&ends.destination, to)),
        options,
    };
    let mut transfer = Transfer::new(tree.environment.clone(), request);
    transfer.is_of_a_tree(tree.quota.clone());
    Ok(Entered::File(Copying {
        node: node.clone(),
        name: name.to_owned(),
        transfer,
        looked: false,
        is_link,
        claim: None,
        lost: Preserve::NONE,
    }))
}

/// Whether what stands there has other names, which may be those of files that are still to be copied:
/// where names of one file are kept, an old file of several is replaced, as cp(1) does.
fn writes_through_names(tree: &Tree, node: &Node, ends: &Ends, to: &OsStr) -> bool {
    if node.is_new || !tree.options.entries.preserve.contains(Preserve::LINKS) {
        return false;
    }
    let found = tree.sys().stat_at(ends.destination.as_fd(), to);
    matches!(found, Ok(found) if found.kind == Kind::Regular && found.links > 1)
}

fn at(directory: &Handle, name: &OsStr) -> Location {
    Location {
        base: Base::Beneath(directory.clone()),
        path: name.into(),
        follow: false,
    }
}

impl Tree {
    /// Whether files are held back until all of several are synced: those that replace others must not
    /// get their names before they are whole on the disk.
    pub(super) fn stages_files(&self) -> bool {
        let entries = &self.options.entries;
        entries.durability == Durability::End && entries.write_mode == WriteMode::Replace
    }
}

impl Copying {
    /// Whether all is done but the making of its name.
    pub(super) fn is_staged(&self) -> bool {
        self.transfer.is_staged()
    }

    /// Goes one step.
    pub(super) fn step(&mut self, tree: &Arc<Tree>) -> Moved {
        match self.transfer.step(u64::MAX) {
            Step::Moved(bytes) => {
                tree.progress.add(bytes, 0);
                match self.transfer.source_info().copied() {
                    Some(info) if !self.looked => {
                        self.looked = true;
                        self.look(tree, &info)
                    }
                    _ => Moved::On,
                }
            }
            Step::Later(pause) => Moved::Later(pause),
            Step::Done(summary) => self.succeeded(tree, summary),
            Step::Failed(error) => {
                tree.add(&error.done);
                self.failed(tree, error.cause)
            }
            // Neither end is a stream.
            Step::Wait => {
                self.transfer.cancel();
                let what = Unsupported::Kind(Side::Destination, Refused::Stream);
                self.failed(tree, what.into())
            }
        }
    }

    /// Looks at the source, which is open, before anything is made.
    fn look(&mut self, tree: &Arc<Tree>, info: &FileInfo) -> Moved {
        if info.kind != Kind::Regular {
            // It was when its directory was listed.
            self.transfer.cancel();
            let what = Unsupported::Kind(Side::Source, Refused::Special);
            return self.failed(tree, what.into());
        }
        let Some(key) = Key::of(info) else {
            return Moved::On;
        };
        if !tree.options.entries.preserve.contains(Preserve::LINKS) {
            return Moved::On;
        }
        let listed = || Listed {
            name: self.name.clone(),
            kind: Some(if self.is_link {
                Kind::Symlink
            } else {
                Kind::Regular
            }),
        };
        let claim = tree.links().claim(key, info, &self.node, listed);
        match claim {
            Claim::First => self.claim = Some(key),
            Claim::Waits => {
                self.transfer.cancel();
                return Moved::Ended(Vec::new());
            }
            Claim::Another(first) => return self.link(tree, &first, info),
            Claim::Unknown if tree.options.entries.require.contains(Preserve::LINKS) => {
                self.transfer.cancel();
                return self.failed(tree, Unsupported::Attribute.into());
            }
            Claim::Unknown => self.lost = Preserve::LINKS,
        }
        Moved::On
    }

    /// Makes it one more name of what was copied already; or else a file of its own.
    fn link(&mut self, tree: &Arc<Tree>, first: &First, info: &FileInfo) -> Moved {
        let to = self.node.name_at_destination(&self.name);
        let ends = self.node.ends(tree);
        let linked = ends.and_then(|ends| {
            let placed = add_name(tree, first, &ends, to, info)?;
            tree.wrote_in(first.made.device, &ends.destination);
            Ok(placed)
        });
        match linked {
            Ok(Placed::Made | Placed::Already) => {
                self.transfer.cancel();
                tree.add(&Summary {
                    links: 1,
                    ..Summary::default()
                });
                Moved::Ended(Vec::new())
            }
            Ok(Placed::Left) => {
                self.transfer.cancel();
                tree.skipped(None, &self.node.path_of(&self.name));
                Moved::Ended(Vec::new())
            }
            // Too many names, or another file system. Where it may not be, the copy says so itself.
            Err(cause) => {
                if tree.options.entries.require.contains(Preserve::LINKS) {
                    self.transfer.cancel();
                    return self.failed(tree, cause);
                }
                self.lost = Preserve::LINKS;
                Moved::On
            }
        }
    }

    fn succeeded(&mut self, tree: &Arc<Tree>, mut summary: Summary) -> Moved {
        summary.lost |= self.lost;
        tree.add(&summary);
        let Ok(ends) = self.node.ends(tree) else {
            return Moved::Ended(self.settle(tree, None));
        };
        tree.wrote_in(self.node.made.device, &ends.destination);
        if self.claim.is_none() {
            return Moved::Ended(Vec::new());
        }
        let to = self.node.name_at_destination(&self.name);
        let made = tree.sys().stat_at(ends.destination.as_fd(), to);
        let first = made.ok().filter(|_| summary.files > 0).map(|made| First {
            node: self.node.clone(),
            name: to.to_owned(),
            made,
        });
        Moved::Ended(self.settle(tree, first))
    }

    fn failed(&mut self, tree: &Tree, cause: Cause) -> Moved {
        tree.failed(cause, &self.node.path_of(&self.name));
        Moved::Ended(self.settle(tree, None))
    }

    fn settle(&mut self, tree: &Tree, first: Option<First>) -> Vec<(Arc<Node>, Listed)> {
        match self.claim.take() {
            Some(key) => tree.links().settle(key, first),
            None => Vec::new(),
        }
    }

    /// Takes back what it made, unless it has its name already, which is a success.
    pub(super) fn give_up(&mut self, tree: &Tree) {
        match self.transfer.cancel() {
            Step::Done(summary) => tree.add(&summary),
            Step::Failed(error) => tree.add(&error.done),
            Step::Moved(_) | Step::Later(_) | Step::Wait => {}
        }
        for (node, _) in self.settle(tree, None) {
            directory::leave(tree, node);
        }
    }
}
