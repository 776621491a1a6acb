//! The same small copy over and over, in a process that `strace` watches.
//!
//! Three rounds, with a mark after each: a look for a file that does not exist, whose name the
//! trace shows. The first round settles what happens once. What the third has more than the second
//! is what its further copies made, and nothing else.

use std::fs;

use copyist_engine::sys::FatalSignalsBlocked;
use copyist_engine::{
    Base, Cancel, Destination, Environment, Location, ReadOptions, ReadRequest, Request, Source,
    Step, Transfer,
};
use copyist_wasmtime::CopyCtx;
use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use crate::args::Repeat;
use crate::host::{Guest, Run, WasiFiles};
use crate::place::Place;
use crate::shape::Shape;

const WARM_UP: u32 = 50;
const FEW: u32 = 50;
const MANY: u32 = 1050;

/// By how many copies the third round is longer than the second.
pub(crate) const COPIES: u32 = MANY - FEW;
/// The copies of all three rounds.
pub(crate) const ALL: u32 = WARM_UP + FEW + MANY;
/// What the trace shows after each round.
pub(crate) const MARKS: [&str; 3] = ["to-mark-0", "to-mark-1", "to-mark-2"];

const SMALL: &str = "small";
const MEDIUM: &str = "medium";
const TO: &str = "to";

/// Makes the sources.
pub(crate) fn prepare(place: &Place) -> Result<()> {
    place.file(SMALL, 4096)?;
    place.file(MEDIUM, 300_000)?;
    Ok(())
}

/// Removes the destinations.
pub(crate) fn tidy(place: &Place) -> Result<()> {
    for entry in fs::read_dir(place.path())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TO) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

pub(crate) fn by_the_engine(repeat: &Repeat) -> Result<()> {
    let place = Place::given()?;
    let directory = place.open()?;
    let at = |name: String| Location {
        base: Base::Beneath(directory.clone()),
        path: name.into(),
        follow: true,
    };
    if repeat.shape == Shape::InPlaceLonger {
        for copy in 0..WARM_UP + FEW + MANY {
            place.file(&format!("{TO}-{copy}"), 8192)?;
        }
    }
    // As on a thread of the pool.
    let _signals = FatalSignalsBlocked::new();
    let mut copies = 0;
    for (count, mark) in [WARM_UP, FEW, MANY].into_iter().zip(MARKS) {
        for _ in 0..count {
            let source = Source::Path(at(source(repeat.shape).to_owned()));
            if repeat.shape == Shape::Read {
                let request = ReadRequest {
                    source,
                    options: ReadOptions::default(),
                };
                copyist_engine::read(&request, &Cancel::new()).context("cannot read")?;
                continue;
            }
            let to = if repeat.shape.is_fresh() {
                format!("{TO}-{copies}")
            } else {
                TO.to_owned()
            };
            let request = Request {
                source,
                destination: Destination::Path(at(to)),
                options: repeat.shape.options(),
            };
            if repeat.bare {
                bare(request)?;
            } else {
                copyist_engine::copy(request, &Cancel::new()).context("cannot copy")?;
            }
            copies += 1;
        }
        let _ = fs::metadata(mark);
    }
    Ok(())
}

/// The copy and nothing that could end it: neither a cancel nor a wait.
pub(crate) fn bare(request: Request) -> Result<()> {
    let mut transfer = Transfer::new(Environment::native(), request);
    loop {
        match transfer.step(u64::MAX) {
            Step::Moved(_) => {}
            Step::Done(_) => return Ok(()),
            Step::Failed(error) => return Err(error).context("cannot copy"),
            step => bail!("a regular file is not copied by {step:?}"),
        }
    }
}

pub(crate) fn by_a_guest(repeat: &Repeat) -> Result<()> {
    let program = repeat.program.as_deref().context("which program?")?;
    let rounds = [
        format!("--warm-up={WARM_UP}"),
        format!("--few={FEW}"),
        format!("--many={MANY}"),
    ];
    let mut words = vec![source(repeat.shape), TO];
    words.extend(repeat.shape.words());
    words.extend(rounds.iter().map(String::as_str));
    Guest::load(program, repeat.linking)?.run(Run {
        place: &Place::given()?,
        words: &words,
        copy: CopyCtx::default(),
        files: WasiFiles::OnThisThread,
    })?;
    Ok(())
}

const fn source(shape: Shape) -> &'static str {
    match shape {
        Shape::Read => MEDIUM,
        _ => SMALL,
    }
}
