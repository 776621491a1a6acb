//! Trees that do not come to their end.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use copyist_engine::sys::{Layer, Sys};
use copyist_engine::{
    Cancel, Cause, Environment, Errno, Side, TreeOptions, copy_tree, copy_tree_in,
};

use crate::support::{Place, by_pool, pattern};

fn many(place: &Place) {
    for directory in 0..20 {
        for file in 0..50 {
            place.write(format!("from/{directory}/{file}"), pattern(20_000, file));
        }
    }
}

#[test]
fn a_cancel_before_the_start_makes_nothing() {
    let place = Place::new();
    many(&place);
    let cancel = Cancel::new();
    cancel.cancel();
    let request = place.request("from", "to", &TreeOptions::default());
    let error = copy_tree(request.clone(), &cancel).unwrap_err();
    assert_eq!((error.cause, error.done.directories), (Cause::Cancelled, 0));
    let (outcome, _) = by_pool(4, request, cancel);
    assert_eq!(outcome.unwrap_err().cause, Cause::Cancelled);
    assert_eq!(place.names(""), ["from"]);
}

/// Whatever is there is whole, and as many as were told.
#[test]
fn a_cancel_leaves_what_is_finished_and_nothing_else() {
    let place = Place::new();
    many(&place);
    for threads in [1, 2, 6] {
        for after in [1, 100, 500] {
            let to = format!("to-{threads}-{after}");
            let cancel = Cancel::new();
            let request = place.request("from", &to, &TreeOptions::default());
            let outcome = std::thread::scope(|scope| {
                let canceller = cancel.clone();
                let watched = place.path(&to);
                scope.spawn(move || {
                    let deadline = std::time::Instant::now() + Duration::from_secs(60);
                    while count(&watched).0 < after && std::time::Instant::now() < deadline {
                        std::thread::yield_now();
                    }
                    canceller.cancel();
                });
                by_pool(threads, request, cancel).0
            });
            let done = match outcome {
                Ok(summary) => summary,
                Err(error) => {
                    assert_eq!(error.cause, Cause::Cancelled);
                    error.done
                }
            };
            let (files, all_whole) = count(&place.path(&to));
            assert!(all_whole);
            assert_eq!(files, usize::try_from(done.files).unwrap(), "{to}");
        }
    }
}

/// Files below, and whether each is as long as it should be.
fn count(root: &std::path::Path) -> (usize, bool) {
    let (mut files, mut whole) = (0, true);
    for directory in fs::read_dir(root).into_iter().flatten().flatten() {
        for file in fs::read_dir(directory.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            files += 1;
            whole &= file.metadata().is_ok_and(|it| it.len() == 20_000);
        }
    }
    (files, whole)
}

#[test]
fn a_time_limit_ends_a_tree() {
    let place = Place::new();
    many(&place);
    let mut options = TreeOptions::default();
    options.entries.timeout = Some(Duration::ZERO);
    let error = place.copy("from", "to", &options).unwrap_err();
    assert_eq!(error.cause, Cause::TimedOut);
}

#[test]
fn a_failure_ends_it_unless_it_is_to_go_on() {
    let place = Place::new();
    many(&place);
    // Two that cannot be: something stands in their way.
    place.dir("to/3/7");
    place.write("to/5", "a file");
    for threads in [1, 4] {
        let (outcome, _) = place.copy_by(threads, "from", "to", &TreeOptions::default());
        let error = outcome.unwrap_err();
        assert!(matches!(error.cause, Cause::Io(Side::Destination, _)));
        assert!(error.path.unwrap().starts_with("to"));
        let options = TreeOptions {
            keep_going: true,
            ..TreeOptions::default()
        };
        let (outcome, report) = place.copy_by(threads, "from", "to", &options);
        let summary = outcome.unwrap();
        assert_eq!((summary.files, summary.failed), (19 * 50 - 1, 2));
        let mut failed = report.failed(0, 10);
        failed.sort_by(|a, b| a.path.cmp(&b.path));
        let there = |errno| Cause::Io(Side::Destination, errno);
        assert_eq!(failed[0].path, PathBuf::from("to/3/7"));
        assert_eq!(failed[0].cause, there(Errno::ISDIR));
        assert_eq!(failed[1].path, PathBuf::from("to/5"));
        assert_eq!(failed[1].cause, there(Errno::EXIST));
        assert_eq!(report.failed(1, 10).len(), 1);
        assert!(report.failed(2, 10).is_empty());
    }
}

#[test]
fn a_pool_that_is_dropped_ends_its_trees() {
    let place = Place::new();
    many(&place);
    let pool = copyist_engine::Pool::new(copyist_engine::PoolOptions::default());
    let (tell, outcome) = std::sync::mpsc::channel();
    let request = place.request("from", "to", &TreeOptions::default());
    pool.copy_tree(
        copyist_engine::Owner(1),
        request,
        Cancel::new(),
        move |answer| {
            let _ = tell.send(answer);
        },
    );
    drop(pool);
    match outcome.recv_timeout(Duration::from_secs(60)).unwrap() {
        Ok(summary) => assert_eq!(summary.files, 1000),
        Err(error) => {
            assert_eq!(error.cause, Cause::Cancelled);
            let (files, whole) = count(&place.path("to"));
            assert!(whole);
            assert_eq!(files, usize::try_from(error.done.files).unwrap());
        }
    }
}

/// <https://github.com/max-sixty/worktrunk/issues/3743>,
/// <https://github.com/wiredtiger/wiredtiger/pull/5038>: it is told, and costs no other.
#[test]
fn worktrunk_3743_wiredtiger_5038_what_vanishes_is_told() {
    let place = Place::new();
    for file in 0..500 {
        place.write(format!("from/{file}"), "text");
    }
    let options = TreeOptions {
        keep_going: true,
        ..TreeOptions::default()
    };
    let environment = Environment::new(Vanishing::new(&place.path("from")));
    let request = place.request("from", "to", &options);
    let summary = copy_tree_in(&environment, request, &Cancel::new()).unwrap();
    // Those that were listed by then; the rest was not there.
    assert!((1..100).contains(&summary.failed), "{summary:?}");
    assert!((400..=401).contains(&summary.files), "{summary:?}");
    assert_eq!(place.names("to").len() as u64, summary.files);
}

/// Removes every fifth file when the first is copied.
#[derive(Debug)]
struct Vanishing {
    native: Arc<dyn Sys>,
    files: Vec<PathBuf>,
    has_come: AtomicBool,
}

impl Vanishing {
    fn new(directory: &std::path::Path) -> Arc<Self> {
        let names = (0..500).step_by(5).map(|file| file.to_string());
        Arc::new(Self {
            native: copyist_engine::sys::native(),
            files: names.map(|name| directory.join(name)).collect(),
            has_come: AtomicBool::new(false),
        })
    }
}

impl Layer for Vanishing {
    fn below(&self) -> &dyn Sys {
        &*self.native
    }

    fn before(&self, call: &'static str) {
        let copies = ["copy_range", "clone_file"].contains(&call);
        if copies && !self.has_come.swap(true, Ordering::Relaxed) {
            for file in &self.files {
                fs::remove_file(file).unwrap();
            }
        }
    }
}
