//! The system itself, with a record of every call, some of which a schedule fails or alters.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use copyist_engine::sys::{
    At, FileInfo, Interest, Kind, Listing, Readers, Result, Sys, Terminal, Time, Watch, Way, native,
};
use copyist_engine::{Environment, Errno, Platform, Side};
use rustix::fs::{Mode, OFlags};

/// A call of the seam. `Read` is both ways to read, `Write` is both ways to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Open,
    Close,
    Stat,
    IsLocal,
    StatAt,
    ReadLinkAt,
    StatusFlags,
    Clone,
    CloneRange,
    CopyRange,
    Probe,
    SendFile,
    Splice,
    ReadStream(Way),
    WriteStream(Way),
    Poll,
    Seek,
    SeekData,
    SeekHole,
    PunchHole,
    Reopen,
    Read,
    Write,
    Truncate,
    SetMode,
    SetTimes,
    SetOwner,
    XattrNames,
    Xattr,
    SetXattr,
    RemoveXattr,
    Advise,
    Sync,
    Lock,
    LockShared,
    /// What only trees ask for.
    Entries,
    Above,
    MakeDirectory,
    MakeLink,
    MakeNode,
    AddName,
    SetModeAt,
    SetOwnerAt,
    SetTimesAt,
    SyncFileSystem,
    Mount,
    HasWriter,
    Duplicate,
    List,
    Link,
    Rename,
    RenameExclusive,
    Unlink,
}

/// One call that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) op: Op,
    /// The end that it is about, where it is about one.
    pub(crate) side: Side,
    /// Where it reads.
    pub(crate) from: u64,
    /// Where it writes.
    pub(crate) to: u64,
    /// What it asked for, in bytes.
    pub(crate) length: usize,
    /// How a file is opened; of a sync, whether it is of a directory.
    pub(crate) flags: OFlags,
    /// What it was told; bytes for a call that moves some, else 0.
    pub(crate) answer: Result<usize>,
}

/// Which calls of one kind a rule is about, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Nth(usize),
    From(usize),
    /// The first, and every so many after it.
    Every(usize),
}

impl When {
    fn is(self, count: usize) -> bool {
        match self {
            Self::Nth(n) => count == n,
            Self::From(n) => count >= n,
            Self::Every(n) => (count - 1).is_multiple_of(n),
        }
    }
}

/// What happens in place of a call.
#[derive(Clone)]
pub(crate) enum Outcome {
    Fail(Errno),
    /// It claims success and does nothing: 0 bytes, or "no".
    Nothing,
    /// At most so many bytes are moved, and it says so.
    Short(usize),
    /// At most so many bytes, and none beyond this place in the source, are said to be moved; none
    /// are.
    Claim(usize, u64),
    /// Something else happens, then the call.
    After(Arc<dyn Fn() + Send + Sync>),
    Panic,
}

impl Outcome {
    pub(crate) fn after(hook: impl Fn() + Send + Sync + 'static) -> Self {
        Self::After(Arc::new(hook))
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(errno) => write!(f, "fails with {errno:?}"),
            Self::Nothing => f.write_str("does nothing"),
            Self::Short(most) => write!(f, "moves at most {most}"),
            Self::Claim(most, end) => write!(f, "claims at most {most} up to {end}"),
            Self::After(_) => f.write_str("comes after something else"),
            Self::Panic => f.write_str("panics"),
        }
    }
}

/// Whether somebody has a lease on the file of this name, asked at every open.
type Lease = (&'static str, Arc<dyn Fn() -> bool + Send + Sync>);
type Forge = Box<dyn Fn(Side, &mut FileInfo) + Send + Sync>;

/// See the module. Its file system makes no clones unless [`clones`](Self::clones) says so,
/// whatever the one below can do, so that the tests see the same calls everywhere.
pub(crate) struct Scheduled {
    native: Arc<dyn Sys>,
    rules: Vec<(Op, When, Outcome)>,
    lease: Option<Lease>,
    forge: Option<Forge>,
    clones: bool,
    unnamed: bool,
    most: usize,
    /// How the path of the source ends, and its device and inode once it was opened or looked at.
    source: Mutex<Option<(u64, u64)>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    opened: Vec<PathBuf>,
    counts: HashMap<Op, usize>,
}

/// The name of every source. A descriptor is the source's if it is of the file that was opened by
/// this name, or that [`Scheduled::source_is`] tells.
pub(crate) const SOURCE: &str = "source";

/// What every call answers once there were too many.
const SPUN: Errno = Errno::NOTRECOVERABLE;

impl Scheduled {
    pub(crate) fn new() -> Self {
        Self {
            native: native(),
            rules: Vec::new(),
            lease: None,
            forge: None,
            clones: false,
            unnamed: true,
            most: usize::MAX,
            source: Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Adds a rule. Of several about one call the first counts.
    pub(crate) fn rule(mut self, op: Op, when: When, outcome: Outcome) -> Self {
        self.rules.push((op, when, outcome));
        self
    }

    /// Opens of this name answer `EAGAIN` as long as `is_held` says so.
    pub(crate) fn lease(
        mut self,
        name: &'static str,
        is_held: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.lease = Some((name, Arc::new(is_held)));
        self
    }

    /// Changes what stat tells of a file.
    pub(crate) fn forge(
        mut self,
        forge: impl Fn(Side, &mut FileInfo) + Send + Sync + 'static,
    ) -> Self {
        self.forge = Some(Box::new(forge));
        self
    }

    /// The source says that all of it is allocated, so that nobody asks for its holes.
    pub(crate) fn dense(self) -> Self {
        self.forge(|side, info| {
            if side == Side::Source {
                info.blocks = info.size.div_ceil(512);
            }
        })
    }

    /// A clone succeeds. The bytes are the same; nothing is shared.
    pub(crate) fn clones(mut self) -> Self {
        self.clones = true;
        self
    }

    /// It has no files without a name.
    pub(crate) fn names_all(mut self) -> Self {
        self.unnamed = false;
        self
    }

    /// More calls than this all fail, and [`calls`](Self::calls) panics.
    pub(crate) fn at_most(mut self, calls: usize) -> Self {
        self.most = calls;
        self
    }

    /// The source of a copy that is not opened by its name.
    pub(crate) fn source_is(self, fd: impl AsFd) -> Self {
        self.note_source(fd.as_fd());
        self
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// A new memory of what does not work, over this system.
    pub(crate) fn environment(self: &Arc<Self>) -> Environment {
        Environment::new(self.clone())
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let calls = lock(&self.state).calls.clone();
        assert!(
            calls.len() <= self.most,
            "more than {} calls: {:?}",
            self.most,
            calls.iter().map(|call| call.op).collect::<Vec<_>>()
        );
        calls
    }

    /// The calls of one kind so far.
    pub(crate) fn calls_of(&self, op: Op) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.op == op);
        calls
    }

    /// The calls so far by their names.
    pub(crate) fn ops(&self) -> Vec<Op> {
        self.calls().iter().map(|call| call.op).collect()
    }

    /// The calls so far that are about one end, by their names.
    pub(crate) fn ops_about(&self, side: Side) -> Vec<Op> {
        let mut calls = self.calls();
        calls.retain(|call| call.side == side);
        calls.iter().map(|call| call.op).collect()
    }

    /// What was opened so far, in order.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        lock(&self.state).opened.clone()
    }

    /// Forgets the calls so far; the schedule goes on.
    pub(crate) fn forget(&self) {
        lock(&self.state).calls.clear();
    }

    fn note_source(&self, fd: BorrowedFd<'_>) {
        let info = self.native.stat(fd).expect("a file to look at");
        *lock(&self.source) = Some((info.device, info.inode));
    }

    fn side(&self, fd: BorrowedFd<'_>) -> Side {
        let source = *lock(&self.source);
        match self.native.stat(fd) {
            Ok(info) if Some((info.device, info.inode)) == source => Side::Source,
            _ => Side::Destination,
        }
    }

    /// Notes the call and says what is to become of it.
    fn enter(&self, call: Call) -> (usize, Option<Outcome>) {
        let mut state = lock(&self.state);
        let count = state.counts.entry(call.op).or_default();
        *count += 1;
        let count = *count;
        let place = state.calls.len();
        state.calls.push(call);
        if place >= self.most {
            return (place, Some(Outcome::Fail(SPUN)));
        }
        let outcome = self
            .rules
            .iter()
            .find(|(op, when, _)| *op == call.op && when.is(count))
            .map(|(.., outcome)| outcome.clone());
        (place, outcome)
    }

    fn leave(&self, place: usize, answer: Result<usize>) {
        if let Some(call) = lock(&self.state).calls.get_mut(place) {
            call.answer = answer;
        }
    }

    /// A call that moves bytes; `native` is told how many at the most.
    fn data(&self, call: Call, native: impl FnOnce(usize) -> Result<usize>) -> Result<usize> {
        let (place, outcome) = self.enter(call);
        let answer = match outcome {
            Some(Outcome::Fail(errno)) => Err(errno),
            Some(Outcome::Nothing) => Ok(0),
            Some(Outcome::Short(most)) => native(call.length.min(most)),
            Some(Outcome::Claim(most, end)) => {
                let left = usize::try_from(end.saturating_sub(call.from)).unwrap_or(usize::MAX);
                Ok(call.length.min(most).min(left))
            }
            Some(Outcome::After(hook)) => {
                hook();
                native(call.length)
            }
            Some(Outcome::Panic) => panic!("as scheduled"),
            None => native(call.length),
        };
        self.leave(place, answer);
        answer
    }

    /// Any other call; `nothing` is what it answers when it does nothing.
    fn other<T>(
        &self,
        call: Call,
        nothing: Result<T>,
        native: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let (place, outcome) = self.enter(call);
        let answer = match outcome {
            Some(Outcome::Fail(errno)) => Err(errno),
            Some(Outcome::Nothing) => nothing,
            Some(Outcome::Panic) => panic!("as scheduled"),
            Some(Outcome::After(hook)) => {
                hook();
                native()
            }
            Some(Outcome::Short(_) | Outcome::Claim(..)) | None => native(),
        };
        self.leave(place, answer.as_ref().map(|_| 0).map_err(|errno| *errno));
        answer
    }

    /// A call that only trees make.
    fn in_tree<T>(&self, op: Op, native: impl FnOnce() -> Result<T>) -> Result<T> {
        self.other(call(op, Side::Destination), Err(Errno::IO), native)
    }

    fn copy_all(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        self.put_all(&self.bytes(source, 0, 0)?, destination, 0)
    }

    /// So many bytes, or all from an offset on if it is 0. `EINVAL` if there are not so many, as
    /// FICLONERANGE says.
    fn bytes(&self, source: BorrowedFd<'_>, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(1 << 20);
        loop {
            let at = offset + bytes.len() as u64;
            if self.native.read_spare(source, &mut bytes, at)? == 0 {
                break;
            }
            bytes.reserve(1 << 20);
        }
        match usize::try_from(length).expect("a piece of a test") {
            0 => {}
            length if length > bytes.len() => return Err(Errno::INVAL),
            length => bytes.truncate(length),
        }
        Ok(bytes)
    }

    fn put_all(&self, bytes: &[u8], destination: BorrowedFd<'_>, offset: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            done += self.native.write(destination, &bytes[done..], at)?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn call(op: Op, side: Side) -> Call {
    Call {
        op,
        side,
        from: 0,
        to: 0,
        length: 0,
        flags: OFlags::empty(),
        answer: Ok(0),
    }
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Sys for Scheduled {
    fn platform(&self) -> Platform {
        Platform::Linux
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let is_source = path.ends_with(SOURCE);
        let side = if is_source {
            Side::Source
        } else {
            Side::Destination
        };
        let call = Call {
            flags,
            ..call(Op::Open, side)
        };
        let opened = self.other(call, Err(Errno::NOENT), || {
            if let Some((name, is_held)) = &self.lease
                && path.ends_with(name)
                && is_held()
            {
                return Err(Errno::AGAIN);
            }
            if !self.unnamed && flags.contains(OFlags::TMPFILE) {
                return Err(Errno::OPNOTSUPP);
            }
            self.native.open(at, path, flags, mode)
        })?;
        if is_source {
            self.note_source(opened.as_fd());
        }
        lock(&self.state).opened.push(path.to_owned());
        Ok(opened)
    }

    fn close(&self, fd: OwnedFd) -> Result<()> {
        let call = call(Op::Close, self.side(fd.as_fd()));
        // It is closed whatever it answers: by the schedule it is merely dropped.
        self.other(call, Ok(()), || self.native.close(fd))
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> Result<FileInfo> {
        let side = self.side(fd);
        let mut info = self.other(call(Op::Stat, side), Err(Errno::IO), || {
            self.native.stat(fd)
        })?;
        if let Some(forge) = &self.forge {
            forge(side, &mut info);
        }
        Ok(info)
    }

    fn is_local(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        // The kind of the file system below must not decide what the tests see.
        self.other(call(Op::IsLocal, self.side(fd)), Ok(false), || Ok(true))
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo> {
        self.other(
            call(Op::StatAt, Side::Destination),
            Err(Errno::NOENT),
            || self.native.stat_at(directory, name),
        )
    }

    fn read_link_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf> {
        self.other(
            call(Op::ReadLinkAt, Side::Destination),
            Err(Errno::NOENT),
            || self.native.read_link_at(directory, name),
        )
    }

    fn status_flags(&self, fd: BorrowedFd<'_>) -> Result<OFlags> {
        let call = call(Op::StatusFlags, self.side(fd));
        self.other(call, Ok(OFlags::empty()), || self.native.status_flags(fd))
    }

    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        self.other(call(Op::Clone, Side::Destination), Ok(()), || {
            if self.clones {
                return self.copy_all(source, destination);
            }
            Err(Errno::OPNOTSUPP)
        })
    }

    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize> {
        let call = Call {
            from: source_offset,
            to: destination_offset,
            length,
            ..call(Op::CopyRange, Side::Destination)
        };
        self.data(call, |most| {
            self.native
                .copy_range(source, source_offset, destination, destination_offset, most)
        })
    }

    fn probe_copy_range(&self) -> Result<()> {
        self.other(call(Op::Probe, Side::Destination), Ok(()), || {
            self.native.probe_copy_range()
        })
    }

    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize> {
        let call = Call {
            from: source_offset,
            length,
            ..call(Op::SendFile, Side::Destination)
        };
        self.data(call, |most| {
            self.native
                .send_file(source, source_offset, destination, most)
        })
    }

    fn seek(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<()> {
        let call = Call {
            to: offset,
            ..call(Op::Seek, self.side(fd))
        };
        self.other(call, Ok(()), || self.native.seek(fd, offset))
    }

    fn seek_data(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        let call = Call {
            from: offset,
            ..call(Op::SeekData, self.side(fd))
        };
        self.other(call, Ok(offset), || self.native.seek_data(fd, offset))
    }

    fn seek_hole(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        let call = Call {
            from: offset,
            ..call(Op::SeekHole, self.side(fd))
        };
        self.other(call, Ok(offset), || self.native.seek_hole(fd, offset))
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        let call = Call {
            to: offset,
            length: usize::try_from(length).expect("a hole of a test"),
            ..call(Op::PunchHole, self.side(fd))
        };
        self.other(call, Ok(()), || self.native.punch_hole(fd, offset, length))
    }

    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
        let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        assert!(flags.contains(always), "it may sleep, or be inherited");
        let call = Call {
            flags,
            ..call(Op::Reopen, self.side(fd))
        };
        self.other(call, Err(Errno::IO), || self.native.reopen(fd, flags))
    }

    fn splice(
        &self,
        source: BorrowedFd<'_>,
        source_offset: Option<u64>,
        destination: BorrowedFd<'_>,
        destination_offset: Option<u64>,
        length: usize,
    ) -> Result<usize> {
        let call = Call {
            from: source_offset.unwrap_or(0),
            to: destination_offset.unwrap_or(0),
            length,
            ..call(Op::Splice, Side::Destination)
        };
        self.data(call, |most| {
            self.native
                .splice(source, source_offset, destination, destination_offset, most)
        })
    }

    fn read_stream(&self, fd: BorrowedFd<'_>, way: Way, buffer: &mut [u8]) -> Result<usize> {
        let call = Call {
            length: buffer.len(),
            ..call(Op::ReadStream(way), self.side(fd))
        };
        self.data(call, |most| {
            self.native.read_stream(fd, way, &mut buffer[..most])
        })
    }

    fn write_stream(&self, fd: BorrowedFd<'_>, way: Way, bytes: &[u8]) -> Result<usize> {
        let call = Call {
            length: bytes.len(),
            ..call(Op::WriteStream(way), self.side(fd))
        };
        self.data(call, |most| {
            self.native.write_stream(fd, way, &bytes[..most])
        })
    }

    fn poll(&self, watches: &mut [Watch<'_>], timeout: Option<Duration>) -> Result<usize> {
        let side = match watches.first() {
            Some(watch) if watch.interest == Interest::Read => Side::Source,
            _ => Side::Destination,
        };
        self.other(call(Op::Poll, side), Ok(0), || {
            self.native.poll(watches, timeout)
        })
    }

    fn watch_readers(&self, name: BorrowedFd<'_>) -> Result<Readers> {
        self.native.watch_readers(name)
    }

    fn terminal(&self, fd: BorrowedFd<'_>) -> Result<Terminal> {
        self.native.terminal(fd)
    }

    fn is_stream_socket(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        self.native.is_stream_socket(fd)
    }

    fn device_size(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        self.native.device_size(fd)
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let call = Call {
            from: offset,
            length: buffer.len(),
            ..call(Op::Read, self.side(fd))
        };
        self.data(call, |most| {
            self.native.read(fd, &mut buffer[..most], offset)
        })
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        let call = Call {
            from: offset,
            length: buffer.capacity() - buffer.len(),
            ..call(Op::Read, self.side(fd))
        };
        self.data(call, |most| {
            let mut bytes = vec![0; most];
            let read = self.native.read(fd, &mut bytes, offset)?;
            buffer.extend_from_slice(&bytes[..read]);
            Ok(read)
        })
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        let call = Call {
            to: offset,
            length: bytes.len(),
            ..call(Op::Write, self.side(fd))
        };
        self.data(call, |most| self.native.write(fd, &bytes[..most], offset))
    }

    fn append(&self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        let call = Call {
            length: bytes.len(),
            ..call(Op::Write, self.side(fd))
        };
        self.data(call, |most| self.native.append(fd, &bytes[..most]))
    }

    fn truncate(&self, fd: BorrowedFd<'_>, length: u64) -> Result<()> {
        let call = Call {
            to: length,
            ..call(Op::Truncate, self.side(fd))
        };
        self.other(call, Ok(()), || self.native.truncate(fd, length))
    }

    fn set_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<()> {
        let call = call(Op::SetMode, self.side(fd));
        self.other(call, Ok(()), || self.native.set_mode(fd, mode))
    }

    fn clone_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: u64,
    ) -> Result<()> {
        let call = Call {
            from: source_offset,
            to: destination_offset,
            length: usize::try_from(length).expect("a piece of a test"),
            ..call(Op::CloneRange, Side::Destination)
        };
        self.other(call, Ok(()), || {
            if self.clones {
                let bytes = self.bytes(source, source_offset, length)?;
                return self.put_all(&bytes, destination, destination_offset);
            }
            Err(Errno::OPNOTSUPP)
        })
    }

    fn set_owner(&self, fd: BorrowedFd<'_>, owner: u32, group: u32) -> Result<()> {
        let call = call(Op::SetOwner, self.side(fd));
        self.other(call, Ok(()), || self.native.set_owner(fd, owner, group))
    }

    fn xattr_names(&self, fd: BorrowedFd<'_>) -> Result<Vec<OsString>> {
        let call = call(Op::XattrNames, self.side(fd));
        self.other(call, Ok(Vec::new()), || self.native.xattr_names(fd))
    }

    fn xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>> {
        let call = call(Op::Xattr, self.side(fd));
        self.other(call, Ok(Vec::new()), || self.native.xattr(fd, name))
    }

    fn set_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        let call = call(Op::SetXattr, self.side(fd));
        self.other(call, Ok(()), || self.native.set_xattr(fd, name, value))
    }

    fn remove_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        let call = call(Op::RemoveXattr, self.side(fd));
        self.other(call, Ok(()), || self.native.remove_xattr(fd, name))
    }

    fn set_times(&self, fd: BorrowedFd<'_>, accessed: Time, modified: Time) -> Result<()> {
        let call = call(Op::SetTimes, self.side(fd));
        self.other(call, Ok(()), || {
            self.native.set_times(fd, accessed, modified)
        })
    }

    fn advise_sequential(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let call = call(Op::Advise, self.side(fd));
        self.other(call, Ok(()), || self.native.advise_sequential(fd))
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let is_directory = matches!(self.native.stat(fd), Ok(info) if info.kind == Kind::Directory);
        let call = Call {
            flags: if is_directory {
                OFlags::DIRECTORY
            } else {
                OFlags::empty()
            },
            ..call(Op::Sync, self.side(fd))
        };
        self.other(call, Ok(()), || self.native.sync(fd))
    }

    fn lock(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let call = call(Op::Lock, self.side(fd));
        self.other(call, Ok(()), || self.native.lock(fd))
    }

    fn lock_shared(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let call = call(Op::LockShared, self.side(fd));
        self.other(call, Ok(()), || self.native.lock_shared(fd))
    }

    fn has_writer(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        let call = call(Op::HasWriter, self.side(fd));
        self.other(call, Ok(false), || self.native.has_writer(fd))
    }

    fn duplicate(&self, fd: BorrowedFd<'_>) -> Result<OwnedFd> {
        let call = call(Op::Duplicate, self.side(fd));
        self.other(call, Err(Errno::MFILE), || self.native.duplicate(fd))
    }

    fn list(
        &self,
        directory: BorrowedFd<'_>,
        each: &mut dyn FnMut(&OsStr) -> ControlFlow<()>,
    ) -> Result<()> {
        let call = call(Op::List, Side::Destination);
        self.other(call, Ok(()), || self.native.list(directory, each))
    }

    fn entries(&self, directory: BorrowedFd<'_>) -> Result<Listing> {
        self.in_tree(Op::Entries, || self.native.entries(directory))
    }

    fn above(&self, directory: BorrowedFd<'_>) -> Result<OwnedFd> {
        self.in_tree(Op::Above, || self.native.above(directory))
    }

    fn make_directory(&self, directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<()> {
        self.in_tree(Op::MakeDirectory, || {
            self.native.make_directory(directory, name, mode)
        })
    }

    fn make_link(&self, target: &Path, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        self.in_tree(Op::MakeLink, || {
            self.native.make_link(target, directory, name)
        })
    }

    fn make_node(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
        represents: u64,
    ) -> Result<()> {
        self.in_tree(Op::MakeNode, || {
            self.native
                .make_node(directory, name, kind, mode, represents)
        })
    }

    fn add_name(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        to_directory: BorrowedFd<'_>,
        to_name: &OsStr,
    ) -> Result<()> {
        self.in_tree(Op::AddName, || {
            self.native.add_name(directory, name, to_directory, to_name)
        })
    }

    fn set_mode_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        kind: Kind,
        mode: u32,
    ) -> Result<()> {
        self.in_tree(Op::SetModeAt, || {
            self.native.set_mode_at(directory, name, kind, mode)
        })
    }

    fn set_owner_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        owner: u32,
        group: u32,
    ) -> Result<()> {
        self.in_tree(Op::SetOwnerAt, || {
            self.native.set_owner_at(directory, name, owner, group)
        })
    }

    fn set_times_at(
        &self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        accessed: Time,
        modified: Time,
    ) -> Result<()> {
        self.in_tree(Op::SetTimesAt, || {
            self.native
                .set_times_at(directory, name, accessed, modified)
        })
    }

    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.in_tree(Op::SyncFileSystem, || self.native.sync_file_system(fd))
    }

    fn mount(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        self.in_tree(Op::Mount, || self.native.mount(fd))
    }

    fn link_unnamed(
        &self,
        fd: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<()> {
        let call = call(Op::Link, self.side(fd));
        self.other(call, Ok(()), || {
            self.native.link_unnamed(fd, directory, name)
        })
    }

    fn rename(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        self.other(call(Op::Rename, Side::Destination), Ok(()), || {
            self.native.rename(directory, old, new)
        })
    }

    fn rename_exclusive(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        self.other(call(Op::RenameExclusive, Side::Destination), Ok(()), || {
            self.native.rename_exclusive(directory, old, new)
        })
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        self.other(call(Op::Unlink, Side::Destination), Ok(()), || {
            self.native.unlink(directory, name)
        })
    }
}
