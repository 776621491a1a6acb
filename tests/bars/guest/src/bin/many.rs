//! The same thing over and over, for who counts its system calls: `many FROM TO --warm-up=N
//! --few=N --many=N`, with the words of `Arguments::copy_options`; `--fresh` copies to a new name
//! each time and `--read` reads in place of copying.
//!
//! Before and after each of the three rounds it looks for a file whose name marks the place, which
//! does not exist.

use copyist_test_guests::Arguments;

fn main() {
    let mut arguments = Arguments::from_env();
    let rounds = ["warm-up", "few", "many"].map(|name| arguments.number(name).unwrap_or(0));
    let (fresh, read) = (arguments.flag("fresh"), arguments.flag("read"));
    let options = arguments.copy_options();
    let [from, to] = arguments.paths();
    let mut copies = 0_u64;
    for (round, count) in rounds.into_iter().enumerate() {
        for _ in 0..count {
            if read {
                copyist_guest::read(&from).expect("the host can read");
                continue;
            }
            let to = if fresh {
                format!("{to}-{copies}")
            } else {
                to.clone()
            };
            options.copy(&from, to).expect("the host can copy");
            copies += 1;
        }
        mark(&to, round);
    }
}

/// What `strace` shows.
fn mark(to: &str, round: usize) {
    assert!(std::fs::metadata(format!("{to}-mark-{round}")).is_err());
}
