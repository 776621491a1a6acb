//! What a file system tells of holes is a hint: nonsense costs speed and never bytes.

use std::fs::{self, File, OpenOptions};
use std::io::Seek;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use copyist_engine::{Errno, Mechanism, Side, Source, Window};

use crate::bench::{Bench, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

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
    for (shape, op) in [
        (Shape::New, Op::SeekData),
        (Shape::InPlace, Op::SeekData),
        (Shape::InPlace, Op::PunchHole),
    ] {
        let bench = layout();
        let path = bench.path(SOURCE);
        let cut = Outcome::after(move || {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(7 * BLOCK as u64).unwrap();
        });
        let sys = Start::CopyRange
            .system()
            .rule(op, When::Nth(2), cut)
            .shared();
        let request = bench.prepare(shape, Start::CopyRange);
        let summary = drive(&sys.environment(), request).unwrap();
        assert_eq!(summary.bytes, 7 * BLOCK as u64, "{shape:?} {op:?}");
        assert!(summary.changed, "{shape:?} {op:?}");
        let wanted = &bench.content()[..7 * BLOCK];
        assert!(bench.read("to") == wanted, "{shape:?} {op:?}");
    }
}

/// The last hole of a part may reach over what an old file keeps behind it: the source is looked at
/// for where it ends by now.
#[test]
fn a_source_that_is_cut_in_its_last_hole_takes_nothing_from_behind_the_part() {
    const AT: usize = 700;
    // It was cut in the hole, and before it.
    for (left, copied) in [(7 * BLOCK, 6 * BLOCK), (6 * BLOCK - 10, 5 * BLOCK)] {
        for old in [noise(20 * BLOCK, 3), noise(AT + 2 * BLOCK, 3), Vec::new()] {
            let bench = layout();
            let path = bench.path(SOURCE);
            let cut = Outcome::after(move || {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(left as u64).unwrap();
            });
            let sys = Start::CopyRange
                .system()
                .rule(Op::SeekData, When::Nth(2), cut)
                .shared();
            let mut request = bench.prepare(Shape::InPlace, Start::CopyRange);
            fs::write(bench.path("to"), &old).unwrap();
            request.options.window = Some(Window {
                source_offset: BLOCK as u64,
                length: None,
                destination_offset: AT as u64,
            });
            let summary = drive(&sys.environment(), request).unwrap();
            let what = format!("{left} {}", old.len());
            assert_eq!(summary.bytes, copied as u64, "{what}");
            assert!(summary.changed, "{what}");
            let mut wanted = old.clone();
            wanted.resize(old.len().max(AT + copied), 0);
            wanted[AT..AT + copied].copy_from_slice(&bench.content()[BLOCK..BLOCK + copied]);
            assert!(bench.read("to") == wanted, "{what}");
        }
    }
}

/// A part that is all of it, so that what stands behind it is kept.
const ALL: Window = Window {
    source_offset: 0,
    length: None,
    destination_offset: 0,
};

#[test]
fn the_last_hole_of_a_part_is_made_in_the_old_file() {
    let bench = layout();
    let sys = Scheduled::new().shared();
    let mut request = bench.prepare(Shape::InPlace, Start::CopyRange);
    request.options.window = Some(ALL);
    let summary = drive(&sys.environment(), request).unwrap();
    assert_eq!(summary.bytes, bench.content().len() as u64);
    let kept = &bench.old()[bench.content().len()..];
    assert!(bench.read("to") == [bench.content(), kept].concat());
    let made: Vec<_> = sys
        .calls_of(Op::PunchHole)
        .iter()
        .map(|call| call.to)
        .collect();
    assert_eq!(made, [2 * BLOCK as u64, 6 * BLOCK as u64]);
}

/// XFS would reserve room behind what is written, and keep it where a hole is laid over it
/// (<https://xfs.org/index.php/XFS_FAQ>, "speculative preallocation").
#[test]
fn a_new_file_that_gets_holes_has_its_length_before_its_first_byte() {
    let bench = layout();
    let length = bench.content().len() as u64;
    for shape in [Shape::New, Shape::ReplaceNothing] {
        let sys = Scheduled::new().shared();
        drive(&sys.environment(), bench.prepare(shape, Start::CopyRange)).unwrap();
        let calls = sys.calls();
        let place = |op| calls.iter().position(|call| call.op == op);
        assert!(place(Op::Truncate) < place(Op::CopyRange), "{shape:?}");
        assert_eq!(sys.calls_of(Op::Truncate)[0].to, length);
        assert_eq!(sys.calls_of(Op::Truncate).len(), 1);
    }
}

#[test]
fn where_no_hole_can_be_made_zeros_are_written_over_the_old_bytes() {
    let bench = layout();
    for (when, errno, made) in [
        (When::From(1), Errno::OPNOTSUPP, 0),
        // A signal is no answer.
        (When::Nth(1), Errno::INTR, 2),
    ] {
        let sys = Scheduled::new()
            .rule(Op::PunchHole, when, Outcome::Fail(errno))
            .shared();
        let request = bench.prepare(Shape::InPlace, Start::CopyRange);
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(Shape::InPlace, &summary, &|| format!("{errno:?}"));
        let calls = sys.calls_of(Op::PunchHole);
        assert_eq!(
            calls.iter().filter(|call| call.answer.is_ok()).count(),
            made
        );
    }
}

#[test]
fn a_hole_behind_the_end_of_the_source_is_not_asked_for_for_ever() {
    for end in [6 * BLOCK, 6 * BLOCK - 10] {
        let bench = layout();
        let looks = AtomicUsize::new(0);
        let sys = Start::SendFile.system().forge(move |side, info| {
            if side == Side::Source && looks.fetch_add(1, Ordering::Relaxed) > 0 {
                info.size = end as u64;
            }
        });
        let mut request = bench.prepare(Shape::InPlace, Start::SendFile);
        request.options.window = Some(ALL);
        let summary = drive(&sys.shared().environment(), request).unwrap();
        // It was no hole, then, and is read like data.
        assert_eq!(summary.bytes, bench.content().len() as u64);
        let kept = &bench.old()[bench.content().len()..];
        assert!(bench.read("to") == [bench.content(), kept].concat());
    }
}

/// Elsewhere nobody has to know while it is copied.
#[test]
fn a_hole_costs_no_look_at_the_source_where_nothing_is_kept_behind_it() {
    let bench = layout();
    let looks = |request| {
        let sys = Start::CopyRange.system().shared();
        drive(&sys.environment(), request).unwrap();
        let looks = sys.calls_of(Op::Stat);
        looks
            .iter()
            .filter(|call| call.side == Side::Source)
            .count()
    };
    // When it is opened, whether it was cut, and whether it has changed.
    for shape in [Shape::New, Shape::InPlace] {
        assert_eq!(
            looks(bench.prepare(shape, Start::CopyRange)),
            3,
            "{shape:?}"
        );
    }
    // What stood behind the last hole is kept, so that it is looked for before the hole is made.
    let mut all = bench.prepare(Shape::InPlace, Start::SendFile);
    all.options.window = Some(ALL);
    assert_eq!(looks(all), 3);
    // Its holes are all between data.
    let mut part = bench.prepare(Shape::InPlace, Start::SendFile);
    part.options.window = Some(Window {
        length: Some(6 * BLOCK as u64),
        ..ALL
    });
    assert_eq!(looks(part), 2);
}

/// To ask moves the position, which is the caller's.
#[test]
fn a_callers_source_is_asked_for_holes_by_a_descriptor_of_the_copys_own_or_not_at_all() {
    let bench = layout();
    for can_be_opened in [true, false] {
        let source = File::open(bench.path(SOURCE)).expect("the source is there");
        let mut sys = Scheduled::new().source_is(&source);
        if !can_be_opened {
            sys = sys.rule(Op::Reopen, When::From(1), Outcome::Fail(Errno::NOENT));
        }
        let sys = sys.shared();
        let mut request = bench.prepare(Shape::New, Start::CopyRange);
        let source = Arc::new(source);
        request.source = Source::File(source.clone());
        let summary = drive(&sys.environment(), request).expect("a copy");
        bench.assert_copied(Shape::New, &summary, &|| format!("{can_be_opened}"));
        let asks = sys.ops_about(Side::Source).contains(&Op::SeekHole);
        assert_eq!(asks, can_be_opened);
        assert_eq!((&*source).stream_position().expect("a position"), 0);
    }
}
