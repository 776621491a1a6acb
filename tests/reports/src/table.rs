//! `table.md`: of what kind each report is, below the sentence of our documents that answers it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::report::Report;
use crate::sources::Test;

const TABLE: &str = "tests/reports/table.md";

/// Reports that one sentence answers.
#[derive(Debug)]
pub(crate) struct Section {
    /// The document that has it.
    pub(crate) document: String,
    /// The first words of it.
    pub(crate) words: String,
    pub(crate) rows: Vec<Row>,
}

/// A report, and what it is about.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) report: Report,
    pub(crate) kind: String,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) sections: Vec<Section>,
}

impl Table {
    pub(crate) fn read(repository: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(repository.join(TABLE))?;
        Self::parse(&text).map_err(|error| io::Error::other(format!("{TABLE}: {error}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                let parts = heading.strip_prefix('`').and_then(|h| h.split_once("`: "));
                let (document, words) = parts.ok_or(format!("no `DOCUMENT`: words: {heading}"))?;
                sections.push(Section {
                    document: document.to_owned(),
                    words: words.to_owned(),
                    rows: Vec::new(),
                });
            } else if let Some(cells) = line.strip_prefix("| ") {
                let cells: Vec<_> = cells.split('|').map(str::trim).collect();
                let [name, kind, ""] = cells[..] else {
                    return Err(format!("not two cells: {line}"));
                };
                if name != "Report" && !name.starts_with('-') {
                    let section = sections.last_mut().ok_or("a row before a heading")?;
                    section.rows.push(Row {
                        report: Report::named(name),
                        kind: kind.to_owned(),
                    });
                }
            }
        }
        Ok(Self { sections })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Where it does not agree with the documents or with the tests.
    pub(crate) fn problems(&self, repository: &Path, tests: &[Test]) -> Vec<String> {
        let mut problems = Vec::new();
        for Section {
            document, words, ..
        } in &self.sections
        {
            let text = fs::read_to_string(repository.join(document)).unwrap_or_default();
            if !plain(&text).contains(words) {
                problems.push(format!("{TABLE}: {document} does not say: {words}"));
            }
        }
        problems.extend(self.differences(tests));
        problems
    }

    fn differences(&self, tests: &[Test]) -> Vec<String> {
        let mut problems = Vec::new();
        let tested: BTreeSet<_> = tests.iter().flat_map(|test| &test.reports).collect();
        let mut listed = BTreeSet::new();
        for Row { report, .. } in self.rows() {
            if !listed.insert(report) {
                problems.push(format!("{TABLE}: {report} stands there twice"));
            }
            if !tested.contains(report) {
                problems.push(format!("{TABLE}: {report} has no test"));
            }
        }
        let missing = tested.difference(&listed);
        problems.extend(missing.map(|report| format!("{TABLE}: {report} is missing")));
        problems
    }
}

/// A text without line breaks, and without what marks comments and doc comments.
fn plain(text: &str) -> String {
    let words = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches(['/', '!']));
    let words = words.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const TEXT: &str = "# Title

## `Cargo.toml`: name = \"copyist-reports\"

| Report | Kind |
| --- | --- |
| a/b#1 | one thing |
| a/b#2 | another |

## `Cargo.toml`: words that stand nowhere

| Report | Kind |
| --- | --- |
| a/b#1 | one thing |
";

    #[test]
    fn every_report_has_a_row_and_every_row_a_test() {
        let table = Table::parse(TEXT).unwrap();
        assert_eq!(table.rows().next().unwrap().kind, "one thing");
        let tests =
            [("x", vec!["a/b#1"]), ("y", vec!["a/b#1", "a/b#3"])].map(|(name, reports)| Test {
                name: name.to_owned(),
                file: PathBuf::new(),
                line: 1,
                reports: reports.into_iter().map(Report::named).collect(),
            });
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            table.problems(here, &tests),
            [
                "tests/reports/table.md: Cargo.toml does not say: words that stand nowhere",
                "tests/reports/table.md: a/b#2 has no test",
                "tests/reports/table.md: a/b#1 stands there twice",
                "tests/reports/table.md: a/b#3 is missing",
            ]
        );
    }

    #[test]
    fn a_row_is_whole_and_below_a_heading() {
        for text in ["| a/b#1 | one |", "## no document", "## `a`: b\n| a/b#1 |"] {
            Table::parse(text).unwrap_err();
        }
    }

    #[test]
    fn the_lines_of_a_document_do_not_matter() {
        assert_eq!(
            plain("/// One\n    /// two\n//! three  four\n"),
            "One two three four"
        );
    }
}
