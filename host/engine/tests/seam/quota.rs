//! Limits: no byte beyond them, and none drawn from a shared one that is not moved.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use copyist_engine::{
    Cancel, Cause, Environment, Errno, Limit, Limits, Quota, ReadOptions, ReadRequest, Reflink,
    Side, Source, read_in,
};

use crate::bench::{Bench, CALL, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

const COPIERS: [(Start, Op); 3] = [
    (Start::CopyRange, Op::CopyRange),
    (Start::SendFile, Op::SendFile),
    (Start::ReadWrite, Op::Read),
];

fn of_bytes(bytes: usize) -> Limits {
    Limits {
        bytes: Some(bytes as u64),
        total: None,
    }
}

fn shared(quota: &Arc<Quota>) -> Limits {
    Limits {
        bytes: None,
        total: Some(quota.clone()),
    }
}

/// Or small copies that run at once would fail for want of what none of them needs.
#[test]
fn a_copy_never_holds_more_of_a_quota_than_it_moves() {
    const ALL: u64 = 100_000;
    let bench = Bench::new();
    for (start, op) in COPIERS {
        for call_size in [None, std::num::NonZeroUsize::new(CALL)] {
            let quota = Arc::new(Quota::new(ALL));
            let least = Arc::new(Mutex::new(ALL));
            let (asked, seen) = (quota.clone(), least.clone());
            let look = Outcome::after(move || {
                let mut least = seen.lock().unwrap();
                *least = asked.left().min(*least);
            });
            let sys = Scheduled::new().rule(op, When::From(1), look).shared();
            let mut request = bench.prepare(Shape::New, start);
            request.options.limits = shared(&quota);
            request.options.tuning.call_size = call_size;
            drive(&sys.environment(), request).unwrap();
            let left = ALL - SIZE as u64;
            assert_eq!(*least.lock().unwrap(), left, "{op:?}");
            assert_eq!(quota.left(), left, "{op:?}");
        }
    }
}

#[test]
fn an_interrupted_clone_does_not_ask_for_its_bytes_twice() {
    let bench = Bench::new();
    let quota = Arc::new(Quota::new(SIZE as u64));
    let sys = Scheduled::new()
        .clones()
        .rule(Op::Clone, When::Nth(1), Outcome::Fail(Errno::INTR))
        .shared();
    let mut request = bench.prepare(Shape::New, Start::Clone);
    request.options.limits = shared(&quota);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "interrupted".into());
    assert_eq!(summary.shared, SIZE as u64);
    assert_eq!(quota.left(), 0);
}

#[test]
fn a_clone_of_what_grew_meanwhile_counts_what_it_grew_by() {
    let bench = Bench::new();
    for (bytes, fits) in [(SIZE + CALL, true), (SIZE + CALL - 1, false)] {
        std::fs::write(bench.path(SOURCE), bench.content()).unwrap();
        let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
        let source = source.unwrap();
        let grow = Outcome::after(move || {
            source.write_all_at(&noise(CALL, 9), SIZE as u64).unwrap();
        });
        let quota = Arc::new(Quota::new(bytes as u64));
        let sys = Scheduled::new().clones();
        let sys = sys.rule(Op::Clone, When::Nth(1), grow).shared();
        let mut request = bench.prepare(Shape::New, Start::Clone);
        request.options.limits = shared(&quota);
        match drive(&sys.environment(), request) {
            Ok(summary) => {
                assert!(fits && summary.changed);
                assert_eq!(summary.bytes, (SIZE + CALL) as u64);
                assert_eq!(quota.left(), 0);
            }
            Err(error) => {
                assert!(!fits, "{error:?}");
                assert_eq!(error.cause, Cause::Limit(Limit::TotalBytes));
                assert!(!bench.path("to").exists());
            }
        }
    }
}

/// Known before the source is shared, as of one that is too long from the start.
#[test]
fn a_clone_for_which_others_left_too_little_is_not_made() {
    let bench = Bench::new();
    for reflink in [Reflink::Auto, Reflink::Always] {
        let quota = Arc::new(Quota::new(SIZE as u64));
        let mut other = bench.request("other");
        other.options.window = Some(crate::bench::WINDOW);
        other.options.limits = shared(&quota);
        let other = Mutex::new(Some(other));
        let take = Outcome::after(move || {
            if let Some(other) = other.lock().unwrap().take() {
                drive(&Environment::default(), other).unwrap();
            }
        });
        // The first is of the source.
        let sys = Scheduled::new().clones().rule(Op::Open, When::Nth(2), take);
        let sys = sys.shared();
        let mut request = bench.prepare(Shape::New, Start::Clone);
        request.options.limits = shared(&quota);
        request.options.reflink = reflink;
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::TotalBytes));
        assert_eq!(error.done.consumed, 0);
        std::fs::remove_file(bench.path("other")).unwrap();
        bench.assert_failed(Shape::New, &error.done, &|| format!("{reflink:?}"));
    }
}

/// A clone that is required shares what the source says that it has, or nothing.
#[test]
fn a_required_clone_of_what_says_more_than_the_limit_is_refused() {
    let bench = Bench::of(noise(30, 1));
    let sys = Scheduled::new()
        .clones()
        .rule(Op::IsLocal, When::From(1), Outcome::Fail(Errno::NOSYS))
        .forge(|side, info| {
            if side == Side::Source {
                (info.size, info.blocks) = (4096, 0);
            }
        })
        .shared();
    let mut request = bench.prepare(Shape::New, Start::Clone);
    request.options.limits = of_bytes(100);
    request.options.reflink = Reflink::Always;
    let error = drive(&sys.environment(), request).unwrap_err();
    assert_eq!(error.cause, Cause::Limit(Limit::Bytes));
}

/// The files of sysfs say 4096 and have less; they occupy no blocks.
#[test]
fn a_size_that_is_a_lie_reaches_no_limit() {
    let bench = Bench::of(noise(30, 1));
    let lying = || {
        Scheduled::new()
            .clones()
            // No disk file system lies so.
            .rule(Op::IsLocal, When::From(1), Outcome::Fail(Errno::NOSYS))
            .forge(|side, info| {
                if side == Side::Source {
                    (info.size, info.blocks) = (4096, 0);
                }
            })
    };
    for start in Start::ALL {
        let sys = match start {
            Start::Clone => lying().rule(Op::Clone, When::From(1), Outcome::Fail(Errno::XDEV)),
            _ => lying(),
        };
        let sys = sys.shared();
        // More than there is, and just as much.
        for limit in [100, 30] {
            let mut request = bench.prepare(Shape::New, start);
            request.options.limits = of_bytes(limit);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(Shape::New, &summary, &|| format!("{start:?} {limit}"));
        }

        let mut request = bench.prepare(Shape::New, start);
        request.options.limits = of_bytes(29);
        let error = drive(&lying().shared().environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::Bytes));
        assert!(error.done.consumed <= 29);
        bench.assert_failed(Shape::New, &error.done, &|| format!("{start:?}"));
    }
    let read = |limits| ReadRequest {
        source: Source::Path(bench.at(SOURCE)),
        options: ReadOptions {
            limits,
            ..ReadOptions::default()
        },
    };
    let environment = lying().shared().environment();
    let answer = read_in(&environment, &read(of_bytes(100)), &Cancel::new());
    assert!(answer.unwrap() == bench.content());
    let answer = read_in(&environment, &read(of_bytes(29)), &Cancel::new());
    assert_eq!(answer.unwrap_err().cause, Cause::Limit(Limit::Bytes));
    let quota = Arc::new(Quota::new(29));
    let answer = read_in(&environment, &read(shared(&quota)), &Cancel::new());
    assert_eq!(answer.unwrap_err().cause, Cause::Limit(Limit::TotalBytes));
}

#[test]
fn a_limit_is_met_at_its_byte() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            let part = bench.part_of(shape).len();
            let what = || format!("{shape:?} {start:?}");
            let mut request = bench.prepare(shape, start);
            request.options.limits = of_bytes(part);
            let summary = drive(&start.system().shared().environment(), request).unwrap();
            bench.assert_copied(shape, &summary, &what);

            // Known before anything is made or written, wherever the source lies.
            for is_local in [true, false] {
                let mut request = bench.prepare(shape, start);
                request.options.limits = of_bytes(part - 1);
                let mut sys = start.system();
                if !is_local {
                    sys = sys.rule(Op::IsLocal, When::From(1), Outcome::Nothing);
                }
                let sys = sys.shared();
                let error = drive(&sys.environment(), request).unwrap_err();
                assert_eq!(error.cause, Cause::Limit(Limit::Bytes), "{}", what());
                bench.assert_failed(shape, &error.done, &what);
                assert_eq!(sys.ops(), sys.ops_about(Side::Source), "{}", what());
            }
        }
    }
}

#[test]
fn a_source_that_grows_beyond_a_limit_is_copied_to_the_limit_and_no_further() {
    for (start, op) in COPIERS {
        let bench = Bench::new();
        let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
        let source = source.unwrap();
        let grow = Outcome::after(move || {
            source.write_all_at(&noise(CALL, 9), SIZE as u64).unwrap();
        });
        let quota = Arc::new(Quota::new(SIZE as u64 + 10));
        let sys = Scheduled::new().rule(op, When::Nth(1), grow).shared();
        let mut request = bench.prepare(Shape::InPlace, start);
        request.options.limits = shared(&quota);
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::TotalBytes));
        assert_eq!(error.done.bytes, SIZE as u64 + 10);
        // Nothing is cut off after a failure; but a file that is to be cloned is cut before.
        let (found, end) = (bench.read("to"), SIZE + 10);
        assert!(found.len() == end || found[end..] == bench.old()[end..]);
        assert_eq!(quota.left(), 0);
    }
}

#[test]
fn a_failed_copy_gives_back_what_it_did_not_take() {
    let bench = Bench::new();
    for (start, op) in COPIERS {
        let quota = Arc::new(Quota::new(1 << 20));
        let full = Outcome::Fail(Errno::NOSPC);
        let sys = Scheduled::new().rule(op, When::Nth(3), full).shared();
        let mut request = bench.prepare(Shape::New, start);
        request.options.limits = shared(&quota);
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.done.consumed, 2 * CALL as u64);
        assert_eq!(quota.left(), (1 << 20) - 2 * CALL as u64, "{op:?}");
    }
}
