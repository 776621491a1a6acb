//! When a guest is ended, in what its clock counts in.

use std::fmt::Debug;
use std::num::NonZeroU64;
use std::time::Duration;

/// Ticks of a clock that the embedder feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// What a clock counts in: [`Duration`] where it ticks by itself, [`Ticks`] where it is fed.
pub trait Measure: Units + Copy + Debug + Send + Sync + 'static {}

impl Measure for Duration {}
impl Measure for Ticks {}

/// As the deadlines are ordered. Private, so that nobody else implements [`Measure`].
pub trait Units {
    #[doc(hidden)]
    fn units(self) -> u64;
    #[doc(hidden)]
    fn of(units: u64) -> Self;
}

impl Units for Duration {
    fn units(self) -> u64 {
        // 584 years are as good as more.
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }

    fn of(units: u64) -> Self {
        Self::from_nanos(units)
    }
}

impl Units for Ticks {
    fn units(self) -> u64 {
        self.0
    }

    fn of(units: u64) -> Self {
        Self(units)
    }
}

/// How long a guest may run, and whether it lets others run meanwhile. A [`Duration`] or [`Ticks`]
/// alone becomes one by `into`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline<M> {
    pub(super) after: Option<M>,
    pub(super) yield_every: Option<NonZeroU64>,
}

impl<M> Deadline<M> {
    /// So long from now. It is met at the first tick at which so much has passed, which is never
    /// before, and never the present one.
    pub const fn after(after: M) -> Self {
        Self {
            after: Some(after),
            yield_every: None,
        }
    }

    /// None, for now: [`Attachment::set`](super::Attachment::set) sets one.
    pub const fn none() -> Self {
        Self {
            after: None,
            yield_every: None,
        }
    }

    /// While it computes, the guest lets its executor run others after each so many ticks of the
    /// clock. The store can then be called with async alone.
    #[must_use]
    pub const fn yielding(mut self, every: NonZeroU64) -> Self {
        self.yield_every = Some(every);
        self
    }
}

impl<M: Measure> From<M> for Deadline<M> {
    fn from(after: M) -> Self {
        Self::after(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_and_have_no_end() {
        for time in [0, 1, 1_000_000_007].map(Duration::from_nanos) {
            assert_eq!(Duration::of(time.units()), time);
        }
        assert_eq!(Duration::MAX.units(), u64::MAX);
    }
}
