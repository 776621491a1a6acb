//! What is left when any call of a copy fails, or the copy is cancelled in it: of copies that do all
//! that a copy can do, with attributes, holes, and on stable storage.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, PermissionsExt};

use copyist_bed::skipped;
use copyist_engine::{
    Cancel, Cause, Durability, Errno, Grants, Options, Preserve, Request, Side, Sparse, copy_in,
};
use rustix::fs::{OFlags, XattrFlags};

use crate::bench::{Bench, Shape, Start, drive, noise};
use crate::scheduled::{Call, Op, Outcome, SOURCE, Scheduled, When};

const BLOCK: usize = 4096;

/// A full disk, a full quota, a file that may not grow, a disk that breaks; what a filter or an
/// immutable file says; what a file system says that has it not; and a signal.
const ERRNOS: [Errno; 7] = [
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::FBIG,
    Errno::IO,
    Errno::PERM,
    Errno::OPNOTSUPP,
    Errno::INTR,
];

const ALL: Preserve = Preserve::MODE
    .union(Preserve::TIMESTAMPS)
    .union(Preserve::OWNERSHIP)
    .union(Preserve::XATTRS)
    .union(Preserve::ACLS);
/// What somebody else's open file keeps.
const ACCESS: Preserve = Preserve::MODE
    .union(Preserve::OWNERSHIP)
    .union(Preserve::ACLS);

/// `u::rw-,u:1:r--,g::r--,m::r--,o::---` as the kernel keeps it (linux/posix_acl_xattr.h).
const ACCESS_LIST: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255,
    255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

/// A source with attributes: dense, or with a hole in the middle and one at the end.
fn bench(holes: bool) -> Bench {
    let mut content = noise(5 * BLOCK, 1);
    if holes {
        content[BLOCK..3 * BLOCK].fill(0);
        content[4 * BLOCK..].fill(0);
    }
    let bench = Bench::of(content.clone());
    if holes {
        let source = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(bench.path(SOURCE))
            .expect("the source is there");
        source.set_len(content.len() as u64).expect("a hole");
        for blocks in [0..1, 3..4] {
            let (from, to) = (blocks.start * BLOCK, blocks.end * BLOCK);
            source
                .write_all_at(&content[from..to], from as u64)
                .expect("room");
        }
    }
    for (name, value) in [
        ("user.one", &b"1"[..]),
        ("user.two", &b"2"[..]),
        ("system.posix_acl_access", &ACCESS_LIST[..]),
    ] {
        let path = bench.path(SOURCE);
        if let Err(errno) = rustix::fs::setxattr(path, name, value, XattrFlags::empty()) {
            skipped(&format!("{name}: {errno}"));
        }
    }
    bench
}

/// How a copy does all that it can.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    start: Start,
    sparse: Sparse,
    required: bool,
    /// Staged files have a name from the start.
    named: bool,
    /// Of a file system that may report at close(2).
    remote: bool,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for shape in Shape::ALL {
            for start in Start::ALL {
                let case = Self {
                    shape,
                    start,
                    sparse: Sparse::Auto,
                    required: false,
                    named: false,
                    remote: false,
                };
                cases.push(case);
                let required = Self {
                    required: true,
                    remote: true,
                    ..case
                };
                cases.push(required);
                if matches!(shape, Shape::Replace | Shape::ReplaceNothing) {
                    cases.extend([case, required].map(|case| Self {
                        named: true,
                        ..case
                    }));
                }
                if start == Start::ReadWrite {
                    let sparse = [Sparse::Always, Sparse::Never];
                    cases.extend(sparse.map(|sparse| Self { sparse, ..case }));
                }
            }
        }
        cases
    }

    fn is_theirs(self) -> bool {
        matches!(self.shape, Shape::Descriptor | Shape::Append)
    }

    fn system(self) -> Scheduled {
        let sys = self.start.system();
        let sys = if self.named { sys.names_all() } else { sys };
        if self.remote {
            sys.rule(Op::IsLocal, When::From(1), Outcome::Nothing)
        } else {
            sys
        }
    }

    fn request(self, bench: &Bench) -> Request {
        let mut request = bench.prepare(self.shape, self.start);
        request.options = Options {
            sparse: self.sparse,
            durability: Durability::Each,
            preserve: ALL,
            require: match (self.required, self.is_theirs()) {
                (false, _) => Preserve::NONE,
                (true, false) => ALL,
                (true, true) => ALL - ACCESS,
            },
            grants: Grants {
                ownership: true,
                ..Grants::default()
            },
            ..request.options
        };
        request
    }

    /// What is lost if nothing fails.
    fn lost(self) -> Preserve {
        if self.is_theirs() {
            ACCESS
        } else {
            Preserve::NONE
        }
    }

    /// The calls that it makes when none fails, each with how many of its kind it makes up to there.
    fn rehearse(self, bench: &Bench) -> Vec<(Call, usize)> {
        let sys = self.system().shared();
        let summary =
            drive(&sys.environment(), self.request(bench)).expect("a copy without a failure");
        bench.assert_copied(self.shape, &summary, &|| format!("{self:?}"));
        assert_eq!(summary.lost, self.lost(), "{self:?}");
        let mut calls: Vec<(Call, usize)> = Vec::new();
        for call in sys.calls() {
            let earlier = calls.iter().filter(|(made, _)| made.op == call.op);
            let count = 1 + earlier.count();
            calls.push((call, count));
        }
        // The case itself says what this one answers.
        calls.retain(|(call, _)| !(self.remote && call.op == Op::IsLocal));
        calls
    }

    /// Fails one call. What is left must be what the options promise, and no failure may be kept
    /// from the caller that costs what was asked for.
    fn fail(self, bench: &Bench, call: Call, count: usize, errno: Errno) {
        // Where the file system is known to have nothing to report.
        if call.op == Op::Close && !self.remote {
            return;
        }
        let label = format!("{self:?}: {:?} {count} {errno:?}", call.op);
        let what = || label.clone();
        let sys = self
            .system()
            .rule(call.op, When::Nth(count), Outcome::Fail(errno))
            .at_most(400)
            .shared();
        let answer = drive(&sys.environment(), self.request(bench));
        sys.calls();
        let of_directory = call.flags.contains(OFlags::DIRECTORY);
        match answer {
            Ok(summary) => {
                bench.assert_copied(self.shape, &summary, &what);
                let lost = summary.lost - self.lost();
                let allowed = if errno == Errno::INTR || self.required {
                    Preserve::NONE
                } else {
                    attributes(call.op)
                };
                assert!(allowed.contains(lost), "{label}: {lost:?} is lost");
                let must_fail = match call.op {
                    // A file system that cannot sync a directory (EINVAL) is none of these.
                    Op::Sync => errno != Errno::INTR,
                    Op::Link | Op::Write | Op::Truncate => errno != Errno::INTR,
                    Op::Rename | Op::RenameExclusive => true,
                    _ => false,
                };
                assert!(!must_fail, "{label}: it is kept from the caller");
            }
            Err(error) => {
                let Cause::Io(_, told) = error.cause else {
                    panic!("{label}: {error:?}");
                };
                assert_eq!(told, errno, "{label}");
                if errno == Errno::INTR {
                    // Only of what cannot be done twice.
                    let once = [Op::Close, Op::Rename, Op::RenameExclusive];
                    assert!(once.contains(&call.op), "{label}");
                }
                if (call.op, of_directory) == (Op::Sync, true) {
                    // It has its name, which is no longer to be taken back.
                    assert!(bench.read("to") == bench.wanted(self.shape), "{label}");
                    bench.assert_tidy(true, &what);
                } else {
                    bench.assert_failed(self.shape, &error.done, &what);
                }
            }
        }
    }

    /// Cancels it in one call.
    fn cancel(self, bench: &Bench, call: Call, count: usize) -> bool {
        let label = format!("{self:?}: cancelled in {:?} {count}", call.op);
        let what = || label.clone();
        let cancel = Cancel::new();
        let canceller = cancel.clone();
        let outcome = Outcome::after(move || canceller.cancel());
        let sys = self
            .system()
            .rule(call.op, When::Nth(count), outcome)
            .shared();
        match copy_in(&sys.environment(), self.request(bench), &cancel) {
            Ok(summary) => {
                bench.assert_copied(self.shape, &summary, &what);
                false
            }
            Err(error) => {
                assert_eq!(error.cause, Cause::Cancelled, "{label}");
                bench.assert_failed(self.shape, &error.done, &what);
                true
            }
        }
    }
}

/// What a failure of this call may cost.
fn attributes(op: Op) -> Preserve {
    match op {
        Op::SetMode => Preserve::MODE,
        Op::SetOwner => Preserve::OWNERSHIP,
        Op::SetTimes => Preserve::TIMESTAMPS,
        Op::XattrNames | Op::Xattr | Op::SetXattr | Op::RemoveXattr => {
            Preserve::XATTRS | Preserve::ACLS
        }
        _ => Preserve::NONE,
    }
}

#[test]
fn whatever_call_fails_what_is_left_is_what_was_promised() {
    let mut tried = Vec::new();
    for holes in [false, true] {
        let bench = bench(holes);
        for case in Case::all() {
            for (call, count) in case.rehearse(&bench) {
                for errno in ERRNOS {
                    case.fail(&bench, call, count, errno);
                }
                if !tried.contains(&call.op) {
                    tried.push(call.op);
                }
            }
        }
    }
    // All that a copy may call, but what it asks only after a refusal.
    for op in [
        Op::Open,
        Op::Close,
        Op::Stat,
        Op::IsLocal,
        Op::StatAt,
        Op::StatusFlags,
        Op::Clone,
        Op::CopyRange,
        Op::SendFile,
        Op::Seek,
        Op::SeekData,
        Op::SeekHole,
        Op::PunchHole,
        Op::Read,
        Op::Write,
        Op::Truncate,
        Op::SetMode,
        Op::SetTimes,
        Op::SetOwner,
        Op::XattrNames,
        Op::Xattr,
        Op::SetXattr,
        Op::Advise,
        Op::Sync,
        Op::Lock,
        Op::Duplicate,
        Op::Link,
        Op::Rename,
        Op::RenameExclusive,
    ] {
        assert!(tried.contains(&op), "no copy came to {op:?}: {tried:?}");
    }
}

#[test]
fn in_whatever_call_it_is_cancelled_what_is_left_is_what_was_promised() {
    for holes in [false, true] {
        let bench = bench(holes);
        for case in Case::all() {
            let calls = case.rehearse(&bench);
            let cancelled = calls
                .iter()
                .map(|(call, count)| case.cancel(&bench, *call, *count))
                .collect::<Vec<_>>();
            // First it is heard, and from the point of no return on it is not.
            let heard = cancelled.iter().take_while(|heard| **heard).count();
            assert!(heard > 5, "{case:?}: {heard}");
            assert!(
                !cancelled[heard..].contains(&true),
                "{case:?}: {cancelled:?}"
            );
            let published = |(call, _): &(Call, usize)| {
                matches!(call.op, Op::Link | Op::Rename | Op::RenameExclusive)
                    || (call.op, call.side) == (Op::Close, Side::Destination)
            };
            if let Some(published) = calls.iter().position(published) {
                assert!(heard <= published, "{case:?}: {heard} of {published}");
            }
        }
    }
}

/// copy_file_range(2) of Linux 5.3 to 5.18 copies between file systems: that the source's has nothing
/// to report at close(2) says nothing of the destination's.
#[test]
fn what_only_close_reports_costs_no_old_file_where_the_kernel_copied_to_another_device() {
    let bench = bench(false);
    for shape in [Shape::Replace, Shape::ReplaceNothing] {
        for named in [false, true] {
            let sys = Scheduled::new().forge(|side, info| {
                if side == Side::Source {
                    info.device += 1;
                }
            });
            let sys = if named { sys.names_all() } else { sys };
            // It is asked of the source first.
            let sys = sys
                .rule(Op::IsLocal, When::From(2), Outcome::Nothing)
                .rule(Op::Close, When::Nth(1), Outcome::Fail(Errno::DQUOT))
                .shared();
            let request = bench.prepare(shape, Start::CopyRange);
            let error = drive(&sys.environment(), request).unwrap_err();
            let what = || format!("{shape:?}, named: {named}");
            assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::DQUOT));
            // (A new file that has its name by then stays: nobody had looked which one it is.)
            if shape == Shape::Replace || named {
                bench.assert_failed(shape, &error.done, &what);
            }
        }
    }
}

/// Nothing says that both lie on one file system where no call was made that needs it.
#[test]
fn what_only_close_reports_leaves_no_new_file_where_other_calls_moved_the_bytes_or_none_did() {
    for (content, start) in [
        (noise(5 * BLOCK, 1), Start::SendFile),
        (noise(5 * BLOCK, 1), Start::ReadWrite),
        (Vec::new(), Start::CopyRange),
    ] {
        let bench = Bench::of(content);
        let sys = Scheduled::new()
            .rule(Op::Close, When::Nth(1), Outcome::Fail(Errno::DQUOT))
            .shared();
        let request = bench.prepare(Shape::New, start);
        let error = drive(&sys.environment(), request).unwrap_err();
        assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::DQUOT));
        bench.assert_failed(Shape::New, &error.done, &|| format!("{start:?}"));
    }
}

/// A new file that its own mode keeps from getting attributes may be written for a moment; whatever
/// else refuses them, and whatever was there before, keeps its mode.
#[test]
fn only_a_new_file_without_the_right_to_write_gets_it_for_a_moment() {
    let bench = bench(false);
    if rustix::fs::getxattr(bench.path(SOURCE), "user.one", &mut [0; 8]).is_err() {
        skipped("this file system has no attributes of users");
        return;
    }
    for (shape, mode, errno, changes) in [
        (Shape::New, 0o400, Errno::PERM, 2),
        (Shape::New, 0o400, Errno::ACCESS, 2),
        (Shape::ReplaceNothing, 0o400, Errno::PERM, 2),
        (Shape::New, 0o600, Errno::PERM, 0),
        (Shape::New, 0o400, Errno::OPNOTSUPP, 0),
        (Shape::Descriptor, 0o400, Errno::PERM, 0),
    ] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(bench.path(SOURCE), permissions.clone()).unwrap();
        let sys = Scheduled::new()
            .rule(Op::SetXattr, When::Nth(1), Outcome::Fail(errno))
            .shared();
        let mut request = bench.prepare(shape, Start::CopyRange);
        if shape.is_old() {
            std::fs::set_permissions(bench.path("to"), permissions).unwrap();
        }
        request.options.preserve = Preserve::XATTRS;
        let summary = drive(&sys.environment(), request).unwrap();
        let what = || format!("{shape:?} {mode:o} {errno:?}");
        bench.assert_copied(shape, &summary, &what);
        assert_eq!(sys.calls_of(Op::SetMode).len(), changes, "{}", what());
        assert_eq!(summary.lost.is_empty(), changes > 0, "{}", what());
        let made = std::fs::metadata(bench.path("to")).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, mode, "{}", what());
    }
}

/// Who will not have another group is not kept from it meanwhile.
#[test]
fn an_old_file_with_the_mode_of_the_source_is_not_narrowed() {
    let bench = bench(false);
    for (preserve, ownership) in [
        (Preserve::MODE, true),
        (Preserve::MODE | Preserve::OWNERSHIP, false),
    ] {
        let sys = Scheduled::new().shared();
        let mut request = bench.prepare(Shape::InPlace, Start::CopyRange);
        for name in [SOURCE, "to"] {
            let permissions = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(bench.path(name), permissions).unwrap();
        }
        request.options.preserve = preserve;
        request.options.grants.ownership = ownership;
        drive(&sys.environment(), request).unwrap();
        assert_eq!(sys.calls_of(Op::SetMode).len(), 1, "{preserve:?}");
    }
}
