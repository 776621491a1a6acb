//! Calls that are not answered.

use std::thread;

use copyist_bed::faults::{self, Rule};
use copyist_bed::{Bed, Call};
use rustix::io::Errno;

use super::{copy_range, open, open_to_write, pattern};

type Probe = fn(&Bed) -> Result<(), Errno>;

fn read(bed: &Bed) -> Result<(), Errno> {
    let mut bytes = vec![0; 1000];
    assert_eq!(rustix::io::pread(open(bed, "it"), &mut bytes, 0)?, 1000);
    assert_eq!(bytes, pattern(1000));
    Ok(())
}

fn write(bed: &Bed) -> Result<(), Errno> {
    rustix::io::pwrite(open_to_write(bed, "it"), b"x", 0).map(drop)
}

fn copy_from(bed: &Bed) -> Result<(), Errno> {
    copy_range(&open(bed, "it"), &open_to_write(bed, "to"), 0, 1000)?;
    assert_eq!(bed.content("to"), pattern(1000));
    Ok(())
}

fn copy_to(bed: &Bed) -> Result<(), Errno> {
    copy_range(&open(bed, "other"), &open_to_write(bed, "it"), 0, 1000).map(drop)
}

fn sync(bed: &Bed) -> Result<(), Errno> {
    rustix::fs::fsync(open(bed, "it"))
}

fn close(bed: &Bed) -> Result<(), Errno> {
    super::close(open(bed, "it"))
}

fn open_it(bed: &Bed) -> Result<(), Errno> {
    open(bed, "it");
    Ok(())
}

#[test]
fn what_hangs_is_waited_for_and_released() {
    if Bed::mount().is_none() {
        return;
    }
    let table: [(&[Rule], Call, Probe); 8] = [
        (faults::READ_HANGS, Call::Read, read),
        (faults::COPY_HANGS, Call::Read, read),
        (faults::COPY_HANGS, Call::CopyRange, copy_from),
        (faults::WRITE_HANGS, Call::Write, write),
        (faults::WRITE_HANGS, Call::CopyRange, copy_to),
        (faults::SYNC_HANGS, Call::Sync, sync),
        (faults::CLOSE_HANGS, Call::Flush, close),
        (faults::OPEN_HANGS, Call::Open, open_it),
    ];
    for (rules, call, probe) in table {
        let bed = Bed::mount().unwrap();
        bed.add("other", faults::GOOD, pattern(1000));
        bed.add("it", faults::GOOD, pattern(1000));
        probe(&bed).unwrap();
        bed.obey("it", rules);
        let before = bed.calls_of("it", call);
        thread::scope(|scope| {
            let caller = scope.spawn(|| probe(&bed).unwrap());
            bed.wait_for_hang("it");
            assert_eq!(bed.calls_of("it", call), before + 1);
            assert_eq!(bed.hanging("it"), 1);
            assert!(!caller.is_finished());
            // Nobody else waits.
            assert_eq!(
                std::fs::read(bed.path().join("other")).unwrap(),
                pattern(1000)
            );
            bed.release("it");
            caller.join().unwrap();
        });
        assert_eq!(bed.hanging("it"), 0);
        probe(&bed).unwrap();
    }
}

#[test]
fn every_fault_that_hangs_has_a_proof() {
    let hanging = |rules: &&(_, &[Rule])| rules.1.iter().any(|rule| matches!(rule, Rule::Hangs(_)));
    let named: Vec<_> = faults::ALL
        .iter()
        .filter(hanging)
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(
        named,
        [
            "READ_HANGS",
            "COPY_HANGS",
            "WRITE_HANGS",
            "SYNC_HANGS",
            "CLOSE_HANGS",
            "OPEN_HANGS"
        ]
    );
}

#[test]
fn only_the_named_file_is_released() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::READ_HANGS, pattern(1000));
    bed.add("other", faults::READ_HANGS, pattern(1000));
    thread::scope(|scope| {
        let it = scope.spawn(|| read(&bed).unwrap());
        let other = scope.spawn(|| std::fs::read(bed.path().join("other")).unwrap());
        bed.wait_for_hang("it");
        bed.wait_for_hang("other");
        bed.release("it");
        it.join().unwrap();
        assert_eq!(bed.hanging("other"), 1);
        assert!(!other.is_finished());
        bed.release("other");
        assert_eq!(other.join().unwrap(), pattern(1000));
    });
}

#[test]
fn a_bed_that_goes_answers_what_hangs() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::READ_HANGS, pattern(1000));
    let file = open(&bed, "it");
    let reader = thread::spawn(move || rustix::io::pread(file, &mut [0; 10], 0));
    bed.wait_for_hang("it");
    drop(bed);
    assert_eq!(reader.join().unwrap(), Ok(10));
}
