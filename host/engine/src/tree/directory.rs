//! Directories: how they are made, and what they get when all beneath is done.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::node::{Ends, Node, open_destination, open_directory};
use super::part::Entered;
use super::shared::Tree;
use crate::durability;
use crate::error::{Cause, Limit};
use crate::metadata::{self, loss, there};
use crate::preserve::Preserve;
use crate::request::{Durability, Existing, Handle};
use crate::staging::despite_signals;
use crate::summary::Summary;
use crate::sys::{FileInfo, Kind};
use crate::target::PERMISSIONS;
use crate::transfer::{at_destination, at_source};
use crate::xattrs;

/// What its owner may do.
const OWNER: u32 = 0o700;
/// A directory that comes and goes is made again so many times.
const TRIES: usize = 4;

type Outcome<T> = Result<T, Cause>;

/// Where a tree begins, for a copy that stays on one file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    mount: Option<u64>,
    device: u64,
}

/// Makes a directory, or goes into the one that is there. `opened` is what a link led to.
pub(super) fn enter(
    tree: &Arc<Tree>,
    node: &Arc<Node>,
    ends: &Ends,
    name: &OsStr,
    opened: Option<OwnedFd>,
) -> Outcome<Entered> {
    let is_linked = opened.is_some();
    let source = match opened {
        Some(opened) => opened,
        None => {
            open_directory(tree.sys(), &ends.source, name, OFlags::RDONLY).map_err(at_source)?
        }
    };
    let info = tree.sys().stat(source.as_fd()).map_err(at_source)?;
    if let Some(most) = tree.options.limits.depth
        && node.depth >= most
    {
        return Err(Limit::Depth.into());
    }
    // What the copy makes is no part of what it copies, by whatever name it is met.
    for above in node.and_above().filter(|above| !above.is_above) {
        if above.made.is_same_file(&info) {
            return Err(Cause::SameFile);
        }
        if is_linked && above.source.is_same_file(&info) {
            return Err(at_source(Errno::LOOP));
        }
    }
    let to = node.name_at_destination(name);
    let Some((destination, made, is_new)) = make(tree, &ends.destination, to, &info)? else {
        tree.skipped(None, &node.path_of(name));
        return Ok(Entered::Done);
    };
    let below = below(
        tree,
        Some(node.clone()),
        if node.is_above {
            OsString::new()
        } else {
            name.to_owned()
        },
        (source, info),
        (destination, made, is_new),
        is_linked,
    )?;
    if stays_out(tree, &below)? {
        tree.skipped(None, &node.path_of(name));
        leave(tree, below);
        return Ok(Entered::Done);
    }
    Ok(Entered::Directory(below))
}

/// A directory of which both ends are open.
pub(super) fn below(
    tree: &Arc<Tree>,
    parent: Option<Arc<Node>>,
    name: OsString,
    (source, info): (OwnedFd, FileInfo),
    (destination, made, is_new): (Handle, FileInfo, bool),
    is_linked: bool,
) -> Outcome<Arc<Node>> {
    if made.is_same_file(&info) {
        return Err(Cause::SameFile);
    }
    let ends = Ends {
        source: Arc::new(File::from(source)),
        destination,
    };
    tree.wrote_in(made.device, &ends.destination);
    if let Some(parent) = &parent {
        parent.enter();
    }
    let mut node = Node::new(parent, name, [info, made], ends);
    node.depth = node.depth.max(1);
    node.is_new = is_new;
    node.is_linked = is_linked;
    let node = Arc::new(node);
    tree.add(&Summary {
        directories: 1,
        ..Summary::default()
    });
    Ok(node)
}

/// Whether another file system begins here, and the copy stays on the first.
pub(super) fn stays_out(tree: &Tree, node: &Arc<Node>) -> Outcome<bool> {
    if !tree.options.one_file_system {
        return Ok(false);
    }
    let ends = node.ends(tree)?;
    let here = Mounted {
        mount: tree.sys().mount(ends.source.as_fd()).ok(),
        device: node.source.device,
    };
    Ok(*tree.mounted.get_or_init(|| here) != here)
}

/// Makes it, or opens the one that is there. `None`: something else is there, and is left.
pub(super) fn make(
    tree: &Tree,
    directory: &Handle,
    name: &OsStr,
    source: &FileInfo,
) -> Outcome<Option<(Handle, FileInfo, bool)>> {
    let sys = tree.sys();
    let options = &tree.options.entries;
    // Nobody looks into it who may not look into the source; and its owner can write it until it is
    // done, whatever mode it gets then.
    let mode = if options.preserve.contains(Preserve::MODE) {
        OWNER
    } else {
        source.mode & PERMISSIONS | OWNER
    };
    for _ in 0..TRIES {
        let is_new = match sys.make_directory(directory.as_fd(), name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(at_destination(errno)),
        };
        match open_destination(sys, directory, name) {
            Ok(mut opened) => {
                let mut made = sys.stat(opened.as_fd()).map_err(at_destination)?;
                if is_new && made.mode & OWNER != OWNER {
                    // The umask took from its owner what the copy needs.
                    let before = made.mode;
                    let mode = before | OWNER;
                    let answer = sys.set_mode_at(directory.as_fd(), name, Kind::Directory, mode);
                    answer.map_err(at_destination)?;
                    opened = open_destination(sys, directory, name).map_err(at_destination)?;
                    made = sys.stat(opened.as_fd()).map_err(at_destination)?;
                    made.mode = before;
                }
                return Ok(Some((Arc::new(opened.into()), made, is_new)));
            }
            Err(Errno::NOENT) => {}
            // A link is none either: nothing is written where it leads.
            Err(Errno::NOTDIR | Errno::LOOP) if options.existing == Existing::Skip => {
                return Ok(None);
            }
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(at_destination(Errno::EXIST)),
            Err(errno) => return Err(at_destination(errno)),
        }
    }
    Err(at_destination(Errno::NOENT))
}

/// One who worked in a directory leaves it. The last one finishes it, and all above of which it was
/// the last.
pub(super) fn leave(tree: &Tree, mut node: Arc<Node>) {
    let mut below: Option<Ends> = None;
    while node.leave() {
        if let Some(below) = &below {
            node.find_from_below(tree, below);
        }
        if !tree.is_stopped()
            && let Err(cause) = finish(tree, &node)
        {
            tree.failed(cause, &node.path());
        }
        let Some(parent) = node.parent.clone() else {
            drop(node.take_ends());
            return;
        };
        // Whoever remembers it for a name in it finds it again.
        below = node.take_ends();
        node = parent;
    }
}

/// Gives a directory what it gets after all that is in it: its attributes, and its names their place
/// on the disk.
fn finish(tree: &Tree, node: &Arc<Node>) -> Outcome<()> {
    let options = &tree.options.entries;
    let syncs = options.durability == Durability::Each;
    if node.is_above {
        return if syncs {
            sync_above(tree, node)
        } else {
            Ok(())
        };
    }
    if !node.is_new && options.preserve.is_empty() && !syncs {
        return Ok(());
    }
    let ends = node.ends(tree)?;
    let lost = describe(tree, node, &ends)?;
    if !lost.is_empty() {
        tree.add(&Summary {
            lost,
            ..Summary::default()
        });
    }
    if syncs {
        sync(tree, ends.destination.as_fd())?;
    }
    Ok(())
}

/// The directory in which the root has its name.
fn sync_above(tree: &Tree, node: &Arc<Node>) -> Outcome<()> {
    let directory = node.destination(tree)?;
    let opened = durability::open(tree.sys(), directory.as_fd()).map_err(at_destination)?;
    sync(tree, opened.as_fd())
}

/// Puts the names in a directory on stable storage.
fn sync(tree: &Tree, directory: BorrowedFd<'_>) -> Outcome<()> {
    let sync = || durability::sync(tree.sys(), directory);
    despite_signals(sync).map_err(at_destination)
}

/// In the order of [`metadata::apply`].
fn describe(tree: &Tree, node: &Node, ends: &Ends) -> Outcome<Preserve> {
    let sys = tree.sys();
    let options = &tree.options.entries;
    let wanted = options.preserve;
    let (from, to) = (ends.source.as_fd(), ends.destination.as_fd());
    let mut made = node.made;
    let mut lost = Preserve::NONE;
    if wanted.contains(Preserve::OWNERSHIP) {
        lost |= if options.grants.ownership {
            let answer = sys.set_owner(to, node.source.owner, node.source.group);
            if answer.is_ok() {
                let now = sys.stat(to).map_err(at_destination)?;
                (made.owner, made.group) = (now.owner, now.group);
            }
            loss(options, Preserve::OWNERSHIP, answer.map_err(there))?
        } else {
            metadata::withheld(options, Preserve::OWNERSHIP)?
        };
    }
    if wanted.contains(Preserve::XATTRS) {
        lost |= match xattrs::copy(sys, from, to, options.grants.privileged_xattrs) {
            Ok(true) => Preserve::NONE,
            Ok(false) => metadata::withheld(options, Preserve::XATTRS)?,
            Err(refusal) => loss(options, Preserve::XATTRS, Err(refusal))?,
        };
    }
    if wanted.contains(Preserve::MODE) {
        let mode = metadata::mode_of(options, &node.source, &made)?;
        if mode != node.source.mode {
            lost |= metadata::withheld(options, Preserve::MODE)?;
        }
        let answer = sys.set_mode(to, mode);
        lost |= loss(options, Preserve::MODE, answer.map_err(there))?;
    } else if node.is_new {
        // As it was made, less what its owner got meanwhile.
        let mode = made.mode & (node.source.mode | !OWNER);
        if mode != made.mode | OWNER {
            sys.set_mode(to, mode).map_err(at_destination)?;
        }
    }
    if wanted.contains(Preserve::ACLS) {
        let answer = xattrs::copy_access_list(sys, from, to)
            .and_then(|()| xattrs::copy_default_list(sys, from, to));
        lost |= loss(options, Preserve::ACLS, answer)?;
    }
    if wanted.contains(Preserve::TIMESTAMPS) {
        let answer = sys.set_times(to, node.source.accessed, node.source.modified);
        lost |= loss(options, Preserve::TIMESTAMPS, answer.map_err(there))?;
    }
    Ok(lost)
}
