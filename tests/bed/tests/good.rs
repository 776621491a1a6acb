//! Without a fault it is a file system like others.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use copyist_bed::{Bed, Call, faults};
use rustix::fs::XattrFlags;
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps,
};
use rustix::io::Errno;

use super::{copy_range, open, open_to_write, pattern};

#[test]
fn files_are_made_written_read_cut_and_removed() {
    let Some(bed) = Bed::mount() else { return };
    let path = bed.path().join("file");
    let mut file = fs::File::create_new(&path).unwrap();
    file.write_all(&pattern(3_000_000)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), pattern(3_000_000));
    let metadata = file.metadata().unwrap();
    assert_eq!((metadata.len(), metadata.nlink()), (3_000_000, 1));
    assert_eq!(metadata.blocks(), 733 * 8);
    assert_eq!(
        fs::File::create_new(&path).unwrap_err().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    file.set_len(10).unwrap();
    assert_eq!(fs::read(&path).unwrap(), pattern(10));
    file.set_len(20).unwrap();
    assert_eq!(fs::read(&path).unwrap()[10..], [0; 10]);
    fs::write(&path, "new").unwrap();
    assert_eq!(bed.content("file"), b"new");
    let mut appended = fs::File::options().append(true).open(&path).unwrap();
    appended.write_all(b" and more").unwrap();
    assert_eq!(bed.content("file"), b"new and more");
    fs::remove_file(&path).unwrap();
    assert!(!path.exists());
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(b"still").unwrap();
    let mut start = [0; 5];
    file = open_to_write(&bed, "file");
    assert_eq!(file.read(&mut start).unwrap(), 0, "it is another one");
    assert!(bed.calls_of("file", Call::Read) == 1 && bed.calls(Call::Unlink) == 1);
}

#[test]
fn names_are_linked_renamed_and_listed() {
    let Some(bed) = Bed::mount() else { return };
    let (root, at) = (bed.root(), |name: &str| bed.path().join(name));
    bed.add("a", faults::GOOD, "a");
    bed.add("b", faults::GOOD, "b");
    rustix::fs::linkat(&root, "a", &root, "c", AtFlags::empty()).unwrap();
    assert_eq!(
        open(&bed, "a").metadata().unwrap().ino(),
        open(&bed, "c").metadata().unwrap().ino()
    );
    let exclusive = RenameFlags::NOREPLACE;
    let refused = rustix::fs::renameat_with(&root, "a", &root, "b", exclusive);
    assert_eq!(refused, Err(Errno::EXIST));
    rustix::fs::renameat_with(&root, "a", &root, "b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(
        (bed.content("a"), bed.content("b")),
        (b"b".to_vec(), b"a".to_vec())
    );
    rustix::fs::renameat(&root, "a", &root, "b").unwrap();
    assert_eq!(bed.names(), ["b", "c"]);
    assert_eq!(open(&bed, "c").metadata().unwrap().nlink(), 1);
    fs::create_dir(at("d")).unwrap();
    symlink("../b", at("d/link")).unwrap();
    assert_eq!(fs::read(at("d/link")).unwrap(), b"b");
    assert!(fs::remove_dir(at("d")).is_err());
    let listed = fs::read_dir(bed.path()).unwrap();
    let mut listed: Vec<_> = listed.map(|entry| entry.unwrap().file_name()).collect();
    listed.sort();
    assert_eq!(listed, ["b", "c", "d"]);
    fs::remove_file(at("d/link")).unwrap();
    fs::remove_dir(at("d")).unwrap();
    let (fifo, mode) = (FileType::Fifo, Mode::RUSR);
    rustix::fs::mknodat(&root, "fifo", fifo, mode, 0).unwrap();
    let made = rustix::fs::statat(&root, "fifo", AtFlags::empty()).unwrap();
    assert_eq!(FileType::from_raw_mode(made.st_mode), FileType::Fifo);
}

#[test]
fn many_names_are_listed_once_each() {
    let Some(bed) = Bed::mount() else { return };
    for number in 0..1000 {
        bed.add(
            &format!("a name of some length {number:04}"),
            faults::GOOD,
            "",
        );
    }
    let listed = fs::read_dir(bed.path()).unwrap();
    let mut listed: Vec<_> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    listed.sort();
    assert_eq!(listed, bed.names());
}

#[test]
fn attributes_are_kept() {
    let Some(bed) = Bed::mount() else { return };
    let file = open_to_write(&bed, "file");
    file.set_permissions(fs::Permissions::from_mode(0o6751))
        .unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o6751);
    for (seconds, nanoseconds) in [
        (1_000_000_000, 123_456_789),
        (-631_152_000, 123_456_789),
        (-1, 1),
        (-5, 0),
    ] {
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::futimens(&file, &times).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(
            (metadata.mtime(), metadata.mtime_nsec()),
            (seconds, nanoseconds)
        );
        assert_eq!(
            (metadata.atime(), metadata.atime_nsec()),
            (seconds, nanoseconds)
        );
    }
    rustix::fs::fsetxattr(&file, "user.a", b"1", XattrFlags::empty()).unwrap();
    rustix::fs::fsetxattr(&file, "user.b", b"22", XattrFlags::empty()).unwrap();
    let again = rustix::fs::fsetxattr(&file, "user.a", b"", XattrFlags::CREATE);
    assert_eq!(again, Err(Errno::EXIST));
    let mut names = [0; 64];
    let length = rustix::fs::flistxattr(&file, &mut names).unwrap();
    assert_eq!(&names[..length], b"user.a\0user.b\0");
    assert_eq!(
        rustix::fs::fgetxattr(&file, "user.b", &mut [0; 1]),
        Err(Errno::RANGE)
    );
    rustix::fs::fremovexattr(&file, "user.b").unwrap();
    assert_eq!(
        rustix::fs::fgetxattr(&file, "user.b", &mut [0; 9]),
        Err(Errno::NODATA)
    );
}

#[test]
fn ranges_are_copied_by_the_bed_itself() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("from", faults::GOOD, pattern(10_000));
    let (from, to) = (open(&bed, "from"), open_to_write(&bed, "to"));
    assert_eq!(copy_range(&from, &to, 100, 5000), Ok(5000));
    assert_eq!(copy_range(&from, &to, 10_000, 5000), Ok(0));
    assert_eq!(bed.content("to")[100..], pattern(10_000)[100..5100]);
    assert_eq!((bed.calls(Call::Read), bed.calls(Call::Write)), (0, 0));
}

#[test]
fn holes_are_found_and_punched() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::HOLES, pattern(40_000));
    let file = open_to_write(&bed, "it");
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 8192, 8192).unwrap();
    let seek = |to| rustix::fs::seek(&file, to);
    assert_eq!(seek(rustix::fs::SeekFrom::Hole(100)), Ok(8192));
    assert_eq!(seek(rustix::fs::SeekFrom::Data(8192)), Ok(16_384));
    assert_eq!(seek(rustix::fs::SeekFrom::Data(9000)), Ok(16_384));
    assert_eq!(seek(rustix::fs::SeekFrom::Hole(20_000)), Ok(40_000));
    assert_eq!(seek(rustix::fs::SeekFrom::Data(40_000)), Err(Errno::NXIO));
    let mut piece = [1; 100];
    file.read_exact_at(&mut piece, 8192).unwrap();
    assert_eq!(piece, [0; 100]);
}

#[test]
fn files_without_a_name_are_not_to_be_had() {
    let Some(bed) = Bed::mount() else { return };
    let flags = OFlags::TMPFILE | OFlags::WRONLY;
    let answer = rustix::fs::openat(bed.root(), ".", flags, Mode::RUSR);
    assert_eq!(answer.unwrap_err(), Errno::OPNOTSUPP);
}

#[test]
fn a_test_may_touch_it_from_all_its_threads() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("from", faults::GOOD, pattern(100_000));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let bed = &bed;
            scope.spawn(move || {
                for round in 0..20 {
                    let name = format!("{thread}.{round}");
                    let to = open_to_write(bed, &name);
                    assert_eq!(copy_range(&open(bed, "from"), &to, 0, 100_000), Ok(100_000));
                    assert_eq!(bed.content(&name).len(), 100_000);
                }
            });
        }
    });
    assert_eq!(bed.names().len(), 161);
}
