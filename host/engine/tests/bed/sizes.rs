//! Sizes that lie, and calls that move less than they were asked to.

use copyist_bed::faults::{self, Rule};
use copyist_bed::{Bed, Call};
use copyist_engine::{Options, Reflink};

use super::support::{Place, WRITE_MODES, assert_bounded, assert_same, by, copy, old, pattern};

/// Copies a file with this fault to the same bed and to another file system, new and over an old
/// file that is longer, and wants every byte.
fn comes_over_whole(name: &str, rules: &[Rule], length: usize, moves: u64) {
    let content = pattern(length);
    for elsewhere in [false, true] {
        for write_mode in WRITE_MODES {
            for existing in [false, true] {
                let Some(bed) = Bed::mount() else { return };
                bed.add("it", rules, content.clone());
                let from = Place::bed(&bed);
                let to = if elsewhere {
                    Place::disk()
                } else {
                    Place::bed(&bed)
                };
                if existing {
                    to.write("to", old(length + 50_000));
                }
                let what = format!("{name} to {}, {write_mode:?}, {existing}", to.name);
                let done = copy(from.source("it"), to.destination("to"), &by(write_mode));
                let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_same(&to.read("to"), &content, &what);
                assert_eq!(done.bytes, length as u64, "{what}");
                let twice = if elsewhere { 1 } else { 2 };
                assert_bounded(&bed, moves * twice, &what);
            }
        }
    }
}

// The kernel's copiers say 0 at once, since the size is the end to them.
// https://github.com/golang/go/issues/44272
// https://github.com/tarka/xcp/issues/24
// https://github.com/gentoo/portage/issues/778
// https://github.com/openclaw/fs-safe/issues/306
#[test]
fn go_44272_a_file_that_says_it_is_empty_comes_over_whole() {
    comes_over_whole("zero", faults::ZERO, 10_000, 10);
    comes_over_whole("zero", faults::ZERO, 300_000, 40);
}

// https://github.com/oven-sh/bun/issues/41677
#[test]
fn bun_41677_a_size_beyond_the_data_leaves_no_tail() {
    comes_over_whole("larger", faults::LARGER, 300_000, 40);
}

#[test]
fn data_past_the_size_comes_over_too() {
    comes_over_whole("past the size", faults::PAST_SIZE, 300_000, 40);
}

// A read that gives less than was asked for is not the end.
// https://github.com/nodejs/node/issues/50437
#[test]
fn node_50437_short_reads_are_not_the_end() {
    comes_over_whole("one byte a read", faults::READS_ONE_BYTE, 3000, 3100);
    comes_over_whole("4 KiB a read", faults::READS_4K, 300_000, 200);
}

// https://github.com/nodejs/node/issues/50437
#[test]
fn node_50437_nor_are_they_where_the_kernel_does_not_copy() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::READS_4K, pattern(300_000));
    let (from, to) = (Place::bed(&bed), Place::disk());
    let options = Options {
        reflink: Reflink::Never,
        ..Options::default()
    };
    copy(from.source("it"), to.destination("to"), &options).unwrap();
    assert_same(&to.read("to"), &pattern(300_000), "by reads and writes");
    assert!(bed.calls_of("it", Call::Read) >= 300_000 / 4096);
}

// What a write did not take is written by the next one.
// https://github.com/rpm-software-management/librepo/issues/398
// https://github.com/bytecodealliance/wasmtime/issues/8340
#[test]
fn librepo_398_short_writes_lose_nothing() {
    let table = [
        ("one byte a write", faults::WRITES_ONE_BYTE, 3000, 3100),
        ("4 KiB a write", faults::WRITES_4K, 300_000, 200),
    ];
    for (name, rules, length, moves) in table {
        for write_mode in WRITE_MODES {
            let Some(bed) = Bed::mount() else { return };
            bed.expect_any(rules);
            let (from, to) = (Place::disk(), Place::bed(&bed));
            from.write("it", pattern(length));
            let done = copy(from.source("it"), to.destination("to"), &by(write_mode)).unwrap();
            assert_same(&bed.content("to"), &pattern(length), name);
            assert_eq!(done.bytes, length as u64, "{name}");
            assert_bounded(&bed, moves, name);
        }
    }
}
