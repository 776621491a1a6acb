//! A copy that waits: what it holds, and how often anybody wakes up for it.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use copyist_engine::{
    Cancel, Destination, Environment, Options, Owner, Pool, PoolOptions, Request, Source, sys,
};
use wasmtime::Result;

use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::streams::ends::{self, Calls, Kind};
use crate::task;

const WAIT: Duration = Duration::from_secs(10);
/// How many more wait beside the first, of each kind.
const MORE: usize = 100;
const MOST_DESCRIPTORS: usize = 4;

/// A copy's ends, and what keeps it waiting.
struct Waiting {
    source: File,
    destination: File,
    peers: Vec<File>,
}

impl Waiting {
    /// Nothing comes.
    fn for_source(kind: Kind) -> Result<Self> {
        let (source, silent) = ends::pair(kind)?;
        let (reader, destination) = ends::pair(Kind::Pipe)?;
        Self {
            source,
            destination,
            peers: vec![silent, reader],
        }
        .set()
    }

    /// There is no room, once some of the file has gone.
    fn for_destination(kind: Kind, file: &std::path::Path) -> Result<Self> {
        let (silent, destination) = ends::pair(kind)?;
        Self {
            source: File::open(file)?,
            destination,
            peers: vec![silent],
        }
        .set()
    }

    fn set(self) -> Result<Self> {
        ends::set(&self.source, Calls::DoNotWait)?;
        ends::set(&self.destination, Calls::DoNotWait)?;
        Ok(self)
    }
}

/// What the process has.
struct Has {
    threads: Vec<String>,
    descriptors: usize,
}

impl Has {
    fn now() -> Result<Self> {
        Ok(Self {
            threads: task::threads()?,
            descriptors: task::descriptors()?,
        })
    }
}

pub(crate) fn measure(place: &Place) -> Result<Vec<Row>> {
    let file = place.path().join(place.file("more-than-fits", 8 << 20)?);
    let options = PoolOptions {
        // Which it starts for the regular copy, so that none is to come.
        threads: NonZeroUsize::MIN,
        ..PoolOptions::default()
    };
    let pool = Pool::with_environment(options, Environment::new(sys::native()));
    let mut peers = Vec::new();
    let mut begin = |waiting: Waiting, cancel: &Cancel| {
        let request = Request {
            source: Source::File(Arc::new(waiting.source)),
            destination: Destination::File(Arc::new(waiting.destination)),
            options: Options::default(),
        };
        peers.extend(waiting.peers);
        pool.copy(Owner(0), request, cancel.clone(), |_| {});
    };
    let kinds: [(&str, &dyn Fn() -> Result<Waiting>); 4] = [
        ("an idle pipe", &|| Waiting::for_source(Kind::Pipe)),
        ("a silent socket", &|| Waiting::for_source(Kind::Socket)),
        ("a full pipe", &|| {
            Waiting::for_destination(Kind::Pipe, &file)
        }),
        ("a full socket", &|| {
            Waiting::for_destination(Kind::Socket, &file)
        }),
    ];
    let cancel = Cancel::new();
    regular(&pool, &file, place)?;

    // Its ends are there before it is looked.
    let first = kinds[0].1()?;
    let before = Has::now()?;
    begin(first, &cancel);
    task::until("a copy waits", || Ok(pool.waiting() == 1))?;
    let after = Has::now()?;
    let mut rows = vec![first_row(&before, &after)];

    for (name, make) in kinds {
        let had = pool.waiting();
        let all = (0..MORE).map(|_| make()).collect::<Result<Vec<_>>>()?;
        let before = Has::now()?;
        for waiting in all {
            begin(waiting, &cancel);
        }
        task::until("copies wait", || Ok(pool.waiting() == had + MORE))?;
        rows.push(more_row(name, &before, &Has::now()?));
    }

    // What was set in motion comes to rest: since they came all at once, somebody looks after a
    // second whether the one thread is stuck.
    task::pause(Duration::from_millis(1500));
    let before = task::switches_of_others()?;
    task::pause(WAIT);
    let wakes = task::switches_of_others()? - before;
    rows.push(Row {
        bar: format!("{WAIT:?} of these {} waits", pool.waiting()),
        measured: format!("{wakes} wake-ups of all threads"),
        bound: "0".to_owned(),
        verdict: Verdict::of(wakes == 0),
    });
    cancel.cancel();
    task::until("all have ended", || Ok(pool.waiting() == 0))?;
    Ok(rows)
}

/// Starts the pool's thread, and no reactor.
fn regular(pool: &Pool, file: &std::path::Path, place: &Place) -> Result<()> {
    let (tell, told) = std::sync::mpsc::channel();
    let request = Request {
        source: Source::File(Arc::new(File::open(file)?)),
        destination: Destination::File(Arc::new(File::create(place.path().join("to"))?)),
        options: Options::default(),
    };
    pool.copy(Owner(0), request, Cancel::new(), move |outcome| {
        let _ = tell.send(outcome);
    });
    told.recv()??;
    Ok(())
}

fn first_row(before: &Has, after: &Has) -> Row {
    let reactors = |has: &Has| {
        let is_one = |name: &&String| name.starts_with("copyist-reacto");
        has.threads.iter().filter(is_one).count()
    };
    let threads = after.threads.len() - before.threads.len();
    let descriptors = after.descriptors.saturating_sub(before.descriptors);
    Row {
        bar: "the first copy of a process that waits".to_owned(),
        measured: format!(
            "{threads} threads more, {} reactors before and {} after; {descriptors} descriptors more",
            reactors(before),
            reactors(after)
        ),
        bound: format!("1 thread, the reactor, and <= {MOST_DESCRIPTORS} descriptors"),
        verdict: Verdict::of(
            threads == 1
                && (reactors(before), reactors(after)) == (0, 1)
                && descriptors <= MOST_DESCRIPTORS,
        ),
    }
}

fn more_row(name: &str, before: &Has, after: &Has) -> Row {
    let threads = after.threads.len().saturating_sub(before.threads.len());
    let descriptors = after.descriptors.saturating_sub(before.descriptors);
    Row {
        bar: format!("{MORE} more that wait for {name}"),
        measured: format!("{threads} threads and {descriptors} descriptors more"),
        bound: "none".to_owned(),
        verdict: Verdict::of(threads == 0 && descriptors == 0),
    }
}
