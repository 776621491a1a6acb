//! What was put into a stream is what the source had then, whatever is written to it later.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use copyist_engine::{Base, Destination, Location, Mechanism, Options, Source, Tuning};
use rustix::fs::OFlags;
use tempfile::TempDir;

use super::support::{Place, both_ways, copy, into, non_blocking, pipe, put, socket, take, tcp};

/// Two pages, which fit into any stream.
const LENGTH: usize = 8192;

/// Directories on file systems that pass on their pages, and one that has them nowhere but in memory.
fn directories() -> Vec<TempDir> {
    let mut directories = vec![tempfile::tempdir().unwrap()];
    if Path::new("/dev/shm").is_dir() {
        directories.push(tempfile::tempdir_in("/dev/shm").unwrap());
    }
    directories
}

/// A file of 'A', which a copy reads.
fn file(directory: &TempDir) -> (File, Source) {
    let path = directory.path().join("in");
    fs::write(&path, vec![b'A'; LENGTH]).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let source = Source::Path(Location {
        base: Base::Beneath(std::sync::Arc::new(File::open(directory.path()).unwrap())),
        path: "in".into(),
        follow: false,
    });
    (file, source)
}

fn destinations(place: &Place) -> Vec<(&'static str, Destination, OwnedFd)> {
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_writer);
    let (ours, theirs) = socket();
    let (open_ours, open_theirs) = socket();
    open_ours.set_nonblocking(true).unwrap();
    let (tcp_ours, tcp_theirs) = tcp();
    let (open_tcp_ours, open_tcp_theirs) = tcp();
    open_tcp_ours.set_nonblocking(true).unwrap();
    if !place.names().contains(&"out".to_owned()) {
        place.fifo("out");
    }
    let fifo = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(place.path("out"))
        .unwrap();
    vec![
        ("pipe", into(writer), reader),
        ("open pipe", into(open_writer), open_reader),
        ("socket", into(ours), theirs.into()),
        ("open socket", into(open_ours), open_theirs.into()),
        ("tcp", into(tcp_ours), tcp_theirs.into()),
        ("open tcp", into(open_tcp_ours), open_tcp_theirs.into()),
        ("FIFO", place.destination("out"), fifo.into()),
    ]
}

/// What the reader gets after the copy has ended and the source was overwritten.
fn late(options: &Options, check: impl Fn(&str, &[u8], Option<Mechanism>)) {
    let place = Place::new();
    for directory in directories() {
        for (to, destination, reader) in destinations(&place) {
            let (file, source) = file(&directory);
            let done = copy(source, destination, options.clone()).unwrap();
            assert_eq!(done.bytes, LENGTH as u64, "{to}");
            file.write_all_at(&[b'B'; LENGTH], 0).unwrap();
            check(to, &take(&reader, LENGTH), done.method);
        }
    }
}

// https://github.com/systemd/systemd/issues/29044, https://github.com/rust-lang/rust/issues/108283,
// https://github.com/rust-lang/rust/issues/116451
#[test]
fn systemd_29044_a_later_write_to_the_source_never_shows() {
    let piecewise = Options {
        tuning: Tuning {
            call_size: std::num::NonZeroUsize::new(1000),
            ..Tuning::default()
        },
        ..Options::default()
    };
    let [plain, fallback] = both_ways();
    for options in [plain, fallback, piecewise] {
        late(&options, |to, bytes, method| {
            assert!(bytes.iter().all(|byte| *byte == b'A'), "{to}");
            assert_eq!(method, Some(Mechanism::ReadWrite), "{to}");
        });
    }
}

/// Whoever allows it gives the file's own pages away, and so it is not what is done by default.
// https://github.com/systemd/systemd/issues/29044
#[test]
fn systemd_29044_where_pages_may_be_passed_on_it_does_show() {
    let options = Options {
        zero_copy: true,
        ..Options::default()
    };
    late(&options, |to, bytes, method| {
        let expected = match to {
            "pipe" | "open pipe" | "FIFO" => Mechanism::Splice,
            "open socket" | "open tcp" => Mechanism::SendFile,
            _ => Mechanism::ReadWrite,
        };
        assert_eq!(method, Some(expected), "{to}");
        let changed = bytes.contains(&b'B');
        match expected {
            Mechanism::Splice => assert!(changed, "{to}: the default has no reason any more"),
            Mechanism::ReadWrite => assert!(!changed, "{to}"),
            _ => {}
        }
    });
}

/// What came out of a stream is nobody's file any more.
#[test]
fn what_is_passed_from_stream_to_stream_is_stable_too() {
    for options in both_ways() {
        let place = Place::new();
        for (to, destination, reader) in destinations(&place) {
            let directory = tempfile::tempdir().unwrap();
            let (file, source) = file(&directory);
            let (middle, writer) = pipe();
            copy(source, into(writer), options.clone()).unwrap();
            copy(super::support::from(middle), destination, options.clone()).unwrap();
            file.write_all_at(&[b'B'; LENGTH], 0).unwrap();
            assert!(
                take(&reader, LENGTH).iter().all(|byte| *byte == b'A'),
                "{to}"
            );
            // Nor does what is put in behind it.
            drop(reader);
        }
        let (reader, writer) = pipe();
        put(&writer, b"one");
        drop(writer);
        let (other, to) = pipe();
        let more = to.try_clone().unwrap();
        copy(super::support::from(reader), into(to), options).unwrap();
        put(&more, b"two");
        assert_eq!(take(&other, 6), b"onetwo");
    }
}
