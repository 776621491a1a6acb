//! Files with several names: which of them were met already.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::Arc;

use super::node::{Ends, Node};
use super::place::{Placed, place};
use super::shared::Tree;
use crate::error::Cause;
use crate::sys::{FileInfo, Listed};

/// As many files are remembered of which more names may come. The names of others become files of
/// their own.
const MOST: usize = 1 << 16;

/// Who a file is: its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u64, u64);

impl Key {
    pub(super) fn of(info: &FileInfo) -> Option<Self> {
        (info.links > 1 && info.inode != 0).then_some(Self(info.device, info.inode))
    }
}

/// The files that were met, while more of their names may come.
#[derive(Debug)]
pub(super) struct Links {
    groups: HashMap<Key, Group>,
    /// Symbolic links are followed, so that nobody knows how many names lead to a file.
    follows: bool,
}

#[derive(Debug)]
struct Group {
    /// Names that were not met yet, some of which may lie outside of the tree.
    left: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Somebody is copying it; these wait for that.
    Copying(Vec<(Arc<Node>, Listed)>),
    There(First),
}

/// The first name that a file got at the destination.
#[derive(Clone, Debug)]
pub(super) struct First {
    pub(super) node: Arc<Node>,
    pub(super) name: OsString,
    pub(super) made: FileInfo,
}

/// What becomes of a name of a file with several.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is the first, and must be settled.
    First,
    /// Another one is being copied; this one is done again when that has ended.
    Waits,
    /// It becomes another name of this one.
    Another(First),
    /// Too many are remembered already.
    Unknown,
}

impl Links {
    pub(super) fn new(follows: bool) -> Self {
        Self {
            groups: HashMap::new(),
            follows,
        }
    }

    pub(super) fn claim(
        &mut self,
        key: Key,
        info: &FileInfo,
        node: &Arc<Node>,
        listed: impl FnOnce() -> Listed,
    ) -> Claim {
        let is_full = self.groups.len() >= MOST;
        match self.groups.entry(key) {
            Entry::Vacant(_) if is_full => Claim::Unknown,
            Entry::Vacant(place) => {
                place.insert(Group {
                    left: info.links - 1,
                    state: State::Copying(Vec::new()),
                });
                Claim::First
            }
            Entry::Occupied(mut place) => match &mut place.get_mut().state {
                State::Copying(waiting) => {
                    node.enter();
                    waiting.push((node.clone(), listed()));
                    Claim::Waits
                }
                State::There(first) => {
                    let first = first.clone();
                    let group = place.get_mut();
                    group.left = group.left.saturating_sub(1);
                    if group.left == 0 && !self.follows {
                        place.remove();
                    }
                    Claim::Another(first)
                }
            },
        }
    }

    /// The first name is there, or is not; gives back who waited for that.
    pub(super) fn settle(&mut self, key: Key, first: Option<First>) -> Vec<(Arc<Node>, Listed)> {
        let Entry::Occupied(mut place) = self.groups.entry(key) else {
            return Vec::new();
        };
        let group = place.get_mut();
        let state = match first {
            Some(first) => std::mem::replace(&mut group.state, State::There(first)),
            None => place.remove().state,
        };
        match state {
            State::Copying(waiting) => waiting,
            State::There(_) => Vec::new(),
        }
    }
}

/// Gives a file that was copied one more name.
pub(super) fn add_name(
    tree: &Tree,
    first: &First,
    ends: &Ends,
    to: &OsStr,
    source: &FileInfo,
) -> Result<Placed, Cause> {
    let sys = tree.sys();
    let from = first.node.destination(tree)?;
    let directory = ends.destination.as_fd();
    let make = |new: &OsStr| sys.add_name(from.as_fd(), &first.name, directory, new);
    let placed = place(tree, ends, to, source, Some(&first.made), &make)?;
    if placed == Placed::Made {
        // Somebody may have put another file there since it was copied.
        let found = sys.stat_at(directory, to);
        if !matches!(found, Ok(found) if found.is_same_file(&first.made)) {
            let _ = sys.unlink(directory, to);
            return Err(crate::transfer::at_destination(rustix::io::Errno::NOENT));
        }
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Kind;

    /// <https://github.com/osscontainertools/kaniko/issues/978>: every file system counts from 1.
    #[test]
    fn kaniko_978_one_number_on_two_devices_is_two_files() {
        let info = |device, links| FileInfo {
            device,
            inode: 3,
            links,
            kind: Kind::Regular,
            ..FileInfo::of_feed()
        };
        assert_ne!(Key::of(&info(1, 2)), Key::of(&info(2, 2)));
        assert_eq!(Key::of(&info(1, 2)), Key::of(&info(1, 2)));
        assert!(Key::of(&info(1, 1)).is_none());
    }
}
