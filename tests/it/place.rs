//! A directory of the host, and what is in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// A directory that is gone after the test.
#[derive(Debug)]
pub(crate) struct Place {
    directory: TempDir,
}

/// What can be seen of an entry without opening what it leads to: its mode, its size where it is a
/// file, and its content or the text of the link.
type Entry = (u32, u64, Vec<u8>);

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// With one file.
    pub(crate) fn with(name: &str, content: &[u8]) -> Self {
        let place = Self::new();
        place.write(name, content);
        place
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    /// A file of zeros without storage.
    pub(crate) fn write_hole(&self, name: &str, size: u64) {
        fs::File::create(self.path(name))
            .and_then(|file| file.set_len(size))
            .unwrap();
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Setuid, setgid, sticky and permission bits.
    pub(crate) fn mode(&self, name: &str) -> u32 {
        self.stat(name).mode() & 0o7777
    }

    /// Sets when a file was modified, in nanoseconds since 1970.
    pub(crate) fn set_modified(&self, name: &str, nanoseconds: u64) {
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        fs::OpenOptions::new()
            .write(true)
            .open(self.path(name))
            .and_then(|file| {
                file.set_times(fs::FileTimes::new().set_accessed(time).set_modified(time))
            })
            .unwrap();
    }

    pub(crate) fn stat(&self, name: &str) -> fs::Metadata {
        fs::symlink_metadata(self.path(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Says where a file differs, not all that it holds.
    #[track_caller]
    pub(crate) fn assert_holds(&self, name: &str, expected: &[u8]) {
        let actual = fs::read(self.path(name)).unwrap();
        if actual == expected {
            return;
        }
        let first = actual.iter().zip(expected).position(|(a, e)| a != e);
        panic!(
            "{name}: {} bytes instead of {}, which differ first at {first:?}",
            actual.len(),
            expected.len(),
        );
    }

    /// The names in the directory itself, sorted: leftovers show.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// All that is there, to be compared with itself later.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, Entry> {
        let mut all = BTreeMap::new();
        look(self.root(), &mut all);
        all
    }
}

fn look(directory: &Path, all: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let (size, content) = if found.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            (0, target.into_os_string().into_encoded_bytes())
        } else if found.is_file() {
            (found.len(), fs::read(&path).unwrap())
        } else {
            (0, Vec::new())
        };
        if found.is_dir() {
            look(&path, all);
        }
        all.insert(path, (found.mode(), size, content));
    }
}

/// So many bytes, different at every offset and never a run of zeros, so that a piece that is
/// missing, doubled or out of place shows.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The FNV-1a hash, as guests print it.
pub(crate) fn fnv1a(bytes: &[u8]) -> String {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Says what was not tested, and why.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    eprintln!("{}: skipped: {why}", thread.name().unwrap_or("a test"));
}

/// Whether the process may do what only root may; says aloud if not.
pub(crate) fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(&format!("{what} needs root"));
    }
    root
}
