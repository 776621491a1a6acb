//! A plugin that collects files: `plugin DIRECTORY FILE..` copies each file into the directory and
//! says by which mechanism.
//!
//! The host moves the bytes. A file that is already there and not older is left, and a reader of
//! the directory sees each file whole.

use std::path::Path;
use std::process::ExitCode;
use std::{env, io};

use copyist_guest::{CopyOptions, Existing, Preserve, Summary};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let Some(directory) = arguments.next() else {
        eprintln!("usage: plugin DIRECTORY FILE..");
        return ExitCode::from(2);
    };
    let mut exit = ExitCode::SUCCESS;
    for file in arguments {
        match collect(Path::new(&directory), Path::new(&file)) {
            Ok(summary) => println!("{file}: {}", describe(&summary)),
            Err(error) => {
                eprintln!("{error}");
                exit = ExitCode::FAILURE;
            }
        }
    }
    exit
}

fn collect(directory: &Path, file: &Path) -> io::Result<Summary> {
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let summary = CopyOptions::new()
        .existing(Existing::Update)
        .replace(true)
        .preserve(Preserve::MODE | Preserve::TIMESTAMPS)
        .copy(file, directory.join(name))?;
    Ok(summary)
}

fn describe(summary: &Summary) -> String {
    let Summary {
        bytes,
        shared,
        method,
        ..
    } = summary;
    match (summary.skipped, *shared) {
        (0, 0) => format!("{bytes} bytes by {method}"),
        (0, _) => format!("{bytes} bytes by {method}, {shared} of them shared"),
        _ => "is up to date".to_owned(),
    }
}
