//! The world as a system: what each call answers is what Linux would, by its manual pages.

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use copyist_engine::sys::{At, FileInfo, Layer, Result, Sys, Time};
use copyist_engine::{Errno, Platform, Side};
use rustix::fs::{Mode, OFlags};

use crate::content::{BLOCK, Content, LAST, place};
use crate::schedule::{Fault, Fired, Op};
use crate::world::{Clones, Form, Id, ROOT, Ranges, Seeks, State, World};

/// What is to become of a call.
enum Turn {
    /// It moves at most so many bytes, if it moves any.
    Goes(usize),
    Fails(Errno),
    Nothing,
    CutShort,
    Answers(u64),
}

impl World {
    /// Counts a call that is about an end, and tells what is to become of it.
    fn enter(&self, op: Op, side: Side, of_name: bool) -> (MutexGuard<'_, State>, Turn) {
        let mut state = self.state();
        for fault in state.enter(op) {
            let turn = match fault {
                Fault::Fail(errno) if self.may_fail(op, side, of_name, errno) => Turn::Fails(errno),
                Fault::Short(most) if op.counts_bytes() => Turn::Goes(most),
                Fault::Nothing if op.counts_bytes() || matches!(op, Op::Clone | Op::CloneRange) => {
                    Turn::Nothing
                }
                Fault::CutShort if op == Op::Clone => Turn::CutShort,
                // Whoever is known to be right about holes is.
                Fault::Nonsense(answer)
                    if matches!(op, Op::SeekData | Op::SeekHole) && !self.habits.local =>
                {
                    Turn::Answers(answer)
                }
                _ => continue,
            };
            state.schedule.note(Fired {
                op,
                side,
                of_name,
                fault,
            });
            return (state, turn);
        }
        (state, Turn::Goes(usize::MAX))
    }

    fn may_fail(&self, op: Op, side: Side, of_name: bool, errno: Errno) -> bool {
        match op {
            // That these never do is why they count as local.
            Op::Close => !(self.habits.local && side == Side::Destination && !of_name),
            // These would be lies, and no failures.
            Op::StatAt => errno != Errno::NOENT,
            Op::SeekData => errno != Errno::NXIO || !self.habits.local,
            _ => true,
        }
    }

    /// A call on an open descriptor.
    fn on(&self, op: Op, fd: BorrowedFd<'_>) -> Result<(MutexGuard<'_, State>, Id, Turn)> {
        let (side, id, of_name) = {
            let state = self.state();
            let open = state.opened(fd)?;
            let is_file = state.node(open.id).content().is_some();
            (open.side, open.id, !is_file)
        };
        let (state, turn) = self.enter(op, side, of_name);
        if let Turn::Fails(errno) = turn {
            return Err(errno);
        }
        Ok((state, id, turn))
    }

    /// A call on a name.
    fn on_name(&self, op: Op, directory: BorrowedFd<'_>) -> Result<(MutexGuard<'_, State>, Id)> {
        let (state, turn) = self.enter(op, Side::Destination, true);
        if let Turn::Fails(errno) = turn {
            return Err(errno);
        }
        let id = state.opened(directory)?.id;
        match state.node(id).form {
            Form::Directory(_) => Ok((state, id)),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// A call between two descriptors, with what both are.
    fn between(
        &self,
        op: Op,
        source: BorrowedFd<'_>,
        destination: BorrowedFd<'_>,
    ) -> Result<(MutexGuard<'_, State>, Id, Id, Turn)> {
        let (state, to, turn) = self.on(op, destination)?;
        let from = state.opened(source)?;
        let from_id = from.id;
        if !reads(from.flags) || !writes(state.opened(destination)?.flags) {
            return Err(Errno::BADF);
        }
        Ok((state, from_id, to, turn))
    }

    fn clones(&self, state: &State, from: Id, to: Id) -> Result<()> {
        if state.node(from).device != state.node(to).device {
            return Err(Errno::XDEV);
        }
        match self.habits.clones {
            Clones::Never(errno) => Err(errno),
            Clones::Mismatch => Err(Errno::INVAL),
            Clones::Always => Ok(()),
        }
    }
}

fn reads(flags: OFlags) -> bool {
    !flags.contains(OFlags::WRONLY)
}

fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// Where a call has no offset for all of its bytes, it moves none (rw_verify_area in the kernel).
fn room(offset: u64, length: usize) -> Result<usize> {
    match offset.checked_add(length as u64) {
        Some(end) if end <= LAST => {}
        _ => return Err(Errno::INVAL),
    }
    if offset == LAST && length > 0 {
        return Err(Errno::FBIG);
    }
    Ok(length)
}

fn put(state: &mut State, to: Id, offset: u64, bytes: &[u8], most: usize) -> Result<usize> {
    let length = room(offset, bytes.len().min(most))?;
    if length > 0 {
        state.touch_content(to)?.write(offset, &bytes[..length]);
    }
    Ok(length)
}

/// Moves bytes within the kernel.
fn move_bytes(
    state: &mut State,
    (from, from_offset): (Id, u64),
    (to, to_offset): (Id, u64),
    length: usize,
    shares: bool,
) -> Result<usize> {
    let source = state.content(from)?.clone();
    let there = source.size().saturating_sub(from_offset);
    let length = room(to_offset, place(there.min(length as u64)))?;
    let whole = |offset: u64| offset.is_multiple_of(BLOCK);
    let target = state.touch_content(to)?;
    let bytes = length as u64;
    if shares && whole(from_offset) && whole(to_offset) && whole(bytes) {
        target.share(&source, from_offset, to_offset, bytes);
    } else {
        target.copy(&source, from_offset, to_offset, bytes);
    }
    Ok(length)
}

impl Layer for World {
    fn below(&self) -> &dyn Sys {
        panic!("a call that no copy of these tests makes")
    }

    fn platform(&self) -> Platform {
        self.habits.platform
    }

    fn open(&self, at: At<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let unnamed = flags.contains(OFlags::TMPFILE);
        let of_name = flags.contains(OFlags::DIRECTORY);
        let name_only = flags.contains(OFlags::PATH) && !of_name;
        let side = if of_name || writes(flags) {
            Side::Destination
        } else {
            Side::Source
        };
        assert!(
            flags.contains(OFlags::CLOEXEC),
            "a child would inherit {path:?}"
        );
        let waits = OFlags::NONBLOCK | OFlags::NOCTTY;
        assert!(
            of_name && !unnamed || name_only || flags.contains(waits),
            "{path:?} waits"
        );
        let (mut state, turn) = self.enter(Op::Open, side, of_name);
        if let Turn::Fails(errno) = turn {
            return Err(errno);
        }
        let (base, stays) = match at {
            At::Beneath(directory) => (state.opened(directory)?.id, true),
            At::Ambient => (ROOT, false),
        };
        let mode = mode.bits() & 0o7777 & !self.habits.umask;
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL) && !unnamed;
        assert!(
            exclusive || unnamed || !flags.contains(OFlags::CREATE),
            "who made it?"
        );
        let follow = !exclusive && !flags.contains(OFlags::NOFOLLOW);
        // What could only be a directory is never made by open(2), whether it is there or not.
        let bytes = path.as_os_str().as_bytes();
        let slash = exclusive && bytes.ends_with(b"/");
        let end = bytes.iter().rposition(|byte| *byte != b'/').unwrap_or(0);
        let path = if slash {
            Path::new(OsStr::from_bytes(&bytes[..=end]))
        } else {
            path
        };
        let (directory, name, found) = state.resolve(base, stays, path, follow)?;
        if unnamed {
            let device = state.node(found.ok_or(Errno::NOENT)?).device;
            if !self.habits.unnamed {
                return Err(Errno::OPNOTSUPP);
            }
            let id = state.make_new(device, mode);
            return Ok(state.open_id(id, flags, side));
        }
        if exclusive {
            if name.is_empty() || slash {
                return Err(Errno::ISDIR);
            }
            if found.is_some() {
                return Err(Errno::EXIST);
            }
            let device = state.node(directory).device;
            let id = state.make_new(device, mode);
            state.bind(directory, &name, id);
            return Ok(state.open_id(id, flags, side));
        }
        let id = found.ok_or(Errno::NOENT)?;
        match &state.node(id).form {
            _ if name_only => {}
            Form::Link(_) => return Err(Errno::LOOP),
            Form::Directory(_) if writes(flags) => return Err(Errno::ISDIR),
            Form::Directory(_) => {}
            _ if of_name => return Err(Errno::NOTDIR),
            Form::Fifo if writes(flags) => return Err(Errno::NXIO),
            Form::Socket => return Err(Errno::NXIO),
            Form::File(_) | Form::Fifo => {}
        }
        Ok(state.open_id(id, flags, side))
    }

    fn close(&self, fd: OwnedFd) -> Result<()> {
        let answer = self.on(Op::Close, std::os::fd::AsFd::as_fd(&fd)).map(drop);
        // It is closed whatever it answers.
        self.state().close(fd);
        answer
    }

    fn stat(&self, fd: BorrowedFd<'_>) -> Result<FileInfo> {
        let (mut state, id, _) = self.on(Op::Stat, fd)?;
        state.tell(id);
        Ok(state.info(id, &self.habits))
    }

    fn is_local(&self, fd: BorrowedFd<'_>) -> Result<bool> {
        self.on(Op::IsLocal, fd).map(|_| self.habits.local)
    }

    fn stat_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<FileInfo> {
        let (state, directory) = self.on_name(Op::StatAt, directory)?;
        let (_, _, found) = state.resolve(directory, true, Path::new(name), false)?;
        Ok(state.info(found.ok_or(Errno::NOENT)?, &self.habits))
    }

    fn read_link_at(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<PathBuf> {
        let (state, directory) = self.on_name(Op::ReadLinkAt, directory)?;
        match state.entry(directory, name).map(|id| &state.node(id).form) {
            Some(Form::Link(target)) => Ok(target.clone()),
            Some(_) => Err(Errno::INVAL),
            None => Err(Errno::NOENT),
        }
    }

    fn status_flags(&self, fd: BorrowedFd<'_>) -> Result<OFlags> {
        let (state, _, _) = self.on(Op::StatusFlags, fd)?;
        Ok(state.opened(fd)?.flags)
    }

    fn clone_file(&self, source: BorrowedFd<'_>, destination: BorrowedFd<'_>) -> Result<()> {
        self.share(Op::Clone, (source, 0), (destination, 0), 0)
    }

    fn clone_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: u64,
    ) -> Result<()> {
        let (from, to) = ((source, source_offset), (destination, destination_offset));
        self.share(Op::CloneRange, from, to, length)
    }

    fn copy_range(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        destination_offset: u64,
        length: usize,
    ) -> Result<usize> {
        let (mut state, from, to, turn) = self.between(Op::CopyRange, source, destination)?;
        let most = match turn {
            Turn::Goes(most) => most.min(self.habits.most),
            _ => return Ok(0),
        };
        if let Ranges::Never(errno) = self.habits.ranges {
            return Err(errno);
        }
        if state.node(from).device != state.node(to).device {
            return Err(Errno::XDEV);
        }
        if state.opened(destination)?.flags.contains(OFlags::APPEND) {
            return Err(Errno::BADF);
        }
        let there = state.content(from)?.size().saturating_sub(source_offset);
        if destination_offset >= LAST {
            return Err(Errno::FBIG);
        }
        let length = (length as u64).min(there).min(LAST - destination_offset);
        let ends = (source_offset + length, destination_offset + length);
        if from == to && source_offset < ends.1 && destination_offset < ends.0 {
            return Err(Errno::INVAL);
        }
        let length = place(length);
        let (from, to) = ((from, source_offset), (to, destination_offset));
        let shares = self.habits.ranges == Ranges::Shares;
        move_bytes(&mut state, from, to, length.min(most), shares)
    }

    fn probe_copy_range(&self) -> Result<()> {
        let (state, turn) = self.enter(Op::Probe, Side::Destination, false);
        drop(state);
        match (turn, self.habits.ranges) {
            (Turn::Fails(errno), _) => Err(errno),
            (_, Ranges::Never(errno @ (Errno::NOSYS | Errno::PERM))) => Err(errno),
            _ => Err(Errno::BADF),
        }
    }

    fn send_file(
        &self,
        source: BorrowedFd<'_>,
        source_offset: u64,
        destination: BorrowedFd<'_>,
        length: usize,
    ) -> Result<usize> {
        let (mut state, from, to, turn) = self.between(Op::SendFile, source, destination)?;
        let most = match turn {
            Turn::Goes(most) => most.min(self.habits.most),
            _ => return Ok(0),
        };
        if let Some(errno) = self.habits.sends {
            return Err(errno);
        }
        let open = state.opened(destination)?;
        if open.flags.contains(OFlags::APPEND) {
            return Err(Errno::INVAL);
        }
        let position = open.position;
        let (from, to) = ((from, source_offset), (to, position));
        let moved = move_bytes(&mut state, from, to, length.min(most), false)?;
        state.opened_mut(destination)?.position += moved as u64;
        Ok(moved)
    }

    fn seek_data(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        self.seek_to(Op::SeekData, fd, offset)
    }

    fn seek_hole(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        self.seek_to(Op::SeekHole, fd, offset)
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()> {
        let (mut state, id, _) = self.on(Op::PunchHole, fd)?;
        if !writes(state.opened(fd)?.flags) {
            return Err(Errno::BADF);
        }
        if !self.habits.punches {
            return Err(Errno::OPNOTSUPP);
        }
        if length == 0 || offset > LAST {
            return Err(Errno::INVAL);
        }
        if offset.checked_add(length).is_none_or(|end| end > LAST) {
            return Err(Errno::FBIG);
        }
        state.touch_content(id)?.punch(offset, length);
        Ok(())
    }

    fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
        let (mut state, id, _) = self.on(Op::Reopen, fd)?;
        let side = state.opened(fd)?.side;
        Ok(state.open_id(id, flags, side))
    }

    fn seek(&self, fd: BorrowedFd<'_>, offset: u64) -> Result<()> {
        let (mut state, _, _) = self.on(Op::Seek, fd)?;
        if offset > LAST {
            return Err(Errno::INVAL);
        }
        state.opened_mut(fd)?.position = offset;
        Ok(())
    }

    fn read(&self, fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let (state, id, turn) = self.on(Op::Read, fd)?;
        let most = match turn {
            Turn::Goes(most) => most.min(buffer.len()),
            _ => return Ok(0),
        };
        if !reads(state.opened(fd)?.flags) {
            return Err(Errno::BADF);
        }
        room(offset, most)?;
        Ok(state.content(id)?.read(offset, &mut buffer[..most]))
    }

    fn read_spare(&self, fd: BorrowedFd<'_>, buffer: &mut Vec<u8>, offset: u64) -> Result<usize> {
        let there = self.state().opened(fd).map(|open| open.id)?;
        let there = self.state().content(there).map_or(0, Content::size);
        // What is asked for may be more than all memory.
        let room = (buffer.capacity() - buffer.len()).min(place(there) + 1);
        let mut bytes = vec![0; room];
        let read = Layer::read(self, fd, &mut bytes, offset)?;
        buffer.extend_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn write(&self, fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize> {
        let (mut state, id, turn) = self.on(Op::Write, fd)?;
        let Turn::Goes(most) = turn else {
            return Ok(0);
        };
        let flags = state.opened(fd)?.flags;
        if !writes(flags) {
            return Err(Errno::BADF);
        }
        // pwrite(2), "BUGS".
        let offset = if flags.contains(OFlags::APPEND) {
            state.content(id)?.size()
        } else {
            offset
        };
        put(&mut state, id, offset, bytes, most)
    }

    fn append(&self, fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
        let (mut state, id, turn) = self.on(Op::Write, fd)?;
        let Turn::Goes(most) = turn else {
            return Ok(0);
        };
        if !writes(state.opened(fd)?.flags) {
            return Err(Errno::BADF);
        }
        let end = state.content(id)?.size();
        put(&mut state, id, end, bytes, most)
    }

    fn truncate(&self, fd: BorrowedFd<'_>, length: u64) -> Result<()> {
        let (mut state, id, _) = self.on(Op::Truncate, fd)?;
        if !writes(state.opened(fd)?.flags) || length > LAST {
            return Err(Errno::INVAL);
        }
        state.touch_content(id)?.truncate(length);
        Ok(())
    }

    fn set_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<()> {
        let (mut state, id, _) = self.on(Op::SetMode, fd)?;
        state.touch(id).mode = mode & 0o7777;
        Ok(())
    }

    fn set_owner(&self, fd: BorrowedFd<'_>, owner: u32, group: u32) -> Result<()> {
        let (mut state, id, _) = self.on(Op::SetOwner, fd)?;
        let node = state.touch(id);
        (node.owner, node.group) = (owner, group);
        node.mode &= 0o1777;
        Ok(())
    }

    fn xattr_names(&self, fd: BorrowedFd<'_>) -> Result<Vec<OsString>> {
        let (state, id, _) = self.on(Op::XattrNames, fd)?;
        Ok(state.node(id).xattrs.keys().cloned().collect())
    }

    fn xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>> {
        let (state, id, _) = self.on(Op::Xattr, fd)?;
        let value = state.node(id).xattrs.get(name);
        value.cloned().ok_or(Errno::NODATA)
    }

    fn set_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr, value: &[u8]) -> Result<()> {
        let (mut state, id, _) = self.on(Op::SetXattr, fd)?;
        if !self.habits.xattrs {
            return Err(Errno::OPNOTSUPP);
        }
        let xattrs = &mut state.touch(id).xattrs;
        xattrs.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove_xattr(&self, fd: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        let (mut state, id, _) = self.on(Op::RemoveXattr, fd)?;
        if !self.habits.xattrs {
            return Err(Errno::OPNOTSUPP);
        }
        let removed = state.touch(id).xattrs.remove(name);
        removed.map(drop).ok_or(Errno::NODATA)
    }

    fn set_times(&self, fd: BorrowedFd<'_>, accessed: Time, modified: Time) -> Result<()> {
        let (mut state, id, _) = self.on(Op::SetTimes, fd)?;
        let node = state.touch(id);
        (node.accessed, node.modified) = (accessed, modified);
        Ok(())
    }

    fn advise_sequential(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.on(Op::Advise, fd).map(drop)
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let (mut state, id, _) = self.on(Op::Sync, fd)?;
        if state.opened(fd)?.flags.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        state.clean(id);
        Ok(())
    }

    fn lock(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.on(Op::Lock, fd).map(drop)
    }

    fn duplicate(&self, fd: BorrowedFd<'_>) -> Result<OwnedFd> {
        let (mut state, id, _) = self.on(Op::Duplicate, fd)?;
        let open = state.opened(fd)?;
        let (flags, side) = (open.flags, open.side);
        Ok(state.open_id(id, flags, side))
    }

    fn link_unnamed(
        &self,
        fd: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<()> {
        let (mut state, directory) = self.on_name(Op::Link, directory)?;
        let id = state.opened(fd)?.id;
        if state.node(id).links > 0 {
            return Err(Errno::NOENT);
        }
        if state.entry(directory, name).is_some() {
            return Err(Errno::EXIST);
        }
        state.bind(directory, name, id);
        Ok(())
    }

    fn rename(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        let (mut state, directory) = self.on_name(Op::Rename, directory)?;
        state.rename(directory, old, new)
    }

    fn rename_exclusive(&self, directory: BorrowedFd<'_>, old: &OsStr, new: &OsStr) -> Result<()> {
        let (mut state, directory) = self.on_name(Op::RenameExclusive, directory)?;
        if state.entry(directory, new).is_some() {
            return Err(Errno::EXIST);
        }
        state.rename(directory, old, new)
    }

    fn unlink(&self, directory: BorrowedFd<'_>, name: &OsStr) -> Result<()> {
        let (mut state, directory) = self.on_name(Op::Unlink, directory)?;
        let id = state.entry(directory, name).ok_or(Errno::NOENT)?;
        if matches!(state.node(id).form, Form::Directory(_)) {
            return Err(Errno::ISDIR);
        }
        state.remove(directory, name);
        Ok(())
    }
}

impl World {
    /// `FICLONE` and `FICLONERANGE`. A length of 0 reaches to the end.
    fn share(
        &self,
        op: Op,
        (source, from_offset): (BorrowedFd<'_>, u64),
        (destination, to_offset): (BorrowedFd<'_>, u64),
        length: u64,
    ) -> Result<()> {
        let (mut state, from, to, turn) = self.between(op, source, destination)?;
        self.clones(&state, from, to)?;
        // A lie that shows in nothing but the bytes is beyond any copier.
        let shows = state.content(to)?.size() <= to_offset;
        if matches!(turn, Turn::Nothing) && shows {
            return Ok(());
        }
        if state.opened(destination)?.flags.contains(OFlags::APPEND) {
            return Err(Errno::BADF);
        }
        let content = state.content(from)?.clone();
        let old = state.content(to)?.size();
        let there = content.size().saturating_sub(from_offset);
        if from_offset > content.size() {
            return Err(Errno::INVAL);
        }
        let mut part = if length == 0 { there } else { length };
        if part > there {
            return Err(Errno::INVAL);
        }
        let aligned = from_offset.is_multiple_of(BLOCK) && to_offset.is_multiple_of(BLOCK);
        let ends_source = from_offset + part == content.size();
        let Some(end) = to_offset.checked_add(part).filter(|end| *end <= LAST) else {
            return Err(Errno::INVAL);
        };
        // The last block may be a part of one only where nothing follows it at either end.
        if !aligned || !(part.is_multiple_of(BLOCK) || (ends_source && end >= old)) {
            return Err(Errno::INVAL);
        }
        if from == to && from_offset < end && to_offset < from_offset + part {
            return Err(Errno::INVAL);
        }
        // https://github.com/openzfs/zfs/issues/15728
        if matches!(turn, Turn::CutShort) && shows {
            part = part / 2 / BLOCK * BLOCK;
        }
        let target = state.touch_content(to)?;
        target.share(&content, from_offset, to_offset, part);
        Ok(())
    }

    fn seek_to(&self, op: Op, fd: BorrowedFd<'_>, offset: u64) -> Result<u64> {
        let (mut state, id, turn) = self.on(op, fd)?;
        if let Turn::Answers(answer) = turn {
            return Ok(answer);
        }
        if offset > LAST {
            return Err(Errno::INVAL);
        }
        let content = state.content(id)?;
        let found = match (self.habits.seeks, op) {
            (Seeks::Refuses(errno), _) => return Err(errno),
            (Seeks::AllData, _) if offset >= content.size() => return Err(Errno::NXIO),
            (Seeks::AllData, Op::SeekData) => offset,
            (Seeks::AllData, _) => content.size(),
            (Seeks::Honest, Op::SeekData) => content.data(offset)?,
            (Seeks::Honest, _) => content.hole(offset)?,
        };
        state.opened_mut(fd)?.position = found;
        Ok(found)
    }
}
