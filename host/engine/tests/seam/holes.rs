//! What a file system tells of holes is a hint: nonsense costs speed and never bytes.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use copyist_engine::{Errno, Mechanism, Side};

use crate::bench::{Bench, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, When};

const BLOCK: usize = 4096;

/// Data, a hole, data, a hole to the end; over several calls.
fn layout() -> Bench {
    let mut content = vec![0; 10 * BLOCK];
    content[..2 * BLOCK].copy_from_slice(&noise(2 * BLOCK, 1));
    content[5 * BLOCK..6 * BLOCK].copy_from_slice(&noise(BLOCK, 2));
    let bench = Bench::of(content.clone());
    let file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(bench.path(SOURCE))
        .expect("the source is there");
    file.set_len(content.len() as u64).expect("a hole");
    file.write_all_at(&content[..2 * BLOCK], 0).expect("room");
    file.write_all_at(&content[5 * BLOCK..6 * BLOCK], 5 * BLOCK as u64)
        .expect("room");
    bench
}

#[test]
fn every_answer_to_a_question_for_holes_ends_in_the_same_bytes() {
    let bench = layout();
    let errnos = [
        Errno::NXIO,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::IO,
        Errno::INTR,
        Errno::BADF,
    ];
    for start in Start::ALL {
        for op in [Op::SeekData, Op::SeekHole, Op::PunchHole, Op::Reopen] {
            for shape in [Shape::New, Shape::InPlace, Shape::Descriptor] {
                for when in [When::Nth(1), When::Nth(2), When::Nth(3)] {
                    let outcomes = errnos
                        .iter()
                        .map(|errno| Outcome::Fail(*errno))
                        // It stays where it was asked: no progress.
                        .chain([Outcome::Nothing]);
                    for outcome in outcomes {
                        let what = format!("{start:?} {op:?} {shape:?} {when:?} {outcome:?}");
                        // That a hole was punched has to be believed.
                        if op == Op::PunchHole && matches!(outcome, Outcome::Nothing) {
                            continue;
                        }
                        // "No more data" in the wrong place is a lie that only a file system tells
                        // which is not known to be right.
                        let sys = start
                            .system()
                            .rule(Op::IsLocal, When::From(1), Outcome::Fail(Errno::NOSYS))
                            .rule(op, when, outcome)
                            .shared();
                        let request = bench.prepare(shape, start);
                        let summary = drive(&sys.environment(), request).unwrap();
                        bench.assert_copied(shape, &summary, &|| what.clone());
                    }
                }
            }
        }
    }
}

/// A file system that calls everything a hole, as ZFS did for data that was not yet on the disk
/// (<https://github.com/openzfs/zfs/issues/15526>).
#[test]
fn zfs_15526_data_that_is_called_a_hole_is_copied_all_the_same() {
    let bench = Bench::of(noise(SIZE, 7));
    for start in Start::ALL {
        let sys = start
            .system()
            .forge(|side, info| {
                if side == Side::Source {
                    info.blocks = 1;
                }
            })
            .rule(Op::IsLocal, When::From(1), Outcome::Fail(Errno::NOSYS))
            .rule(Op::Clone, When::From(1), Outcome::Fail(Errno::OPNOTSUPP))
            .rule(
                Op::CloneRange,
                When::From(1),
                Outcome::Fail(Errno::OPNOTSUPP),
            )
            .rule(Op::SeekHole, When::From(1), Outcome::Nothing)
            .rule(Op::SeekData, When::From(1), Outcome::Fail(Errno::NXIO))
            .shared();
        let summary = drive(&sys.environment(), bench.prepare(Shape::New, start));
        if start == Start::Clone {
            continue;
        }
        let summary = summary.unwrap();
        bench.assert_copied(Shape::New, &summary, &|| format!("{start:?}"));
        assert_eq!(summary.method, Some(Mechanism::ReadWrite));
    }
}

#[test]
fn an_extent_whose_mechanism_fails_goes_on_at_the_cursor() {
    let bench = layout();
    let sys = Start::CopyRange
        .system()
        .rule(Op::CopyRange, When::Nth(2), Outcome::Fail(Errno::IO))
        .shared();
    let request = bench.prepare(Shape::New, Start::CopyRange);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "an extent".to_owned());
    // Nothing is read twice, and no hole is read.
    let taken: u64 = sys
        .calls()
        .iter()
        .filter(|call| matches!(call.op, Op::CopyRange | Op::SendFile | Op::Read))
        .filter_map(|call| call.answer.ok())
        .map(|taken| taken as u64)
        .sum();
    assert_eq!(taken, 3 * BLOCK as u64);
}

#[test]
fn a_dense_file_is_not_asked_for_holes() {
    let bench = Bench::of(noise(SIZE, 3));
    let sys = Start::CopyRange.system().shared();
    drive(
        &sys.environment(),
        bench.prepare(Shape::New, Start::CopyRange),
    )
    .unwrap();
    for op in [Op::SeekData, Op::SeekHole, Op::PunchHole, Op::Reopen] {
        assert!(sys.calls_of(op).is_empty(), "{op:?}");
    }
}

/// A compressed file has fewer blocks than its size needs, and no holes.
#[test]
fn a_dense_file_that_looks_sparse_is_asked_once() {
    let bench = Bench::of(noise(SIZE, 3));
    for start in Start::ALL {
        for shape in Shape::ALL {
            let calls = |compressed: bool| {
                let sys = start
                    .system()
                    .forge(move |side, info| {
                        if compressed && side == Side::Source {
                            info.blocks = 1;
                        }
                    })
                    .shared();
                let environment = sys.environment();
                // The first finds out what works here.
                drive(&environment, bench.prepare(shape, start)).unwrap();
                let request = bench.prepare(shape, start);
                sys.forget();
                let summary = drive(&environment, request).unwrap();
                bench.assert_copied(shape, &summary, &|| format!("{start:?} {shape:?}"));
                sys.ops()
            };
            let (mut asked, dense) = (calls(true), calls(false));
            if let Some(place) = asked.iter().position(|op| *op == Op::SeekHole) {
                asked.remove(place);
            }
            assert_eq!(asked, dense, "{start:?} {shape:?}");
        }
    }
}

#[test]
fn a_source_that_is_cut_in_its_last_hole_is_copied_as_long_as_it_is() {
    let bench = layout();
    let path = bench.path(SOURCE);
    let cut = Outcome::after(move || {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(7 * BLOCK as u64).unwrap();
    });
    let sys = Start::CopyRange
        .system()
        .rule(Op::SeekData, When::Nth(2), cut)
        .shared();
    let request = bench.prepare(Shape::New, Start::CopyRange);
    let summary = drive(&sys.environment(), request).unwrap();
    assert_eq!(summary.bytes, 7 * BLOCK as u64);
    assert!(summary.changed);
    assert_eq!(bench.read("to").len(), 7 * BLOCK);
    assert!(bench.read("to") == bench.content()[..7 * BLOCK]);
}
