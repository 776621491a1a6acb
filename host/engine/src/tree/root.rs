//! The two roots: what stands there, and that one tree does not lie in the other.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory;
use super::node::{Ends, Node, open_directory};
use super::shared::Tree;
use crate::error::Cause;
use crate::request::{Handle, Location};
use crate::resolve::{self, Directory, Entry};
use crate::sys::{FileInfo, Kind, Listed, Sys};
use crate::transfer::{at_destination, at_source};

/// No tree of directories is deeper than this; it bounds a walk up that somebody changes meanwhile.
const DEEPEST: usize = 1 << 20;

type Outcome<T> = Result<T, Cause>;

/// With what a tree begins.
pub(super) enum Root {
    /// A directory whose both ends are open.
    Directory(Arc<Node>),
    /// A name, in something that is no part of the tree.
    Entry(Arc<Node>, Listed),
}

/// A root as it was found.
enum Found {
    /// By its name.
    Named(Handle, Entry, Option<FileInfo>),
    /// By a path that has no name at its end, such as `.`.
    Open(OwnedFd, FileInfo),
}

/// Opens both roots. Nothing is made but the last name of a destination that is a directory and was
/// asked for by a path without a name in the source.
pub(super) fn open(tree: &Arc<Tree>) -> Outcome<Root> {
    let sys = tree.sys();
    let source = find(sys, &tree.source).map_err(at_source)?;
    let source_info = match &source {
        Found::Named(_, _, Some(info)) | Found::Open(_, info) => *info,
        Found::Named(_, _, None) => return Err(at_source(Errno::NOENT)),
    };
    let destination = find(sys, &tree.destination).map_err(at_destination)?;
    if source_info.kind == Kind::Directory {
        refuse_itself(sys, &source_info, &destination)?;
    }
    match (source, destination) {
        (Found::Named(from, entry, _), Found::Named(to, target, _)) => {
            let info = |handle: &Handle| sys.stat(handle.as_fd());
            let infos = [
                info(&from).map_err(at_source)?,
                info(&to).map_err(at_destination)?,
            ];
            let ends = Ends {
                source: from,
                destination: to,
            };
            let mut above = Node::new(None, target.name, infos, ends);
            above.is_above = true;
            let listed = Listed {
                name: entry.name,
                kind: Some(source_info.kind),
            };
            Ok(Root::Entry(Arc::new(above), listed))
        }
        (Found::Open(opened, info), to) => {
            let (above, made) = match to {
                Found::Open(opened, made) => (None, (Arc::new(File::from(opened)), made, false)),
                Found::Named(directory, target, _) => {
                    let made = directory::make(tree, &directory, &target.name, &info)?;
                    let made = made.ok_or(at_destination(Errno::NOTDIR))?;
                    let ends = Ends {
                        source: directory.clone(),
                        destination: directory,
                    };
                    let mut above = Node::new(None, target.name, [info, made.1], ends);
                    above.is_above = true;
                    (Some(Arc::new(above)), made)
                }
            };
            let root = root(tree, above.clone(), (opened, info), made);
            if let Some(above) = above {
                // From here on the root alone is what is under way in it.
                directory::leave(tree, above);
            }
            root
        }
        (Found::Named(from, entry, _), Found::Open(opened, made)) => {
            if source_info.kind != Kind::Directory {
                return Err(at_destination(Errno::ISDIR));
            }
            let source = open_directory(sys, &from, &entry.name, OFlags::RDONLY);
            let source = source.map_err(at_source)?;
            let info = sys.stat(source.as_fd()).map_err(at_source)?;
            root(
                tree,
                None,
                (source, info),
                (Arc::new(File::from(opened)), made, false),
            )
        }
    }
}

fn root(
    tree: &Arc<Tree>,
    above: Option<Arc<Node>>,
    source: (OwnedFd, FileInfo),
    made: (Handle, FileInfo, bool),
) -> Outcome<Root> {
    tree.count_entry()?;
    tree.progress.add(0, 1);
    let node = directory::below(tree, above, Default::default(), source, made, false)?;
    directory::stays_out(tree, &node)?;
    Ok(Root::Directory(node))
}

fn find(sys: &dyn Sys, location: &Location) -> crate::sys::Result<Found> {
    match resolve::entry(sys, location) {
        Ok((entry, info)) => Ok(Found::Named(handle(&entry.directory)?, entry, info)),
        Err(Errno::ISDIR) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = resolve::open(sys, location, flags, Mode::empty())?;
            let info = sys.stat(opened.as_fd())?;
            Ok(Found::Open(opened, info))
        }
        Err(errno) => Err(errno),
    }
}

fn handle(directory: &Directory) -> crate::sys::Result<Handle> {
    match directory {
        Directory::Held(handle) => Ok(handle.clone()),
        Directory::Opened(fd) => {
            let copy = fd.try_clone();
            let copy =
                copy.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
            Ok(Arc::new(copy.into()))
        }
    }
}

/// Refuses a destination that is the source or lies in it, by who the directories above it are.
fn refuse_itself(sys: &dyn Sys, source: &FileInfo, destination: &Found) -> Outcome<()> {
    let mut directory = match destination {
        Found::Open(opened, _) => sys.duplicate(opened.as_fd()),
        Found::Named(_, _, Some(found)) if found.is_same_file(source) => {
            return Err(Cause::SameFile);
        }
        Found::Named(directory, ..) => sys.duplicate(directory.as_fd()),
    }
    .map_err(at_destination)?;
    let mut before: Option<FileInfo> = None;
    for _ in 0..DEEPEST {
        let info = sys.stat(directory.as_fd()).map_err(at_destination)?;
        if info.is_same_file(source) {
            return Err(Cause::SameFile);
        }
        // The root of all is above itself.
        if before.is_some_and(|before| before.is_same_file(&info)) {
            return Ok(());
        }
        before = Some(info);
        match sys.above(directory.as_fd()) {
            Ok(above) => directory = above,
            // What cannot be looked at is not in what can be.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
