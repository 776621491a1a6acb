//! Ends that have no extended attributes, or do not give or take them: no reason not to copy, unless
//! they are required.

use std::path::Path;

use copyist_bed::faults::{self, Rule, When};
use copyist_bed::{Bed, Call};
use copyist_engine::{Cause, Errno, Grants, Options, Preserve, Side, WriteMode};
use rustix::fs::XattrFlags;

use super::support::{Place, WRITE_MODES, assert_same, by, copy, old, pattern};

const NAME: &str = "user.copyist";

fn set(path: &Path) {
    rustix::fs::setxattr(path, NAME, b"value", XattrFlags::empty()).unwrap();
}

/// What the attributes are asked for, with a wish and with a demand.
fn wished(write_mode: WriteMode) -> Options {
    Options {
        preserve: Preserve::XATTRS,
        ..by(write_mode)
    }
}

fn required(write_mode: WriteMode, granted: bool) -> Options {
    Options {
        require: Preserve::XATTRS,
        grants: Grants {
            privileged_xattrs: granted,
            ..Grants::default()
        },
        ..by(write_mode)
    }
}

// https://github.com/tarka/xcp/issues/26, https://github.com/moby/moby/issues/38155,
// https://bugs.python.org/issue24564, https://bugs.python.org/issue36850: the copy failed where the
// destination takes none.
#[test]
fn xcp_26_a_destination_without_attributes_gets_the_bytes() {
    let invalid: &[Rule] = &[Rule::Fails(Call::SetAttribute, Errno::INVAL, When::Always)];
    let forbidden: &[Rule] = &[Rule::Fails(Call::SetAttribute, Errno::PERM, When::Always)];
    for (rules, errno) in [
        (faults::ATTRIBUTES_REFUSED, Errno::OPNOTSUPP),
        (faults::ATTRIBUTES_FULL, Errno::NOSPC),
        (invalid, Errno::INVAL),
        (forbidden, Errno::PERM),
    ] {
        for (write_mode, existing) in WRITE_MODES
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)])
        {
            let Some(bed) = Bed::mount() else { return };
            let place = Place::bed(&bed);
            bed.add("it", faults::GOOD, pattern(10_000));
            set(&place.path("it"));
            if existing {
                bed.add("to", rules, old(20_000));
            }
            bed.expect_any(rules);
            let what = format!("{errno}, {write_mode:?}, existing: {existing}");
            let asked = || bed.calls(Call::ListAttributes) + bed.calls(Call::SetAttribute);
            let before = asked();
            let run =
                |options: &Options| copy(place.source("it"), place.destination("to"), options);

            let done = run(&by(write_mode)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(done.lost.is_empty(), "{what}: nobody asked for them");
            assert_eq!(asked(), before, "{what}: nobody asked for them");
            let done = run(&wished(write_mode)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(done.lost, Preserve::XATTRS, "{what}");
            assert_same(&bed.content("to"), &pattern(10_000), &what);

            let new = place.destination("new");
            let error = copy(place.source("it"), new, &required(write_mode, false)).unwrap_err();
            assert_eq!(error.cause, Cause::Io(Side::Destination, errno), "{what}");
            assert_eq!(bed.names(), ["it", "to"], "{what}");
        }
    }
}

// https://github.com/containerd/continuity/issues/244, https://bugs.python.org/issue24564: the copy
// failed where the source has none, or does not give them.
#[test]
fn continuity_244_a_source_that_gives_no_attributes_gives_its_bytes() {
    for call in [Call::ListAttributes, Call::GetAttribute] {
        for (errno, has_none) in [
            (Errno::OPNOTSUPP, call == Call::ListAttributes),
            (Errno::INVAL, false),
            (Errno::ACCESS, false),
            (Errno::IO, false),
        ] {
            for write_mode in WRITE_MODES {
                let Some(bed) = Bed::mount() else { return };
                let (from, to) = (Place::bed(&bed), Place::disk());
                bed.add("it", faults::GOOD, pattern(10_000));
                set(&from.path("it"));
                bed.obey("it", &[Rule::Fails(call, errno, When::Always)]);
                let what = format!("{call:?} answers {errno}, {write_mode:?}");
                let run = |name: &str, options: &Options| {
                    copy(from.source("it"), to.destination(name), options)
                };
                for options in [by(write_mode), wished(write_mode)] {
                    let done = run("to", &options).unwrap_or_else(|e| panic!("{what}: {e}"));
                    let lost = options.preserve.contains(Preserve::XATTRS) && !has_none;
                    assert_eq!(!done.lost.is_empty(), lost, "{what}");
                    assert_same(&to.read("to"), &pattern(10_000), &what);
                }
                for granted in [false, true] {
                    let answer = run("new", &required(write_mode, granted));
                    if has_none {
                        answer.unwrap_or_else(|error| panic!("{what}: {error}"));
                        std::fs::remove_file(to.path("new")).unwrap();
                    } else {
                        let cause = answer.unwrap_err().cause;
                        assert_eq!(cause, Cause::Io(Side::Source, errno), "{what}, {granted}");
                    }
                    assert_eq!(to.names(), ["to"], "{what}");
                }
            }
        }
    }
}
