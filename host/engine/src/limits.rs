//! Bounds on what is copied, in logical bytes: a hole counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Limit;

/// How much a copy may take.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes of this copy.
    pub bytes: Option<u64>,
    /// Bytes of all copies that share the quota.
    pub total: Option<Arc<Quota>>,
}

/// A number of bytes that several copies draw from.
#[derive(Debug)]
pub struct Quota {
    left: AtomicU64,
}

impl Quota {
    /// A quota of so many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self {
            left: AtomicU64::new(bytes),
        }
    }

    /// What nobody has drawn.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Draws up to `bytes` and says how many were there.
    fn draw(&self, bytes: u64) -> u64 {
        let mut left = self.left();
        loop {
            let drawn = bytes.min(left);
            match self.left.compare_exchange_weak(
                left,
                left - drawn,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return drawn,
                Err(now) => left = now,
            }
        }
    }

    fn give_back(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// One copy's share of its limits. What it draws and does not use goes back.
#[derive(Debug)]
pub(crate) struct Allowance {
    bytes: Option<u64>,
    used: u64,
    draws: Vec<Draw>,
}

/// What was drawn from one quota, of which all but `used` is in hand.
#[derive(Debug)]
struct Draw {
    quota: Arc<Quota>,
    limit: Limit,
    drawn: u64,
}

impl Allowance {
    pub(crate) fn new(limits: Limits) -> Self {
        let mut allowance = Self {
            bytes: limits.bytes,
            used: 0,
            draws: Vec::new(),
        };
        if let Some(quota) = limits.total {
            allowance.draw_from(quota, Limit::TotalBytes);
        }
        allowance
    }

    /// Takes what it takes from this quota too, whose end is this limit.
    pub(crate) fn draw_from(&mut self, quota: Arc<Quota>, limit: Limit) {
        self.draws.push(Draw {
            quota,
            limit,
            drawn: self.used,
        });
    }

    /// Which limit so many more bytes would reach, as things stand.
    pub(crate) fn foresee(&self, bytes: u64) -> Result<(), Limit> {
        let is_beyond = |limit: u64| limit - self.used.min(limit) < bytes;
        if self.bytes.is_some_and(is_beyond) {
            return Err(Limit::Bytes);
        }
        for draw in &self.draws {
            let in_hand = draw.drawn - self.used;
            if draw.quota.left().saturating_add(in_hand) < bytes {
                return Err(draw.limit);
            }
        }
        Ok(())
    }

    /// Draws all of so many bytes, or says which limit stands in the way.
    pub(crate) fn ask_for_all(&mut self, bytes: u64) -> Result<(), Limit> {
        self.foresee(bytes)?;
        if self.ask(bytes)? < bytes {
            // Somebody else was faster.
            return Err(self.draws.last().map_or(Limit::Bytes, |draw| draw.limit));
        }
        Ok(())
    }

    /// How many of the next `wanted` bytes may be taken, or which limit stands in the way of the
    /// first. A shared quota is drawn here, before the bytes move, so that copies that run at once
    /// never exceed it together.
    pub(crate) fn ask(&mut self, wanted: u64) -> Result<u64, Limit> {
        let mut granted = wanted;
        if let Some(limit) = self.bytes {
            granted = granted.min(limit - self.used.min(limit));
            if granted == 0 && wanted > 0 {
                return Err(Limit::Bytes);
            }
        }
        for draw in &mut self.draws {
            let in_hand = draw.drawn - self.used;
            if in_hand < granted {
                draw.drawn += draw.quota.draw(granted - in_hand);
            }
            granted = granted.min(draw.drawn - self.used);
            if granted == 0 && wanted > 0 {
                return Err(draw.limit);
            }
        }
        Ok(granted)
    }

    /// So many of the bytes asked for were taken. The rest goes back to those who share the quota.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.used += bytes;
        for draw in &mut self.draws {
            draw.quota.give_back(draw.drawn.saturating_sub(self.used));
            draw.drawn = self.used;
        }
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.spend(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_gets_its_own_limit_and_no_byte_more() {
        let mut allowance = Allowance::new(Limits {
            bytes: Some(10),
            total: None,
        });
        assert_eq!(allowance.ask(4), Ok(4));
        allowance.spend(4);
        assert_eq!(allowance.ask(100), Ok(6));
        allowance.spend(6);
        assert_eq!(allowance.ask(1), Err(Limit::Bytes));
        assert_eq!(allowance.ask(0), Ok(0));
    }

    #[test]
    fn what_was_drawn_and_not_used_goes_back() {
        let quota = Arc::new(Quota::new(10));
        let limits = Limits {
            bytes: None,
            total: Some(quota.clone()),
        };
        let mut one = Allowance::new(limits.clone());
        let mut two = Allowance::new(limits);
        assert_eq!(one.ask(8), Ok(8));
        assert_eq!(two.ask(8), Ok(2));
        one.spend(3);
        assert_eq!(quota.left(), 5);
        assert_eq!(one.ask(1), Ok(1));
        drop(one);
        assert_eq!(quota.left(), 5);
        two.spend(2);
        assert_eq!(two.ask(8), Ok(5));
        two.spend(5);
        assert_eq!(two.ask(1), Err(Limit::TotalBytes));
        drop(two);
        assert_eq!(quota.left(), 0);
    }

    #[test]
    fn what_is_in_hand_is_not_asked_for_twice() {
        let mut allowance = Allowance::new(Limits {
            bytes: Some(10),
            total: Some(Arc::new(Quota::new(10))),
        });
        assert_eq!(allowance.ask_for_all(10), Ok(()));
        // A call that was interrupted.
        assert_eq!(allowance.ask_for_all(10), Ok(()));
        allowance.spend(4);
        assert_eq!(allowance.ask_for_all(6), Ok(()));
        assert_eq!(allowance.ask_for_all(7), Err(Limit::Bytes));
    }
}
