//! The table of public reports: what people reported of copying, the tests that show it here, and what
//! came of them in the last run. `ci/reports` runs it.
//!
//! Nothing of it is written by hand but `table.md`, which says what kind a report is of: the tests are
//! found in the sources by the addresses above them, the results in what `ci/test` and `ci/filesystems`
//! keep. The outcome stands in `target/reports.md`.
#![expect(clippy::print_stderr, reason = "it says what is wrong")]

mod page;
mod report;
mod results;
mod sources;
mod table;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use results::Results;
use sources::Test;
use table::Table;

/// The two steps, with what the harness said there, and what the tests skipped.
const STEPS: [[&str; 3]; 2] = [
    ["ci/test", "target/test.log", "target/test.skips"],
    [
        "ci/filesystems",
        "target/filesystems.log",
        "target/filesystems.skips",
    ],
];
const PAGE: &str = "target/reports.md";

fn main() -> ExitCode {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match make(&repository) {
        Ok(problems) => {
            for problem in &problems {
                eprintln!("reports: {problem}");
            }
            ExitCode::from(u8::from(!problems.is_empty()))
        }
        Err(error) => {
            eprintln!("reports: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the page, and answers what is wrong with it.
fn make(repository: &Path) -> io::Result<Vec<String>> {
    let table = Table::read(repository)?;
    let tests = sources::tests(repository)?;
    let mut problems = table.problems(repository, &tests);
    problems.extend(sources::problems(&tests));
    let mut results = Results::default();
    for [step, log, skips] in STEPS {
        let mut read = |file: &str| {
            let text = fs::read_to_string(repository.join(file));
            text.map_err(|error| problems.push(format!("{file}: {error}: run {step} before")))
                .unwrap_or_default()
        };
        results.read(&read(log));
        results.read_skips(&read(skips));
        problems.extend(age(repository, log, step, &tests));
    }
    problems.extend(results.problems(&tests));
    let page = page::page(&table, &tests, &results);
    fs::write(repository.join(PAGE), &page)?;
    eprintln!("{}", page::sum(&table, &tests, &results));
    Ok(problems)
}

/// A log that is older than a test tells nothing of it.
fn age(repository: &Path, log: &str, step: &str, tests: &[Test]) -> Option<String> {
    let modified = |path: &Path| fs::metadata(repository.join(path)).and_then(|m| m.modified());
    let log_modified = modified(Path::new(log)).ok()?;
    let newer = tests
        .iter()
        .find(|test| modified(&test.file).is_ok_and(|time| time > log_modified))?;
    let file = newer.file.display();
    Some(format!("{log} is older than {file}: run {step} before"))
}
