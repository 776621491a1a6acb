//! Copies a tree, by the SDK, and prints what came of it, with the entries that failed.
//!
//! `tree FROM TO [options of a copy] [--symlinks=keep|follow|skip] [--special=refuse|skip|keep]
//! [--exclude=PATTERN,..] [--one-file-system] [--keep-going] [--plain] [--cancel]`
//!
//! `--plain` is the function without options. `--cancel` starts it as a job, cancels that once it has
//! begun, and makes a file `cancelled` beside TO.

use copyist_guest::{CopiedTree, Error, Special, Summary, Symlinks, TreeEntry, TreeOptions};
use copyist_test_guests::{Arguments, cause, preserved, report_error, say};

fn main() {
    let mut arguments = Arguments::from_env();
    let mut options = TreeOptions::new();
    options.files(arguments.copy_options());
    if let Some(word) = arguments.value("symlinks") {
        options.symlinks(match word.as_str() {
            "keep" => Symlinks::Keep,
            "follow" => Symlinks::Follow,
            "skip" => Symlinks::Skip,
            _ => panic!("{word} is none"),
        });
    }
    if let Some(word) = arguments.value("special") {
        options.special(match word.as_str() {
            "refuse" => Special::Refuse,
            "skip" => Special::Skip,
            "keep" => Special::Keep,
            _ => panic!("{word} is none"),
        });
    }
    if let Some(words) = arguments.value("exclude") {
        options.exclude(words.split(','));
    }
    options.one_file_system(arguments.flag("one-file-system"));
    options.keep_going(arguments.flag("keep-going"));
    let plain = arguments.flag("plain");
    let cancel = arguments.flag("cancel");
    let [from, to] = arguments.paths();
    let outcome = if plain {
        copyist_guest::copy_tree(&from, &to).map(|summary| CopiedTree {
            summary,
            failed: Vec::new(),
            skipped: Vec::new(),
        })
    } else if cancel {
        cancelled(&options, &from, &to)
    } else {
        options.copy(&from, &to)
    };
    match outcome {
        Ok(copied) => report(&copied),
        Err(error) => report_error(&error),
    }
}

fn cancelled(options: &TreeOptions, from: &str, to: &str) -> Result<CopiedTree, Error> {
    let job = options.start(from, to)?;
    // Its root, and the file in it.
    while job.progress().entries < 2 {}
    job.cancel();
    let beside = std::path::Path::new(to).with_file_name("cancelled");
    std::fs::write(beside, "").expect("the directory may be written");
    Ok(CopiedTree {
        summary: job.wait()?,
        failed: job.failures().collect(),
        skipped: job.skipped().collect(),
    })
}

fn report(copied: &CopiedTree) {
    let Summary {
        bytes,
        files,
        directories,
        links,
        special,
        skipped,
        failed,
        lost,
        ..
    } = copied.summary;
    let words = |entries: &[TreeEntry]| {
        let mut words: Vec<_> = entries
            .iter()
            .map(|entry| format!("{}:{}", entry.path, cause(&entry.cause)))
            .collect();
        words.sort();
        if words.is_empty() {
            "-".to_owned()
        } else {
            words.join(",")
        }
    };
    say(format_args!(
        "ok bytes={bytes} files={files} directories={directories} links={links} special={special} \
         skipped={skipped} failed={failed} lost={} left={} entries={}",
        preserved(lost),
        words(&copied.skipped),
        words(&copied.failed),
    ));
}
