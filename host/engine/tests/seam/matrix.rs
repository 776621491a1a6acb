//! Every call that a copy makes, failed with every answer at its first, second and last time.

use std::io::Read;
use std::sync::Arc;

use copyist_engine::sys::Way;
use copyist_engine::{
    Cancel, Cause, Destination, Durability, Errno, Existing, Mechanism, Preserve, Reflink, Request,
    Side, Unsupported, copy_in,
};
use rustix::fs::OFlags;

use crate::bench::{Bench, SIZE, Shape, Start, drive};
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

/// One combination of the matrix.
struct Case<'a> {
    bench: &'a Bench,
    shape: Shape,
    start: Start,
    preserve: Preserve,
    /// Staged files have a name from the start.
    named: bool,
}

impl Case<'_> {
    fn system(&self) -> Scheduled {
        let sys = self.start.system();
        if self.named { sys.names_all() } else { sys }
    }

    fn request(&self) -> Request {
        let mut request = self.bench.prepare(self.shape, self.start);
        request.options.preserve = self.preserve;
        request
    }

    /// By the call that fails, as a copy without a failure made it.
    fn fate(&self, call: &Call, errno: Errno) -> Fate {
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
            (Op::Advise | Op::Lock | Op::Duplicate | Op::IsLocal | Op::Probe, _) => Fate::Copied,
            // What was written is known to be lost only from here; of what was read there is nothing
            // to lose. After an interruption it is closed, and nobody knows.
            (Op::Close, _) if side == Side::Source => Fate::Copied,
            (Op::Close | Op::Rename | Op::RenameExclusive, _) => failed,
            (_, Errno::INTR) => Fate::Copied,
            (Op::Read | Op::Write, Errno::AGAIN) => Fate::Copied,
            (Op::Open, _) => self.open(call, errno),
            // What was there is gone, so the copy makes a new file; or somebody renames what is on the
            // way, and it looks again.
            (Op::StatAt, Errno::NOENT | Errno::AGAIN) => Fate::Copied,
            (Op::SetMode, _) if self.shape != Shape::Replace => Fate::Lost(Preserve::MODE),
            (Op::SetTimes, _) => Fate::Lost(Preserve::TIMESTAMPS),
            _ => failed,
        }
    }

    fn open(&self, call: &Call, errno: Errno) -> Fate {
        let unnamed = call.flags.contains(OFlags::TMPFILE);
        match errno {
            // A staged file with a name does as well.
            _ if unnamed => Fate::Copied,
            // Somebody's lease, which goes away.
            Errno::AGAIN => Fate::Copied,
            // The file was there a moment ago: the copy looks again.
            Errno::NOENT
                if call.side == Side::Destination && !call.flags.contains(OFlags::CREATE) =>
            {
                Fate::Copied
            }
            _ => Fate::Failed(Cause::Io(call.side, errno)),
        }
    }

    /// The calls that it makes when none fails.
    fn rehearse(&self) -> Vec<Call> {
        let sys = self.system().shared();
        let summary = drive(&sys.environment(), self.request()).expect("a copy without a failure");
        let what = || format!("{:?} {:?}, undisturbed", self.shape, self.start);
        self.bench.assert_copied(self.shape, &summary, &what);
        sys.calls()
    }

    /// Runs it with one rule and checks what came of it.
    fn run(&self, rehearsal: &[Call], op: Op, when: When, outcome: Outcome, fate: &Fate) {
        let label = format!(
            "{:?} {:?}, named: {}: {op:?} {when:?} {outcome:?}",
            self.shape, self.start, self.named
        );
        let what = || label.clone();
        // A fallback takes two calls where a kernel copier took one.
        let most = 2 * rehearsal.len() + 30;
        let mut sys = self.system().rule(op, when, outcome).at_most(most);
        if op == Op::Close {
            // A file system that reports at close(2) is none of those that are known not to.
            sys = sys.rule(Op::IsLocal, When::From(1), Outcome::Nothing);
        }
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

    /// Fails every call of the rehearsal with everything, and tells how often.
    fn all_errors(&self) -> usize {
        let rehearsal = self.rehearse();
        let mut tried = 0;
        for (op, calls) in by_op(&rehearsal) {
            for n in times(calls.len()) {
                for errno in REFUSALS.into_iter().chain(FINAL) {
                    let fate = self.fate(&calls[n - 1], errno);
                    self.run(&rehearsal, op, When::Nth(n), Outcome::Fail(errno), &fate);
                    tried += 1;
                }
            }
        }
        tried
    }

    /// A kernel copier that says EIO may have seen what the read and write loop does not: the copy
    /// is on stable storage before it counts.
    fn assert_synced_after_io_error(&self, calls: &[Call], label: &str) {
        let copier =
            |call: &&Call| matches!(call.op, Op::Clone | Op::CopyRange | Op::SendFile | Op::Seek);
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
    let mut tried = 0;
    for shape in Shape::ALL {
        let case = Case {
            bench: &bench,
            shape,
            start,
            // A replaced file's mode is kept unless the source's is.
            preserve: match shape {
                Shape::Replace => Preserve::TIMESTAMPS,
                _ => Preserve::MODE | Preserve::TIMESTAMPS,
            },
            named: false,
        };
        tried += case.all_errors();
        if matches!(shape, Shape::Replace | Shape::ReplaceNothing) {
            tried += Case {
                named: true,
                ..case
            }
            .all_errors();
        }
    }
    assert!(tried > 2000, "only {tried} failures were tried");
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
                named: false,
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
                named: false,
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
fn each_mechanism_alone_copies_all_where_it_works() {
    let bench = Bench::new();
    for only in Mechanism::ALL {
        for shape in Shape::ALL {
            let sys = Scheduled::new().clones().shared();
            let mut request = bench.prepare(shape, Start::CopyRange);
            request.options.tuning.only = Some(only);
            let what = || format!("{only} {shape:?}");
            // As the plan says: what appends is written, a clone is of all, sendfile needs a position
            // of its own, and splice a pipe.
            let works = match shape {
                _ if only == Mechanism::Splice => false,
                Shape::Append => only == Mechanism::ReadWrite,
                Shape::Window => only != Mechanism::Clone,
                Shape::Descriptor => only != Mechanism::SendFile,
                _ => true,
            };
            match drive(&sys.environment(), request) {
                Ok(summary) => {
                    assert!(works, "{}", what());
                    bench.assert_copied(shape, &summary, &what);
                    assert_eq!(summary.method, Some(only));
                    let shared = if only == Mechanism::Clone { SIZE } else { 0 };
                    assert_eq!(summary.shared, shared as u64);
                }
                Err(error) => {
                    assert!(!works, "{}", what());
                    bench.assert_failed(shape, &error.done, &what);
                }
            }
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

#[test]
fn a_required_clone_is_made_or_its_refusal_is_told() {
    let bench = Bench::new();
    for shape in [
        Shape::New,
        Shape::InPlace,
        Shape::Replace,
        Shape::Descriptor,
    ] {
        for errno in REFUSALS.into_iter().chain(FINAL) {
            // EINVAL may mean that the old file is longer: then it is cut, and the clone tried again.
            let when = match errno {
                Errno::INTR => When::Nth(1),
                _ => When::From(1),
            };
            let sys = Scheduled::new()
                .clones()
                .rule(Op::Clone, when, Outcome::Fail(errno))
                .shared();
            let mut request = bench.prepare(shape, Start::Clone);
            request.options.reflink = Reflink::Always;
            let what = || format!("{shape:?} {errno:?}");
            let cause = match errno {
                Errno::INTR => {
                    let summary = drive(&sys.environment(), request).expect("a second try");
                    bench.assert_copied(shape, &summary, &what);
                    continue;
                }
                errno if FINAL.contains(&errno) => Cause::Io(Side::Destination, errno),
                _ => Cause::Unsupported(Unsupported::Clone),
            };
            let error = drive(&sys.environment(), request).expect_err("no clone");
            assert_eq!(error.cause, cause, "{}", what());
            bench.assert_failed(shape, &error.done, &what);
            assert_eq!(sys.calls_of(Op::CopyRange), [], "{}", what());
        }
    }
}

#[test]
fn a_required_attribute_that_is_refused_fails_the_copy() {
    let bench = Bench::new();
    for (attribute, op) in [
        (Preserve::MODE, Op::SetMode),
        (Preserve::TIMESTAMPS, Op::SetTimes),
    ] {
        for shape in [Shape::New, Shape::InPlace, Shape::Replace] {
            for errno in [Errno::PERM, Errno::ROFS, Errno::OPNOTSUPP] {
                let sys = Scheduled::new()
                    .rule(op, When::From(1), Outcome::Fail(errno))
                    .shared();
                let mut request = bench.prepare(shape, Start::CopyRange);
                request.options.require = attribute;
                let error = drive(&sys.environment(), request).expect_err("it is required");
                assert_eq!(error.cause, Cause::Io(Side::Destination, errno));
                bench.assert_failed(shape, &error.done, &|| format!("{shape:?} {op:?}"));
            }
        }
    }
}

/// The name is the point of no return: a directory that cannot be synced is an error, and the file
/// stands there whole.
#[test]
fn a_failure_after_the_name_is_made_takes_nothing_back() {
    let bench = Bench::new();
    for shape in [Shape::New, Shape::Replace, Shape::ReplaceNothing] {
        for op in [Op::Open, Op::Sync] {
            for errno in REFUSALS.into_iter().chain(FINAL) {
                let request = || {
                    let mut request = bench.prepare(shape, Start::CopyRange);
                    request.options.durability = Durability::Each;
                    request
                };
                let sys = Scheduled::new().shared();
                drive(&sys.environment(), request()).expect("a copy without a failure");
                let last = sys.calls_of(op).len();
                let sys = Scheduled::new()
                    .rule(op, When::Nth(last), Outcome::Fail(errno))
                    .shared();
                let answer = drive(&sys.environment(), request());
                let what = || format!("{shape:?} {op:?} {errno:?}");
                // EINVAL: a file system that cannot sync directories promises nothing about names.
                let again = errno == Errno::INTR || (op, errno) == (Op::Open, Errno::AGAIN);
                let passes = again || (op, errno) == (Op::Sync, Errno::INVAL);
                match answer {
                    Ok(summary) => {
                        assert!(passes, "{}", what());
                        bench.assert_copied(shape, &summary, &what);
                    }
                    Err(error) => {
                        assert!(!passes, "{}", what());
                        assert_eq!(error.cause, Cause::Io(Side::Destination, errno));
                        if op == Op::Open {
                            // The directory is opened while all can still be taken back.
                            bench.assert_failed(shape, &error.done, &what);
                        } else {
                            assert!(bench.read("to") == bench.content(), "{}", what());
                            bench.assert_tidy(true, &what);
                        }
                    }
                }
            }
        }
    }
}

/// Only a copy that must not replace anything may find its name taken by somebody who was faster.
#[test]
fn a_name_that_is_said_to_be_taken_where_it_is_to_be_replaced_or_made_already_is_an_error() {
    let bench = Bench::new();
    for (shape, op) in [
        (Shape::Replace, Op::Link),
        (Shape::Replace, Op::Rename),
        (Shape::InPlace, Op::Close),
    ] {
        let sys = Scheduled::new()
            .rule(op, When::From(1), Outcome::Fail(Errno::EXIST))
            .shared();
        let mut request = bench.prepare(shape, Start::CopyRange);
        request.options.existing = Existing::Write;
        let what = || format!("{shape:?} {op:?}");
        let error = drive(&sys.environment(), request).expect_err(&what());
        let cause = Cause::Io(Side::Destination, Errno::EXIST);
        assert_eq!(error.cause, cause, "{}", what());
        bench.assert_failed(shape, &error.done, &what);
    }
}

/// Nor is what close(2) says about a name.
#[test]
fn a_staged_file_that_cannot_be_closed_is_an_error_whatever_close_says() {
    let bench = Bench::new();
    for names_all in [false, true] {
        for errno in [Errno::EXIST, Errno::DQUOT] {
            let mut sys = Scheduled::new()
                .rule(Op::IsLocal, When::From(1), Outcome::Fail(Errno::NOSYS))
                .rule(Op::Close, When::From(1), Outcome::Fail(errno));
            if names_all {
                sys = sys.names_all();
            }
            let request = bench.prepare(Shape::ReplaceNothing, Start::CopyRange);
            let what = || format!("{names_all} {errno:?}");
            let error = drive(&sys.shared().environment(), request).expect_err(&what());
            let told = if errno == Errno::EXIST {
                Errno::IO
            } else {
                errno
            };
            assert_eq!(error.cause, Cause::Io(Side::Destination, told));
            bench.assert_failed(Shape::ReplaceNothing, &error.done, &what);
        }
    }
}

/// That there are none, or can be none, is no loss; any other answer is one, or a failure.
#[test]
fn what_has_no_attributes_loses_none_and_a_refusal_is_a_loss() {
    const NONE: [Errno; 3] = [Errno::NODATA, Errno::OPNOTSUPP, Errno::NOSYS];
    let bench = Bench::new();
    let drive_with = |rules: &[(Op, Errno)], attribute, is_required| {
        let mut sys = Scheduled::new();
        for (op, errno) in rules {
            sys = sys.rule(*op, When::From(1), Outcome::Fail(*errno));
        }
        let mut request = bench.prepare(Shape::New, Start::CopyRange);
        request.options.preserve = attribute;
        if is_required {
            request.options.require = attribute;
        }
        drive(&sys.shared().environment(), request)
    };
    for errno in NONE {
        for (attribute, rules) in [
            (Preserve::XATTRS, vec![(Op::XattrNames, errno)]),
            (
                Preserve::ACLS,
                vec![(Op::Xattr, errno), (Op::RemoveXattr, errno)],
            ),
        ] {
            let summary = drive_with(&rules, attribute, true).unwrap();
            assert_eq!(summary.lost, Preserve::NONE, "{rules:?}");
        }
    }
    for (attribute, rules, side) in [
        (
            Preserve::XATTRS,
            vec![(Op::XattrNames, Errno::PERM)],
            Side::Source,
        ),
        (Preserve::ACLS, vec![(Op::Xattr, Errno::PERM)], Side::Source),
        (
            Preserve::ACLS,
            vec![(Op::Xattr, Errno::NODATA), (Op::RemoveXattr, Errno::PERM)],
            Side::Destination,
        ),
    ] {
        let summary = drive_with(&rules, attribute, false).unwrap();
        assert_eq!(summary.lost, attribute, "{rules:?}");
        let error = drive_with(&rules, attribute, true).unwrap_err();
        assert_eq!(error.cause, Cause::Io(side, Errno::PERM), "{rules:?}");
    }
}

/// A pipe with room for all of it.
#[test]
fn a_stream_that_takes_nothing_is_written_to_once_more_and_not_for_ever() {
    let bench = Bench::of(b"some bytes".to_vec());
    for (when, writes) in [(When::Nth(1), 2), (When::From(1), 2)] {
        let op = Op::WriteStream(Way::Plain);
        let sys = Scheduled::new()
            .rule(op, when, Outcome::Nothing)
            .at_most(100)
            .shared();
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut request = bench.request("to");
        let writer = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        request.destination = Destination::File(Arc::new(writer));
        let answer = copy_in(&sys.environment(), request, &Cancel::new());
        assert_eq!(sys.calls_of(op).len(), writes);
        let mut found = Vec::new();
        reader.read_to_end(&mut found).expect("all of it");
        match (when, answer) {
            (When::Nth(_), Ok(_)) => assert!(found == bench.content()),
            (When::From(_), Err(error)) => {
                assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::IO));
                assert_eq!(found, []);
            }
            (when, answer) => panic!("{when:?}: {answer:?}"),
        }
    }
}
