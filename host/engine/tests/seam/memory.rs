//! What a copy remembers for the next one: what was refused, for whom, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use copyist_engine::{Errno, Side};

use crate::bench::{Bench, Shape, Start, drive};
use crate::pool::{Gate, patience};
use crate::scheduled::{Op, Outcome, Scheduled, When};

/// A system where everything fast is refused, and the destination is on the device that the test
/// says.
fn devices(clone: Errno, range: Errno) -> (Arc<AtomicU64>, Scheduled) {
    let device = Arc::new(AtomicU64::new(2));
    let forged = device.clone();
    let sys = Scheduled::new()
        .rule(Op::Clone, When::From(1), Outcome::Fail(clone))
        .rule(Op::CopyRange, When::From(1), Outcome::Fail(range))
        .forge(move |side, info| {
            info.device = match side {
                Side::Source => 1,
                Side::Destination => forged.load(Ordering::Relaxed),
            };
        });
    (device, sys)
}

// https://github.com/oven-sh/bun/pull/43244, https://github.com/libuv/libuv/issues/3354
#[test]
fn bun_43244_an_odd_destination_turns_nothing_off_for_another() {
    let bench = Bench::new();
    let (device, sys) = devices(Errno::XDEV, Errno::XDEV);
    let sys = sys.shared();
    let environment = sys.environment();
    let tried = |shape| {
        sys.forget();
        let summary = drive(&environment, bench.prepare(shape, Start::CopyRange)).unwrap();
        bench.assert_copied(shape, &summary, &|| format!("{shape:?}"));
        let count = |op| sys.calls_of(op).len();
        (count(Op::Clone), count(Op::CopyRange))
    };
    assert_eq!(tried(Shape::New), (1, 1));
    for shape in [Shape::New, Shape::InPlace, Shape::Replace] {
        assert_eq!(tried(shape), (0, 0), "what was refused is tried again");
    }
    device.store(3, Ordering::Relaxed);
    assert_eq!(tried(Shape::New), (1, 1), "another pair has not answered");
    assert_eq!(tried(Shape::New), (0, 0));
    device.store(2, Ordering::Relaxed);
    assert_eq!(tried(Shape::Replace), (0, 0));
    // Another environment has heard nothing.
    drive(
        &sys.environment(),
        bench.prepare(Shape::New, Start::CopyRange),
    )
    .unwrap();
    assert_eq!(sys.calls_of(Op::Clone).len(), 1);
}

#[test]
fn what_may_be_about_one_file_is_tried_for_the_next() {
    let bench = Bench::new();
    for errno in [
        Errno::INVAL,
        Errno::PERM,
        Errno::ACCESS,
        Errno::TXTBSY,
        Errno::BADF,
        Errno::IO,
    ] {
        let (_, sys) = devices(errno, errno);
        let sys = sys.shared();
        let environment = sys.environment();
        for round in 1..=3 {
            drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
            assert_eq!(sys.calls_of(Op::Clone).len(), round, "{errno:?}");
            assert_eq!(sys.calls_of(Op::CopyRange).len(), round, "{errno:?}");
        }
    }
}

// https://github.com/rust-lang/rust/issues/79274
#[test]
fn rust_79274_a_call_is_given_up_for_all_only_after_a_probe() {
    let bench = Bench::new();
    for (probe, tries) in [
        // A filter denies it whatever it is given.
        (Outcome::Fail(Errno::PERM), 1),
        (Outcome::Fail(Errno::NOSYS), 1),
        // The kernel has it, so it was about the file.
        (Outcome::Fail(Errno::BADF), 2),
    ] {
        let (device, sys) = devices(Errno::OPNOTSUPP, Errno::PERM);
        let sys = sys.rule(Op::Probe, When::From(1), probe.clone()).shared();
        let environment = sys.environment();
        drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
        device.store(3, Ordering::Relaxed);
        drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
        assert_eq!(sys.calls_of(Op::CopyRange).len(), tries, "{probe:?}");
    }
}

#[test]
fn a_failed_look_at_the_destination_is_no_failure_of_the_copy() {
    let bench = Bench::new();
    let (_, sys) = devices(Errno::XDEV, Errno::XDEV);
    // Source, destination to learn its device, destination before close; then the next copy.
    let sys = sys
        .rule(Op::Stat, When::Nth(2), Outcome::Fail(Errno::IO))
        .shared();
    let environment = sys.environment();
    let summary = drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "the look to learn".into());

    let (_, sys) = devices(Errno::XDEV, Errno::XDEV);
    let sys = sys
        .rule(Op::Stat, When::Nth(5), Outcome::Fail(Errno::IO))
        .shared();
    let environment = sys.environment();
    drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
    let stats = sys.calls_of(Op::Stat).len();
    let summary = drive(&environment, bench.prepare(Shape::New, Start::CopyRange)).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "the look to save calls".into());
    assert!(stats < 5 && sys.calls_of(Op::Stat).len() > 5, "it was met");
}

/// A mount that does not answer must not hold up what has nothing to do with it.
#[test]
fn a_question_that_the_kernel_does_not_answer_holds_up_no_other_copy() {
    let bench = Bench::new();
    let gate = Gate::new();
    let sys = Scheduled::new()
        .rule(Op::IsLocal, When::Nth(1), gate.outcome())
        .shared();
    let environment = sys.environment();
    let (send, receive) = channel();
    std::thread::scope(|scope| {
        let request = bench.request("stuck");
        scope.spawn(|| drive(&environment, request).unwrap());
        gate.wait_until_reached();
        let request = bench.request("free");
        scope.spawn(|| send.send(drive(&environment, request)));
        let answer = receive.recv_timeout(patience());
        gate.open();
        answer.expect("the copies wait for one another").unwrap();
    });
    assert!(bench.read("stuck") == bench.content());
}
