//! How many system calls a copy makes: counted at the seam, and in the process itself.

use std::fs;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use copyist_engine::sys::{FatalSignalsBlocked, native};
use copyist_engine::{
    Cancel, Environment, Errno, Mechanism, Preserve, ReadOptions, ReadRequest, Request, Side,
    Source, Step, Transfer, Window, WriteMode, copy_in, read_in,
};

use crate::bench::{Bench, CALL, SIZE, Shape, Start, drive, noise};
use crate::scheduled::{Op, Outcome, SOURCE, Scheduled, When};
use crate::trace;

/// A copy of 4 KiB, and what may be there before it.
#[derive(Clone, Copy)]
struct Budget {
    name: &'static str,
    old: Option<usize>,
    mode: WriteMode,
    preserve: Preserve,
    calls: usize,
}

const BUDGETS: [Budget; 8] = {
    const NEW: Budget = Budget {
        name: "new",
        old: None,
        mode: WriteMode::InPlace,
        preserve: Preserve::NONE,
        calls: 7,
    };
    const BOTH: Preserve = Preserve::MODE.union(Preserve::TIMESTAMPS);
    [
        NEW,
        Budget {
            name: "new, with its mode",
            preserve: Preserve::MODE,
            calls: 8,
            ..NEW
        },
        Budget {
            name: "new, with its mode and times",
            preserve: BOTH,
            calls: 9,
            ..NEW
        },
        Budget {
            name: "in place over as much",
            old: Some(CALL),
            calls: 9,
            ..NEW
        },
        Budget {
            name: "in place over more",
            old: Some(3 * CALL),
            calls: 10,
            ..NEW
        },
        Budget {
            // One of them for the mode of the old file.
            name: "in the place of an old one",
            old: Some(3 * CALL),
            mode: WriteMode::Replace,
            calls: 11,
            ..NEW
        },
        Budget {
            name: "in the place of an old one, with mode and times",
            old: Some(3 * CALL),
            mode: WriteMode::Replace,
            preserve: BOTH,
            calls: 12,
        },
        Budget {
            name: "staged, where nothing was",
            mode: WriteMode::Replace,
            calls: 9,
            ..NEW
        },
    ]
};

/// The bench with 4 KiB, and a function that puts things in place and asks for the copy.
fn small() -> (Bench, impl Fn(&Bench, &Budget) -> Request) {
    let bench = Bench::of(noise(CALL, 5));
    let prepare = |bench: &Bench, budget: &Budget| {
        let path = bench.path("to");
        match budget.old {
            Some(length) => fs::write(&path, noise(length, 6)).expect("room"),
            None => drop(fs::remove_file(&path)),
        }
        let mut request = bench.request("to");
        request.options.write_mode = budget.mode;
        request.options.preserve = budget.preserve;
        request
    };
    (bench, prepare)
}

#[test]
fn a_small_copy_keeps_its_budget_at_the_seam() {
    let (bench, prepare) = small();
    let sys = Scheduled::new().shared();
    let environment = sys.environment();
    for budget in &BUDGETS {
        // The first finds out what works between these devices.
        drive(&environment, prepare(&bench, budget)).unwrap();
        let request = prepare(&bench, budget);
        sys.forget();
        let summary = drive(&environment, request).unwrap();
        assert!(bench.read("to") == bench.content());
        assert_eq!(summary.method, Some(Mechanism::CopyRange));
        assert_eq!(summary.refused, []);
        assert_eq!(
            sys.calls().len(),
            budget.calls,
            "{}: {:?}",
            budget.name,
            sys.ops()
        );
    }
}

#[test]
fn the_calls_of_the_simplest_copy() {
    let (bench, prepare) = small();
    let sys = Scheduled::new().shared();
    let environment = sys.environment();
    drive(&environment, prepare(&bench, &BUDGETS[0])).unwrap();
    let request = prepare(&bench, &BUDGETS[0]);
    sys.forget();
    drive(&environment, request).unwrap();
    let wanted = [
        Op::Open,
        Op::Stat,
        Op::Open,
        Op::CopyRange,
        Op::Read,
        Op::Close,
        Op::Close,
    ];
    assert_eq!(sys.ops(), wanted);
}

#[test]
fn a_whole_file_is_read_by_three_calls_between_open_and_close() {
    for size in [0, 1, 4096, 65_536, 300_000, (16 << 20) + 1] {
        let bench = Bench::of(noise(size, 7));
        let sys = Scheduled::new().shared();
        let request = ReadRequest {
            source: Source::Path(bench.at(SOURCE)),
            options: ReadOptions::default(),
        };
        let bytes = read_in(&sys.environment(), &request, &Cancel::new()).unwrap();
        assert!(bytes == bench.content());
        let ops = sys.ops();
        let between: Vec<_> = ops
            .iter()
            .filter(|op| !matches!(op, Op::Open | Op::Close))
            .collect();
        let wanted: &[Op] = match size {
            0 => &[Op::Stat, Op::Read],
            _ => &[Op::Stat, Op::Read, Op::Read],
        };
        assert!(between.iter().copied().eq(wanted), "{size}: {ops:?}");
    }
}

#[test]
fn a_copy_cancelled_before_it_starts_makes_no_call() {
    let bench = Bench::new();
    let cancel = Cancel::new();
    cancel.cancel();
    for shape in Shape::ALL {
        let sys = Scheduled::new().shared();
        let request = bench.prepare(shape, Start::CopyRange);
        copy_in(&sys.environment(), request, &cancel).unwrap_err();
        assert_eq!(sys.ops(), []);
    }
}

/// Each advice in a call of its own: several in one are invalid, and a JDK has got EINVAL for three
/// ever since (<https://github.com/openjdk/jdk/pull/9161>).
#[test]
fn jdk_9161_the_advice_is_one_that_the_system_takes() {
    let bench = Bench::new();
    let source = fs::File::open(bench.path(SOURCE)).unwrap();
    assert_eq!(native().advise_sequential(source.as_fd()), Ok(()));
}

#[test]
fn the_advice_is_given_once_on_entering_the_loop_and_never_elsewhere() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in [Start::Clone, Start::CopyRange, Start::SendFile] {
            let sys = start.system().shared();
            drive(&sys.environment(), bench.prepare(shape, start)).unwrap();
            // No kernel copier appends, and sendfile does not write at another's position.
            let looped = matches!(shape, Shape::Append)
                || (shape == Shape::Descriptor && start == Start::SendFile);
            let advised = sys.calls_of(Op::Advise).len();
            assert_eq!(advised, usize::from(looped), "{shape:?} {start:?}");
        }
        for (range, send) in [(1, 1), (3, 2)] {
            let sys = Scheduled::new()
                .rule(Op::CopyRange, When::From(range), Outcome::Nothing)
                .rule(Op::SendFile, When::From(send), Outcome::Nothing)
                .shared();
            drive(&sys.environment(), bench.prepare(shape, Start::CopyRange)).unwrap();
            let ops = sys.ops();
            let place = |op| ops.iter().position(|made| *made == op).unwrap();
            assert_eq!(sys.calls_of(Op::Advise).len(), 1, "{shape:?}");
            assert!(place(Op::Advise) < place(Op::Write));
        }
    }
}

/// A buffer's worth a call, and the whole file by one call where a kernel copier takes it.
#[test]
fn a_copy_makes_no_more_data_calls_than_its_size_asks_for() {
    let size = 700_000;
    let bench = Bench::of(noise(size, 8));
    for (start, op, most) in [
        (Start::CopyRange, Op::CopyRange, 1),
        (Start::SendFile, Op::SendFile, 1),
        // 256 KiB each, and one that sees the end.
        (Start::ReadWrite, Op::Read, 4),
        (Start::ReadWrite, Op::Write, 3),
    ] {
        let sys = start.system().shared();
        let mut request = bench.prepare(Shape::New, start);
        request.options.tuning.call_size = None;
        drive(&sys.environment(), request).unwrap();
        assert_eq!(sys.calls_of(op).len(), most, "{op:?}");
    }
}

/// What goes away by itself is asked for less and less often, and from the start again once it moved.
#[test]
fn each_pause_is_twice_the_last_up_to_a_limit() {
    let bench = Bench::new();
    let sys = Scheduled::new()
        .rule(Op::Read, When::Nth(13), Outcome::Nothing)
        .rule(Op::Read, When::From(3), Outcome::Fail(Errno::AGAIN))
        .shared();
    let request = bench.prepare(Shape::New, Start::ReadWrite);
    let mut transfer = Transfer::new(sys.environment(), request);
    let mut pauses = Vec::new();
    loop {
        match transfer.step(u64::MAX) {
            Step::Moved(_) => {}
            Step::Later(pause) => pauses.push(pause.as_millis()),
            Step::Done(_) => break,
            step => panic!("{step:?}"),
        }
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 50, 50, 50, 50]);
}

/// Who lays a system below the copier sees each descriptor come and go.
#[test]
fn what_a_copy_opens_it_closes_by_a_call() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            for is_local in [true, false] {
                let mut sys = start.system().names_all();
                if !is_local {
                    sys = sys.rule(Op::IsLocal, When::From(1), Outcome::Nothing);
                }
                let sys = sys.shared();
                drive(&sys.environment(), bench.prepare(shape, start)).unwrap();
                let made = [Op::Open, Op::Reopen, Op::Duplicate].map(|op| {
                    let calls = sys.calls_of(op);
                    calls.iter().filter(|call| call.answer.is_ok()).count()
                });
                let what = format!("{shape:?} {start:?} {is_local}");
                let closed = sys.calls_of(Op::Close).len();
                assert_eq!(closed, made.iter().sum::<usize>(), "{what}");
            }
        }
    }
}

/// Where nothing is promised, one read tells as much as any other call.
#[test]
fn what_says_it_is_empty_is_read_and_no_more() {
    let bench = Bench::new();
    let sys = Scheduled::new()
        .forge(|side, info| {
            if side == Side::Source {
                (info.size, info.blocks) = (0, 0);
            }
        })
        .shared();
    let mut request = bench.prepare(Shape::New, Start::CopyRange);
    request.options.tuning.call_size = None;
    drive(&sys.environment(), request).unwrap();
    assert!(bench.read("to") == bench.content());
    // As much as a buffer holds each time, and one that sees the end.
    let most = sys.calls_of(Op::Read)[0].length;
    assert_eq!(sys.calls_of(Op::Read).len(), SIZE.div_ceil(most) + 1);

    let empty = Bench::of(Vec::new());
    let sys = Scheduled::new().shared();
    drive(
        &sys.environment(),
        empty.prepare(Shape::New, Start::CopyRange),
    )
    .unwrap();
    assert_eq!(empty.read("to"), []);
    assert_eq!(sys.calls_of(Op::Read).len(), 1);
    assert_eq!(sys.calls_of(Op::IsLocal), []);

    let sys = Scheduled::new().shared();
    let mut request = bench.prepare(Shape::New, Start::CopyRange);
    request.options.window = Some(Window {
        source_offset: SIZE as u64,
        length: None,
        destination_offset: 0,
    });
    drive(&sys.environment(), request).unwrap();
    assert_eq!(bench.read("to"), []);
    assert_eq!(sys.calls_of(Op::Read).len(), 1);
    assert_eq!(sys.calls_of(Op::CopyRange), []);
}

/// So that a cancel is heard within milliseconds, whatever the size of the file.
#[test]
fn a_data_call_is_bounded_and_shrinks_where_calls_are_slow() {
    const MIB: usize = 1 << 20;
    const HUGE: u64 = 1 << 30;
    let bench = Bench::of(Vec::new());
    let source = fs::OpenOptions::new().write(true).open(bench.path(SOURCE));
    source.unwrap().set_len(HUGE).unwrap();
    for (start, op) in [
        (Start::CopyRange, Op::CopyRange),
        (Start::SendFile, Op::SendFile),
    ] {
        let claim = Outcome::Claim(usize::MAX, HUGE);
        let sys = start.system().rule(op, When::From(1), claim);
        let sys = sys.dense().shared();
        let mut request = bench.prepare(Shape::New, start);
        request.options.tuning.call_size = None;
        drive(&sys.environment(), request).unwrap();
        let lengths: Vec<_> = sys.calls_of(op).iter().map(|call| call.length).collect();
        assert_eq!(lengths[0], MIB);
        assert!(lengths.iter().all(|length| *length <= 8 * MIB));
        assert!(lengths.windows(2).all(|pair| pair[1] <= 2 * pair[0]));
    }
    let slow = Outcome::after(|| {
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {
            std::thread::yield_now();
        }
    });
    let sys = Scheduled::new();
    let sys = sys
        .rule(Op::CopyRange, When::From(1), slow)
        .dense()
        .shared();
    let mut request = bench.prepare(Shape::New, Start::CopyRange);
    request.options.window = Some(Window {
        source_offset: 0,
        length: Some(4 * MIB as u64),
        destination_offset: 0,
    });
    request.options.tuning.call_size = None;
    drive(&sys.environment(), request).unwrap();
    let calls = sys.calls_of(Op::CopyRange);
    let lengths: Vec<_> = calls.iter().map(|call| call.length).collect();
    let wanted = [MIB, MIB / 2, MIB / 4, MIB / 8, MIB / 16, MIB / 16];
    assert_eq!(lengths[..6], wanted);
}

/// What runs under strace: a copy like the one to be counted first, to find out what works here.
#[test]
fn traced_child() {
    let Some(scenario) = trace::scenario() else {
        return;
    };
    let environment = Environment::native();
    let _signals = FatalSignalsBlocked::new();
    if scenario == "read" {
        let bench = Bench::of(noise(300_000, 7));
        let request = ReadRequest {
            source: Source::Path(bench.at(SOURCE)),
            options: ReadOptions::default(),
        };
        let bytes = trace::marked(|| read_in(&environment, &request, &Cancel::new()));
        assert!(bytes.unwrap() == bench.content());
        return;
    }
    let (bench, prepare) = small();
    if scenario == "cancelled" {
        let cancel = Cancel::new();
        cancel.cancel();
        let request = prepare(&bench, &BUDGETS[0]);
        drop(_signals);
        trace::marked(|| copy_in(&environment, request, &cancel)).unwrap_err();
        return;
    }
    let budget = BUDGETS
        .iter()
        .find(|budget| budget.name == scenario)
        .unwrap();
    copy_in(&environment, prepare(&bench, budget), &Cancel::new()).unwrap();
    let request = prepare(&bench, budget);
    let cancel = Cancel::new();
    trace::marked(|| copy_in(&environment, request, &cancel)).unwrap();
    assert!(bench.read("to") == bench.content());
}

const CHILD: &str = "budget::traced_child";

#[test]
fn a_small_copy_keeps_its_budget_in_the_process() {
    if !is_tmpfs() {
        return;
    }
    for budget in &BUDGETS {
        let Some(calls) = trace::calls(CHILD, budget.name) else {
            return;
        };
        assert!(
            calls.len() <= budget.calls,
            "{}: {} calls, {calls:?}",
            budget.name,
            calls.len()
        );
        assert!(!calls.iter().any(|call| call.starts_with("getdents")));
        // The trace is of a copy, not of something else.
        assert!(
            calls.iter().any(|call| call == "copy_file_range"),
            "{calls:?}"
        );
    }
}

#[test]
fn a_read_makes_three_calls_between_open_and_close_in_the_process() {
    let Some(calls) = trace::calls(CHILD, "read") else {
        return;
    };
    let place = |name: &str| calls.iter().position(|call| call.starts_with(name));
    let (open, close) = (place("open").unwrap(), place("close").unwrap());
    assert_eq!(close - open - 1, 3, "{calls:?}");
    assert_eq!(calls.len(), 5, "{calls:?}");
}

#[test]
fn a_copy_cancelled_before_it_starts_makes_no_call_in_the_process() {
    let Some(calls) = trace::calls(CHILD, "cancelled") else {
        return;
    };
    assert_eq!(calls, [""; 0]);
}

/// The budgets are of a file system in memory, without clones.
fn is_tmpfs() -> bool {
    use std::io::Write;
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let found = mounts
        .lines()
        .any(|line| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"]));
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: /dev/shm is no tmpfs here");
    }
    found
}
