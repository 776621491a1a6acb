//! `cargo bars`: measures what copyist promises about speed, and exits with 1 where a promise is not
//! kept or could not be checked. How it measures stands in CONTRIBUTING.md under "Measuring".
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on one, what it is at on the other"
)]

mod apart;
mod args;
mod bars;
mod crowd;
mod host;
mod images;
mod machine;
mod place;
mod quiet;
mod recording;
mod repeat;
mod row;
mod sample;
mod shape;
mod strace;
mod streams;
mod task;
mod waiting;

use std::process::ExitCode;

use clap::Parser;
use wasmtime::Result;

use args::{Args, Command};
use bars::{Bar, Bench};
use place::Place;
use row::{Row, Verdict};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = |()| ExitCode::SUCCESS;
    let ended = match &args.command {
        None | Some(Command::Waits) => images::enter().and_then(|()| measure(&args)),
        Some(Command::Apart { bar }) => apart(*bar, &args).map(done),
        Some(Command::Crowd(crowd)) => crowd::hold(crowd).map(done),
        Some(Command::Engine(repeat)) => repeat::by_the_engine(repeat).map(done),
        Some(Command::Guest(repeat)) => repeat::by_a_guest(repeat).map(done),
        Some(Command::Copyist { words }) => return copyist::main(words.iter().cloned()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("bars: {error:#}");
        ExitCode::FAILURE
    })
}

fn measure(args: &Args) -> Result<ExitCode> {
    println!("{}", machine::describe(&args.dir));
    let bench = Bench::new(args)?;
    let mut rows = Vec::new();
    let is_wanted = |bar: &Bar| match args.command {
        Some(Command::Waits) => bar.is_of_waits(),
        _ => args.only.is_empty() || args.only.contains(bar),
    };
    for bar in Bar::ALL.into_iter().filter(is_wanted) {
        eprintln!("measuring: {}", bar.what());
        match bar.measure(&bench) {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(Row::not_measured(bar.what(), &error)),
        }
    }
    println!("{}", row::table(&rows));
    let kept = rows.iter().all(|row| row.verdict == Verdict::Met);
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// In the directory of the process that asked, which reads the rows.
fn apart(bar: Bar, args: &Args) -> Result<()> {
    for row in bar.measure_apart(&Place::given()?, args.size.as_u64())? {
        println!("{}", row.line());
    }
    Ok(())
}
