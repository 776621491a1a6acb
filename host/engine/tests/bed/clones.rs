//! File systems that share storage, and those that do not.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use copyist_bed::{Bed, faults, filesystem, filesystems, shares_storage, skipped};
use copyist_engine::{
    Cause, Destination, Errno, Existing, Mechanism, Options, Preserve, Reflink, Side, Tuning,
    WriteMode,
};
use rustix::fs::FallocateFlags;

use super::support::{Place, WRITE_MODES, assert_same, by, copy, copy_in, fresh, old, pattern};

/// No multiple of any block.
pub(crate) const LENGTH: usize = 1_000_001;

/// Where FICLONE works.
pub(crate) fn sharing() -> Vec<Place> {
    ["xfs", "btrfs"]
        .into_iter()
        .filter_map(|name| Some(Place::in_directory(name, &filesystem(name)?)))
        .collect()
}

#[track_caller]
fn assert_shared(place: &Place, name: &str, what: &str) {
    let shared = shares_storage(&place.open(name)).unwrap();
    assert!(shared, "{what}, {}: no storage is shared", place.name);
}

// The kernel refuses to clone a length that ends in the middle of a block onto a longer file.
// https://github.com/uutils/coreutils/issues/3758
// https://github.com/oven-sh/bun/issues/43325
#[test]
fn coreutils_3758_a_clone_onto_a_longer_file_is_one_and_leaves_no_tail() {
    for place in sharing() {
        for write_mode in WRITE_MODES {
            for reflink in [Reflink::Auto, Reflink::Always] {
                place.write("it", pattern(LENGTH));
                place.write("to", old(3_000_000));
                let options = Options {
                    reflink,
                    ..by(write_mode)
                };
                let what = format!("{}, {write_mode:?}, {reflink:?}", place.name);
                let done = copy(place.source("it"), place.destination("to"), &options).unwrap();
                assert_same(&place.read("to"), &pattern(LENGTH), &what);
                assert_eq!(done.method, Some(Mechanism::Clone), "{what}: {done:?}");
                assert_eq!(
                    (done.bytes, done.shared),
                    (LENGTH as u64, LENGTH as u64),
                    "{what}"
                );
                assert_shared(&place, "to", &what);
            }
        }
    }
}

// https://github.com/cargo-bins/reflink-copy/issues/81
// https://github.com/astral-sh/uv/issues/1773
#[test]
fn reflink_copy_81_a_file_that_exists_is_no_reason_to_copy_over_it() {
    for place in sharing() {
        for write_mode in WRITE_MODES {
            for reflink in [Reflink::Auto, Reflink::Always, Reflink::Never] {
                place.write("it", pattern(LENGTH));
                place.write("to", old(1000));
                let inode = place.open("to").metadata().unwrap().ino();
                let options = Options {
                    existing: Existing::Refuse,
                    reflink,
                    ..by(write_mode)
                };
                let what = format!("{}, {write_mode:?}, {reflink:?}", place.name);
                let refused = copy(place.source("it"), place.destination("to"), &options);
                let cause = refused.unwrap_err().cause;
                assert_eq!(cause, Cause::Io(Side::Destination, Errno::EXIST), "{what}");
                assert_same(&place.read("to"), &old(1000), &what);
                assert_eq!(place.open("to").metadata().unwrap().ino(), inode, "{what}");
                assert_eq!(place.names(), ["it", "to"], "{what}");
            }
        }
    }
}

// A script is one however it came over.
// https://github.com/prefix-dev/rattler-build/issues/1111
#[test]
fn rattler_build_1111_the_mode_is_the_same_by_every_mechanism() {
    let mut places = vec![Place::disk()];
    let mounted = filesystems();
    if mounted.is_empty() {
        skipped("no other file systems: run by ci/filesystems");
    }
    places.extend(
        mounted
            .iter()
            .map(|(name, path)| Place::in_directory(name, path)),
    );
    let mut ways = vec![Tuning::default()];
    ways.extend(Mechanism::ALL.map(|mechanism| Tuning {
        only: Some(mechanism),
        ..Tuning::default()
    }));
    for place in places {
        place.write("it", pattern(LENGTH));
        let mode = |name: &str| place.open(name).metadata().unwrap().mode() & 0o7777;
        for wanted in [0o755, 0o640, 0o400] {
            let permissions = fs::Permissions::from_mode(wanted);
            fs::set_permissions(place.path("it"), permissions).unwrap();
            for tuning in &ways {
                for preserve in [Preserve::NONE, Preserve::MODE] {
                    let options = Options {
                        preserve,
                        tuning: *tuning,
                        ..Options::default()
                    };
                    let what = format!("{}, {wanted:o}, {tuning:?}, {preserve:?}", place.name);
                    let done = copy(place.source("it"), place.destination("to"), &options);
                    // Not every file system has every mechanism.
                    if done.is_err() && tuning.only.is_some() {
                        assert_eq!(place.names(), ["it"], "{what}");
                        continue;
                    }
                    assert_eq!(done.unwrap().bytes, LENGTH as u64, "{what}");
                    assert_eq!(mode("to"), wanted, "{what}");
                    fs::remove_file(place.path("to")).unwrap();
                }
            }
        }
    }
}

// An odd destination first, and the next file is shared all the same.
// https://github.com/oven-sh/bun/issues/43244
// https://github.com/libuv/libuv/issues/3354
#[test]
fn bun_43244_files_are_shared_after_a_copy_to_an_odd_place() {
    for place in sharing() {
        let environment = fresh();
        let options = Options::default();
        let elsewhere = Place::disk();
        place.write("it", pattern(LENGTH));
        elsewhere.write("it", pattern(LENGTH));
        let copy = |from: &Place, to: &Place, name: &str| {
            let (from, to) = (from.source("it"), to.destination(name));
            copy_in(&environment, from, to, &options)
        };
        copy(&place, &elsewhere, "to").unwrap();
        copy(&elsewhere, &place, "other").unwrap();
        if let Some(bed) = Bed::mount() {
            bed.add("it", faults::COPY_RANGE_EPERM, pattern(LENGTH));
            let odd = Place::bed(&bed);
            copy(&odd, &odd, "to").unwrap();
            copy(&place, &odd, "to").unwrap();
            copy(&odd, &place, "other").unwrap();
        }
        let done = copy(&place, &place, "to").unwrap();
        assert_eq!(
            done.method,
            Some(Mechanism::Clone),
            "{}: {done:?}",
            place.name
        );
        assert_shared(&place, "to", "after odd ones");
    }
}

// A hole that was just punched is one in the clone.
// https://github.com/openzfs/zfs/issues/16012
#[test]
fn zfs_16012_a_hole_that_was_just_punched_comes_over() {
    for place in sharing() {
        for round in 0..20 {
            place.write("it", pattern(1 << 20));
            let file = fs::File::options()
                .write(true)
                .open(place.path("it"))
                .unwrap();
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&file, punch, 256 << 10, 512 << 10).unwrap();
            file.write_all_at(b"x", round * 4096).unwrap();
            let name = format!("to{round}");
            copy(
                place.source("it"),
                place.destination(&name),
                &Options::default(),
            )
            .unwrap();
            assert_same(&place.read(&name), &place.read("it"), &place.name);
        }
    }
}

// Subvolumes of one file system have different device numbers, and share.
// https://github.com/openzfs/zfs/issues/15345
// https://github.com/cargo-bins/reflink-copy/issues/60
#[test]
fn zfs_15345_device_numbers_do_not_tell_whether_a_clone_works() {
    let Some(btrfs) = filesystem("btrfs") else {
        return;
    };
    let parent = tempfile::tempdir_in(btrfs).unwrap();
    let subvolume = |name: &str| {
        let path = parent.path().join(name);
        let made = Command::new("btrfs")
            .args(["-q", "subvolume", "create"])
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        Place::in_directory(name, &path)
    };
    let (one, two) = (subvolume("one"), subvolume("two"));
    one.write("it", pattern(LENGTH));
    let device = |place: &Place| place.path("").metadata().unwrap().dev();
    assert_ne!(device(&one), device(&two));
    let done = copy(one.source("it"), two.destination("to"), &Options::default()).unwrap();
    assert_eq!(done.method, Some(Mechanism::Clone), "{done:?}");
    assert_shared(&two, "to", "between subvolumes");
}

// A destination that is new, or empty, was taken for one to which the kernel does not copy.
// https://github.com/rust-lang/rust/issues/114341
// https://github.com/rust-lang/rust/pull/114373
#[test]
fn rust_114373_a_new_and_an_empty_destination_share() {
    for place in sharing() {
        place.write("it", pattern(LENGTH));
        for (write_mode, empty) in WRITE_MODES
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)])
        {
            if empty {
                place.write("to", "");
            }
            let what = format!("{}, {write_mode:?}, empty: {empty}", place.name);
            let done = copy(place.source("it"), place.destination("to"), &by(write_mode)).unwrap();
            assert_eq!(done.method, Some(Mechanism::Clone), "{what}: {done:?}");
            assert_shared(&place, "to", &what);
            fs::remove_file(place.path("to")).unwrap();
        }
        let to = fs::File::create(place.path("to")).unwrap();
        let to = Destination::File(Arc::new(to));
        copy(place.source("it"), to, &Options::default()).unwrap();
        assert_shared(&place, "to", "through a descriptor");
    }
}

// `never` shares nothing, and `always` says so where nothing can be shared.
#[test]
fn never_and_always_are_kept() {
    for place in sharing() {
        place.write("it", pattern(LENGTH));
        let never = Options {
            reflink: Reflink::Never,
            ..Options::default()
        };
        let done = copy(place.source("it"), place.destination("never"), &never).unwrap();
        assert_eq!(done.shared, 0);
        assert!(
            !shares_storage(&place.open("never")).unwrap(),
            "{}",
            place.name
        );
    }
    for (name, path) in filesystems() {
        // Over a file system that cannot, overlay cannot either.
        if !["ext4", "tmpfs", "overlay"].contains(&name.as_str()) {
            continue;
        }
        let place = Place::in_directory(&name, Path::new(&path));
        place.write("it", pattern(LENGTH));
        let always = Options {
            reflink: Reflink::Always,
            ..by(WriteMode::InPlace)
        };
        let refused = copy(place.source("it"), place.destination("to"), &always);
        assert!(refused.is_err(), "{name}");
        assert_eq!(place.names(), ["it"], "{name}");
    }
}
