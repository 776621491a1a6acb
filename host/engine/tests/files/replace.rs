//! `replace`: the old file or the new one, never a mixture, and nothing left beside them.

use std::fs;
use std::os::unix::fs::symlink;

use copyist_engine::{
    Cause, Destination, Environment, Errno, Existing, Mechanism, Options, Side, Step, Transfer,
    Unsupported, Window, WriteMode,
};
use rustix::fs::FlockOperation;

use crate::support::hooked::{Call, hooked, without_unnamed_files};
use crate::support::{
    Place, assert_same, at, beside, copy, done, drive, failed, follow, fresh, in_pieces, other,
    pattern, places, refusal, replacing, request,
};

/// Replacing in several steps.
fn in_steps() -> Options {
    Options {
        write_mode: WriteMode::Replace,
        ..in_pieces(Mechanism::ReadWrite, 4096)
    }
}

/// Names in the directory that the copy made for itself.
fn staged(place: &Place) -> Vec<String> {
    let mut names = place.names();
    names.retain(|name| name.starts_with(".copyist-"));
    names
}

#[test]
fn hard_links_to_the_old_file_keep_the_old_bytes() {
    for place in places() {
        let old = other(300_000);
        place.write("from", pattern(100_000));
        place.set_mode("from", 0o777);
        for mode in [0o640, 0o600, 0o755, 0o444] {
            place.write("to", &old);
            place.set_mode("to", mode);
            fs::hard_link(place.path("to"), place.path("link")).unwrap();
            let before = place.inode("to");
            copy(place.source("from"), place.destination("to"), &replacing()).unwrap();
            assert_same(&place.read("to"), &pattern(100_000), "to");
            assert_same(&place.read("link"), &old, "link");
            assert_eq!(place.inode("link"), before);
            assert_ne!(place.inode("to"), before);
            assert_eq!(place.mode("to"), mode);
            place.assert_names(&["from", "link", "to"], "no temporary is left");
            fs::remove_file(place.path("link")).unwrap();
            fs::remove_file(place.path("to")).unwrap();
        }
    }
}

/// In how many steps of a copy over it the file is neither the old one nor the new one.
fn mixtures(place: &Place, environment: Environment, options: &Options) -> usize {
    let contents = [pattern(40_000), other(50_000)];
    place.write("from", &contents[0]);
    place.write("to", &contents[1]);
    let request = request(place.source("from"), place.destination("to"), options);
    let mut transfer = Transfer::new(environment, request);
    let mut mixtures = 0;
    done(drive(&mut transfer, |_| {
        mixtures += usize::from(!contents.contains(&place.read("to")));
    }));
    assert_same(&place.read("to"), &contents[0], "it is replaced");
    mixtures
}

#[test]
fn a_reader_sees_the_old_file_or_the_new_one() {
    for place in places() {
        for environment in [fresh(), without_unnamed_files()] {
            assert_eq!(mixtures(&place, environment.clone(), &in_steps()), 0);

            // And one that opens it whenever it likes.
            let contents = [pattern(300_000), other(700_000)];
            place.write("one", &contents[0]);
            place.write("two", &contents[1]);
            place.write("to", &contents[0]);
            let look = || assert!(contents.contains(&place.read("to")), "a mixture");
            beside(look, || {
                for name in ["two", "one"].repeat(30) {
                    let request =
                        request(place.source(name), place.destination("to"), &replacing());
                    let cancel = copyist_engine::Cancel::new();
                    copyist_engine::copy_in(&environment, request, &cancel).unwrap();
                }
            });
        }
        // In place there is a mixture to be seen.
        let in_place = in_pieces(Mechanism::ReadWrite, 4096);
        assert_ne!(mixtures(&place, fresh(), &in_place), 0);
    }
}

#[test]
fn a_link_as_destination_is_replaced_itself_or_what_it_leads_to() {
    for environment in [fresh(), without_unnamed_files()] {
        let place = Place::disk();
        fs::create_dir(place.path("sub")).unwrap();
        place.write("from", pattern(10_000));
        place.write("sub/target", other(20_000));
        symlink("sub/target", place.path("link")).unwrap();
        symlink("link", place.path("chain")).unwrap();
        symlink("./../sub/./target", place.path("sub/back")).unwrap();
        let run = |destination| {
            let request = request(place.source("from"), destination, &replacing());
            copyist_engine::copy_in(&environment, request, &copyist_engine::Cancel::new())
        };
        for path in ["link", "chain", "sub/back", "sub/../chain"] {
            place.write("sub/target", other(20_000));
            let before = place.inode("sub/target");
            run(Destination::Path(follow(&place.base, path))).unwrap();
            assert_same(&place.read("sub/target"), &pattern(10_000), path);
            assert_ne!(place.inode("sub/target"), before, "{path}");
            assert!(place.path("link").is_symlink(), "{path}");
            place.assert_names(&["chain", "from", "link", "sub"], path);
            assert_eq!(
                crate::support::place::names_in(&place.path("sub")),
                ["back", "target"],
                "{path}"
            );
        }
        // Without follow it is the name that is replaced.
        place.write("sub/target", other(20_000));
        run(Destination::Path(at(&place.base, "link"))).unwrap();
        assert!(!place.path("link").is_symlink());
        assert_same(&place.read("link"), &pattern(10_000), "link");
        assert_same(&place.read("sub/target"), &other(20_000), "target");
    }
}

#[test]
fn links_that_lead_round_or_nowhere_are_refused() {
    let place = Place::disk();
    place.write("from", pattern(10));
    symlink("round", place.path("round")).unwrap();
    symlink("gone", place.path("nowhere")).unwrap();
    symlink("nowhere", place.path("on")).unwrap();
    symlink("gone/file", place.path("parent")).unwrap();
    let names = place.names();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for (path, errno) in [
        ("round", Errno::LOOP),
        ("nowhere", Errno::NOENT),
        ("on", Errno::NOENT),
        ("parent", Errno::NOENT),
    ] {
        let destination = Destination::Path(follow(&place.base, path));
        assert_eq!(
            refusal(place.source("from"), destination, &replacing()),
            Cause::Io(Side::Destination, errno),
            "{path}"
        );
        place.assert_names(&names, path);
    }
    // What exists is a name, wherever it leads: it is left, or refused.
    for write_mode in crate::support::WRITE_MODES {
        let options = |existing| Options {
            existing,
            write_mode,
            ..Options::default()
        };
        let destination = || Destination::Path(follow(&place.base, "nowhere"));
        assert_eq!(
            refusal(
                place.source("from"),
                destination(),
                &options(Existing::Refuse)
            ),
            Cause::Io(Side::Destination, Errno::EXIST),
            "{write_mode:?}"
        );
        let summary = copy(
            place.source("from"),
            destination(),
            &options(Existing::Skip),
        )
        .unwrap();
        assert_eq!(summary.skipped, 1, "{write_mode:?}");
        place.assert_names(&names, "skipped");
    }
}

#[test]
fn where_there_are_no_unnamed_files_a_named_one_is_locked_meanwhile() {
    for place in places() {
        place.write("from", pattern(40_000));
        place.write("old", other(50_000));
        for to in ["old", "new"] {
            let request = request(place.source("from"), place.destination(to), &in_steps());
            let mut transfer = Transfer::new(without_unnamed_files(), request);
            let mut seen = 0;
            let step = drive(&mut transfer, |step| {
                let names = staged(&place);
                let Some(name) = names.first() else {
                    return;
                };
                assert_eq!(names.len(), 1);
                // After the last write it is closed and published within one step.
                seen += 1;
                let open = place.open(name);
                assert_eq!(
                    rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive),
                    Err(Errno::WOULDBLOCK),
                    "{step:?}"
                );
            });
            assert_eq!(done(step).bytes, 40_000);
            assert!(seen > 10, "it was seen in {seen} steps only");
            assert_same(&place.read(to), &pattern(40_000), to);
            assert_eq!(staged(&place), [""; 0]);
        }
    }
}

type Make = fn() -> Environment;

#[test]
fn what_was_staged_is_gone_after_a_failure() {
    let environments = [("unnamed", fresh as Make), ("named", without_unnamed_files)];
    for place in places() {
        let old = other(50_000);
        place.write("from", pattern(40_000));
        place.write("old", &old);
        for (kind, environment) in environments {
            for to in ["old", "new"] {
                let transfer = || {
                    let request = request(place.source("from"), place.destination(to), &in_steps());
                    Transfer::new(environment(), request)
                };
                let check = |how: &str| {
                    let what = format!("{kind}, {to}, {how}, on {}", place.name);
                    place.assert_names(&["from", "old"], &what);
                    assert_same(&place.read("old"), &old, &what);
                };
                // Cancelled or dropped after every number of steps.
                for steps in 0.. {
                    let mut cancelled = transfer();
                    let mut dropped = transfer();
                    for _ in 0..steps {
                        cancelled.step(u64::MAX);
                        dropped.step(u64::MAX);
                    }
                    drop(dropped);
                    let step = cancelled.cancel();
                    if place.read("old") != old || place.exists("new") {
                        // Once it has its name, it is too late for a cancel, and it is no failure.
                        assert_eq!(done(step).bytes, 40_000);
                        assert_same(&place.read(to), &pattern(40_000), kind);
                        fs::remove_file(place.path("new")).ok();
                        place.write("old", &old);
                        break;
                    }
                    assert_eq!(failed(step).cause, Cause::Cancelled);
                    check(&format!("{steps} steps"));
                }
            }
        }
        // A name that cannot be given.
        for unnamed in [true, false] {
            let environment = hooked(move |call| match call {
                Call::Publish => Some(Errno::IO),
                Call::Open(_, flags) if !unnamed && flags.contains(rustix::fs::OFlags::TMPFILE) => {
                    Some(Errno::OPNOTSUPP)
                }
                _ => None,
            });
            for to in ["old", "new"] {
                let request = request(place.source("from"), place.destination(to), &replacing());
                let mut transfer = Transfer::new(environment.clone(), request);
                let error = failed(drive(&mut transfer, |_| {}));
                assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::IO));
                place.assert_names(&["from", "old"], to);
                assert_same(&place.read("old"), &old, to);
            }
        }
    }
}

#[test]
fn it_is_never_done_in_place_instead() {
    let place = Place::disk();
    place.write("from", pattern(10_000));
    place.write("to", other(20_000));
    // Neither an unnamed file nor a named one can be made.
    let environment = hooked(|call| match call {
        Call::Open(_, flags) if flags.intersects(rustix::fs::OFlags::CREATE) => Some(Errno::ACCESS),
        Call::Open(_, flags) if flags.contains(rustix::fs::OFlags::TMPFILE) => Some(Errno::ACCESS),
        _ => None,
    });
    let request = request(place.source("from"), place.destination("to"), &replacing());
    let mut transfer = Transfer::new(environment, request);
    let error = failed(drive(&mut transfer, |_| {}));
    assert_eq!(error.cause, Cause::Io(Side::Destination, Errno::ACCESS));
    assert_same(&place.read("to"), &other(20_000), "to");

    // Nor in part.
    let options = Options {
        window: Some(Window {
            source_offset: 0,
            length: Some(10),
            destination_offset: 0,
        }),
        ..replacing()
    };
    assert_eq!(
        refusal(place.source("from"), place.destination("to"), &options),
        Cause::Unsupported(Unsupported::Replace)
    );
    assert_same(&place.read("to"), &other(20_000), "to");
    // A new file may be made of a part.
    copy(place.source("from"), place.destination("new"), &options).unwrap();
    assert_same(&place.read("new"), &pattern(10), "new");
}

#[test]
fn a_file_that_appears_meanwhile_is_treated_as_if_it_had_been_there() {
    for environment in [fresh(), without_unnamed_files()] {
        for (existing, outcome) in [
            (Existing::Write, Ok((1, 0))),
            (Existing::Skip, Ok((0, 1))),
            (Existing::Update, Ok((0, 1))),
            (
                Existing::Refuse,
                Err(Cause::Io(Side::Destination, Errno::EXIST)),
            ),
        ] {
            let place = Place::disk();
            place.write("from", pattern(20_000));
            let options = Options {
                existing,
                ..in_steps()
            };
            let request = request(place.source("from"), place.destination("to"), &options);
            let mut transfer = Transfer::new(environment.clone(), request);
            let mut appeared = false;
            let step = drive(&mut transfer, |step| {
                if !appeared && matches!(step, Step::Moved(1..)) {
                    appeared = true;
                    place.write("to", other(100));
                }
            });
            assert!(appeared);
            match (step, outcome) {
                (Step::Done(summary), Ok(counts)) => {
                    assert_eq!((summary.files, summary.skipped), counts);
                }
                (Step::Failed(error), Err(cause)) => assert_eq!(error.cause, cause),
                (step, outcome) => panic!("{existing:?}: {step:?} instead of {outcome:?}"),
            }
            let expected = match existing {
                Existing::Write => pattern(20_000),
                _ => other(100),
            };
            assert_same(&place.read("to"), &expected, &format!("{existing:?}"));
            place.assert_names(&["from", "to"], "no temporary is left");
        }
    }
}
