//! One copy as a guest sees it: `time_copy FROM TO [--std]` prints how many nanoseconds it took,
//! by copyist or by the guest's own `std::fs::copy`.

use std::time::Instant;

use copyist_test_guests::{Arguments, say};

#[expect(
    clippy::disallowed_methods,
    reason = "what copyist is measured against"
)]
fn main() {
    let mut arguments = Arguments::from_env();
    let by_std = arguments.flag("std");
    let [from, to] = arguments.paths();
    let started = Instant::now();
    if by_std {
        std::fs::copy(from, to).expect("the guest can copy");
    } else {
        copyist_guest::copy(from, to).expect("the host can copy");
    }
    say(format_args!("{}", started.elapsed().as_nanos()));
}
