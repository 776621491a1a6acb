//! The files of a bed, in memory, and what their rules make of a call.
//!
//! Nothing here makes a system call, so a lock on it is never held across one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};
use rustix::io::Errno;

use crate::faults::{Call, Holes, Length, Rule, Size, When};

type Result<T> = std::result::Result<T, Errno>;

/// The inode of the root.
pub(crate) const ROOT: u64 = 1;
/// A test that makes a larger file made a mistake.
const LARGEST: u64 = 1 << 28;
/// The unit of allocation, and what holes are a multiple of.
const PAGE: usize = 4096;

/// A file, a directory or something else with a name.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) rules: Vec<Rule>,
    /// How often each of the rules has been met, for those that wear out.
    met: Vec<u32>,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) links: u32,
    pub(crate) accessed: SystemTime,
    pub(crate) modified: SystemTime,
    changed: SystemTime,
    pub(crate) attributes: BTreeMap<OsString, Vec<u8>>,
    /// How often each call was made of it.
    pub(crate) calls: BTreeMap<Call, u64>,
    /// How many calls of it wait to be answered.
    pub(crate) waiting: usize,
    /// From now on nothing hangs.
    pub(crate) released: bool,
}

#[derive(Debug)]
pub(crate) enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, u64>),
    Link(PathBuf),
    /// A FIFO, a socket or a device, which the kernel plays by itself.
    Special(FileType, u32),
}

/// All of them. An inode number is never used again.
#[derive(Debug)]
pub(crate) struct Store {
    nodes: BTreeMap<u64, Node>,
    /// The rules of files that are made with these names.
    pub(crate) expected: BTreeMap<OsString, Vec<Rule>>,
    /// The rules of every other file that is made.
    pub(crate) fresh: Vec<Rule>,
    /// How often each call was made of anything.
    pub(crate) calls: BTreeMap<Call, u64>,
    pub(crate) released: bool,
}

impl Node {
    pub(crate) fn new(content: Content, mode: u32, (owner, group): (u32, u32)) -> Self {
        let now = SystemTime::now();
        Self {
            content,
            rules: Vec::new(),
            met: Vec::new(),
            mode: mode & 0o7777,
            owner,
            group,
            links: 1,
            accessed: now,
            modified: now,
            changed: now,
            attributes: BTreeMap::new(),
            calls: BTreeMap::new(),
            waiting: 0,
            released: false,
        }
    }

    pub(crate) fn obey(&mut self, rules: &[Rule]) {
        self.rules = rules.to_vec();
        self.met = vec![0; rules.len()];
    }

    fn kind(&self) -> FileType {
        match &self.content {
            Content::File(_) => FileType::RegularFile,
            Content::Directory(_) => FileType::Directory,
            Content::Link(_) => FileType::Symlink,
            Content::Special(kind, _) => *kind,
        }
    }

    pub(crate) fn bytes(&self) -> Result<&Vec<u8>> {
        match &self.content {
            Content::File(bytes) => Ok(bytes),
            Content::Directory(_) => Err(Errno::ISDIR),
            Content::Link(_) | Content::Special(..) => Err(Errno::INVAL),
        }
    }

    fn bytes_mut(&mut self) -> Result<&mut Vec<u8>> {
        match &mut self.content {
            Content::File(bytes) => Ok(bytes),
            Content::Directory(_) => Err(Errno::ISDIR),
            Content::Link(_) | Content::Special(..) => Err(Errno::INVAL),
        }
    }

    pub(crate) fn touch(&mut self) {
        self.changed = SystemTime::now();
    }

    fn wrote(&mut self) {
        self.modified = SystemTime::now();
        self.touch();
    }

    /// What its rules make of a call at an offset: how many of `length` bytes it may move.
    fn allowed(&mut self, call: Call, offset: u64, length: u64) -> Result<u64> {
        let mut length = length;
        for (rule, met) in self.rules.iter().zip(&mut self.met) {
            match *rule {
                Rule::Fails(this, errno, when) if this == call => match when {
                    When::Always => return Err(errno),
                    When::First(times) if *met < times => {
                        *met += 1;
                        return Err(errno);
                    }
                    When::First(_) => {}
                    When::From(from) if offset >= from => return Err(errno),
                    When::From(from) => length = length.min(from - offset),
                },
                Rule::AtMost(this, most) if this == call => length = length.min(most.into()),
                _ => {}
            }
        }
        Ok(length)
    }

    /// The same of a call that has no place and no length.
    pub(crate) fn allows(&mut self, call: Call) -> Result<()> {
        self.allowed(call, 0, 0).map(drop)
    }

    pub(crate) fn hangs(&self, call: Call) -> bool {
        !self.released && self.rules.contains(&Rule::Hangs(call))
    }

    fn is_said(&self, length: u64) -> u64 {
        let size = self.rules.iter().find_map(|rule| match rule {
            Rule::Says(size) => Some(*size),
            _ => None,
        });
        match size {
            None => length,
            Some(Size::Zero) => 0,
            Some(Size::Over(by)) => length + by,
            Some(Size::Under(by)) => length.saturating_sub(by),
        }
    }

    /// Bytes were taken from it.
    fn taken(&mut self) {
        let mut becomes = None;
        for (rule, met) in self.rules.iter().zip(&mut self.met) {
            if let Rule::Becomes(length) = rule
                && *met == 0
            {
                *met = 1;
                becomes = Some(*length);
            }
        }
        if let Some(becomes) = becomes
            && let Ok(bytes) = self.bytes_mut()
        {
            match becomes {
                Length::Cut(length) => bytes.truncate(index(length)),
                Length::Longer(by) => bytes.resize(bytes.len() + index(by), b'+'),
            }
            self.wrote();
        }
    }

    pub(crate) fn describe(&self, inode: u64) -> FileAttr {
        let (size, blocks, special) = match &self.content {
            Content::File(bytes) => {
                let said = self.rules.iter().find_map(|rule| match rule {
                    Rule::Blocks(blocks) => Some(*blocks),
                    _ => None,
                });
                let pages = if self.rules.contains(&Rule::Holes(Holes::ZeroPages)) {
                    bytes.chunks(PAGE).filter(|page| !is_zero(page)).count()
                } else {
                    bytes.len().div_ceil(PAGE)
                };
                let blocks = said.unwrap_or(pages as u64 * 8);
                (self.is_said(bytes.len() as u64), blocks, 0)
            }
            Content::Directory(names) => (names.len() as u64, 0, 0),
            Content::Link(target) => (target.as_os_str().len() as u64, 0, 0),
            Content::Special(_, device) => (0, 0, *device),
        };
        FileAttr {
            ino: INodeNo(inode),
            size,
            blocks,
            atime: self.accessed,
            mtime: self.modified,
            ctime: self.changed,
            crtime: self.changed,
            kind: self.kind(),
            // Twelve bits.
            perm: u16::try_from(self.mode & 0o7777).unwrap_or_default(),
            nlink: self.links,
            uid: self.owner,
            gid: self.group,
            rdev: special,
            blksize: 4096,
            flags: 0,
        }
    }

    pub(crate) fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let length = self.allowed(Call::Read, offset, length)?;
        let piece = piece(self.bytes()?, offset, length).to_vec();
        self.taken();
        Ok(piece)
    }

    pub(crate) fn write(&mut self, offset: u64, appends: bool, bytes: &[u8]) -> Result<u64> {
        let offset = if appends {
            self.bytes()?.len() as u64
        } else {
            offset
        };
        let length = self.allowed(Call::Write, offset, bytes.len() as u64)?;
        self.put(offset, &bytes[..index(length)])?;
        Ok(length)
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .filter(|end| *end <= LARGEST)
            .ok_or(Errno::FBIG)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let content = self.bytes_mut()?;
        if content.len() < index(end) {
            content.resize(index(end), 0);
        }
        content[index(offset)..index(end)].copy_from_slice(bytes);
        self.wrote();
        Ok(())
    }

    pub(crate) fn resize(&mut self, length: u64) -> Result<()> {
        if length > LARGEST {
            return Err(Errno::FBIG);
        }
        self.bytes_mut()?.resize(index(length), 0);
        self.wrote();
        Ok(())
    }

    /// fallocate(2) by its mode: keep the size, and zero a range.
    pub(crate) fn allocate(&mut self, offset: u64, length: u64, mode: i32) -> Result<()> {
        let keeps = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let zeros = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= LARGEST)
            .ok_or(Errno::FBIG)?;
        let bytes = self.bytes_mut()?;
        if !keeps && bytes.len() < index(end) {
            bytes.resize(index(end), 0);
        }
        if zeros {
            let end = index(end).min(bytes.len());
            let start = index(offset).min(end);
            bytes[start..end].fill(0);
            self.wrote();
        }
        Ok(())
    }

    /// lseek(2) to data or to a hole.
    pub(crate) fn seek(&mut self, offset: u64, to_data: bool) -> Result<u64> {
        self.allows(Call::Seek)?;
        let length = self.bytes()?.len();
        if index(offset) >= length {
            return Err(Errno::NXIO);
        }
        let holes = self.rules.iter().find_map(|rule| match rule {
            Rule::Holes(holes) => Some(*holes),
            _ => None,
        });
        match (holes, to_data) {
            (None, true) | (Some(Holes::Everything), false) => Ok(offset),
            (None, false) => Ok(length as u64),
            (Some(Holes::Everything), true) => Err(Errno::NXIO),
            (Some(Holes::Backwards), _) => Ok(offset.saturating_sub(PAGE as u64)),
            (Some(Holes::Everywhere), _) => Ok(offset),
            (Some(Holes::ZeroPages), _) => {
                let mut at = index(offset);
                while at < length {
                    let page = at / PAGE * PAGE;
                    let next = length.min(page + PAGE);
                    if is_zero(&self.bytes()?[page..next]) != to_data {
                        return Ok(at as u64);
                    }
                    at = next;
                }
                if to_data {
                    Err(Errno::NXIO)
                } else {
                    Ok(length as u64)
                }
            }
        }
    }
}

impl Store {
    pub(crate) fn new(owner: (u32, u32)) -> Self {
        let root = Node::new(Content::Directory(BTreeMap::new()), 0o755, owner);
        Self {
            nodes: BTreeMap::from([(ROOT, root)]),
            expected: BTreeMap::new(),
            fresh: Vec::new(),
            calls: BTreeMap::new(),
            released: false,
        }
    }

    pub(crate) fn node(&mut self, inode: u64) -> Result<&mut Node> {
        self.nodes.get_mut(&inode).ok_or(Errno::NOENT)
    }

    pub(crate) fn nodes(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.values_mut()
    }

    fn names(&mut self, directory: u64) -> Result<&mut BTreeMap<OsString, u64>> {
        match &mut self.node(directory)?.content {
            Content::Directory(names) => Ok(names),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(crate) fn find(&mut self, directory: u64, name: &OsStr) -> Result<u64> {
        self.names(directory)?
            .get(name)
            .copied()
            .ok_or(Errno::NOENT)
    }

    /// Gives a node that is new the name, which is free, and its rules.
    pub(crate) fn add(&mut self, directory: u64, name: &OsStr, mut node: Node) -> Result<u64> {
        if matches!(node.content, Content::File(_)) {
            node.obey(self.expected.get(name).unwrap_or(&self.fresh));
            node.allows(Call::Create)?;
        }
        let inode = self.nodes.keys().next_back().map_or(ROOT, |last| last + 1);
        let names = self.names(directory)?;
        if names.contains_key(name) {
            return Err(Errno::EXIST);
        }
        names.insert(name.to_owned(), inode);
        self.node(directory)?.wrote();
        self.nodes.insert(inode, node);
        Ok(inode)
    }

    pub(crate) fn link(&mut self, inode: u64, directory: u64, name: &OsStr) -> Result<()> {
        let names = self.names(directory)?;
        if names.contains_key(name) {
            return Err(Errno::EXIST);
        }
        names.insert(name.to_owned(), inode);
        self.node(directory)?.wrote();
        let node = self.node(inode)?;
        node.links += 1;
        node.touch();
        Ok(())
    }

    pub(crate) fn unlink(&mut self, directory: u64, name: &OsStr) -> Result<()> {
        let inode = self.find(directory, name)?;
        let node = self.node(inode)?;
        if matches!(&node.content, Content::Directory(names) if !names.is_empty()) {
            return Err(Errno::NOTEMPTY);
        }
        node.links = node.links.saturating_sub(1);
        node.touch();
        self.names(directory)?.remove(name);
        self.node(directory)?.wrote();
        Ok(())
    }

    pub(crate) fn rename(
        &mut self,
        (old, name): (u64, &OsStr),
        (new, new_name): (u64, &OsStr),
        exclusive: bool,
        exchange: bool,
    ) -> Result<()> {
        let inode = self.find(old, name)?;
        let there = self.find(new, new_name).ok();
        match there {
            None if exchange => return Err(Errno::NOENT),
            Some(_) if exclusive => return Err(Errno::EXIST),
            // Two names of one file: nothing happens.
            Some(there) if there == inode => return Ok(()),
            Some(_) if !exchange => self.unlink(new, new_name)?,
            _ => {}
        }
        match there {
            Some(there) if exchange => drop(self.names(old)?.insert(name.to_owned(), there)),
            _ => drop(self.names(old)?.remove(name)),
        }
        self.names(new)?.insert(new_name.to_owned(), inode);
        self.node(old)?.wrote();
        self.node(new)?.wrote();
        self.node(inode)?.touch();
        Ok(())
    }

    /// copy_file_range(2). The rules of both files count.
    pub(crate) fn copy_range(
        &mut self,
        (source, source_offset): (u64, u64),
        (destination, destination_offset): (u64, u64),
        length: u64,
    ) -> Result<u64> {
        let from = self.node(source)?;
        let length = from.allowed(Call::CopyRange, source_offset, length)?;
        let bytes = piece(from.bytes()?, source_offset, length).to_vec();
        let to = self.node(destination)?;
        let length = to.allowed(Call::CopyRange, destination_offset, bytes.len() as u64)?;
        to.put(destination_offset, &bytes[..index(length)])?;
        self.node(source)?.taken();
        Ok(length)
    }

    /// Counts a call, and says whether it is answered now.
    pub(crate) fn enter(&mut self, inode: u64, call: Call) -> bool {
        *self.calls.entry(call).or_default() += 1;
        let released = self.released;
        let Ok(node) = self.node(inode) else {
            return true;
        };
        *node.calls.entry(call).or_default() += 1;
        if released || !node.hangs(call) {
            return true;
        }
        node.waiting += 1;
        false
    }
}

fn piece(bytes: &[u8], offset: u64, length: u64) -> &[u8] {
    let start = index(offset).min(bytes.len());
    let end = start.saturating_add(index(length)).min(bytes.len());
    &bytes[start..end]
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Where in memory; beyond it there is nothing.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
