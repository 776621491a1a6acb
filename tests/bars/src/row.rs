//! What came of a bar, and the table of them all.

use std::fmt;

use comfy_table::{ContentArrangement, Table, presets};

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
