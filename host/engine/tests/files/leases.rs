//! A lease on a file: whoever opens it without waiting is told to come again. A copy does.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use copyist_engine::{
    Cancel, Cause, Destination, Options, ReadOptions, ReadRequest, Source, Step, Transfer, Tuning,
    WriteMode,
};

use crate::support::hooked::{Call, hooked};
use crate::support::{
    Place, WRITE_MODES, assert_same, done, failed, fresh, kernel, other, pattern, places, request,
    skipped,
};

/// Takes a lease on a file: one that ends when somebody opens it, to write it or at all.
fn lease(place: &Place, name: &str, on_any_open: bool) -> Option<File> {
    let file = File::options()
        .read(true)
        .write(on_any_open)
        .open(place.path(name))
        .unwrap();
    let kind = if on_any_open {
        libc::F_WRLCK
    } else {
        libc::F_RDLCK
    };
    match kernel::lease(&file, kind) {
        Ok(()) => Some(file),
        Err(error) => {
            skipped(&format!("a lease on {}: {error}", place.name));
            None
        }
    }
}

fn check(place: &Place, leased: &str, on_any_open: bool, options: &Options) {
    place.write("from", pattern(10_000));
    place.write("to", other(20_000));
    let transfer = || {
        let request = request(place.source("from"), place.destination("to"), options);
        Transfer::new(fresh(), request)
    };
    let what = format!("{leased} leased on {}, {options:?}", place.name);

    let Some(holder) = lease(place, leased, on_any_open) else {
        return;
    };
    let mut copy = transfer();
    let mut pauses = Vec::new();
    while pauses.len() < 10 {
        match copy.step(u64::MAX) {
            Step::Moved(0) => {}
            Step::Later(pause) => pauses.push(pause),
            step => panic!("{what}: {step:?} with the lease held"),
        }
    }
    // It comes again less and less often, up to a bound.
    assert!(pauses.is_sorted(), "{what}: {pauses:?}");
    assert!(pauses[0] < pauses[9], "{what}: {pauses:?}");
    place.assert_names(&["from", "to"], &what);

    // A cancel ends it while it waits.
    let mut cancelled = transfer();
    loop {
        match cancelled.step(u64::MAX) {
            Step::Moved(0) => {}
            Step::Later(_) => break,
            step => panic!("{what}: {step:?} with the lease held"),
        }
    }
    assert_eq!(failed(cancelled.cancel()).cause, Cause::Cancelled);

    kernel::lease(&holder, libc::F_UNLCK).unwrap();
    // To look at it before would have been one more open to wait.
    assert_same(&place.read("to"), &other(20_000), &what);
    let step = loop {
        match copy.step(u64::MAX) {
            Step::Moved(_) | Step::Later(_) => {}
            step => break step,
        }
    };
    assert_eq!(done(step).bytes, 10_000, "{what}");
    assert_same(&place.read("to"), &pattern(10_000), &what);
}

#[test]
fn a_copy_waits_for_a_lease_on_its_source() {
    for place in places() {
        for write_mode in WRITE_MODES {
            let options = Options {
                write_mode,
                ..Options::default()
            };
            check(&place, "from", true, &options);
        }
    }
}

#[test]
fn a_copy_waits_for_a_lease_on_its_destination() {
    for place in places() {
        for on_any_open in [true, false] {
            // In place; a file that is replaced is not opened.
            let options = Options {
                tuning: Tuning {
                    call_size: NonZeroUsize::new(4096),
                    ..Tuning::default()
                },
                ..Options::default()
            };
            check(&place, "to", on_any_open, &options);
        }
    }
}

#[test]
fn a_leased_file_is_replaced_at_once() {
    let place = Place::disk();
    place.write("from", pattern(10_000));
    place.write("to", other(20_000));
    let Some(_holder) = lease(&place, "to", true) else {
        return;
    };
    let options = Options {
        write_mode: WriteMode::Replace,
        ..Options::default()
    };
    let request = request(place.source("from"), place.destination("to"), &options);
    let mut transfer = Transfer::new(fresh(), request);
    done(crate::support::drive(&mut transfer, |step| {
        assert!(!matches!(step, Step::Later(_)));
    }));
    assert_same(&place.read("to"), &pattern(10_000), "to");
}

// The drivers that wait by themselves: they come again until the lease is gone.
#[test]
fn the_drivers_wait_for_a_lease_too() {
    for place in places() {
        place.write("from", pattern(10_000));
        for reads in [true, false] {
            let Some(holder) = lease(&place, "from", true) else {
                return;
            };
            let opens = std::sync::Arc::new(AtomicUsize::new(0));
            let counted = opens.clone();
            let environment = hooked(move |call| {
                if let Call::Open(path, _) = call
                    && path.ends_with("from")
                    && counted.fetch_add(1, Ordering::Relaxed) == 3
                {
                    kernel::lease(&holder, libc::F_UNLCK).unwrap();
                }
                None
            });
            let source = Source::Path(crate::support::at(&place.base, "from"));
            if reads {
                let request = ReadRequest {
                    source,
                    options: ReadOptions::default(),
                };
                let bytes =
                    copyist_engine::read_in(&environment, &request, &Cancel::new()).unwrap();
                assert_same(&bytes, &pattern(10_000), "read");
            } else {
                let destination: Destination = place.destination("to");
                let request = request(source, destination, &Options::default());
                copyist_engine::copy_in(&environment, request, &Cancel::new()).unwrap();
                assert_same(&place.read("to"), &pattern(10_000), "copied");
            }
            assert_eq!(opens.load(Ordering::Relaxed), 4, "opens of the source");
        }
    }
}
