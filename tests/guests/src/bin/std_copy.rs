//! The baseline: `std_copy FROM TO`, what a guest has without copyist.

use copyist_test_guests::Arguments;

fn main() {
    let [from, to] = Arguments::new().paths();
    match std::fs::copy(from, to) {
        Ok(bytes) => println!("ok bytes={bytes}"),
        Err(error) => println!("err kind={:?}", error.kind()),
    }
}
