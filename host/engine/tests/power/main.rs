//! Copies across a power cut. The disk is cloned at a moment of a copy, and what is found on the
//! clone, once its file system has recovered, must be the old file or the new one.
//!
//! A clone has what was written to the disk by then, and of the file system's memory nothing: as
//! after a cut, on a disk that loses no write that it took.
//!
//! It is run by `ci/filesystems`, since it mounts disks that are files on xfs, where they can be
//! cloned. Of each file system `COPYIST_POWER_CUTS` moments are looked at, or [`MOMENTS`].

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its disks ends there"
)]

mod disk;
mod witness;
mod work;

use disk::{Kind, Place};
use work::{Found, Lie, Work};

/// Enough for each way to copy to be cut before and after each of its calls.
const MOMENTS: usize = 200;

fn moments() -> usize {
    std::env::var("COPYIST_POWER_CUTS").map_or(MOMENTS, |wanted| wanted.parse().unwrap())
}

/// What is not as it should be, with some of the moments at which it was seen.
#[track_caller]
fn assert_sound(work: &Work, found: &[Found]) {
    let bad: Vec<_> = found.iter().filter(|found| !found.is_sound()).collect();
    assert!(
        bad.is_empty(),
        "{work:?}: {} of {} moments: {:#?}",
        bad.len(),
        found.len(),
        &bad[..bad.len().min(5)]
    );
}

fn cut_at_every_call(kind: Kind) {
    let Some(place) = Place::new() else { return };
    let works = Work::all_of(kind);
    for work in &works {
        let found = work.cut_at_calls(&place, moments().div_ceil(works.len()));
        assert_sound(work, &found);
        // Both the old file and the new one were seen, so that the moments lay around the change.
        let changes = found.iter().any(|found| found.is_oldest_allowed())
            && found.iter().any(|found| found.is_newest_allowed());
        assert!(changes, "{work:?}: {found:?}");
    }
}

#[test]
fn on_ext4_a_cut_at_any_call_leaves_the_old_file_or_the_new_one() {
    cut_at_every_call(Kind::Ext4);
}

#[test]
fn on_xfs_a_cut_at_any_call_leaves_the_old_file_or_the_new_one() {
    cut_at_every_call(Kind::Xfs);
}

#[test]
fn a_cut_in_the_middle_of_a_call_does_too() {
    let Some(place) = Place::new() else { return };
    for kind in Kind::ALL {
        for work in Work::all_of(kind) {
            let found = work.cut_meanwhile(&place, moments().div_ceil(10));
            assert_sound(&work, &found);
        }
    }
}

#[test]
fn a_new_file_that_was_reported_is_there() {
    let Some(place) = Place::new() else { return };
    for kind in Kind::ALL {
        for work in Work::all_of(kind) {
            assert_eq!(work.new_files(&place), [""; 0], "{work:?}");
        }
    }
}

// The test of these tests: a copier that does not sync is found out.

#[test]
fn a_copier_that_does_not_sync_the_file_is_found_out() {
    let Some(place) = Place::new() else { return };
    for kind in Kind::ALL {
        let work = Work::lying(kind, Lie::AboutFiles);
        let found = work.cut_at_calls(&place, 60);
        assert!(found.iter().any(Found::is_torn), "{work:?}: {found:?}");
    }
}

#[test]
fn a_copier_that_does_not_sync_the_directory_is_found_out() {
    let Some(place) = Place::new() else { return };
    for kind in Kind::ALL {
        let work = Work::lying(kind, Lie::AboutDirectories);
        let found = work.cut_at_calls(&place, 60);
        assert!(found.iter().any(Found::is_stale), "{work:?}: {found:?}");
        assert!(!found.iter().any(Found::is_torn), "{work:?}: {found:?}");
    }
}
