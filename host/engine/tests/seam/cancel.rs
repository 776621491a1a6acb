//! A copy that is cancelled, or dropped, after each of its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use copyist_engine::{Cancel, Cause, Durability, Step, Transfer, copy_in};

use crate::bench::{Bench, Shape, Start, drive};
use crate::scheduled::{Op, Outcome, Scheduled, When};

/// Goes so many steps; tells the outcome if it ends before.
fn go(transfer: &mut Transfer, steps: usize) -> Option<Step> {
    for _ in 0..steps {
        let step = transfer.step(u64::MAX);
        if matches!(step, Step::Done(_) | Step::Failed(_)) {
            return Some(step);
        }
    }
    None
}

/// Whether the file has been closed, or has its name, by now: from here on it is a success.
fn is_published(sys: &Scheduled, shape: Shape) -> bool {
    let ops = sys.ops();
    match shape {
        Shape::Replace => ops.contains(&Op::Rename),
        Shape::ReplaceNothing => ops.contains(&Op::Link),
        Shape::New | Shape::InPlace | Shape::Window => ops.contains(&Op::Close),
        // There is nothing to do for it.
        Shape::Descriptor | Shape::Append => false,
    }
}

#[test]
fn a_cancel_leaves_nothing_new_and_what_was_published() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            for durability in [Durability::None, Durability::Each] {
                let mut steps = 0;
                loop {
                    let sys = start.system().shared();
                    let mut request = bench.prepare(shape, start);
                    request.options.durability = durability;
                    let mut transfer = Transfer::new(sys.environment(), request);
                    if let Some(end) = go(&mut transfer, steps) {
                        assert!(matches!(end, Step::Done(_)));
                        // After the end it has no effect.
                        assert!(matches!(transfer.cancel(), Step::Done(_)));
                        break;
                    }
                    let what = || format!("{shape:?} {start:?} {durability:?} {steps} steps");
                    let published = is_published(&sys, shape);
                    match transfer.cancel() {
                        Step::Failed(error) => {
                            assert!(!published, "published, and said to have failed: {}", what());
                            assert_eq!(error.cause, Cause::Cancelled);
                            bench.assert_failed(shape, &error.done, &what);
                        }
                        Step::Done(summary) => bench.assert_copied(shape, &summary, &what),
                        step => panic!("{}: {step:?}", what()),
                    }
                    // It says the same again.
                    let again = transfer.step(u64::MAX);
                    assert!(matches!(again, Step::Done(_) | Step::Failed(_)));
                    steps += 1;
                }
                assert!(steps > 5, "{shape:?} {start:?} has only {steps} steps");
            }
        }
    }
}

#[test]
fn a_drop_leaves_nothing_new_and_what_was_published() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            let mut steps = 0;
            loop {
                let sys = start.system().shared();
                let request = bench.prepare(shape, start);
                let mut transfer = Transfer::new(sys.environment(), request);
                if go(&mut transfer, steps).is_some() {
                    break;
                }
                let published = is_published(&sys, shape);
                let done = transfer.progress().clone();
                drop(transfer);
                let what = || format!("{shape:?} {start:?} {steps} steps");
                if published {
                    assert!(bench.read("to") == bench.wanted(shape), "{}", what());
                    bench.assert_tidy(true, &what);
                } else {
                    bench.assert_failed(shape, &done, &what);
                }
                steps += 1;
            }
        }
    }
}

/// With a budget of bytes a step, a copy can be stopped inside a data call's worth.
#[test]
fn a_step_moves_no_more_than_its_budget() {
    let bench = Bench::new();
    for start in [Start::CopyRange, Start::SendFile, Start::ReadWrite] {
        let sys = start.system().shared();
        let request = bench.prepare(Shape::New, start);
        let mut transfer = Transfer::new(sys.environment(), request);
        let mut moved = 0;
        let summary = loop {
            match transfer.step(1000) {
                Step::Moved(bytes) => {
                    assert!(bytes <= 1000);
                    moved += bytes;
                    assert_eq!(transfer.progress().bytes, moved);
                }
                Step::Done(summary) => break summary,
                step => panic!("{step:?}"),
            }
        };
        assert_eq!(moved, summary.bytes);
        bench.assert_copied(Shape::New, &summary, &|| format!("{start:?}"));
    }
}

#[test]
fn a_cancel_in_the_middle_of_a_call_is_heard_after_it() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        let cancel = Cancel::new();
        let canceller = cancel.clone();
        let sys = Scheduled::new()
            .rule(
                Op::Write,
                When::Nth(3),
                Outcome::after(move || canceller.cancel()),
            )
            .shared();
        let request = bench.prepare(shape, Start::ReadWrite);
        let error = copy_in(&sys.environment(), request, &cancel).unwrap_err();
        assert_eq!(error.cause, Cause::Cancelled);
        assert_eq!(sys.calls_of(Op::Write).len(), 3);
        assert_eq!(
            error.done.bytes,
            sys.calls_of(Op::Write)
                .iter()
                .map(|w| w.length as u64)
                .sum()
        );
        bench.assert_failed(shape, &error.done, &|| format!("{shape:?}"));
    }
}

#[test]
fn a_copy_whose_time_is_over_makes_no_call() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        let sys = Scheduled::new().shared();
        let mut request = bench.prepare(shape, Start::CopyRange);
        request.options.timeout = Some(Duration::ZERO);
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::TimedOut);
        assert_eq!(sys.ops(), []);
        bench.assert_failed(shape, &error.done, &|| format!("{shape:?}"));

        // Beyond all time there is no end.
        for timeout in [Duration::from_secs(3600), Duration::MAX] {
            let mut request = bench.prepare(shape, Start::CopyRange);
            request.options.timeout = Some(timeout);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(shape, &summary, &|| format!("{shape:?} {timeout:?}"));
        }
    }
}

/// The name is the success, and what comes after it is no matter of time any more.
#[test]
fn a_copy_whose_time_is_over_once_it_has_its_name_is_one() {
    let bench = Bench::new();
    // Where the machine is busy, longer.
    for millis in [20, 200, 2000, 20_000] {
        let timeout = Duration::from_millis(millis);
        let begun = Instant::now();
        let named = Arc::new(AtomicBool::new(false));
        let tells = named.clone();
        let over = Outcome::after(move || {
            while begun.elapsed() <= timeout + timeout / 2 {
                std::hint::spin_loop();
            }
            tells.store(true, Ordering::Relaxed);
        });
        let sys = Scheduled::new()
            .rule(Op::Rename, When::Nth(1), over)
            .shared();
        let mut request = bench.prepare(Shape::Replace, Start::CopyRange);
        request.options.durability = Durability::Each;
        request.options.timeout = Some(timeout);
        match drive(&sys.environment(), request) {
            Ok(summary) => {
                assert!(named.load(Ordering::Relaxed));
                bench.assert_copied(Shape::Replace, &summary, &|| "named".to_owned());
                return;
            }
            Err(error) => {
                assert!(!named.load(Ordering::Relaxed), "{error:?}");
                assert_eq!(error.cause, Cause::TimedOut);
            }
        }
    }
    panic!("it never came that far");
}
