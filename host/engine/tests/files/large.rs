//! Beyond 2 and 4 GiB: where counts and offsets of 32 bits end. The files are sparse, with bytes at
//! both ends and around each mark.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use copyist_engine::{Mechanism, Options, Sparse, Tuning, Window};

use crate::support::content::assert_same_files;
use crate::support::{
    Place, assert_same, byte_movers, copy, every_way, fallback, file, only, pairs, pattern, skipped,
};

const GIB: u64 = 1 << 30;
/// What a data call of Linux moves at the most.
const MOST: u64 = 0x7fff_f000;
const MARKS: [u64; 4] = [MOST, 2 * GIB, 4 * GIB - 4096, 4 * GIB];

/// A sparse file with bytes at its ends and around each of the marks.
fn sparse(place: &Place, name: &str, size: u64) {
    let file = File::create_new(place.path(name)).unwrap();
    file.set_len(size).unwrap();
    for (index, mark) in MARKS.into_iter().enumerate() {
        if mark < size {
            let bytes = pattern(6000 + index);
            file.write_all_at(&bytes[..5000], mark - 2500).unwrap();
        }
    }
    file.write_all_at(&pattern(5000), 0).unwrap();
    file.write_all_at(&pattern(5000), size - 5000).unwrap();
}

/// What can be written to a tmpfs: it has a bound of its own, and needs memory.
fn room(place: &Place) -> u64 {
    let space = rustix::fs::statvfs(place.path("")).unwrap();
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let available = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    (space.f_bavail * space.f_frsize).min(available.unwrap_or(0) << 10)
}

// https://github.com/libuv/libuv/issues/1494, https://github.com/JuliaLang/julia/issues/14574,
// https://github.com/KarpelesLab/reflink/issues/3,
// https://github.com/couchbase/couchbase-lite-core/issues/1463: one call of at most 0x7ffff000 bytes
// was made. With its holes, which takes no room.
#[test]
fn reflink_3_a_sparse_file_beyond_2_and_4_gib_is_copied_whole() {
    for (from, to, _) in pairs() {
        let size = 5 * GIB + 20_001;
        sparse(&from, "from", size);
        for (way, tuning) in every_way() {
            let options = Options {
                tuning,
                ..Options::default()
            };
            let what = format!("{way}, {} to {}", from.name, to.name);
            match copy(from.source("from"), to.destination("to"), &options) {
                Ok(summary) => assert_eq!(summary.bytes, size, "{what}"),
                Err(error) => {
                    assert!(tuning.only.is_some(), "{what}: {error:?}");
                    continue;
                }
            }
            assert_same_files(&from.open("from"), &to.open("to"), &what);
            fs::remove_file(to.path("to")).unwrap();
        }
    }
}

// https://github.com/libuv/libuv/issues/1494 and the others: by each mechanism, and byte by byte.
#[test]
fn libuv_1494_a_file_beyond_2_and_4_gib_is_copied_whole() {
    let Some(place) = Place::memory() else {
        return;
    };
    if room(&place) < 6 * GIB {
        return skipped("less than 6 GiB of memory");
    }
    let size = 4 * GIB + 20_001;
    for (tuning, keep) in [
        (Tuning::default(), Sparse::Auto),
        (only(Mechanism::SendFile), Sparse::Auto),
        (fallback(), Sparse::Auto),
        (Tuning::default(), Sparse::Never),
    ] {
        sparse(&place, "from", size);
        let options = Options {
            tuning,
            sparse: keep,
            ..Options::default()
        };
        let summary = copy(place.source("from"), place.destination("to"), &options).unwrap();
        assert_eq!(summary.bytes, size);
        let what = format!("{size} bytes by {:?}, {keep:?}", summary.method);
        assert_same_files(&place.open("from"), &place.open("to"), &what);
        fs::remove_file(place.path("to")).unwrap();
        fs::remove_file(place.path("from")).unwrap();
    }
}

#[test]
fn windows_across_the_marks_are_copied_by_every_mechanism() {
    for (from, to, same_device) in pairs() {
        let size = 4 * GIB + 20_001;
        sparse(&from, "from", size);
        for mark in MARKS {
            let mut expected = vec![0; 20_000];
            from.open("from")
                .read_exact_at(&mut expected, mark - 10_000)
                .unwrap();
            for mechanism in byte_movers() {
                if mechanism == Mechanism::CopyRange && !same_device {
                    continue;
                }
                // In pieces that end a few bytes off the mark.
                let options = Options {
                    window: Some(Window {
                        source_offset: mark - 10_000,
                        length: Some(20_000),
                        destination_offset: mark - 9_990,
                    }),
                    ..crate::support::in_pieces(mechanism, 9_993)
                };
                let what = format!("{mechanism} from {} to {} at {mark}", from.name, to.name);
                let summary =
                    copy(from.source("from"), to.destination("to"), &options).expect(&what);
                assert_eq!(summary.method, Some(mechanism), "{what}");
                let mut copied = vec![0; 20_001];
                let made = to.open("to");
                let read = made.read_at(&mut copied, mark - 9_990).unwrap();
                assert_same(&copied[..read], &expected, &what);
                assert_eq!(made.metadata().unwrap().len(), mark + 10_010, "{what}");
                fs::remove_file(to.path("to")).unwrap();
            }
        }
        // The same to a descriptor, whose position is not the copy's.
        let options = Options {
            window: Some(Window {
                source_offset: size - 10_000,
                length: None,
                destination_offset: 4 * GIB - 1,
            }),
            ..Options::default()
        };
        let to_file = to.open_to_write("descriptor");
        let summary = copy(from.source("from"), file(&to_file), &options).unwrap();
        assert_eq!(summary.bytes, 10_000);
        let mut copied = vec![0; 5_001];
        let read = to_file.read_at(&mut copied, 4 * GIB - 1 + 5_000).unwrap();
        assert_same(&copied[..read], &pattern(5_000), "the end");
    }
}
