//! What is synced, and when.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use copyist_engine::{
    Cancel, Cause, Destination, Durability, Environment, Errno, Options, Preserve, Side, Summary,
    WriteMode,
};
use rustix::fs::OFlags;

use crate::support::hooked::{Call, hooked};
use crate::support::{
    Place, WRITE_MODES, assert_same, file, follow, other, pattern, places, request,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// This inode was put on stable storage, with these permission bits.
    Synced(u64, u32),
    Published,
}

type Events = Arc<Mutex<Vec<Event>>>;

/// A system layer that writes down what was synced and published.
fn recording(unnamed: bool, fails: Option<(usize, Errno)>) -> (Environment, Events) {
    let events = Events::default();
    let recorded = events.clone();
    let sync = |fd: BorrowedFd<'_>| {
        let stat = rustix::fs::fstat(fd).unwrap();
        Event::Synced(stat.st_ino, stat.st_mode & 0o777)
    };
    let environment = hooked(move |call| {
        let mut events = events.lock().unwrap();
        match call {
            Call::Open(_, flags) if !unnamed && flags.contains(OFlags::TMPFILE) => {
                return Some(Errno::OPNOTSUPP);
            }
            Call::Sync(fd) => {
                let count = events.iter().filter(|e| **e != Event::Published).count();
                events.push(sync(fd));
                return fails.filter(|(at, _)| *at == count).map(|(_, errno)| errno);
            }
            Call::Publish => events.push(Event::Published),
            _ => {}
        }
        None
    });
    (environment, recorded)
}

fn run(
    environment: &Environment,
    place: &Place,
    destination: Destination,
    options: &Options,
) -> Result<Summary, copyist_engine::Error> {
    let request = request(place.source("from"), destination, options);
    copyist_engine::copy_in(environment, request, &Cancel::new())
}

fn durable(write_mode: WriteMode) -> Options {
    Options {
        write_mode,
        durability: Durability::Each,
        ..Options::default()
    }
}

/// Of a name, without following it.
fn inode(place: &Place, name: &str) -> u64 {
    place.inode(name)
}

fn taken(events: &Events) -> Vec<Event> {
    std::mem::take(&mut *events.lock().unwrap())
}

#[test]
fn the_file_is_synced_before_it_has_its_name_and_its_directory_after() {
    for place in places() {
        place.write("from", pattern(10_000));
        place.set_mode("from", 0o751);
        fs::create_dir(place.path("sub")).unwrap();
        for (unnamed, durability) in [
            (true, Durability::Each),
            (false, Durability::Each),
            (true, Durability::End),
        ] {
            let (environment, events) = recording(unnamed, None);
            for (path, directory) in [
                ("to", ""),
                ("sub/to", "sub"),
                ("sub/../sub/./to", "sub"),
                ("./sub/../to", ""),
            ] {
                for existing in [false, true] {
                    for write_mode in WRITE_MODES {
                        let _ = fs::remove_file(place.path(path));
                        if existing {
                            place.write(path, other(20_000));
                        }
                        let options = Options {
                            durability,
                            preserve: Preserve::MODE,
                            ..durable(write_mode)
                        };
                        run(&environment, &place, place.destination(path), &options).unwrap();
                        // With its mode, which is synced with it.
                        let file = Event::Synced(inode(&place, path), 0o751);
                        let mode = place.mode(directory);
                        let directory = Event::Synced(inode(&place, directory), mode);
                        let mut expected = vec![file];
                        if write_mode == WriteMode::Replace {
                            // An unnamed file gets a name first where it then replaces another.
                            let names = 1 + usize::from(unnamed && existing);
                            expected.extend(vec![Event::Published; names]);
                        }
                        // In place of an old file no name is made.
                        if write_mode == WriteMode::Replace || !existing {
                            expected.push(directory);
                        }
                        let what = format!("{path}, existing: {existing}, {options:?}");
                        assert_eq!(taken(&events), expected, "{what}");
                        assert_same(&place.read(path), &pattern(10_000), &what);
                    }
                }
            }
        }
    }
}

// The name is in the directory that the link leads to, not in that of the link.
#[test]
fn where_a_link_was_followed_the_directory_that_it_leads_to_is_synced() {
    let place = Place::disk();
    place.write("from", pattern(10_000));
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/to", other(20_000));
    symlink("sub/to", place.path("link")).unwrap();
    for unnamed in [true, false] {
        let (environment, events) = recording(unnamed, None);
        let destination = Destination::Path(follow(&place.base, "link"));
        run(
            &environment,
            &place,
            destination,
            &durable(WriteMode::Replace),
        )
        .unwrap();
        let events = taken(&events);
        let mode = place.mode("sub");
        assert_eq!(
            events.last(),
            Some(&Event::Synced(inode(&place, "sub"), mode)),
            "{events:?}"
        );
    }
}

#[test]
fn a_descriptors_file_is_synced_and_no_directory() {
    let place = Place::disk();
    place.write("from", pattern(10_000));
    let to = place.open_to_write("to");
    let (environment, events) = recording(true, None);
    let options = durable(WriteMode::InPlace);
    run(&environment, &place, file(&to), &options).unwrap();
    let expected = Event::Synced(inode(&place, "to"), place.mode("to"));
    assert_eq!(taken(&events), [expected]);
}

#[test]
fn nothing_is_synced_that_need_not_be() {
    let place = Place::disk();
    place.write("from", pattern(10_000));
    let (environment, events) = recording(true, None);
    for write_mode in WRITE_MODES {
        let options = Options {
            write_mode,
            ..Options::default()
        };
        run(&environment, &place, place.destination("to"), &options).unwrap();
        let events = taken(&events);
        assert!(
            events.iter().all(|event| *event == Event::Published),
            "{events:?}"
        );
    }
    // A copy that leaves the destination as it is has nothing to sync.
    let options = Options {
        existing: copyist_engine::Existing::Skip,
        ..durable(WriteMode::InPlace)
    };
    run(&environment, &place, place.destination("to"), &options).unwrap();
    assert_eq!(taken(&events), []);
}

#[test]
fn what_cannot_be_synced_is_no_success() {
    let place = Place::disk();
    let old = other(20_000);
    place.write("from", pattern(10_000));
    place.write("old", &old);
    for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
        for write_mode in WRITE_MODES {
            let (environment, _) = recording(true, Some((0, errno)));
            let options = durable(write_mode);
            let to_new = run(&environment, &place, place.destination("new"), &options);
            let cause = Cause::Io(Side::Destination, errno);
            assert_eq!(to_new.unwrap_err().cause, cause);
            place.assert_names(&["from", "old"], "the new file is gone");
            if write_mode == WriteMode::Replace {
                let (environment, _) = recording(true, Some((0, errno)));
                let over = run(&environment, &place, place.destination("old"), &options);
                assert_eq!(over.unwrap_err().cause, cause);
                assert_same(&place.read("old"), &old, "the old file stays");
            }
            // The directory: the file has its name by then.
            let (environment, _) = recording(true, Some((1, errno)));
            let answer = run(&environment, &place, place.destination("new"), &options);
            assert_eq!(answer.unwrap_err().cause, cause);
            assert_same(&place.read("new"), &pattern(10_000), "new");
            fs::remove_file(place.path("new")).unwrap();
        }
    }
    // Some file systems cannot sync a directory, and say so.
    let (environment, _) = recording(true, Some((1, Errno::INVAL)));
    let options = durable(WriteMode::Replace);
    run(&environment, &place, place.destination("new"), &options).unwrap();
}
