//! Trees of every shape, by one thread and by several.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use copyist_engine::TreeOptions;

use super::child::alone;
use crate::facts::{self, BYTES};
use crate::support::{Place, pattern};

/// The same tree by as many threads: the copies must not differ.
const THREADS: [usize; 3] = [1, 2, 7];

fn everywhere(place: &Place, entries: u64) {
    let options = TreeOptions::default();
    let summary = place.copy("from", "alone", &options).unwrap();
    let count = |s: &copyist_engine::Summary| s.files + s.directories + s.links + s.special;
    assert_eq!(count(&summary), entries);
    facts::assert_same(&place.path("from"), &place.path("alone"), BYTES);
    for threads in THREADS {
        let to = format!("by-{threads}");
        let (outcome, _) = place.copy_by(threads, "from", &to, &options);
        assert_eq!(count(&outcome.unwrap()), entries, "{threads}");
        facts::assert_same(&place.path("from"), &place.path(&to), BYTES);
    }
}

#[test]
fn an_empty_tree_is_a_directory() {
    let place = Place::new();
    place.dir("from");
    everywhere(&place, 1);
}

#[test]
fn many_directories_with_a_few_files_each() {
    let place = Place::new();
    for directory in 0..40 {
        for file in 0..25 {
            let name = format!("from/{}/{directory}/{file}", directory % 7);
            place.write(name, pattern(file * 700, directory));
        }
    }
    everywhere(&place, 1 + 7 + 40 + 40 * 25);
}

/// It is given to several threads in batches.
#[test]
fn one_directory_with_many_files() {
    let place = Place::new();
    for file in 0..3000 {
        place.write(format!("from/{file:05}"), file.to_string());
    }
    everywhere(&place, 3001);
}

/// Its names are listed once, and its files copied while it is.
#[test]
fn large_files_among_small_ones() {
    let place = Place::new();
    for file in 0..30 {
        let size = if file % 11 == 0 { 9 << 20 } else { 100 };
        place.write(format!("from/{}/{file}", file % 3), pattern(size, file));
    }
    everywhere(&place, 34);
}

/// <https://github.com/nodejs/node/issues/61121>, <https://github.com/oven-sh/bun/issues/36059>.
#[test]
fn node_61121_bun_36059_names_are_bytes() {
    let place = Place::new();
    let names: [&[u8]; 9] = [
        b"\xff\xfe",
        b"new\nline",
        b" ",
        b"-rf",
        b"...",
        b"..a",
        "\u{1F600}".as_bytes(),
        b"*",
        &[b'n'; 255],
    ];
    for name in names {
        let directory = place.path("from").join(OsStr::from_bytes(name));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(OsStr::from_bytes(name)), name).unwrap();
    }
    everywhere(&place, 1 + 2 * 9);
}

/// <https://github.com/oven-sh/bun/issues/29975>, <https://github.com/uutils/coreutils/issues/7376>,
/// <https://github.com/uutils/coreutils/issues/2688>: PATH_MAX is 4096 bytes.
#[test]
fn bun_29975_uutils_7376_2688_a_tree_deeper_than_a_path_reaches() {
    let place = Place::new();
    place.dir("from");
    let depth = 700;
    deep(&place, "from", depth);
    let options = TreeOptions::default();
    let summary = place.copy("from", "alone", &options).unwrap();
    assert_eq!(summary.directories, 1 + depth);
    assert_eq!(summary.files, depth);
    let (outcome, _) = place.copy_by(4, "from", "by-4", &options);
    assert_eq!(outcome.unwrap().files, depth);
    for to in ["alone", "by-4"] {
        assert_eq!(depth_of(&place, to), (depth, depth));
    }
}

const LONG: &str = "a-directory-whose-name-is-rather-long-so-that-few-of-them-are-enough";

/// Made from directory to directory, since no path reaches that far.
fn deep(place: &Place, root: &str, depth: u64) {
    use rustix::fs::{Mode, OFlags};
    let mode = Mode::from_raw_mode(0o755);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = rustix::fs::open(place.path(root), flags, Mode::empty()).unwrap();
    for level in 0..depth {
        rustix::fs::mkdirat(&directory, LONG, mode).unwrap();
        let file = rustix::fs::openat(
            &directory,
            "file",
            OFlags::WRONLY | OFlags::CREATE,
            Mode::from_raw_mode(0o644),
        );
        rustix::io::write(file.unwrap(), level.to_string().as_bytes()).unwrap();
        directory = rustix::fs::openat(&directory, LONG, flags, Mode::empty()).unwrap();
    }
}

fn depth_of(place: &Place, root: &str) -> (u64, u64) {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = rustix::fs::open(place.path(root), flags, Mode::empty()).unwrap();
    let (mut depth, mut files) = (0, 0);
    loop {
        if rustix::fs::openat(&directory, "file", OFlags::RDONLY, Mode::empty()).is_ok() {
            files += 1;
        }
        match rustix::fs::openat(&directory, LONG, flags, Mode::empty()) {
            Ok(below) => directory = below,
            Err(_) => return (depth, files),
        }
        depth += 1;
    }
}

/// <https://github.com/uutils/coreutils/issues/2312>,
/// <https://github.com/jprichardson/node-fs-extra/issues/103>: as many as a few directories and files
/// need, however large and deep the tree is.
#[test]
fn uutils_2312_fs_extra_103_few_descriptors_are_open_at_once() {
    alone(
        uutils_2312_fs_extra_103_few_descriptors_are_open_at_once,
        || {
            let place = Place::new();
            place.dir("from");
            deep(&place, "from", 300);
            for file in 0..3000 {
                place.write(format!("from/flat/{file}"), "text");
            }
            for directory in 0..1000 {
                place.dir(format!("from/wide/{directory}"));
            }
            let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
            let maximum = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
            for (threads, most) in [(1, 45), (4, 115)] {
                let limit = rustix::process::Rlimit {
                    current: Some(open + most),
                    maximum,
                };
                rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
                let to = format!("to-{threads}");
                let (outcome, _) = place.copy_by(threads, "from", &to, &TreeOptions::default());
                let summary = outcome.unwrap();
                assert_eq!((summary.files, summary.directories), (3300, 1303));
            }
            // To remove it all, std has as many open as it is deep.
            let all = rustix::process::Rlimit {
                current: maximum,
                maximum,
            };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, all).unwrap();
        },
    );
}
