//! Copies by path, one after the other, a line each.
//!
//! `transfer_path FROM TO [FROM TO].. [WORD..]`, the words being those of
//! [`Arguments::copy_options`] and `--no-follow-source`, `--no-follow-destination`. With
//! `--from-dir=DIRECTORY` or `--to-dir=DIRECTORY` a path goes to the host as it is, beneath the
//! directory of that name.

use copyist_guest::{Descriptor, Location};
use copyist_test_guests::{Arguments, report};

fn main() {
    let mut arguments = Arguments::from_env();
    let options = arguments.copy_options();
    let from_dir = arguments.directory("from-dir");
    let to_dir = arguments.directory("to-dir");
    let follow_source = !arguments.flag("no-follow-source");
    let follow_destination = !arguments.flag("no-follow-destination");

    for [from, to] in arguments.pairs() {
        let from = location(from_dir.as_ref(), &from).follow_link(follow_source);
        let to = location(to_dir.as_ref(), &to).follow_link(follow_destination);
        report(options.copy(from, to));
    }
}

fn location<'a>(dir: Option<&'a Descriptor>, path: &'a str) -> Location<'a> {
    match dir {
        Some(dir) => Location::beneath(dir, path),
        None => Location::new(path),
    }
}
