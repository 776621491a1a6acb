//! The tests of reports, as the sources have them: below a comment with the addresses, and named after
//! one of them, as `go_44272_a_file_that_says_it_is_empty_comes_over_whole`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::Report;

/// Where tests are.
const ROOTS: [&str; 4] = ["host", "guest", "tests", "examples"];
/// The first number in a test's name is a report's, if it is this long.
const DIGITS: usize = 3;

/// A test.
#[derive(Debug)]
pub(crate) struct Test {
    /// The function.
    pub(crate) name: String,
    /// Beneath the repository.
    pub(crate) file: PathBuf,
    /// Where in the file, from 1.
    pub(crate) line: usize,
    /// None, for most tests.
    pub(crate) reports: Vec<Report>,
}

/// All tests that say of which report they are, or seem to be of one.
pub(crate) fn tests(repository: &Path) -> io::Result<Vec<Test>> {
    let mut tests = Vec::new();
    for root in ROOTS {
        visit(repository, Path::new(root), &mut tests)?;
    }
    tests.retain(|test| !test.reports.is_empty() || stray_number(test).is_some());
    Ok(tests)
}

fn visit(repository: &Path, path: &Path, tests: &mut Vec<Test>) -> io::Result<()> {
    let mut entries = fs::read_dir(repository.join(path))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = path.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            visit(repository, &path, tests)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            tests.extend(tests_in(&fs::read_to_string(entry.path())?, &path));
        }
    }
    Ok(())
}

/// The tests of one file: functions with the attribute, and the comment above them.
fn tests_in(text: &str, file: &Path) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    let mut in_attribute = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if in_attribute || line.starts_with("#[") {
            is_test |= line == "#[test]" || line.contains("::test");
            in_attribute = !line.ends_with(']');
        } else if line.starts_with("//") {
            comment.push_str(line);
            comment.push('\n');
        } else {
            if is_test && let Some(name) = function(line) {
                tests.push(Test {
                    name: name.to_owned(),
                    file: file.to_owned(),
                    line: index + 1,
                    reports: Report::all_in(&comment),
                });
            }
            comment.clear();
            is_test = false;
        }
    }
    tests
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
    Some(name)
}

/// Where the sources do not keep to the convention.
pub(crate) fn problems(tests: &[Test]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut places = BTreeMap::new();
    for test in tests {
        let Test { name, line, .. } = test;
        let here = format!("{}:{line}", test.file.display());
        if let Some(number) = stray_number(test) {
            problems.push(format!(
                "{here}: {name} has the number {number}, and no address above it does"
            ));
        }
        let numbers: Vec<_> = test.reports.iter().filter_map(Report::number).collect();
        let has = |number: &&str| name.split('_').any(|part| part == *number);
        if !numbers.is_empty() && !numbers.iter().any(has) {
            let wanted = numbers.join(" or ");
            problems.push(format!(
                "{here}: {name} does not begin with PROJECT_{wanted}"
            ));
        }
        if let Some(there) = places.insert(name, here.clone()) {
            problems.push(format!(
                "{here}: {name} is the name of a test in {there} too"
            ));
        }
    }
    problems
}

/// A number in a test's name that is that of a report which is not named.
fn stray_number(test: &Test) -> Option<&str> {
    let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    let number = test.name.split('_').find(is_number)?;
    let is_named = test.reports.iter().any(|r| r.number() == Some(number));
    (number.len() >= DIGITS && !is_named).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TEST` is `test`, so that this text is not taken for tests itself.
    const TEXT: &str = "
        // https://github.com/golang/go/issues/44272: no comment of this one.

        // https://github.com/golang/go/issues/60181
        // and more words
        #[TEST]
        #[expect(
            clippy::x,
            reason = \"y\"
        )]
        fn go_60181_it_appends() {}

        // https://github.com/golang/go/issues/7 is above a function that is no test.
        fn helper() {}

        // https://github.com/golang/go/issues/8
        #[tokio::TEST]
        async fn something_else() {}

        #[TEST]
        fn rust_26933_by_no_address() {}

        #[TEST]
        fn go_60181_and_before_1970() {}

        #[TEST]
        fn beyond_2_gib() {}
    ";

    fn found_in(file: &str) -> Vec<Test> {
        tests_in(&TEXT.replace("TEST", "test"), Path::new(file))
    }

    #[test]
    fn a_test_has_the_addresses_right_above_it() {
        let found = found_in("a.rs");
        let told: Vec<_> = found
            .iter()
            .map(|test| (&*test.name, test.line, test.reports.len()))
            .collect();
        assert_eq!(
            told,
            [
                ("go_60181_it_appends", 11, 1),
                ("something_else", 18, 1),
                ("rust_26933_by_no_address", 21, 0),
                ("go_60181_and_before_1970", 24, 0),
                ("beyond_2_gib", 27, 0),
            ]
        );
    }

    #[test]
    fn names_and_addresses_go_together() {
        let mut found = found_in("a.rs");
        found.extend(found_in("b.rs").into_iter().take(1));
        assert_eq!(
            problems(&found),
            [
                "a.rs:18: something_else does not begin with PROJECT_8",
                "a.rs:21: rust_26933_by_no_address has the number 26933, and no address above it does",
                "a.rs:24: go_60181_and_before_1970 has the number 60181, and no address above it does",
                "b.rs:11: go_60181_it_appends is the name of a test in a.rs:11 too",
            ]
        );
    }
}
