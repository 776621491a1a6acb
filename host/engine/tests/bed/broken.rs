//! Media that break, disks and quotas that are full: what is left, and what is not.

use std::thread;

use copyist_bed::faults::{self, Rule, When};
use copyist_bed::{Bed, Call};
use copyist_engine::{Cause, Durability, Errno, Error, Options, Preserve, Side, WriteMode};

use super::support::{
    Place, WRITE_MODES, assert_bounded, assert_partial, assert_same, by, copy, old, pattern,
};

const LENGTH: usize = 3 << 20;

#[track_caller]
fn failed(
    result: Result<copyist_engine::Summary, Error>,
    side: Side,
    errno: Errno,
    what: &str,
) -> u64 {
    match result {
        Ok(done) => panic!("{what}: it was copied: {done:?}"),
        Err(error) => {
            assert_eq!(error.cause, Cause::Io(side, errno), "{what}: {error}");
            error.done.bytes
        }
    }
}

/// From a bed, or from another file system.
fn sources(bed: &Bed, content: &[u8]) -> [Place; 2] {
    bed.add("it", faults::GOOD, content);
    let disk = Place::disk();
    disk.write("it", content);
    [Place::bed(bed), disk]
}

// What fails in the middle leaves no file of which half is missing.
// https://github.com/oven-sh/bun/issues/41798
#[test]
fn bun_41798_a_new_file_that_cannot_be_finished_is_gone() {
    for write_mode in WRITE_MODES {
        for number in 0..2 {
            let Some(bed) = Bed::mount() else { return };
            let from = &sources(&bed, &pattern(LENGTH))[number];
            bed.expect_any(faults::ENOSPC_AT_1M);
            let to = Place::bed(&bed);
            let what = format!("a full disk, from {}, {write_mode:?}", from.name);
            let result = copy(from.source("it"), to.destination("to"), &by(write_mode));
            let copied = failed(result, Side::Destination, Errno::NOSPC, &what);
            assert!(copied <= 1 << 20, "{what}: {copied}");
            assert_eq!(bed.names(), ["it"], "{what}");
            assert_bounded(&bed, 100, &what);
        }
        for elsewhere in [false, true] {
            let Some(bed) = Bed::mount() else { return };
            bed.add("it", faults::EIO_AT_64K, pattern(LENGTH));
            let from = Place::bed(&bed);
            let to = if elsewhere {
                Place::disk()
            } else {
                Place::bed(&bed)
            };
            let what = format!("a broken medium, to {}, {write_mode:?}", to.name);
            let result = copy(from.source("it"), to.destination("to"), &by(write_mode));
            let copied = failed(result, Side::Source, Errno::IO, &what);
            assert!(copied <= 64 << 10, "{what}: {copied}");
            let left: &[&str] = if elsewhere { &[] } else { &["it"] };
            assert_eq!(to.names(), left, "{what}");
            assert_bounded(&bed, 100, &what);
        }
    }
}

// Written in place, a file has what was counted, and after it what it had: no zeros.
// https://github.com/oven-sh/bun/issues/41798
#[test]
fn bun_41798_a_file_written_in_place_has_what_was_counted() {
    for number in 0..2 {
        let Some(bed) = Bed::mount() else { return };
        let from = &sources(&bed, &pattern(LENGTH))[number];
        bed.add("to", faults::ENOSPC_AT_1M, old(LENGTH + 10));
        let to = Place::bed(&bed);
        let what = format!("a full disk, from {}", from.name);
        let result = copy(
            from.source("it"),
            to.destination("to"),
            &by(WriteMode::InPlace),
        );
        let copied = failed(result, Side::Destination, Errno::NOSPC, &what);
        assert_eq!(copied, 1 << 20, "{what}");
        assert_partial(
            &bed.content("to"),
            &pattern(LENGTH),
            &old(LENGTH + 10),
            copied,
            &what,
        );
    }
    for elsewhere in [false, true] {
        let Some(bed) = Bed::mount() else { return };
        bed.add("it", faults::EIO_AT_64K, pattern(LENGTH));
        let from = Place::bed(&bed);
        let to = if elsewhere {
            Place::disk()
        } else {
            Place::bed(&bed)
        };
        to.write("to", old(LENGTH + 10));
        let what = format!("a broken medium, to {}", to.name);
        let result = copy(
            from.source("it"),
            to.destination("to"),
            &by(WriteMode::InPlace),
        );
        let copied = failed(result, Side::Source, Errno::IO, &what);
        assert_eq!(copied, 64 << 10, "{what}");
        assert_partial(
            &to.read("to"),
            &pattern(LENGTH),
            &old(LENGTH + 10),
            copied,
            &what,
        );
    }
}

// An old file is replaced as a whole or not at all.
// https://github.com/openclaw/fs-safe/issues/302
// https://github.com/oven-sh/bun/issues/41736
#[test]
fn fs_safe_302_a_replaced_file_stays_whatever_breaks() {
    type Break = (&'static str, &'static [Rule], &'static [Rule], Side, Errno);
    let breaks: [Break; 6] = [
        (
            "the source",
            faults::EIO_AT_64K,
            faults::GOOD,
            Side::Source,
            Errno::IO,
        ),
        (
            "the disk",
            faults::GOOD,
            faults::ENOSPC_AT_1M,
            Side::Destination,
            Errno::NOSPC,
        ),
        (
            "the quota",
            faults::GOOD,
            faults::EDQUOT_AT_CLOSE,
            Side::Destination,
            Errno::DQUOT,
        ),
        (
            "the sync",
            faults::GOOD,
            faults::EIO_AT_SYNC,
            Side::Destination,
            Errno::IO,
        ),
        (
            "the rename",
            faults::GOOD,
            faults::RENAME_REFUSED,
            Side::Destination,
            Errno::IO,
        ),
        (
            "the mode",
            faults::GOOD,
            faults::CHMOD_REFUSED,
            Side::Destination,
            Errno::PERM,
        ),
    ];
    for (what, source, staged, side, errno) in breaks {
        let Some(bed) = Bed::mount() else { return };
        let place = Place::bed(&bed);
        bed.add("it", source, pattern(LENGTH));
        bed.add("to", faults::GOOD, old(1000));
        bed.expect_any(staged);
        let options = Options {
            durability: Durability::Each,
            require: Preserve::MODE,
            ..by(WriteMode::Replace)
        };
        let result = copy(place.source("it"), place.destination("to"), &options);
        failed(result, side, errno, what);
        assert_same(&bed.content("to"), &old(1000), what);
        assert_eq!(bed.names(), ["it", "to"], "{what}: no temporary is left");
        assert_bounded(&bed, 100, what);
    }
}

// A write that fails, or that claims success and takes nothing, is not tried for ever.
// https://github.com/libuv/libuv/issues/5151
#[test]
fn libuv_5151_writes_that_do_not_help_are_not_repeated() {
    let table: [(&str, &[Rule], Errno); 2] = [
        ("a full disk", faults::ENOSPC_AT_1M, Errno::NOSPC),
        (
            "writes that take nothing",
            faults::WRITES_NOTHING,
            Errno::IO,
        ),
    ];
    for (what, rules, errno) in table {
        for write_mode in WRITE_MODES {
            let Some(bed) = Bed::mount() else { return };
            bed.expect_any(rules);
            let (from, to) = (Place::disk(), Place::bed(&bed));
            from.write("it", pattern(LENGTH));
            let result = copy(from.source("it"), to.destination("to"), &by(write_mode));
            failed(result, Side::Destination, errno, what);
            assert_eq!(bed.names(), [""; 0], "{what}");
            assert_bounded(&bed, 60, what);
        }
    }
}

// What only close(2) tells is an error.
// https://github.com/pola-rs/polars/issues/21002
// https://github.com/apache/arrow-rs-object-store/issues/661
// https://github.com/llvm/llvm-project/issues/56501
// https://github.com/genealogix/glx/issues/501
// https://github.com/rust-lang/rust/issues/42619
#[test]
fn polars_21002_a_quota_that_close_reports_is_an_error() {
    for write_mode in WRITE_MODES {
        for number in 0..2 {
            let Some(bed) = Bed::mount() else { return };
            let from = &sources(&bed, &pattern(10_000))[number];
            bed.expect_any(faults::EDQUOT_AT_CLOSE);
            let to = Place::bed(&bed);
            let what = format!("from {}, {write_mode:?}", from.name);
            let result = copy(from.source("it"), to.destination("new"), &by(write_mode));
            failed(result, Side::Destination, Errno::DQUOT, &what);
            assert_eq!(bed.names(), ["it"], "{what}: it is removed");
        }
    }
    let Some(bed) = Bed::mount() else { return };
    let [from, _] = sources(&bed, &pattern(10_000));
    bed.add("to", faults::EDQUOT_AT_CLOSE, old(100));
    let result = copy(
        from.source("it"),
        from.destination("to"),
        &by(WriteMode::InPlace),
    );
    failed(result, Side::Destination, Errno::DQUOT, "in place");
    assert_eq!(
        bed.names(),
        ["it", "to"],
        "what was there before is not removed"
    );
}

// What is removed is the file that was made, not what has its name by then.
// https://github.com/pola-rs/polars/issues/21002
#[test]
fn polars_21002_what_took_the_name_meanwhile_is_not_removed() {
    let Some(bed) = Bed::mount() else { return };
    let place = Place::bed(&bed);
    bed.add("it", faults::GOOD, pattern(10_000));
    bed.add("stranger", faults::GOOD, old(7));
    bed.expect(
        "to",
        &[
            Rule::Hangs(Call::Flush),
            Rule::Fails(Call::Flush, Errno::DQUOT, When::Always),
        ],
    );
    thread::scope(|scope| {
        let copying = scope.spawn(|| {
            copy(
                place.source("it"),
                place.destination("to"),
                &Options::default(),
            )
        });
        bed.wait_for_hang("to");
        std::fs::rename(place.path("to"), place.path("moved")).unwrap();
        std::fs::rename(place.path("stranger"), place.path("to")).unwrap();
        bed.release("moved");
        failed(
            copying.join().unwrap(),
            Side::Destination,
            Errno::DQUOT,
            "close",
        );
    });
    assert_eq!(bed.content("to"), old(7));
}

// What only fsync(2) tells is one where somebody asked for it.
// https://github.com/rust-lang/rust/issues/42619
#[test]
fn rust_42619_what_only_a_sync_reports_is_an_error_where_it_is_asked_for() {
    for durability in [Durability::None, Durability::Each, Durability::End] {
        for write_mode in WRITE_MODES {
            let Some(bed) = Bed::mount() else { return };
            let place = Place::bed(&bed);
            bed.add("it", faults::GOOD, pattern(10_000));
            bed.expect_any(faults::EIO_AT_SYNC);
            let options = Options {
                durability,
                ..by(write_mode)
            };
            let what = format!("{durability:?}, {write_mode:?}");
            let result = copy(place.source("it"), place.destination("to"), &options);
            if durability == Durability::None {
                result.unwrap();
                assert_eq!(bed.calls(Call::Sync), 0, "{what}");
            } else {
                failed(result, Side::Destination, Errno::IO, &what);
                assert_eq!(bed.names(), ["it"], "{what}");
            }
        }
    }
}

#[test]
fn a_length_that_cannot_be_cut_is_an_error_and_no_tail_passes_for_the_copy() {
    let Some(bed) = Bed::mount() else { return };
    let place = Place::bed(&bed);
    bed.add("it", faults::GOOD, pattern(10_000));
    bed.add("to", faults::TRUNCATE_REFUSED, old(20_000));
    let result = copy(
        place.source("it"),
        place.destination("to"),
        &by(WriteMode::InPlace),
    );
    failed(result, Side::Destination, Errno::PERM, "in place");
    // A shorter one need not be cut.
    bed.add("to", faults::TRUNCATE_REFUSED, old(5000));
    copy(
        place.source("it"),
        place.destination("to"),
        &by(WriteMode::InPlace),
    )
    .unwrap();
    assert_same(&bed.content("to"), &pattern(10_000), "a shorter one");
}

// https://github.com/libuv/libuv/issues/5053
#[test]
fn libuv_5053_an_attribute_that_is_refused_is_lost_or_an_error_as_was_asked() {
    let table: [(&[Rule], Preserve); 2] = [
        (faults::CHMOD_REFUSED, Preserve::MODE),
        (faults::TIMES_REFUSED, Preserve::TIMESTAMPS),
    ];
    for (rules, attribute) in table {
        for write_mode in WRITE_MODES {
            let Some(bed) = Bed::mount() else { return };
            let place = Place::bed(&bed);
            bed.add("it", faults::GOOD, pattern(10_000));
            bed.expect_any(rules);
            let what = format!("{attribute:?}, {write_mode:?}");
            let wished = Options {
                preserve: attribute,
                ..by(write_mode)
            };
            let done = copy(place.source("it"), place.destination("to"), &wished).unwrap();
            assert_eq!(done.lost, attribute, "{what}");
            let required = Options {
                require: attribute,
                ..by(write_mode)
            };
            let result = copy(place.source("it"), place.destination("new"), &required);
            failed(result, Side::Destination, Errno::PERM, &what);
            assert_eq!(bed.names(), ["it", "to"], "{what}");
        }
    }
}

#[test]
fn a_call_that_would_wait_or_is_interrupted_is_made_again() {
    let sources: [&[Rule]; 3] = [
        faults::READ_EAGAIN_ONCE,
        faults::READ_EINTR,
        faults::OPEN_EINTR_ONCE,
    ];
    let destinations: [&[Rule]; 2] = [faults::WRITE_EAGAIN_ONCE, faults::WRITE_EINTR];
    for rules in sources {
        let Some(bed) = Bed::mount() else { return };
        bed.add("it", rules, pattern(10_000));
        let (from, to) = (Place::bed(&bed), Place::disk());
        let done = copy(from.source("it"), to.destination("to"), &Options::default());
        done.unwrap_or_else(|error| panic!("{rules:?}: {error}"));
        assert_same(&to.read("to"), &pattern(10_000), "from");
        assert_bounded(&bed, 400, "from");
    }
    for rules in destinations {
        let Some(bed) = Bed::mount() else { return };
        bed.expect_any(rules);
        let (from, to) = (Place::disk(), Place::bed(&bed));
        from.write("it", pattern(10_000));
        let done = copy(from.source("it"), to.destination("to"), &Options::default());
        done.unwrap_or_else(|error| panic!("{rules:?}: {error}"));
        assert_same(&bed.content("to"), &pattern(10_000), "to");
        assert_bounded(&bed, 400, "to");
    }
}
