//! What a guest says at random: each an answer, none a panic of the host or a trap, nothing beyond
//! what was granted, and nothing left.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use copyist_test_artifacts::FUZZ;
use copyist_wasmtime::engine::{Grants, Pool, PoolOptions};
use rustix::fs::{CWD, FileType, Mode};

use crate::host::{Guest, Linking};
use crate::memory::largest_request;
use crate::place::{Place, pattern, skipped};

/// Of one copy, so that no made up length takes long.
const MOST_BYTES: u64 = 1 << 20;
/// What no guest gets to see.
const SECRET: &[u8] = b"what lies outside is nobody's business";
/// So many seeds, the same in every run.
const SEEDS: u64 = 30;
const CALLS: u64 = 250;

/// So many seeds from this one on; others, and as many as it says, where `PROPTEST_CASES` is set.
fn seeds() -> std::ops::Range<u64> {
    let Ok(cases) = std::env::var("PROPTEST_CASES") else {
        return 0..SEEDS;
    };
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    now..now + cases.parse::<u64>().unwrap()
}

/// What may be written with one of everything, what may be read, and what is outside of both.
fn place() -> Place {
    let place = Place::with("secret", SECRET);
    for directory in ["w", "w/sub", "r"] {
        fs::create_dir(place.path(directory)).unwrap();
    }
    place.write("w/plain", b"tea and copies\n");
    place.write("w/a", &pattern(100_000));
    place.write("w/b", &pattern(5000));
    place.write("w/sub/c", &pattern(70_000));
    place.write_hole("w/hole", 1 << 34);
    place.write("r/a", &pattern(10_000));
    place.write("r/plain", b"others\n");
    for (target, link) in [
        ("a", "w/link"),
        ("../secret", "w/out"),
        ("..", "w/up"),
        ("loop", "w/loop"),
    ] {
        symlink(target, place.path(link)).unwrap();
    }
    let fifo = place.path("w/fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    drop(UnixListener::bind(place.path("w/socket")).unwrap());
    place
}

/// What this process has open in a directory.
fn open_in(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        skipped("no list of open descriptors");
        return Vec::new();
    };
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(root))
        .collect()
}

/// Whether the secret is anywhere, or a temporary file.
fn check(place: &Place, what: &str) {
    place.assert_holds("secret", SECRET);
    place.assert_holds("w/plain", b"tea and copies\n");
    place.assert_holds("w/last", b"tea and copies\n");
    place.assert_holds("r/a", &pattern(10_000));
    assert_eq!(place.names(), ["r", "secret", "w"], "{what}");
    let mut directories = vec![place.path("w"), place.path("r")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let (name, kind) = (entry.file_name(), entry.file_type().unwrap());
            let name = name.to_string_lossy().into_owned();
            let number = name.strip_prefix(".copyist-").unwrap_or_default();
            let is_number =
                number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit());
            // The guest itself may have made this one.
            let is_temporary = is_number && number != "0123456789abcdef";
            assert!(!is_temporary, "{what}: {name} is left");
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() && entry.metadata().unwrap().len() < MOST_BYTES {
                let content = fs::read(entry.path()).unwrap();
                let is_secret = content.windows(SECRET.len()).any(|part| part == SECRET);
                assert!(!is_secret, "{what}: the secret is in {name}");
            }
        }
    }
    let open = open_in(place.root());
    assert!(open.is_empty(), "{what}: {open:?} are left open");
}

fn guest(place: &Place, pool: &Arc<Pool>, seed: u64) -> Guest {
    Guest::new(FUZZ)
        .dir(place.path("w"), "w")
        .read_only_dir(place.path("r"), "r")
        .args([
            "w".to_owned(),
            format!("--seed={seed}"),
            format!("--calls={CALLS}"),
        ])
        .copying(|copying| {
            copying
                .max_bytes(MOST_BYTES)
                .max_read_size(MOST_BYTES)
                .grants(Grants {
                    special_mode_bits: seed.is_multiple_of(2),
                    ownership: seed.is_multiple_of(3),
                    privileged_xattrs: seed.is_multiple_of(5),
                })
                .pool(pool.clone());
        })
}

/// Runs the program with one seed, and tells how often it copied and read something.
pub(crate) fn run(linking: Linking, pool: &Arc<Pool>, seed: u64) -> [u64; 2] {
    let place = place();
    let ended = guest(&place, pool, seed).run(linking);
    let what = format!("seed {seed}, {linking:?}");
    let answer = ended.answer().done();
    assert_eq!(answer.number("bytes"), 15, "{what}");
    check(&place, &what);
    ["copied", "read"].map(|key| answer.number(key))
}

#[test]
fn whatever_a_guest_says_is_answered() {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let seeds = seeds();
    let mut done = [0, 0];
    for linking in Linking::BOTH {
        for seed in seeds.clone() {
            let [copied, read] = run(linking, &pool, seed);
            done = [done[0] + copied, done[1] + read];
        }
    }
    // It is not all refused.
    let least = 4 * (seeds.end - seeds.start);

    assert!(done.iter().all(|done| *done > least), "{done:?}");
    let largest = largest_request();
    assert!(largest <= 100 << 20, "{largest} bytes at once");
}

/// A handle that is none is no mistake of an author, and has no answer. It is the guest's end and
/// nobody else's.
#[test]
fn a_forged_handle_ends_its_guest_alone() {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    for linking in Linking::BOTH {
        let place = place();
        let ended = guest(&place, &pool, 1).args(["--forge"]).run(linking);
        let why = ended.refusal().expect("a forged handle is taken");
        assert!(why.contains("handle"), "{why}");
        check(&place, "forged");
        run(linking, &pool, 1);
    }
}
