//! What people reported of copies, each case by its report.

use std::fs::{self, File, OpenOptions};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use copyist_engine::{
    Cause, Errno, Existing, Mechanism, Reflink, Side, Source, Unsupported, Window,
};

use crate::bench::{Bench, CALL, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};

const COPIERS: [(Start, Op, Mechanism); 2] = [
    (Start::CopyRange, Op::CopyRange, Mechanism::CopyRange),
    (Start::SendFile, Op::SendFile, Mechanism::SendFile),
];

// https://github.com/golang/go/issues/44272, and the same in https://github.com/tarka/xcp/issues/24
// and https://github.com/openclaw/fs-safe/issues/306
#[test]
fn golang_44272_a_copier_that_says_0_has_not_seen_the_end() {
    let bench = Bench::new();
    for (start, op, mechanism) in COPIERS {
        for n in [1, 3, 6] {
            let sys = Scheduled::new()
                .rule(op, When::Nth(n), Outcome::Nothing)
                .shared();
            let request = bench.prepare(Shape::New, start);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(Shape::New, &summary, &|| format!("{op:?} {n}"));
            assert!(summary.refused.contains(&(mechanism, None)));
            // Asked by a plain read, at the place that it is about.
            let calls = sys.calls();
            let zero = calls
                .iter()
                .position(|call| call.op == op && call.answer == Ok(0));
            let (zero, next) = (calls[zero.unwrap()], calls[zero.unwrap() + 1]);
            assert_eq!((next.op, next.from), (Op::Read, zero.from));
        }
    }
}

// https://github.com/oven-sh/bun/issues/43398
#[test]
fn bun_43398_a_fallback_in_the_middle_goes_on_from_there() {
    let bench = Bench::new();
    for (start, op, _) in COPIERS {
        let sys = Scheduled::new()
            .rule(op, When::Nth(1), Outcome::Short(CALL))
            .rule(op, When::From(2), Outcome::Fail(Errno::INVAL))
            .shared();
        let mut request = bench.prepare(Shape::InPlace, start);
        request.options.tuning.call_size = NonZeroUsize::new(SIZE);
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(Shape::InPlace, &summary, &|| format!("{op:?}"));
        let calls = sys.calls();
        let failed = calls
            .iter()
            .position(|call| call.answer == Err(Errno::INVAL));
        let next = calls[failed.unwrap() + 1..]
            .iter()
            .find(|call| matches!(call.op, Op::SendFile | Op::Read));
        assert_eq!(next.unwrap().from, CALL as u64);
    }
}

// https://github.com/KarpelesLab/reflink/issues/3, https://github.com/JuliaLang/julia/issues/14574,
// https://github.com/libuv/libuv/issues/1494
#[test]
fn reflink_3_no_call_moves_more_than_0x7ffff000_bytes() {
    const MOST: usize = 0x7fff_f000;
    const HUGE: u64 = 5 << 30;
    let bench = Bench::of(Vec::new());
    let sparse = OpenOptions::new()
        .write(true)
        .open(bench.path(SOURCE))
        .unwrap();
    sparse.set_len(HUGE).unwrap();
    for (start, op, _) in COPIERS {
        let sys = Scheduled::new()
            .rule(op, When::From(1), Outcome::Claim(MOST, HUGE))
            .dense()
            .shared();
        let mut request = bench.prepare(Shape::New, start);
        request.options.tuning.call_size = NonZeroUsize::new(usize::MAX);
        let summary = drive(&sys.environment(), request).unwrap();
        assert_eq!(summary.bytes, HUGE);
        let mut next = 0;
        for call in sys.calls_of(op) {
            assert_eq!(call.from, next);
            next += call.answer.unwrap() as u64;
        }
        assert_eq!(next, HUGE);
    }
}

// NFSD moves at most 4 MiB a call (https://github.com/deepin-community/kernel/issues/948).
#[test]
fn deepin_948_a_server_that_moves_4_mib_a_call_moves_all() {
    const SERVER: usize = 4 << 20;
    let bench = Bench::of(noise(2 * SERVER + 5, 3));
    for (start, op, _) in COPIERS {
        let sys = Scheduled::new()
            .rule(op, When::From(1), Outcome::Short(SERVER))
            .shared();
        let mut request = bench.prepare(Shape::New, start);
        request.options.tuning.call_size = NonZeroUsize::new(1 << 30);
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(Shape::New, &summary, &|| format!("{op:?}"));
        assert_eq!(
            summary.refused.len(),
            usize::from(start == Start::CopyRange)
        );
        assert_eq!(sys.calls_of(op).len(), 3);
    }
}

// https://github.com/oven-sh/bun/issues/32859, https://github.com/oven-sh/bun/issues/37856
#[test]
fn bun_32859_a_window_ends_where_it_ends_on_every_arm() {
    let bench = Bench::of(noise(300_000, 4));
    let part = Window {
        source_offset: 0,
        length: Some(5000),
        destination_offset: 0,
    };
    let arms = [
        ("as it comes", None, None, false),
        ("no copy_file_range", Some(1), None, false),
        ("no kernel copier", Some(1), Some(1), false),
        ("kernel copiers that break", Some(2), Some(2), false),
        ("the loop", None, None, true),
    ];
    for call_size in [None, NonZeroUsize::new(1000)] {
        for shape in [Shape::New, Shape::InPlace] {
            for (what, range, send, fallback) in arms {
                let mut sys = Scheduled::new();
                for (op, n) in [(Op::CopyRange, range), (Op::SendFile, send)] {
                    if let Some(n) = n {
                        sys = sys.rule(op, When::From(n), Outcome::Fail(Errno::NOSYS));
                    }
                }
                let sys = sys.shared();
                let mut request = bench.prepare(shape, Start::CopyRange);
                request.options.window = Some(part);
                request.options.tuning.force_fallback = fallback;
                request.options.tuning.call_size = call_size;
                let summary = drive(&sys.environment(), request).unwrap();
                assert_eq!((summary.bytes, summary.consumed), (5000, 5000), "{what}");
                let found = bench.read("to");
                assert!(found[..5000] == bench.content()[..5000], "{what}");
                let rest: &[u8] = match shape {
                    Shape::New => &[],
                    _ => &bench.old()[5000..],
                };
                assert!(found[5000..] == *rest, "{what}: beyond the window");
                for call in sys.calls() {
                    let end = call.from + call.length as u64;
                    assert!(end <= 5000, "{what} asks beyond the window: {call:?}");
                }
            }
        }
    }
}

#[test]
fn a_window_beyond_the_end_of_a_source_that_grows_ends_where_it_ends() {
    let end = SIZE + 100;
    for (start, op) in [
        (Start::CopyRange, Op::CopyRange),
        (Start::SendFile, Op::SendFile),
        (Start::ReadWrite, Op::Read),
    ] {
        let bench = Bench::new();
        let source = OpenOptions::new().write(true).open(bench.path(SOURCE));
        let source = source.unwrap();
        let grow = Outcome::after(move || {
            source.write_all_at(&noise(SIZE, 9), SIZE as u64).unwrap();
        });
        let sys = Scheduled::new().rule(op, When::Nth(1), grow).shared();
        let mut request = bench.prepare(Shape::InPlace, start);
        request.options.window = Some(Window {
            source_offset: 0,
            length: Some(end as u64),
            destination_offset: 0,
        });
        let summary = drive(&sys.environment(), request).unwrap();
        assert_eq!(summary.bytes, end as u64, "{op:?}");
        let found = bench.read("to");
        let wanted = [bench.content(), &noise(SIZE, 9)].concat();
        assert!(found[..end] == wanted[..end], "{op:?}");
        assert!(
            found[end..] == bench.old()[end..],
            "{op:?}: beyond the window"
        );
    }
}

// https://github.com/nodejs/node/issues/50437
#[test]
fn node_50437_a_short_read_is_not_the_end() {
    let bench = Bench::new();
    for (short, length) in [(1, 500), (7, 5000), (4095, SIZE)] {
        let sys = Scheduled::new()
            .rule(Op::Read, When::From(1), Outcome::Short(short))
            .shared();
        let mut request = bench.prepare(Shape::New, Start::ReadWrite);
        request.options.tuning.call_size = None;
        // The last bytes, so that the end is found too.
        request.options.window = Some(Window {
            source_offset: (SIZE - length) as u64,
            length: None,
            destination_offset: 0,
        });
        let summary = drive(&sys.environment(), request).unwrap();
        assert!(bench.read("to") == bench.content()[SIZE - length..]);
        assert_eq!(summary.bytes, length as u64);
        assert!(!summary.changed);
    }
}

// https://github.com/rpm-software-management/librepo/issues/398,
// https://github.com/bytecodealliance/wasmtime/issues/8340
#[test]
fn librepo_398_a_short_write_loses_nothing() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for short in [13, 100, 4095] {
            let sys = Scheduled::new()
                .rule(Op::Write, When::From(1), Outcome::Short(short))
                .shared();
            let request = bench.prepare(shape, Start::ReadWrite);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(shape, &summary, &|| format!("{shape:?} {short}"));
        }
    }
}

// https://github.com/boostorg/filesystem/issues/292,
// https://github.com/uutils/coreutils/issues/12648
#[test]
fn boost_292_a_source_that_shrinks_ends_the_copy() {
    let bench = Bench::new();
    for (start, op) in [
        (Start::CopyRange, Op::CopyRange),
        (Start::SendFile, Op::SendFile),
        (Start::ReadWrite, Op::Read),
    ] {
        for left in [0, 1, CALL, CALL + 5, 2 * CALL] {
            for n in [1, 2, 3] {
                fs::write(bench.path(SOURCE), bench.content()).unwrap();
                let source = OpenOptions::new()
                    .write(true)
                    .open(bench.path(SOURCE))
                    .unwrap();
                let cut = Outcome::after(move || source.set_len(left as u64).unwrap());
                let sys = Scheduled::new()
                    .rule(op, When::Nth(n), cut)
                    .at_most(60)
                    .shared();
                let request = bench.prepare(Shape::InPlace, start);
                let summary = drive(&sys.environment(), request).unwrap();
                sys.calls();
                let what = format!("{op:?} {n}, {left} left");
                // What was copied before stays: it was there.
                let reached = left.max((n - 1) * CALL).min(SIZE);
                assert_eq!(summary.bytes, reached as u64, "{what}");
                assert!(bench.read("to") == bench.content()[..reached], "{what}");
                assert!(summary.changed, "{what}");
            }
        }
    }
}

#[test]
fn a_source_that_grows_is_copied_to_its_end() {
    let bench = Bench::new();
    for (start, op) in [
        (Start::CopyRange, Op::CopyRange),
        (Start::SendFile, Op::SendFile),
        (Start::ReadWrite, Op::Read),
    ] {
        // At the last data call, and when the end is being confirmed.
        for (op, n) in [
            (op, 1),
            (op, 6),
            (Op::Read, if op == Op::Read { 7 } else { 1 }),
        ] {
            fs::write(bench.path(SOURCE), bench.content()).unwrap();
            let more = noise(3 * CALL, 9);
            let added = more.clone();
            let source = OpenOptions::new()
                .write(true)
                .open(bench.path(SOURCE))
                .unwrap();
            let grow = Outcome::after(move || source.write_all_at(&added, SIZE as u64).unwrap());
            let sys = Scheduled::new().rule(op, When::Nth(n), grow).shared();
            let request = bench.prepare(Shape::InPlace, start);
            let summary = drive(&sys.environment(), request).unwrap();
            let wanted = [bench.content(), &more].concat();
            assert!(bench.read("to") == wanted, "{start:?} {op:?} {n}");
            assert_eq!(summary.bytes, wanted.len() as u64);
            assert!(summary.changed, "{start:?} {op:?} {n}");
        }
    }
}

// https://github.com/libuv/libuv/issues/5151, https://github.com/nasa/fprime/issues/3534
#[test]
fn libuv_5151_a_write_that_moves_nothing_or_fails_ends_the_copy() {
    let bench = Bench::new();
    for (outcome, errno) in [
        (Outcome::Nothing, Errno::IO),
        (Outcome::Fail(Errno::NOSPC), Errno::NOSPC),
    ] {
        for shape in Shape::ALL {
            for n in [1, 3] {
                let sys = Scheduled::new()
                    .rule(Op::Write, When::From(n), outcome.clone())
                    .at_most(40)
                    .shared();
                let request = bench.prepare(shape, Start::ReadWrite);
                let error = drive(&sys.environment(), request).unwrap_err();
                sys.calls();
                assert_eq!(error.cause, Cause::Io(Side::Destination, errno));
                let written = (n - 1) * CALL;
                assert_eq!(error.done.bytes, written as u64);
                // What was taken and not put is told.
                assert_eq!(error.done.consumed, (written + CALL) as u64);
                bench.assert_failed(shape, &error.done, &|| format!("{shape:?} {errno:?}"));
            }
        }
    }
    // Once is no failure.
    let sys = Scheduled::new()
        .rule(Op::Write, When::Every(2), Outcome::Nothing)
        .shared();
    let request = bench.prepare(Shape::New, Start::ReadWrite);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::New, &summary, &|| "every other write moves".into());
}

// https://github.com/pola-rs/polars/issues/21002, https://github.com/rust-lang/rust/issues/42619
#[test]
fn polars_21002_a_full_quota_told_only_at_close_is_a_failure() {
    let bench = Bench::new();
    for errno in [Errno::DQUOT, Errno::NOSPC, Errno::IO] {
        for shape in Shape::ALL {
            for start in Start::ALL {
                // A file system that reports at close(2) is none that is known not to.
                let sys = start
                    .system()
                    .rule(Op::IsLocal, When::From(1), Outcome::Nothing)
                    .rule(Op::Close, When::Nth(1), Outcome::Fail(errno))
                    .shared();
                let request = bench.prepare(shape, start);
                let answer = drive(&sys.environment(), request);
                let what = || format!("{shape:?} {start:?} {errno:?}");
                // A descriptor that is not the copy's own is not closed by it.
                if matches!(shape, Shape::Descriptor | Shape::Append) {
                    bench.assert_copied(shape, &answer.unwrap(), &what);
                    continue;
                }
                let error = answer.unwrap_err();
                assert_eq!(
                    error.cause,
                    Cause::Io(Side::Destination, errno),
                    "{}",
                    what()
                );
                bench.assert_failed(shape, &error.done, &what);
            }
        }
    }
}

// https://github.com/rust-lang/rust/issues/51266, https://github.com/tonistiigi/fsutil/issues/50,
// https://github.com/libuv/libuv/issues/3322, https://github.com/oven-sh/bun/issues/8425
#[test]
fn rust_51266_a_filter_that_denies_the_fast_calls_costs_no_copy() {
    let bench = Bench::new();
    for errno in [
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOSYS,
        Errno::OPNOTSUPP,
        Errno::XDEV,
        Errno::INVAL,
        Errno::BADF,
        Errno::TXTBSY,
        Errno::IO,
    ] {
        let deny = Outcome::Fail(errno);
        let sys = Scheduled::new()
            .rule(Op::Clone, When::From(1), deny.clone())
            .rule(Op::CopyRange, When::From(1), deny.clone())
            .rule(Op::SendFile, When::From(1), deny.clone())
            .rule(Op::Probe, When::From(1), deny)
            .shared();
        for shape in Shape::ALL {
            let request = bench.prepare(shape, Start::CopyRange);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(shape, &summary, &|| format!("{shape:?} {errno:?}"));
        }
    }
}

// https://github.com/golang/go/issues/42334, https://github.com/golang/go/issues/40731,
// https://github.com/golang/go/issues/41064
#[test]
fn golang_42334_an_eio_of_a_copier_is_decided_by_the_loop_and_a_sync() {
    let bench = Bench::new();
    for (start, op) in [
        (Start::Clone, Op::Clone),
        (Start::CopyRange, Op::CopyRange),
        (Start::SendFile, Op::SendFile),
    ] {
        let system = || {
            start
                .system()
                .rule(op, When::From(1), Outcome::Fail(Errno::IO))
        };
        let sys = system().shared();
        let request = bench.prepare(Shape::Replace, start);
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(Shape::Replace, &summary, &|| format!("{op:?}"));
        // Synced after the last byte, and before anybody sees the file.
        let ops = sys.ops();
        let place = |op| ops.iter().rposition(|made| *made == op).unwrap();
        let last_copier = place(if start == Start::Clone {
            Op::CopyRange
        } else {
            Op::Read
        });
        assert!(last_copier < place(Op::Sync) && place(Op::Sync) < place(Op::Link));
        // A true one comes back from the loop, or from the sync.
        for (broken, side) in [
            (Op::Read, Side::Source),
            (Op::Write, Side::Destination),
            (Op::Sync, Side::Destination),
        ] {
            let sys = system()
                .rule(Op::CopyRange, When::From(1), Outcome::Fail(Errno::IO))
                .rule(Op::SendFile, When::From(1), Outcome::Fail(Errno::IO))
                .rule(broken, When::From(1), Outcome::Fail(Errno::IO))
                .shared();
            let request = bench.prepare(Shape::Replace, start);
            let error = drive(&sys.environment(), request).unwrap_err();
            assert_eq!(error.cause, Cause::Io(side, Errno::IO), "{broken:?}");
            bench.assert_failed(Shape::Replace, &error.done, &|| format!("{broken:?}"));
        }
    }
}

// https://github.com/ziglang/zig/issues/6516, https://github.com/rust-lang/rust/issues/91152,
// https://github.com/rust-lang/rust/pull/91153, https://github.com/uutils/coreutils/issues/12625,
// https://github.com/uutils/coreutils/issues/10554
#[test]
fn zig_6516_an_answer_that_cannot_be_is_no_panic() {
    let bench = Bench::new();
    for raw in (1..=133).chain([512, 517, 524, 530, 4095]) {
        let errno = Errno::from_raw_os_error(raw);
        if errno == Errno::INTR {
            continue;
        }
        for (start, op) in [
            (Start::Clone, Op::Clone),
            (Start::CopyRange, Op::CopyRange),
            (Start::SendFile, Op::SendFile),
            (Start::ReadWrite, Op::Read),
            (Start::ReadWrite, Op::Write),
            (Start::ReadWrite, Op::Open),
            (Start::ReadWrite, Op::Stat),
            (Start::ReadWrite, Op::Close),
        ] {
            let sys = start
                .system()
                .rule(op, When::Nth(2), Outcome::Fail(errno))
                .rule(Op::Clone, When::Nth(1), Outcome::Fail(errno))
                .at_most(100)
                .shared();
            let request = bench.prepare(Shape::New, start);
            let what = || format!("{op:?} {errno:?}");
            match drive(&sys.environment(), request) {
                Ok(summary) => bench.assert_copied(Shape::New, &summary, &what),
                Err(error) => bench.assert_failed(Shape::New, &error.done, &what),
            }
            sys.calls();
        }
    }
}

// https://github.com/openclaw/fs-safe/issues/301
#[test]
fn fs_safe_301_a_full_disk_is_not_covered_up_by_another_try() {
    let bench = Bench::new();
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::NOMEM, Errno::CANCELED] {
        for (start, op) in [
            (Start::Clone, Op::Clone),
            (Start::CopyRange, Op::CopyRange),
            (Start::SendFile, Op::SendFile),
        ] {
            let sys = start
                .system()
                .rule(op, When::Nth(1), Outcome::Fail(errno))
                .shared();
            let request = bench.prepare(Shape::Replace, start);
            let error = drive(&sys.environment(), request).unwrap_err();
            assert_eq!(error.cause, Cause::Io(Side::Destination, errno));
            bench.assert_failed(Shape::Replace, &error.done, &|| format!("{op:?}"));
            let ops = sys.ops();
            let failed = ops.iter().position(|made| *made == op).unwrap();
            assert!(
                ops[failed + 1..]
                    .iter()
                    .all(|op| matches!(op, Op::Close | Op::Unlink | Op::StatAt | Op::Stat)),
                "{ops:?}"
            );
        }
    }
}

// https://github.com/libuv/libuv/issues/2483, https://github.com/jupyterlab/jupyterlab/issues/6969
#[test]
fn libuv_2483_a_clone_that_is_refused_is_a_copy() {
    let bench = Bench::new();
    for errno in [Errno::INVAL, Errno::BADF, Errno::NOTTY, Errno::PERM] {
        for shape in Shape::ALL {
            let sys = Scheduled::new()
                .rule(Op::Clone, When::From(1), Outcome::Fail(errno))
                .shared();
            let request = bench.prepare(shape, Start::CopyRange);
            let summary = drive(&sys.environment(), request).unwrap();
            bench.assert_copied(shape, &summary, &|| format!("{shape:?} {errno:?}"));
        }
    }
}

// https://github.com/openzfs/zfs/issues/15728
#[test]
fn openzfs_15728_a_clone_that_is_cut_short_is_copied_anew() {
    let bench = Bench::new();
    for shape in [Shape::New, Shape::Replace] {
        // It says that it cloned, and the file is empty.
        let sys = Scheduled::new()
            .rule(Op::Clone, When::From(1), Outcome::Nothing)
            .shared();
        let request = bench.prepare(shape, Start::Clone);
        let summary = drive(&sys.environment(), request).unwrap();
        bench.assert_copied(shape, &summary, &|| format!("{shape:?}"));
        assert_eq!(summary.method, Some(Mechanism::CopyRange));
        assert_eq!(summary.shared, 0);
        assert!(summary.refused.contains(&(Mechanism::Clone, None)));
    }
}

/// Signals that interrupt every third call of every kind.
#[test]
fn a_storm_of_interruptions_costs_no_byte() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            let mut sys = start.system();
            for op in [
                Op::Open,
                Op::Stat,
                Op::StatAt,
                Op::Clone,
                Op::CopyRange,
                Op::SendFile,
                Op::Seek,
                Op::Read,
                Op::Write,
                Op::Truncate,
                Op::SetMode,
                Op::Sync,
                Op::Link,
                Op::IsLocal,
            ] {
                sys = sys.rule(op, When::Every(3), Outcome::Fail(Errno::INTR));
            }
            let sys = sys.shared();
            let mut request = bench.prepare(shape, start);
            request.options.durability = copyist_engine::Durability::Each;
            let summary = drive(&sys.environment(), request).unwrap();
            let what = || format!("{shape:?} {start:?}");
            bench.assert_copied(shape, &summary, &what);
            // No mechanism is blamed for a signal. (Clones are not made at all where this begins
            // with another one.)
            let blamed = summary.refused.iter().any(|(_, e)| *e == Some(Errno::INTR));
            assert!(!blamed, "{} {:?}", what(), summary.refused);
        }
    }
}

// https://github.com/libuv/libuv/issues/3056: offsets, not the position of a shared descriptor.
#[test]
fn libuv_3056_descriptors_are_read_and_written_by_offset_on_every_arm() {
    use std::io::{Seek, SeekFrom};
    let bench = Bench::new();
    for (start, broken) in [
        (Start::CopyRange, None),
        (Start::CopyRange, Some(Op::CopyRange)),
        (Start::ReadWrite, None),
    ] {
        let mut source = File::open(bench.path(SOURCE)).unwrap();
        source.seek(SeekFrom::Start(42)).unwrap();
        let mut sys = Scheduled::new().source_is(&source);
        if let Some(op) = broken {
            sys = sys.rule(op, When::From(2), Outcome::Fail(Errno::INVAL));
        }
        let mut request = bench.prepare(Shape::Descriptor, start);
        let source = Arc::new(source);
        request.source = Source::File(source.clone());
        request.options.window = Some(crate::bench::WINDOW);
        request.options.existing = Existing::Write;
        drive(&sys.shared().environment(), request).unwrap();
        assert!(bench.read("to") == bench.wanted(Shape::Window), "{start:?}");
        assert_eq!((&*source).stream_position().unwrap(), 42);
    }
}

// btrfs answers EINVAL also where one file has checksums and the other has none (chattr(1), `C`).
#[test]
fn a_required_clone_that_cannot_be_made_leaves_the_old_file_whole() {
    let bench = Bench::of(noise(1001, 5));
    for (trial, made) in [
        (Outcome::Fail(Errno::INVAL), false),
        (Outcome::Nothing, true),
    ] {
        let sys = Scheduled::new()
            .clones()
            .rule(Op::Clone, When::Nth(1), Outcome::Fail(Errno::INVAL))
            .rule(Op::CloneRange, When::From(1), trial)
            .shared();
        let mut request = bench.prepare(Shape::InPlace, Start::Clone);
        request.options.reflink = Reflink::Always;
        match drive(&sys.environment(), request) {
            Ok(summary) => {
                assert!(made);
                bench.assert_copied(Shape::InPlace, &summary, &|| "a clone".to_owned());
            }
            Err(error) => {
                assert!(!made);
                assert_eq!(error.cause, Cause::Unsupported(Unsupported::Clone));
                assert!(bench.read("to") == bench.old());
            }
        }
    }
}
