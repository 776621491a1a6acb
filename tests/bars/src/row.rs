//! What came of a bar, and the table of them all.

use std::fmt;

use comfy_table::{ContentArrangement, Table, presets};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) bar: String,
    pub(crate) measured: String,
    pub(crate) bound: String,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Neither: the control was off.
    Void,
}

impl Verdict {
    const ALL: [Self; 3] = [Self::Met, Self::Missed, Self::Void];

    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Void => "VOID",
        })
    }
}

impl Row {
    /// A bar that could not be measured is one that was missed.
    pub(crate) fn not_measured(bar: &str, why: &wasmtime::Error) -> Self {
        Self {
            bar: bar.to_owned(),
            measured: format!("not measured: {why:#}"),
            bound: String::new(),
            verdict: Verdict::Missed,
        }
    }
}

impl Row {
    /// For another process to read.
    pub(crate) fn line(&self) -> String {
        let words = [&self.bar, &self.measured, &self.bound];
        let words = words.map(|word| word.replace(['\t', '\n'], " "));
        format!("{}\t{}", words.join("\t"), self.verdict)
    }

    /// None where it is no such line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split('\t').collect();
        let [bar, measured, bound, verdict] = words.try_into().ok()?;
        let is_meant = |is: &Verdict| is.to_string() == verdict;
        Some(Self {
            bar: bar.to_owned(),
            measured: measured.to_owned(),
            bound: bound.to_owned(),
            verdict: Verdict::ALL.into_iter().find(is_meant)?,
        })
    }
}

/// In Markdown, to be pasted.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["bar", "measured", "bound", "verdict"]);
    for row in rows {
        table.add_row([
            row.bar.as_str(),
            &row.measured,
            &row.bound,
            &row.verdict.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_over_whole_in_a_line() {
        for verdict in Verdict::ALL {
            let row = Row {
                bar: "a bar".to_owned(),
                measured: String::new(),
                bound: "<= 1".to_owned(),
                verdict,
            };
            assert_eq!(Row::parse(&row.line()), Some(row));
        }
        assert_eq!(Row::parse("a\tb\tc\tperhaps"), None);
        assert_eq!(Row::parse("a\tb\tmet"), None);
    }
}
