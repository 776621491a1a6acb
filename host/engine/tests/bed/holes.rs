//! File systems that say nonsense of holes: it costs speed, and never bytes.

use copyist_bed::Bed;
use copyist_bed::faults::{self, Rule};
use copyist_engine::{Options, Sparse};

use super::support::{Place, WRITE_MODES, assert_bounded, assert_same, by, copy, old, pattern};

/// Data, zeros, data, zeros up to the end, in the middle of a page.
fn content() -> Vec<u8> {
    let mut content = pattern(1_000_001);
    content[100_000..500_000].fill(0);
    content[700_000..].fill(0);
    content
}

/// The faults of the table that are about holes.
fn nonsense() -> impl Iterator<Item = (&'static str, &'static [Rule])> {
    let about_holes = |(name, _): &&(&str, _)| name.starts_with("HOLES") || *name == "FEW_BLOCKS";
    faults::ALL.iter().filter(about_holes).copied()
}

// What lseek(2) says of a file that is being written, or that it does not know, is not always so.
// https://bugs.gnu.org/15574
// https://github.com/openzfs/zfs/issues/15526
// https://github.com/coreutils/coreutils/issues/68
#[test]
fn zfs_15526_what_is_called_a_hole_comes_over_all_the_same() {
    for (name, rules) in nonsense() {
        for sparse in [Sparse::Auto, Sparse::Always, Sparse::Never] {
            for write_mode in WRITE_MODES {
                for elsewhere in [false, true] {
                    let Some(bed) = Bed::mount() else { return };
                    bed.add("it", rules, content());
                    let from = Place::bed(&bed);
                    let to = if elsewhere {
                        Place::disk()
                    } else {
                        Place::bed(&bed)
                    };
                    let options = Options {
                        sparse,
                        ..by(write_mode)
                    };
                    let what = format!("{name}, {sparse:?}, {write_mode:?}, to {}", to.name);
                    for round in ["new", "old"] {
                        let done = copy(from.source("it"), to.destination("to"), &options);
                        let done = done.unwrap_or_else(|error| panic!("{what}, {round}: {error}"));
                        assert_same(&to.read("to"), &content(), &what);
                        assert_eq!(done.bytes, content().len() as u64, "{what}");
                        assert_bounded(&bed, 400, &what);
                        to.write("to", old(2_000_000));
                    }
                }
            }
        }
    }
}

// A hole where an old file has bytes is zeros afterwards, also where holes cannot be made.
// https://github.com/RsyncProject/rsync/issues/114
// https://github.com/RsyncProject/rsync/issues/53
#[test]
fn rsync_114_no_old_byte_shows_where_holes_cannot_be_made() {
    for (what, rules) in [("can", faults::GOOD), ("cannot", faults::ALLOCATE_REFUSED)] {
        for sparse in [Sparse::Auto, Sparse::Always] {
            let Some(bed) = Bed::mount() else { return };
            let place = Place::bed(&bed);
            bed.add("it", faults::HOLES, content());
            bed.add("to", rules, old(2_000_000));
            let options = Options {
                sparse,
                ..Options::default()
            };
            copy(place.source("it"), place.destination("to"), &options).unwrap();
            assert_same(&bed.content("to"), &content(), what);
        }
    }
}
