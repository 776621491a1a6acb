//! Sweeps whose calls fail; what they cost; and that copies pay nothing for them.

use std::fs;

use copyist_engine::{Cancel, Cause, Errno, Side, Swept, sweep_in};
use rustix::fs::{FileType, Mode, OFlags};

use crate::bench::{Bench, Shape, Start, drive};
use crate::scheduled::{Call, Op, Outcome, Scheduled, When};

const LEFT: &str = ".copyist-0123456789abcdef";

/// Puts a leftover there, unless one is. It is made without being opened: a child that another test
/// starts at that moment would have it open too until it executes its program.
fn leave(bench: &Bench) {
    let (mode, kind) = (Mode::RUSR | Mode::WUSR, FileType::RegularFile);
    match rustix::fs::mknodat(rustix::fs::CWD, bench.path(LEFT), kind, mode, 0) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => panic!("{errno}"),
    }
}

fn sweep(bench: &Bench, sys: Scheduled) -> (Result<Swept, Cause>, Vec<Call>) {
    let sys = sys.shared();
    let answer = sweep_in(&sys.environment(), &bench.at("."), &Cancel::new());
    (answer, sys.calls())
}

fn removed(count: u64) -> Swept {
    Swept {
        removed: count,
        ..Swept::default()
    }
}

#[test]
fn a_sweep_asks_for_the_names_once_and_for_nothing_that_is_not_of_its_form() {
    let bench = Bench::new();
    for number in 0..50 {
        fs::write(bench.path(&format!("file-{number}")), "bytes").unwrap();
    }
    let ops = |calls: Vec<Call>| calls.iter().map(|call| call.op).collect::<Vec<_>>();
    let (answer, calls) = sweep(&bench, Scheduled::new());
    assert_eq!(answer, Ok(Swept::default()));
    assert_eq!(ops(calls), [Op::Open, Op::List, Op::Close]);
    leave(&bench);
    let (answer, calls) = sweep(&bench, Scheduled::new());
    assert_eq!(answer, Ok(removed(1)));
    let wanted = [
        Op::Open,
        Op::List,
        Op::StatAt,
        Op::Open,
        Op::Stat,
        Op::HasWriter,
        Op::LockShared,
        Op::StatAt,
        Op::Unlink,
        Op::Close,
        Op::Close,
    ];
    assert_eq!(ops(calls), wanted);
}

#[test]
fn no_copy_lists_a_directory() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            for system in [start.system(), start.system().names_all()] {
                let sys = system.shared();
                drive(&sys.environment(), bench.prepare(shape, start)).unwrap();
                for op in [Op::List, Op::LockShared, Op::HasWriter] {
                    assert_eq!(sys.calls_of(op), [], "{shape:?} {start:?}");
                }
            }
        }
    }
}

/// By what the call is and how it fails: an error, a failure that is told, or nothing of the kind.
#[test]
fn whatever_call_fails_the_file_is_gone_or_its_name_is_told() {
    let bench = Bench::new();
    let errnos = [
        Errno::IO,
        Errno::ACCESS,
        Errno::PERM,
        Errno::STALE,
        Errno::NOLCK,
        Errno::OPNOTSUPP,
        Errno::INVAL,
        Errno::NOSYS,
        Errno::MFILE,
        Errno::NOENT,
        Errno::LOOP,
        Errno::NXIO,
        Errno::AGAIN,
        Errno::INTR,
    ];
    leave(&bench);
    let (_, rehearsal) = sweep(&bench, Scheduled::new());
    for (place, call) in rehearsal.iter().enumerate() {
        let earlier = &rehearsal[..=place];
        let count = earlier.iter().filter(|made| made.op == call.op).count();
        for errno in errnos {
            leave(&bench);
            let what = format!("{:?} {count} {errno:?}", call.op);
            let sys = Scheduled::new()
                .rule(call.op, When::Nth(count), Outcome::Fail(errno))
                .at_most(30);
            let (answer, calls) = sweep(&bench, sys);
            let opened = calls
                .iter()
                .filter(|call| call.op == Op::Open && call.answer.is_ok());
            let closed = calls.iter().filter(|call| call.op == Op::Close);
            assert_eq!(opened.count(), closed.count(), "{what}");
            let is_there = bench.path(LEFT).exists();
            let of_directory = call.op == Op::List || (call.op, count) == (Op::Open, 1);
            match (call.op, errno) {
                // It comes again; and what close(2) says of a file that was read is of no interest.
                (_, Errno::INTR) | (Op::Close, _) => {
                    assert_eq!(answer, Ok(removed(1)), "{what}");
                    assert!(!is_there, "{what}");
                }
                _ if of_directory => {
                    assert_eq!(answer, Err(Cause::Io(Side::Destination, errno)), "{what}");
                    assert!(is_there, "{what}");
                }
                // A lease or a lock, by the same number.
                (Op::Open | Op::LockShared, Errno::AGAIN) => {
                    let in_use = Swept {
                        in_use: 1,
                        ..Swept::default()
                    };
                    assert_eq!(answer, Ok(in_use), "{what}");
                    assert!(is_there, "{what}");
                }
                // It is gone, or another one.
                (_, Errno::NOENT) | (Op::Open, Errno::LOOP | Errno::NXIO) => {
                    assert_eq!(answer, Ok(Swept::default()), "{what}");
                    assert!(is_there, "{what}");
                }
                _ => {
                    let failed = Swept {
                        failed: vec![(LEFT.into(), errno)],
                        ..Swept::default()
                    };
                    assert_eq!(answer, Ok(failed), "{what}");
                    assert!(is_there, "{what}");
                }
            }
        }
    }
}

/// On a network file system nobody can tell who has a file open; there copies have a lock.
#[test]
fn where_there_are_no_leases_and_the_file_system_is_not_local_the_lock_decides() {
    let bench = Bench::new();
    for errno in [Errno::INVAL, Errno::NOSYS, Errno::ACCESS, Errno::AGAIN] {
        leave(&bench);
        let sys = Scheduled::new()
            .rule(Op::IsLocal, When::From(1), Outcome::Nothing)
            .rule(Op::HasWriter, When::From(1), Outcome::Fail(errno));
        assert_eq!(sweep(&bench, sys).0, Ok(removed(1)), "{errno:?}");
    }
}

/// Something else has the name by then: another file is not removed.
#[test]
fn a_file_that_takes_the_name_meanwhile_stays() {
    let bench = Bench::new();
    for (op, n) in [
        (Op::Open, 2),
        (Op::Stat, 1),
        (Op::HasWriter, 1),
        (Op::StatAt, 2),
    ] {
        leave(&bench);
        let path = bench.path(LEFT);
        let aside = bench.path("aside");
        let swap = Outcome::after(move || {
            fs::rename(&path, &aside).unwrap();
            fs::write(&path, "new").unwrap();
        });
        let sys = Scheduled::new().rule(op, When::Nth(n), swap);
        assert_eq!(sweep(&bench, sys).0, Ok(Swept::default()), "{op:?}");
        assert_eq!(bench.read(LEFT), b"new");
        fs::remove_file(bench.path(LEFT)).unwrap();
    }
}

#[test]
fn a_cancel_ends_a_sweep_between_two_calls_of_it() {
    let bench = Bench::new();
    for op in [Op::Open, Op::List] {
        leave(&bench);
        let cancel = Cancel::new();
        let canceller = cancel.clone();
        let sys = Scheduled::new()
            .rule(op, When::Nth(1), Outcome::after(move || canceller.cancel()))
            .shared();
        let answer = sweep_in(&sys.environment(), &bench.at("."), &cancel);
        assert_eq!(answer, Err(Cause::Cancelled), "{op:?}");
        assert!(bench.path(LEFT).exists());
        let ops = sys.ops();
        assert_eq!(ops.last(), Some(&Op::Close), "{ops:?}");
    }
}

/// A sweep that came between the making of a file and its lock takes it for one that is left.
#[test]
fn a_name_that_a_sweep_got_hold_of_is_given_up_for_another() {
    let bench = Bench::new();
    for (op, errno, names) in [
        (Op::Lock, Errno::WOULDBLOCK, 2),
        (Op::StatAt, Errno::NOENT, 2),
        (Op::Lock, Errno::INTR, 2),
        // A file system without locks.
        (Op::Lock, Errno::OPNOTSUPP, 1),
    ] {
        // The first look is at what is to be replaced.
        let first = if op == Op::StatAt { 2 } else { 1 };
        let sys = Scheduled::new()
            .names_all()
            .rule(op, When::Nth(first), Outcome::Fail(errno))
            .shared();
        let request = bench.prepare(Shape::Replace, Start::CopyRange);
        let summary = drive(&sys.environment(), request).unwrap();
        let what = || format!("{op:?} {errno:?}");
        bench.assert_copied(Shape::Replace, &summary, &what);
        let made = sys.calls_of(Op::Open);
        let made = made.iter().filter(|call| call.flags.contains(OFlags::EXCL));
        assert_eq!(made.count(), names, "{}", what());
        assert_eq!(sys.calls_of(Op::Unlink).len(), names - 1, "{}", what());
    }
}

/// One that got its name by now is replaced in turn, and what replaces it shows until then that it is
/// open.
#[test]
fn a_file_whose_name_was_taken_meanwhile_stays_in_use_until_it_has_one() {
    let bench = Bench::new();
    let path = bench.path("to");
    let taken = Outcome::after(move || fs::write(&path, "faster").unwrap());
    let sys = Scheduled::new()
        .names_all()
        .rule(Op::RenameExclusive, When::Nth(1), taken)
        .shared();
    let request = bench.prepare(Shape::ReplaceNothing, Start::CopyRange);
    let summary = drive(&sys.environment(), request).unwrap();
    bench.assert_copied(Shape::ReplaceNothing, &summary, &|| "taken".to_owned());
    let ops = sys.ops_about(Side::Destination);
    let named = ops.iter().rposition(|op| *op == Op::Rename);
    assert!(ops.contains(&Op::RenameExclusive) && named.is_some());
    assert!(
        ops.iter().position(|op| *op == Op::Close) > named,
        "{ops:?}"
    );
}
