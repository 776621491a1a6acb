//! What a tree asks of the system.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};

use copyist_engine::sys::{Layer, Result, Sys};
use copyist_engine::{
    Cancel, Durability, Environment, Summary, TreeOptions, WriteMode, copy_tree_in,
};

use crate::support::Place;

/// Counts calls, and says of one directory that another file system is mounted there.
#[derive(Debug)]
struct Counted {
    native: Arc<dyn Sys>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    mounted: Option<u64>,
}

impl Layer for Counted {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn before(&self, call: &'static str) {
        // Which platform it is is no call.
        if call == "platform" {
            return;
        }
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
    }

    fn mount(&self, fd: BorrowedFd<'_>) -> Result<u64> {
        let inode = rustix::fs::fstat(fd.as_fd())?.st_ino;
        if self.mounted == Some(inode) {
            return Ok(u64::MAX);
        }
        self.native.mount(fd)
    }
}

fn copied(
    place: &Place,
    to: &str,
    options: &TreeOptions,
    mounted: Option<u64>,
) -> (Summary, BTreeMap<&'static str, usize>) {
    let sys = Arc::new(Counted {
        native: copyist_engine::sys::native(),
        calls: Mutex::default(),
        mounted,
    });
    let environment = Environment::new(sys.clone());
    let request = place.request("from", to, options);
    let summary = copy_tree_in(&environment, request, &Cancel::new()).unwrap();
    let calls = sys.calls.lock().unwrap().clone();
    (summary, calls)
}

fn made() -> Place {
    let place = Place::new();
    for directory in 0..5 {
        for file in 0..40 {
            place.write(format!("from/{directory}/{file}"), "text");
        }
    }
    place
}

/// One for all of them, or one for each; never one that was not asked for.
#[test]
fn as_many_syncs_as_were_asked_for() {
    let place = made();
    for write_mode in [WriteMode::InPlace, WriteMode::Replace] {
        for durability in [Durability::None, Durability::Each, Durability::End] {
            let mut options = TreeOptions::default();
            options.entries.write_mode = write_mode;
            options.entries.durability = durability;
            let to = format!("{write_mode:?}-{durability:?}");
            let (_, calls) = copied(&place, &to, &options, None);
            let count = |call| calls.get(call).copied().unwrap_or(0);
            let syncs = (count("sync"), count("sync_file_system"));
            let expected = match (durability, write_mode) {
                (Durability::None, _) => (0, 0),
                // The files, the directories, and the one in which the root has its name.
                (Durability::Each, _) => (200 + 6 + 1, 0),
                (Durability::End, WriteMode::InPlace) => (0, 1),
                // A batch of files is whole on the disk before any of it has its name.
                (Durability::End, WriteMode::Replace) => (0, 5 * 3 + 1),
            };
            assert_eq!(syncs, expected, "{write_mode:?} {durability:?}");
        }
    }
}

/// Relative to open directories, and by what the listing says: seven for a small file, one more where
/// close(2) may have something to say (overlayfs), and a handful for a directory.
#[test]
fn few_calls_for_a_file() {
    let place = made();
    let (_, calls) = copied(&place, "warm", &TreeOptions::default(), None);
    let all: usize = calls.values().sum();
    let more = usize::from(calls["stat"] > 400);
    let asked = |call| calls.get(call).copied().unwrap_or(0);
    assert_eq!(asked("stat_at"), 1 + 1, "{calls:?}");
    assert!(all <= 200 * (7 + more) + 6 * 16 + 20, "{all}: {calls:?}");
}

/// It is made, and what is mounted there is left.
#[test]
fn a_copy_stays_on_its_file_system() {
    let place = made();
    let inode = std::fs::metadata(place.path("from/3")).unwrap().ino();
    let mut options = TreeOptions::default();
    let (summary, _) = copied(&place, "all", &options, Some(inode));
    assert_eq!(summary.files, 200);
    options.one_file_system = true;
    let (summary, _) = copied(&place, "one", &options, Some(inode));
    assert_eq!((summary.files, summary.directories), (160, 6));
    assert_eq!(summary.skipped, 1);
    assert!(place.names("one/3").is_empty());
}
