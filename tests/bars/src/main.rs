//! `cargo bars`: measures what copyist promises about speed, and exits with 1 where a promise is not
//! kept or could not be checked. How it measures stands in CONTRIBUTING.md under "Measuring".
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on one, what it is at on the other"
)]

mod args;
mod bars;
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

use std::process::ExitCode;

use clap::Parser;
use wasmtime::Result;

use args::{Args, Helper};
use bars::{Bar, Bench};
use row::{Row, Verdict};

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match &args.helper {
        None => images::enter().and_then(|()| measure(&args)),
        Some(Helper::Engine(repeat)) => repeat::by_the_engine(repeat).map(|()| ExitCode::SUCCESS),
        Some(Helper::Guest(repeat)) => repeat::by_a_guest(repeat).map(|()| ExitCode::SUCCESS),
        Some(Helper::Copyist { words }) => return copyist::main(words.iter().cloned()),
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
    for bar in Bar::ALL {
        if !args.only.is_empty() && !args.only.contains(&bar) {
            continue;
        }
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
