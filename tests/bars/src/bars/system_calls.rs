//! What one small copy asks of the kernel, by the engine alone and through the pool from a guest.

use std::ffi::OsString;

use wasmtime::Result;

use super::Bench;
use crate::args::Linking;
use crate::repeat;
use crate::row::{Row, Verdict};
use crate::shape::Shape;
use crate::strace::{self, Calls, RARE};

/// Beyond what the engine alone makes: to a thread of the pool, and back.
const HOP: f64 = 5.0;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    repeat::prepare(&bench.place)?;
    let mut rows = Vec::new();
    for shape in Shape::ALL {
        let alone = count(bench, shape, None)?;
        rows.push(alone_row(shape, &alone));
        if shape.has_hop_row() {
            for linking in Linking::ALL {
                let asked = count(bench, shape, Some(linking))?;
                rows.push(hop_row(linking, &alone, &asked));
            }
        }
    }
    Ok(rows)
}

fn count(bench: &Bench, shape: Shape, guest: Option<Linking>) -> Result<Calls> {
    let mut words: Vec<OsString> = match guest {
        None => vec!["engine".into()],
        Some(linking) => vec![
            "guest".into(),
            "--program".into(),
            bench.many.clone().into(),
            "--linking".into(),
            linking.name().into(),
        ],
    };
    words.extend(["--shape".into(), shape.name().into()]);
    let calls = strace::count(bench.place.path(), &words, &repeat::MARKS, repeat::COPIES)?;
    repeat::tidy(&bench.place)?;
    Ok(calls)
}

fn alone_row(shape: Shape, calls: &Calls) -> Row {
    let counted = calls.without(shape.not_counted());
    Row {
        bar: format!("system calls of {}", shape.what()),
        measured: format!("{:.2}: {calls}", counted.total()),
        bound: format!("<= {}{}", shape.most(), shape.counted()),
        verdict: Verdict::of(counted.total() <= f64::from(shape.most()) + RARE),
    }
}

fn hop_row(linking: Linking, alone: &Calls, asked: &Calls) -> Row {
    let more = asked.total() - alone.total();
    Row {
        bar: format!("the same from a guest, {}", linking.name()),
        measured: format!("{more:.2} more: {}", asked.beyond(alone)),
        bound: format!("<= {HOP} more"),
        verdict: Verdict::of(more <= HOP + RARE),
    }
}
