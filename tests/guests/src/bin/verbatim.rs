//! What the host answers, word for word.
//!
//! `verbatim copy FROM TO --dir=DIRECTORY` or `verbatim bytes|text PATH --dir=DIRECTORY`, with
//! `--window=SOURCE:[LENGTH]:DESTINATION` and, for a read, `--limit=N`; paths go to the host as they
//! are, beneath the directory of that name.

use copyist_test_guests::contract::types::{Destination, Location, Options, Source, Window};
use copyist_test_guests::contract::{copy, read};
use copyist_test_guests::{Arguments, say};
use wasip2::filesystem::types::PathFlags;

fn main() {
    let mut arguments = Arguments::from_env();
    let dir = arguments.directory("dir").expect("--dir is given");
    let limit = arguments.number("limit").unwrap_or(u64::MAX);
    let options = Options::new();
    options.set_window(arguments.window().map(|window| Window {
        source_offset: window.source_offset,
        length: window.length,
        destination_offset: window.destination_offset,
    }));
    let at = |path: &str| Location {
        dir: &dir,
        path_flags: PathFlags::SYMLINK_FOLLOW,
        path: path.to_owned(),
    };
    let from = |path| Source::Path(at(path));
    let options = Some(&options);

    let words = arguments.rest();
    match &*words.iter().map(String::as_str).collect::<Vec<_>>() {
        ["copy", source, to] => {
            let to = Destination::Path(at(to));
            let answer = copy::transfer(&from(source), &to, options);
            say(format_args!("{answer:?}"));
        }
        ["bytes", source] => {
            let answer = read::bytes(&from(source), options, limit).map(|bytes| bytes.len());
            say(format_args!("{answer:?}"));
        }
        ["text", source] => {
            let answer = read::text(&from(source), options, limit).map(|text| text.len());
            say(format_args!("{answer:?}"));
        }
        words => panic!("{words:?} is no call"),
    }
}
