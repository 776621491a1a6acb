//! A directory that is being copied: its two ends, and what of it is still under way.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::shared::Tree;
use crate::error::{Cause, Side};
use crate::request::Handle;
use crate::resolve::ALWAYS;
use crate::sys::{At, DIRECTORY_ONLY, FileInfo, Result, Sys};

/// Both ends of a directory, open.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) source: Handle,
    pub(super) destination: Handle,
}

/// See the module. Its descriptors may be given up while nobody works in it, and are found again by
/// who the directories are: the way down from the root by names, or up from one below, and no name or
/// `..` that somebody changed leads elsewhere.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<Arc<Node>>,
    /// Its name in either parent. Empty for the root; above, that of the root at the destination.
    pub(super) name: OsString,
    /// Of the root 1.
    pub(super) depth: u32,
    pub(super) source: FileInfo,
    pub(super) made: FileInfo,
    /// This copy made it.
    pub(super) is_new: bool,
    /// Only holds the root's name, and is no part of the tree.
    pub(super) is_above: bool,
    /// It was opened through a link, so that its name alone does not lead to it.
    pub(super) is_linked: bool,
    ends: Mutex<Option<Ends>>,
    /// Who still works in it or beneath.
    users: AtomicUsize,
}

impl Node {
    /// With one user.
    pub(super) fn new(
        parent: Option<Arc<Node>>,
        name: OsString,
        [source, made]: [FileInfo; 2],
        ends: Ends,
    ) -> Self {
        Self {
            depth: parent.as_ref().map_or(0, |parent| parent.depth + 1),
            parent,
            name,
            source,
            made,
            is_new: false,
            is_above: false,
            is_linked: false,
            ends: Mutex::new(Some(ends)),
            users: AtomicUsize::new(1),
        }
    }

    /// One more works in it.
    pub(super) fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// One less; `true` for the last.
    pub(super) fn leave(&self) -> bool {
        self.users.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Gives its descriptors up until somebody wants them.
    pub(super) fn give_up_ends(&self) {
        if self.may_give_up() {
            let ends = self.lock().take();
            drop(ends);
        }
    }

    /// The root is where others are found from, and what a link led to is not found again by its name.
    fn may_give_up(&self) -> bool {
        self.depth > 1 && !self.is_linked
    }

    /// Its descriptors, opened again where they were given up.
    pub(super) fn ends(self: &Arc<Self>, tree: &Tree) -> std::result::Result<Ends, Cause> {
        if let Some(ends) = self.lock().clone() {
            return Ok(ends);
        }
        // Down from the nearest directory above whose descriptors are there, without recursion.
        let mut way = vec![self.clone()];
        let mut from = loop {
            let Some(parent) = way.last().and_then(|node| node.parent.clone()) else {
                return Err(Cause::Io(Side::Source, Errno::NOENT));
            };
            let ends = parent.lock().clone();
            match ends {
                Some(ends) => break ends,
                None => way.push(parent),
            }
        };
        let last = way.len() - 1;
        for (place, node) in way.into_iter().rev().enumerate() {
            from = node.below(tree, &from)?;
            // Nobody would give up those of one in which nobody works any more.
            if place == last && node.users.load(Ordering::Acquire) > 0 {
                *node.lock() = Some(from.clone());
            }
        }
        Ok(from)
    }

    /// Its place at the destination alone, also where a link led to its source.
    pub(super) fn destination(self: &Arc<Self>, tree: &Tree) -> std::result::Result<Handle, Cause> {
        let at = |errno| Cause::Io(Side::Destination, errno);
        let mut way = Vec::new();
        let mut node = self.clone();
        let mut from = loop {
            if let Some(ends) = node.open_ends() {
                break ends.destination;
            }
            let parent = node.parent.clone().ok_or(at(Errno::NOENT))?;
            way.push(node);
            node = parent;
        };
        for node in way.into_iter().rev() {
            let sys = tree.sys();
            let opened = open_destination(sys, &from, node.own_name());
            from = opened
                .and_then(|opened| is_still(sys, opened, &node.made))
                .map_err(at)?;
        }
        Ok(from)
    }

    /// What it is called in its parent at the destination.
    fn own_name(&self) -> &OsStr {
        match &self.parent {
            Some(parent) if parent.is_above => &parent.name,
            _ => &self.name,
        }
    }

    /// It, and all above it.
    pub(super) fn and_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    /// Opens both ends again from those of the parent.
    fn below(&self, tree: &Tree, parent: &Ends) -> std::result::Result<Ends, Cause> {
        let sys = tree.sys();
        let source = open_directory(sys, &parent.source, &self.name, OFlags::RDONLY)
            .and_then(|opened| is_still(sys, opened, &self.source))
            .map_err(|errno| Cause::Io(Side::Source, errno))?;
        let destination = open_destination(sys, &parent.destination, &self.name)
            .and_then(|opened| is_still(sys, opened, &self.made))
            .map_err(|errno| Cause::Io(Side::Destination, errno))?;
        Ok(Ends {
            source,
            destination,
        })
    }

    /// Opens both ends again by way of a directory in it, which is faster where the tree is deep.
    pub(super) fn find_from_below(&self, tree: &Tree, below: &Ends) {
        if self.lock().is_some() {
            return;
        }
        let sys = tree.sys();
        let open = |directory: &Handle, who: &FileInfo| {
            let above = sys.above(directory.as_fd())?;
            if !sys.stat(above.as_fd())?.is_same_file(who) {
                return Err(Errno::NOENT);
            }
            let above = Arc::new(File::from(above));
            let opened = open_destination(sys, &above, ".".as_ref())?;
            is_still(sys, opened, who)
        };
        if let Ok(source) = open(&below.source, &self.source)
            && let Ok(destination) = open(&below.destination, &self.made)
        {
            *self.lock() = Some(Ends {
                source,
                destination,
            });
        }
    }

    /// Its descriptors, where they are open.
    pub(super) fn open_ends(&self) -> Option<Ends> {
        self.lock().clone()
    }

    /// Takes its descriptors from it: nobody works in it any more.
    pub(super) fn take_ends(&self) -> Option<Ends> {
        self.lock().take()
    }

    /// Whether somebody else works in it too.
    pub(super) fn is_shared(&self) -> bool {
        self.users.load(Ordering::Acquire) > 1
    }

    /// What an entry of it is called at the destination. The roots may have different names.
    pub(super) fn name_at_destination<'a>(&'a self, name: &'a OsStr) -> &'a OsStr {
        if self.is_above { &self.name } else { name }
    }

    /// The path of an entry of it, beneath the root.
    pub(super) fn path_of(&self, name: &OsStr) -> PathBuf {
        if self.is_above {
            return PathBuf::new();
        }
        let mut names = vec![name];
        let mut node = self;
        while let Some(parent) = &node.parent
            && !parent.is_above
        {
            names.push(&node.name);
            node = parent;
        }
        names.iter().rev().collect()
    }

    /// Its own.
    pub(super) fn path(&self) -> PathBuf {
        match &self.parent {
            Some(parent) => parent.path_of(&self.name),
            None => PathBuf::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Ends>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a directory by its name in another, which must be no link.
pub(super) fn open_directory(
    sys: &dyn Sys,
    directory: &Handle,
    name: &OsStr,
    flags: OFlags,
) -> Result<OwnedFd> {
    let flags = ALWAYS | OFlags::DIRECTORY | OFlags::NOFOLLOW | flags;
    sys.open(
        At::Beneath(directory.as_fd()),
        name.as_ref(),
        flags,
        Mode::empty(),
    )
}

/// Opens a directory at the destination, which may be one that is written and not listed.
pub(super) fn open_destination(sys: &dyn Sys, directory: &Handle, name: &OsStr) -> Result<OwnedFd> {
    match open_directory(sys, directory, name, OFlags::RDONLY) {
        Err(Errno::ACCESS) => {
            // openat2(2) takes no other flags beside O_PATH.
            let flags = DIRECTORY_ONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let at = At::Beneath(directory.as_fd());
            sys.open(at, name.as_ref(), flags, Mode::empty())
        }
        opened => opened,
    }
}

fn is_still(sys: &dyn Sys, opened: OwnedFd, who: &FileInfo) -> Result<Handle> {
    if sys.stat(opened.as_fd())?.is_same_file(who) {
        Ok(Arc::new(opened.into()))
    } else {
        Err(Errno::NOENT)
    }
}

/// One after the other: a chain of them may be longer than a stack is deep.
impl Drop for Node {
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(mut node) = above.and_then(Arc::into_inner) {
            above = node.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_is_dropped_on_a_small_stack() {
        let handle = || Arc::new(File::open("/").unwrap());
        let (source, destination) = (handle(), handle());
        let chain = move || {
            let mut node = None;
            for _ in 0..100_000 {
                let ends = Ends {
                    source: source.clone(),
                    destination: destination.clone(),
                };
                let infos = [FileInfo::of_feed(); 2];
                node = Some(Arc::new(Node::new(node, OsString::new(), infos, ends)));
            }
            assert_eq!(node.map(|node| node.depth), Some(99_999));
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        thread.spawn(chain).unwrap().join().unwrap();
    }
}
