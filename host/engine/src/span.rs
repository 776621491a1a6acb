//! Offsets and lengths: where in the two files a copy begins and ends.

use rustix::io::Errno;

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
    pub(crate) fn of(window: Option<Window>) -> Result<Self, Errno> {
        let Some(window) = window else {
            return Ok(Self::default());
        };
        let length = window.length.unwrap_or(0);
        for offset in [window.source_offset, window.destination_offset] {
            if offset.checked_add(length).is_none_or(|end| end > LAST) {
                return Err(Errno::OVERFLOW);
            }
        }
        Ok(Self {
            source: window.source_offset,
            destination: window.destination_offset,
            length: window.length,
        })
    }

    /// Whether both parts can lie in one file: they have an end, and it comes before the other's
    /// start.
    pub(crate) fn is_disjoint(self) -> bool {
        let Some(length) = self.length else {
            return false;
        };
        self.source + length <= self.destination || self.destination + length <= self.source
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
            assert_eq!(Span::of(bad), Err(Errno::OVERFLOW), "{bad:?}");
        }
        assert!(Span::of(window(LAST, None, LAST)).is_ok());
        assert!(Span::of(window(0, Some(LAST), 0)).is_ok());
        assert_eq!(Span::of(None), Ok(Span::default()));
    }

    #[test]
    fn only_parts_with_an_end_are_disjoint() {
        let disjoint = |w| Span::of(w).unwrap().is_disjoint();
        assert!(disjoint(window(0, Some(10), 10)));
        assert!(disjoint(window(10, Some(10), 0)));
        assert!(disjoint(window(5, Some(0), 5)));
        assert!(!disjoint(window(0, Some(10), 9)));
        assert!(!disjoint(window(9, Some(10), 0)));
        assert!(!disjoint(window(0, Some(10), 0)));
        assert!(!disjoint(window(0, None, 1 << 40)));
    }
}
