//! Holes: kept, made, filled; and what stood in an old file never shows through one.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};

use copyist_engine::{Errno, Existing, Mechanism, Options, Reflink, Source, Sparse, Window};
use rustix::fs::FallocateFlags;

use crate::support::{
    Place, assert_same, byte_movers, copy, every_way, only, other, pairs, pattern, places, skipped,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A file of this length with patterns at these offsets and holes elsewhere.
fn sparse(place: &Place, name: &str, length: u64, data: &[(u64, usize)]) -> u64 {
    let file = File::create(place.path(name)).unwrap();
    file.set_len(length).unwrap();
    for (offset, bytes) in data {
        file.write_all_at(&pattern(*bytes), *offset).unwrap();
    }
    allocated(place, name)
}

fn allocated(place: &Place, name: &str) -> u64 {
    fs::metadata(place.path(name)).unwrap().blocks() * 512
}

fn with(sparse: Sparse) -> Options {
    Options {
        sparse,
        ..Options::default()
    }
}

/// Layouts as (length, data), each with another kind of begin and end.
const LAYOUTS: [(u64, &[(u64, usize)]); 6] = [
    (3 * MIB, &[]),
    (3 * MIB, &[(0, 4096)]),
    (3 * MIB, &[(MIB, 70_000)]),
    (3 * MIB + 17, &[(3 * MIB, 17)]),
    (3 * MIB, &[(0, 1), (MIB - 1, 2), (2 * MIB, 1_000_000)]),
    (20 * KIB, &[(4 * KIB, 4096), (12 * KIB, 4096)]),
];

// https://github.com/containerd/containerd/pull/10197, https://github.com/containerd/containerd/pull/12066,
// https://github.com/containerd/containerd/pull/12956, https://github.com/rust-lang/rust/issues/55909,
// https://github.com/python/cpython/issues/122122, https://github.com/MidnightCommander/mc/issues/2715:
// holes were filled, and disks with them.
#[test]
fn containerd_10197_holes_stay_holes() {
    for (from, to, _) in pairs() {
        for (length, data) in LAYOUTS {
            let source = sparse(&from, "from", length, data);
            for (way, tuning) in every_way() {
                if tuning.only == Some(Mechanism::Clone) {
                    continue;
                }
                let what = format!("{length} {data:?} by {way}, {} to {}", from.name, to.name);
                let _ = fs::remove_file(to.path("to"));
                let options = Options {
                    tuning,
                    ..Options::default()
                };
                // Each mechanism that cannot do this pair ends with another or fails; see `sizes`.
                let Ok(summary) = copy(from.source("from"), to.destination("to"), &options) else {
                    continue;
                };
                assert_same(&to.read("to"), &from.read("from"), &what);
                assert_eq!(summary.bytes, length, "{what}");
                assert_eq!(summary.consumed, length, "{what}");
                assert!(!summary.changed, "{what}");
                // What a file system only says is a hole is read, and so not by this one alone.
                if tuning.only.is_some_and(|only| only != Mechanism::ReadWrite)
                    && !from.is_trusted()
                {
                    continue;
                }
                // A file system may allocate a block more at either end of each piece.
                let slack = 8 * KIB * (1 + data.len() as u64);
                assert!(
                    allocated(&to, "to") <= source + slack,
                    "{what}: {} bytes where the source has {source}",
                    allocated(&to, "to")
                );
            }
        }
    }
}

// https://github.com/systemd/systemd/issues/22250, https://github.com/systemd/systemd/pull/22288: a hole
// at the end was lost.
#[test]
fn systemd_22250_a_hole_at_the_end_counts() {
    for place in places() {
        sparse(&place, "from", 1 << 30, &[(0, 4096)]);
        let summary = copy(
            place.source("from"),
            place.destination("to"),
            &with(Sparse::Auto),
        );
        assert_eq!(summary.unwrap().bytes, 1 << 30);
        assert_eq!(fs::metadata(place.path("to")).unwrap().len(), 1 << 30);
        assert!(allocated(&place, "to") <= 16 * KIB);
    }
}

// https://github.com/RsyncProject/rsync/issues/114, https://github.com/RsyncProject/rsync/issues/53:
// blocks that are holes in the source were left out, and the old bytes stayed.
#[test]
fn rsync_114_old_bytes_do_not_show_through_a_hole() {
    for (from, to, _) in pairs() {
        for (length, data) in LAYOUTS {
            sparse(&from, "from", length, data);
            for old in [0, 10_000, 2 * MIB, 4 * MIB] {
                for option in [Sparse::Auto, Sparse::Always, Sparse::Never] {
                    let what = format!("{length} {data:?} over {old}, {option:?}");
                    let old = usize::try_from(old).unwrap();
                    to.write("to", other(old));
                    copy(from.source("from"), to.destination("to"), &with(option)).unwrap();
                    assert_same(&to.read("to"), &from.read("from"), &what);
                }
            }
        }
    }
}

// https://github.com/uutils/coreutils/issues/4030, https://github.com/uutils/coreutils/issues/6129
#[test]
fn uutils_4030_each_option_does_what_it_says() {
    for (from, to, _) in pairs() {
        // Zeros that are written, and bytes on both sides of them.
        let mut bytes = vec![0; 10 << 20];
        bytes[..4096].copy_from_slice(&pattern(4096));
        *bytes.last_mut().unwrap() = 1;
        from.write("zeros", &bytes);
        sparse(&from, "holes", 10 << 20, &[(5 << 20, 4096)]);
        for reflink in [Reflink::Auto, Reflink::Never] {
            let copied = |source: &str, option| {
                let _ = fs::remove_file(to.path("to"));
                let options = Options {
                    reflink,
                    ..with(option)
                };
                copy(from.source(source), to.destination("to"), &options).unwrap();
                assert_same(&to.read("to"), &from.read(source), &format!("{options:?}"));
                allocated(&to, "to")
            };
            assert!(copied("zeros", Sparse::Always) <= 64 * KIB);
            assert!(copied("zeros", Sparse::Auto) >= 10 << 20);
            assert!(copied("holes", Sparse::Always) <= 64 * KIB);
            assert!(copied("holes", Sparse::Auto) <= 64 * KIB);
            assert!(copied("holes", Sparse::Never) >= 10 << 20);
        }
    }
}

// What fallocate(2) reserved reads as zeros and is called a hole; bytes in it may still be in memory.
#[test]
fn reserved_space_is_no_data_but_what_is_written_in_it_is() {
    for place in places() {
        let file = File::create(place.path("from")).unwrap();
        if rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, MIB).is_err() {
            skipped("no fallocate here");
            continue;
        }
        file.write_all_at(b"x", 512 * KIB).unwrap();
        for option in [Sparse::Auto, Sparse::Always, Sparse::Never] {
            let _ = fs::remove_file(place.path("to"));
            copy(place.source("from"), place.destination("to"), &with(option)).unwrap();
            let what = format!("{} {option:?}", place.name);
            assert_same(&place.read("to"), &place.read("from"), &what);
        }
    }
}

// https://github.com/ceph/ceph/pull/11554, https://github.com/ceph/ceph/pull/14367: a map of extents is
// told in parts, and what came after the first one was left out.
#[test]
fn ceph_11554_thousands_of_extents_are_all_copied() {
    for place in places() {
        let data: Vec<_> = (0..5000).map(|block| (block * 8 * KIB, 4096)).collect();
        sparse(&place, "from", 40_000 * KIB, &data);
        let expected = place.read("from");
        // A clone asks for no extent, and is made where it can be unless something else is wanted.
        for (way, tuning) in every_way() {
            for (sparse, old) in [
                (Sparse::Auto, 0),
                (Sparse::Auto, 50_000_000),
                (Sparse::Always, 0),
            ] {
                let _ = fs::remove_file(place.path("to"));
                if old > 0 {
                    place.write("to", other(old));
                }
                let options = Options {
                    tuning,
                    ..with(sparse)
                };
                if copy(place.source("from"), place.destination("to"), &options).is_err() {
                    assert!(tuning.only.is_some(), "{way}");
                    continue;
                }
                assert_same(
                    &place.read("to"),
                    &expected,
                    &format!("{}, {way}", place.name),
                );
            }
        }
    }
}

#[test]
fn a_window_has_the_holes_of_its_part() {
    for (from, to, _) in pairs() {
        sparse(&from, "from", 4 * MIB, &[(MIB, 100_000), (3 * MIB, 10)]);
        let whole = from.read("from");
        for (start, length) in [
            (0, MIB),
            (MIB / 2, 3 * MIB),
            (MIB + 50_000, 2 * MIB),
            (2 * MIB, 9 * MIB),
        ] {
            for mechanism in byte_movers() {
                let options = Options {
                    window: Some(Window {
                        source_offset: start,
                        length: Some(length),
                        destination_offset: 12_345,
                    }),
                    tuning: only(mechanism),
                    ..Options::default()
                };
                to.write("to", other(2_000_000));
                let Ok(summary) = copy(from.source("from"), to.destination("to"), &options) else {
                    continue;
                };
                let end = usize::try_from((start + length).min(4 * MIB)).unwrap();
                let part = &whole[usize::try_from(start).unwrap()..end];
                let mut wanted = other(2_000_000);
                wanted.resize(wanted.len().max(12_345 + part.len()), 0);
                wanted[12_345..12_345 + part.len()].copy_from_slice(part);
                assert_eq!(summary.bytes, part.len() as u64);
                assert_same(
                    &to.read("to"),
                    &wanted,
                    &format!("{start} {length} {mechanism}"),
                );
            }
        }
    }
}

#[test]
fn holes_are_found_through_a_descriptor_and_its_position_stays() {
    for place in places() {
        let source = sparse(&place, "from", 3 * MIB, &[(MIB, 4096)]);
        let file = std::sync::Arc::new(File::open(place.path("from")).unwrap());
        rustix::fs::seek(&*file, rustix::fs::SeekFrom::Start(42)).unwrap();
        let options = with(Sparse::Auto);
        copy(
            Source::File(file.clone()),
            place.destination("to"),
            &options,
        )
        .unwrap();
        assert_same(&place.read("to"), &place.read("from"), place.name);
        assert!(allocated(&place, "to") <= source + 8 * KIB);
        let position = rustix::fs::seek(&*file, rustix::fs::SeekFrom::Current(0));
        assert_eq!(position, Ok(42));
    }
}

#[test]
fn a_hole_counts_against_a_limit() {
    for place in places() {
        sparse(&place, "from", 3 * MIB, &[(MIB, 4096)]);
        for (limit, fits) in [(3 * MIB, true), (3 * MIB - 1, false), (MIB / 2, false)] {
            let mut options = with(Sparse::Auto);
            options.limits.bytes = Some(limit);
            let copied = copy(place.source("from"), place.destination("to"), &options);
            assert_eq!(copied.is_ok(), fits, "{limit}");
            assert_eq!(place.exists("to"), fits, "{limit}");
            let _ = fs::remove_file(place.path("to"));
        }
    }
}

#[test]
fn a_source_of_holes_alone_is_refused_before_an_old_file_is_touched() {
    for place in places() {
        sparse(&place, "from", 3 * MIB, &[]);
        if !place.is_trusted() {
            skipped("whether this file system tells the truth about holes is not known");
            continue;
        }
        place.write("to", other(5000));
        let mut options = with(Sparse::Auto);
        options.limits.bytes = Some(MIB);
        let copied = copy(place.source("from"), place.destination("to"), &options);
        assert!(copied.is_err());
        assert_same(&place.read("to"), &other(5000), place.name);
    }
}

#[test]
fn what_is_appended_has_its_zeros_written() {
    for place in places() {
        sparse(&place, "from", MIB, &[(512 * KIB, 10)]);
        for option in [Sparse::Auto, Sparse::Always] {
            place.write("to", b"before");
            let file = OpenOptions::new().append(true).open(place.path("to"));
            let destination = copyist_engine::Destination::File(file.unwrap().into());
            copy(place.source("from"), destination, &with(option)).unwrap();
            let mut wanted = b"before".to_vec();
            wanted.extend(place.read("from"));
            assert_same(&place.read("to"), &wanted, place.name);
        }
    }
}

#[test]
fn an_old_file_that_is_left_or_refused_keeps_its_bytes() {
    for place in places() {
        sparse(&place, "from", MIB, &[]);
        place.write("to", other(5000));
        for existing in [Existing::Refuse, Existing::Skip] {
            let options = Options {
                existing,
                ..with(Sparse::Always)
            };
            match copy(place.source("from"), place.destination("to"), &options) {
                Ok(summary) => assert_eq!(summary.skipped, 1),
                Err(error) => assert_eq!(
                    error.cause,
                    copyist_engine::Cause::Io(copyist_engine::Side::Destination, Errno::EXIST)
                ),
            }
            assert_same(&place.read("to"), &other(5000), place.name);
        }
    }
}
