//! Offsets and lengths: where in the two files a copy begins and ends.

use rustix::io::Errno;

use crate::error::{Cause, Side};
use crate::request::Window;

/// Offsets are signed in every system call.
const LAST: u64 = i64::MAX as u64;

/// The part of the source that is copied, and where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: u64,
    pub(crate) destination: u64,
    pub(crate) length: Option<u64>,
}

impl Span {
    /// Checks a window that a guest may have made up.
    pub(crate) fn of(window: Option<Window>) -> Result<Self, Cause> {
        let Some(window) = window else {
            return Ok(Self::default());
        };
        let length = window.length.unwrap_or(0);
        check(Side::Source, window.source_offset, length)?;
        check(Side::Destination, window.destination_offset, length)?;
        Ok(Self {
            source: window.source_offset,
            destination: window.destination_offset,
            length: window.length,
        })
    }

    /// The same part of a source that begins so far into its file.
    pub(crate) fn starting_at(self, start: u64) -> Result<Self, Cause> {
        let length = self.length.unwrap_or(0);
        check(Side::Source, self.source.saturating_add(start), length)?;
        Ok(Self {
            source: self.source + start,
            ..self
        })
    }

    /// Whether the destination has offsets for so many bytes.
    pub(crate) fn check_room(self, bytes: u64) -> Result<(), Cause> {
        check(Side::Destination, self.destination, bytes)
    }

    /// How much may still be taken after so many bytes. Where the part has no end, that of all
    /// offsets is its end: a call that reaches beyond is refused, even at the end of the file.
    pub(crate) fn left(self, consumed: u64) -> u64 {
        self.length
            .unwrap_or(LAST - self.source)
            .saturating_sub(consumed)
    }

    /// Whether both parts can lie in one file: they have an end, and it comes before the other's
    /// start. What is appended comes after everything.
    pub(crate) fn is_disjoint(self, appends: bool) -> bool {
        let Some(length) = self.length else {
            return false;
        };
        appends
            || self.source + length <= self.destination
            || self.destination + length <= self.source
    }
}

fn check(side: Side, offset: u64, length: u64) -> Result<(), Cause> {
    match offset.checked_add(length) {
        Some(end) if end <= LAST => Ok(()),
        _ => Err(Cause::Io(side, Errno::OVERFLOW)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(source_offset: u64, length: Option<u64>, destination_offset: u64) -> Option<Window> {
        Some(Window {
            source_offset,
            length,
            destination_offset,
        })
    }

    #[test]
    fn an_end_that_no_offset_reaches_is_refused() {
        for bad in [
            window(u64::MAX, None, 0),
            window(0, None, u64::MAX),
            window(1, Some(u64::MAX), 0),
            window(0, Some(LAST), 1),
            window(LAST, Some(1), 0),
            window(LAST + 1, None, 0),
        ] {
            assert!(
                matches!(Span::of(bad), Err(Cause::Io(_, Errno::OVERFLOW))),
                "{bad:?}"
            );
        }
        assert!(Span::of(window(LAST, None, LAST)).is_ok());
        assert!(Span::of(window(0, Some(LAST), 0)).is_ok());
        let late = Span::of(window(0, None, LAST - 10)).unwrap();
        assert_eq!(late.check_room(10), Ok(()));
        assert_eq!(
            late.check_room(11),
            Err(Cause::Io(Side::Destination, Errno::OVERFLOW))
        );
        assert_eq!(Span::of(None), Ok(Span::default()));
    }

    #[test]
    fn a_part_without_an_end_ends_with_the_offsets() {
        let left = |w, consumed| Span::of(w).unwrap().left(consumed);
        assert_eq!(left(None, 0), LAST);
        assert_eq!(left(window(LAST - 10, None, 0), 0), 10);
        assert_eq!(left(window(LAST - 10, None, 0), 10), 0);
        assert_eq!(left(window(LAST, None, 0), 0), 0);
        assert_eq!(left(window(5, Some(20), 0), 15), 5);
        assert_eq!(left(window(5, Some(20), 0), 25), 0);
    }

    #[test]
    fn only_parts_with_an_end_are_disjoint() {
        let disjoint = |w| Span::of(w).unwrap().is_disjoint(false);
        let appended = |w| Span::of(w).unwrap().is_disjoint(true);
        assert!(appended(window(0, Some(10), 5)));
        assert!(!appended(window(0, None, 5)));
        assert!(disjoint(window(0, Some(10), 10)));
        assert!(disjoint(window(10, Some(10), 0)));
        assert!(disjoint(window(5, Some(0), 5)));
        assert!(!disjoint(window(0, Some(10), 9)));
        assert!(!disjoint(window(9, Some(10), 0)));
        assert!(!disjoint(window(0, Some(10), 0)));
        assert!(!disjoint(window(0, None, 1 << 40)));
    }
}
