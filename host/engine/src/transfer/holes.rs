//! Holes in the phase Data: skipped where the source has them, and made where zeros are.

use std::os::fd::AsFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Fd, Flow, Transfer, at_source, parts};
use crate::error::Cause;
use crate::plan::Mechanism;
use crate::request::Sparse;
use crate::resolve::ALWAYS;
use crate::sparse::{self, Region};
use crate::target::Target;

/// One step makes no more of a hole than this, since freeing what an old file has there takes time.
const MOST: u64 = 1 << 30;

/// Where the walk over the source's holes stands.
#[derive(Debug, Default)]
pub(super) struct Walk {
    here: Here,
    /// The bytes up to the end of the last data: what comes after it is a hole so far.
    data_end: u64,
    /// The bytes up to the end of the last zeros that were read and left out.
    zeros_end: u64,
}

/// What the cursor is in. Ends are offsets in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Here {
    /// A source without holes, or one that tells nothing of them.
    #[default]
    Plain,
    /// To be asked.
    Ask,
    Data(u64),
    Hole(u64),
    /// A hole by the word of a file system that is not known to be right about it: what is read
    /// there decides (<https://github.com/openzfs/zfs/issues/15526>).
    Claimed(u64),
}

impl Walk {
    /// Data was put up to here.
    pub(super) fn data_ends(&mut self, bytes: u64) {
        self.data_end = bytes;
    }
}

/// What is to be done with the bytes in hand.
pub(super) enum Put {
    /// They were zeros, and became a hole.
    Nothing(Flow),
    /// Write so many.
    AtMost(usize),
}

impl Transfer {
    /// The source may have holes. Asking moves the file position, so that somebody else's descriptor
    /// is opened once more; where that cannot be, nobody asks.
    pub(super) fn begin_walk(&mut self) {
        let sys = self.environment.sys();
        if let Some((fd @ Fd::Theirs(_), _)) = &mut self.source {
            match sys.reopen(fd.as_fd(), ALWAYS | OFlags::RDONLY) {
                Ok(private) => *fd = Fd::Ours(private),
                Err(_) => return,
            }
        }
        self.walk.here = Here::Ask;
    }

    /// Looks where the cursor is, and goes on over a hole. `None`: there is data to move, up to
    /// [`until_region_ends`](Self::until_region_ends).
    pub(super) fn walk(&mut self) -> Result<Option<Flow>, Cause> {
        let cursor = self.source_cursor();
        match self.walk.here {
            Here::Plain => Ok(None),
            Here::Data(end) | Here::Claimed(end) if cursor < end => Ok(None),
            Here::Hole(end) if cursor < end => self.skip(end - cursor).map(Some),
            Here::Ask | Here::Data(_) | Here::Claimed(_) | Here::Hole(_) => {
                let keeps_tail = self.keeps_tail();
                let destination = self.span.destination + self.summary.bytes;
                let (source, info, target) = parts(&self.source, &mut self.target)?;
                let sys = self.environment.sys();
                self.walk.here = match sparse::region(sys, source, cursor, info.size) {
                    // All of it is data: a compressed file.
                    Ok(Region::Data(end)) if self.summary.consumed == 0 && end >= info.size => {
                        Here::Plain
                    }
                    Ok(Region::Data(end)) => Here::Data(end),
                    Ok(Region::Hole(end)) => {
                        let support = self.environment.support();
                        if !support.is_local(sys, info.device, source) {
                            Here::Claimed(end)
                        } else if end < info.size || !keeps_tail || !target.has_old(destination) {
                            Here::Hole(end)
                        } else {
                            // What stands in the old file beyond the part must stay, so that a source
                            // which was cut since it was opened ends where it ends now.
                            match sys.stat(source).map_err(at_source)?.size.min(end) {
                                end if end > cursor => Here::Hole(end),
                                _ => Here::Plain,
                            }
                        }
                    }
                    Ok(Region::Unknown) => Here::Plain,
                    Err(errno) => return Err(at_source(errno)),
                };
                if self.walk.here != Here::Plain {
                    self.foresee()?;
                }
                Ok(Some(Flow::Moved(0)))
            }
        }
    }

    /// What moves the next bytes. Where zeros are to be seen, a buffer.
    pub(super) fn mechanism(&self) -> Option<Mechanism> {
        let looks = matches!(self.walk.here, Here::Claimed(_));
        if looks && self.plan.contains(Mechanism::ReadWrite) {
            return Some(Mechanism::ReadWrite);
        }
        self.plan.current()
    }

    /// How far the next data call may go.
    pub(super) fn until_region_ends(&self) -> u64 {
        match self.walk.here {
            Here::Data(end) | Here::Claimed(end) => end.saturating_sub(self.source_cursor()),
            Here::Plain | Here::Ask | Here::Hole(_) => u64::MAX,
        }
    }

    /// Makes a hole of the zeros that the bytes in hand begin with, where that is wanted.
    pub(super) fn leave_out_zeros(&mut self) -> Result<Put, Cause> {
        let wanted = self.request.options.sparse == Sparse::Always
            || matches!(self.walk.here, Here::Claimed(_));
        let (_, _, target) = parts(&self.source, &mut self.target)?;
        if !wanted || target.appends || target.stream.is_some() {
            return Ok(Put::AtMost(usize::MAX));
        }
        let (is_zeros, length) = sparse::first_run(self.hand.bytes());
        if !is_zeros {
            return Ok(Put::AtMost(length));
        }
        let offset = self.span.destination + self.summary.bytes;
        match target.make_hole(self.environment.sys(), offset, length as u64)? {
            Ok(()) => {
                self.hand.skip(length);
                self.summary.bytes += length as u64;
                self.walk.zeros_end = self.summary.bytes;
                Ok(Put::Nothing(Flow::Moved(length as u64)))
            }
            Err(Errno::INTR) => Ok(Put::Nothing(Flow::Moved(0))),
            // Then they are written.
            Err(_) => Ok(Put::AtMost(length)),
        }
    }

    /// There are holes, and none was passed yet: a new file gets its length before its first data.
    fn foresee(&mut self) -> Result<(), Cause> {
        let end = self
            .span
            .destination
            .saturating_add(self.expected.unwrap_or(0));
        let (_, _, target) = parts(&self.source, &mut self.target)?;
        target.foresee(self.environment.sys(), end)
    }

    /// Goes over a hole of the source. It counts as bytes.
    fn skip(&mut self, length: u64) -> Result<Flow, Cause> {
        let offset = self.span.destination + self.summary.bytes;
        let (_, _, target) = parts(&self.source, &mut self.target)?;
        let most = if target.has_old(offset) {
            MOST
        } else {
            u64::MAX
        };
        let wanted = length.min(self.span.left(self.summary.consumed)).min(most);
        let length = match self.allowance.ask(wanted) {
            Ok(length) => length,
            Err(limit) => return self.end_or(limit),
        };
        let (_, _, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        match target.make_hole(sys, offset, length)? {
            Ok(()) => {
                self.allowance.spend(length);
                self.summary.consumed += length;
                self.summary.bytes += length;
                Ok(Flow::Moved(length))
            }
            Err(errno) => {
                self.allowance.spend(0);
                // The old file keeps what it has there unless zeros are written: as data, then.
                if errno != Errno::INTR
                    && let Here::Hole(end) = self.walk.here
                {
                    self.walk.here = Here::Data(end);
                }
                Ok(Flow::Moved(0))
            }
        }
    }

    /// A copy that ends in a hole has written nothing that would make the destination long enough.
    pub(super) fn settle_last_hole(&mut self) -> Result<(), Cause> {
        let hole = self.summary.bytes - self.walk.data_end.min(self.summary.bytes);
        if hole == 0 {
            return Ok(());
        }
        let keeps_tail = self.keeps_tail();
        let (source, _, target) = parts(&self.source, &mut self.target)?;
        let sys = self.environment.sys();
        let mut unread = hole.min(self.summary.bytes - self.walk.zeros_end);
        if keeps_tail {
            // Where an old file's bytes gave way to zeros, those are there now.
            unread = unread.min(target.beyond_old(self.span.destination + self.summary.bytes));
        }
        if unread > 0 {
            // Nobody saw whether the source was cut meanwhile.
            let end = self.span.source + self.summary.consumed;
            let size = sys.stat(source).map_err(at_source)?.size;
            let beyond = end.saturating_sub(size).min(unread);
            if beyond > 0 {
                self.summary.bytes -= beyond;
                self.summary.consumed -= beyond;
                self.summary.changed = true;
            }
        }
        if self.summary.bytes == 0 {
            return Ok(());
        }
        target.extend(sys, self.span.destination + self.summary.bytes)
    }

    /// Whether an old file keeps what it has behind the part that is written.
    fn keeps_tail(&self) -> bool {
        let is_new = self.target.as_ref().is_none_or(Target::is_new);
        self.request.options.window.is_some() && !is_new
    }

    /// A copy that fails behind a hole leaves an old file no longer than it is: what it has not does not
    /// count.
    pub(super) fn forget_last_hole(&mut self) {
        if let Some(target) = self.target.as_ref().filter(|target| !target.is_new()) {
            let there = target.least_length().saturating_sub(self.span.destination);
            let there = there.max(self.walk.data_end);
            self.summary.bytes = self.summary.bytes.min(there);
        }
    }

    fn source_cursor(&self) -> u64 {
        self.span.source + self.summary.consumed
    }
}
