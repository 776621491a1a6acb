//! A part of a tree: a stack of directories, the top of which is being listed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::directory;
use super::file::Copying;
use super::node::Node;
use super::root;
use super::shared::Tree;
use crate::cancel::Cancel;
use crate::error::{Cause, Side};
use crate::pace::SLICE;
use crate::sys::{Listed, Listing};

/// Names that are given away at once.
const BATCH: usize = 64;
/// A part works alone at first: another thread costs as much as this many small files.
const ALONE: usize = 16;
/// The directories at the top of a stack whose descriptors stay open.
const OPEN: usize = 8;
/// Files that are written and not yet published, where all are synced before.
const STAGED: usize = 16;

/// Who runs the parts of trees.
pub trait Executor: Send + Sync {
    /// Whether one more part would be taken at once. It is asked for every entry.
    fn wants_more(&self) -> bool;

    /// Runs a part to its end, on any thread, now or later.
    fn execute(&self, part: Part);
}

/// Work on a tree that one thread does at a time.
///
/// A drop before its end ends the tree, as a defect of whoever runs it.
pub struct Part {
    pub(super) tree: Arc<Tree>,
    stack: Vec<Frame>,
    begins: bool,
    copying: Option<Copying>,
    /// Written, and to be published after one sync.
    staged: Vec<Copying>,
    /// Entries that it has done.
    done: usize,
    ended: bool,
}

/// What a part has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartStep {
    Ended,
    /// Others wait.
    Again,
    /// Something stands in the way that goes away by itself.
    Later(Duration),
}

/// A directory, and the names in it that are still to be done.
struct Frame {
    node: Arc<Node>,
    names: Names,
    /// They were counted when they were met first.
    again: bool,
}

enum Names {
    Listed(Listing),
    /// Of a batch, and of a directory far down the stack. What could not be read is told at its turn.
    Held(VecDeque<crate::sys::Result<Listed>>),
}

/// What became of an entry.
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is returned; a box would be an allocation a file"
)]
pub(super) enum Entered {
    Done,
    /// A directory to be listed.
    Directory(Arc<Node>),
    File(Copying),
}

impl Part {
    pub(super) fn first(tree: Arc<Tree>) -> Self {
        let mut part = Self::of(tree, Vec::new());
        part.begins = true;
        part
    }

    fn of(tree: Arc<Tree>, stack: Vec<Frame>) -> Self {
        tree.part_begins();
        Self {
            tree,
            stack,
            begins: false,
            copying: None,
            staged: Vec::new(),
            done: 0,
            ended: false,
        }
    }

    /// Works until it has ended, or should give way. `begin` is called before each step, which makes a
    /// few system calls.
    pub(crate) fn run(&mut self, begin: &dyn Fn(), is_waited_for: &dyn Fn() -> bool) -> PartStep {
        let started = Instant::now();
        loop {
            begin();
            if self.tree.is_stopped() {
                self.give_up();
                return PartStep::Ended;
            }
            match self.step() {
                PartStep::Again => {}
                other => return other,
            }
            if started.elapsed() > SLICE && is_waited_for() {
                return PartStep::Again;
            }
        }
    }

    /// Runs the part to its end on this thread, which sleeps where it has to.
    pub fn run_to_end(mut self) {
        loop {
            match self.run(&|| {}, &|| false) {
                PartStep::Ended => return,
                PartStep::Again => {}
                PartStep::Later(pause) => self.tree.cancel.sleep(pause),
            }
        }
    }

    fn step(&mut self) -> PartStep {
        if std::mem::take(&mut self.begins) {
            if let Err(cause) = self.begin() {
                self.tree.stop(cause, Some(self.tree.source.path.clone()));
            }
            return PartStep::Again;
        }
        if let Some(copying) = self.copying.take() {
            return self.go_on(copying);
        }
        let Some(top) = self.stack.last_mut() else {
            return self.end();
        };
        match top.names.next() {
            Some(Ok(listed)) => self.enter(&listed),
            Some(Err(errno)) => {
                let path = top.node.path();
                self.tree.failed(Cause::Io(Side::Source, errno), &path);
                if matches!(top.names, Names::Listed(_)) {
                    top.names = Names::Held(VecDeque::new());
                }
                PartStep::Again
            }
            None => {
                self.pop();
                PartStep::Again
            }
        }
    }

    fn begin(&mut self) -> Result<(), Cause> {
        self.tree.check()?;
        match root::open(&self.tree)? {
            root::Root::Directory(node) => self.push(node),
            root::Root::Entry(above, listed) => {
                self.stack.push(Frame {
                    node: above,
                    names: Names::Held(VecDeque::from([Ok(listed)])),
                    again: false,
                });
                Ok(())
            }
        }
    }

    fn enter(&mut self, listed: &Listed) -> PartStep {
        let Some(top) = self.stack.last() else {
            return PartStep::Again;
        };
        let node = top.node.clone();
        let counted = top.again;
        self.done += 1;
        match super::name::enter(&self.tree, &node, listed, counted) {
            Ok(Entered::Done) => {}
            Ok(Entered::Directory(below)) => {
                if self.may_give_away() {
                    self.give_away_directory(below);
                } else if let Err(cause) = self.push(below) {
                    self.tree.failed(cause, &node.path_of(&listed.name));
                }
            }
            Ok(Entered::File(copying)) => return self.go_on(copying),
            Err(cause) => self.tree.failed(cause, &node.path_of(&listed.name)),
        }
        if self.may_give_away() {
            self.give_away_names();
        }
        PartStep::Again
    }

    /// Goes on with a file, as long as it is one step after the other.
    fn go_on(&mut self, mut copying: Copying) -> PartStep {
        let holds_back = self.tree.stages_files();
        let started = Instant::now();
        loop {
            match copying.step(&self.tree) {
                super::file::Moved::On => {}
                super::file::Moved::Later(pause) => {
                    self.copying = Some(copying);
                    return PartStep::Later(pause);
                }
                super::file::Moved::Ended(again) => {
                    self.do_again(again);
                    break;
                }
            }
            if holds_back && copying.is_staged() {
                self.staged.push(copying);
                if self.staged.len() >= STAGED {
                    self.publish_staged();
                }
                break;
            }
            // What ends the tree is seen between any two calls; who else waits for the thread, now and then.
            if self.tree.is_stopped() || started.elapsed() > Duration::from_millis(1) {
                self.copying = Some(copying);
                break;
            }
        }
        PartStep::Again
    }

    /// Entries that waited for another to be done.
    fn do_again(&mut self, again: Vec<(Arc<Node>, Listed)>) {
        for (node, listed) in again {
            self.stack.push(Frame {
                node,
                names: Names::Held(VecDeque::from([Ok(listed)])),
                again: true,
            });
        }
    }

    /// Syncs all that is staged, and gives it its names.
    fn publish_staged(&mut self) {
        let mut staged = std::mem::take(&mut self.staged);
        let on: BTreeMap<_, _> = staged
            .iter()
            .map(|copying| (copying.node.made.device, copying.node.clone()))
            .collect();
        for node in on.into_values() {
            let synced = node
                .destination(&self.tree)
                .and_then(|directory| self.tree.sync_file_system(&directory));
            if let Err(cause) = synced {
                let path = self.tree.destination.path.clone();
                self.tree.stop(cause, Some(path));
            }
        }
        for mut copying in staged.drain(..) {
            if self.tree.is_stopped() {
                copying.give_up(&self.tree);
                continue;
            }
            loop {
                match copying.step(&self.tree) {
                    super::file::Moved::On => {}
                    super::file::Moved::Later(pause) => self.tree.cancel.sleep(pause),
                    super::file::Moved::Ended(again) => {
                        self.do_again(again);
                        break;
                    }
                }
            }
        }
    }

    /// Begins to list a directory. Of those far down the stack the descriptors are given up.
    fn push(&mut self, node: Arc<Node>) -> Result<(), Cause> {
        let listing = match list(&self.tree, &node) {
            Ok(listing) => listing,
            Err(cause) => {
                directory::leave(&self.tree, node);
                return Err(cause);
            }
        };
        self.stack.push(Frame {
            node,
            names: Names::Listed(listing),
            again: false,
        });
        if let Some(far) = self.stack.len().checked_sub(OPEN + 1)
            && let Some(frame) = self.stack.get_mut(far)
        {
            frame.names.hold();
            frame.node.give_up_ends();
        }
        Ok(())
    }

    fn pop(&mut self) {
        let Some(Frame { node, names, .. }) = self.stack.pop() else {
            return;
        };
        drop(names);
        // What is staged in it must have its name before the directory gets its times.
        self.publish_staged();
        // Where the one above is the next to be listed. Another's is left to whoever works there.
        if let Some(parent) = &node.parent
            && let Some(top) = self.stack.last()
            && Arc::ptr_eq(parent, &top.node)
            && let Some(ends) = node.open_ends()
        {
            parent.find_from_below(&self.tree, &ends);
        }
        if node.is_shared() {
            // Nobody lists it any more; who is left in it opens it when it is their turn.
            node.give_up_ends();
        }
        directory::leave(&self.tree, node);
    }

    fn may_give_away(&self) -> bool {
        self.done > ALONE && self.tree.executor.wants_more()
    }

    fn give_away_directory(&self, node: Arc<Node>) {
        let mut part = Self::of(self.tree.clone(), Vec::new());
        match part.push(node.clone()) {
            Ok(()) => self.tree.executor.execute(part),
            Err(cause) => {
                self.tree.failed(cause, &node.path());
                part.give_up();
            }
        }
    }

    /// Gives the next names of the directory away, where there are as many.
    fn give_away_names(&mut self) {
        let Some(top) = self.stack.last_mut() else {
            return;
        };
        if top.names.is_short() {
            return;
        }
        let names = Names::Held(top.names.next_batch());
        let node = top.node.clone();
        if names.is_short() {
            top.put_back(names);
            return;
        }
        node.enter();
        let frame = Frame {
            node,
            names,
            again: top.again,
        };
        let part = Self::of(self.tree.clone(), vec![frame]);
        self.tree.executor.execute(part);
    }

    fn end(&mut self) -> PartStep {
        if !self.staged.is_empty() {
            self.publish_staged();
            return PartStep::Again;
        }
        self.ended = true;
        self.tree.part_ends();
        PartStep::Ended
    }

    /// Ends here: takes back the entry that is under way, and leaves what is finished.
    pub(crate) fn give_up(&mut self) {
        if self.ended {
            return;
        }
        for mut copying in self.copying.take().into_iter().chain(self.staged.drain(..)) {
            copying.give_up(&self.tree);
        }
        while let Some(Frame { node, names, .. }) = self.stack.pop() {
            drop(names);
            directory::leave(&self.tree, node);
        }
        self.ended = true;
        self.tree.part_ends();
    }

    /// What ends it.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.tree.cancel
    }

    /// Ends the tree, since nobody is to run its parts.
    pub(crate) fn refuse(&mut self) {
        self.tree.stop(Cause::Cancelled, None);
        self.give_up();
    }
}

fn list(tree: &Tree, node: &Arc<Node>) -> Result<Listing, Cause> {
    use std::os::fd::AsFd;
    let ends = node.ends(tree)?;
    let list = || tree.sys().entries(ends.source.as_fd());
    crate::staging::despite_signals(list).map_err(crate::transfer::at_source)
}

impl Frame {
    fn put_back(&mut self, names: Names) {
        if let Names::Held(mut names) = names {
            let rest = std::mem::replace(&mut self.names, Names::Held(VecDeque::new()));
            // There were fewer than a batch: the listing is at its end.
            if let Names::Held(rest) = rest {
                names.extend(rest);
            }
            self.names = Names::Held(names);
        }
    }
}

impl Names {
    fn next(&mut self) -> Option<crate::sys::Result<Listed>> {
        match self {
            Self::Listed(listing) => listing.next(),
            Self::Held(names) => names.pop_front(),
        }
    }

    /// As many as are given away at once, or all there are. A listing that failed is at its end.
    fn next_batch(&mut self) -> VecDeque<crate::sys::Result<Listed>> {
        let mut names = VecDeque::new();
        while names.len() < BATCH
            && let Some(name) = self.next()
        {
            let failed = name.is_err();
            names.push_back(name);
            if failed && matches!(self, Self::Listed(_)) {
                *self = Self::Held(VecDeque::new());
            }
        }
        names
    }

    /// Reads what is left, so that nothing need be open.
    fn hold(&mut self) {
        if let Self::Listed(listing) = self {
            let mut all = VecDeque::new();
            for name in listing {
                let failed = name.is_err();
                all.push_back(name);
                if failed {
                    break;
                }
            }
            *self = Self::Held(all);
        }
    }

    fn is_short(&self) -> bool {
        matches!(self, Self::Held(names) if names.len() < BATCH)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.ended {
            self.tree.stop(Cause::Panicked, None);
            self.give_up();
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("tree", &self.tree)
            .field("depth", &self.stack.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// No file has names, which is what the system says of one.
    #[test]
    fn what_could_not_be_listed_is_told_at_its_turn() {
        let file = tempfile::tempfile().unwrap();
        let mut names = Names::Listed(Listing::new(file.into()).unwrap());
        names.hold();
        assert_eq!(names.next(), Some(Err(Errno::NOTDIR)));
        assert_eq!(names.next(), None);
        let entry = |name: &str| {
            Ok(Listed {
                name: name.into(),
                kind: None,
            })
        };
        let all = [entry("a"), Err(Errno::IO), entry("b")];
        let mut names = Names::Held(all.clone().into());
        assert_eq!(names.next_batch(), all);
    }
}
