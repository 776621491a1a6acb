//! Copies into pipes and sockets beside the loops that one would write for just that, on one
//! processor, peers included.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use copyist_engine::{Environment, Mechanism};
use wasmtime::Result;

use crate::place::Place;
use crate::row::{Row, Verdict};
use crate::streams::counting::Counting;
use crate::streams::ends::Kind;
use crate::streams::engine::Driver;
use crate::streams::loops;
use crate::streams::rounds::{BUFFERS, Case, NO_BUFFER, Part};

/// A file into a pipe.
pub(super) const FILE_INTO_PIPE: &[Case] = &[
    Case {
        source: Kind::File,
        destination: Kind::Pipe,
        zero_copy: true,
        part: Part::Whole,
        mechanism: Mechanism::Splice,
        by: loops::splice,
        name: "a blocking splice loop",
        buffers: NO_BUFFER,
    },
    Case {
        source: Kind::File,
        destination: Kind::Pipe,
        zero_copy: false,
        part: Part::Whole,
        mechanism: Mechanism::ReadWrite,
        by: loops::read_write,
        name: "a read and write loop",
        buffers: BUFFERS,
    },
];

/// A pipe or a socket into a pipe.
pub(super) const STREAM_INTO_PIPE: &[Case] = &[
    Case {
        source: Kind::Pipe,
        destination: Kind::Pipe,
        zero_copy: false,
        part: Part::Quarter,
        mechanism: Mechanism::Splice,
        by: loops::poll_and_splice,
        name: "a poll and splice loop",
        buffers: NO_BUFFER,
    },
    Case {
        source: Kind::Socket,
        destination: Kind::Pipe,
        zero_copy: false,
        part: Part::Quarter,
        mechanism: Mechanism::Splice,
        by: loops::poll_then_splice,
        name: "a poll and splice loop",
        buffers: NO_BUFFER,
    },
];

/// A file into a socket.
pub(super) const FILE_INTO_SOCKET: &[Case] = &[
    Case {
        source: Kind::File,
        destination: Kind::Socket,
        zero_copy: true,
        part: Part::Whole,
        mechanism: Mechanism::SendFile,
        by: loops::send_file,
        name: "sendfile",
        buffers: NO_BUFFER,
    },
    Case {
        source: Kind::File,
        destination: Kind::Tcp,
        zero_copy: true,
        part: Part::Quarter,
        mechanism: Mechanism::SendFile,
        by: loops::send_file,
        name: "sendfile",
        buffers: NO_BUFFER,
    },
    Case {
        source: Kind::File,
        destination: Kind::Socket,
        zero_copy: false,
        part: Part::Whole,
        mechanism: Mechanism::ReadWrite,
        by: loops::read_send,
        name: "a read and send loop",
        buffers: BUFFERS,
    },
];

pub(super) fn measure(place: &Place, size: u64, cases: &[Case]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in cases {
        let size = case.part.of(size);
        let file = place.file(&format!("large-{size}"), size)?;
        let file = place.path().join(file);
        rows.extend(case.measure(&file, size)?);
        if case.source != Kind::File {
            rows.push(polls(&file, size, case)?);
        }
    }
    Ok(rows)
}

/// How often it asks whether it may go on. Counted where no reactor waits for it in between, by the
/// driver of one thread.
fn polls(file: &Path, size: u64, case: &Case) -> Result<Row> {
    let counting = Arc::new(Counting::default());
    let driver = Driver::caller(Environment::new(counting.clone()));
    case.by_the_engine(&driver, file, size)?;
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let (waits, looks) = (count(&counting.waits), count(&counting.looks));
    let (moves, stalls) = (count(&counting.moves), count(&counting.stalls));
    // A splice(2) from a socket would sleep in it, so that each comes after a look. A pipe may be a
    // FIFO that nobody has written to, until its first wait or look.
    let most_looks = match case.source {
        Kind::Pipe => 1,
        _ => moves + stalls,
    };
    Ok(Row {
        bar: format!("{}: polls", case.what(size)),
        measured: format!("{waits} in {stalls} stalls, {looks} looks, {moves} splices that moved"),
        bound: format!("one a stall, <= {most_looks} looks"),
        verdict: Verdict::of(waits <= stalls && looks <= most_looks),
    })
}
