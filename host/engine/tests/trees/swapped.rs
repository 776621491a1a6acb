//! Somebody puts links and other directories in the place of those that are being copied.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use copyist_engine::{Existing, TreeOptions, WriteMode};
use rustix::fs::{CWD, RenameFlags};

use crate::support::{Place, archive};

const ROUNDS: usize = 60;

/// <https://github.com/uutils/coreutils/issues/10017>: nothing is read from outside and nothing is written there, whatever name is swapped for a link to a
/// directory outside, at either end.
#[test]
fn uutils_10017_names_that_are_swapped_for_links_lead_nowhere() {
    let place = Place::new();
    let outside = Place::new();
    outside.write("outside/secret/file", "secret");
    outside.dir("sink");
    for directory in 0..4 {
        for file in 0..8 {
            place.write(format!("in/from/{directory}/sub/{file}"), "public");
        }
    }
    place.dir("to/tree/0/sub");
    place.dir("to/tree/1/sub");
    let pairs = [
        ("in/from/0", "in/other-source", outside.path("outside")),
        (
            "in/from/1/sub",
            "in/other-sub",
            outside.path("outside/secret"),
        ),
        ("to/tree/0", "to/other-target", outside.path("sink")),
        ("to/tree/1/sub", "to/other-target-sub", outside.path("sink")),
    ];
    for (_, beside, target) in &pairs {
        place.link(target, beside);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (name, beside, _) in &pairs {
            let (name, beside) = (place.path(name), place.path(beside));
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let exchange = RenameFlags::EXCHANGE;
                    let _ = rustix::fs::renameat_with(CWD, &name, CWD, &beside, exchange);
                    std::thread::yield_now();
                }
            });
        }
        for round in 0..ROUNDS {
            let mut options = if round % 2 == 0 {
                archive()
            } else {
                TreeOptions::default()
            };
            options.keep_going = true;
            options.entries.existing = Existing::Write;
            if round % 3 == 0 {
                options.entries.write_mode = WriteMode::Replace;
            }
            options.grants.leaving_links = false;
            let (outcome, _) = place.copy_by(1 + round % 4, "in/from", "to/tree", &options);
            let _ = outcome;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        outside.names("sink").is_empty(),
        "{:?}",
        outside.names("sink")
    );
    assert_eq!(outside.names("outside"), ["secret"]);
    assert_eq!(outside.read("outside/secret/file"), b"secret");
    let mut left = vec![place.path("to")];
    let mut seen = 0;
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                seen += 1;
                assert_eq!(fs::read(entry.path()).unwrap(), b"public");
            }
        }
    }
    assert!(seen > 0);
}
