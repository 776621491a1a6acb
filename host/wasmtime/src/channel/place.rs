//! The channels of one copy; and those that are files, which are read and written from where they
//! stand, as if they were streams.

use std::os::fd::AsFd;

use copyist_engine::{Cause, Errno, Handle, Options, Side, Summary, Unsupported, Window};
use rustix::fs::{FileType, OFlags, SeekFrom};

use super::Use;

/// Whether a file or a disk, which is read and written at offsets.
pub(super) fn has_position(handle: &Handle) -> bool {
    rustix::fs::fstat(handle).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::RegularFile | FileType::BlockDevice
        )
    })
}

/// The channels among the ends of one copy, from before it starts until it has ended.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) source: Option<Use>,
    pub(crate) destination: Option<Use>,
    places: [Option<u64>; 2],
}

impl Uses {
    pub(crate) fn new(source: Option<Use>, destination: Option<Use>) -> Self {
        Self {
            source,
            destination,
            places: [None; 2],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.source.is_none() && self.destination.is_none()
    }

    /// Makes a copy begin where its files stand.
    pub(crate) fn place(&mut self, options: &mut Options) -> Result<(), Cause> {
        let window = options.window.unwrap_or(Window {
            source_offset: 0,
            length: None,
            destination_offset: 0,
        });
        if let Some(source) = &self.source {
            if window.source_offset > 0 {
                return Err(Unsupported::Offset(Side::Source).into());
            }
            self.places[0] = source.position()?;
            options.source_start = self.places[0].unwrap_or(0);
        }
        if let Some(destination) = &self.destination {
            if window.destination_offset > 0 {
                return Err(Unsupported::Offset(Side::Destination).into());
            }
            self.places[1] = destination.position()?;
            if let Some(destination_offset) = self.places[1] {
                options.window = Some(Window {
                    destination_offset,
                    ..window
                });
            }
        }
        Ok(())
    }

    /// The copy has ended: files stand behind what was taken and put.
    pub(crate) fn end(self, done: &Summary) {
        let moved = [done.consumed, done.bytes];
        for (used, (place, moved)) in [self.source, self.destination]
            .iter()
            .zip(self.places.into_iter().zip(moved))
        {
            if let (Some(used), Some(place)) = (used, place)
                && let Some(handle) = &used.handle
            {
                let _ = rustix::fs::seek(handle, SeekFrom::Start(place.saturating_add(moved)));
            }
        }
    }
}

impl Use {
    /// Where the file stands. None of a stream, and of what is appended to.
    fn position(&self) -> Result<Option<u64>, Cause> {
        if !self.channel.has_position {
            return Ok(None);
        }
        let failed = |errno: Errno| Cause::Io(self.side, errno);
        let handle = self.handle()?;
        let flags = rustix::fs::fcntl_getfl(&handle).map_err(failed)?;
        if self.side == Side::Destination && flags.contains(OFlags::APPEND) {
            return Ok(None);
        }
        let place = rustix::fs::seek(handle.as_fd(), SeekFrom::Current(0)).map_err(failed)?;
        Ok(Some(place))
    }
}
