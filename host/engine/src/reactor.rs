//! One thread for all copies of the process that wait for a stream.
//!
//! It is level-triggered and one-shot, with both ends armed: an end that is ready wakes its copy once
//! and is asked for again if the copy waits again. Started at the first wait; it costs three
//! descriptors, and nothing while nobody is ready.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
// One that loom does not watch, which a constant cannot hold.
use std::sync::Mutex as ConstMutex;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use polling::{Event, Events, PollMode, Poller};

use crate::bell::Bell;
use crate::cancel::{Cancel, Wake, Watched};
use crate::sync::{Mutex, MutexGuard};
use crate::sys::{FatalSignalsBlocked, Interest, Readiness};
use crate::transfer::Waits;

/// How soon a copy tries again whose end cannot be watched: some devices, or no memory for it.
pub(crate) const BLIND: Duration = Duration::from_millis(20);

/// A copy that waits, as long as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// What is parked here: it owns the descriptors that are watched for it.
pub(crate) trait Parked: Send {
    /// What it waits for.
    fn waits(&self) -> Waits<'_>;
    /// What ends its wait besides.
    fn cancel(&self) -> &Cancel;
    /// What rings where one of its ends is in this process.
    fn bell(&self) -> Option<Arc<Bell>>;
    /// The pool that it belongs to, by a number.
    fn pool(&self) -> u64;
    /// Goes on, with what the two ends had to say. Called on the reactor's thread or by who cancels,
    /// and must not block.
    fn resume(self: Box<Self>, source: Readiness, destination: Readiness);
}

/// See the module.
pub(crate) struct Reactor {
    poller: Poller,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    parked: BTreeMap<Ticket, Entry>,
    /// One descriptor is watched once, whoever waits for it: epoll refuses it twice.
    watched: HashMap<RawFd, Vec<Ticket>>,
    times: BTreeSet<(Instant, Ticket)>,
}

struct Entry {
    parked: Box<dyn Parked>,
    source: Option<(RawFd, Interest)>,
    destination: Option<(RawFd, Interest)>,
    until: Option<Instant>,
    /// Gone with the wait.
    _watched: Watched,
}

/// What a cancel does to a wait.
struct Unpark(Arc<Reactor>, Ticket);

impl Wake for Unpark {
    fn wake(&self) {
        self.0.unpark(self.1);
    }
}

impl Reactor {
    /// The process's own, started at the first call. `None` where the system lets none be made: too
    /// many descriptors or threads.
    pub(crate) fn of_the_process() -> Option<Arc<Self>> {
        static REACTOR: OnceLock<Arc<Reactor>> = OnceLock::new();
        static MAKING: ConstMutex<()> = ConstMutex::new(());
        if let Some(reactor) = REACTOR.get() {
            return Some(reactor.clone());
        }
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reactor) = REACTOR.get() {
            return Some(reactor.clone());
        }
        let reactor = Self::start()?;
        Some(REACTOR.get_or_init(|| reactor).clone())
    }

    fn start() -> Option<Arc<Self>> {
        let reactor = Arc::new(Self::new()?);
        let thread = reactor.clone();
        std::thread::Builder::new()
            .name("copyist-reactor".to_owned())
            .spawn(move || thread.run())
            .ok()?;
        Some(reactor)
    }

    /// One without its thread: nobody looks at the descriptors.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            poller: Poller::new().ok()?,
            state: Mutex::default(),
        })
    }

    /// Keeps a copy until it can go on, or gives it back if it is cancelled already.
    pub(crate) fn park(
        self: &Arc<Self>,
        parked: Box<dyn Parked>,
    ) -> Result<Ticket, Box<dyn Parked>> {
        let ticket = self.ticket();
        let unpark = Arc::new(Unpark(self.clone(), ticket));
        let cancel = parked.cancel().clone();
        let Some(watched) = cancel.watch(unpark) else {
            return Err(parked);
        };
        let bell = parked.bell();
        let waits = parked.waits();
        let raw = |end: Option<(BorrowedFd<'_>, Interest)>| {
            end.map(|(fd, interest)| (fd.as_raw_fd(), interest))
        };
        let entry = Entry {
            source: raw(waits.source),
            destination: raw(waits.destination),
            until: waits.until,
            parked,
            _watched: watched,
        };
        let ends = [entry.source, entry.destination];
        let mut state = self.lock();
        state.parked.insert(ticket, entry);
        let is_watched = ends
            .into_iter()
            .flatten()
            .all(|(fd, _)| self.watch(&mut state, ticket, fd).is_ok());
        let is_first = state.set_time(ticket, (!is_watched).then(|| Instant::now() + BLIND));
        drop(state);
        if is_first {
            // The thread sleeps until another time.
            let _ = self.poller.notify();
        }
        // A cancel that came before it stood there found nobody to wake.
        if cancel.is_cancelled() || bell.is_some_and(|bell| !bell.park(self, ticket)) {
            self.unpark(ticket);
        }
        Ok(ticket)
    }

    /// Lets a copy go on that waits no more for its ends.
    pub(crate) fn unpark(&self, ticket: Ticket) {
        let entry = self.remove(&mut self.lock(), ticket);
        if let Some(entry) = entry {
            entry
                .parked
                .resume(Readiness::default(), Readiness::default());
        }
    }

    /// Lets all of these go on.
    pub(crate) fn unpark_all(&self, which: impl Fn(&dyn Parked) -> bool) {
        let state = self.lock();
        let tickets: Vec<_> = state
            .parked
            .iter()
            .filter(|(_, entry)| which(&*entry.parked))
            .map(|(ticket, _)| *ticket)
            .collect();
        drop(state);
        for ticket in tickets {
            self.unpark(ticket);
        }
    }

    fn ticket(&self) -> Ticket {
        let mut state = self.lock();
        state.next += 1;
        Ticket(state.next)
    }

    /// Adds somebody to those who wait for a descriptor.
    fn watch(&self, state: &mut State, ticket: Ticket, fd: RawFd) -> std::io::Result<()> {
        let waiting = state.watched.entry(fd).or_default();
        let is_new = waiting.is_empty();
        if waiting.contains(&ticket) {
            // Both its ends are one, and what it wants of either was asked for.
            return Ok(());
        }
        waiting.push(ticket);
        let event = state.event(fd);
        let answer = if is_new {
            self.add(fd, event)
        } else {
            self.modify(fd, event)
        };
        if answer.is_err() {
            state.forget(ticket, fd);
        }
        answer
    }

    #[expect(
        unsafe_code,
        reason = "a descriptor must be deleted before it is closed"
    )]
    fn add(&self, fd: RawFd, event: Event) -> std::io::Result<()> {
        // SAFETY: what waits owns the descriptor and stands in `parked`; `remove` deletes it from the
        // poller before it lets it go.
        unsafe { self.poller.add_with_mode(fd, event, PollMode::Oneshot) }
    }

    #[expect(unsafe_code, reason = "descriptors stand in the list by their numbers")]
    fn modify(&self, fd: RawFd, event: Event) -> std::io::Result<()> {
        // SAFETY: as in `add`: who waits for it keeps it open.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        self.poller.modify_with_mode(fd, event, PollMode::Oneshot)
    }

    /// Takes a copy out, and its descriptors out of the poller where nobody else waits for them.
    #[expect(unsafe_code, reason = "descriptors stand in the list by their numbers")]
    fn remove(&self, state: &mut State, ticket: Ticket) -> Option<Entry> {
        let entry = state.parked.remove(&ticket)?;
        if let Some(until) = entry.until {
            state.times.remove(&(until, ticket));
        }
        for (fd, _) in [entry.source, entry.destination].into_iter().flatten() {
            if !state.forget(ticket, fd) {
                continue;
            }
            if state.watched.contains_key(&fd) {
                let _ = self.modify(fd, state.event(fd));
            } else {
                // SAFETY: as in `add`: the entry still owns it.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                let _ = self.poller.delete(fd);
            }
        }
        Some(entry)
    }

    fn run(&self) {
        let _signals = FatalSignalsBlocked::new();
        let mut events = Events::new();
        loop {
            let next = self.lock().times.first().map(|(time, _)| *time);
            let left = next.map(|time| time.saturating_duration_since(Instant::now()));
            events.clear();
            if self.poller.wait(&mut events, left).is_err() {
                // Nothing but a lack of memory can be the matter. The copies wait a little longer.
                std::thread::park_timeout(BLIND);
            }
            let mut ready = Vec::new();
            let mut state = self.lock();
            for event in events.iter() {
                self.take_ready(&mut state, event, &mut ready);
            }
            let now = Instant::now();
            while let Some((time, ticket)) = state.times.first().copied()
                && time <= now
            {
                let entry = self.remove(&mut state, ticket);
                ready.extend(entry.map(|entry| (entry, [Readiness::default(); 2])));
            }
            drop(state);
            for (entry, [source, destination]) in ready {
                entry.parked.resume(source, destination);
            }
        }
    }

    /// Takes out whom an event is about; who waits for something else goes on waiting.
    fn take_ready(
        &self,
        state: &mut State,
        event: Event,
        ready: &mut Vec<(Entry, [Readiness; 2])>,
    ) {
        let Ok(fd) = RawFd::try_from(event.key) else {
            return;
        };
        let gone = event.is_err() == Some(true) || event.is_interrupt();
        let is_ready = |interest| match interest {
            Interest::Read => event.readable || gone,
            Interest::Write => event.writable || gone,
            Interest::Gone => gone,
        };
        let answer = |end: Option<(RawFd, Interest)>| match end {
            Some((its, interest)) if its == fd => Readiness {
                ready: is_ready(interest),
                gone,
            },
            _ => Readiness::default(),
        };
        let waiting = state.watched.get(&fd).cloned().unwrap_or_default();
        for ticket in waiting {
            let Some(entry) = state.parked.get(&ticket) else {
                continue;
            };
            let answers = [answer(entry.source), answer(entry.destination)];
            if answers.iter().any(|answer| answer.ready) {
                let entry = self.remove(state, ticket);
                ready.extend(entry.map(|entry| (entry, answers)));
            }
        }
        // It was one-shot.
        if state.watched.contains_key(&fd) {
            let _ = self.modify(fd, state.event(fd));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Remembers when a copy wants to go on whatever has come, or at `soonest` if that is before, and
    /// tells whether nobody does earlier.
    fn set_time(&mut self, ticket: Ticket, soonest: Option<Instant>) -> bool {
        let Some(entry) = self.parked.get_mut(&ticket) else {
            return false;
        };
        entry.until = entry.until.into_iter().chain(soonest).min();
        let Some(until) = entry.until else {
            return false;
        };
        let first = self.times.first().map(|(first, _)| *first);
        self.times.insert((until, ticket));
        first.is_none_or(|first| until < first)
    }

    /// Takes somebody off the list of a descriptor, and tells whether they stood there.
    fn forget(&mut self, ticket: Ticket, fd: RawFd) -> bool {
        let Some(waiting) = self.watched.get_mut(&fd) else {
            return false;
        };
        let before = waiting.len();
        waiting.retain(|other| *other != ticket);
        let stood_there = waiting.len() < before;
        if waiting.is_empty() {
            self.watched.remove(&fd);
        }
        stood_there
    }

    /// What all those want who wait for a descriptor.
    fn event(&self, fd: RawFd) -> Event {
        let mut event = Event::none(usize::try_from(fd).unwrap_or_default());
        for ticket in self.watched.get(&fd).into_iter().flatten() {
            let Some(entry) = self.parked.get(ticket) else {
                continue;
            };
            for (its, interest) in [entry.source, entry.destination].into_iter().flatten() {
                event.readable |= its == fd && interest == Interest::Read;
                event.writable |= its == fd && interest == Interest::Write;
            }
        }
        event
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor")
            .field("parked", &self.lock().parked.len())
            .finish_non_exhaustive()
    }
}
