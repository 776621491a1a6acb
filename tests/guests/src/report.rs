//! What came of a call, in one line.

use std::fmt;

use copyist_guest::{Cause, Error, Limit, Preserve, Side, Summary};

/// Prints what came of a copy.
pub fn report(outcome: Result<Summary, Error>) {
    match outcome {
        Ok(Summary {
            bytes,
            shared,
            consumed,
            method,
            skipped,
            lost,
            changed,
            ..
        }) => say(format_args!(
            "ok bytes={bytes} shared={shared} consumed={consumed} method={method} \
             skipped={skipped} lost={} changed={changed}",
            preserved(lost),
        )),
        Err(error) => report_error(&error),
    }
}

/// Prints why a call failed.
pub fn report_error(error: &Error) {
    let side = match error.side() {
        Some(Side::Source) => "source",
        Some(Side::Destination) => "destination",
        None => "-",
    };
    let Summary {
        bytes, consumed, ..
    } = error.summary();
    say(format_args!(
        "err cause={} side={side} kind={:?} bytes={bytes} consumed={consumed} path={}",
        cause(error.cause()),
        error.kind(),
        error.path().unwrap_or("-"),
    ));
}

/// Prints the line that a test reads.
#[expect(clippy::print_stdout, reason = "it is what the program is for")]
pub fn say(line: fmt::Arguments<'_>) {
    println!("{line}");
}

/// The FNV-1a hash, by which a test tells that a program read the right bytes.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The name of a cause.
pub fn cause(cause: &Cause) -> &str {
    match cause {
        Cause::Filesystem((_, code)) => code.name(),
        Cause::Denied => "denied",
        Cause::Limit(Limit::Bytes) => "limit:bytes",
        Cause::Limit(Limit::TotalBytes) => "limit:total-bytes",
        Cause::Limit(Limit::Entries) => "limit:entries",
        Cause::Limit(Limit::Depth) => "limit:depth",
        Cause::Limit(Limit::Copies) => "limit:copies",
        Cause::Limit(Limit::ReadSize) => "limit:read-size",
        Cause::Cancelled => "cancelled",
        Cause::TimedOut => "timed-out",
        Cause::SameFile => "same-file",
        Cause::Unsupported => "unsupported",
        Cause::Other(_) => "other",
    }
}

/// The names of attributes.
pub fn preserved(lost: Preserve) -> String {
    if lost.is_empty() {
        return "-".to_owned();
    }
    let names: Vec<_> = lost
        .iter_names()
        .map(|(name, _)| name.to_lowercase())
        .collect();
    names.join(",")
}
