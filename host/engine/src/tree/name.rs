//! An entry of a directory: what it is, and what becomes of it where that is no file and no directory.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::node::{Ends, Node};
use super::part::Entered;
use super::place::{Placed, place};
use super::request::{Special, Symlinks};
use super::shared::{Tree, join};
use super::{directory, file};
use crate::error::{Cause, Refused, Side, Unsupported};
use crate::metadata::{self, loss, there};
use crate::preserve::Preserve;
use crate::request::Location;
use crate::resolve;
use crate::summary::Summary;
use crate::sys::{FileInfo, Kind, Listed};
use crate::transfer::at_source;

type Outcome<T> = Result<T, Cause>;

/// Begins with an entry, and ends it where it is neither a file nor a directory.
/// It may have been `counted` before.
pub(super) fn enter(
    tree: &Arc<Tree>,
    node: &Arc<Node>,
    listed: &Listed,
    counted: bool,
) -> Outcome<Entered> {
    let name = &listed.name;
    let ends = node.ends(tree)?;
    let kind = match listed.kind {
        Some(kind) => kind,
        None => look(tree, &ends, name)?.kind,
    };
    if let Some(exclude) = &tree.options.exclude
        && !node.is_above
    {
        let path = node.path_of(name);
        if exclude.is_excluded(&path, kind == Kind::Directory) {
            tree.skipped(None, &path);
            return Ok(Entered::Done);
        }
    }
    if !counted {
        tree.count_entry()?;
        tree.progress.add(0, 1);
    }
    match kind {
        Kind::Regular => file::begin(tree, node, &ends, name, None),
        Kind::Directory => directory::enter(tree, node, &ends, name, None),
        Kind::Symlink => match tree.options.symlinks {
            Symlinks::Keep => keep_link(tree, node, &ends, name),
            Symlinks::Follow => follow(tree, node, &ends, name),
            Symlinks::Skip => {
                tree.skipped(None, &node.path_of(name));
                Ok(Entered::Done)
            }
        },
        Kind::Fifo | Kind::Socket | Kind::Character | Kind::Block | Kind::Unknown => {
            special(tree, node, &ends, name, None)
        }
    }
}

fn look(tree: &Tree, ends: &Ends, name: &OsStr) -> Outcome<FileInfo> {
    let info = tree.sys().stat_at(ends.source.as_fd(), name);
    info.map_err(at_source)
}

/// Copies what a link leads to. It is resolved from where the whole tree is, so that a link to another
/// part of what the caller holds is followed too.
fn follow(tree: &Arc<Tree>, node: &Arc<Node>, ends: &Ends, name: &OsStr) -> Outcome<Entered> {
    let location = Location {
        base: tree.source.base.clone(),
        path: join(&tree.source.path, &node.path_of(name)),
        follow: true,
    };
    let sys = tree.sys();
    let opened = match resolve::open_name(sys, &location) {
        Some(opened) => opened,
        None => resolve::open(sys, &location, OFlags::RDONLY, Mode::empty()),
    };
    let opened = opened.map_err(at_source)?;
    let info = sys.stat(opened.as_fd()).map_err(at_source)?;
    match info.kind {
        Kind::Regular => file::begin(tree, node, ends, name, Some(location)),
        Kind::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = resolve::open(sys, &location, flags, Mode::empty()).map_err(at_source)?;
            directory::enter(tree, node, ends, name, Some(opened))
        }
        _ => special(tree, node, ends, name, Some(info)),
    }
}

/// Makes a link of the same text.
fn keep_link(tree: &Tree, node: &Node, ends: &Ends, name: &OsStr) -> Outcome<Entered> {
    let sys = tree.sys();
    let text = sys
        .read_link_at(ends.source.as_fd(), name)
        .map_err(at_source)?;
    if !tree.options.grants.leaving_links && leaves(&text, node) {
        return Err(Cause::Denied);
    }
    let info = look(tree, ends, name)?;
    let make = |new: &OsStr| sys.make_link(&text, ends.destination.as_fd(), new);
    let to = node.name_at_destination(name);
    if place(tree, ends, to, &info, None, &make)? == Placed::Left {
        tree.skipped(None, &node.path_of(name));
        return Ok(Entered::Done);
    }
    let lost = describe(tree, ends, to, &info)?;
    tree.add(&Summary {
        links: 1,
        lost,
        ..Summary::default()
    });
    tree.wrote_in(node.made.device, &ends.destination);
    Ok(Entered::Done)
}

/// Whether a link of this text leads out of the tree's root, by what the text says: an absolute one
/// does, and one that goes up by more directories than it stands below the root.
fn leaves(text: &Path, node: &Node) -> bool {
    let mut depth = i64::from(node.depth) - 1;
    for component in text.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

/// Makes the same FIFO, name of a socket, or device.
fn special(
    tree: &Tree,
    node: &Node,
    ends: &Ends,
    name: &OsStr,
    info: Option<FileInfo>,
) -> Outcome<Entered> {
    let refused = Unsupported::Kind(Side::Source, Refused::Special);
    match tree.options.special {
        Special::Refuse => return Err(refused.into()),
        Special::Skip => {
            tree.skipped(Some(refused.into()), &node.path_of(name));
            return Ok(Entered::Done);
        }
        Special::Keep if !tree.options.grants.special_files => return Err(Cause::Denied),
        Special::Keep => {}
    }
    let info = match info {
        Some(info) => info,
        None => look(tree, ends, name)?,
    };
    let sys = tree.sys();
    let options = &tree.options.entries;
    let keeps_mode = options.preserve.contains(Preserve::MODE);
    // Until it has its owner, and less the umask where nothing else is asked for.
    let mode = info.mode & if keeps_mode { 0o600 } else { 0o777 };
    let directory = ends.destination.as_fd();
    let make = |new: &OsStr| sys.make_node(directory, new, info.kind, mode, info.represents);
    let to = node.name_at_destination(name);
    if place(tree, ends, to, &info, None, &make)? == Placed::Left {
        tree.skipped(None, &node.path_of(name));
        return Ok(Entered::Done);
    }
    let mut lost = describe_owner(tree, ends, to, &info)?;
    if keeps_mode {
        let mode = metadata::mode_of(options, &info, &info)?;
        if mode != info.mode {
            lost |= metadata::withheld(options, Preserve::MODE)?;
        }
        let answer = sys.set_mode_at(directory, to, info.kind, mode);
        lost |= loss(options, Preserve::MODE, answer.map_err(there))?;
    }
    lost |= describe_times(tree, ends, to, &info)?;
    tree.add(&Summary {
        special: 1,
        lost,
        ..Summary::default()
    });
    tree.wrote_in(node.made.device, &ends.destination);
    Ok(Entered::Done)
}

/// Owner and times, by name: what these are of is no file and has nothing else.
fn describe(tree: &Tree, ends: &Ends, to: &OsStr, info: &FileInfo) -> Outcome<Preserve> {
    Ok(describe_owner(tree, ends, to, info)? | describe_times(tree, ends, to, info)?)
}

fn describe_owner(tree: &Tree, ends: &Ends, to: &OsStr, info: &FileInfo) -> Outcome<Preserve> {
    let options = &tree.options.entries;
    if !options.preserve.contains(Preserve::OWNERSHIP) {
        return Ok(Preserve::NONE);
    }
    if !options.grants.ownership {
        return metadata::withheld(options, Preserve::OWNERSHIP);
    }
    let directory = ends.destination.as_fd();
    let sys = tree.sys();
    let answer = sys.set_owner_at(directory, to, info.owner, info.group);
    loss(options, Preserve::OWNERSHIP, answer.map_err(there))
}

fn describe_times(tree: &Tree, ends: &Ends, to: &OsStr, info: &FileInfo) -> Outcome<Preserve> {
    let options = &tree.options.entries;
    if !options.preserve.contains(Preserve::TIMESTAMPS) {
        return Ok(Preserve::NONE);
    }
    let directory = ends.destination.as_fd();
    let sys = tree.sys();
    let answer = sys.set_times_at(directory, to, info.accessed, info.modified);
    loss(options, Preserve::TIMESTAMPS, answer.map_err(there))
}
