//! Copies while somebody swaps the names on their way for links that lead out of the root: nothing
//! outside is read, written, made or removed, however often it is tried.
//!
//! Each of the two ends is attacked at its last name and at a directory above it, by openat2(2) and
//! by the walk of one component at a time that takes its place where the kernel has no such call.

mod root;

use std::env;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use copyist_bed::seccomp::{Denied, SystemCall, run_denied};
use copyist_bed::skipped;
use copyist_engine::{
    Cancel, Cause, Destination, Environment, Errno, Options, ReadOptions, ReadRequest, Side,
    Source, WriteMode, copy_in, read_in,
};

use crate::support::hooked::{Call, hooked};
use crate::support::{assert_same, beside, fallback, request};
use root::{INSIDE, Root};

/// How many copies are made in all, half of them each way: by `ci/filesystems` more than [`FEW`].
const COPIES: &str = "COPYIST_ATTACKED_COPIES";
const FEW: usize = 20_000;

/// How the names of a path are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Openat2,
    Walk,
}

/// Which name of the end that is attacked is swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Leaf,
    /// A directory above it.
    Parent,
}

/// What is done to the end that is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// It is copied: to a new name, over a file, in the place of one.
    Copied(Option<WriteMode>),
    /// It is read as a whole.
    Read,
    /// It is made.
    Made,
    /// It is made, and taken back half the time since the copy fails.
    TakenBack,
    /// It is there, and written.
    Written(WriteMode),
}

const DEEDS: [Deed; 8] = [
    Deed::Copied(None),
    Deed::Copied(Some(WriteMode::InPlace)),
    Deed::Copied(Some(WriteMode::Replace)),
    Deed::Read,
    Deed::Made,
    Deed::TakenBack,
    Deed::Written(WriteMode::InPlace),
    Deed::Written(WriteMode::Replace),
];

// https://github.com/uutils/coreutils/issues/10017, CVE-2018-15664: a name was looked at, and then
// followed.
#[test]
fn uutils_10017_no_swap_of_names_leads_openat2_out() {
    attack_all(Way::Openat2);
}

// https://github.com/uutils/coreutils/issues/10017, where the kernel has no openat2(2).
#[test]
fn uutils_10017_no_swap_of_names_leads_the_walk_out() {
    let denied = Denied {
        call: SystemCall::Openat2,
        errno: Errno::NOSYS,
    };
    // It says aloud where there are no filters.
    run_denied(&[denied], || attack_all(Way::Walk));
}

fn attack_all(way: Way) {
    for deed in DEEDS {
        for part in [Part::Leaf, Part::Parent] {
            let Some(root) = Root::new() else {
                return skipped("no file system in memory");
            };
            attack(&root, way, deed, part);
        }
    }
}

/// One thing that is done to one name while it is swapped.
struct Attack<'a> {
    root: &'a Root,
    way: Way,
    deed: Deed,
    part: Part,
    environment: Environment,
}

/// Does it many times, and on until it was done once and refused once.
#[expect(clippy::print_stdout, reason = "that it was a race is shown by counts")]
fn attack(root: &Root, way: Way, deed: Deed, part: Part) {
    if deed == Deed::TakenBack {
        root.put_outside("new");
    }
    let step = Arc::new(Step::default());
    let attack = Attack {
        root,
        way,
        deed,
        part,
        environment: out_of_step(&step, deed == Deed::TakenBack),
    };
    let before = root.outside();
    let swap = || {
        match (part, deed) {
            (Part::Leaf, Deed::Made | Deed::TakenBack) => root.toggle_leaf(),
            (Part::Leaf, _) => root.swap_leaf(),
            (Part::Parent, _) => root.swap_parent(),
        }
        step.swaps.fetch_add(1, Ordering::Relaxed);
    };
    let (done, refused) = beside(swap, || attack.repeat());
    let swaps = step.swaps.load(Ordering::Relaxed);
    let what = format!("{way:?} {deed:?} {part:?}: {done} done, {refused} refused, {swaps} swaps");
    assert_eq!(root.outside(), before, "{what}");
    root.assert_no_leftovers();
    assert!(done > 0 && refused > 0, "no race: {what}");
    println!("{what}");
}

/// What keeps the copies from going in step with the swaps.
#[derive(Debug, Default)]
struct Step {
    swaps: AtomicUsize,
    stops: AtomicUsize,
}

impl Step {
    /// Stops for a moment: a call often begins where one ended that held up a swap. Every sixteenth time
    /// it lets a swap go first.
    fn stop(&self) {
        const LONGEST: Duration = Duration::from_micros(200);
        let number = self.stops.fetch_add(1, Ordering::Relaxed) % 16;
        let swaps = || self.swaps.load(Ordering::Relaxed);
        let (started, before) = (Instant::now(), swaps());
        let pause = Duration::from_micros(number as u64);
        let waits = || number == 0 && swaps() == before && started.elapsed() < LONGEST;
        while started.elapsed() < pause || waits() {
            std::hint::spin_loop();
        }
    }
}

/// The system itself, out of step with the swaps. Where it `fails`, every second write does.
fn out_of_step(step: &Arc<Step>, fails: bool) -> Environment {
    let step = step.clone();
    let is_second = AtomicBool::new(false);
    hooked(move |call| {
        if matches!(call, Call::Open(..) | Call::Write | Call::Publish) {
            step.stop();
        }
        let fails = fails && matches!(call, Call::Write);
        (fails && is_second.fetch_not(Ordering::Relaxed)).then_some(Errno::IO)
    })
}

impl Attack<'_> {
    fn repeat(&self) -> (usize, usize) {
        let copies = env::var(COPIES).map_or(FEW, |copies| copies.parse().unwrap());
        let each = copies / 2 / (2 * DEEDS.len());
        let (mut done, mut refused) = (0, 0);
        for number in 0..100 * each {
            if number >= each && done > 0 && refused > 0 {
                break;
            }
            match self.once(number) {
                Ok(()) => done += 1,
                Err(cause) => {
                    self.assert_refused(&cause);
                    refused += 1;
                }
            }
        }
        (done, refused)
    }

    /// Links are followed every second time, and a `..` is on the way every eighth.
    fn once(&self, number: usize) -> Result<(), Cause> {
        let makes = matches!(self.deed, Deed::Made | Deed::TakenBack);
        let path = match (self.part, makes, number % 8) {
            (Part::Leaf, ..) => "leaf",
            (Part::Parent, false, 7) => "directory/sub/../sub/file",
            (Part::Parent, true, 7) => "directory/sub/../sub/new",
            (Part::Parent, false, _) => "directory/sub/file",
            (Part::Parent, true, _) => "directory/sub/new",
        };
        let attacked = self.root.location(path, number.is_multiple_of(2));
        match self.deed {
            Deed::Copied(over) => self.copied_from(Source::Path(attacked), over),
            Deed::Read => {
                let request = ReadRequest {
                    source: Source::Path(attacked),
                    options: ReadOptions::default(),
                };
                let read = read_in(&self.environment, &request, &Cancel::new());
                assert_same(&read.map_err(|error| error.cause)?, INSIDE, path);
                Ok(())
            }
            Deed::Made | Deed::TakenBack => {
                let done = self.written_to(Destination::Path(attacked), WriteMode::InPlace);
                self.root.remove_deep("new");
                match done {
                    // It was made, and its copy failed.
                    Err(Cause::Io(Side::Destination, Errno::IO)) => Ok(()),
                    done => done,
                }
            }
            Deed::Written(mode) => self.written_to(Destination::Path(attacked), mode),
        }
    }

    fn copied_from(&self, source: Source, over: Option<WriteMode>) -> Result<(), Cause> {
        let to = self.root.path("to");
        match over {
            Some(_) => fs::write(&to, "old").unwrap(),
            None => drop(fs::remove_file(&to)),
        }
        let options = Options {
            write_mode: over.unwrap_or_default(),
            ..Options::default()
        };
        let destination = Destination::Path(self.root.location("to", false));
        let copied = self.copy(source, destination, &options);
        match &copied {
            Ok(()) => assert_same(&fs::read(&to).unwrap(), INSIDE, "to"),
            Err(_) if over.is_some() => assert_same(&fs::read(&to).unwrap(), b"old", "to"),
            Err(_) => assert!(!to.exists()),
        }
        copied
    }

    fn written_to(&self, destination: Destination, write_mode: WriteMode) -> Result<(), Cause> {
        let options = Options {
            write_mode,
            // What fails is the write of a loop.
            tuning: fallback(),
            ..Options::default()
        };
        let source = Source::Path(self.root.location("from", false));
        self.copy(source, destination, &options)
    }

    fn copy(
        &self,
        source: Source,
        destination: Destination,
        options: &Options,
    ) -> Result<(), Cause> {
        let request = request(source, destination, options);
        match copy_in(&self.environment, request, &Cancel::new()) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.cause),
        }
    }

    /// For the link, and for nothing else.
    fn assert_refused(&self, cause: &Cause) {
        let side = match self.deed {
            Deed::Copied(_) | Deed::Read => Side::Source,
            Deed::Made | Deed::TakenBack | Deed::Written(_) => Side::Destination,
        };
        let refused: &[Errno] = match (self.way, self.deed) {
            // And what vanishes as often as it is looked for.
            (Way::Openat2, Deed::Made | Deed::TakenBack) => {
                &[Errno::PERM, Errno::LOOP, Errno::NOENT]
            }
            (Way::Openat2, _) => &[Errno::PERM, Errno::LOOP],
            // And what was a link is none any more when it is to be read, or the other way round.
            (Way::Walk, _) => &[
                Errno::PERM,
                Errno::LOOP,
                Errno::NOENT,
                Errno::INVAL,
                Errno::NOTDIR,
            ],
        };
        assert!(
            matches!(cause, Cause::Io(at, errno) if *at == side && refused.contains(errno)),
            "{:?} {:?} {:?}: {cause:?}",
            self.way,
            self.deed,
            self.part
        );
    }
}
