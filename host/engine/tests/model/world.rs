//! File systems in memory: files, directories and links, and the descriptors that are open on them.
//! What they answer to a system call stands in `system.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, pipe};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use copyist_engine::sys::{FileInfo, Kind, Result, Time};
use copyist_engine::{Environment, Errno, Handle, Platform, Side};
use rustix::fs::OFlags;

use crate::content::Content;
use crate::schedule::{Change, Fault, Fired, Meddling, Op, Rule, Schedule};

/// A file, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(usize);

/// The directory that all others are beneath.
pub(crate) const ROOT: Id = Id(0);

/// Names and paths that are longer are none (limits.h).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;
/// So many links are followed in one path.
const MOST_LINKS: usize = 40;

/// A file with more bytes is not kept in the history.
const MOST_REMEMBERED: u64 = 64 << 20;

/// What a file is.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    File(Content),
    Directory(BTreeMap<OsString, Id>),
    Link(PathBuf),
    Fifo,
    Socket,
}

/// A file with what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) form: Form,
    pub(crate) device: u64,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) accessed: Time,
    pub(crate) modified: Time,
    pub(crate) xattrs: BTreeMap<OsString, Vec<u8>>,
    /// Whether it differs from what is on stable storage.
    pub(crate) dirty: bool,
    pub(crate) links: usize,
}

impl Node {
    pub(crate) fn new(form: Form, device: u64, mode: u32) -> Self {
        Self {
            form,
            device,
            mode,
            owner: 0,
            group: 0,
            accessed: Time::default(),
            modified: Time::default(),
            xattrs: BTreeMap::new(),
            dirty: true,
            links: 0,
        }
    }

    pub(crate) fn content(&self) -> Option<&Content> {
        match &self.form {
            Form::File(content) => Some(content),
            _ => None,
        }
    }

    fn names(&self) -> Option<&BTreeMap<OsString, Id>> {
        match &self.form {
            Form::Directory(names) => Some(names),
            _ => None,
        }
    }

    /// Whether both have the same bytes and attributes. Not the time of access, which whoever reads
    /// changes.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let same_form = match (&self.form, &other.form) {
            (Form::File(ours), Form::File(theirs)) => {
                ours.size() == theirs.size() && ours.bytes() == theirs.bytes()
            }
            (Form::Link(ours), Form::Link(theirs)) => ours == theirs,
            (Form::Directory(_), Form::Directory(_))
            | (Form::Fifo, Form::Fifo)
            | (Form::Socket, Form::Socket) => true,
            _ => false,
        };
        same_form
            && (self.mode, self.owner, self.group, self.modified)
                == (other.mode, other.owner, other.group, other.modified)
            && self.xattrs == other.xattrs
    }
}

/// Whether and how storage is shared on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clones {
    Never(Errno),
    Always,
    /// The two files can never share, and it says `EINVAL` (btrfs, of which one has no checksums).
    Mismatch,
}

/// What copy_file_range(2) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranges {
    Never(Errno),
    Copies,
    /// Where blocks allow.
    Shares,
}

/// What lseek(2) says of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seeks {
    Honest,
    /// All is data, whatever it is.
    AllData,
    Refuses(Errno),
}

/// What fstat(2) says of the length of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Truth,
    /// procfs.
    Nothing,
    /// sysfs: this, without blocks.
    Page(u64),
}

/// How the system and its file systems behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) platform: Platform,
    pub(crate) clones: Clones,
    pub(crate) ranges: Ranges,
    /// What sendfile(2) answers, if it does not work.
    pub(crate) sends: Option<Errno>,
    /// A data call moves no more than this.
    pub(crate) most: usize,
    /// Files without a name can be made.
    pub(crate) unnamed: bool,
    /// The file systems are known to report every error at once.
    pub(crate) local: bool,
    pub(crate) seeks: Seeks,
    pub(crate) punches: bool,
    /// Extended attributes can be kept.
    pub(crate) xattrs: bool,
    pub(crate) umask: u32,
    pub(crate) says: Says,
    /// What fstat(2) says to be a good size.
    pub(crate) block_size: u64,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            platform: Platform::Linux,
            clones: Clones::Never(Errno::OPNOTSUPP),
            ranges: Ranges::Copies,
            sends: None,
            most: 0x7FFF_F000,
            unnamed: true,
            local: true,
            seeks: Seeks::Honest,
            punches: true,
            xattrs: true,
            umask: 0o022,
            says: Says::Truth,
            block_size: 4096,
        }
    }
}

/// An open descriptor.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: Id,
    pub(crate) position: u64,
    pub(crate) flags: OFlags,
    pub(crate) side: Side,
    /// Whether the test holds it, and not the copier.
    theirs: bool,
    /// The other end of the pipe that the descriptor really is. It ends when that is closed.
    beacon: PipeReader,
}

/// All files by their paths and numbers, as they were at some time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) names: BTreeMap<PathBuf, Id>,
    pub(crate) nodes: Vec<Node>,
}

impl Snapshot {
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0]
    }

    /// What has this path, not following a link.
    pub(crate) fn at(&self, path: &str) -> Option<Id> {
        self.names.get(Path::new(path)).copied()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) habits: Habits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    nodes: Vec<Node>,
    open: HashMap<RawFd, Open>,
    pub(crate) schedule: Schedule,
    /// The file that is read: what a change changes.
    source: Option<Id>,
    /// What it held, first and after each change.
    history: Vec<Vec<u8>>,
    /// Which of that the copier was first told the length of.
    told: Option<usize>,
    /// The name that is written: what is meddled with.
    target: Option<(Id, OsString)>,
    /// The files that others made.
    foreign: Vec<Id>,
    /// The files that the copier made.
    made: BTreeSet<Id>,
    /// The files of others that the copier took a name from.
    wronged: BTreeSet<Id>,
    /// The files of others that the copier put its own in the place of.
    displaced: BTreeSet<Id>,
    /// The files that the copier changed.
    touched: BTreeSet<Id>,
    /// Files that got a name while they were not on stable storage.
    named_dirty: BTreeSet<Id>,
    clock: i64,
}

impl World {
    /// With nothing but its root.
    pub(crate) fn new(habits: Habits) -> Arc<Self> {
        let mut root = Node::new(Form::Directory(BTreeMap::new()), 1, 0o755);
        root.links = 1;
        let state = State {
            nodes: vec![root],
            clock: 1_000_000,
            ..State::default()
        };
        Arc::new(Self {
            habits,
            state: Mutex::new(state),
        })
    }

    /// A new memory of what does not work, over this system.
    pub(crate) fn environment(self: &Arc<Self>) -> Environment {
        Environment::new(self.clone())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a file under a name.
    pub(crate) fn add(&self, directory: Id, name: &str, node: Node) -> Id {
        let mut state = self.state();
        let id = state.make(node);
        state.bind(directory, name.as_ref(), id);
        id
    }

    /// Gives a file one more name.
    pub(crate) fn link(&self, directory: Id, name: &str, id: Id) {
        self.state().bind(directory, name.as_ref(), id);
    }

    /// Makes a file longer by a hole.
    pub(crate) fn stretch(&self, id: Id, length: u64) {
        let mut state = self.state();
        if let Form::File(content) = &mut state.nodes[id.0].form {
            content.truncate(length);
        }
    }

    /// A descriptor as a caller has one.
    pub(crate) fn hold(&self, id: Id, flags: OFlags, position: u64, side: Side) -> Handle {
        let mut state = self.state();
        let fd = state.open_id(id, flags, side);
        if let Some(open) = state.open.get_mut(&fd.as_raw_fd()) {
            open.position = position;
            open.theirs = true;
        }
        Arc::new(File::from(fd))
    }

    /// What a descriptor of the caller's is like.
    pub(crate) fn held(&self, handle: &Handle) -> (u64, OFlags) {
        let state = self.state();
        let open = &state.open[&handle.as_raw_fd()];
        (open.position, open.flags)
    }

    /// Says which file is read and which name is written, and what goes wrong from now on.
    pub(crate) fn begin(&self, source: Option<Id>, target: Option<(Id, &str)>, rules: Vec<Rule>) {
        let mut state = self.state();
        state.source = source;
        state.target = target.map(|(directory, name)| (directory, name.into()));
        state.history.clear();
        state.remember();
        state.told = None;
        state.schedule = Schedule::new(rules);
        state.foreign.clear();
        state.made.clear();
        state.wronged.clear();
        state.displaced.clear();
        state.touched.clear();
        state.named_dirty.clear();
        // What was there before is on the disk.
        for node in &mut state.nodes {
            node.dirty = false;
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state();
        let mut names = BTreeMap::new();
        let mut directories = vec![(PathBuf::new(), ROOT)];
        while let Some((path, id)) = directories.pop() {
            for (name, id) in state.nodes[id.0].names().into_iter().flatten() {
                let path = path.join(name);
                if state.nodes[id.0].names().is_some() {
                    directories.push((path.clone(), *id));
                }
                names.insert(path, *id);
            }
        }
        Snapshot {
            names,
            nodes: state.nodes.clone(),
        }
    }

    /// How many descriptors the copier has left open.
    pub(crate) fn left_open(&self) -> usize {
        let mut state = self.state();
        let ours = state.open.values_mut().filter(|open| !open.theirs);
        ours.filter_map(|open| {
            // An end without a writer; else there is nothing to read, and never will be.
            let is_open = match open.beacon.read(&mut [0]) {
                Ok(_) => false,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            is_open.then_some(())
        })
        .count()
    }
}

impl State {
    pub(crate) fn history(&self) -> &[Vec<u8>] {
        &self.history
    }

    /// Which of the history the copier first knew of.
    pub(crate) fn told(&self) -> usize {
        self.told.unwrap_or(0)
    }

    /// The copier is told of this file.
    pub(crate) fn tell(&mut self, id: Id) {
        if self.source == Some(id) && self.told.is_none() {
            self.told = self.history.len().checked_sub(1);
        }
    }

    pub(crate) fn foreign(&self) -> &[Id] {
        &self.foreign
    }

    pub(crate) fn made(&self) -> &BTreeSet<Id> {
        &self.made
    }

    pub(crate) fn wronged(&self) -> &BTreeSet<Id> {
        &self.wronged
    }

    pub(crate) fn displaced(&self) -> &BTreeSet<Id> {
        &self.displaced
    }

    pub(crate) fn touched(&self) -> &BTreeSet<Id> {
        &self.touched
    }

    pub(crate) fn named_dirty(&self) -> &BTreeSet<Id> {
        &self.named_dirty
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0]
    }

    /// A file that the copier is about to change.
    pub(crate) fn touch(&mut self, id: Id) -> &mut Node {
        self.touched.insert(id);
        let node = &mut self.nodes[id.0];
        node.dirty = true;
        node
    }

    /// Its content, which the copier is about to change.
    pub(crate) fn touch_content(&mut self, id: Id) -> Result<&mut Content> {
        let now = self.now();
        let node = self.touch(id);
        node.modified = now;
        match &mut node.form {
            Form::File(content) => Ok(content),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn content(&self, id: Id) -> Result<&Content> {
        match &self.nodes[id.0].form {
            Form::File(content) => Ok(content),
            Form::Directory(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn clean(&mut self, id: Id) {
        self.nodes[id.0].dirty = false;
    }

    /// A time later than all before.
    pub(crate) fn now(&mut self) -> Time {
        self.clock += 1;
        Time {
            seconds: self.clock,
            nanoseconds: 0,
        }
    }

    pub(crate) fn make(&mut self, mut node: Node) -> Id {
        let now = self.now();
        if node.modified == Time::default() {
            (node.modified, node.accessed) = (now, now);
        }
        self.nodes.push(node);
        Id(self.nodes.len() - 1)
    }

    pub(crate) fn entry(&self, directory: Id, name: &OsStr) -> Option<Id> {
        self.nodes[directory.0].names()?.get(name).copied()
    }

    /// A file that the copier makes.
    pub(crate) fn make_new(&mut self, device: u64, mode: u32) -> Id {
        let id = self.make(Node::new(Form::File(Content::default()), device, mode));
        self.made.insert(id);
        id
    }

    /// The copier removes a name.
    pub(crate) fn remove(&mut self, directory: Id, name: &OsStr) {
        if let Some(id) = self.unbind(directory, name)
            && !self.made.contains(&id)
        {
            self.wronged.insert(id);
        }
    }

    /// The copier gives a file another name.
    pub(crate) fn rename(&mut self, directory: Id, old: &OsStr, new: &OsStr) -> Result<()> {
        let id = self.entry(directory, old).ok_or(Errno::NOENT)?;
        if let Some(there) = self.entry(directory, new) {
            if matches!(self.nodes[there.0].form, Form::Directory(_)) {
                return Err(Errno::ISDIR);
            }
            self.displaced.insert(there);
        }
        self.bind(directory, new, id);
        self.unbind(directory, old);
        Ok(())
    }

    /// Makes this the file of a name, whatever was.
    pub(crate) fn bind(&mut self, directory: Id, name: &OsStr, id: Id) {
        self.unbind(directory, name);
        self.nodes[id.0].links += 1;
        if self.nodes[id.0].dirty && !is_staged(name) {
            self.named_dirty.insert(id);
        }
        let node = &mut self.nodes[directory.0];
        node.dirty = true;
        if let Form::Directory(names) = &mut node.form {
            names.insert(name.to_owned(), id);
        }
    }

    pub(crate) fn unbind(&mut self, directory: Id, name: &OsStr) -> Option<Id> {
        let node = &mut self.nodes[directory.0];
        let Form::Directory(names) = &mut node.form else {
            return None;
        };
        let id = names.remove(name)?;
        node.dirty = true;
        self.nodes[id.0].links -= 1;
        Some(id)
    }

    pub(crate) fn open_id(&mut self, id: Id, flags: OFlags, side: Side) -> OwnedFd {
        let (beacon, lamp) = pipe().expect("a pipe");
        rustix::fs::fcntl_setfl(&beacon, OFlags::NONBLOCK).expect("a pipe that does not wait");
        let fd = OwnedFd::from(lamp);
        let open = Open {
            id,
            position: 0,
            flags,
            side,
            theirs: false,
            beacon,
        };
        self.open.insert(fd.as_raw_fd(), open);
        fd
    }

    pub(crate) fn opened(&self, fd: BorrowedFd<'_>) -> Result<&Open> {
        self.open.get(&fd.as_raw_fd()).ok_or(Errno::BADF)
    }

    pub(crate) fn opened_mut(&mut self, fd: BorrowedFd<'_>) -> Result<&mut Open> {
        self.open.get_mut(&fd.as_raw_fd()).ok_or(Errno::BADF)
    }

    pub(crate) fn close(&mut self, fd: OwnedFd) {
        self.open.remove(&fd.as_raw_fd());
    }

    pub(crate) fn info(&self, id: Id, habits: &Habits) -> FileInfo {
        let node = &self.nodes[id.0];
        let (kind, size, units) = match &node.form {
            Form::File(content) => (Kind::Regular, content.size(), content.units()),
            Form::Directory(_) => (Kind::Directory, 4096, 8),
            Form::Link(target) => (Kind::Symlink, target.as_os_str().len() as u64, 0),
            Form::Fifo => (Kind::Unknown, 0, 0),
            Form::Socket => (Kind::Socket, 0, 0),
        };
        let (size, blocks) = match habits.says {
            Says::Nothing if self.source == Some(id) => (0, 0),
            Says::Page(said) if self.source == Some(id) => (said, 0),
            _ => (size, units),
        };
        FileInfo {
            represents: 0,
            kind,
            device: node.device,
            inode: id.0 as u64 + 1,
            mode: node.mode,
            owner: node.owner,
            group: node.group,
            links: 1,
            size,
            blocks,
            block_size: habits.block_size,
            accessed: node.accessed,
            modified: node.modified,
            changed: node.modified,
        }
    }

    /// Does what somebody else does now, and tells the faults that the call itself is to have.
    pub(crate) fn enter(&mut self, op: Op) -> Vec<Fault> {
        let mut own = Vec::new();
        for fault in self.schedule.enter(op) {
            match fault {
                Fault::Source(change) => {
                    if self.change(change) {
                        self.note(op, Side::Source, fault);
                    }
                }
                Fault::Name(meddling) => {
                    // No system has a call that looks at a name and removes it.
                    if op != Op::Unlink && self.meddle(meddling) {
                        self.note(op, Side::Destination, fault);
                    }
                }
                fault => own.push(fault),
            }
        }
        own
    }

    fn note(&mut self, op: Op, side: Side, fault: Fault) {
        self.schedule.note(Fired {
            op,
            side,
            of_name: false,
            fault,
        });
    }

    fn change(&mut self, change: Change) -> bool {
        let Some(id) = self.source else {
            return false;
        };
        let now = self.now();
        let node = &mut self.nodes[id.0];
        let Form::File(content) = &mut node.form else {
            return false;
        };
        match change {
            Change::Grow(length) => {
                let bytes = crate::layout::noise(7, length);
                content.write(content.size(), bytes);
            }
            Change::Shrink(length) => content.truncate(content.size().saturating_sub(length)),
            Change::Rewrite(from, length) => {
                let from = from.min(content.size());
                let length = length.min(content.size() - from);
                content.write(from, crate::layout::noise(8, length));
            }
        }
        node.modified = now;
        self.remember();
        true
    }

    /// Keeps what the source holds now, unless it is more than a test reads.
    fn remember(&mut self) {
        let source = self.source.and_then(|id| self.nodes[id.0].content());
        if let Some(content) = source.filter(|content| content.size() < MOST_REMEMBERED) {
            let bytes = content.bytes();
            self.history.push(bytes);
        }
    }

    fn meddle(&mut self, meddling: Meddling) -> bool {
        let Some((directory, name)) = self.target.clone() else {
            return false;
        };
        let is_there = self.entry(directory, &name).is_some();
        match meddling {
            Meddling::Make if is_there => return false,
            Meddling::Remove => return self.unbind(directory, &name).is_some(),
            Meddling::Make | Meddling::Replace => {}
        }
        let mut content = Content::default();
        content.write(0, FOREIGN);
        let device = self.nodes[directory.0].device;
        let id = self.make(Node::new(Form::File(content), device, 0o644));
        self.nodes[id.0].dirty = false;
        self.bind(directory, &name, id);
        self.foreign.push(id);
        true
    }

    /// Follows a path. `Ok` has the directory of the last name, that name, and what has it; of a
    /// path that ends in `.` or `..` the name is empty, and what it leads to is there.
    pub(crate) fn resolve(
        &self,
        base: Id,
        stays: bool,
        path: &Path,
        follow: bool,
    ) -> Result<(Id, OsString, Option<Id>)> {
        let mut links = 0;
        self.walk(base, base, stays, path, follow, &mut links)
    }

    fn walk(
        &self,
        base: Id,
        start: Id,
        stays: bool,
        path: &Path,
        follow: bool,
        links: &mut usize,
    ) -> Result<(Id, OsString, Option<Id>)> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(Errno::INVAL);
        }
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        if bytes.len() >= PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let names_directory = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        let mut here = start;
        if path.is_absolute() {
            if stays {
                return Err(Errno::PERM);
            }
            here = ROOT;
        }
        let mut found = (here, OsString::new(), Some(here));
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let is_last = components.peek().is_none();
            let name = match component {
                Component::RootDir | Component::Prefix(_) => continue,
                Component::CurDir => {
                    self.directory(here)?;
                    found = (here, OsString::new(), Some(here));
                    continue;
                }
                Component::ParentDir => {
                    self.directory(here)?;
                    if here == base && stays {
                        return Err(Errno::PERM);
                    }
                    here = self.parent(here);
                    found = (here, OsString::new(), Some(here));
                    continue;
                }
                Component::Normal(name) => name,
            };
            self.directory(here)?;
            if name.len() > NAME_MAX {
                return Err(Errno::NAMETOOLONG);
            }
            let id = self.entry(here, name);
            found = (here, name.to_owned(), id);
            let Some(id) = id else {
                if is_last {
                    return Ok(found);
                }
                return Err(Errno::NOENT);
            };
            if let Form::Link(target) = &self.nodes[id.0].form
                && (!is_last || follow || names_directory)
            {
                *links += 1;
                if *links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                found = self.walk(base, here, stays, target, true, links)?;
                let Some(id) = found.2 else {
                    if is_last {
                        return Ok(found);
                    }
                    return Err(Errno::NOENT);
                };
                if !is_last {
                    here = id;
                }
            } else if !is_last {
                here = id;
            }
        }
        if names_directory && let Some(id) = found.2 {
            self.directory(id)?;
        }
        Ok(found)
    }

    fn directory(&self, id: Id) -> Result<()> {
        match self.nodes[id.0].form {
            Form::Directory(_) => Ok(()),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn parent(&self, id: Id) -> Id {
        let holds = |node: &Node| {
            node.names()
                .is_some_and(|names| names.values().any(|entry| *entry == id))
        };
        self.nodes.iter().position(holds).map_or(ROOT, Id)
    }
}

/// Whether a name is one that a copy gives meanwhile.
pub(crate) fn is_staged(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".copyist-")
}

/// What is in a file that somebody else makes.
pub(crate) const FOREIGN: &[u8] = b"somebody else's";
