//! FIFOs by their path: nobody sleeps in an open, and a peer may come late.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::thread;

use copyist_bed::skipped;
use copyist_engine::{
    Cause, Destination, Durability, Errno, Existing, Location, Mechanism, Options, Preserve,
    Refused, Side, Source, Unsupported, Window, WriteMode,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::support::{
    Call, Place, Running, Watched, both_ways, copy, drain, from, into, pattern, pipe, put, take,
};

/// More than a FIFO holds.
const LENGTH: usize = 300_000;
/// What a FIFO holds.
const CAPACITY: u64 = 65_536;

fn existing(existing: Existing) -> Options {
    Options {
        existing,
        ..Options::default()
    }
}

fn writer_of(place: &Place, name: &str) -> File {
    OpenOptions::new()
        .write(true)
        .open(place.path(name))
        .unwrap()
}

/// A reader that does not wait for a writer.
fn reader_of(place: &Place, name: &str) -> File {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(place.path(name))
        .unwrap()
}

fn is_fifo(place: &Place, name: &str) -> bool {
    let kind = fs::symlink_metadata(place.path(name)).unwrap().file_type();
    kind.is_fifo()
}

// https://github.com/oven-sh/bun/issues/37937, https://github.com/shelljs/shelljs/issues/727: the
// open of a FIFO without a writer took a thread for ever.
#[test]
fn bun_37937_a_late_writer_is_waited_for_and_its_end_is_the_end() {
    for options in both_ways() {
        let place = Place::new();
        place.fifo("in");
        let running = Running::start(place.source("in"), place.destination("out"), options);
        running.waits(1);
        let writer = writer_of(&place, "in");
        put(&writer, b"one, ");
        running.waits(2);
        put(&writer, b"two");
        running.waits(3);
        assert!(!running.has_ended(), "its writer has not closed it");
        drop(writer);
        let done = running.end().unwrap();
        assert_eq!((done.bytes, done.consumed, done.files), (8, 8, 1));
        assert_eq!(fs::read(place.path("out")).unwrap(), b"one, two");
        assert!(is_fifo(&place, "in"));
    }
}

#[test]
fn a_writer_that_says_nothing_makes_an_empty_file() {
    let place = Place::new();
    place.fifo("in");
    let running = Running::start(
        place.source("in"),
        place.destination("out"),
        Options::default(),
    );
    running.waits(1);
    drop(writer_of(&place, "in"));
    let done = running.end().unwrap();
    assert_eq!((done.bytes, done.method, done.files), (0, None, 1));
    assert_eq!(fs::read(place.path("out")).unwrap(), b"");
}

#[test]
fn a_late_reader_is_waited_for() {
    for options in both_ways() {
        let place = Place::new();
        place.fifo("out");
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        let sys = Watched::new();
        let running = Running::start_on(
            sys.clone(),
            place.source("in"),
            place.destination("out"),
            options,
        );
        sys.wait_for_calls(Call::Reopen, 3);
        // This open waits for the copy's.
        let reader = File::open(place.path("out")).unwrap();
        assert!(drain(reader) == pattern(LENGTH));
        let done = running.end().unwrap();
        assert_eq!(
            (done.bytes, done.method),
            (LENGTH as u64, Some(Mechanism::ReadWrite))
        );
        assert!(is_fifo(&place, "out"));
        assert_eq!(place.names(), ["in", "out"]);
    }
}

/// Where there is no procfs, it is tried by its path.
#[test]
fn a_late_reader_is_waited_for_without_procfs_too() {
    let place = Place::new();
    place.fifo("out");
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    let sys = Watched::with(|call| (call == Call::Reopen).then_some(Errno::NOENT));
    let running = Running::start_on(
        sys.clone(),
        place.source("in"),
        place.destination("out"),
        Options::default(),
    );
    sys.wait_for_calls(Call::Reopen, 3);
    let reader = File::open(place.path("out")).unwrap();
    assert!(drain(reader) == pattern(LENGTH));
    assert_eq!(running.end().unwrap().bytes, LENGTH as u64);
}

#[test]
fn a_reader_that_leaves_is_an_error_that_says_how_far_it_came() {
    for options in both_ways() {
        let place = Place::new();
        place.fifo("out");
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        let reader = reader_of(&place, "out");
        let running = Running::start(place.source("in"), place.destination("out"), options);
        running.waits(1);
        drop(reader);
        let (cause, done) = running.fails();
        assert_eq!(cause, Cause::Io(Side::Destination, Errno::PIPE));
        assert_eq!((done.bytes, done.files), (CAPACITY, 0));
        assert!(done.consumed >= done.bytes && done.consumed <= LENGTH as u64);
        assert!(is_fifo(&place, "out"));
    }
}

/// Its open would have ended that of a writer that waits in open(2), so it ends the copy's wait.
#[test]
fn a_reader_that_comes_and_leaves_between_two_tries_ends_the_wait() {
    let place = Place::new();
    place.fifo("out");
    fs::write(place.path("in"), pattern(LENGTH)).unwrap();
    let sys = Watched::new();
    let running = Running::start_on(
        sys.clone(),
        place.source("in"),
        place.destination("out"),
        Options::default(),
    );
    sys.wait_for_calls(Call::Reopen, 2);
    drop(reader_of(&place, "out"));
    let (cause, done) = running.fails();
    assert_eq!(cause, Cause::Io(Side::Destination, Errno::PIPE));
    assert!(done.bytes <= CAPACITY);
}

#[test]
fn a_fifo_is_not_copied_onto_itself() {
    let place = Place::new();
    place.fifo("it");
    fs::hard_link(place.path("it"), place.path("also it")).unwrap();
    for other in ["it", "also it"] {
        let options = Options::default();
        let failed = copy(place.source("it"), place.destination(other), options);
        assert_eq!(failed.unwrap_err().cause, Cause::SameFile, "{other}");
    }
    let (reader, writer) = pipe();
    put(&writer, b"as it was");
    let failed = copy(
        from(reader.try_clone().unwrap()),
        into(writer),
        Options::default(),
    );
    assert_eq!(failed.unwrap_err().cause, Cause::SameFile);
    assert_eq!(drain(reader), b"as it was");
}

// open(2) answers ENXIO to the name of a socket, as to that of a FIFO without a reader.
#[test]
fn the_name_of_a_socket_is_refused_and_nothing_is_created() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.path("socket")).unwrap();
    fs::write(place.path("file"), "as it was").unwrap();
    let refused = |side| Cause::Unsupported(Unsupported::Kind(side, Refused::SocketName));
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        let options = Options {
            write_mode,
            ..Options::default()
        };
        let source = copy(
            place.source("socket"),
            place.destination("new"),
            options.clone(),
        );
        assert_eq!(source.unwrap_err().cause, refused(Side::Source));
        let destination = copy(place.source("file"), place.destination("socket"), options);
        let expected = match write_mode {
            WriteMode::InPlace => refused(Side::Destination),
            WriteMode::Replace => {
                Cause::Unsupported(Unsupported::Kind(Side::Destination, Refused::Stream))
            }
        };
        assert_eq!(destination.unwrap_err().cause, expected);
        assert_eq!(place.names(), ["file", "socket"]);
    }
}

/// ENXIO is also what a device without its hardware says, and that is no socket.
#[test]
fn a_device_that_is_not_there_is_no_socket() {
    let place = Place::new();
    // Local and experimental use (Linux, Documentation/admin-guide/devices.txt).
    let device = rustix::fs::makedev(60, 0);
    let mode = Mode::from_raw_mode(0o600);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("device"),
        FileType::CharacterDevice,
        mode,
        device,
    );
    if made == Err(Errno::PERM) {
        return skipped("a device node needs root");
    }
    made.unwrap();
    fs::write(place.path("file"), "as it was").unwrap();
    let table = [
        (Side::Source, "device", "new"),
        (Side::Destination, "file", "device"),
    ];
    for (side, source, destination) in table {
        let failed = copy(
            place.source(source),
            place.destination(destination),
            Options::default(),
        );
        match failed.unwrap_err().cause {
            Cause::Io(at, Errno::NXIO) => assert_eq!(at, side),
            // The file system was mounted with `nodev`.
            Cause::Io(_, Errno::ACCESS) => return skipped("there are no devices here"),
            cause => panic!("{cause:?}"),
        }
        assert_eq!(place.names(), ["device", "file"]);
    }
}

#[test]
fn what_is_refused_creates_nothing_and_waits_for_nobody() {
    let place = Place::new();
    place.fifo("in");
    place.fifo("out");
    fs::write(place.path("file"), "as it was").unwrap();
    fs::create_dir(place.path("directory")).unwrap();
    let window = |source_offset, destination_offset| Options {
        window: Some(Window {
            source_offset,
            length: Some(1),
            destination_offset,
        }),
        ..Options::default()
    };
    let require = Options {
        require: Preserve::MODE,
        ..Options::default()
    };
    let durable = Options {
        durability: Durability::Each,
        ..Options::default()
    };
    let _reader = reader_of(&place, "out");
    let table = [
        ("in", "new", window(1, 0), Unsupported::Offset(Side::Source)),
        ("in", "new", require.clone(), Unsupported::Attribute),
        (
            "file",
            "out",
            window(0, 1),
            Unsupported::Offset(Side::Destination),
        ),
        ("file", "out", require, Unsupported::Attribute),
        ("file", "out", durable, Unsupported::Durability),
    ];
    for (source, destination, options, expected) in table {
        let what = format!("{source} to {destination}: {options:?}");
        let failed = copy(
            place.source(source),
            place.destination(destination),
            options,
        );
        assert_eq!(
            failed.unwrap_err().cause,
            Cause::Unsupported(expected),
            "{what}"
        );
        assert_eq!(place.names(), ["directory", "file", "in", "out"], "{what}");
    }
    let failed = copy(
        place.source("in"),
        place.destination("directory"),
        Options::default(),
    );
    assert_eq!(
        failed.unwrap_err().cause,
        Cause::Io(Side::Destination, Errno::ISDIR)
    );
}

#[test]
fn a_fifo_that_stands_there_is_refused_or_skipped_as_a_file_is() {
    let place = Place::new();
    place.fifo("out");
    fs::write(place.path("file"), "some").unwrap();
    // Nobody reads it, and nobody waits for a reader.
    let to = || place.destination("out");
    let refused = copy(place.source("file"), to(), existing(Existing::Refuse));
    assert_eq!(
        refused.unwrap_err().cause,
        Cause::Io(Side::Destination, Errno::EXIST)
    );
    let skipped = copy(place.source("file"), to(), existing(Existing::Skip)).unwrap();
    assert_eq!((skipped.skipped, skipped.files, skipped.bytes), (1, 0, 0));
    // A FIFO is never newer than what is put into it.
    let reader = reader_of(&place, "out");
    let written = copy(place.source("file"), to(), existing(Existing::Update)).unwrap();
    assert_eq!((written.skipped, written.bytes), (0, 4));
    assert_eq!(drain(reader), b"some");
    assert!(is_fifo(&place, "out"));
}

#[test]
fn a_fifo_replaces_a_file_at_its_end_and_not_before() {
    let place = Place::new();
    place.fifo("in");
    fs::write(place.path("old"), "as it was").unwrap();
    fs::set_permissions(place.path("old"), fs::Permissions::from_mode(0o640)).unwrap();
    let replace = || Options {
        write_mode: WriteMode::Replace,
        ..Options::default()
    };
    let start = |name| Running::start(place.source("in"), place.destination(name), replace());
    let running = start("old");
    running.waits(1);
    let writer = writer_of(&place, "in");
    put(&writer, b"new");
    running.waits(2);
    assert_eq!(fs::read(place.path("old")).unwrap(), b"as it was");
    drop(writer);
    running.end().unwrap();
    assert_eq!(fs::read(place.path("old")).unwrap(), b"new");
    let mode = fs::metadata(place.path("old")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o640);
    // A FIFO itself is not replaced by a file.
    let onto = copy(place.source("old"), place.destination("in"), replace());
    assert_eq!(
        onto.unwrap_err().cause,
        Cause::Unsupported(Unsupported::Kind(Side::Destination, Refused::Stream))
    );
    assert_eq!(place.names(), ["in", "old"]);
    assert!(is_fifo(&place, "in"));
}

#[test]
fn a_link_to_a_fifo_leads_there_if_it_is_to() {
    let place = Place::new();
    place.fifo("fifo");
    fs::write(place.path("file"), pattern(1000)).unwrap();
    std::os::unix::fs::symlink("fifo", place.path("link")).unwrap();
    let at = |follow| Location {
        follow,
        ..place.at("link")
    };
    let running = Running::start(
        place.source("file"),
        Destination::Path(at(true)),
        Options::default(),
    );
    assert!(drain(File::open(place.path("fifo")).unwrap()) == pattern(1000));
    running.end().unwrap();
    let running = Running::start(
        Source::Path(at(true)),
        place.destination("out"),
        Options::default(),
    );
    running.waits(1);
    put(writer_of(&place, "fifo"), b"through a link");
    running.end().unwrap();
    assert_eq!(fs::read(place.path("out")).unwrap(), b"through a link");
    let refused = copy(
        Source::Path(at(false)),
        place.destination("new"),
        Options::default(),
    );
    assert_eq!(
        refused.unwrap_err().cause,
        Cause::Io(Side::Source, Errno::LOOP)
    );
    assert_eq!(place.names(), ["fifo", "file", "link", "out"]);
}

/// From one FIFO into another, neither of which has its peer yet.
#[test]
fn both_ends_may_be_late() {
    for options in both_ways() {
        let place = Place::new();
        place.fifo("in");
        place.fifo("out");
        let sys = Watched::new();
        let running = Running::start_on(
            sys.clone(),
            place.source("in"),
            place.destination("out"),
            options,
        );
        sys.wait_for_calls(Call::Reopen, 2);
        let reader = File::open(place.path("out")).unwrap();
        running.waits(1);
        let writer = writer_of(&place, "in");
        let feeder = thread::spawn(move || put(&writer, &pattern(LENGTH)));
        assert!(take(&reader, LENGTH) == pattern(LENGTH));
        feeder.join().unwrap();
        assert_eq!(running.end().unwrap().bytes, LENGTH as u64);
        assert_eq!(drain(reader), b"");
    }
}
