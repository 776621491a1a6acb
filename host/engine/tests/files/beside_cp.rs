//! The same files by GNU `cp -a` and by the copier with everything preserved and granted: the two
//! copies are equal in all that a file has, and ours takes no more room.
//!
//! `cp -a` keeps the mode, the owner, the times, extended attributes and access control lists, makes
//! holes where the source has them (`--sparse=auto`) and shares storage where it can
//! (`--reflink=auto`); see cp(1).

mod facts;
mod sources;

use std::fmt;
use std::fs;
use std::process::Command;

use copyist_bed::skipped;
use copyist_engine::{Grants, Options, Preserve, WriteMode};

use crate::support::{Place, assert_same, copy, other, pairs};
use facts::{Facts, set_attribute};
use sources::{ACCESS_LIST, CAPABILITY, SOURCES, Source, access_list, capability};

const OURS: &str = "ours";
const THEIRS: &str = "theirs";

/// What stands under the destination's name before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A plain file of one byte.
    Shorter,
    /// A longer one, with a mode and attributes of its own.
    Longer,
}

/// One comparison.
struct Case<'a> {
    source: &'a Source,
    from: &'a Place,
    to: &'a Place,
    before: Before,
    write_mode: WriteMode,
}

/// What `cp` must be told to do the same.
const KINDS: [(Before, WriteMode, &[&str]); 6] = [
    (Before::Nothing, WriteMode::InPlace, &[]),
    (Before::Nothing, WriteMode::Replace, &[]),
    (Before::Shorter, WriteMode::InPlace, &[]),
    (Before::Longer, WriteMode::InPlace, &[]),
    (Before::Shorter, WriteMode::Replace, &[REPLACE]),
    (Before::Longer, WriteMode::Replace, &[REPLACE]),
];

const REPLACE: &str = "--remove-destination";

#[test]
fn a_copy_is_what_gnu_cp_makes_of_the_same_file() {
    if !is_there() {
        return;
    }
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("what others own, and what only root may set, needs root");
    }
    for (from, to, _) in pairs() {
        for source in SOURCES.iter().filter(|source| root || !source.of_root) {
            if let Err(why) = source.make(&from.path("from")) {
                skipped(&format!("{} in {}: {why}", source.name, from.name));
                continue;
            }
            for (before, write_mode, words) in KINDS {
                let case = Case {
                    source,
                    from: &from,
                    to: &to,
                    before,
                    write_mode,
                };
                case.compare(words);
            }
            fs::remove_file(from.path("from")).unwrap();
        }
    }
}

/// Whether `cp` is GNU's; says aloud if not.
fn is_there() -> bool {
    let said = match Command::new("cp").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => error.to_string(),
    };
    let is_there = said.contains("GNU coreutils");
    if !is_there {
        skipped(&format!(
            "no GNU cp: {}",
            said.lines().next().unwrap_or_default()
        ));
    }
    is_there
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} to {}, over {:?}, {:?}",
            self.source.name, self.from.name, self.to.name, self.before, self.write_mode
        )
    }
}

impl Case<'_> {
    fn compare(&self, words: &[&str]) {
        let (from, to) = (self.from, self.to);
        // Reading moves the access time, so that it is set anew for each.
        self.source.set_times(&from.path("from"));
        self.prepare(THEIRS);
        let output = Command::new("cp")
            .args(["-a", "--sparse=auto", "--reflink=auto"])
            .args(words)
            .args([from.path("from"), to.path(THEIRS)])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self}: {said}");

        self.source.set_times(&from.path("from"));
        self.prepare(OURS);
        let options = as_archive(self.write_mode);
        let summary = copy(from.source("from"), to.destination(OURS), &options)
            .unwrap_or_else(|error| panic!("{self}: {error}"));
        assert_eq!(summary.lost, Preserve::NONE, "{self}");

        let ours = Facts::of(&to.path(OURS));
        let theirs = Facts::of(&to.path(THEIRS));
        assert_eq!(ours.named, theirs.named, "{self}");
        assert!(
            ours.blocks <= theirs.blocks || self.reason_for_more_room().is_some(),
            "{self}: {} blocks, and {} by cp",
            ours.blocks,
            theirs.blocks
        );
        assert_same(&to.read(OURS), &to.read(THEIRS), &self.to_string());
        fs::remove_file(to.path(OURS)).unwrap();
        fs::remove_file(to.path(THEIRS)).unwrap();
        to.assert_names(&[], &self.to_string());
    }

    /// Where our copy may take more room than that of `cp`, by what the contract says.
    fn reason_for_more_room(&self) -> Option<&'static str> {
        let in_place = self.write_mode == WriteMode::InPlace && self.before != Before::Nothing;
        if in_place && facts::allocates_in_advance(&self.to.path("")) {
            return Some(
                "`in-place` overwrites the old file and cuts it at the end, where `cp` empties it \
                 first: XFS allocates in advance for a file that is closed, opened and made longer \
                 again, and btrfs keeps the block in which the old file ended",
            );
        }
        if self.source.reserves && !self.from.is_trusted() {
            return Some(
                "with sparse `auto`, what is called a hole is read all the same unless the file \
                 system is known to be right about it; and reserved space that was read is data to \
                 the kernel",
            );
        }
        None
    }

    fn prepare(&self, name: &str) {
        let to = self.to;
        match self.before {
            Before::Nothing => {}
            Before::Shorter => {
                to.write(name, other(1));
                to.set_mode(name, 0o600);
            }
            Before::Longer => {
                to.write(name, other(2 << 20));
                to.set_mode(name, 0o751);
                let path = to.path(name);
                // What cannot be set here is not there for either.
                let _ = set_attribute(&path, "user.old", b"old");
                let _ = set_attribute(&path, ACCESS_LIST, &access_list());
                let _ = set_attribute(&path, CAPABILITY, &capability());
            }
        }
    }
}

/// What `cp -a` keeps.
fn as_archive(write_mode: WriteMode) -> Options {
    Options {
        write_mode,
        preserve: Preserve::MODE
            | Preserve::TIMESTAMPS
            | Preserve::OWNERSHIP
            | Preserve::XATTRS
            | Preserve::ACLS
            | Preserve::LINKS,
        grants: Grants {
            special_mode_bits: true,
            ownership: true,
            privileged_xattrs: true,
        },
        ..Options::default()
    }
}
