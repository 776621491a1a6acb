//! What cannot be copied is refused by name, at either end: at once, and with nothing made or changed.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::mpsc;
use std::time::Duration;

use copyist_engine::{
    Cause, Destination, Durability, Errno, Existing, Handle, Options, Preserve, Refused, Side,
    Source, Unsupported, Window,
};
use rustix::fs::{FileType, Mode, OFlags};

use crate::support::{
    Place, WRITE_MODES, assert_same, at, file, follow, handle, other, pattern, refusal, skipped,
};

/// Runs something that must not wait for a peer that never comes. Not a measure of time: without
/// this, a test of it would never end.
fn without_waiting(body: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            body();
            ended.send(()).unwrap();
        })
        .unwrap();
    if end.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it waits");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn make(place: &Place, name: &str, kind: FileType, mode: u32, device: u64) -> bool {
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path(name),
        kind,
        Mode::from_raw_mode(mode),
        device,
    );
    if let Err(errno) = made {
        skipped(&format!("{name}: {errno}"));
    }
    made.is_ok()
}

/// What is not copied, by name, with a regular file to copy over or from.
struct Kinds {
    place: Place,
    _listener: UnixListener,
}

fn kinds() -> Kinds {
    let place = Place::disk();
    place.write("file", pattern(10_000));
    fs::create_dir(place.path("directory")).unwrap();
    symlink("file", place.path("link")).unwrap();
    let listener = UnixListener::bind(place.path("socket")).unwrap();
    Kinds {
        place,
        _listener: listener,
    }
}

fn states(place: &Place) -> Vec<(String, u32, u64, u64)> {
    place
        .names()
        .into_iter()
        .map(|name| {
            let metadata = place.path(&name).symlink_metadata().unwrap();
            (name, metadata.mode(), metadata.ino(), metadata.len())
        })
        .collect()
}

/// Why an end on this side is refused.
type Why = fn(Side) -> Cause;
type Case<'a> = (&'a str, Handle, Why);

fn kind(side: Side, what: Refused) -> Cause {
    Cause::Unsupported(Unsupported::Kind(side, what))
}

#[test]
fn a_source_that_is_no_file_makes_nothing_and_changes_nothing() {
    without_waiting(|| {
        let Kinds { place, .. } = &kinds();
        let from = Errno::NOENT;
        let source = |errno| Cause::Io(Side::Source, errno);
        let cases = [
            ("missing", source(from)),
            ("missing/file", source(Errno::NOENT)),
            ("file/file", source(Errno::NOTDIR)),
            ("directory", source(Errno::ISDIR)),
            ("link", source(Errno::LOOP)),
            ("socket", kind(Side::Source, Refused::SocketName)),
        ];
        let to = Place::disk();
        to.write("old", other(20_000));
        for (name, cause) in cases {
            for write_mode in WRITE_MODES {
                let options = Options {
                    write_mode,
                    ..Options::default()
                };
                for path in ["new", "old"] {
                    let answer = refusal(place.source(name), to.destination(path), &options);
                    assert_eq!(answer, cause, "{name} to {path}, {write_mode:?}");
                }
            }
            let descriptor = file(&to.open_to_write("old"));
            let answer = refusal(place.source(name), descriptor, &Options::default());
            assert_eq!(answer, cause, "{name} to a descriptor");
            to.assert_names(&["old"], name);
            assert_same(&to.read("old"), &other(20_000), name);
        }
    });
}

#[test]
fn so_does_one_by_an_open_descriptor() {
    without_waiting(|| {
        let Kinds { place, .. } = &kinds();
        assert!(make(place, "fifo", FileType::Fifo, 0o644, 0));
        let name_only = OFlags::PATH | OFlags::CLOEXEC;
        let fifo = rustix::fs::open(place.path("fifo"), name_only, Mode::empty()).unwrap();
        let listener = UnixListener::bind(place.path("listener")).unwrap();
        let (datagrams, _peer) = UnixDatagram::pair().unwrap();
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let is_directory: Why = |side| Cause::Io(side, Errno::ISDIR);
        let cases: [Case; 6] = [
            ("directory", place.open("directory"), is_directory),
            ("O_PATH", place.base.clone(), is_directory),
            ("a FIFO's name", handle(fifo), |side| {
                kind(side, Refused::NameOnly)
            }),
            (
                "a socket that listens",
                handle(OwnedFd::from(listener)),
                |side| kind(side, Refused::Messages),
            ),
            (
                "a socket of messages",
                handle(OwnedFd::from(datagrams)),
                |side| kind(side, Refused::Messages),
            ),
            ("an eventfd", handle(event), |side| {
                kind(side, Refused::Unknown)
            }),
        ];
        let to = Place::disk();
        to.write("old", other(20_000));
        for (name, handle, cause) in cases {
            for path in ["new", "old"] {
                let source = Source::File(handle.clone());
                let answer = refusal(source, to.destination(path), &Options::default());
                assert_eq!(answer, cause(Side::Source), "{name} to {path}");
            }
            let answer = refusal(place.source("file"), file(&handle), &Options::default());
            assert_eq!(answer, cause(Side::Destination), "to {name}");
            to.assert_names(&["old"], name);
            assert_same(&to.read("old"), &other(20_000), name);
        }
    });
}

#[test]
fn nor_does_a_destination_that_is_refused_change() {
    without_waiting(|| {
        let Kinds { place, .. } = &kinds();
        assert!(make(place, "fifo", FileType::Fifo, 0o644, 0));
        let before = states(place);
        for (name, in_place, replaced) in [
            (
                "directory",
                Cause::Io(Side::Destination, Errno::ISDIR),
                Cause::Io(Side::Destination, Errno::ISDIR),
            ),
            (
                "socket",
                kind(Side::Destination, Refused::SocketName),
                kind(Side::Destination, Refused::Stream),
            ),
            (
                "fifo",
                Cause::Unsupported(Unsupported::Durability),
                kind(Side::Destination, Refused::Stream),
            ),
        ] {
            for existing in [Existing::Write, Existing::Update] {
                for (write_mode, cause) in WRITE_MODES.into_iter().zip([&in_place, &replaced]) {
                    // A FIFO is no place for what must be durable.
                    let _reader = (name == "fifo").then(|| reader(place, name));
                    let options = Options {
                        existing,
                        write_mode,
                        durability: if name == "fifo" {
                            Durability::Each
                        } else {
                            Durability::None
                        },
                        ..Options::default()
                    };
                    let answer = refusal(place.source("file"), place.destination(name), &options);
                    assert_eq!(answer, *cause, "{name}, {options:?}");
                }
            }
            let options = Options {
                existing: Existing::Refuse,
                ..Options::default()
            };
            let answer = refusal(place.source("file"), place.destination(name), &options);
            assert_eq!(answer, Cause::Io(Side::Destination, Errno::EXIST), "{name}");
            assert_eq!(states(place), before, "{name}");
        }
    });
}

fn reader(place: &Place, name: &str) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    rustix::fs::open(place.path(name), flags, Mode::empty()).unwrap()
}

#[test]
fn a_stream_has_no_offsets_and_no_attributes() {
    without_waiting(|| {
        let place = Place::disk();
        place.write("file", pattern(1000));
        assert!(make(&place, "fifo", FileType::Fifo, 0o644, 0));
        let _reader = reader(&place, "fifo");
        let before = states(&place);
        let window = |source_offset, destination_offset| Options {
            window: Some(Window {
                source_offset,
                length: None,
                destination_offset,
            }),
            ..Options::default()
        };
        let required = Options {
            require: Preserve::MODE,
            ..Options::default()
        };
        let (out, into) = (
            || {
                refusal(
                    place.source("fifo"),
                    place.destination("new"),
                    &window(1, 0),
                )
            },
            || {
                refusal(
                    place.source("file"),
                    place.destination("fifo"),
                    &window(0, 1),
                )
            },
        );
        let offset = |side| Cause::Unsupported(Unsupported::Offset(side));
        assert_eq!(out(), offset(Side::Source));
        assert_eq!(into(), offset(Side::Destination));
        for (from, to) in [("fifo", "new"), ("file", "fifo")] {
            let answer = refusal(place.source(from), place.destination(to), &required);
            assert_eq!(answer, Cause::Unsupported(Unsupported::Attribute), "{from}");
        }
        assert_eq!(states(&place), before);
    });
}

#[test]
fn a_link_as_an_end_is_refused_unless_it_is_followed_or_replaced() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    place.write("to", other(2000));
    symlink("from", place.path("link from")).unwrap();
    symlink("to", place.path("link to")).unwrap();
    let in_place = Options::default();
    assert_eq!(
        refusal(
            place.source("link from"),
            place.destination("to"),
            &in_place
        ),
        Cause::Io(Side::Source, Errno::LOOP)
    );
    assert_eq!(
        refusal(
            place.source("from"),
            place.destination("link to"),
            &in_place
        ),
        Cause::Io(Side::Destination, Errno::LOOP)
    );
    assert_same(&place.read("to"), &other(2000), "to");
    crate::support::copy(
        Source::Path(follow(&place.base, "link from")),
        Destination::Path(follow(&place.base, "link to")),
        &in_place,
    )
    .unwrap();
    assert_same(&place.read("to"), &pattern(1000), "to");
    assert!(place.path("link to").is_symlink());
}

// https://github.com/uutils/coreutils/issues/4074: a file was created where the link pointed.
#[test]
fn uutils_4074_nothing_is_created_through_a_link_to_nowhere() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    symlink("nowhere", place.path("dangling")).unwrap();
    for write_mode in WRITE_MODES {
        let options = Options {
            write_mode,
            ..Options::default()
        };
        let destination = Destination::Path(follow(&place.base, "dangling"));
        assert_eq!(
            refusal(place.source("from"), destination, &options),
            Cause::Io(Side::Destination, Errno::NOENT),
            "{write_mode:?}"
        );
        place.assert_names(&["dangling", "from"], "nothing was created");
    }
}

// https://github.com/oven-sh/bun/pull/38097: it passed for a directory that exists, nothing was
// copied, and that was a success.
#[test]
fn bun_38097_a_parent_that_leads_nowhere_is_an_error() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    symlink("nowhere", place.path("parent")).unwrap();
    for (write_mode, existing) in WRITE_MODES
        .into_iter()
        .flat_map(|mode| [(mode, Existing::Write), (mode, Existing::Skip)])
    {
        let options = Options {
            existing,
            write_mode,
            ..Options::default()
        };
        for path in ["parent/file", "gone/file"] {
            for destination in [at(&place.base, path), follow(&place.base, path)] {
                assert_eq!(
                    refusal(
                        place.source("from"),
                        Destination::Path(destination),
                        &options
                    ),
                    Cause::Io(Side::Destination, Errno::NOENT),
                    "{path}, {write_mode:?}"
                );
            }
        }
        place.assert_names(&["from", "parent"], "nothing was created");
    }
}

#[test]
fn descriptors_that_do_not_permit_it_are_refused() {
    let place = Place::disk();
    place.write("from", pattern(1000));
    place.write("to", other(500));
    let write_only = handle(
        fs::File::options()
            .write(true)
            .open(place.path("from"))
            .unwrap(),
    );
    assert_eq!(
        refusal(
            Source::File(write_only),
            place.destination("new"),
            &Options::default()
        ),
        Cause::Io(Side::Source, Errno::BADF)
    );
    place.assert_names(&["from", "to"], "nothing was created");
    let read_only = file(&place.open("to"));
    assert_eq!(
        refusal(place.source("from"), read_only, &Options::default()),
        Cause::Io(Side::Destination, Errno::BADF)
    );
    assert_same(&place.read("to"), &other(500), "to");
}
