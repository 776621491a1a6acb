//! What a copy carries over beside the bytes: what was asked for, and nothing that WASI would not
//! let the guest make, unless the embedder grants it.

use std::os::unix::fs::MetadataExt;

use copyist_test_artifacts::{TRANSFER_FILE, TRANSFER_PATH};
use copyist_wasmtime::engine::Grants;
use rustix::fs::XattrFlags;

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, is_root, skipped};

const EVERYTHING: &str = "mode,timestamps,ownership,xattrs,acls,links";
/// Not the present, and finer than a microsecond.
const MODIFIED: u64 = 1_234_567_890_123_456_789;

fn guest(place: &Place, words: &[&str]) -> Guest {
    Guest::new(TRANSFER_PATH)
        .dir(place.root(), "w")
        .args(["w/from", "w/to"])
        .args(words.to_vec())
}

fn copy(linking: Linking, place: &Place, words: &[&str]) -> Answer {
    guest(place, words).run(linking).answer()
}

const MODES: [&[&str]; 2] = [&[], &["--replace"]];

#[test]
fn the_mode_is_kept_where_it_is_asked_for() {
    for linking in Linking::BOTH {
        for mode in MODES {
            for exists in [false, true] {
                for ask in ["--preserve=mode", "--require=mode"] {
                    let place = Place::with("from", b"bytes");
                    // More than any umask lets a new file have.
                    place.set_mode("from", 0o777);
                    if exists {
                        place.write("to", b"old");
                        place.set_mode("to", 0o600);
                    }
                    let answer = copy(linking, &place, &[&[ask], mode].concat()).done();
                    assert_eq!(answer.get("lost"), "-");
                    assert_eq!(place.mode("to"), 0o777, "{mode:?} {ask} {exists}");
                }
            }
        }
    }
}

#[test]
fn times_are_kept_where_it_is_asked_for() {
    let nanoseconds = |time: (i64, i64)| time.0 * 1_000_000_000 + time.1;
    for linking in Linking::BOTH {
        for mode in MODES {
            for ask in ["--preserve=timestamps", "--require=timestamps"] {
                let place = Place::with("from", b"bytes");
                place.set_modified("from", MODIFIED);
                let answer = copy(linking, &place, &[&[ask], mode].concat()).done();
                assert_eq!(answer.get("lost"), "-");
                let (from, to) = (place.stat("from"), place.stat("to"));
                assert_eq!(
                    nanoseconds((to.mtime(), to.mtime_nsec())),
                    MODIFIED.cast_signed()
                );
                assert_eq!(
                    (from.mtime(), from.mtime_nsec()),
                    (to.mtime(), to.mtime_nsec())
                );
            }
            let place = Place::with("from", b"bytes");
            place.set_modified("from", MODIFIED);
            copy(linking, &place, mode).done();
            assert_ne!(place.stat("from").mtime(), place.stat("to").mtime());
        }
    }
}

#[test]
fn a_descriptor_keeps_its_mode() {
    for linking in Linking::BOTH {
        let place = Place::with("from", b"bytes");
        place.set_mode("from", 0o777);
        place.write("to", b"old");
        place.set_mode("to", 0o640);
        let run = |ask: &str| {
            Guest::new(TRANSFER_FILE)
                .dir(place.root(), "w")
                .args(["w/from", "w/to", ask])
                .run(linking)
                .answer()
        };
        run("--require=mode").failed("unsupported", "-");
        place.assert_holds("to", b"old");
        assert_eq!(run("--preserve=mode").done().get("lost"), "mode");
        place.assert_holds("to", b"bytes");
        assert_eq!(place.mode("to"), 0o640);
    }
}

/// A guest cannot make such a file by WASI, and so not by a copy.
#[test]
fn special_bits_are_not_carried_over() {
    for linking in Linking::BOTH {
        for special in [0o4000, 0o2000, 0o1000, 0o7000] {
            for mode in MODES {
                let place = Place::with("from", b"bytes");
                place.set_mode("from", special | 0o755);
                if place.mode("from") != special | 0o755 {
                    skipped(&format!("{special:o} cannot be set here"));
                    continue;
                }
                copy(linking, &place, mode).done();
                assert_eq!(place.mode("to") & 0o7000, 0);

                let ask = ["--preserve=mode"];
                let answer = copy(linking, &place, &[&ask, mode].concat()).done();
                assert_eq!(answer.get("lost"), "mode");
                assert_eq!(place.mode("to"), 0o755);

                std::fs::remove_file(place.path("to")).unwrap();
                let ask = ["--require=mode"];
                copy(linking, &place, &[&ask, mode].concat()).failed("denied", "destination");
                assert_eq!(place.names(), ["from"]);
            }
        }
    }
}

#[test]
fn special_bits_are_kept_where_the_embedder_grants_it() {
    for linking in Linking::BOTH {
        for mode in MODES {
            for ask in ["--preserve=mode", "--require=mode"] {
                let place = Place::with("from", b"bytes");
                place.set_mode("from", 0o6755);
                if place.mode("from") != 0o6755 {
                    skipped("setgid cannot be set here");
                    continue;
                }
                let granted = Grants {
                    special_mode_bits: true,
                    ..Grants::default()
                };
                let answer = guest(&place, &[&[ask], mode].concat())
                    .copying(|copying| {
                        copying.grants(granted);
                    })
                    .run(linking)
                    .answer()
                    .done();
                assert_eq!(answer.get("lost"), "-");
                assert_eq!(place.mode("to"), 0o6755);
            }
            // Not without being asked for.
            let place = Place::with("from", b"bytes");
            place.set_mode("from", 0o4755);
            let granted = Grants {
                special_mode_bits: true,
                ..Grants::default()
            };
            guest(&place, mode)
                .copying(|copying| {
                    copying.grants(granted);
                })
                .run(linking)
                .answer()
                .done();
            assert_eq!(place.mode("to") & 0o7000, 0);
        }
    }
}

#[test]
fn what_is_not_granted_is_named_or_denied() {
    for linking in Linking::BOTH {
        for mode in MODES {
            let place = Place::with("from", b"bytes");
            let ask = format!("--preserve={EVERYTHING}");
            let answer = copy(linking, &place, &[&[&*ask], mode].concat()).done();
            assert_eq!(answer.get("lost"), "ownership");
            let place = Place::with("from", b"bytes");
            let words = [&["--require=ownership"], mode].concat();
            copy(linking, &place, &words).failed("denied", "destination");
            assert_eq!(place.names(), ["from"]);
        }
    }
}

#[test]
fn no_owner_and_no_attribute_of_root_is_carried_over() {
    if !is_root("to give files away") {
        return;
    }
    for linking in Linking::BOTH {
        for mode in MODES {
            let place = Place::with("from", b"bytes");
            let from = place.path("from");
            std::os::unix::fs::chown(&from, Some(1234), Some(4321)).unwrap();
            for name in ["user.copyist", "trusted.copyist", "security.copyist"] {
                let set = rustix::fs::setxattr(&from, name, b"value", XattrFlags::empty());
                if let Err(errno) = set {
                    skipped(&format!("{name} cannot be set here: {errno}"));
                }
            }
            // Set last: a change of the owner takes these bits away.
            place.set_mode("from", 0o7777);
            let ask = format!("--preserve={EVERYTHING}");
            let answer = copy(linking, &place, &[&[&*ask], mode].concat()).done();
            assert_eq!(answer.get("lost"), "mode,ownership,xattrs");
            let to = place.stat("to");
            assert_eq!((to.uid(), to.gid()), (0, 0));
            assert_eq!(place.mode("to"), 0o777);
            let mut names = [0_u8; 256];
            let length = rustix::fs::listxattr(place.path("to"), &mut names[..]).unwrap();
            let names = String::from_utf8_lossy(&names[..length]);
            assert!(!names.contains("trusted.copyist"), "{names}");
            assert!(!names.contains("security.copyist"), "{names}");
        }
    }
}
