//! `--report json`: one object a copy.

use std::borrow::Cow;
use std::path::Path;

use copyist_wasmtime::Report;
use copyist_wasmtime::engine::Mechanism;
use serde::Serialize;

use crate::messages;

/// A copy that ended. Sizes in bytes, times in microseconds.
#[derive(Serialize)]
struct Line<'a> {
    what: &'static str,
    source: Option<Cow<'a, str>>,
    destination: Option<Cow<'a, str>>,
    error: Option<String>,
    bytes: u64,
    shared: u64,
    consumed: u64,
    method: &'static str,
    files: u64,
    directories: u64,
    links: u64,
    special: u64,
    skipped: u64,
    failed: u64,
    lost: Vec<&'static str>,
    changed: bool,
    refused: Vec<Refused>,
    /// From the guest's call to its end, the wait for a thread included.
    elapsed_us: u64,
    /// The copy alone.
    engine_us: u64,
}

/// A mechanism that was tried and did not work.
#[derive(Serialize)]
struct Refused {
    method: &'static str,
    /// Absent where it claimed success and moved nothing.
    error: Option<String>,
}

/// Says a copy's line on the standard error.
pub(crate) fn json(report: &Report<'_>) {
    let (summary, error) = match report.outcome {
        Ok(summary) => (summary, None),
        Err(error) => (&error.done, Some(error.cause.to_string())),
    };
    let line = Line {
        what: report.what.name(),
        source: report.source.map(Path::to_string_lossy),
        destination: report.destination.map(Path::to_string_lossy),
        error,
        bytes: summary.bytes,
        shared: summary.shared,
        consumed: summary.consumed,
        method: summary.method.map_or("none", Mechanism::name),
        files: summary.files,
        directories: summary.directories,
        links: summary.links,
        special: summary.special,
        skipped: summary.skipped,
        failed: summary.failed,
        lost: summary.lost.names().collect(),
        changed: summary.changed,
        refused: summary
            .refused
            .iter()
            .map(|(mechanism, errno)| Refused {
                method: mechanism.name(),
                error: errno.map(|errno| errno.to_string()),
            })
            .collect(),
        elapsed_us: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
        engine_us: u64::try_from(summary.elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    if let Ok(mut text) = serde_json::to_vec(&line) {
        text.push(b'\n');
        messages::say(text);
    }
}
