//! The core that all faces of the host share: requests in, tickets out. It knows nothing of WIT.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use copyist_engine::{
    Cancel, Cause, Error, Grants, Limits, Mechanism, Options, Owner, Pool, PoolOptions, Progress,
    Quota, ReadOptions, Request, Source, Summary, TreeGrants, TreeLimits, TreeReport, TreeRequest,
    Tuning, Window,
};

use crate::channel::Uses;
use crate::job::Job;
use crate::report::{Report, Started, What};
use crate::rights::Rights;
use crate::span;
use crate::store_state::{Holder, InterruptHandle, StoreState};
use crate::ticket::{Ended, Ticket};

/// Who is told of each copy that ended.
pub(crate) type Observer = Arc<dyn Fn(&Report<'_>) + Send + Sync>;

/// Who is told of each copy that begins.
pub(crate) type Starter = Arc<dyn Fn(&Started<'_>) + Send + Sync>;

/// Who gets the outcome of a copy.
type Outcome = Box<dyn FnOnce(Result<Summary, Error>) + Send>;

/// What an embedder decides for one store.
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) max_bytes: Option<u64>,
    pub(crate) total: Option<Arc<Quota>>,
    pub(crate) max_copies: usize,
    pub(crate) max_read: u64,
    pub(crate) grants: Grants,
    pub(crate) tree_grants: TreeGrants,
    pub(crate) tree_limits: TreeLimits,
    pub(crate) tuning: Tuning,
    pub(crate) grace: Duration,
    pub(crate) pool: Arc<Pool>,
    pub(crate) starter: Option<Starter>,
    pub(crate) observer: Option<Observer>,
}

impl Default for Policy {
    fn default() -> Self {
        static PROCESS: LazyLock<Arc<Pool>> =
            LazyLock::new(|| Arc::new(Pool::new(PoolOptions::default())));
        Self {
            max_bytes: None,
            total: None,
            max_copies: 256,
            max_read: 64 << 20,
            grants: Grants::default(),
            tree_grants: TreeGrants::default(),
            tree_limits: TreeLimits::default(),
            tuning: Tuning::default(),
            grace: Duration::from_millis(50),
            pool: PROCESS.clone(),
            starter: None,
            observer: None,
        }
    }
}

/// A copy between plain descriptors, with the rights that the guest has to them.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// Both ends and how to copy. Grants, limits and tuning are the embedder's: what stands here
    /// is replaced by what the [`CopyCtx`](crate::CopyCtx) has.
    pub request: Request,
    /// To the source file, or to the directory that its path starts at.
    pub source_rights: Rights,
    /// To the destination file, or to the directory that its path starts at.
    pub destination_rights: Rights,
}

/// A tree between names in open directories, with the rights that the guest has to those.
#[derive(Clone, Debug)]
pub struct CopyTreeRequest {
    /// Both roots and how to copy. Grants, limits and tuning are the embedder's: what stands here
    /// is replaced by what the [`CopyCtx`](crate::CopyCtx) has.
    pub request: TreeRequest,
    /// To the directory that the source's path starts at.
    pub source_rights: Rights,
    /// To the directory that the destination's path starts at.
    pub destination_rights: Rights,
}

/// A whole-file read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// What to read.
    pub source: Source,
    /// To the source file, or to the directory that its path starts at.
    pub rights: Rights,
    /// Part of the source; the whole of it if absent.
    pub window: Option<Window>,
    /// The guest's own bound in bytes; the embedder's holds too.
    pub limit: u64,
}

/// Copies for one store. Clones are one and the same.
#[derive(Clone)]
pub struct Copier {
    policy: Policy,
    owner: Owner,
    store: Arc<StoreState>,
}

impl Copier {
    pub(crate) fn new(policy: Policy) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            policy,
            owner: Owner(NEXT.fetch_add(1, Ordering::Relaxed)),
            store: Arc::default(),
        }
    }

    /// Ends what this copier has under way and all that comes later.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle::new(self.store.clone())
    }

    /// Hands a copy to the pool. The ticket tells how it ended; what is refused ends at once.
    pub fn submit(&self, request: CopyRequest) -> Ticket<Summary> {
        self.submit_as(What::Copy, request, Uses::default())
    }

    /// As [`submit`](Self::submit), with the channels that it uses, also for what is a read to the
    /// guest and a copy to the engine.
    pub(crate) fn submit_as(
        &self,
        what: What,
        request: CopyRequest,
        uses: Uses,
    ) -> Ticket<Summary> {
        self.submit_for(Holder::Call, what, request, uses)
    }

    /// As [`submit`](Self::submit), for the store's table. What is refused is no job.
    pub(crate) fn submit_job(
        &self,
        request: CopyRequest,
        uses: Uses,
    ) -> Result<Job, Ended<Summary>> {
        let ticket = self.submit_for(Holder::Job, What::Copy, request, uses);
        if ticket.progress().is_none()
            && let Some(refused) = ticket.look()
        {
            return Err(refused);
        }
        Ok(Job::new(ticket, self.store.clone()))
    }

    fn submit_for(
        &self,
        holder: Holder,
        what: What,
        request: CopyRequest,
        uses: Uses,
    ) -> Ticket<Summary> {
        let CopyRequest {
            mut request,
            source_rights,
            destination_rights,
        } = request;
        self.impose(&mut request.options);
        let ends = [
            request.source.path().map(Path::to_owned),
            request.destination.path().map(Path::to_owned),
        ];
        let rights = [source_rights, destination_rights];
        self.submit_with(
            (holder, what),
            ends,
            rights,
            |pool, owner, cancel, end| Some(pool.copy(owner, request, cancel, end)),
            move |done| uses.end(done),
        )
    }

    /// Hands a tree to the pool. The ticket tells how it ended; what is refused ends at once.
    pub fn submit_tree(&self, request: CopyTreeRequest) -> Ticket<Summary> {
        self.submit_tree_for(Holder::Call, request).0
    }

    /// As [`submit_tree`](Self::submit_tree), for the store's table. What is refused is no job.
    pub(crate) fn submit_tree_job(&self, request: CopyTreeRequest) -> Result<Job, Ended<Summary>> {
        let (ticket, report) = self.submit_tree_for(Holder::Job, request);
        match report {
            Some(report) => Ok(Job::new(ticket, self.store.clone()).with_report(report)),
            None => Err(ticket.wait()),
        }
    }

    fn submit_tree_for(
        &self,
        holder: Holder,
        request: CopyTreeRequest,
    ) -> (Ticket<Summary>, Option<TreeReport>) {
        let CopyTreeRequest {
            mut request,
            source_rights,
            destination_rights,
        } = request;
        self.impose(&mut request.options.entries);
        request.options.grants = self.policy.tree_grants;
        request.options.limits = self.policy.tree_limits;
        let ends = [&request.source, &request.destination].map(|end| Some(end.path.clone()));
        let rights = [source_rights, destination_rights];
        let mut report = None;
        let ticket = self.submit_with(
            (holder, What::Tree),
            ends,
            rights,
            |pool, owner, cancel, end| {
                let (progress, told) = pool.copy_tree(owner, request, cancel, end);
                report = Some(told);
                Some(progress)
            },
            |_| {},
        );
        (ticket, report)
    }

    /// What is the embedder's to say.
    fn impose(&self, options: &mut Options) {
        options.grants = self.policy.grants;
        // A store may always be interrupted.
        options.bounded_calls = true;
        options.tuning = self.policy.tuning;
        options.limits = self.limits();
    }

    fn submit_with(
        &self,
        (holder, what): (Holder, What),
        [source, destination]: [Option<PathBuf>; 2],
        [source_rights, destination_rights]: [Rights; 2],
        run: impl FnOnce(&Pool, Owner, Cancel, Outcome) -> Option<Progress>,
        finish: impl FnOnce(&Summary) + Send + 'static,
    ) -> Ticket<Summary> {
        let allowed = source_rights
            .check_source()
            .map_err(|cause| refused(cause, source.clone()))
            .and_then(|()| {
                destination_rights
                    .check_destination()
                    .map_err(|cause| refused(cause, destination.clone()))
            });
        // Names are kept for who wants them.
        let starter = self.policy.starter.as_ref();
        let starter = starter.map(|starter| (starter, source.clone(), destination.clone()));
        let trace = self.trace(what, source, destination);
        let ticket = self.start(
            holder,
            allowed,
            run,
            move |outcome: Result<Summary, Error>| {
                finish(outcome.as_ref().unwrap_or_else(|error| &error.done));
                trace.end(outcome.as_ref());
                outcome
            },
        );
        if let (Some(progress), Some((starter, source, destination))) = (ticket.progress(), starter)
        {
            let started = Started {
                what,
                source: source.as_deref(),
                destination: destination.as_deref(),
                progress,
            };
            // Its panic is not the guest's, as the observer's below is not.
            let _ = catch_unwind(AssertUnwindSafe(|| starter(&started)));
        }
        ticket
    }

    /// Hands a whole-file read to the pool.
    pub fn submit_read(&self, request: ReadRequest) -> Ticket<Vec<u8>> {
        self.start_read(request, Ok)
    }

    /// As [`submit_read`](Self::submit_read), for text: what is not UTF-8 fails.
    pub fn submit_read_text(&self, request: ReadRequest) -> Ticket<String> {
        // Checked on the copying thread: a large text takes milliseconds.
        self.start_read(request, |bytes| {
            String::from_utf8(bytes).map_err(|_| Cause::NotUtf8)
        })
    }

    fn start_read<T: Send + 'static>(
        &self,
        request: ReadRequest,
        convert: fn(Vec<u8>) -> Result<T, Cause>,
    ) -> Ticket<T> {
        let path = request.source.path().map(Path::to_owned);
        let allowed = request
            .rights
            .check_source()
            .map_err(|cause| refused(cause, path.clone()));
        let trace = self.trace(What::Read, path.clone(), None);
        let request = copyist_engine::ReadRequest {
            source: request.source,
            options: ReadOptions {
                window: request.window,
                limit: Some(request.limit.min(self.policy.max_read)),
                limits: self.limits(),
            },
        };
        self.start(
            Holder::Call,
            allowed,
            |pool, owner, cancel, end| {
                pool.read(owner, request, cancel, end);
                None
            },
            move |outcome| {
                let mut summary = Summary::default();
                let outcome = outcome.and_then(|bytes| {
                    summary.consumed = bytes.len() as u64;
                    summary.method = (!bytes.is_empty()).then_some(Mechanism::ReadWrite);
                    convert(bytes).map_err(|cause| Error {
                        cause,
                        path,
                        done: summary.clone(),
                    })
                });
                summary.bytes = summary.consumed;
                summary.files = 1;
                trace.end(outcome.as_ref().map(|_| &summary));
                outcome
            },
        )
    }

    /// A copy or a read whose ends cannot even be asked for: it ends at once, and the embedder is
    /// told of it like of any other.
    pub(crate) fn refuse<T: Send + 'static>(
        &self,
        what: What,
        source: Option<PathBuf>,
        destination: Option<PathBuf>,
        why: Error,
    ) -> Ticket<T> {
        let trace = self.trace(what, source, destination);
        self.start(
            Holder::Call,
            Err(why),
            |_, _, _, _| None,
            move |outcome: Result<Infallible, Error>| {
                let Err(error) = outcome;
                trace.end(Err(&error));
                Err(error)
            },
        )
    }

    /// The most that a whole-file read may take.
    pub(crate) fn max_read(&self) -> u64 {
        self.policy.max_read
    }

    /// Comes with an interrupt of the store.
    pub(crate) fn spent(&self) -> Cancel {
        self.store.spent()
    }

    fn limits(&self) -> Limits {
        Limits {
            bytes: self.policy.max_bytes,
            total: self.policy.total.clone(),
        }
    }

    fn trace(&self, what: What, source: Option<PathBuf>, destination: Option<PathBuf>) -> Trace {
        Trace {
            span: span::open(what, source.as_deref(), destination.as_deref()),
            observer: self.policy.observer.clone(),
            what,
            source,
            destination,
            started: Instant::now(),
        }
    }

    /// Gives something to the pool, or ends it at once where it is not allowed. Either way `finish`
    /// sees the outcome once, on its way to the ticket. Where the store is interrupted the ticket
    /// says so, whatever the outcome.
    fn start<P: 'static, T: Send + 'static>(
        &self,
        holder: Holder,
        allowed: Result<(), Error>,
        run: impl FnOnce(
            &Pool,
            Owner,
            Cancel,
            Box<dyn FnOnce(Result<P, Error>) + Send>,
        ) -> Option<Progress>,
        finish: impl FnOnce(Result<P, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Ticket<T> {
        let cancel = Cancel::new();
        let mut ticket = Ticket::new(self.policy.grace, cancel.clone());
        let shared = ticket.shared().clone();
        // First of all, so that an interrupt ends a guest that tries for ever what is refused.
        let place = self
            .store
            .enter(self.policy.max_copies, holder, &shared)
            .map_err(|cause| refused(cause, None));
        // The embedder's observer is called in there. Its panic keeps nobody waiting.
        let finish = move |outcome| {
            catch_unwind(AssertUnwindSafe(|| finish(outcome)))
                .unwrap_or_else(|_| Err(refused(Cause::Panicked, None)))
        };
        match allowed.and(place) {
            Ok(place) => {
                let end = move |outcome| {
                    let outcome = finish(outcome);
                    drop(place);
                    shared.end(outcome);
                };
                ticket.progress = run(&self.policy.pool, self.owner, cancel, Box::new(end));
            }
            Err(error) => shared.end(finish(Err(error))),
        }
        ticket
    }
}

impl std::fmt::Debug for Copier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copier")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

pub(crate) fn refused(cause: Cause, path: Option<PathBuf>) -> Error {
    Error {
        cause,
        path,
        done: Summary::default(),
    }
}

/// The span of a copy and who else is told of its end.
struct Trace {
    span: tracing::Span,
    observer: Option<Observer>,
    what: What,
    source: Option<PathBuf>,
    destination: Option<PathBuf>,
    started: Instant,
}

impl Trace {
    fn end(self, outcome: Result<&Summary, &Error>) {
        let elapsed = self.started.elapsed();
        span::close(&self.span, outcome, elapsed);
        if let Some(observer) = &self.observer {
            observer(&Report {
                what: self.what,
                source: self.source.as_deref(),
                destination: self.destination.as_deref(),
                outcome,
                elapsed,
            });
        }
    }
}
