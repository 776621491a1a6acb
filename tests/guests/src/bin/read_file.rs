//! A whole-file read, or that of a part.
//!
//! `read_file PATH [--text] [--limit=N] [--offset=N] [--length=N]`; prints how many bytes it got
//! and their hash.

use copyist_guest::ReadOptions;
use copyist_test_guests::{Arguments, fnv1a, report_error, say};

fn main() {
    let mut arguments = Arguments::from_env();
    let mut options = ReadOptions::new();
    if let Some(limit) = arguments.number("limit") {
        options.limit(limit);
    }
    if let Some(offset) = arguments.number("offset") {
        options.offset(offset);
    }
    if let Some(length) = arguments.number("length") {
        options.length(length);
    }
    let text = arguments.flag("text");
    let [path] = arguments.paths();

    let read = if text {
        options.read_to_string(path).map(String::into_bytes)
    } else {
        options.read(path)
    };
    match read {
        Ok(bytes) => say(format_args!(
            "ok bytes={} fnv={:016x}",
            bytes.len(),
            fnv1a(&bytes)
        )),
        Err(error) => report_error(&error),
    }
}
