//! What no author means: offsets at the edge of the numbers, paths that are none, handles of the
//! wrong kind, more options than anybody needs.
//!
//! `hostile DIRECTORY`, the name of a granted directory that may be written and holds a file `a` of
//! 15 bytes and a directory `sub`; a line `NAME: ANSWER` for each call.

use copyist_test_guests::contract::types::{
    Destination, Location, Options, Source, Window, WriteMode,
};
use copyist_test_guests::contract::{copy, read};
use copyist_test_guests::{Arguments, open, say};
use wasip2::cli::stdin::get_stdin;
use wasip2::cli::stdout::get_stdout;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};

fn main() {
    let [directory] = Arguments::from_env().paths();
    let dir = open(
        &directory,
        OpenFlags::DIRECTORY,
        DescriptorFlags::MUTATE_DIRECTORY,
    )
    .expect("the directory opens");
    windows(&dir);
    limits(&dir);
    paths(&dir);
    handles(&directory, &dir);
    many_options(&dir);
}

fn windows(dir: &Descriptor) {
    let edges = [0, 1, 15, 16, i64::MAX.cast_unsigned(), 1 << 63, u64::MAX];
    let lengths = [None, Some(0), Some(1), Some(u64::MAX)];
    for source_offset in edges {
        for destination_offset in edges {
            for length in lengths {
                let options = Options::new();
                options.set_window(Some(Window {
                    source_offset,
                    length,
                    destination_offset,
                }));
                let name = format!("window {source_offset} {length:?} {destination_offset}");
                let copied = copy::transfer(&from(dir, "a"), &to(dir, "w"), Some(&options));
                say(format_args!("{name}: {copied:?}"));
                let bytes = read::bytes(&from(dir, "a"), Some(&options), u64::MAX);
                say(format_args!("{name} read: {bytes:?}"));
            }
        }
    }
}

fn limits(dir: &Descriptor) {
    for limit in [0, 14, 15, 1 << 63, u64::MAX] {
        let bytes = read::bytes(&from(dir, "a"), None, limit);
        say(format_args!("limit {limit}: {bytes:?}"));
        let text = read::text(&from(dir, "a"), None, limit);
        say(format_args!("limit {limit} text: {text:?}"));
    }
}

fn paths(dir: &Descriptor) {
    let long_name = "x".repeat(100_000);
    let long_path = "x/".repeat(50_000);
    let roundabout = format!("{}a", "./".repeat(50_000));
    let paths = [
        ("empty", ""),
        ("slash", "/"),
        ("slashes", "////"),
        ("dot", "."),
        ("dots", ".."),
        ("nul", "a\0"),
        ("nul between", "a\0b"),
        ("newline", "a\n"),
        ("long name", &*long_name),
        ("long path", &*long_path),
        ("roundabout", &*roundabout),
        ("file as directory", "a/b"),
        ("file with slash", "a/"),
    ];
    let replace = Options::new();
    replace.set_write_mode(WriteMode::Replace);
    for (name, path) in paths {
        let copied = copy::transfer(&from(dir, path), &to(dir, "never"), None);
        say(format_args!("source {name}: {}", short(&copied)));
        let bytes = read::bytes(&from(dir, path), None, u64::MAX);
        say(format_args!("read {name}: {}", short(&bytes)));
        let copied = copy::transfer(&from(dir, "sub/other"), &to(dir, path), None);
        say(format_args!("destination {name}: {}", short(&copied)));
        let copied = copy::transfer(&from(dir, "sub/other"), &to(dir, path), Some(&replace));
        say(format_args!("replaced {name}: {}", short(&copied)));
    }
}

fn handles(directory: &str, dir: &Descriptor) {
    let file = open(
        &format!("{directory}/a"),
        OpenFlags::empty(),
        DescriptorFlags::READ | DescriptorFlags::WRITE,
    )
    .expect("the file opens");
    let file = &file;
    let cases = [
        ("a directory as source", Source::File(dir), to(dir, "never")),
        (
            "a file as the directory of the source",
            from(file, "b"),
            to(dir, "never"),
        ),
        (
            "a directory as destination",
            from(dir, "a"),
            Destination::File(dir),
        ),
        (
            "a file as the directory of the destination",
            from(dir, "a"),
            to(file, "b"),
        ),
        (
            "one file as both",
            Source::File(file),
            Destination::File(file),
        ),
    ];
    for (name, source, destination) in cases {
        let copied = copy::transfer(&source, &destination, None);
        say(format_args!("{name}: {copied:?}"));
    }
    let (input, output) = (get_stdin(), get_stdout());
    let copied = copy::transfer(&Source::Input(&input), &to(dir, "from stream"), None);
    say(format_args!("a stream as source: {copied:?}"));
    let copied = copy::transfer(&from(dir, "a"), &Destination::Output(&output), None);
    say(format_args!("a stream as destination: {copied:?}"));
    let bytes = read::bytes(&Source::Input(&input), None, u64::MAX);
    say(format_args!("a stream as what is read: {bytes:?}"));
    let bytes = read::bytes(&Source::File(dir), None, u64::MAX);
    say(format_args!("a directory as what is read: {bytes:?}"));
    let text = read::text(&from(file, "b"), None, u64::MAX);
    say(format_args!(
        "a file as the directory of what is read: {text:?}"
    ));
}

fn many_options(dir: &Descriptor) {
    for _ in 0..10_000 {
        drop(Options::new());
    }
    let held: Vec<_> = (0..10_000).map(|_| Options::new()).collect();
    let copied = copy::transfer(&from(dir, "a"), &to(dir, "last"), held.last());
    drop(held);
    say(format_args!("after many options: {copied:?}"));
}

fn from<'a>(dir: &'a Descriptor, path: &str) -> Source<'a> {
    Source::Path(at(dir, path))
}

fn to<'a>(dir: &'a Descriptor, path: &str) -> Destination<'a> {
    Destination::Path(at(dir, path))
}

fn at<'a>(dir: &'a Descriptor, path: &str) -> Location<'a> {
    Location {
        dir,
        path_flags: PathFlags::SYMLINK_FOLLOW,
        path: path.to_owned(),
    }
}

/// Without the path, which may be long.
fn short<T: std::fmt::Debug>(
    answer: &Result<T, copyist_test_guests::contract::types::Failure>,
) -> String {
    match answer {
        Ok(answer) => format!("Ok({answer:?})"),
        Err(failure) => format!("Err({:?})", failure.cause),
    }
}
