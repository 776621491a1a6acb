//! What waits until its store is ended: `wait SMALL SCRATCH FROM TO [--idle] [--jobs=N] [--stream]`,
//! where `@NAME` is a granted channel.
//!
//! First it copies one small file, so that what it takes to copy at all is there. Then it copies
//! `FROM` to `TO`; with `--jobs` it starts so many copies, of `FROM-0` to `TO-0` and so on, and
//! waits for the first; with `--stream` it reads `FROM` as a stream; with `--idle` it does nothing
//! for an hour.

use std::io::Read;

use copyist_guest::{Destination, HeldDestination, HeldSource, Job, Source};
use copyist_test_guests::Arguments;
use wasip2::clocks::monotonic_clock::subscribe_duration;

const HOUR: u64 = 3_600_000_000_000;

fn main() {
    let mut arguments = Arguments::from_env();
    let jobs = arguments.number("jobs");
    let (idle, stream) = (arguments.flag("idle"), arguments.flag("stream"));
    let [small, scratch, from, to] = arguments.paths();
    copyist_guest::copy(&small, &scratch).expect("the host can copy");
    if idle {
        subscribe_duration(HOUR).block();
    } else if stream {
        let endpoint = copyist_guest::endpoint(channel(&from).expect("a channel"));
        let mut input = endpoint.and_then(|end| end.input()).expect("it is granted");
        let read = Read::read(&mut input, &mut [0]);
        panic!("it came to {read:?}");
    } else if let Some(jobs) = jobs {
        let started: Vec<_> = (0..jobs).map(|job| start(&from, &to, job)).collect();
        let ended = started.first().map(Job::wait);
        panic!("it came to {ended:?}");
    } else {
        let (source, destination) = (channel(&from), channel(&to));
        let open = |name| copyist_guest::endpoint(name).expect("it is granted");
        let (source, destination) = (source.map(open), destination.map(open));
        let from: Source<'_> = source.as_ref().map_or(from.as_str().into(), Into::into);
        let to: Destination<'_> = destination.as_ref().map_or(to.as_str().into(), Into::into);
        let ended = copyist_guest::copy(from, to);
        panic!("it came to {ended:?}");
    }
}

fn channel(word: &str) -> Option<&str> {
    // A path stands in the place.
    word.strip_prefix("place/")
        .unwrap_or(word)
        .strip_prefix('@')
}

fn start(from: &str, to: &str, number: u64) -> Job {
    let (from, to) = (format!("{from}-{number}"), format!("{to}-{number}"));
    let from: HeldSource<'_> = from.as_str().into();
    let to: HeldDestination<'_> = to.as_str().into();
    copyist_guest::start(from, to).expect("it may start")
}
