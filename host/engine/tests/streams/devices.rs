//! Character devices, which are streams, and disks, which are not.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use copyist_bed::skipped;
use copyist_engine::{
    Base, Cause, Destination, Durability, Errno, Location, Options, Preserve, Side, Source, Sparse,
    Unsupported, Window, WriteMode,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::support::{
    Call, Place, Running, Watched, both_ways, copy, drain, from, pattern, pipe, put,
};

/// No multiple of a page or a buffer.
const DISK_SIZE: usize = (1 << 20) + 3 * 512;
const DISK: u64 = DISK_SIZE as u64;

fn device(name: &str) -> Location {
    Location {
        base: Base::Beneath(Arc::new(File::open("/dev").unwrap())),
        path: name.into(),
        follow: false,
    }
}

fn opened(name: &str) -> Destination {
    let mut options = OpenOptions::new();
    Destination::File(Arc::new(
        options
            .write(true)
            .open(Path::new("/dev").join(name))
            .unwrap(),
    ))
}

fn first(length: u64) -> Options {
    Options {
        window: Some(Window {
            source_offset: 0,
            length: Some(length),
            destination_offset: 0,
        }),
        ..Options::default()
    }
}

#[test]
fn a_source_without_an_end_is_read_as_far_as_is_asked() {
    let place = Place::new();
    for (name, length) in [("zero", 1_000_001), ("urandom", 100_001)] {
        let held = Source::File(Arc::new(File::open(Path::new("/dev").join(name)).unwrap()));
        for source in [Source::Path(device(name)), held] {
            let done = copy(source, place.destination(name), first(length)).unwrap();
            assert_eq!((done.bytes, done.consumed), (length, length), "{name}");
            let bytes = fs::read(place.path(name)).unwrap();
            assert_eq!(bytes.len() as u64, length);
            let is_zero = bytes.iter().all(|byte| *byte == 0);
            assert_eq!(is_zero, name == "zero");
            // Nobody made it executable, though everybody may write to the device.
            let mode = fs::metadata(place.path(name)).unwrap().mode();
            assert_eq!(mode & 0o111, 0, "{mode:o}");
        }
    }
    let done = copy(
        Source::Path(device("null")),
        place.destination("empty"),
        Options::default(),
    )
    .unwrap();
    assert_eq!((done.bytes, done.files), (0, 1));
    assert_eq!(fs::read(place.path("empty")).unwrap(), b"");
}

#[test]
fn a_source_without_an_end_goes_on_until_it_is_cancelled() {
    let place = Place::new();
    let sys = Watched::new();
    let null = Destination::Path(device("null"));
    let running = Running::start_on(
        sys.clone(),
        Source::Path(device("zero")),
        null,
        Options::default(),
    );
    sys.wait_for_calls(Call::Read(copyist_engine::sys::Way::Plain), 100);
    assert!(!running.has_ended());
    running.cancel.cancel();
    let (cause, done) = running.fails();
    assert_eq!(cause, Cause::Cancelled);
    assert!(done.bytes > 0);
    assert!(place.names().is_empty());
}

#[test]
fn what_takes_all_takes_all() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(1_000_000)).unwrap();
    for destination in [Destination::Path(device("null")), opened("null")] {
        for options in both_ways() {
            let done = copy(place.source("in"), destination.clone(), options).unwrap();
            assert_eq!(done.bytes, 1_000_000);
        }
    }
}

// https://github.com/libuv/libuv/issues/5151, https://github.com/nasa/fprime/issues/3534: what took
// nothing was offered it again for ever.
#[test]
fn libuv_5151_a_full_device_is_an_error_at_once() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(1_000_000)).unwrap();
    for destination in [Destination::Path(device("full")), opened("full")] {
        for from_a_pipe in [false, true] {
            let source = if from_a_pipe {
                let (reader, writer) = pipe();
                put(&writer, b"some");
                drop(writer);
                from(reader)
            } else {
                place.source("in")
            };
            let sys = Watched::new();
            let running =
                Running::start_on(sys.clone(), source, destination.clone(), Options::default());
            let (cause, done) = running.fails();
            assert_eq!(cause, Cause::Io(Side::Destination, Errno::NOSPC));
            assert_eq!(done.bytes, 0);
            assert!(done.consumed > 0, "it was in hand");
            let writes = sys.count(|call| matches!(call, Call::Write(..)));
            // One more where RWF_NOWAIT is not for this device.
            assert!(writes <= 2, "{writes} writes");
        }
    }
}

// https://github.com/rust-lang/rust/issues/26933, https://github.com/rust-lang/rust/pull/58803,
// https://github.com/oven-sh/bun/pull/43244: the mode of a source went to /dev/null.
#[test]
fn rust_26933_what_is_no_file_keeps_its_mode_and_its_times() {
    let place = Place::new();
    place.fifo("fifo");
    fs::write(place.path("in"), "some").unwrap();
    fs::set_permissions(place.path("in"), fs::Permissions::from_mode(0o751)).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    let node = place.path("null");
    let null = rustix::fs::makedev(1, 3);
    match rustix::fs::mknodat(
        rustix::fs::CWD,
        &node,
        FileType::CharacterDevice,
        mode,
        null,
    ) {
        Err(Errno::PERM) => skipped("a device node needs root"),
        made => made.unwrap(),
    }
    for name in ["fifo", "null"] {
        if !place.names().contains(&name.to_owned()) {
            continue;
        }
        let before = fs::metadata(place.path(name)).unwrap();
        let options = |preserve, require| Options {
            preserve,
            require,
            ..Options::default()
        };
        let all = Preserve::MODE | Preserve::TIMESTAMPS | Preserve::XATTRS | Preserve::ACLS;
        let reader = (name == "fifo").then(|| {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            let mut options = OpenOptions::new();
            let options = options.read(true).custom_flags(flags);
            options.open(place.path(name)).unwrap()
        });
        let kept = options(all, Preserve::NONE);
        let done = copy(place.source("in"), place.destination(name), kept);
        let done = match done {
            Err(error) if error.cause == Cause::Io(Side::Destination, Errno::ACCESS) => {
                skipped("there are no devices here");
                continue;
            }
            done => done.unwrap(),
        };
        assert_eq!(done.lost, all, "{name}");
        let required = options(Preserve::NONE, Preserve::MODE);
        let refused = copy(place.source("in"), place.destination(name), required);
        assert_eq!(
            refused.unwrap_err().cause,
            Cause::Unsupported(Unsupported::Attribute),
            "{name}"
        );
        let after = fs::metadata(place.path(name)).unwrap();
        let kept = |it: &fs::Metadata| (it.mode(), it.uid(), it.gid(), it.ino());
        assert_eq!(kept(&after), kept(&before), "{name}");
        drop(reader);
    }
}

/// A disk in a file, that the kernel serves as one.
struct Disk {
    _place: Place,
    image: PathBuf,
    node: PathBuf,
}

impl Disk {
    /// `None`, aloud, where none can be had.
    fn of(size: u64, fill: u8) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("a loop device needs root");
            return None;
        }
        let place = Place::new();
        let image = place.path("image");
        fs::write(&image, vec![fill; usize::try_from(size).unwrap()]).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                let node = String::from_utf8(made.stdout).unwrap();
                Some(Self {
                    _place: place,
                    image,
                    node: node.trim().into(),
                })
            }
            Ok(made) => {
                let said = String::from_utf8_lossy(&made.stderr).into_owned();
                skipped(&format!("no loop device: {}", said.trim()));
                None
            }
            Err(error) => {
                skipped(&format!("no loop device: losetup: {error}"));
                None
            }
        }
    }

    fn at(&self) -> Location {
        device(self.node.file_name().unwrap().to_str().unwrap())
    }

    fn source(&self) -> Source {
        Source::Path(self.at())
    }

    fn destination(&self) -> Destination {
        Destination::Path(self.at())
    }

    fn open(&self) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.node)
            .unwrap()
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.open().read_to_end(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .arg("--detach")
            .arg(&self.node)
            .status();
        if !std::thread::panicking() {
            assert!(detached.unwrap().success(), "{}", self.node.display());
        }
    }
}

#[test]
fn a_disk_is_read_from_its_start_to_its_end() {
    let Some(disk) = Disk::of(DISK, 0) else {
        return;
    };
    disk.open().write_all_at(&pattern(DISK_SIZE), 0).unwrap();
    let held = Source::File(Arc::new(disk.open()));
    for options in both_ways() {
        for source in [disk.source(), held.clone()] {
            let place = Place::new();
            let done = copy(source.clone(), place.destination("out"), options.clone()).unwrap();
            assert_eq!((done.bytes, done.consumed), (DISK, DISK));
            assert!(!done.changed);
            assert!(fs::read(place.path("out")).unwrap() == pattern(DISK_SIZE));
            // A part of it; beyond its end there is nothing.
            let window = |source_offset, length| Options {
                window: Some(Window {
                    source_offset,
                    length,
                    destination_offset: 0,
                }),
                ..options.clone()
            };
            let part = copy(
                source.clone(),
                place.destination("part"),
                window(1000, Some(5000)),
            );
            assert_eq!(part.unwrap().bytes, 5000);
            assert!(fs::read(place.path("part")).unwrap() == pattern(6000)[1000..]);
            let end = copy(
                source.clone(),
                place.destination("end"),
                window(DISK - 7, None),
            );
            assert_eq!(end.unwrap().bytes, 7);
            let beyond = copy(source, place.destination("beyond"), window(DISK + 1, None));
            assert_eq!(beyond.unwrap().bytes, 0);
        }
    }
    let (reader, writer) = pipe();
    let collector = std::thread::spawn(move || drain(reader));
    let zero_copy = Options {
        zero_copy: true,
        ..Options::default()
    };
    copy(disk.source(), super::support::into(writer), zero_copy).unwrap();
    assert!(collector.join().unwrap() == pattern(DISK_SIZE));
}

#[test]
fn what_goes_onto_a_disk_leaves_the_rest_of_it() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(300_001)).unwrap();
    for options in both_ways() {
        for from_a_pipe in [false, true] {
            let Some(disk) = Disk::of(DISK, b'D') else {
                return;
            };
            let feeder = from_a_pipe.then(|| {
                let (reader, writer) = pipe();
                let thread = std::thread::spawn(move || put(&writer, &pattern(300_001)));
                (reader, thread)
            });
            let (source, feeder) = match feeder {
                Some((reader, thread)) => (from(reader), Some(thread)),
                None => (place.source("in"), None),
            };
            let options = Options {
                durability: Durability::Each,
                ..options.clone()
            };
            let done = copy(source, disk.destination(), options).unwrap();
            if let Some(feeder) = feeder {
                feeder.join().unwrap();
            }
            assert_eq!(done.bytes, 300_001);
            let now = disk.read();
            assert_eq!(now.len(), DISK_SIZE);
            assert!(now[..300_001] == pattern(300_001));
            assert!(now[300_001..].iter().all(|byte| *byte == b'D'));
            // It was put on stable storage.
            assert!(fs::read(&disk.image).unwrap() == now);
        }
    }
}

#[test]
fn zeros_leave_nothing_of_what_stood_on_a_disk() {
    let length = 400_000;
    let mut bytes = pattern(length);
    bytes[50_000..150_000].fill(0);
    bytes[300_000..].fill(0);
    let place = Place::new();
    fs::write(place.path("dense"), &bytes).unwrap();
    let sparse = File::create(place.path("sparse")).unwrap();
    sparse.write_all_at(&bytes[..50_000], 0).unwrap();
    sparse
        .write_all_at(&bytes[150_000..300_000], 150_000)
        .unwrap();
    sparse.set_len(length as u64).unwrap();
    for name in ["dense", "sparse"] {
        for sparse in [Sparse::Auto, Sparse::Always, Sparse::Never] {
            let Some(disk) = Disk::of(DISK, b'D') else {
                return;
            };
            let options = Options {
                sparse,
                ..Options::default()
            };
            let sys = Watched::new();
            let (from, to) = (place.source(name), disk.destination());
            let done = Running::start_on(sys.clone(), from, to, options).end();
            assert_eq!(done.unwrap().bytes, length as u64, "{name}, {sparse:?}");
            // A disk that can forget blocks is not filled with zeros.
            let punched = sys.count(|call| call == Call::PunchHole) > 0;
            let wanted = sparse == Sparse::Always || (name, sparse) == ("sparse", Sparse::Auto);
            assert_eq!(punched, wanted, "{name}, {sparse:?}");
            let now = disk.read();
            assert!(now[..length] == bytes, "{name}, {sparse:?}");
            assert!(
                now[length..].iter().all(|byte| *byte == b'D'),
                "{name}, {sparse:?}"
            );
        }
    }
}

#[test]
fn a_disk_that_is_too_small_is_full() {
    let length = DISK_SIZE + 100_000;
    let place = Place::new();
    fs::write(place.path("dense"), pattern(length)).unwrap();
    // All that does not fit is a hole, which must not pass for written.
    let sparse = File::create(place.path("sparse")).unwrap();
    sparse.write_all_at(&pattern(10_000), 0).unwrap();
    sparse.set_len(length as u64).unwrap();
    for name in ["dense", "sparse"] {
        for sparse in [Sparse::Auto, Sparse::Always] {
            let Some(disk) = Disk::of(DISK, b'D') else {
                return;
            };
            let options = Options {
                sparse,
                ..Options::default()
            };
            let failed = copy(place.source(name), disk.destination(), options).unwrap_err();
            assert_eq!(
                failed.cause,
                Cause::Io(Side::Destination, Errno::NOSPC),
                "{name}, {sparse:?}"
            );
            assert_eq!(failed.done.bytes, DISK, "{name}, {sparse:?}");
            let wanted = &fs::read(place.path(name)).unwrap()[..DISK_SIZE];
            assert!(disk.read() == wanted, "{name}, {sparse:?}");
        }
    }
}

/// As one that is mounted: somebody has it for himself (open(2), `O_EXCL`).
#[test]
fn a_disk_that_is_in_use_is_not_written_over() {
    let Some(disk) = Disk::of(DISK, b'D') else {
        return;
    };
    let place = Place::new();
    fs::write(place.path("in"), pattern(1000)).unwrap();
    let flags = OFlags::EXCL.bits().cast_signed();
    let user = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(&disk.node)
        .unwrap();
    let refused = copy(place.source("in"), disk.destination(), Options::default());
    assert_eq!(
        refused.unwrap_err().cause,
        Cause::Io(Side::Destination, Errno::BUSY)
    );
    // To read it is another matter.
    let read = copy(disk.source(), place.destination("out"), Options::default());
    assert_eq!(read.unwrap().bytes, DISK);
    assert!(disk.read().iter().all(|byte| *byte == b'D'));
    drop(user);
    copy(place.source("in"), disk.destination(), Options::default()).unwrap();
    // It is no file that could be replaced.
    let replace = Options {
        write_mode: WriteMode::Replace,
        ..Options::default()
    };
    let refused = copy(place.source("in"), disk.destination(), replace);
    assert!(matches!(
        refused.unwrap_err().cause,
        Cause::Unsupported(Unsupported::Kind(Side::Destination, _))
    ));
}

#[test]
fn a_disk_is_not_copied_onto_itself_by_any_name() {
    let Some(disk) = Disk::of(DISK, b'D') else {
        return;
    };
    let place = Place::new();
    let device = fs::metadata(&disk.node).unwrap().rdev();
    let mode = Mode::from_raw_mode(0o600);
    let other = place.path("other");
    rustix::fs::mknodat(rustix::fs::CWD, other, FileType::BlockDevice, mode, device).unwrap();
    let by_name = || place.destination("other");
    for destination in [disk.destination(), by_name()] {
        let refused = copy(disk.source(), destination, Options::default());
        match refused.unwrap_err().cause {
            Cause::SameFile => {}
            Cause::Io(_, Errno::ACCESS) => skipped("there are no devices here"),
            cause => panic!("{cause:?}"),
        }
    }
    // Parts that do not meet are two.
    disk.open().write_all_at(&pattern(4096), 0).unwrap();
    let window = |destination_offset| Options {
        window: Some(Window {
            source_offset: 0,
            length: Some(4096),
            destination_offset,
        }),
        ..Options::default()
    };
    let refused = copy(disk.source(), disk.destination(), window(100));
    assert_eq!(refused.unwrap_err().cause, Cause::SameFile);
    copy(disk.source(), disk.destination(), window(8192)).unwrap();
    assert!(disk.read()[8192..12288] == pattern(4096));
}
