//! What the tests share: places to copy between, bytes to copy, ways to copy them.

pub(crate) mod child;
pub(crate) mod content;
pub(crate) mod hooked;
pub(crate) mod kernel;
pub(crate) mod place;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use copyist_engine::sys::{self, FatalSignalsBlocked};
use copyist_engine::{
    Base, Cancel, Cause, Destination, Environment, Error, Handle, Location, Mechanism, Options,
    Reflink, Request, Source, Step, Summary, Transfer, Tuning, WriteMode,
};

pub(crate) use copyist_bed::skipped;

pub(crate) use content::{assert_same, other, pattern};
pub(crate) use place::{Place, pairs, places};

/// Whether the process may do what only root may; says aloud if not.
pub(crate) fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(&format!("{what} needs root"));
    }
    root
}

/// A name beneath a handle; a link as its last component is not followed.
pub(crate) fn at(base: &Handle, path: impl AsRef<Path>) -> Location {
    Location {
        base: Base::Beneath(base.clone()),
        path: path.as_ref().into(),
        follow: false,
    }
}

/// The same, and the link is followed.
pub(crate) fn follow(base: &Handle, path: impl AsRef<Path>) -> Location {
    Location {
        follow: true,
        ..at(base, path)
    }
}

/// A system layer of the test's own, which knows of no refusal yet.
pub(crate) fn fresh() -> Environment {
    Environment::new(sys::native())
}

pub(crate) fn request(source: Source, destination: Destination, options: &Options) -> Request {
    Request {
        source,
        destination,
        options: options.clone(),
    }
}

/// Copies, on a system layer of its own.
pub(crate) fn copy(
    source: Source,
    destination: Destination,
    options: &Options,
) -> Result<Summary, Error> {
    let request = request(source, destination, options);
    copyist_engine::copy_in(&fresh(), request, &Cancel::new())
}

/// Copies, and tells why it failed.
#[track_caller]
pub(crate) fn refusal(source: Source, destination: Destination, options: &Options) -> Cause {
    match copy(source, destination, options) {
        Ok(summary) => panic!("it was copied: {summary:?}"),
        Err(error) => error.cause,
    }
}

/// Drives a copy by hand to its end and looks around after every step.
pub(crate) fn drive(transfer: &mut Transfer, mut look: impl FnMut(&Step)) -> Step {
    let _signals = FatalSignalsBlocked::new();
    loop {
        let step = transfer.step(u64::MAX);
        look(&step);
        if matches!(step, Step::Done(_) | Step::Failed(_)) {
            return step;
        }
    }
}

/// The summary of a copy that succeeded.
#[track_caller]
pub(crate) fn done(step: Step) -> Summary {
    match step {
        Step::Done(summary) => summary,
        other => panic!("it is not done: {other:?}"),
    }
}

/// The error of a copy that failed.
#[track_caller]
pub(crate) fn failed(step: Step) -> Error {
    match step {
        Step::Failed(error) => error,
        other => panic!("it has not failed: {other:?}"),
    }
}

/// Runs `body` while another thread does something again and again, until it ends or panics.
pub(crate) fn beside<T>(mut again: impl FnMut() + Send, body: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                again();
            }
        });
        body()
    })
}

/// By default, with the fallback forced, and by each mechanism alone.
pub(crate) fn every_way() -> Vec<(String, Tuning)> {
    let mut ways = vec![
        ("default".to_owned(), Tuning::default()),
        ("fallback".to_owned(), fallback()),
    ];
    ways.extend(Mechanism::ALL.map(|mechanism| (mechanism.to_string(), only(mechanism))));
    ways
}

/// The ways that work for part of a file and for a file that exists, on any file system.
pub(crate) fn byte_movers() -> [Mechanism; 3] {
    [
        Mechanism::CopyRange,
        Mechanism::SendFile,
        Mechanism::ReadWrite,
    ]
}

pub(crate) fn only(mechanism: Mechanism) -> Tuning {
    Tuning {
        only: Some(mechanism),
        ..Tuning::default()
    }
}

pub(crate) fn fallback() -> Tuning {
    Tuning {
        force_fallback: true,
        ..Tuning::default()
    }
}

/// By this mechanism alone, in calls of this size: a copy of many steps.
pub(crate) fn in_pieces(mechanism: Mechanism, call_size: usize) -> Options {
    Options {
        reflink: Reflink::Auto,
        tuning: Tuning {
            only: Some(mechanism),
            call_size: NonZeroUsize::new(call_size),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

pub(crate) fn replacing() -> Options {
    Options {
        write_mode: WriteMode::Replace,
        ..Options::default()
    }
}

/// Both ways to write.
pub(crate) const WRITE_MODES: [WriteMode; 2] = [WriteMode::InPlace, WriteMode::Replace];

pub(crate) fn file(handle: &Handle) -> Destination {
    Destination::File(handle.clone())
}

pub(crate) fn handle(file: impl Into<std::fs::File>) -> Handle {
    Arc::new(file.into())
}
