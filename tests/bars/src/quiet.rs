//! Whether the machine had anything else to do.
//!
//! A steady load does not show when a thing is compared with itself, yet it shifts the ratio of two
//! things: one that fills a processor is slowed down by it, and one that waits for other threads all
//! the time is not, since processors that are busy anyway wake up faster.

use std::fmt;
use std::fs;

use crate::row::Verdict;

/// What others may take of the processors.
const QUIET: f64 = 0.1;

/// Watches from its start on.
pub(crate) struct Watch(Option<Ticks>);

/// The part of the processors that others took; none where the system does not tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Others(Option<f64>);

/// Times in the kernel's own unit (proc(5)).
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// What there was.
    all: f64,
    busy: f64,
    /// This process alone.
    own: f64,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self(Ticks::now())
    }

    pub(crate) fn others(&self) -> Others {
        let part = |before: &Ticks, now: &Ticks| {
            let others = (now.busy - before.busy) - (now.own - before.own);
            (others / (now.all - before.all)).max(0.0)
        };
        Others(
            self.0
                .zip(Ticks::now())
                .map(|(before, now)| part(&before, &now)),
        )
    }
}

impl Others {
    /// The verdict, where it can be given.
    pub(crate) fn or_void(self, verdict: Verdict) -> Verdict {
        match self.0 {
            Some(part) if part > QUIET => Verdict::Void,
            _ => verdict,
        }
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(part) => write!(f, "{:.0} % of the processors taken by others", part * 100.0),
            None => f.write_str("what others took is not known"),
        }
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::parse(
            &fs::read_to_string("/proc/stat").ok()?,
            &fs::read_to_string("/proc/self/stat").ok()?,
        )
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows is counted in user.
        let times = numbers(machine.lines().next()?.strip_prefix("cpu ")?, 8)?;
        let all: f64 = times.iter().sum();
        // After the name, which may hold anything: state, then ten others, then user and system.
        let (_, after) = process.rsplit_once(") ")?;
        let own = numbers(after.split_once(' ')?.1, 12)?;
        Some(Self {
            all,
            busy: all - times[3] - times[4],
            own: own[10] + own[11],
        })
    }
}

/// The first of them.
fn numbers(text: &str, count: usize) -> Option<Vec<f64>> {
    let numbers: Vec<_> = text
        .split_whitespace()
        .take(count)
        .map_while(|word| word.parse().ok())
        .collect();
    (numbers.len() == count).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_was_busy_and_not_this_process() {
        let process = "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 30 12 0 0 20 0 1 0 5";
        let ticks = Ticks::parse("cpu  10 1 20 300 4 5 6 7 0 0\ncpu0 1\n", process).unwrap();
        assert_eq!((ticks.all, ticks.busy, ticks.own), (353.0, 49.0, 42.0));
        assert!(Ticks::parse("intr 1", process).is_none());
        assert!(Ticks::parse("cpu  1 2 3 4 5 6 7 8", "7 (a) S").is_none());
    }

    #[test]
    fn a_busy_machine_voids_whatever_was_found() {
        for verdict in [Verdict::Met, Verdict::Missed] {
            assert_eq!(Others(Some(0.05)).or_void(verdict), verdict);
            assert_eq!(Others(None).or_void(verdict), verdict);
            assert_eq!(Others(Some(0.2)).or_void(verdict), Verdict::Void);
        }
    }
}
