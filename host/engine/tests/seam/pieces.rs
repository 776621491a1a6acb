//! Clones in pieces, where no call may take long.

use std::fs::{self, File};

use copyist_engine::{
    Cause, Errno, Mechanism, Reflink, Request, Side, Step, Transfer, Unsupported, Window,
};

use crate::bench::{Bench, CALL, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

const FIRST: u64 = CALL as u64;

#[test]
fn a_small_file_is_one_piece() {
    let bench = Bench::of(vec![7; CALL]);
    let sys = Scheduled::new().clones().shared();
    let summary = drive(&sys.environment(), bench.prepare(Shape::New, Start::Pieces)).unwrap();
    assert_eq!(summary.shared, FIRST);
    assert_eq!(
        (
            sys.calls_of(Op::Clone).len(),
            sys.calls_of(Op::CloneRange).len()
        ),
        (1, 0)
    );
}

#[test]
fn a_large_one_goes_in_calls_of_the_size_that_is_allowed() {
    let bench = Bench::new();
    let sys = Scheduled::new().clones().shared();
    let request = bench.prepare(Shape::New, Start::Pieces);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "pieces".to_owned());
    assert_eq!(
        (summary.shared, summary.method),
        (SIZE as u64, Some(Mechanism::Clone))
    );
    let pieces: Vec<_> = sys
        .calls_of(Op::CloneRange)
        .iter()
        .map(|call| (call.from, call.to, call.length))
        .collect();
    let wanted: Vec<_> = (0..SIZE)
        .step_by(CALL)
        .map(|at| (at as u64, at as u64, CALL.min(SIZE - at)))
        .collect();
    assert_eq!(pieces, wanted);
}

// https://github.com/bytecodealliance/wasmtime/issues/13163
#[test]
fn wasmtime_13163_a_cancel_between_two_pieces_is_heard() {
    let bench = Bench::new();
    let sys = Scheduled::new().clones().shared();
    let request = bench.prepare(Shape::New, Start::Pieces);
    let mut transfer = Transfer::new(sys.environment(), request);
    while sys.calls_of(Op::CloneRange).is_empty() {
        assert!(matches!(transfer.step(u64::MAX), Step::Moved(_)));
    }
    let Step::Failed(error) = transfer.cancel() else {
        panic!("not cancelled");
    };
    assert_eq!(error.cause, Cause::Cancelled);
    assert_eq!((error.done.bytes, error.done.shared), (FIRST, FIRST));
    bench.assert_failed(Shape::New, &error.done, &|| "cancelled".to_owned());
}

#[test]
fn what_is_refused_midway_is_copied_from_there() {
    let bench = Bench::new();
    for outcome in [
        Outcome::Fail(Errno::OPNOTSUPP),
        Outcome::Fail(Errno::INVAL),
        Outcome::Fail(Errno::PERM),
        // ZFS said so of a clone that was cut short: https://github.com/openzfs/zfs/issues/15728
        Outcome::Nothing,
    ] {
        for shape in [Shape::New, Shape::Replace] {
            let sys = Scheduled::new()
                .clones()
                .rule(Op::CloneRange, When::From(2), outcome.clone())
                .shared();
            let summary = drive(&sys.environment(), bench.prepare(shape, Start::Pieces)).unwrap();
            let what = || format!("{outcome:?} {shape:?}");
            bench.assert_copied(shape, &summary, &what);
            assert_eq!(summary.shared, FIRST, "{}", what());
            assert_eq!(sys.calls_of(Op::CopyRange)[0].from, FIRST, "{}", what());
        }
    }
}

#[test]
fn a_required_clone_fails_where_a_piece_does() {
    let bench = Bench::new();
    for (nth, shape) in [
        (1, Shape::New),
        (3, Shape::New),
        (1, Shape::InPlace),
        (3, Shape::Replace),
    ] {
        let sys = Scheduled::new()
            .clones()
            .rule(Op::CloneRange, When::From(nth), Outcome::Fail(Errno::INVAL))
            .shared();
        let mut request = bench.prepare(shape, Start::Pieces);
        request.options.reflink = Reflink::Always;
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::Unsupported(Unsupported::Clone));
        bench.assert_failed(shape, &error.done, &|| format!("{shape:?}, {nth}"));
        if nth == 1 && shape == Shape::InPlace {
            assert!(bench.read("to") == bench.old());
        }
    }
}

// The end of the source may lie in the middle of a block, and FICLONERANGE takes that onto the end of
// the destination alone. https://github.com/uutils/coreutils/issues/3758
#[test]
fn coreutils_3758_the_last_piece_cuts_a_longer_file_first() {
    let bench = Bench::new();
    for reflink in [Reflink::Auto, Reflink::Always] {
        let sys = Scheduled::new()
            .clones()
            .rule(Op::CloneRange, When::Nth(6), Outcome::Fail(Errno::INVAL))
            .shared();
        let mut request = bench.prepare(Shape::InPlace, Start::Pieces);
        request.options.reflink = reflink;
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(Shape::InPlace, &summary, &|| format!("{reflink:?}"));
        assert_eq!(summary.shared, SIZE as u64);
    }
}

/// A source that ends in the middle of a block is shared with the end of a file alone.
#[test]
fn a_clone_onto_a_longer_file_is_made_once_that_is_cut() {
    let bench = Bench::new();
    let sys = Scheduled::new()
        .clones()
        .rule(Op::Clone, When::Nth(1), Outcome::Fail(Errno::INVAL))
        .shared();
    let request = bench.prepare(Shape::InPlace, Start::Clone);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::InPlace, &summary, &|| "cut".to_owned());
    assert_eq!(summary.shared, SIZE as u64);
}

// https://github.com/boostorg/filesystem/issues/292
#[test]
fn boost_292_a_source_that_shrinks_or_grows_between_two_pieces_is_copied_to_its_end() {
    for length in [CALL as u64 + 10, 9 * CALL as u64 + 10] {
        let bench = Bench::new();
        let path = bench.path(SOURCE);
        let sys = Scheduled::new()
            .clones()
            .rule(
                Op::CloneRange,
                When::Nth(2),
                Outcome::after(move || {
                    File::options()
                        .write(true)
                        .open(&path)
                        .unwrap()
                        .set_len(length)
                        .unwrap();
                }),
            )
            .shared();
        let request = bench.prepare(Shape::New, Start::Pieces);
        let summary = drive(&sys.environment(), request).unwrap();
        assert_eq!(summary.shared, length);
        assert!(summary.changed);
        assert!(bench.read("to") == fs::read(bench.path(SOURCE)).unwrap());
    }
}

/// A part from the first block to the end of the source, in one piece.
fn part(bench: &Bench) -> Request {
    let mut request = bench.prepare(Shape::InPlace, Start::Pieces);
    request.options.tuning.call_size = None;
    request.options.window = Some(Window {
        source_offset: 0,
        length: None,
        destination_offset: 0,
    });
    request
}

/// The end of the source may lie within a block, which is shared where nothing stands behind it.
#[test]
fn the_last_block_of_a_part_is_shared_where_the_destination_ends_with_it() {
    let bench = Bench::new();
    let blocks = SIZE - SIZE % CALL;
    for (old, shared) in [
        (0, SIZE),
        (SIZE - 1, SIZE),
        (SIZE, SIZE),
        (SIZE + 1, blocks),
    ] {
        let sys = Scheduled::new().clones().shared();
        let request = part(&bench);
        fs::write(bench.path("to"), &bench.old()[..old]).unwrap();
        let summary = drive(&sys.environment(), request).unwrap();
        assert_eq!(summary.shared, shared as u64, "{old}");
        let kept = bench.old()[..old].get(SIZE..).unwrap_or_default();
        assert!(
            bench.read("to") == [bench.content(), kept].concat(),
            "{old}"
        );
    }
}

#[test]
fn what_stands_behind_a_part_is_not_cut_for_the_sake_of_a_clone() {
    let bench = Bench::of(noise(4 * CALL, 3));
    let sys = Scheduled::new()
        .clones()
        .rule(Op::CloneRange, When::From(1), Outcome::Fail(Errno::INVAL))
        .shared();
    let summary = drive(&sys.environment(), part(&bench)).unwrap();
    assert_eq!(summary.shared, 0);
    let kept = &bench.old()[4 * CALL..];
    assert!(bench.read("to") == [bench.content(), kept].concat());
}

/// Unless it is required, and may be one that can never be made.
#[test]
fn the_only_piece_cuts_a_longer_file_first() {
    let bench = Bench::new();
    let all_but_one = (SIZE - CALL) as u64;
    for (reflink, when, shared) in [
        (Reflink::Auto, When::Nth(1), Some(all_but_one)),
        (Reflink::Auto, When::From(1), Some(0)),
        (Reflink::Always, When::From(1), None),
    ] {
        let sys = Scheduled::new()
            .clones()
            .rule(Op::CloneRange, when, Outcome::Fail(Errno::INVAL))
            .shared();
        let mut request = bench.prepare(Shape::InPlace, Start::Pieces);
        request.options.tuning.call_size = None;
        request.options.source_start = CALL as u64;
        request.options.reflink = reflink;
        let what = format!("{reflink:?} {when:?}");
        match drive(&sys.environment(), request) {
            Ok(summary) => {
                assert_eq!(Some(summary.shared), shared, "{what}");
                assert!(bench.read("to") == bench.content()[CALL..], "{what}");
            }
            Err(error) => {
                assert_eq!(shared, None, "{what}");
                assert_eq!(error.cause, Cause::Unsupported(Unsupported::Clone));
                assert!(bench.read("to") == bench.old(), "{what}");
            }
        }
    }
}

#[test]
fn a_clone_costs_one_look_at_the_source_and_one_at_what_was_made() {
    let bench = Bench::new();
    let sys = Scheduled::new().clones().shared();
    drive(&sys.environment(), bench.prepare(Shape::New, Start::Clone)).unwrap();
    let looks: Vec<_> = sys
        .calls_of(Op::Stat)
        .iter()
        .map(|call| call.side)
        .collect();
    assert_eq!(looks, [Side::Source, Side::Destination]);
}
