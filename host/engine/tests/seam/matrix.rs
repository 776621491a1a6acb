//! Every call that a copy makes, failed with every answer at its first, second and last time.

use copyist_engine::{Cause, Errno, Mechanism, Preserve, Request, Side, Unsupported};
use rustix::fs::OFlags;

use crate::bench::{Bench, Shape, Start, drive};
use crate::scheduled::{Call, Op, Outcome, Scheduled, When};

/// Answers that say nothing about the file, the disk or the memory; 524 is the kernel's ENOTSUPP,
/// which leaks from NFS and from some file systems of old kernels.
const REFUSALS: [Errno; 19] = [
    Errno::NOSYS,
    Errno::XDEV,
    Errno::INVAL,
    Errno::OPNOTSUPP,
    Errno::from_raw_os_error(524),
    Errno::PERM,
    Errno::ACCESS,
    Errno::BADF,
    Errno::IO,
    Errno::NOENT,
    Errno::NOTTY,
    Errno::TXTBSY,
    Errno::FBIG,
    Errno::OVERFLOW,
    Errno::INTR,
    Errno::AGAIN,
    Errno::NXIO,
    Errno::ROFS,
    Errno::STALE,
];

/// Answers that the next mechanism would only get again, or that must not be covered up.
const FINAL: [Errno; 6] = [
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::NOMEM,
    Errno::PIPE,
    Errno::CONNRESET,
    Errno::CANCELED,
];

/// What a failed call must come to.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The same bytes.
    Copied,
    /// The same bytes, without this attribute.
    Lost(Preserve),
    Failed(Cause),
}

/// By the call that fails, as a copy without a failure made it.
fn fate(shape: Shape, call: &Call, errno: Errno) -> Fate {
    let side = call.side;
    let failed = Fate::Failed(Cause::Io(side, errno));
    match (call.op, errno) {
        // What a kernel copier answers is about the copier, unless it is one of a few.
        (Op::Clone | Op::CopyRange | Op::SendFile | Op::Seek, _) => {
            if FINAL.contains(&errno) {
                Fate::Failed(Cause::Io(Side::Destination, errno))
            } else {
                Fate::Copied
            }
        }
        // Nothing depends on them.
        (Op::Advise | Op::Lock | Op::IsLocal | Op::Probe, _) => Fate::Copied,
        // What was written is known to be lost only from here; of what was read there is nothing
        // to lose. After an interruption it is closed, and nobody knows.
        (Op::Close, _) if side == Side::Source => Fate::Copied,
        (Op::Close | Op::Rename | Op::RenameExclusive, _) => failed,
        (_, Errno::INTR) => Fate::Copied,
        (Op::Read | Op::Write, Errno::AGAIN) => Fate::Copied,
        (Op::Open, _) => open(call, errno),
        // What was there is gone, so the copy makes a new file.
        (Op::StatAt, Errno::NOENT) => Fate::Copied,
        (Op::SetMode, _) if shape != Shape::Replace => Fate::Lost(Preserve::MODE),
        (Op::SetTimes, _) => Fate::Lost(Preserve::TIMESTAMPS),
        _ => failed,
    }
}

fn open(call: &Call, errno: Errno) -> Fate {
    let unnamed = call.flags.contains(OFlags::TMPFILE);
    let staged = call.flags.contains(OFlags::CREATE) && !call.flags.contains(OFlags::EXCL);
    match errno {
        // A staged file with a name does as well.
        _ if unnamed => Fate::Copied,
        // Somebody's lease, which goes away.
        Errno::AGAIN if !staged => Fate::Copied,
        // Sockets, and FIFOs without a reader.
        Errno::NXIO if !call.flags.contains(OFlags::CREATE) => {
            Fate::Failed(Cause::Unsupported(Unsupported::Kind(call.side)))
        }
        // The file was there a moment ago: the copy looks again.
        Errno::NOENT if call.side == Side::Destination && !call.flags.contains(OFlags::CREATE) => {
            Fate::Copied
        }
        _ => Fate::Failed(Cause::Io(call.side, errno)),
    }
}

/// One combination of the matrix.
struct Case<'a> {
    bench: &'a Bench,
    shape: Shape,
    start: Start,
    preserve: Preserve,
}

impl Case<'_> {
    fn request(&self) -> Request {
        let mut request = self.bench.prepare(self.shape, self.start);
        request.options.preserve = self.preserve;
        request
    }

    /// The calls that it makes when none fails.
    fn rehearse(&self) -> Vec<Call> {
        let sys = self.start.system().shared();
        let summary = drive(&sys.environment(), self.request()).expect("a copy without a failure");
        let what = || format!("{:?} {:?}, undisturbed", self.shape, self.start);
        self.bench.assert_copied(self.shape, &summary, &what);
        sys.calls()
    }

    /// Runs it with one rule and checks what came of it.
    fn run(&self, rehearsal: &[Call], op: Op, when: When, outcome: Outcome, fate: &Fate) {
        let label = format!(
            "{:?} {:?}: {op:?} {when:?} {outcome:?}",
            self.shape, self.start
        );
        let what = || label.clone();
        // A fallback takes two calls where a kernel copier took one.
        let most = 2 * rehearsal.len() + 30;
        let sys = self.start.system().rule(op, when, outcome).at_most(most);
        let sys = sys.shared();
        let answer = drive(&sys.environment(), self.request());
        let calls = sys.calls();
        match (answer, fate) {
            (Ok(summary), Fate::Copied | Fate::Lost(_)) => {
                self.bench.assert_copied(self.shape, &summary, &what);
                let lost = match fate {
                    Fate::Lost(lost) => *lost,
                    _ => Preserve::NONE,
                };
                // A caller's descriptor keeps its mode.
                let theirs = matches!(self.shape, Shape::Descriptor | Shape::Append);
                let theirs = theirs && self.preserve.contains(Preserve::MODE);
                let lost = if theirs { lost | Preserve::MODE } else { lost };
                assert_eq!(summary.lost, lost, "{label}");
                self.assert_synced_after_io_error(&calls, &label);
            }
            (Err(error), Fate::Failed(cause)) => {
                assert_eq!(&error.cause, cause, "{label}");
                self.bench.assert_failed(self.shape, &error.done, &what);
            }
            (answer, fate) => panic!("{label}: {answer:?}, and not {fate:?}"),
        }
    }

    /// A kernel copier that says EIO may have seen what the read and write loop does not: the copy
    /// is on stable storage before it counts.
    fn assert_synced_after_io_error(&self, calls: &[Call], label: &str) {
        let copier = |call: &&Call| matches!(call.op, Op::Clone | Op::CopyRange | Op::SendFile);
        let saw = calls
            .iter()
            .filter(copier)
            .any(|call| call.answer == Err(Errno::IO));
        let synced = calls
            .iter()
            .any(|call| call.op == Op::Sync && call.side == Side::Destination);
        assert_eq!(saw, synced, "{label}");
    }
}

/// The first, second and last of so many.
fn times(count: usize) -> Vec<usize> {
    let mut times = vec![1, 2.min(count), count];
    times.dedup();
    times
}

/// The ops of a rehearsal, each once, with the calls of it.
fn by_op(rehearsal: &[Call]) -> Vec<(Op, Vec<Call>)> {
    let mut ops: Vec<(Op, Vec<Call>)> = Vec::new();
    for call in rehearsal {
        match ops.iter_mut().find(|(op, _)| *op == call.op) {
            Some((_, calls)) => calls.push(*call),
            None => ops.push((call.op, vec![*call])),
        }
    }
    ops
}

/// All errors at all calls, for one mechanism to begin with.
fn all_errors(start: Start) {
    let bench = Bench::new();
    let mut seen = 0;
    for shape in Shape::ALL {
        let case = Case {
            bench: &bench,
            shape,
            start,
            preserve: if shape == Shape::Replace {
                Preserve::TIMESTAMPS
            } else {
                Preserve::MODE | Preserve::TIMESTAMPS
            },
        };
        let rehearsal = case.rehearse();
        for (op, calls) in by_op(&rehearsal) {
            for n in times(calls.len()) {
                for errno in REFUSALS.into_iter().chain(FINAL) {
                    let fate = fate(shape, &calls[n - 1], errno);
                    let outcome = Outcome::Fail(errno);
                    case.run(&rehearsal, op, When::Nth(n), outcome, &fate);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 1000, "only {seen} failures were tried");
}

#[test]
fn a_copy_that_begins_with_a_clone_survives_or_names_every_error() {
    all_errors(Start::Clone);
}

#[test]
fn a_copy_that_begins_with_copy_range_survives_or_names_every_error() {
    all_errors(Start::CopyRange);
}

#[test]
fn a_copy_that_begins_with_sendfile_survives_or_names_every_error() {
    all_errors(Start::SendFile);
}

#[test]
fn a_copy_that_reads_and_writes_survives_or_names_every_error() {
    all_errors(Start::ReadWrite);
}

#[test]
fn a_copier_that_fails_from_some_call_on_costs_no_byte() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in [Start::Clone, Start::CopyRange, Start::SendFile] {
            let case = Case {
                bench: &bench,
                shape,
                start,
                preserve: Preserve::NONE,
            };
            let rehearsal = case.rehearse();
            for (op, calls) in by_op(&rehearsal) {
                if !matches!(op, Op::Clone | Op::CopyRange | Op::SendFile) {
                    continue;
                }
                for n in times(calls.len()) {
                    for errno in REFUSALS {
                        if errno != Errno::INTR {
                            let outcome = Outcome::Fail(errno);
                            case.run(&rehearsal, op, When::From(n), outcome, &Fate::Copied);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_call_that_moves_little_or_nothing_costs_no_byte() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for start in Start::ALL {
            let case = Case {
                bench: &bench,
                shape,
                start,
                preserve: Preserve::NONE,
            };
            let rehearsal = case.rehearse();
            for (op, calls) in by_op(&rehearsal) {
                if !matches!(op, Op::CopyRange | Op::SendFile | Op::Read | Op::Write) {
                    continue;
                }
                for n in times(calls.len()) {
                    for outcome in [
                        Outcome::Nothing,
                        Outcome::Short(1),
                        Outcome::Short(1000),
                        Outcome::Short(4095),
                    ] {
                        // The one call that may say 0 and be believed.
                        if op == Op::Read && matches!(outcome, Outcome::Nothing) {
                            continue;
                        }
                        case.run(&rehearsal, op, When::Nth(n), outcome, &Fate::Copied);
                    }
                }
                if op != Op::Read && op != Op::Write {
                    let outcome = Outcome::Nothing;
                    case.run(&rehearsal, op, When::From(1), outcome, &Fate::Copied);
                    let outcome = Outcome::Nothing;
                    case.run(&rehearsal, op, When::From(2), outcome, &Fate::Copied);
                }
            }
        }
    }
}

#[test]
fn the_whole_ladder_may_break_rung_by_rung() {
    let bench = Bench::new();
    for shape in Shape::ALL {
        for (clone, range, send) in [(1, 1, 1), (1, 2, 1), (1, 2, 2), (1, 3, 2)] {
            let sys = Scheduled::new()
                .rule(Op::Clone, When::From(clone), Outcome::Fail(Errno::PERM))
                .rule(Op::CopyRange, When::From(range), Outcome::Fail(Errno::BADF))
                .rule(Op::SendFile, When::From(send), Outcome::Nothing)
                .shared();
            let request = bench.prepare(shape, Start::CopyRange);
            let summary = drive(&sys.environment(), request).expect("the loop at the end");
            let what = || format!("{shape:?} {clone} {range} {send}");
            bench.assert_copied(shape, &summary, &what);
            let refused: Vec<_> = summary.refused.iter().map(|(m, _)| *m).collect();
            let mut wanted = vec![Mechanism::Clone, Mechanism::CopyRange, Mechanism::SendFile];
            match shape {
                // FICLONE takes whole files.
                Shape::Window => wanted.retain(|m| *m != Mechanism::Clone),
                // sendfile writes at a position that is not the copy's own.
                Shape::Descriptor => wanted.retain(|m| *m != Mechanism::SendFile),
                // No copier appends.
                Shape::Append => wanted.clear(),
                _ => {}
            }
            assert_eq!(refused, wanted, "{shape:?}");
        }
    }
}

#[test]
fn a_mechanism_alone_that_does_not_work_is_an_error_that_says_so() {
    let bench = Bench::new();
    for (only, op) in [
        (Mechanism::Clone, Op::Clone),
        (Mechanism::CopyRange, Op::CopyRange),
        (Mechanism::SendFile, Op::SendFile),
    ] {
        for shape in [Shape::New, Shape::InPlace, Shape::Replace] {
            let sys = Scheduled::new()
                .clones()
                .rule(op, When::From(1), Outcome::Fail(Errno::INVAL))
                .shared();
            let mut request = bench.prepare(shape, Start::CopyRange);
            request.options.tuning.only = Some(only);
            let error = drive(&sys.environment(), request).expect_err("nothing is left to try");
            let wanted = Cause::Unsupported(Unsupported::Mechanism);
            assert_eq!(error.cause, wanted, "{only}");
            assert_eq!(error.done.refused, [(only, Some(Errno::INVAL))]);
            bench.assert_failed(shape, &error.done, &|| format!("{only} {shape:?}"));
        }
    }
}
