//! Granted channels, a step after the other and a line each.
//!
//! `endpoints STEP.. [WORD..]`, the words being those of [`Arguments::copy_options`]. An END is
//! `@NAME`, a channel that is open, or else a path. The steps: `names`; `open:NAME` and `drop:NAME`;
//! `copy:END:END`; `start:END:END`, a job, and `wait`, for its end; `read:END`; `input:NAME:LENGTH`,
//! so many bytes of it or up to its end, and `output:NAME:TEXT`, by streams that are dropped again;
//! `hold-input:NAME`, `hold-output:NAME`, and `release`; `late-output:NAME:TEXT`, which is not flushed;
//! `finish:NAME`.

use std::collections::HashMap;
use std::io::{Read, Write};

use copyist_guest::{
    CopyOptions, Destination, Endpoint, EndpointError, HeldDestination, HeldSource, Job, Source,
};
use copyist_test_guests::{Arguments, fnv1a, report, report_error, say};
use wasip2::io::streams::{InputStream, OutputStream};

#[derive(Default)]
struct State {
    options: CopyOptions,
    open: HashMap<String, Endpoint>,
    job: Option<Job>,
    inputs: Vec<InputStream>,
    outputs: Vec<OutputStream>,
}

fn main() {
    let mut arguments = Arguments::from_env();
    let mut state = State {
        options: arguments.copy_options(),
        ..State::default()
    };
    for step in arguments.rest() {
        let words: Vec<_> = step.split(':').collect();
        state.step(&words);
    }
}

impl State {
    fn step(&mut self, words: &[&str]) {
        match *words {
            ["names"] => say(format_args!(
                "ok names={}",
                copyist_guest::endpoints().join(",")
            )),
            ["open", name] => {
                if let Some(endpoint) = opened(copyist_guest::endpoint(name)) {
                    self.open.insert(name.to_owned(), endpoint);
                    say(format_args!("ok"));
                }
            }
            ["drop", name] => {
                self.open.remove(name).expect("it is open");
                say(format_args!("ok"));
            }
            ["copy", from, to] => {
                report(self.options.copy(self.source(from), self.destination(to)))
            }
            ["start", from, to] => match self.start(from, to) {
                Ok(job) => {
                    self.job = Some(job);
                    say(format_args!("ok"));
                }
                Err(error) => report_error(&error),
            },
            ["wait"] => report(self.job.take().expect("there is a job").wait()),
            ["read", from] => match copyist_guest::read(self.source(from)) {
                Ok(bytes) => say(format_args!(
                    "ok bytes={} fnv={:016x}",
                    bytes.len(),
                    fnv1a(&bytes)
                )),
                Err(error) => report_error(&error),
            },
            ["input", name, length] => {
                if let Some(stream) = opened(self.open[name].input()) {
                    let mut text = String::new();
                    let length = length.parse().expect("a length");
                    let read = stream.take(length).read_to_string(&mut text);
                    told(read.map(|_| format!(" text={text}")));
                }
            }
            ["output", name, text] => {
                if let Some(mut stream) = opened(self.open[name].output()) {
                    let written = stream.write_all(text.as_bytes());
                    told(
                        written
                            .and_then(|()| Write::flush(&mut stream))
                            .map(|()| String::new()),
                    );
                }
            }
            ["late-output", name, text] => {
                if let Some(mut stream) = opened(self.open[name].output()) {
                    told(stream.write_all(text.as_bytes()).map(|()| String::new()));
                }
            }
            ["hold-input", name] => {
                if let Some(stream) = opened(self.open[name].input()) {
                    self.inputs.push(stream);
                    say(format_args!("ok"));
                }
            }
            ["hold-output", name] => {
                if let Some(stream) = opened(self.open[name].output()) {
                    self.outputs.push(stream);
                    say(format_args!("ok"));
                }
            }
            ["release"] => {
                self.inputs.clear();
                self.outputs.clear();
                say(format_args!("ok"));
            }
            ["finish", name] => {
                self.open[name].finish();
                say(format_args!("ok"));
            }
            _ => panic!("{words:?} is no step"),
        }
    }

    fn source<'a>(&'a self, end: &'a str) -> Source<'a> {
        match end.strip_prefix('@') {
            Some(name) => (&self.open[name]).into(),
            None => end.into(),
        }
    }

    fn destination<'a>(&'a self, end: &'a str) -> Destination<'a> {
        match end.strip_prefix('@') {
            Some(name) => (&self.open[name]).into(),
            None => end.into(),
        }
    }

    fn start(&self, from: &str, to: &str) -> Result<Job, copyist_guest::Error> {
        let source: HeldSource<'_> = match from.strip_prefix('@') {
            Some(name) => (&self.open[name]).into(),
            None => from.into(),
        };
        let destination: HeldDestination<'_> = match to.strip_prefix('@') {
            Some(name) => (&self.open[name]).into(),
            None => to.into(),
        };
        self.options.start(source, destination)
    }
}

/// Says why it is not, where it is not.
fn opened<T>(outcome: Result<T, EndpointError>) -> Option<T> {
    match outcome {
        Ok(opened) => Some(opened),
        Err(error) => {
            say(format_args!("err open={:?} path={error}", error.kind()));
            None
        }
    }
}

/// The words of a stream's error are the system's, and of no interest.
fn told(outcome: std::io::Result<String>) {
    match outcome {
        Ok(text) => say(format_args!("ok{text}")),
        Err(_) => say(format_args!("err stream")),
    }
}
