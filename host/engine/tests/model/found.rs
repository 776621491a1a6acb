//! What the properties found, each as a copy of its own.

use std::num::NonZeroUsize;

use copyist_engine::{
    Cause, Errno, Error, Existing, Options, Platform, Preserve, Reflink, Side, Sparse, Summary,
    Tuning, Window, WriteMode,
};

use crate::case::{Attribute, Case, Ending, Place, Standing, To};
use crate::content::{BLOCK, LAST};
use crate::layout::{Layout, Stretch};
use crate::oracle::{Ended, check};
use crate::schedule::{Change, Fault, Op, Rule, When};
use crate::world::{Clones, Habits, Says};

const OVER_OLD: To = To::Path {
    place: Place::Here,
    standing: Standing::Old,
    follow: false,
};

/// This goes wrong, at the nth call of a kind.
fn at(op: Op, nth: usize, fault: Fault) -> Rule {
    Rule {
        when: When::Of(op, nth, 1),
        fault,
    }
}

/// A copy that must succeed, and as the model says.
fn copied(case: &Case) -> Summary {
    match check(case) {
        Ok(Ended::Done(summary)) => summary,
        Ok(ended) => panic!("{ended:?}"),
        Err(complaint) => panic!("{complaint}"),
    }
}

/// A copy that must fail, and as the model says.
fn failed(case: &Case) -> Error {
    match check(case) {
        Ok(Ended::Failed(error)) => error,
        Ok(ended) => panic!("{ended:?}"),
        Err(complaint) => panic!("{complaint}"),
    }
}

fn clones() -> Habits {
    Habits {
        clones: Clones::Always,
        ..Habits::default()
    }
}

fn window(source_offset: u64, length: u64, destination_offset: u64) -> Option<Window> {
    Some(Window {
        source_offset,
        length: Some(length),
        destination_offset,
    })
}

#[test]
fn an_attribute_that_cannot_be_read_is_the_sources_fault() {
    for (attribute, kept, op) in [
        (Attribute::User, Preserve::XATTRS, Op::Xattr),
        (Attribute::AccessList, Preserve::ACLS, Op::Xattr),
        (Attribute::User, Preserve::XATTRS, Op::SetXattr),
    ] {
        let error = failed(&Case {
            attributes: vec![attribute],
            options: Options {
                require: kept,
                ..Options::default()
            },
            rules: vec![at(op, 1, Fault::Fail(Errno::ACCESS))],
            ..Case::default()
        });
        let side = match op {
            Op::Xattr => Side::Source,
            _ => Side::Destination,
        };
        assert_eq!(error.cause, Cause::Io(side, Errno::ACCESS));
    }
}

/// A source that says nothing of its length (procfs) was thought to have been cut where it ended in
/// zeros that were read.
#[test]
fn zeros_that_were_read_at_the_end_are_there() {
    let summary = copied(&Case {
        habits: Habits {
            says: Says::Nothing,
            local: false,
            ..Habits::default()
        },
        source: Layout(vec![(Stretch::Data, 2 * BLOCK), (Stretch::Zeros, 100)]),
        options: Options {
            sparse: Sparse::Always,
            ..Options::default()
        },
        ..Case::default()
    });
    assert_eq!((summary.bytes, summary.changed), (2 * BLOCK + 100, false));
}

/// A hole behind the end of an old file makes it no longer until the copy has ended.
#[test]
fn a_hole_counts_only_where_the_file_is_that_long() {
    let error = failed(&Case {
        source: Layout(vec![(Stretch::Hole, 10 * BLOCK), (Stretch::Data, 1)]),
        old: Layout(vec![(Stretch::Data, BLOCK)]),
        to: OVER_OLD,
        rules: vec![
            at(Op::CopyRange, 1, Fault::Fail(Errno::IO)),
            at(Op::SendFile, 1, Fault::Fail(Errno::IO)),
            at(Op::Read, 1, Fault::Fail(Errno::IO)),
        ],
        ..Case::default()
    });
    assert_eq!((error.done.bytes, error.done.consumed), (BLOCK, 10 * BLOCK));
}

/// openat2(2) answers `EAGAIN` while somebody renames directories, here for the directory of a file
/// that is replaced, and for the one that is synced.
#[test]
fn a_directory_that_cannot_be_opened_yet_is_waited_for() {
    for nth in [2, 4] {
        copied(&Case {
            to: To::Path {
                place: Place::Below,
                standing: Standing::Old,
                follow: false,
            },
            options: Options {
                write_mode: WriteMode::Replace,
                durability: copyist_engine::Durability::Each,
                ..Options::default()
            },
            rules: vec![at(Op::Open, nth, Fault::Fail(Errno::AGAIN))],
            ..Case::default()
        });
    }
}

/// Where an attribute cache is stale, the clone is longer than the source is said to be, and the old
/// file was longer than that.
#[test]
fn a_clone_that_is_longer_than_its_source_is_not_cut() {
    let summary = copied(&Case {
        habits: Habits {
            says: Says::Page(10_000),
            local: false,
            ..clones()
        },
        old: Layout(vec![(Stretch::Data, 20_000)]),
        to: OVER_OLD,
        ..Case::default()
    });
    assert_eq!((summary.bytes, summary.shared), (50_000, 0));
}

/// What the old file had behind the end that the source has now was taken for the clone's.
#[test]
fn a_source_that_shrinks_before_it_is_cloned_leaves_nothing_old() {
    for old in [50_000, 60_000] {
        let summary = copied(&Case {
            habits: clones(),
            old: Layout(vec![(Stretch::Data, old)]),
            to: OVER_OLD,
            rules: vec![at(
                Op::Clone,
                1,
                Fault::Source(Change::Shrink(50_000 - 10 * BLOCK)),
            )],
            ..Case::default()
        });
        let numbers = (summary.bytes, summary.shared, summary.changed);
        assert_eq!(numbers, (10 * BLOCK, 10 * BLOCK, true), "{old}");
    }
}

/// The same, where it grows after it was cloned, to just the length that the old file had.
#[test]
fn a_source_that_grows_after_it_was_cloned_leaves_nothing_old() {
    let summary = copied(&Case {
        habits: clones(),
        source: Layout(vec![(Stretch::Data, 10 * BLOCK)]),
        old: Layout(vec![(Stretch::Data, 15 * BLOCK)]),
        to: OVER_OLD,
        rules: vec![at(Op::Stat, 4, Fault::Source(Change::Grow(5 * BLOCK)))],
        ..Case::default()
    });
    assert_eq!((summary.bytes, summary.changed), (15 * BLOCK, true));
}

/// Nothing that the properties found: they rarely come to a clone in pieces that lies.
#[test]
fn a_piece_that_is_said_to_be_shared_and_is_not_is_copied() {
    let summary = copied(&Case {
        habits: clones(),
        source: Layout(vec![(Stretch::Data, 10 * BLOCK)]),
        options: Options {
            bounded_calls: true,
            tuning: Tuning {
                call_size: NonZeroUsize::new(8192),
                ..Tuning::default()
            },
            ..Options::default()
        },
        rules: vec![at(Op::CloneRange, 2, Fault::Nothing)],
        ..Case::default()
    });
    assert_eq!((summary.bytes, summary.shared), (10 * BLOCK, 8192));
}

/// The old file was emptied after a clone that was none, and taken to be as long as before.
#[test]
fn a_hole_at_the_end_is_there_after_a_clone_that_was_none() {
    copied(&Case {
        habits: clones(),
        source: Layout(vec![(Stretch::Data, BLOCK), (Stretch::Hole, 9 * BLOCK)]),
        old: Layout(vec![(Stretch::Data, 10 * BLOCK)]),
        to: OVER_OLD,
        rules: vec![
            at(Op::Clone, 1, Fault::Source(Change::Grow(BLOCK))),
            at(Op::Stat, 4, Fault::Source(Change::Shrink(BLOCK))),
        ],
        ..Case::default()
    });
}

#[test]
fn a_signal_does_not_keep_a_failed_copy_from_cleaning_up() {
    for (op, nth) in [
        (Op::Stat, 2),
        (Op::StatAt, 1),
        (Op::Unlink, 1),
        (Op::Open, 3),
    ] {
        let error = failed(&Case {
            habits: Habits {
                platform: Platform::Posix,
                ..Habits::default()
            },
            to: To::Path {
                place: Place::Below,
                standing: Standing::Nothing,
                follow: false,
            },
            rules: vec![
                at(Op::Write, 1, Fault::Fail(Errno::NOSPC)),
                at(op, nth, Fault::Fail(Errno::INTR)),
            ],
            ..Case::default()
        });
        assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::NOSPC));
    }
    for op in [Op::Unlink, Op::StatAt] {
        failed(&Case {
            habits: Habits {
                unnamed: false,
                ..Habits::default()
            },
            options: Options {
                write_mode: WriteMode::Replace,
                ..Options::default()
            },
            rules: vec![
                at(Op::CopyRange, 1, Fault::Fail(Errno::NOSPC)),
                at(op, 1, Fault::Fail(Errno::INTR)),
            ],
            ..Case::default()
        });
    }
}

/// The source is looked at before anything is made, and again when its attributes are copied.
#[test]
fn an_attribute_that_comes_meanwhile_and_may_not_be_kept_is_an_error() {
    let error = failed(&Case {
        attributes: vec![Attribute::Privileged],
        options: Options {
            require: Preserve::XATTRS,
            ..Options::default()
        },
        rules: vec![at(Op::XattrNames, 1, Fault::Fail(Errno::NODATA))],
        ..Case::default()
    });
    assert_eq!(error.cause, Cause::Denied);
}

#[test]
fn a_source_that_grows_into_the_window_has_changed() {
    let summary = copied(&Case {
        source: Layout::default(),
        options: Options {
            window: window(0, 10, 0),
            ..Options::default()
        },
        rules: vec![at(Op::Open, 2, Fault::Source(Change::Grow(100)))],
        ..Case::default()
    });
    assert_eq!((summary.bytes, summary.changed), (10, true));
}

/// A window onto an old file, of a source that was cut after it was opened: what is behind its end
/// now is no hole in it, and neither makes the file longer nor anything in it zero.
#[test]
fn a_hole_that_is_cut_off_changes_no_byte_of_an_old_file() {
    for (destination, old) in [(100_000, 60_000), (0, 60_000), (30_000, 60_000)] {
        let summary = copied(&Case {
            source: Layout(vec![(Stretch::Data, BLOCK), (Stretch::Hole, 10 * BLOCK)]),
            old: Layout(vec![(Stretch::Data, old)]),
            to: OVER_OLD,
            options: Options {
                window: window(BLOCK, 10 * BLOCK, destination),
                reflink: Reflink::Never,
                ..Options::default()
            },
            rules: vec![at(
                Op::SeekData,
                1,
                Fault::Source(Change::Shrink(10 * BLOCK)),
            )],
            ..Case::default()
        });
        assert_eq!((summary.bytes, summary.changed), (0, true));
    }
}

/// The same, where the source is cut once the old file's bytes gave way.
#[test]
fn a_hole_that_was_made_counts_whatever_becomes_of_the_source() {
    let summary = copied(&Case {
        source: Layout(vec![(Stretch::Data, BLOCK), (Stretch::Hole, 10 * BLOCK)]),
        to: OVER_OLD,
        options: Options {
            window: window(BLOCK, 10 * BLOCK, 100),
            reflink: Reflink::Never,
            ..Options::default()
        },
        rules: vec![at(
            Op::PunchHole,
            1,
            Fault::Source(Change::Shrink(10 * BLOCK)),
        )],
        ..Case::default()
    });
    assert_eq!(summary.bytes, 10 * BLOCK);
}

/// Where nothing old is to make room for it, the longest hole there can be is one step.
#[test]
fn a_hole_of_all_offsets_is_passed_at_once() {
    let case = Case {
        source: Layout(vec![(Stretch::Data, BLOCK)]),
        options: Options {
            reflink: Reflink::Never,
            ..Options::default()
        },
        ..Case::default()
    };
    let stage = case.set_up();
    stage.world.stretch(stage.source, LAST);
    let mut transfer =
        copyist_engine::Transfer::new(stage.environment.clone(), stage.request.clone());
    for _ in 0..50 {
        if let copyist_engine::Step::Done(summary) = transfer.step(u64::MAX) {
            assert_eq!(summary.bytes, LAST);
            return;
        }
    }
    panic!("no end: {:?}", transfer.progress());
}

/// Cancelled and dropped wherever it stands, a copy in pieces through all mechanisms takes back what
/// it made.
#[test]
fn every_step_may_be_the_last() {
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        for to in [OVER_OLD, Case::default().to] {
            for steps in 0..40 {
                for ending in [Ending::Cancel(steps), Ending::Drop(steps)] {
                    let case = Case {
                        to,
                        options: Options {
                            existing: Existing::Write,
                            write_mode,
                            tuning: Tuning {
                                call_size: NonZeroUsize::new(10_000),
                                ..Tuning::default()
                            },
                            ..Options::default()
                        },
                        rules: vec![
                            at(Op::CopyRange, 2, Fault::Fail(Errno::INVAL)),
                            at(Op::SendFile, 2, Fault::Nothing),
                        ],
                        ending,
                        ..Case::default()
                    };
                    check(&case).map(drop).expect("as the model says");
                }
            }
        }
    }
}
