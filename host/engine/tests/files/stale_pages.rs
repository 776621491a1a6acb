//! Bytes that are written and not yet on the disk: a copy sees them all the same.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use copyist_engine::Options;
use rustix::fs::{FallocateFlags, SeekFrom};

use crate::support::{assert_same, beside, copy, every_way, pairs, pattern, skipped};

// https://github.com/openzfs/zfs/issues/15526, https://github.com/openzfs/zfs/issues/15933: pages
// that were dirty while somebody asked for holes were copied as zeros. The defect was that file
// system's; here every other one is watched for the like.
#[test]
fn zfs_15526_a_copy_right_after_a_write_has_its_bytes() {
    for (from, to, _) in pairs() {
        let ask_for_holes = || {
            if let Ok(file) = File::open(from.path("from")) {
                let _ = rustix::fs::seek(&file, SeekFrom::Data(0));
                let _ = rustix::fs::seek(&file, SeekFrom::Hole(0));
            }
        };
        beside(ask_for_holes, || {
            let ways = every_way();
            for round in 0..60_usize {
                let bytes = pattern(20_000 + round * 1000);
                let (way, tuning) = ways[round % ways.len()].clone();
                let _ = fs::remove_file(from.path("from"));
                let file = File::create(from.path("from")).unwrap();
                // Data behind a hole, and data behind that.
                file.write_all_at(&bytes, 1 << 20).unwrap();
                file.write_all_at(&bytes, 3 << 20).unwrap();
                let options = Options {
                    tuning,
                    ..Options::default()
                };
                if copy(from.source("from"), to.destination("to"), &options).is_err() {
                    assert!(tuning.only.is_some(), "{way}");
                    continue;
                }
                let what = format!("round {round} by {way}, {} to {}", from.name, to.name);
                assert_same(&to.read("to"), &from.read("from"), &what);
            }
        });
    }
}

// https://github.com/openzfs/zfs/issues/16012: a clone had the bytes that a hole had just taken.
#[test]
fn zfs_16012_a_copy_right_after_a_hole_was_punched_has_the_hole() {
    for (from, to, _) in pairs() {
        for (way, tuning) in every_way() {
            from.write("from", pattern(1 << 20));
            let punch = rustix::fs::fallocate(
                from.open_to_write("from"),
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                256 << 10,
                512 << 10,
            );
            if let Err(errno) = punch {
                skipped(&format!("holes on {}: {errno}", from.name));
                break;
            }
            let options = Options {
                tuning,
                ..Options::default()
            };
            if copy(from.source("from"), to.destination("to"), &options).is_err() {
                assert!(tuning.only.is_some(), "{way}");
                continue;
            }
            let mut expected = pattern(1 << 20);
            expected[256 << 10..768 << 10].fill(0);
            assert_same(&to.read("to"), &expected, &way);
        }
    }
}

// Room that is reserved and not written reads as zeros and looks like a hole, and one byte of it
// may be data that is not on the disk yet.
#[test]
fn reserved_room_with_a_byte_in_it_has_the_byte() {
    for (from, to, _) in pairs() {
        let file = from.open_to_write("from");
        if let Err(errno) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20) {
            skipped(&format!("reserved room on {}: {errno}", from.name));
            continue;
        }
        file.write_all_at(b"x", 512 << 10).unwrap();
        for tuning in [
            copyist_engine::Tuning::default(),
            crate::support::fallback(),
        ] {
            let options = Options {
                tuning,
                ..Options::default()
            };
            copy(from.source("from"), to.destination("to"), &options).unwrap();
            let mut expected = vec![0; 1 << 20];
            expected[512 << 10] = b'x';
            assert_same(&to.read("to"), &expected, from.name);
        }
    }
}
