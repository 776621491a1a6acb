//! What is not a regular file is refused, at either end: at once, and with nothing made or changed.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use copyist_engine::{
    Cause, Destination, Errno, Existing, Handle, Options, Preserve, Side, Source, Unsupported,
};
use rustix::fs::{FileType, Mode};

use crate::support::{
    Place, WRITE_MODES, assert_same, at, file, follow, handle, is_root, other, pattern, refusal,
    skipped,
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

/// One of each kind that is not copied, by name, with a regular file to copy over or from.
struct Kinds {
    place: Place,
    /// The names of FIFO, socket and, as root, device.
    special: Vec<&'static str>,
    _listener: UnixListener,
}

fn kinds() -> Kinds {
    let place = Place::disk();
    place.write("file", pattern(10_000));
    fs::create_dir(place.path("directory")).unwrap();
    symlink("file", place.path("link")).unwrap();
    let listener = UnixListener::bind(place.path("socket")).unwrap();
    let mut special = vec!["fifo", "socket"];
    assert!(make(&place, "fifo", FileType::Fifo, 0o644, 0));
    let null = rustix::fs::makedev(1, 3);
    if is_root("a device node") && make(&place, "null", FileType::CharacterDevice, 0o666, null) {
        special.push("null");
    }
    Kinds {
        place,
        special,
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

const NOT_A_FILE: [Cause; 2] = [
    Cause::Unsupported(Unsupported::Kind(Side::Source)),
    Cause::Unsupported(Unsupported::Kind(Side::Destination)),
];

#[test]
fn a_source_that_is_no_file_makes_nothing_and_changes_nothing() {
    without_waiting(|| {
        let Kinds { place, special, .. } = &kinds();
        let from = Errno::NOENT;
        let source = |errno| Cause::Io(Side::Source, errno);
        let mut cases = vec![
            ("missing", source(from)),
            ("missing/file", source(Errno::NOENT)),
            ("file/file", source(Errno::NOTDIR)),
            ("directory", source(Errno::ISDIR)),
            ("link", source(Errno::LOOP)),
        ];
        cases.extend(special.iter().map(|name| (*name, NOT_A_FILE[0].clone())));
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
        let fifo = fs::File::options()
            .read(true)
            .write(true)
            .open(place.path("fifo"))
            .unwrap();
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = fs::File::from(std::os::fd::OwnedFd::from(socket));
        let null = fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap();
        let cases: [(&str, Handle, Option<Errno>); 5] = [
            ("fifo", handle(fifo), None),
            ("socket", handle(socket), None),
            ("null", handle(null), None),
            ("directory", place.open("directory"), Some(Errno::ISDIR)),
            ("O_PATH", place.base.clone(), Some(Errno::ISDIR)),
        ];
        let to = Place::disk();
        to.write("old", other(20_000));
        for (name, handle, errno) in cases {
            let cause = |side| match errno {
                Some(errno) => Cause::Io(side, errno),
                None => Cause::Unsupported(Unsupported::Kind(side)),
            };
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

// https://github.com/rust-lang/rust/issues/26933, https://github.com/rust-lang/rust/pull/58803,
// https://github.com/oven-sh/bun/pull/43244: the source's mode was set on a device or FIFO.
#[test]
fn rust_26933_a_destination_that_is_no_file_keeps_its_mode() {
    without_waiting(|| {
        let Kinds { place, special, .. } = &kinds();
        place.set_mode("file", 0o600);
        let before = states(place);
        let mut cases = vec![("directory", Cause::Io(Side::Destination, Errno::ISDIR))];
        cases.extend(special.iter().map(|name| (*name, NOT_A_FILE[1].clone())));
        for (name, cause) in cases {
            // A FIFO with somebody who would read it, and one without.
            for read in [false, true] {
                let _reader = (read && name == "fifo").then(|| {
                    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
                    rustix::fs::open(place.path(name), flags, Mode::empty()).unwrap()
                });
                for (write_mode, preserve) in WRITE_MODES
                    .into_iter()
                    .flat_map(|mode| [(mode, Preserve::NONE), (mode, Preserve::MODE)])
                {
                    for existing in [Existing::Write, Existing::Update] {
                        let options = Options {
                            existing,
                            write_mode,
                            preserve,
                            ..Options::default()
                        };
                        let answer =
                            refusal(place.source("file"), place.destination(name), &options);
                        assert_eq!(answer, cause, "{name}, {options:?}");
                    }
                    let options = Options {
                        existing: Existing::Refuse,
                        write_mode,
                        ..Options::default()
                    };
                    let answer = refusal(place.source("file"), place.destination(name), &options);
                    assert_eq!(
                        answer,
                        Cause::Io(Side::Destination, Errno::EXIST),
                        "{name}, {write_mode:?}"
                    );
                }
                assert_eq!(states(place), before, "{name}");
            }
        }
        assert!(
            place
                .path("fifo")
                .symlink_metadata()
                .unwrap()
                .file_type()
                .is_fifo(),
            "it is still a FIFO"
        );
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
