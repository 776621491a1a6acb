//! How much goes into a stream by one call.

use std::fs;

use copyist_engine::Options;

use crate::calls::{Call, Watched};
use crate::skipped;
use crate::support::{Place, Running, both_ways, drain, into, pattern, pipe, tcp};

fn moves(call: Call) -> bool {
    matches!(call, Call::Write(..) | Call::SendFile | Call::Splice)
}

/// Two small packets would wait for each other's acknowledgement.
// https://github.com/golang/go/issues/61530
#[test]
fn go_61530_a_small_file_goes_into_a_connection_by_one_write() {
    for options in both_ways() {
        for length in [1, 512, 5000] {
            let place = Place::new();
            fs::write(place.path("in"), pattern(length)).unwrap();
            let (ours, theirs) = tcp();
            let sys = Watched::new();
            let source = place.source("in");
            let running = Running::start_on(sys.clone(), source, into(ours), options.clone());
            assert_eq!(running.end().unwrap().bytes, length as u64);
            assert!(drain(theirs) == pattern(length));
            assert_eq!(sys.count(moves), 1, "{length}");
            let polls = sys.count(|call| matches!(call, Call::Look | Call::Wait));
            assert_eq!(polls, 0, "{length}");
        }
    }
}

/// What its owner has made larger is used as a whole, and not waited for.
// https://github.com/rust-lang/rust/issues/155859
#[test]
fn rust_155859_a_large_pipe_is_filled_by_large_calls() {
    const LENGTH: usize = 1 << 20;
    let passing = Options {
        zero_copy: true,
        ..Options::default()
    };
    for options in both_ways().into_iter().chain([passing]) {
        let place = Place::new();
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        let (reader, writer) = pipe();
        let Ok(LENGTH..) = rustix::pipe::fcntl_setpipe_size(&writer, LENGTH) else {
            return skipped("no pipe may be so large");
        };
        let sys = Watched::new();
        let source = place.source("in");
        let running = Running::start_on(sys.clone(), source, into(writer), options);
        assert_eq!(running.end().unwrap().bytes, LENGTH as u64);
        assert!(drain(reader) == pattern(LENGTH));
        assert_eq!(sys.waits(), 0);
        // No smaller than a pipe is at first.
        assert!(sys.count(moves) <= LENGTH >> 16, "{:?}", sys.calls());
    }
}
