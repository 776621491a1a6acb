//! What the parts of one tree share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::directory::Mounted;
use super::links::Links;
use super::part::{Executor, Part};
use super::report::{TreeEntry, TreeReport};
use super::request::{Symlinks, TreeOptions, TreeRequest};
use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::error::{Cause, Error, Limit, Side, Unsupported};
use crate::limits::Quota;
use crate::plan::{Mechanism, Platform};
use crate::progress::Progress;
use crate::request::{Durability, Handle, Location};
use crate::summary::Summary;
use crate::sys::Sys;

pub(crate) type Done = Box<dyn FnOnce(Result<Summary, Error>) + Send>;

/// One tree under way.
pub(crate) struct Tree {
    pub(super) environment: Environment,
    pub(super) source: Location,
    pub(super) destination: Location,
    pub(super) options: TreeOptions,
    /// Of all bytes of the tree, where they are bounded.
    pub(super) quota: Option<Arc<Quota>>,
    pub(super) cancel: Cancel,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) progress: Progress,
    pub(super) report: TreeReport,
    pub(super) links: Mutex<Links>,
    /// Where the source's root is mounted.
    pub(super) mounted: OnceLock<Mounted>,
    deadline: Option<Instant>,
    started: Instant,
    entries: AtomicU64,
    /// Nothing more is begun.
    stopped: AtomicBool,
    parts: AtomicUsize,
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    summary: Summary,
    moved_by: [u64; Mechanism::ALL.len()],
    /// What ended the tree, and where.
    failure: Option<(Cause, Option<PathBuf>)>,
    /// A directory of each file system that was written to, where all is synced at the end.
    written: BTreeMap<u64, Handle>,
    done: Option<Done>,
}

impl Tree {
    /// A tree whose first part is still to be made.
    pub(crate) fn new(
        environment: Environment,
        request: TreeRequest,
        cancel: Cancel,
        executor: Arc<dyn Executor>,
        done: Done,
    ) -> Arc<Self> {
        let TreeRequest {
            source,
            destination,
            mut options,
        } = request;
        let mut source = trimmed(source);
        let follows = options.symlinks == Symlinks::Follow;
        source.follow |= follows;
        let entries = &mut options.entries;
        entries.preserve |= entries.require;
        let quota = entries.limits.bytes.take();
        let has_one_sync = environment.sys().platform() == Platform::Linux;
        if entries.durability == Durability::End && !has_one_sync {
            entries.durability = Durability::Each;
        }
        let started = Instant::now();
        let timeout = entries.timeout.take();
        Arc::new(Self {
            environment,
            source,
            destination: trimmed(destination),
            quota: quota.map(|bytes| Arc::new(Quota::new(bytes))),
            options,
            cancel,
            executor,
            progress: Progress::default(),
            report: TreeReport::default(),
            links: Mutex::new(Links::new(follows)),
            mounted: OnceLock::new(),
            // Beyond all time there is no end.
            deadline: timeout.and_then(|timeout| started.checked_add(timeout)),
            started,
            entries: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            parts: AtomicUsize::new(0),
            account: Mutex::new(Account {
                done: Some(done),
                ..Account::default()
            }),
        })
    }

    /// The part with which it begins.
    pub(crate) fn first_part(self: &Arc<Self>) -> Part {
        Part::first(self.clone())
    }

    pub(crate) fn watch(&self) -> (Progress, TreeReport) {
        (self.progress.clone(), self.report.clone())
    }

    pub(super) fn sys(&self) -> &dyn Sys {
        self.environment.sys()
    }

    /// Refuses what no tree has, before any system call.
    pub(super) fn check(&self) -> Result<(), Cause> {
        let entries = &self.options.entries;
        if entries.window.is_some() || entries.source_start > 0 {
            return Err(Unsupported::Window.into());
        }
        Ok(())
    }

    /// Whether nothing more is to be begun.
    pub(super) fn is_stopped(&self) -> bool {
        if self.cancel.is_cancelled() {
            self.stop(Cause::Cancelled, None);
        } else if self.deadline.is_some_and(|end| Instant::now() >= end) {
            self.stop(Cause::TimedOut, None);
        }
        self.stopped.load(Ordering::Acquire)
    }

    /// Ends the tree early. The first cause stands.
    pub(super) fn stop(&self, cause: Cause, path: Option<PathBuf>) {
        self.account().failure.get_or_insert((cause, path));
        self.stopped.store(true, Ordering::Release);
    }

    /// One more entry is looked at.
    pub(super) fn count_entry(&self) -> Result<(), Cause> {
        let before = self.entries.fetch_add(1, Ordering::Relaxed);
        match self.options.limits.entries {
            Some(most) if before >= most => Err(Limit::Entries.into()),
            _ => Ok(()),
        }
    }

    /// An entry failed, at this path beneath the root.
    pub(super) fn failed(&self, cause: Cause, beneath: &Path) {
        let of_the_tree = match cause.side() {
            Some(Side::Destination) => &self.destination,
            _ => &self.source,
        };
        let path = join(&of_the_tree.path, beneath);
        let ends_all = matches!(
            cause,
            Cause::Limit(_) | Cause::Cancelled | Cause::TimedOut | Cause::Panicked
        );
        if ends_all || !self.options.keep_going {
            self.stop(cause, Some(path));
            return;
        }
        self.account().summary.failed += 1;
        self.report.add_failed(TreeEntry { path, cause });
    }

    /// An entry was left out.
    pub(super) fn skipped(&self, cause: Option<Cause>, beneath: &Path) {
        self.account().summary.skipped += 1;
        if let Some(cause) = cause {
            let path = join(&self.source.path, beneath);
            self.report.add_skipped(TreeEntry { path, cause });
        }
    }

    /// What was done with an entry, or with several.
    pub(super) fn add(&self, done: &Summary) {
        let mut account = self.account();
        if let Some(method) = done.method {
            account.moved_by[method as usize] += done.bytes;
        }
        let sum = &mut account.summary;
        sum.bytes += done.bytes;
        sum.shared += done.shared;
        sum.consumed += done.consumed;
        sum.files += done.files;
        sum.directories += done.directories;
        sum.links += done.links;
        sum.special += done.special;
        sum.skipped += done.skipped;
        sum.failed += done.failed;
        sum.lost |= done.lost;
        sum.changed |= done.changed;
        for refused in &done.refused {
            if !sum.refused.contains(refused) {
                sum.refused.push(*refused);
            }
        }
    }

    /// Something was written in this directory.
    pub(super) fn wrote_in(&self, device: u64, directory: &Handle) {
        if self.options.entries.durability == Durability::End {
            let mut account = self.account();
            let written = &mut account.written;
            written.entry(device).or_insert_with(|| directory.clone());
        }
    }

    pub(super) fn part_begins(&self) {
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// A part has ended. With the last one the tree has.
    pub(super) fn part_ends(&self) {
        if self.parts.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        self.sync_all();
        let mut account = self.account();
        let Some(done) = account.done.take() else {
            return;
        };
        let mut summary = std::mem::take(&mut account.summary);
        summary.elapsed = self.started.elapsed();
        summary.method = Mechanism::of_most(&account.moved_by);
        let failure = account.failure.take();
        drop(account);
        self.progress.note(summary.bytes, None);
        self.progress.end(self.entries.load(Ordering::Relaxed));
        done(match failure {
            None => Ok(summary),
            Some((cause, path)) => Err(Error {
                cause,
                path,
                done: summary,
            }),
        });
    }

    /// One sync of each file system that was written to.
    fn sync_all(&self) {
        let mut account = self.account();
        if account.failure.is_some() {
            return;
        }
        let written = std::mem::take(&mut account.written);
        drop(account);
        for directory in written.into_values() {
            if let Err(cause) = self.sync_file_system(&directory) {
                self.stop(cause, Some(self.destination.path.clone()));
            }
        }
    }

    /// Puts all of the file system on stable storage that this directory lies on.
    pub(super) fn sync_file_system(&self, directory: &Handle) -> Result<(), Cause> {
        use std::os::fd::AsFd;
        let sync = || self.sys().sync_file_system(directory.as_fd());
        crate::staging::despite_signals(sync).map_err(crate::transfer::at_destination)
    }

    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("source", &self.source.path)
            .field("destination", &self.destination.path)
            .finish_non_exhaustive()
    }
}

/// A name with a slash behind it is that of a directory, and a link there is followed
/// (path_resolution(7)); without the slash there is a name to be made.
fn trimmed(mut location: Location) -> Location {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bytes = location.path.as_os_str().as_bytes();
    let length = bytes.len();
    let end = bytes.iter().rposition(|byte| *byte != b'/');
    if let Some(end) = end
        && end + 1 < length
    {
        location.path = PathBuf::from(OsStr::from_bytes(&bytes[..=end]));
        location.follow = true;
    }
    location
}

pub(super) fn join(root: &Path, beneath: &Path) -> PathBuf {
    if beneath.as_os_str().is_empty() {
        root.to_owned()
    } else {
        root.join(beneath)
    }
}
