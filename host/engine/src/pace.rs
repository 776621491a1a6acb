//! How many bytes one call is asked to move or to share, and how long a thread stays with one copy.

use std::time::Duration;

use crate::request::Tuning;

/// How long a copy, or a part of a tree, goes on while others wait.
pub(crate) const SLICE: Duration = Duration::from_millis(5);

/// Between which sizes calls of one kind move.
#[derive(Debug)]
struct Bounds {
    first: u64,
    least: u64,
    most: u64,
}

/// Calls that copy bytes. The first takes about half a millisecond on tmpfs. Beyond the last a longer
/// call gains nothing (1 MiB to 2 GiB differ by under 2 % here) and a cancel waits longer: of 16 MiB
/// calls on tmpfs the slowest of a hundred took 37 ms, of 8 MiB ones 5 ms. A slow device must not
/// turn a call of the smallest size into nothing but overhead.
const DATA: Bounds = Bounds {
    first: 1 << 20,
    least: 64 << 10,
    most: 8 << 20,
};
/// Clones in pieces. They cost next to nothing where the source is on the disk (0.06 ms for 1 GiB on
/// XFS), and as much as writing it there where it is not (0.76 s for 1 GiB), which only the call
/// itself tells.
const CLONE: Bounds = Bounds {
    first: 16 << 20,
    least: 4 << 20,
    most: 256 << 20,
};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(4);

/// Keeps calls short enough that a cancel is heard within milliseconds, and long enough that their
/// number costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    length: u64,
    /// `None`: the length that was given stays.
    bounds: Option<&'static Bounds>,
}

impl Pace {
    /// Of calls that copy bytes.
    pub(crate) fn of_data(tuning: Tuning) -> Self {
        Self::of(tuning, &DATA)
    }

    /// Of calls that share storage.
    pub(crate) fn of_clones(tuning: Tuning) -> Self {
        Self::of(tuning, &CLONE)
    }

    fn of(tuning: Tuning, bounds: &'static Bounds) -> Self {
        match tuning.call_size {
            Some(size) => Self {
                length: size.get() as u64,
                bounds: None,
            },
            None => Self {
                length: bounds.first,
                bounds: Some(bounds),
            },
        }
    }

    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// A call of the full length took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        let Some(bounds) = self.bounds else {
            return;
        };
        if time < SHORT {
            self.length = (self.length * 2).min(bounds.most);
        } else if time > LONG {
            self.length = (self.length / 2).max(bounds.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_grow_and_long_ones_shrink_within_bounds() {
        let mut pace = Pace::of_data(Tuning::default());
        assert_eq!(pace.length(), 1 << 20);
        for _ in 0..10 {
            pace.took(Duration::from_millis(1));
        }
        assert_eq!(pace.length(), 8 << 20);
        pace.took(Duration::from_millis(3));
        assert_eq!(pace.length(), 8 << 20);
        pace.took(Duration::from_millis(5));
        assert_eq!(pace.length(), 4 << 20);
        for _ in 0..20 {
            pace.took(Duration::from_secs(1));
        }
        assert_eq!(pace.length(), 64 << 10);
    }

    #[test]
    fn a_size_that_was_given_stays() {
        let mut pace = Pace::of_data(Tuning {
            call_size: std::num::NonZeroUsize::new(12_345),
            ..Tuning::default()
        });
        pace.took(Duration::ZERO);
        pace.took(Duration::from_secs(1));
        assert_eq!(pace.length(), 12_345);
    }
}
