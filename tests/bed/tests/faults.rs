//! Every fault of the table but those that hang.

use std::os::unix::fs::MetadataExt;

use copyist_bed::faults::{self, Rule};
use copyist_bed::{Bed, Call};
use rustix::fs::{AtFlags, FallocateFlags, Mode, SeekFrom, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::{copy_range, open, open_to_write, pattern};

/// What a call answers: a count, a length or an offset, in most cases.
type Answer = Result<u64, Errno>;
/// Something to do with the file `it`, which has `LENGTH` bytes.
type Probe = fn(&Bed) -> Answer;

const LENGTH: usize = 100_000;
const LEN: u64 = LENGTH as u64;

fn stat(bed: &Bed) -> Answer {
    let name = bed.path().join("it");
    Ok(rustix::fs::stat(&name)?.st_size.cast_unsigned())
}

/// All that reads give, whatever stat(2) says.
fn read_all(bed: &Bed) -> Answer {
    let file = open(bed, "it");
    let mut buffer = vec![0; 32 << 10];
    let mut all = 0;
    loop {
        match rustix::io::pread(&file, &mut buffer, all)? as u64 {
            0 => return Ok(all),
            read => all += read,
        }
    }
}

fn read_once(bed: &Bed) -> Answer {
    Ok(rustix::io::pread(open(bed, "it"), &mut [0; 50_000], 0)? as u64)
}

fn read_at_64k(bed: &Bed) -> Answer {
    Ok(rustix::io::pread(open(bed, "it"), &mut [0; 100], 64 << 10)? as u64)
}

/// The length that was stated after everything was read once.
fn read_and_stat(bed: &Bed) -> Answer {
    read_all(bed)?;
    stat(bed)
}

/// How many times reading does not give anything before it gives all.
fn failed_reads(bed: &Bed) -> Answer {
    let file = open(bed, "it");
    let mut failed = 0;
    while rustix::io::pread(&file, &mut [0; LENGTH], 0) != Ok(LENGTH) {
        failed += 1;
    }
    Ok(failed)
}

fn failed_writes(bed: &Bed) -> Answer {
    let file = open_to_write(bed, "it");
    let mut failed = 0;
    while rustix::io::pwrite(&file, &[1; 1000], 0) != Ok(1000) {
        failed += 1;
    }
    Ok(failed)
}

fn write_once(bed: &Bed) -> Answer {
    Ok(rustix::io::pwrite(open_to_write(bed, "it"), &[1; 50_000], 0)? as u64)
}

/// 2 MiB in one call.
fn write_2m(bed: &Bed) -> Answer {
    let bytes = vec![1; 2 << 20];
    Ok(rustix::io::pwrite(open_to_write(bed, "it"), &bytes, 0)? as u64)
}

fn write_at_1m(bed: &Bed) -> Answer {
    Ok(rustix::io::pwrite(open_to_write(bed, "it"), &[1; 10], 1 << 20)? as u64)
}

/// Likewise, as the destination of the kernel's own copies.
fn copy_to_1m(bed: &Bed) -> Answer {
    bed.add("source", faults::GOOD, pattern((1 << 20) + 10));
    let (from, to) = (open(bed, "source"), open_to_write(bed, "it"));
    Ok(copy_range(&from, &to, 1 << 20, 10)? as u64)
}

fn close(bed: &Bed) -> Answer {
    let file = open_to_write(bed, "it");
    rustix::io::pwrite(&file, b"x", 0)?;
    super::close(file)?;
    Ok(0)
}

fn sync(bed: &Bed) -> Answer {
    rustix::fs::fsync(open_to_write(bed, "it"))?;
    Ok(0)
}

fn copy_once(bed: &Bed) -> Answer {
    let (from, to) = (open(bed, "it"), open_to_write(bed, "to"));
    Ok(copy_range(&from, &to, 0, 10_000)? as u64)
}

fn copy_at_4k(bed: &Bed) -> Answer {
    let (from, to) = (open(bed, "it"), open_to_write(bed, "to"));
    Ok(copy_range(&from, &to, 4096, 5000)? as u64)
}

fn copy_at_64k(bed: &Bed) -> Answer {
    let (from, to) = (open(bed, "it"), open_to_write(bed, "to"));
    Ok(copy_range(&from, &to, 64 << 10, 100)? as u64)
}

/// How many times it does not copy before it does.
fn failed_copies(bed: &Bed) -> Answer {
    let (from, to) = (open(bed, "it"), open_to_write(bed, "to"));
    let mut failed = 0;
    while copy_range(&from, &to, 0, LENGTH) != Ok(LENGTH) {
        failed += 1;
    }
    Ok(failed)
}

/// Whether the bed copies, and not the kernel by reads and writes: by how often it reads.
fn reads_of_a_copy(bed: &Bed) -> Answer {
    assert_eq!(copy_once(bed), Ok(10_000));
    assert_eq!(bed.content("to"), pattern(10_000));
    Ok(bed.calls_of("it", Call::Read).min(1))
}

fn truncate(bed: &Bed) -> Answer {
    rustix::fs::ftruncate(open_to_write(bed, "it"), 10)?;
    stat(bed)
}

fn chmod(bed: &Bed) -> Answer {
    rustix::fs::fchmod(open(bed, "it"), Mode::from_raw_mode(0o640))?;
    Ok((open(bed, "it").metadata().unwrap().mode() & 0o777).into())
}

fn chown(bed: &Bed) -> Answer {
    let user = rustix::fs::Uid::from_raw(7);
    rustix::fs::fchown(open(bed, "it"), Some(user), None)?;
    Ok(open(bed, "it").metadata().unwrap().uid().into())
}

fn set_times(bed: &Bed) -> Answer {
    let time = Timespec {
        tv_sec: 99,
        tv_nsec: 1,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(open(bed, "it"), &times)?;
    Ok(open(bed, "it").metadata().unwrap().mtime().cast_unsigned())
}

fn set_attribute(bed: &Bed) -> Answer {
    let file = open(bed, "it");
    rustix::fs::fsetxattr(&file, "user.k", b"value", XattrFlags::CREATE)?;
    Ok(rustix::fs::fgetxattr(&file, "user.k", &mut [0; 10])? as u64)
}

fn allocate(bed: &Bed) -> Answer {
    let file = open_to_write(bed, "it");
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 2 * LEN)?;
    stat(bed)
}

fn link(bed: &Bed) -> Answer {
    let root = bed.root();
    rustix::fs::linkat(&root, "it", &root, "other", AtFlags::empty())?;
    Ok(open(bed, "other").metadata().unwrap().nlink())
}

fn rename(bed: &Bed) -> Answer {
    let root = bed.root();
    rustix::fs::renameat(&root, "it", &root, "other")?;
    Ok(bed.names().len() as u64)
}

fn open_once(bed: &Bed) -> Answer {
    let path = bed.path().join("it");
    rustix::fs::open(&path, rustix::fs::OFlags::RDONLY, Mode::empty())?;
    Ok(0)
}

fn seek_data(bed: &Bed) -> Answer {
    rustix::fs::seek(open(bed, "it"), SeekFrom::Data(50_000))
}

fn seek_hole(bed: &Bed) -> Answer {
    rustix::fs::seek(open(bed, "it"), SeekFrom::Hole(50_000))
}

fn blocks(bed: &Bed) -> Answer {
    Ok(open(bed, "it").metadata().unwrap().blocks())
}

fn blocks_with_a_hole(bed: &Bed) -> Answer {
    let file = open_to_write(bed, "it");
    rustix::io::pwrite(&file, &[0; 40 << 10], 0)?;
    Ok(file.metadata().unwrap().blocks())
}

/// A fault, what shows it, the answer with it, the answer without it.
type Row = (&'static [Rule], Probe, Answer, Answer);

fn refused(rules: &'static [Rule], errno: Errno) -> Row {
    (rules, copy_once, Err(errno), Ok(10_000))
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use faults::*;
    vec![
        (ZERO, stat, Ok(0), Ok(LEN)),
        (LARGER, stat, Ok(LEN + 4096), Ok(LEN)),
        (PAST_SIZE, stat, Ok(LEN - 1000), Ok(LEN)),
        (EIO_AT_64K, read_at_64k, Err(Errno::IO), Ok(100)),
        (EIO_AT_64K, read_all, Err(Errno::IO), Ok(LEN)),
        (EIO_AT_64K, copy_at_64k, Err(Errno::IO), Ok(100)),
        (ENOSPC_AT_1M, write_2m, Ok(1 << 20), Ok(2 << 20)),
        (ENOSPC_AT_1M, write_at_1m, Err(Errno::NOSPC), Ok(10)),
        (ENOSPC_AT_1M, copy_to_1m, Err(Errno::NOSPC), Ok(10)),
        (EDQUOT_AT_CLOSE, close, Err(Errno::DQUOT), Ok(0)),
        (EIO_AT_SYNC, sync, Err(Errno::IO), Ok(0)),
        (READS_ONE_BYTE, read_once, Ok(1), Ok(50_000)),
        (READS_4K, read_once, Ok(4096), Ok(50_000)),
        (WRITES_ONE_BYTE, write_once, Ok(1), Ok(50_000)),
        (WRITES_4K, write_once, Ok(4096), Ok(50_000)),
        (WRITES_NOTHING, write_once, Ok(0), Ok(50_000)),
        (COPY_RANGE_EINVAL_AT_4K, copy_once, Ok(4096), Ok(10_000)),
        (COPY_RANGE_EINVAL_AT_4K, copy_at_4k, Err(Errno::INVAL), Ok(5000)),
        (COPY_RANGE_ZERO, copy_once, Ok(0), Ok(10_000)),
        (COPY_RANGE_ONE_BYTE, copy_once, Ok(1), Ok(10_000)),
        (COPY_RANGE_4K, copy_once, Ok(4096), Ok(10_000)),
        (COPY_RANGE_ENOSYS, reads_of_a_copy, Ok(1), Ok(0)),
        (COPY_RANGE_EXDEV, reads_of_a_copy, Ok(1), Ok(0)),
        (COPY_RANGE_EOPNOTSUPP, reads_of_a_copy, Ok(1), Ok(0)),
        refused(COPY_RANGE_EINVAL, Errno::INVAL),
        refused(COPY_RANGE_EPERM, Errno::PERM),
        refused(COPY_RANGE_EACCES, Errno::ACCESS),
        refused(COPY_RANGE_EBADF, Errno::BADF),
        refused(COPY_RANGE_EIO, Errno::IO),
        refused(COPY_RANGE_ENOENT, Errno::NOENT),
        refused(COPY_RANGE_ENOTTY, Errno::NOTTY),
        refused(COPY_RANGE_ETXTBSY, Errno::TXTBSY),
        refused(COPY_RANGE_EFBIG, Errno::FBIG),
        refused(COPY_RANGE_EOVERFLOW, Errno::OVERFLOW),
        refused(COPY_RANGE_EAGAIN_ONCE, Errno::AGAIN),
        (COPY_RANGE_EAGAIN_ONCE, failed_copies, Ok(1), Ok(0)),
        refused(COPY_RANGE_EINTR, Errno::INTR),
        (COPY_RANGE_EINTR, failed_copies, Ok(3), Ok(0)),
        (TRUNCATE_REFUSED, truncate, Err(Errno::PERM), Ok(10)),
        (CHMOD_REFUSED, chmod, Err(Errno::PERM), Ok(0o640)),
        (CHOWN_REFUSED, chown, Err(Errno::PERM), Ok(7)),
        (TIMES_REFUSED, set_times, Err(Errno::PERM), Ok(99)),
        (ATTRIBUTES_REFUSED, set_attribute, Err(Errno::OPNOTSUPP), Ok(5)),
        (ATTRIBUTES_FULL, set_attribute, Err(Errno::NOSPC), Ok(5)),
        (ALLOCATE_REFUSED, allocate, Err(Errno::OPNOTSUPP), Ok(2 * LEN)),
        (LINK_REFUSED, link, Err(Errno::PERM), Ok(2)),
        (RENAME_REFUSED, rename, Err(Errno::IO), Ok(1)),
        (OPEN_EIO, open_once, Err(Errno::IO), Ok(0)),
        (STAT_EIO, stat, Err(Errno::IO), Ok(LEN)),
        (SHRINKS, read_all, Ok(32 << 10), Ok(LEN)),
        (SHRINKS, read_and_stat, Ok(4096), Ok(LEN)),
        (EMPTIES, read_and_stat, Ok(0), Ok(LEN)),
        (GROWS, read_all, Ok(LEN + 10_000), Ok(LEN)),
        (READ_EAGAIN_ONCE, read_once, Err(Errno::AGAIN), Ok(50_000)),
        (READ_EAGAIN_ONCE, failed_reads, Ok(1), Ok(0)),
        (WRITE_EAGAIN_ONCE, write_once, Err(Errno::AGAIN), Ok(50_000)),
        (WRITE_EAGAIN_ONCE, failed_writes, Ok(1), Ok(0)),
        (READ_EINTR, read_once, Err(Errno::INTR), Ok(50_000)),
        (READ_EINTR, failed_reads, Ok(100), Ok(0)),
        (WRITE_EINTR, write_once, Err(Errno::INTR), Ok(50_000)),
        (WRITE_EINTR, failed_writes, Ok(100), Ok(0)),
        (OPEN_EINTR_ONCE, open_once, Err(Errno::INTR), Ok(0)),
        (HOLES, blocks_with_a_hole, Ok(15 * 8), Ok(25 * 8)),
        (FEW_BLOCKS, blocks, Ok(8), Ok(25 * 8)),
        (HOLES_EVERYTHING, blocks, Ok(0), Ok(25 * 8)),
        (HOLES_EVERYTHING, seek_data, Err(Errno::NXIO), Ok(50_000)),
        (HOLES_EVERYTHING, seek_hole, Ok(50_000), Ok(LEN)),
        (HOLES_BACKWARDS, seek_hole, Ok(50_000 - 4096), Ok(LEN)),
        (HOLES_EVERYWHERE, seek_hole, Ok(50_000), Ok(LEN)),
        (HOLES_EINVAL, seek_data, Err(Errno::INVAL), Ok(50_000)),
        (HOLES_EIO, seek_data, Err(Errno::IO), Ok(50_000)),
        (HOLES_EINTR, seek_data, Err(Errno::INTR), Ok(50_000)),
    ]
}

fn name_of(rules: &[Rule]) -> &'static str {
    let named = faults::ALL.iter().find(|(_, named)| *named == rules);
    named.expect("it stands in the table").0
}

#[test]
fn every_fault_shows_and_a_good_file_has_none() {
    if Bed::mount().is_none() {
        return;
    }
    for (rules, probe, with, without) in rows() {
        let name = name_of(rules);
        for (rules, expected) in [(rules, with), (faults::GOOD, without)] {
            let bed = Bed::mount().unwrap();
            bed.add("it", rules, pattern(LENGTH));
            assert_eq!(probe(&bed), expected, "{name}, {rules:?}");
        }
        assert_ne!(with, without, "{name}: nothing shows");
    }
}

#[test]
fn every_fault_has_a_proof() {
    for (name, rules) in faults::ALL {
        let hangs = rules.iter().any(|rule| matches!(rule, Rule::Hangs(_)));
        let shows = rows().iter().any(|row| row.0 == *rules);
        assert!(hangs || shows, "{name}");
    }
}

#[test]
fn a_file_that_is_made_later_obeys_what_was_told() {
    let Some(bed) = Bed::mount() else { return };
    bed.expect("to", faults::EDQUOT_AT_CLOSE);
    bed.expect_any(faults::EIO_AT_SYNC);
    let to = open_to_write(&bed, "to");
    assert_eq!(rustix::fs::fsync(&to), Ok(()));
    assert_eq!(super::close(to), Err(Errno::DQUOT));
    let any = open_to_write(&bed, ".any");
    assert_eq!(rustix::fs::fsync(&any), Err(Errno::IO));
    bed.obey(".any", faults::GOOD);
    assert_eq!(rustix::fs::fsync(&any), Ok(()));
    bed.add("made", faults::GOOD, "");
    assert_eq!(rustix::fs::fsync(open_to_write(&bed, "made")), Ok(()));
}

#[test]
fn the_kernel_says_that_an_empty_size_is_the_end() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::ZERO, pattern(10_000));
    assert_eq!(copy_once(&bed), Ok(0), "it does not even ask");
    assert_eq!(read_all(&bed), Ok(10_000));
}

#[test]
fn a_call_that_ends_at_a_broken_place_moves_what_lies_before() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::EIO_AT_64K, pattern(LENGTH));
    let read = rustix::io::pread(open(&bed, "it"), &mut [0; LENGTH], 0);
    assert_eq!(read, Ok(64 << 10));
}
