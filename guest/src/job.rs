//! Copies that go on while the component does.

use crate::bindings::copyist::copy::copy::start_transfer;
use crate::bindings::copyist::copy::jobs;
use crate::bindings::copyist::copy::types::{self as wit, Failure};
use crate::copy::failed_side;
use crate::error::Call;
use crate::{
    CopyOptions, Error, HeldDestination, HeldSource, Pollable, Progress, Side, Summary, TreeEntry,
};

/// Starts to copy one file as [`copy`](crate::copy()) does, and does not wait for its end.
///
/// ```no_run
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let photo = copyist_guest::start("in/photo.raw", "out/photo.raw")?;
/// let index = copyist_guest::start("in/index", "out/index")?;
/// // Both are copied while this goes on.
/// println!("{} bytes so far", photo.progress().bytes);
/// println!("{} and {}", photo.wait()?.bytes, index.wait()?.bytes);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// What the host knows without a look at the files: an end without the right to it, or one that
/// cannot be held, and [`Cause::Limit`](crate::Cause::Limit) with
/// [`Limit::Copies`](crate::Limit::Copies) where as many copies are under way as may be. Anything
/// else is the [`outcome`](Job::outcome) of the job.
pub fn start<'a, 'b>(
    from: impl Into<HeldSource<'a>>,
    to: impl Into<HeldDestination<'b>>,
) -> Result<Job, Error> {
    CopyOptions::new().start(from, to)
}

impl CopyOptions {
    /// Starts to copy one file by these options, and does not wait for its end. The job keeps them
    /// as they are now.
    ///
    /// # Errors
    ///
    /// As [`start`].
    pub fn start<'a, 'b>(
        &self,
        from: impl Into<HeldSource<'a>>,
        to: impl Into<HeldDestination<'b>>,
    ) -> Result<Job, Error> {
        let (from, to) = (from.into(), to.into());
        let call = Call::Copy {
            from: from.name(),
            to: to.name(),
        };
        let source = match from.resolve() {
            Ok(source) => source,
            Err(why) => return Err(Error::before(call, Side::Source, why)),
        };
        let destination = match to.resolve() {
            Ok(destination) => destination,
            Err(why) => return Err(Error::before(call, Side::Destination, why)),
        };
        let ends = Ends {
            call,
            source: source_path(&source),
            destination: destination_path(&destination),
        };
        match start_transfer(source, destination, self.to_host().as_ref()) {
            Ok(host) => Ok(Job { host, ends }),
            Err(failure) => Err(ends.failed(failure)),
        }
    }
}

/// A copy under way, or one that has ended.
///
/// A drop cancels it: what it has made is gone again, as after any failure.
#[derive(Debug)]
#[must_use = "a job that is dropped is cancelled"]
pub struct Job {
    host: jobs::Job,
    ends: Ends,
}

impl Job {
    pub(crate) fn of_tree(host: jobs::Job, call: Call) -> Self {
        let ends = Ends {
            call,
            source: None,
            destination: None,
        };
        Job { host, ends }
    }

    /// The entries of a tree that failed so far, in the order in which they did; of a job that copies
    /// one file none.
    pub fn failures(&self) -> impl Iterator<Item = TreeEntry> + '_ {
        entries(|offset| self.host.failures(offset, PAGE))
    }

    /// The entries of a tree that were left out for a cause, as [`failures`](Self::failures).
    pub fn skipped(&self) -> impl Iterator<Item = TreeEntry> + '_ {
        entries(|offset| self.host.skipped(offset, PAGE))
    }

    /// Waits until it has ended, and returns its outcome, which stays. To wait for several things at
    /// once there is [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    ///
    /// As [`copy`](crate::copy()), and [`Cause::Cancelled`](crate::Cause::Cancelled) where it was.
    pub fn wait(&self) -> Result<Summary, Error> {
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            self.subscribe().block();
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.host.progress()
    }

    /// Asks it to end, and does not wait until it has. Its outcome is a failure by
    /// [`Cause::Cancelled`](crate::Cause::Cancelled) whose [`Error::summary`] counts what was done, or
    /// still a success where it has just been one.
    pub fn cancel(&self) {
        self.host.cancel();
    }

    /// How it ended, any number of times; nothing while it is under way.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Summary, Error>> {
        let outcome = self.host.outcome()?;
        Some(outcome.map_err(|failure| self.ends.failed(failure)))
    }

    /// Whether it has ended, well or not.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.host.outcome().is_some()
    }

    /// What is ready once it has ended: to wait for it beside other things, by
    /// [`wasip2::io::poll::poll`]. It may outlive the job.
    #[must_use]
    pub fn subscribe(&self) -> Pollable {
        self.host.subscribe()
    }
}

/// Entries that the host is asked for at once.
const PAGE: u32 = 256;

/// All of them, a page after the other.
fn entries(page: impl Fn(u64) -> Vec<Failure>) -> impl Iterator<Item = TreeEntry> {
    let mut offset = 0;
    let pages = std::iter::from_fn(move || {
        let entries = page(offset);
        offset += entries.len() as u64;
        (!entries.is_empty()).then_some(entries)
    });
    pages.flatten().map(TreeEntry::of)
}

/// What an error says of both ends, which are not held any more when it comes.
#[derive(Debug)]
struct Ends {
    call: Call,
    /// The paths that the host was given.
    source: Option<String>,
    destination: Option<String>,
}

impl Ends {
    fn failed(&self, failure: Failure) -> Error {
        if matches!(self.call, Call::Tree { .. }) {
            return Error::of_tree(self.call.clone(), failure);
        }
        let (source, destination) = (self.source.as_deref(), self.destination.as_deref());
        let side = failed_side(&failure, source, destination);
        Error::failed(self.call.clone(), side, failure)
    }
}

fn source_path(source: &wit::HeldSource<'_>) -> Option<String> {
    match source {
        wit::HeldSource::Path(location) => Some(location.path.clone()),
        _ => None,
    }
}

fn destination_path(destination: &wit::HeldDestination<'_>) -> Option<String> {
    match destination {
        wit::HeldDestination::Path(location) => Some(location.path.clone()),
        _ => None,
    }
}
