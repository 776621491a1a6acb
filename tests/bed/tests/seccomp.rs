//! The filters deny what they say, and nothing else.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use copyist_bed::seccomp::{Denied, ERRNOS, SystemCall, run_denied};
use rustix::fs::{
    Advice, AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, ResolveFlags, StatxFlags,
};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendFlags};

use super::{copy_range, splice};

/// Makes the call so that it succeeds, or fails with what no filter answers.
fn call(call: SystemCall) -> Result<(), Errno> {
    let zero = File::open("/proc/self/exe").unwrap();
    match call {
        SystemCall::CopyFileRange => copy_range(&zero, &zero, 0, 1).map(drop),
        SystemCall::Sendfile => rustix::fs::sendfile(&zero, &zero, None, 1).map(drop),
        SystemCall::Splice => splice(&zero),
        SystemCall::Ficlone => rustix::fs::ioctl_ficlone(&zero, &zero),
        SystemCall::Statx => {
            rustix::fs::statx(CWD, "/proc", AtFlags::empty(), StatxFlags::TYPE).map(drop)
        }
        SystemCall::Openat2 => {
            let (flags, mode) = (OFlags::PATH, Mode::empty());
            rustix::fs::openat2(CWD, "/proc", flags, mode, ResolveFlags::empty()).map(drop)
        }
        SystemCall::Fadvise64 => rustix::fs::fadvise(&zero, 0, None, Advice::Sequential),
        SystemCall::Preadv2 => {
            let mut buffer = [0];
            let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
            rustix::io::preadv2(&zero, &mut slices, 0, ReadWriteFlags::empty()).map(drop)
        }
        SystemCall::Pwritev2 => {
            let slices = [std::io::IoSlice::new(b"x")];
            rustix::io::pwritev2(&zero, &slices, 0, ReadWriteFlags::empty()).map(drop)
        }
        SystemCall::Fallocate => rustix::fs::fallocate(&zero, FallocateFlags::empty(), 0, 1),
        SystemCall::Renameat2 => {
            let both = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(CWD, "/proc", CWD, "/proc", both)
        }
        SystemCall::Sendto => rustix::net::send(&zero, b"x", SendFlags::empty()).map(drop),
        SystemCall::Recvfrom => {
            rustix::net::recv(&zero, &mut [0], RecvFlags::empty()).map(|(_, _)| ())
        }
        SystemCall::Isatty => rustix::termios::tcgetwinsize(&zero).map(drop),
    }
}

fn all(errno: Errno) -> Vec<Denied> {
    SystemCall::ALL.map(|call| Denied { call, errno }).into()
}

#[test]
fn a_call_that_is_denied_answers_so_and_no_other_does() {
    for errno in ERRNOS {
        for denied in SystemCall::ALL {
            let profile = [Denied {
                call: denied,
                errno,
            }];
            let ran = run_denied(&profile, || {
                for other in SystemCall::ALL {
                    let answer = call(other);
                    let is_denied = answer == Err(errno);
                    assert_eq!(
                        is_denied,
                        other == denied,
                        "{other:?} of {denied:?}: {answer:?}"
                    );
                }
            });
            if ran.is_none() {
                return;
            }
        }
    }
}

#[test]
fn without_a_filter_nothing_is_denied() {
    for made in SystemCall::ALL {
        let answer = call(made);
        assert!(
            matches!(
                answer,
                Ok(())
                    | Err(Errno::INVAL
                        | Errno::BADF
                        | Errno::OPNOTSUPP
                        | Errno::NOTSOCK
                        | Errno::NOTTY)
            ),
            "{made:?}: {answer:?}"
        );
    }
}

#[test]
fn a_profile_denies_many_calls_to_all_threads_that_come_of_it() {
    run_denied(&all(Errno::PERM), || {
        let thread = std::thread::spawn(|| SystemCall::ALL.map(call));
        let answers = thread.join().unwrap();
        assert!(
            answers.iter().all(|answer| *answer == Err(Errno::PERM)),
            "{answers:?}"
        );
    });
    assert_ne!(
        call(SystemCall::Openat2),
        Err(Errno::PERM),
        "the caller is free"
    );
}

#[test]
fn what_the_closure_comes_to_is_handed_on() {
    let Some(seven) = run_denied(&[], || 7) else {
        return;
    };
    assert_eq!(seven, 7);
    let panicked = AssertUnwindSafe(|| run_denied(&[], || panic!("as a test that fails")));
    assert!(catch_unwind(panicked).is_err());
}
