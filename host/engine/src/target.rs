//! The destination of a copy: how it is opened, published, and put back when the copy fails.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::Waker;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::durability;
use crate::error::{Cause, Refused, Side, Unsupported};
use crate::feed::{Feed, Passed};
use crate::kind;
use crate::plan::End;
use crate::preserve::Preserve;
use crate::request::{Destination, Existing, Location, Options, Request, WriteMode};
use crate::resolve::{self, ALWAYS, Entry};
use crate::staging::{self, Close, Staged, despite_signals};
use crate::stream::{Attempt, Stream};
use crate::support::Support;
use crate::sys::{FileInfo, Kind, Result, Sys};
use crate::transfer::{Fd, at_destination};

/// Permission bits, without setuid, setgid and sticky.
pub(crate) const PERMISSIONS: u32 = 0o777;
const READ_AND_WRITE: u32 = 0o666;
/// What a file has while it is written and will get another mode at the end.
const PRIVATE: u32 = 0o600;

/// A file that may vanish between two calls is looked for again so many times.
const TRIES: usize = 4;

type Outcome<T> = std::result::Result<T, Cause>;

/// An open destination.
#[derive(Debug)]
pub(crate) struct Target {
    /// Gone once it is published.
    fd: Option<Fd>,
    /// What fstat(2) told of it, where it was asked.
    pub(crate) info: Option<FileInfo>,
    pub(crate) appends: bool,
    kind: Kind,
    /// It, where it is a stream.
    pub(crate) stream: Option<Stream>,
    /// Its length, where it is not known to be what this copy wrote.
    length: Option<u64>,
    /// So much of it holds bytes that were there before.
    old: u64,
    origin: Origin,
    /// The mode that a replaced file had and its successor gets.
    pub(crate) inherited_mode: Option<u32>,
    /// The device of what is replaced, and so of what replaces it.
    replaced: Option<u64>,
    /// The mode that an old file had before it was narrowed, while nothing of the source is in it.
    wider_mode: Option<u32>,
}

#[derive(Debug)]
enum Origin {
    /// It was there before.
    Existing,
    /// Made under its own name by this copy.
    Created,
    /// Made beside, to be given its name; over what is there, or not.
    Staged(Staged, bool),
    /// It is published and no longer this copy's.
    Published,
}

/// What came of opening a destination.
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is returned; a box would be an allocation a copy"
)]
pub(crate) enum Opened {
    Ready(Target),
    /// It exists and is left.
    Skip,
    /// A lease stands in the way; try again.
    Later,
    /// A FIFO that nobody reads yet, by what it can be opened once somebody does.
    Unread(Option<OwnedFd>),
}

/// Refuses what cannot be, before any system call.
pub(crate) fn check(options: &Options, destination: &Destination) -> Outcome<()> {
    if options.reflink == crate::request::Reflink::Always && options.window.is_some() {
        return Err(Unsupported::Clone.into());
    }
    let by_descriptor = matches!(destination, Destination::File(_) | Destination::Feed(_));
    if by_descriptor && options.write_mode == WriteMode::Replace {
        return Err(Unsupported::Replace.into());
    }
    if by_descriptor && options.existing == Existing::Refuse {
        return Err(at_destination(Errno::EXIST));
    }
    Ok(())
}

/// Opens the destination. Nothing is created unless nothing is there, and nothing that is there is
/// changed.
pub(crate) fn open(sys: &dyn Sys, request: &Request, source: &FileInfo) -> Outcome<Opened> {
    match &request.destination {
        Destination::File(handle) => {
            if request.options.existing == Existing::Skip {
                return Ok(Opened::Skip);
            }
            let target = Target::existing(sys, Fd::Theirs(handle.clone()))?;
            if is_left(request, source, target.info.as_ref()) {
                return Ok(Opened::Skip);
            }
            Ok(Opened::Ready(target))
        }
        Destination::Feed(feed) => Ok(Opened::Ready(Target::feed(feed.clone()))),
        Destination::Path(location) => match request.options.write_mode {
            WriteMode::InPlace => in_place(sys, request, location, source),
            WriteMode::Replace => staged(sys, request, location, source),
        },
    }
}

fn in_place(
    sys: &dyn Sys,
    request: &Request,
    location: &Location,
    source: &FileInfo,
) -> Outcome<Opened> {
    for _ in 0..TRIES {
        // Most copies make a new file, and this is the one call that makes it and nothing else.
        let mode = creation_mode(&request.options, source);
        match resolve::open(
            sys,
            location,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            mode,
        ) {
            Ok(fd) => return Ok(Opened::Ready(Target::new(fd, Origin::Created))),
            Err(Errno::EXIST) => {}
            Err(Errno::AGAIN) => return Ok(Opened::Later),
            Err(errno) => return Err(at_destination(errno)),
        }
        match request.options.existing {
            Existing::Refuse => return Err(at_destination(Errno::EXIST)),
            Existing::Skip => return Ok(Opened::Skip),
            Existing::Update | Existing::Write => {}
        }
        match resolve::open(sys, location, OFlags::WRONLY, Mode::empty()) {
            Ok(fd) => {
                let target = Target::existing(sys, Fd::Ours(fd))?;
                if is_left(request, source, target.info.as_ref()) {
                    return Ok(Opened::Skip);
                }
                return Ok(Opened::Ready(target));
            }
            // It vanished meanwhile; or it is a link to nowhere, through which nothing is created
            // (https://github.com/uutils/coreutils/issues/4074).
            Err(Errno::NOENT) => {}
            Err(Errno::AGAIN) => return Ok(Opened::Later),
            Err(Errno::NXIO) => return unread(sys, location),
            Err(errno) => return Err(at_destination(errno)),
        }
    }
    Err(at_destination(Errno::NOENT))
}

/// What open(2) answers `ENXIO` to: a FIFO without a reader, the name of a socket, and a device
/// without its hardware.
fn unread(sys: &dyn Sys, location: &Location) -> Outcome<Opened> {
    match kind_of_name(sys, location) {
        Ok((Some(Kind::Fifo), name)) => Ok(Opened::Unread(name)),
        _ => Err(no_device(sys, location, Side::Destination)),
    }
}

/// What `ENXIO` means for an end that is no FIFO.
pub(crate) fn no_device(sys: &dyn Sys, location: &Location, side: Side) -> Cause {
    match kind_of_name(sys, location) {
        Ok((Some(Kind::Socket), _)) => Unsupported::Kind(side, Refused::SocketName).into(),
        _ => Cause::Io(side, Errno::NXIO),
    }
}

/// What stands under a name, and the name itself where the platform can open that.
fn kind_of_name(sys: &dyn Sys, location: &Location) -> Result<(Option<Kind>, Option<OwnedFd>)> {
    match resolve::open_name(sys, location) {
        Some(name) => {
            let name = name?;
            let kind = sys.stat(name.as_fd())?.kind;
            Ok((Some(kind), Some(name)))
        }
        None => {
            let (_, found) = resolve::entry(sys, location)?;
            Ok((found.map(|info| info.kind), None))
        }
    }
}

fn staged(
    sys: &dyn Sys,
    request: &Request,
    location: &Location,
    source: &FileInfo,
) -> Outcome<Opened> {
    let options = &request.options;
    let (entry, found) = match resolve::entry(sys, location) {
        // Somebody renames directories all the time (openat2(2)).
        Err(Errno::AGAIN) => return Ok(Opened::Later),
        answer => answer.map_err(at_destination)?,
    };
    let mut inherited_mode = None;
    if let Some(found) = &found {
        match options.existing {
            Existing::Refuse => return Err(at_destination(Errno::EXIST)),
            Existing::Skip => return Ok(Opened::Skip),
            Existing::Update | Existing::Write => {}
        }
        match found.kind {
            Kind::Regular => {
                if found.is_same_file(source) {
                    return Err(Cause::SameFile);
                }
                if !options.preserve.contains(Preserve::MODE) {
                    inherited_mode = Some(found.mode & PERMISSIONS);
                }
            }
            // It leads nowhere, and through a link nothing is created
            // (https://github.com/uutils/coreutils/issues/4074).
            Kind::Symlink if location.follow => return Err(at_destination(Errno::NOENT)),
            // The name itself is replaced, not what it leads to.
            Kind::Symlink => {}
            Kind::Directory => return Err(at_destination(Errno::ISDIR)),
            kind => kind::accept_regular(kind, Side::Destination)?,
        }
        if options.window.is_some() {
            return Err(Unsupported::Replace.into());
        }
        if is_left(request, source, Some(found)) {
            return Ok(Opened::Skip);
        }
    }
    let mode = if inherited_mode.is_some() {
        Mode::from_raw_mode(PRIVATE as _)
    } else {
        creation_mode(options, source)
    };
    let (fd, staged) = Staged::create(sys, entry, mode).map_err(at_destination)?;
    let mut target = Target::new(fd, Origin::Staged(staged, found.is_some()));
    target.inherited_mode = inherited_mode;
    target.replaced = found.map(|found| found.device);
    Ok(Opened::Ready(target))
}

/// Whether `update` leaves what is there.
fn is_left(request: &Request, source: &FileInfo, found: Option<&FileInfo>) -> bool {
    request.options.existing == Existing::Update
        && source.kind == Kind::Regular
        && found
            .is_some_and(|found| found.kind == Kind::Regular && found.modified >= source.modified)
}

/// A new file has the source's permissions from the start, less the umask; or none for others
/// until it gets the mode that is preserved. It never lets anybody read more than the source does.
fn creation_mode(options: &Options, source: &FileInfo) -> Mode {
    let bits = if options.preserve.contains(Preserve::MODE) {
        PRIVATE
    } else {
        match source.kind {
            Kind::Regular => source.mode & PERMISSIONS,
            // Nobody made it executable.
            _ => source.mode & READ_AND_WRITE,
        }
    };
    Mode::from_raw_mode(bits as _)
}

/// What an end is to the mechanisms.
pub(crate) fn end(kind: Kind, stream: Option<&Stream>) -> End {
    match (kind, stream) {
        (_, Some(stream)) if stream.feed().is_some() => End::Device,
        (Kind::Block, _) => End::Disk,
        (Kind::Fifo, _) => End::Pipe,
        (Kind::Socket, Some(stream)) if stream.does_not_sleep() => End::OpenSocket,
        (Kind::Socket, _) => End::Socket,
        (_, Some(_)) => End::Device,
        (_, None) => End::File,
    }
}

impl Target {
    fn new(fd: OwnedFd, origin: Origin) -> Self {
        Self::of(Fd::Ours(fd), origin)
    }

    fn of(fd: Fd, origin: Origin) -> Self {
        Self {
            fd: Some(fd),
            info: None,
            appends: false,
            kind: Kind::Regular,
            stream: None,
            length: None,
            old: 0,
            origin,
            inherited_mode: None,
            replaced: None,
            wider_mode: None,
        }
    }

    /// Somebody in this process who takes the bytes.
    fn feed(feed: Feed) -> Self {
        let fd = Fd::Feed(feed.clone());
        Self {
            kind: Kind::Fifo,
            stream: Some(Stream::of_feed(&feed, Side::Destination)),
            ..Self::of(fd, Origin::Existing)
        }
    }

    /// What is open already.
    pub(crate) fn existing(sys: &dyn Sys, mut fd: Fd) -> Outcome<Self> {
        let info = sys.stat(fd.as_fd()).map_err(at_destination)?;
        kind::accept(info.kind, Side::Destination)?;
        let stream = Stream::of(sys, &fd, info.kind, Side::Destination)?;
        if info.kind == Kind::Block && matches!(fd, Fd::Ours(_)) {
            // Not one that is mounted (open(2), O_EXCL).
            let flags = ALWAYS | OFlags::WRONLY | OFlags::EXCL;
            fd = Fd::Ours(sys.reopen(fd.as_fd(), flags).map_err(at_destination)?);
        }
        let is_file = info.kind == Kind::Regular;
        let appends = match &fd {
            Fd::Ours(_) | Fd::Feed(_) => false,
            Fd::Theirs(_) if !is_file => false,
            Fd::Theirs(_) => sys
                .status_flags(fd.as_fd())
                .map_err(at_destination)?
                .contains(OFlags::APPEND),
        };
        let old = match info.kind {
            // Where that cannot be told, zeros are written.
            Kind::Block => sys.device_size(fd.as_fd()).unwrap_or(0),
            _ => info.size,
        };
        Ok(Self {
            fd: Some(fd),
            info: Some(info),
            appends,
            kind: info.kind,
            stream,
            length: is_file.then_some(info.size),
            old,
            origin: Origin::Existing,
            inherited_mode: None,
            replaced: None,
            wider_mode: None,
        })
    }

    pub(crate) fn fd(&self) -> Outcome<BorrowedFd<'_>> {
        self.fd.as_ref().map(Fd::as_fd).ok_or(Cause::Panicked)
    }

    /// Whether the copy opened it, so that its file position is the copy's alone.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.fd, Some(Fd::Ours(_)))
    }

    /// Whether it is a regular file, which has a length and attributes.
    pub(crate) fn is_file(&self) -> bool {
        self.kind == Kind::Regular
    }

    /// What it is to the mechanisms.
    pub(crate) fn end(&self) -> End {
        end(self.kind, self.stream.as_ref())
    }

    /// Whether the descriptor is somebody else's, who keeps the file's mode.
    pub(crate) fn is_theirs(&self) -> bool {
        matches!(self.fd, Some(Fd::Theirs(_)))
    }

    /// Whether this is the file that `other` describes.
    pub(crate) fn is(&self, other: &FileInfo) -> bool {
        self.info.is_some_and(|info| info.is_same_file(other))
    }

    /// Asks what it is, once.
    pub(crate) fn look(&mut self, sys: &dyn Sys) -> Outcome<FileInfo> {
        if let Some(info) = self.info {
            return Ok(info);
        }
        let info = sys.stat(self.fd()?).map_err(at_destination)?;
        self.info = Some(info);
        Ok(info)
    }

    /// Asks once more what it is.
    pub(crate) fn look_again(&mut self, sys: &dyn Sys) -> Outcome<FileInfo> {
        self.info = None;
        self.look(sys)
    }

    /// As [`look`](Self::look), where there is a file that a failure to close would have to remove.
    pub(crate) fn identify(&mut self, sys: &dyn Sys) -> Outcome<()> {
        if self.is_new() {
            self.look(sys)?;
        }
        Ok(())
    }

    /// Whether it lies on this device, as far as that is known without a call.
    pub(crate) fn is_on(&self, device: u64) -> bool {
        let known = self.info.map(|info| info.device).or(self.replaced);
        known == Some(device)
    }

    /// Gives it this mode until it gets its last one, or the one that it had, where the copy fails
    /// before a byte of the source is in it.
    pub(crate) fn narrow(&mut self, sys: &dyn Sys, mode: u32) -> Outcome<Result<()>> {
        let answer = sys.set_mode(self.fd()?, mode);
        if answer.is_ok() {
            self.wider_mode = self.info.map(|info| info.mode);
        }
        Ok(answer)
    }

    /// Bytes of the source may be in it from now on.
    pub(crate) fn fills(&mut self) {
        self.wider_mode = None;
    }

    /// When it is closed, by what its own file system is.
    pub(crate) fn when_closed(&mut self, sys: &dyn Sys, support: &Support) -> Outcome<Close> {
        if matches!(&self.origin, Origin::Staged(staged, over) if *over || staged.has_name()) {
            let made = self.look(sys)?;
            if matches!(&self.fd, Some(fd) if support.is_local(sys, made.device, fd.as_fd())) {
                return Ok(Close::Last);
            }
        }
        Ok(Close::First)
    }

    /// Whether it has more than so many bytes.
    pub(crate) fn is_longer_than(&self, length: u64) -> bool {
        self.length.is_some_and(|is| is > length)
    }

    /// Makes it no longer than `length`, and tells whether it was.
    pub(crate) fn cut(&mut self, sys: &dyn Sys, length: u64) -> Outcome<bool> {
        if self.length.is_none_or(|is| is <= length) {
            return Ok(false);
        }
        sys.truncate(self.fd()?, length).map_err(at_destination)?;
        self.length = Some(length);
        Ok(true)
    }

    /// Whether bytes that were there before stand at this offset or behind it.
    pub(crate) fn has_old(&self, offset: u64) -> bool {
        offset < self.old
    }

    /// How much of what ends here lies behind the bytes that were there before.
    pub(crate) fn beyond_old(&self, end: u64) -> u64 {
        end.saturating_sub(self.old)
    }

    /// Makes a part read as zeros with nothing allocated. Where the file is not that long, it does so
    /// by itself; where it is in part, the block that the old end stands in goes too.
    pub(crate) fn make_hole(&self, sys: &dyn Sys, offset: u64, length: u64) -> Outcome<Result<()>> {
        // A disk does not, and says nothing of what was asked for beyond its end.
        if self.kind == Kind::Block && self.beyond_old(offset.saturating_add(length)) > 0 {
            return Ok(Err(Errno::NOSPC));
        }
        if !self.has_old(offset) || length == 0 {
            return Ok(Ok(()));
        }
        Ok(sys.punch_hole(self.fd()?, offset, length))
    }

    /// Gives a new file that gets holes its length before its first data, so that no write extends
    /// it: XFS would allocate beyond it in advance (<https://xfs.org/index.php/XFS_FAQ>, "speculative
    /// preallocation"), and keep what a hole is then laid over.
    pub(crate) fn foresee(&mut self, sys: &dyn Sys, length: u64) -> Outcome<()> {
        if self.is_new() {
            self.extend(sys, length)?;
        }
        Ok(())
    }

    /// Whether this copy made it, so that all its bytes are this copy's.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.origin, Origin::Created | Origin::Staged(..))
    }

    /// Makes it no shorter than `length`, where what it has beyond the old one is a hole.
    pub(crate) fn extend(&mut self, sys: &dyn Sys, length: u64) -> Outcome<()> {
        if self.is_file() && self.length.is_none_or(|is| is < length) {
            sys.truncate(self.fd()?, length).map_err(at_destination)?;
            self.length = Some(length);
        }
        Ok(())
    }

    /// It is no shorter than this.
    pub(crate) fn least_length(&self) -> u64 {
        self.length.unwrap_or(0)
    }

    /// It is this long now.
    pub(crate) fn grew_to(&mut self, length: u64) {
        self.length = Some(length);
    }

    /// Whether it gets its name only where nothing has that.
    pub(crate) fn yields(&self) -> bool {
        matches!(self.origin, Origin::Staged(_, false))
    }

    /// What stands under the destination's name by now is to be replaced too.
    pub(crate) fn replace_from_now_on(&mut self) {
        if let Origin::Staged(_, over) = &mut self.origin {
            *over = true;
        }
    }

    /// Puts some bytes into a stream.
    pub(crate) fn write_stream(
        &mut self,
        sys: &dyn Sys,
        bytes: &[u8],
        waker: &Waker,
    ) -> Outcome<Result<Attempt>> {
        match (&self.fd, &mut self.stream) {
            (Some(fd), Some(stream)) => Ok(stream.write(sys, fd.as_fd(), bytes, waker)),
            _ => Err(Cause::Panicked),
        }
    }

    /// Whether it would take something now. A file always does.
    pub(crate) fn has_room(&mut self, sys: &dyn Sys, waker: &Waker) -> Outcome<bool> {
        let (Some(fd), Some(stream)) = (&self.fd, &mut self.stream) else {
            return Ok(true);
        };
        let answer = match stream.feed() {
            Some(feed) => feed.room(waker).map(|room| room != Passed::Later),
            None => stream.is_ready(sys, fd.as_fd()),
        };
        answer.map_err(at_destination)
    }

    /// Closes it, and gives a staged file its name. `EEXIST` leaves all as it was.
    pub(crate) fn publish(&mut self, sys: &dyn Sys, close: Close) -> Result<()> {
        let mut fd = match self.fd.take() {
            Some(Fd::Ours(fd)) => Some(fd),
            Some(Fd::Theirs(_) | Fd::Feed(_)) | None => None,
        };
        match &mut self.origin {
            Origin::Staged(staged, over) => {
                let answer = staged.publish(sys, &mut fd, self.info.as_ref(), *over, close);
                self.fd = fd.map(Fd::Ours);
                answer?;
            }
            Origin::Existing | Origin::Created | Origin::Published => {
                if let Some(fd) = fd {
                    sys.close(fd)?;
                }
            }
        }
        self.origin = Origin::Published;
        Ok(())
    }

    /// Opens the directory in which a name is made, to be synced once it is there: before it is, so
    /// that a directory which may not be read fails the copy while it can still be taken back.
    pub(crate) fn directory_to_sync(
        &self,
        sys: &dyn Sys,
        request: &Request,
    ) -> Result<Option<OwnedFd>> {
        let Destination::Path(location) = &request.destination else {
            return Ok(None);
        };
        let entry = match &self.origin {
            Origin::Staged(staged, _) => staged.target.clone(),
            Origin::Created => self.entry(sys, location)?,
            Origin::Existing | Origin::Published => return Ok(None),
        };
        durability::open(sys, entry.directory.as_fd()).map(Some)
    }

    fn entry(&self, sys: &dyn Sys, location: &Location) -> Result<Entry> {
        resolve::parent(sys, &location.base, &location.path)
    }

    /// Takes back what this copy made, and nothing else.
    pub(crate) fn discard(&mut self, sys: &dyn Sys, request: &Request) {
        let fd = self.fd.take();
        match &mut self.origin {
            Origin::Existing => {
                if let (Some(fd), Some(mode)) = (&fd, self.wider_mode.take()) {
                    let _ = despite_signals(|| sys.set_mode(fd.as_fd(), mode));
                }
            }
            Origin::Published => {}
            Origin::Staged(staged, _) => staged.remove(sys),
            Origin::Created => {
                let made = match (&self.info, &fd) {
                    (Some(info), _) => Some(*info),
                    (None, Some(fd)) => despite_signals(|| sys.stat(fd.as_fd())).ok(),
                    (None, None) => None,
                };
                if let Destination::Path(location) = &request.destination
                    && let Some(made) = made
                    && let Ok(entry) = despite_signals(|| self.entry(sys, location))
                {
                    staging::remove(sys, &entry, &made);
                }
            }
        }
        if let Some(Fd::Ours(fd)) = fd {
            let _ = sys.close(fd);
        }
    }
}
