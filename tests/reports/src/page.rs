//! The page: each report with its kind, its tests, and what came of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::report::Report;
use crate::results::{Ending, Ran, Results};
use crate::sources::Test;
use crate::table::{Row, Section, Table};

/// See the module.
pub(crate) fn page(table: &Table, tests: &[Test], results: &Results) -> String {
    let mut page = format!(
        "# What people reported of copying, and what came of it here

Made by `ci/reports` from the last runs of `ci/test` and `ci/filesystems`. The file systems are those of
the temporary directory; a test copies within it and, where there is one, to and from a tmpfs beside it.
`all` is a run with all of them at hand.

{}.
",
        sum(table, tests, results)
    );
    for section in &table.sections {
        let Section {
            document, words, ..
        } = section;
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "\n## `{document}`: {words}\n\n| Report | Kind | Test | Result |\n| --- | --- | --- | --- |\n"
        );
        for row in &section.rows {
            page.push_str(&lines(row, tests, results));
        }
    }
    page
}

/// The page in a line.
pub(crate) fn sum(table: &Table, tests: &[Test], results: &Results) -> String {
    let tests: Vec<_> = tests.iter().filter(|t| !t.reports.is_empty()).collect();
    let has_failed = |test: &&&Test| {
        let places = results.of(test).into_iter().flatten();
        places
            .into_iter()
            .any(|(_, ran)| ran.ending == Some(Ending::Failed))
    };
    format!(
        "{} reports, {} tests: {} failed, {} not run",
        table.rows().count(),
        tests.len(),
        tests.iter().filter(has_failed).count(),
        tests.iter().filter(|test| !results.has_run(test)).count(),
    )
}

/// A line for each test of a report.
fn lines(row: &Row, tests: &[Test], results: &Results) -> String {
    let Row { report, kind } = row;
    let mut lines = String::new();
    let mut start = format!("| {} | {} ", link(report), escape(kind));
    for test in tests.iter().filter(|test| test.reports.contains(report)) {
        let file = test.file.display();
        let _ = writeln!(
            lines,
            "{start}| [{}](../{file}#L{}) | {} |",
            test.name,
            test.line,
            escape(&result(results.of(test)))
        );
        start = "| | ".to_owned();
    }
    if lines.is_empty() {
        let _ = writeln!(lines, "{start}| **none** | **not run** |");
    }
    lines
}

fn link(report: &Report) -> String {
    format!("[{report}]({})", report.address())
}

/// What came of a test, wherever it ran.
fn result(places: Option<&BTreeMap<String, Ran>>) -> String {
    let Some(places) = places else {
        return "**not run**".to_owned();
    };
    let on = |wanted: &dyn Fn(&Ran) -> bool| {
        let names = places.iter().filter(|(_, ran)| wanted(ran));
        names
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let is_whole = |ran: &Ran| ran.skipped.is_empty();
    let groups: [(&str, String); 4] = [
        ("**FAILED**", on(&|ran| ran.ending == Some(Ending::Failed))),
        ("**did not end**", on(&|ran| ran.ending.is_none())),
        (
            "**not run**",
            on(&|ran| ran.ending == Some(Ending::Ignored)),
        ),
        (
            "passed",
            on(&|ran| ran.ending == Some(Ending::Passed) && is_whole(ran)),
        ),
    ];
    let mut said: Vec<_> = groups
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} on {names}"))
        .collect();
    for (name, ran) in places {
        if ran.ending == Some(Ending::Passed) && !is_whole(ran) {
            let why: Vec<_> = ran.skipped.iter().map(String::as_str).collect();
            let why = why.join("; ");
            said.push(format!("skipped, in part or whole, on {name}: {why}"));
        }
    }
    said.join("; ")
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(ran: &[(&str, Option<Ending>, &[&str])]) -> BTreeMap<String, Ran> {
        let place = |(name, ending, skipped): &(&str, _, &[&str])| {
            let skipped = skipped.iter().map(|why| (*why).to_owned()).collect();
            let ending = *ending;
            ((*name).to_owned(), Ran { ending, skipped })
        };
        ran.iter().map(place).collect()
    }

    #[test]
    fn a_result_says_where_and_why_not() {
        assert_eq!(result(None), "**not run**");
        let passed = Some(Ending::Passed);
        let ran = places(&[
            ("btrfs", None, &[]),
            ("ext4", passed, &[]),
            ("tmpfs", passed, &["no root", "no holes"]),
            ("vfat", Some(Ending::Failed), &["no holes"]),
            ("xfs", passed, &[]),
        ]);
        assert_eq!(
            result(Some(&ran)),
            "**FAILED** on vfat; **did not end** on btrfs; passed on ext4, xfs; \
             skipped, in part or whole, on tmpfs: no holes; no root"
        );
    }
}
