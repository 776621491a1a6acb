//! Times of one thing, and how they are compared.

use std::fmt;
use std::time::Duration;

use crate::row::Verdict;

/// By what part a control may be off.
const STEADY: f64 = 0.05;

/// Times of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// What else the machine does only ever adds time, so this is what is compared.
    pub(crate) fn lower_quartile(&self) -> Duration {
        self.at(1, 4)
    }

    pub(crate) fn median(&self) -> Duration {
        self.at(1, 2)
    }

    pub(crate) fn percentile(&self, part: usize) -> Duration {
        self.at(part, 100)
    }

    /// The nearest rank.
    fn at(&self, part: usize, of: usize) -> Duration {
        let mut times = self.0.clone();
        times.sort_unstable();
        let rank = (times.len() * part).div_ceil(of).saturating_sub(1);
        times.get(rank).copied().unwrap_or_default()
    }
}

/// How many times as long the first takes.
pub(crate) fn ratio(one: &Sample, other: &Sample) -> f64 {
    one.lower_quartile().as_secs_f64() / other.lower_quartile().as_secs_f64()
}

/// The control: two samples of the same thing, taken in turn.
pub(crate) fn differ(one: &Sample, other: &Sample) -> Control {
    Control(ratio(one, other).max(ratio(other, one)) - 1.0)
}

/// By what part the slower one of two equals was slower.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control(f64);

impl Control {
    /// The verdict, where it can be given.
    pub(crate) fn or_void(self, verdict: Verdict) -> Verdict {
        if self.0 <= STEADY {
            verdict
        } else {
            Verdict::Void
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(times: &[u64]) -> Sample {
        Sample(times.iter().copied().map(Duration::from_millis).collect())
    }

    #[test]
    fn quartiles_are_the_nearest_ranks() {
        let of = |times: &[u64]| {
            let sample = sample(times);
            (
                sample.lower_quartile().as_millis(),
                sample.median().as_millis(),
            )
        };
        assert_eq!(of(&[5]), (5, 5));
        assert_eq!(of(&[4, 1, 3, 2]), (1, 2));
        assert_eq!(of(&[7, 6, 5, 4, 3, 2, 1]), (2, 4));
    }

    #[test]
    fn a_control_that_is_off_voids_whatever_was_found() {
        let (one, close, off) = (sample(&[100]), sample(&[104]), sample(&[106]));
        for verdict in [Verdict::Met, Verdict::Missed] {
            assert_eq!(differ(&one, &close).or_void(verdict), verdict);
            assert_eq!(differ(&close, &one).or_void(verdict), verdict);
            assert_eq!(differ(&one, &off).or_void(verdict), Verdict::Void);
            assert_eq!(differ(&off, &one).or_void(verdict), Verdict::Void);
        }
    }
}
