//! The trace of a copy: the one place that names its fields.

use std::path::Path;
use std::time::Duration;

use copyist_engine::{Error, Mechanism, Summary};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::report::What;

/// Opens the span of one copy. Paths are the guest's own, relative to what it holds.
pub(crate) fn open(what: What, source: Option<&Path>, destination: Option<&Path>) -> Span {
    tracing::info_span!(
        target: "copyist",
        "copy",
        what = what.name(),
        source = source.map(|path| display(path.display())),
        destination = destination.map(|path| display(path.display())),
        bytes = Empty,
        shared = Empty,
        method = Empty,
        entries = Empty,
        skipped = Empty,
        failed = Empty,
        refused = Empty,
        error = Empty,
        elapsed_us = Empty,
    )
}

/// Records what came of it.
pub(crate) fn close(span: &Span, outcome: Result<&Summary, &Error>, elapsed: Duration) {
    if span.is_disabled() {
        return;
    }
    let summary = match outcome {
        Ok(summary) => summary,
        Err(error) => {
            span.record("error", display(&error.cause));
            &error.done
        }
    };
    span.record("bytes", summary.bytes);
    span.record("shared", summary.shared);
    span.record("method", summary.method.map_or("none", Mechanism::name));
    let entries = [
        summary.files,
        summary.directories,
        summary.links,
        summary.special,
    ];
    span.record("entries", entries.iter().sum::<u64>());
    span.record("skipped", summary.skipped);
    span.record("failed", summary.failed);
    if !summary.refused.is_empty() {
        span.record("refused", display(Refused(&summary.refused)));
    }
    span.record(
        "elapsed_us",
        u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    );
}

/// `clone: Operation not supported, copy-range: moved nothing`
struct Refused<'a>(&'a [(Mechanism, Option<copyist_engine::Errno>)]);

impl std::fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (mechanism, errno)) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            match errno {
                Some(errno) => write!(f, "{comma}{mechanism}: {errno}")?,
                None => write!(f, "{comma}{mechanism}: moved nothing")?,
            }
        }
        Ok(())
    }
}
