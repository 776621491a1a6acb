//! Sources that change while they are copied.

use copyist_bed::Bed;
use copyist_bed::faults::{self, Rule};

use super::support::{Place, WRITE_MODES, assert_bounded, assert_same, by, copy, pattern};

const LENGTH: usize = 3 << 20;

/// Copies a file that has this fault, to the same bed and elsewhere; `end` says what it is in the
/// end.
fn ends(name: &str, rules: &[Rule], end: impl Fn(usize) -> Vec<u8>) {
    for write_mode in WRITE_MODES {
        for elsewhere in [false, true] {
            let Some(bed) = Bed::mount() else { return };
            bed.add("it", rules, pattern(LENGTH));
            let from = Place::bed(&bed);
            let to = if elsewhere {
                Place::disk()
            } else {
                Place::bed(&bed)
            };
            let what = format!("{name}, to {}, {write_mode:?}", to.name);
            let done = copy(from.source("it"), to.destination("to"), &by(write_mode));
            let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
            let copied = to.read("to");
            assert_same(&copied, &end(copied.len()), &what);
            assert_eq!(done.bytes, copied.len() as u64, "{what}");
            assert!(done.changed, "{what}: it says that the source changed");
            assert_bounded(&bed, 200, &what);
        }
    }
}

// The size from the start is no reason to wait for more.
// https://github.com/boostorg/filesystem/issues/292
// https://github.com/uutils/coreutils/issues/12648
#[test]
fn boost_292_a_source_that_shrinks_ends_where_it_ends() {
    // What was taken before it shrank stays, and nothing is made up.
    let prefix = |length: usize| {
        assert!(length < LENGTH, "the rest is gone");
        pattern(length)
    };
    ends("cut to a page", faults::SHRINKS, prefix);
    ends("emptied", faults::EMPTIES, prefix);
}

#[test]
fn a_source_that_grows_is_copied_to_its_end() {
    ends("grown", faults::GROWS, |_| {
        let mut end = pattern(LENGTH);
        end.resize(LENGTH + 10_000, b'+');
        end
    });
}
