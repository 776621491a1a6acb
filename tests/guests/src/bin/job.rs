//! Jobs, by a script: `job STEP.. [WORD..]`, the words being those of [`Arguments::copy_options`].
//!
//! `start:FROM:TO` starts one; they are numbered from 0. `copy:FROM:TO` copies and waits, which shows
//! that nothing before it did. The others take a number: `subscribe`, `poll` (waits for what was
//! subscribed), `unsubscribe`, `wait`, `cancel`, `drop`, `progress`, `outcome`; and `until:NUMBER:BYTES`
//! asks until so many bytes are copied. `turns:NUMBER:TIMES` subscribes and drops that. `await:PATH`
//! waits until there is such a file, `print:TEXT` prints that and no more, and `leave` ends the program
//! with all that it has.
//!
//! A line for each of `start` that fails, `copy`, `wait`, `progress` and `outcome`.

use std::io::Write;

use copyist_guest::{CopyOptions, Job, Pollable};
use copyist_test_guests::{Arguments, report, report_error, say};

#[derive(Default)]
struct Script {
    options: CopyOptions,
    jobs: Vec<Option<Job>>,
    pollables: Vec<Option<Pollable>>,
}

fn main() {
    let mut arguments = Arguments::from_env();
    let mut script = Script {
        options: arguments.copy_options(),
        ..Script::default()
    };
    for step in arguments.rest() {
        if let Some(text) = step.strip_prefix("print:") {
            print(text);
            continue;
        }
        let words: Vec<_> = step.split(':').collect();
        match *words.as_slice() {
            ["start", from, to] => script.start(from, to),
            ["copy", from, to] => report(script.options.copy(from, to)),
            ["await", path] => while !std::fs::exists(path).expect("it can be looked for") {},
            ["leave"] => return forget(script),
            [verb, number] => script.step(verb, parse(number)),
            ["until", number, bytes] => script.until(parse(number), parse(bytes)),
            ["turns", number, times] => {
                for _ in 0..parse(times) {
                    drop(script.job(parse(number)).subscribe());
                }
            }
            _ => panic!("{step} is unknown"),
        }
    }
}

impl Script {
    fn start(&mut self, from: &str, to: &str) {
        let job = self.options.start(from, to);
        if let Err(error) = &job {
            report_error(error);
        }
        self.jobs.push(job.ok());
        self.pollables.push(None);
    }

    fn step(&mut self, verb: &str, number: usize) {
        match verb {
            "subscribe" => self.pollables[number] = Some(self.job(number).subscribe()),
            "poll" => self.pollables[number]
                .as_ref()
                .expect("it is subscribed")
                .block(),
            "unsubscribe" => self.pollables[number] = None,
            "wait" => report(self.job(number).wait()),
            "cancel" => self.job(number).cancel(),
            "drop" => self.jobs[number] = None,
            "progress" => {
                let progress = self.job(number).progress();
                let total = progress.total.map(|total| total.to_string());
                say(format_args!(
                    "ok bytes={} total={} entries={}",
                    progress.bytes,
                    total.as_deref().unwrap_or("-"),
                    progress.entries,
                ));
            }
            "outcome" => match self.job(number).outcome() {
                Some(outcome) => {
                    assert!(self.job(number).is_finished());
                    report(outcome);
                }
                None => say(format_args!("ok running=true")),
            },
            _ => panic!("{verb} is unknown"),
        }
    }

    fn until(&self, number: usize, bytes: usize) {
        while self.job(number).progress().bytes < bytes as u64 {
            assert!(!self.job(number).is_finished(), "it ends before");
        }
    }

    fn job(&self, number: usize) -> &Job {
        self.jobs[number].as_ref().expect("it was started")
    }
}

fn print(text: &str) {
    let mut output = std::io::stdout();
    let written = output.write_all(text.as_bytes());
    written
        .and_then(|()| output.flush())
        .expect("it can be printed");
}

/// A program that ends so drops nothing, as one that traps.
#[expect(clippy::mem_forget, reason = "it is what this is for")]
fn forget(script: Script) {
    std::mem::forget(script);
}

fn parse(word: &str) -> usize {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is not a number"))
}
