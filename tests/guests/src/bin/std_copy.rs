//! The baseline: `std_copy FROM TO`, what a guest has without copyist.

use copyist_test_guests::{Arguments, say};

#[expect(
    clippy::disallowed_methods,
    reason = "what copyist is measured against"
)]
fn main() {
    let [from, to] = Arguments::from_env().paths();
    match std::fs::copy(from, to) {
        Ok(bytes) => say(format_args!("ok bytes={bytes}")),
        Err(error) => say(format_args!("err kind={:?}", error.kind())),
    }
}
