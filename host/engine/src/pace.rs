//! How many bytes one data call is asked to move.

use std::time::Duration;

use crate::request::Tuning;

/// The first call. On tmpfs it takes about half a millisecond.
const FIRST: usize = 1 << 20;
/// Beyond this a longer call gains nothing (1 MiB to 2 GiB differ by under 2 % here) and a cancel
/// waits longer: of 16 MiB calls on tmpfs the slowest of a hundred took 37 ms, of 8 MiB ones 5 ms.
const MOST: usize = 8 << 20;
/// A slow device must not turn a call of the smallest size into nothing but overhead.
const LEAST: usize = 64 << 10;

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(4);

/// Keeps data calls short enough that a cancel is heard within milliseconds, and long enough that
/// their number costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    length: usize,
    fixed: bool,
}

impl Pace {
    pub(crate) fn new(tuning: Tuning) -> Self {
        match tuning.call_size {
            Some(size) => Self {
                length: size.get(),
                fixed: true,
            },
            None => Self {
                length: FIRST,
                fixed: false,
            },
        }
    }

    pub(crate) fn length(self) -> u64 {
        self.length as u64
    }

    /// A call of the full length took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        if self.fixed {
            return;
        }
        if time < SHORT {
            self.length = (self.length * 2).min(MOST);
        } else if time > LONG {
            self.length = (self.length / 2).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_grow_and_long_ones_shrink_within_bounds() {
        let mut pace = Pace::new(Tuning::default());
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
        let mut pace = Pace::new(Tuning {
            call_size: std::num::NonZeroUsize::new(12_345),
            ..Tuning::default()
        });
        pace.took(Duration::ZERO);
        pace.took(Duration::from_secs(1));
        assert_eq!(pace.length(), 12_345);
    }
}
