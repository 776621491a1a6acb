//! Whole-file reads, drawn at random and held to a model.

use copyist_engine::{
    Cancel, Cause, Errno, Error, Limit, Limits, ReadOptions, ReadRequest, Side, read_in,
};
use proptest::prelude::*;
use rustix::fs::OFlags;

use crate::case::{Case, From, Stage};
use crate::config;
use crate::content::{LAST, place};
use crate::draw;
use crate::layout::Fill;
use crate::oracle::{Verdict, ensure, refused};
use crate::schedule::{Change, Fault, Op, When};
use crate::world::Says;

/// More calls than the longest read makes, with all that may go wrong.
const MOST_CALLS: usize = 3000;

/// A case, of which the source is read, and how much it may be.
#[derive(Clone, Debug)]
struct Reading {
    case: Case,
    limit: Option<u64>,
}

fn reading() -> impl Strategy<Value = Reading> {
    (draw::case(), prop::option::weighted(0.4, draw::offset())).prop_map(|(mut case, limit)| {
        for rule in &mut case.rules {
            // What has to wait waits in earnest.
            let is_once = matches!(rule.when, When::Call(_) | When::Of(_, _, 1));
            if rule.fault == Fault::Fail(Errno::AGAIN) && !is_once {
                rule.fault = Fault::Fail(Errno::INTR);
            }
        }
        Reading { case, limit }
    })
}

fn check(reading: &Reading) -> Verdict {
    let case = &reading.case;
    let stage = case.set_up();
    let request = ReadRequest {
        source: stage.request.source.clone(),
        options: ReadOptions {
            window: case.options.window,
            limit: reading.limit,
            limits: Limits {
                bytes: case.options.limits.bytes,
                total: stage.quota.clone(),
            },
        },
    };
    stage.world.state().schedule.at_most(MOST_CALLS);
    let answer = read_in(&stage.environment, &request, &Cancel::new());
    reading.verdict(&stage, &answer).map_err(|complaint| {
        let length = answer.as_ref().map(Vec::len);
        let fired = stage.world.state().schedule.fired().to_vec();
        format!("{complaint}\n  answer: {length:?}\n  fired: {fired:?}")
    })
}

impl Reading {
    fn part(&self, all: &[u8]) -> Vec<u8> {
        let Some(window) = self.case.options.window else {
            return all.to_vec();
        };
        let length = all.len() as u64;
        let start = window.source_offset.min(length);
        let end = start
            .saturating_add(window.length.unwrap_or(u64::MAX))
            .min(length);
        all[place(start)..place(end)].to_vec()
    }

    fn verdict(&self, stage: &Stage, answer: &Result<Vec<u8>, Error>) -> Verdict {
        let state = stage.world.state();
        let mut parts: Vec<_> = state.history().iter().map(|all| self.part(all)).collect();
        parts[0] = self.part(&self.case.source.bytes(Fill::Noise));
        let fired = state.schedule.fired();
        let changes = fired
            .iter()
            .any(|fired| matches!(fired.fault, Fault::Source(_)));
        let false_end = fired
            .iter()
            .any(|fired| fired.op == Op::Read && fired.fault == Fault::Nothing);
        let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
        // Room doubles, and each fault costs a call.
        let calls = state.schedule.calls();
        let most = 30 + 2 * fired.len() + longest / 4096;
        ensure!(calls <= most, "{calls} calls, and not {most}");
        let touched = state.touched().is_empty() && state.made().is_empty();
        ensure!(touched, "a read that writes");
        let drawn = stage
            .quota
            .as_ref()
            .map_or(0, |quota| self.case.quota.unwrap_or(0) - quota.left());
        match answer {
            Ok(bytes) => {
                let reasons = self.reasons(longest as u64);
                let moves = changes || false_end;
                ensure!(reasons.is_empty() || moves, "read in spite of {reasons:?}");
                for limit in [self.limit, self.case.options.limits.bytes, self.case.quota] {
                    let limit = limit.unwrap_or(u64::MAX);
                    ensure!(bytes.len() as u64 <= limit, "more than the limit");
                }
                let limited = self.case.quota.is_some();
                ensure!(!limited || drawn == bytes.len() as u64, "{drawn} drawn");
                ensure!(
                    moves || bytes.len() == longest,
                    "{} bytes, and not {longest}",
                    bytes.len()
                );
                let whole = |part: &Vec<u8>| part.get(..bytes.len()) == Some(bytes);
                let mixed = || {
                    bytes
                        .iter()
                        .enumerate()
                        .all(|(at, byte)| parts.iter().any(|part| part.get(at) == Some(byte)))
                };
                ensure!(parts.iter().any(whole) || mixed(), "other bytes");
            }
            Err(error) => {
                let cause = &error.cause;
                let explained = self.reasons(longest as u64).contains(cause)
                    || self.excuses().contains(cause)
                    || fired.iter().any(|fired| match fired.fault {
                        Fault::Source(Change::Grow(_)) => matches!(cause, Cause::Limit(_)),
                        Fault::Fail(Errno::INTR) => false,
                        Fault::Fail(Errno::NXIO) if fired.op == Op::Open => {
                            refused(Side::Source).contains(cause)
                        }
                        Fault::Fail(Errno::AGAIN) if fired.op != Op::Stat => false,
                        Fault::Fail(errno) => {
                            let reads = matches!(fired.op, Op::Open | Op::Stat | Op::Read);
                            reads && *cause == Cause::Io(Side::Source, errno)
                        }
                        _ => false,
                    });
                ensure!(explained, "failed for no reason: {cause:?}");
                ensure!(error.done.bytes == 0, "a read that put some");
            }
        }
        drop(state);
        let theirs = stage.handles.iter().zip(&stage.held);
        for (handle, held) in theirs {
            ensure!(
                stage.world.held(handle) == *held,
                "a descriptor of the caller's moved"
            );
        }
        let open = stage.world.left_open();
        ensure!(open == 0, "{open} descriptors are left open");
        Ok(())
    }

    /// Why it cannot be read, without any fault.
    fn reasons(&self, longest: u64) -> Vec<Cause> {
        let mut reasons = Vec::new();
        let options = &self.case.options;
        if let Some(window) = options.window {
            let end = window.source_offset.checked_add(window.length.unwrap_or(0));
            if end.is_none_or(|end| end > LAST) {
                reasons.push(Cause::Io(Side::Source, Errno::OVERFLOW));
            }
        }
        match self.case.from {
            From::Missing => reasons.push(Cause::Io(Side::Source, Errno::NOENT)),
            From::Link(false) => reasons.push(Cause::Io(Side::Source, Errno::LOOP)),
            From::Directory => reasons.push(Cause::Io(Side::Source, Errno::ISDIR)),
            From::Fifo | From::Socket => {
                reasons.extend(refused(Side::Source));
            }
            From::Path | From::Link(true) | From::Descriptor(..) => {}
        }
        self.limits(longest, &mut reasons);
        reasons
    }

    fn limits(&self, length: u64, reasons: &mut Vec<Cause>) {
        for (limit, which) in [
            (self.limit, Limit::ReadSize),
            (self.case.options.limits.bytes, Limit::Bytes),
            (self.case.quota, Limit::TotalBytes),
        ] {
            if limit.is_some_and(|limit| limit < length) {
                reasons.push(Cause::Limit(which));
            }
        }
    }

    /// What may stand in the way, without any fault.
    fn excuses(&self) -> Vec<Cause> {
        let mut excuses = Vec::new();
        if let From::Descriptor(flags, _) = self.case.from
            && flags.contains(OFlags::WRONLY)
        {
            excuses.push(Cause::Io(Side::Source, Errno::BADF));
        }
        if let Says::Page(said) = self.case.habits.says {
            self.limits(said, &mut excuses);
        }
        excuses
    }
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn a_read_is_what_the_model_says(reading in reading()) {
        check(&reading).map_err(TestCaseError::fail)?;
    }
}
