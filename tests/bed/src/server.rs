//! The bed's side of the talk with the kernel.
//!
//! Files are read and written past the page cache, so that what a call moves, how often it is made
//! and what it answers is what the rules say. Nothing is remembered by the kernel either, so that
//! a file that changes by itself is seen to.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::io::Errno;

use crate::faults::Call;
use crate::store::{Content, Node, Store};

/// A test that waits so long for itself has failed, and can say so when it is answered: one that
/// panics while it has a file open whose close(2) hangs.
const LONGEST_HANG: Duration = Duration::from_secs(120);
/// Nothing is remembered.
const NOW: Duration = Duration::ZERO;
const GENERATION: Generation = Generation(0);
const HANDLE: FileHandle = FileHandle(0);

type Answer<T> = Result<T, Errno>;
type Work = Box<dyn FnOnce() + Send>;

/// What the test sees too.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Mutex<Store>,
    /// Another call waits to be answered.
    pub(crate) waits: Condvar,
}

/// To those who answer what was left hanging.
pub(crate) enum Late {
    /// A call of this file is not answered yet.
    Hangs(u64, Work),
    /// Calls of this file are answered now.
    Release(u64),
    /// All are.
    ReleaseAll,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) late: Sender<Late>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        // What a test's panic left is as good as what it found.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers what was left hanging when it is released, until nobody can ask for it any more. A
/// reply needs the descriptor of the connection, so it cannot be made by the test.
pub(crate) fn answer_late(messages: &Receiver<Late>) {
    let mut hanging: Vec<(u64, Work)> = Vec::new();
    loop {
        let released = match messages.recv_timeout(LONGEST_HANG) {
            Ok(Late::Hangs(inode, work)) => {
                hanging.push((inode, work));
                continue;
            }
            Ok(Late::Release(inode)) => hanging.extract_if(.., |(of, _)| *of == inode).collect(),
            Ok(Late::ReleaseAll) | Err(RecvTimeoutError::Timeout) => std::mem::take(&mut hanging),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for (_, work) in released {
            work();
        }
    }
}

impl Server {
    /// Does the work now, or when it is released.
    fn serve(&self, inode: INodeNo, call: Call, work: impl FnOnce(&mut Store) + Send + 'static) {
        self.serve_of_two(inode, None, call, work);
    }

    /// The same for a call of two files, either of which may hang.
    fn serve_of_two(
        &self,
        one: INodeNo,
        other: Option<INodeNo>,
        call: Call,
        work: impl FnOnce(&mut Store) + Send + 'static,
    ) {
        let mut store = self.shared.lock();
        let hangs = [Some(one), other]
            .into_iter()
            .flatten()
            .find(|inode| !store.enter(inode.0, call));
        let Some(INodeNo(inode)) = hangs else {
            work(&mut store);
            return;
        };
        let shared = self.shared.clone();
        let work = Box::new(move || work(&mut shared.lock()));
        // Under the lock, so that a release comes after it.
        if self.late.send(Late::Hangs(inode, work)).is_ok() {
            self.shared.waits.notify_all();
        }
    }
}

fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

/// How a request that failed is answered, whatever it would be answered with if it had not.
macro_rules! or_fail {
    ($answer:expr, $reply:ident) => {
        match $answer {
            Ok(answer) => answer,
            Err(error) => return $reply.error(errno(error)),
        }
    };
}

/// A change of a file's attributes.
#[derive(Clone, Copy)]
struct Change {
    mode: Option<u32>,
    owner: Option<u32>,
    group: Option<u32>,
    size: Option<u64>,
    accessed: Option<TimeOrNow>,
    modified: Option<TimeOrNow>,
}

impl Change {
    fn call(&self) -> Call {
        if self.size.is_some() {
            Call::Truncate
        } else if self.mode.is_some() {
            Call::Chmod
        } else if self.owner.is_some() || self.group.is_some() {
            Call::Chown
        } else {
            Call::SetTimes
        }
    }

    fn apply(&self, node: &mut Node) -> Answer<()> {
        node.allows(self.call())?;
        if let Some(size) = self.size {
            node.resize(size)?;
        }
        if let Some(mode) = self.mode {
            node.mode = mode & 0o7777;
        }
        node.owner = self.owner.unwrap_or(node.owner);
        node.group = self.group.unwrap_or(node.group);
        if let Some(time) = self.accessed {
            node.accessed = at(time);
        }
        if let Some(time) = self.modified {
            node.modified = at(time);
        }
        node.touch();
        Ok(())
    }
}

/// fuser counts the nanoseconds of a time before 1970 from the wrong end.
fn at(time: TimeOrNow) -> SystemTime {
    let time = match time {
        TimeOrNow::Now => return SystemTime::now(),
        TimeOrNow::SpecificTime(time) => time,
    };
    match SystemTime::UNIX_EPOCH.duration_since(time) {
        Ok(before) => {
            SystemTime::UNIX_EPOCH - Duration::from_secs(before.as_secs())
                + Duration::from_nanos(before.subsec_nanos().into())
        }
        Err(_) => time,
    }
}

fn owner(request: &Request) -> (u32, u32) {
    (request.uid(), request.gid())
}

fn make(store: &mut Store, parent: INodeNo, name: &OsStr, node: Node) -> Answer<FileAttr> {
    let inode = store.add(parent.0, name, node)?;
    Ok(store.node(inode)?.describe(inode))
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.serve(parent, Call::Lookup, move |store| {
            let inode = or_fail!(store.find(parent.0, &name), reply);
            let node = or_fail!(store.node(inode), reply);
            reply.entry(&NOW, &node.describe(inode), GENERATION);
        });
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.serve(inode, Call::GetAttributes, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::GetAttributes), reply);
            reply.attr(&NOW, &node.describe(inode.0));
        });
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        owner: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change {
            mode,
            owner,
            group,
            size,
            accessed,
            modified,
        };
        self.serve(inode, change.call(), move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(change.apply(node), reply);
            reply.attr(&NOW, &node.describe(inode.0));
        });
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        self.serve(inode, Call::Other, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            match &node.content {
                Content::Link(target) => reply.data(target.as_os_str().as_encoded_bytes()),
                _ => reply.error(errno(Errno::INVAL)),
            }
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let content = match mode & libc::S_IFMT {
            libc::S_IFIFO => Content::Special(FileType::NamedPipe, 0),
            libc::S_IFSOCK => Content::Special(FileType::Socket, 0),
            libc::S_IFCHR => Content::Special(FileType::CharDevice, device),
            libc::S_IFBLK => Content::Special(FileType::BlockDevice, device),
            _ => Content::File(Vec::new()),
        };
        let node = Node::new(content, mode, owner(request));
        let name = name.to_owned();
        self.serve(parent, Call::Other, move |store| {
            let made = or_fail!(make(store, parent, &name, node), reply);
            reply.entry(&NOW, &made, GENERATION);
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let node = Node::new(Content::Directory(Default::default()), mode, owner(request));
        let name = name.to_owned();
        self.serve(parent, Call::Other, move |store| {
            let made = or_fail!(make(store, parent, &name, node), reply);
            reply.entry(&NOW, &made, GENERATION);
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let node = Node::new(Content::Link(target.to_owned()), 0o777, owner(request));
        let name = name.to_owned();
        self.serve(parent, Call::Other, move |store| {
            let made = or_fail!(make(store, parent, &name, node), reply);
            reply.entry(&NOW, &made, GENERATION);
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let inode = self.shared.lock().find(parent.0, name);
        let inode = INodeNo(or_fail!(inode, reply));
        let name = name.to_owned();
        self.serve(inode, Call::Unlink, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Unlink), reply);
            or_fail!(store.unlink(parent.0, &name), reply);
            reply.ok();
        });
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.serve(parent, Call::Other, move |store| {
            or_fail!(store.unlink(parent.0, &name), reply);
            reply.ok();
        });
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let inode = self.shared.lock().find(parent.0, name);
        let inode = INodeNo(or_fail!(inode, reply));
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.serve(inode, Call::Rename, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Rename), reply);
            let renamed = store.rename(
                (parent.0, &name),
                (new_parent.0, &new_name),
                flags.contains(RenameFlags::RENAME_NOREPLACE),
                flags.contains(RenameFlags::RENAME_EXCHANGE),
            );
            or_fail!(renamed, reply);
            reply.ok();
        });
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.serve(inode, Call::Link, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Link), reply);
            or_fail!(store.link(inode.0, parent.0, &name), reply);
            let node = or_fail!(store.node(inode.0), reply);
            reply.entry(&NOW, &node.describe(inode.0), GENERATION);
        });
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.serve(inode, Call::Open, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Open), reply);
            reply.opened(HANDLE, FopenFlags::FOPEN_DIRECT_IO);
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let node = Node::new(Content::File(Vec::new()), mode, owner(request));
        let name = name.to_owned();
        self.serve(parent, Call::Create, move |store| {
            let made = match make(store, parent, &name, node) {
                Err(Errno::EXIST) if flags & libc::O_EXCL == 0 => store
                    .find(parent.0, &name)
                    .and_then(|inode| Ok(store.node(inode)?.describe(inode))),
                made => made,
            };
            let made = or_fail!(made, reply);
            let direct = FopenFlags::FOPEN_DIRECT_IO;
            reply.created(&NOW, &made, GENERATION, HANDLE, direct);
        });
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.serve(inode, Call::Read, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            let bytes = or_fail!(node.read(offset, size.into()), reply);
            reply.data(&bytes);
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let bytes = bytes.to_vec();
        let appends = flags.0 & libc::O_APPEND != 0;
        self.serve(inode, Call::Write, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            let written = or_fail!(node.write(offset, appends, &bytes), reply);
            reply.written(u32::try_from(written).unwrap_or(u32::MAX));
        });
    }

    fn copy_file_range(
        &self,
        _: &Request,
        source: INodeNo,
        _: FileHandle,
        source_offset: u64,
        destination: INodeNo,
        _: FileHandle,
        destination_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        self.serve_of_two(source, Some(destination), Call::CopyRange, move |store| {
            let copied = store.copy_range(
                (source.0, source_offset),
                (destination.0, destination_offset),
                length.min(u32::MAX.into()),
            );
            let copied = or_fail!(copied, reply);
            reply.written(u32::try_from(copied).unwrap_or(u32::MAX));
        });
    }

    fn lseek(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.serve(inode, Call::Seek, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            let offset = or_fail!(u64::try_from(offset).map_err(|_| Errno::NXIO), reply);
            let found = or_fail!(node.seek(offset, whence == libc::SEEK_DATA), reply);
            reply.offset(i64::try_from(found).unwrap_or(i64::MAX));
        });
    }

    fn flush(&self, _: &Request, inode: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.serve(inode, Call::Flush, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Flush), reply);
            reply.ok();
        });
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.serve(inode, Call::Release, move |_| reply.ok());
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.serve(inode, Call::Sync, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Sync), reply);
            reply.ok();
        });
    }

    fn fsyncdir(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.fsync(request, inode, handle, data_only, reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.serve(inode, Call::Allocate, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::Allocate), reply);
            or_fail!(node.allocate(offset, length, mode), reply);
            reply.ok();
        });
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.serve(inode, Call::List, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::List), reply);
            let Content::Directory(names) = &node.content else {
                return reply.error(errno(Errno::NOTDIR));
            };
            let names = [(".".into(), inode.0), ("..".into(), inode.0)]
                .into_iter()
                .chain(names.clone())
                .zip(1..)
                .skip(usize::try_from(offset).unwrap_or(usize::MAX));
            for ((name, inode), next) in names {
                let kind = store.node(inode).map(|node| node.describe(inode).kind);
                let kind = kind.unwrap_or(FileType::RegularFile);
                if reply.add(INodeNo(inode), next, kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, inode: INodeNo, reply: ReplyStatfs) {
        self.serve(inode, Call::Other, move |_| {
            const BLOCKS: u64 = 1 << 18;
            reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, 4096, 255, 4096);
        });
    }

    fn setxattr(
        &self,
        _: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.to_owned(), value.to_vec());
        self.serve(inode, Call::SetAttribute, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::SetAttribute), reply);
            match node.attributes.contains_key(&name) {
                true if flags & libc::XATTR_CREATE != 0 => return reply.error(errno(Errno::EXIST)),
                false if flags & libc::XATTR_REPLACE != 0 => {
                    return reply.error(errno(Errno::NODATA));
                }
                _ => {}
            }
            node.attributes.insert(name, value);
            node.touch();
            reply.ok();
        });
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.serve(inode, Call::GetAttribute, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::GetAttribute), reply);
            let value = or_fail!(node.attributes.get(&name).ok_or(Errno::NODATA), reply);
            attribute(value, size, reply);
        });
    }

    fn listxattr(&self, _: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        self.serve(inode, Call::ListAttributes, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::ListAttributes), reply);
            let mut names = Vec::new();
            for name in node.attributes.keys() {
                names.extend(name.as_encoded_bytes());
                names.push(0);
            }
            attribute(&names, size, reply);
        });
    }

    fn removexattr(&self, _: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.serve(inode, Call::RemoveAttribute, move |store| {
            let node = or_fail!(store.node(inode.0), reply);
            or_fail!(node.allows(Call::RemoveAttribute), reply);
            or_fail!(node.attributes.remove(&name).ok_or(Errno::NODATA), reply);
            node.touch();
            reply.ok();
        });
    }
}

/// An attribute, or how much room it needs, or that there is too little.
fn attribute(value: &[u8], room: u32, reply: ReplyXattr) {
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    match room {
        0 => reply.size(length),
        room if room < length => reply.error(errno(Errno::RANGE)),
        _ => reply.data(value),
    }
}
