//! Streams of `wasi:io` as ends of copies, beside paths and channels, a step after the other and a line
//! each.
//!
//! `streams STEP.. [--timeout=NANOSECONDS]`. An END is `%NAME`, a stream that is open; `@NAME`, a
//! channel, which is opened when it is first named; or else a path. The steps:
//!
//! - `input:NAME:KIND` and `output:NAME:KIND` open a stream: `stdin`, `stderr`, `file=PATH`,
//!   `append=PATH`, `channel=CHANNEL`; `tcp:NAME:PORT` opens both of a connection to this machine;
//! - `copy:END:END`, `read:END` and `read:END:LIMIT`; `start:END:END`, a job, and `cancel`, `abandon`
//!   (which drops it), `outcome`, and `wait`, for its end, of that job; `until:BYTES` asks it until it
//!   has come so far;
//! - `take:NAME:LENGTH` and `put:NAME:TEXT`, of a stream itself; `ask:NAME:LENGTH` asks for bytes and
//!   waits until they stand there; `subscribe:NAME`, whose pollable stays; `close:NAME`, which drops a
//!   stream, and `reuse:NAME`, which names one that was handed over;
//! - `byte:CHANNEL` waits for a byte of a channel: so the test says when to go on;
//! - `watch` subscribes the job, `poll` waits for what was subscribed last, and `unwatch` drops it;
//! - `rounds:TIMES:END:END[:END:END]..` starts jobs one after the other, so many of these in turn, and
//!   cancels each, both after a byte of the channel `go`; `%stdin` and `%stderr` are opened for each;
//! - `leave` ends the program with all that it has.

use std::collections::HashMap;

use copyist_test_guests::contract::endpoints::{self, Endpoint};
use copyist_test_guests::contract::jobs::Job;
use copyist_test_guests::contract::types::{
    Cause, Destination, Failure, HeldDestination, HeldSource, Limit, Location, Options, Side,
    Source, Summary,
};
use copyist_test_guests::contract::{copy, read};
use copyist_test_guests::{Arguments, fnv1a, open, say};
use wasip2::cli::stderr::get_stderr;
use wasip2::cli::stdin::get_stdin;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};
use wasip2::io::poll::Pollable;
use wasip2::io::streams::{InputStream, OutputStream, StreamError};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::network::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress};
use wasip2::sockets::tcp::TcpSocket;
use wasip2::sockets::tcp_create_socket::create_tcp_socket;

#[derive(Default)]
struct State {
    directories: Vec<(Descriptor, String)>,
    channels: HashMap<String, Endpoint>,
    inputs: HashMap<String, InputStream>,
    outputs: HashMap<String, OutputStream>,
    /// Handles that are somebody else's by now.
    handed: HashMap<String, u32>,
    pollables: Vec<Pollable>,
    sockets: Vec<TcpSocket>,
    job: Option<Job>,
    timeout: Option<u64>,
}

fn main() {
    let mut arguments = Arguments::from_env();
    let mut state = State {
        directories: get_directories(),
        timeout: arguments.number("timeout"),
        ..State::default()
    };
    for step in arguments.rest() {
        let words: Vec<_> = step.split(':').collect();
        match *words {
            ["leave"] => return forget(state),
            ["rounds", times, ref ends @ ..] => state.rounds(parse(times), ends),
            _ => state.step(&words),
        }
    }
    // Streams go before what they belong to.
    state.pollables.clear();
    state.inputs.clear();
    state.outputs.clear();
}

impl State {
    fn step(&mut self, words: &[&str]) {
        match *words {
            ["input", name, kind] => self.open_input(name, kind),
            ["output", name, kind] => self.open_output(name, kind),
            ["tcp", name, port] => self.connect(name, parse(port)),
            ["copy", from, to] => self.copy(from, to),
            ["read", from] => self.read(from, u64::MAX),
            ["read", from, limit] => self.read(from, parse(limit)),
            ["start", from, to] => match self.start(from, to) {
                Ok(job) => {
                    self.job = Some(job);
                    say(format_args!("ok"));
                }
                Err(failure) => refuse(&failure),
            },
            ["cancel"] => self.job().cancel(),
            ["abandon"] => self.job = None,
            ["watch"] => self.pollables.push(self.job().subscribe()),
            ["poll"] => self.pollables.last().expect("there is one").block(),
            ["unwatch"] => drop(self.pollables.pop()),
            ["outcome"] => match self.job().outcome() {
                Some(outcome) => report(outcome),
                None => say(format_args!("ok running=true")),
            },
            ["wait"] => report(wait(self.job()).map_err(|failure| *failure)),
            ["until", bytes] => while self.job().progress().bytes < parse(bytes) {},
            ["take", name, length] => {
                let (bytes, end) = take(&self.inputs[name], parse(length));
                let (length, fnv) = (bytes.len(), fnv1a(&bytes));
                say(format_args!("ok bytes={length} fnv={fnv:016x} end={end}"));
            }
            ["put", name, text] => {
                match self.outputs[name].blocking_write_and_flush(text.as_bytes()) {
                    Ok(()) => say(format_args!("ok")),
                    Err(error) => say(format_args!("err stream={}", why(&error))),
                }
            }
            ["ask", name, length] => {
                let asked = self.inputs[name].read(parse(length));
                assert!(asked.is_ok_and(|bytes| bytes.is_empty()), "they come later");
                self.inputs[name].subscribe().block();
            }
            ["subscribe", name] => {
                let pollable = match self.inputs.get(name) {
                    Some(stream) => stream.subscribe(),
                    None => self.outputs[name].subscribe(),
                };
                self.pollables.push(pollable);
            }
            ["close", name] => {
                self.inputs.remove(name);
                self.outputs.remove(name);
            }
            ["reuse", name] => self.reuse(name),
            ["byte", name] => {
                let stream = self.channel(name).input().expect("it can be read");
                let (bytes, _) = take(&stream, 1);
                assert_eq!(bytes.len(), 1, "the test is gone");
            }
            _ => panic!("{words:?} is no step"),
        }
    }

    fn open_input(&mut self, name: &str, kind: &str) {
        let stream = match kind.split_once('=') {
            None => {
                assert_eq!(kind, "stdin");
                get_stdin()
            }
            Some(("file", path)) => {
                let file = open(path, OpenFlags::empty(), DescriptorFlags::READ);
                let file = file.expect("it opens");
                file.read_via_stream(0).expect("it is read")
            }
            Some(("channel", channel)) => self.channel(channel).input().expect("it is free"),
            Some(_) => panic!("{kind} is no kind"),
        };
        self.inputs.insert(name.to_owned(), stream);
    }

    fn open_output(&mut self, name: &str, kind: &str) {
        let create = |path| {
            let file = open(path, OpenFlags::CREATE, DescriptorFlags::WRITE);
            file.expect("it opens")
        };
        let stream = match kind.split_once('=') {
            None => {
                assert_eq!(kind, "stderr");
                get_stderr()
            }
            Some(("file", path)) => create(path).write_via_stream(0).expect("it is written"),
            Some(("append", path)) => create(path).append_via_stream().expect("it is written"),
            Some(("channel", channel)) => self.channel(channel).output().expect("it is free"),
            Some(_) => panic!("{kind} is no kind"),
        };
        self.outputs.insert(name.to_owned(), stream);
    }

    fn connect(&mut self, name: &str, port: u16) {
        let socket = create_tcp_socket(IpAddressFamily::Ipv4).expect("there are sockets");
        let address = IpSocketAddress::Ipv4(Ipv4SocketAddress {
            port,
            address: (127, 0, 0, 1),
        });
        let network = instance_network();
        socket.start_connect(&network, address).expect("it starts");
        socket.subscribe().block();
        let (input, output) = socket.finish_connect().expect("it connects");
        self.inputs.insert(name.to_owned(), input);
        self.outputs.insert(name.to_owned(), output);
        self.sockets.push(socket);
    }

    fn copy(&mut self, from: &str, to: &str) {
        self.open_channels(&[from, to]);
        let source = match split(from) {
            ('%', name) => Source::Input(&self.inputs[name]),
            ('@', name) => Source::Channel(&self.channels[name]),
            _ => Source::Path(self.location(from)),
        };
        let destination = match split(to) {
            ('%', name) => Destination::Output(&self.outputs[name]),
            ('@', name) => Destination::Channel(&self.channels[name]),
            _ => Destination::Path(self.location(to)),
        };
        report(copy::transfer(&source, &destination, Some(&self.options())));
    }

    fn read(&mut self, from: &str, limit: u64) {
        self.open_channels(&[from]);
        let source = match split(from) {
            ('%', name) => Source::Input(&self.inputs[name]),
            ('@', name) => Source::Channel(&self.channels[name]),
            _ => Source::Path(self.location(from)),
        };
        match read::bytes(&source, Some(&self.options()), limit) {
            Ok(bytes) => {
                let (length, fnv) = (bytes.len(), fnv1a(&bytes));
                say(format_args!("ok bytes={length} fnv={fnv:016x}"));
            }
            Err(failure) => refuse(&failure),
        }
    }

    /// Streams are gone from here whatever comes of it.
    fn start(&mut self, from: &str, to: &str) -> Result<Job, Box<Failure>> {
        self.open_channels(&[from, to]);
        let input = from.strip_prefix('%').map(|name| {
            let input = self.inputs.remove(name).expect("it is open");
            self.handed.insert(name.to_owned(), input.handle());
            input
        });
        let output = to.strip_prefix('%').map(|name| {
            let output = self.outputs.remove(name).expect("it is open");
            self.handed.insert(name.to_owned(), output.handle());
            output
        });
        let source = match (input, split(from)) {
            (Some(input), _) => HeldSource::Input(input),
            (None, ('@', name)) => HeldSource::Channel(&self.channels[name]),
            _ => HeldSource::Path(self.location(from)),
        };
        let destination = match (output, split(to)) {
            (Some(output), _) => HeldDestination::Output(output),
            (None, ('@', name)) => HeldDestination::Channel(&self.channels[name]),
            _ => HeldDestination::Path(self.location(to)),
        };
        copy::start_transfer(source, destination, Some(&self.options())).map_err(Box::new)
    }

    /// Each begins when the test says so, and is cancelled when it does.
    fn rounds(&mut self, times: usize, ends: &[&str]) {
        let (pairs, []) = ends.as_chunks() else {
            panic!("ends come in pairs, unlike {ends:?}");
        };
        let go = self.channel("go").input().expect("it can be read");
        for &[from, to] in pairs.iter().cycle().take(times) {
            assert_eq!(take(&go, 1).0, b"s");
            if from == "%stdin" {
                self.open_input("stdin", "stdin");
            }
            if to == "%stderr" {
                self.open_output("stderr", "stderr");
            }
            let job = self.start(from, to).expect("it starts");
            assert_eq!(take(&go, 1).0, b"c");
            job.cancel();
            let failure = wait(&job).expect_err("it is cancelled");
            assert!(matches!(failure.cause, Cause::Cancelled), "{failure:?}");
        }
    }

    #[expect(
        unsafe_code,
        reason = "that a handle is no good any more is what is shown"
    )]
    fn reuse(&self, name: &str) {
        // SAFETY: it is no pointer, and the host checks it.
        let stream = unsafe { InputStream::from_handle(self.handed[name]) };
        let answer = stream.read(1);
        panic!("it says {answer:?}");
    }

    fn open_channels(&mut self, ends: &[&str]) {
        for name in ends.iter().filter_map(|end| end.strip_prefix('@')) {
            self.channel(name);
        }
    }

    fn channel(&mut self, name: &str) -> &Endpoint {
        self.channels
            .entry(name.to_owned())
            .or_insert_with(|| endpoints::open(name).expect("it is granted"))
    }

    fn location(&self, path: &str) -> Location<'_> {
        let (directory, path) = path.split_once('/').expect("it is beneath a directory");
        let (dir, _) = self
            .directories
            .iter()
            .find(|(_, name)| name == directory)
            .expect("it is granted");
        Location {
            dir,
            path_flags: PathFlags::SYMLINK_FOLLOW,
            path: path.to_owned(),
        }
    }

    fn options(&self) -> Options {
        let options = Options::new();
        options.set_timeout(self.timeout);
        options
    }

    fn job(&self) -> &Job {
        self.job.as_ref().expect("there is a job")
    }
}

fn split(end: &str) -> (char, &str) {
    let mut rest = end.chars();
    (rest.next().expect("an end has a name"), rest.as_str())
}

fn wait(job: &Job) -> Result<Summary, Box<Failure>> {
    loop {
        if let Some(outcome) = job.outcome() {
            return outcome.map_err(Box::new);
        }
        job.subscribe().block();
    }
}

/// So many bytes, or all up to the end, and how it came to that.
fn take(stream: &InputStream, length: u64) -> (Vec<u8>, &'static str) {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        match stream.blocking_read(length - bytes.len() as u64) {
            Ok(more) => bytes.extend(more),
            Err(error) => return (bytes, why(&error)),
        }
    }
    (bytes, "-")
}

fn why(error: &StreamError) -> &'static str {
    match error {
        StreamError::Closed => "closed",
        StreamError::LastOperationFailed(_) => "failed",
    }
}

fn report(outcome: Result<Summary, Failure>) {
    match outcome {
        Ok(Summary {
            bytes,
            consumed,
            method,
            ..
        }) => say(format_args!(
            "ok bytes={bytes} consumed={consumed} method={method:?}"
        )),
        Err(failure) => refuse(&failure),
    }
}

fn refuse(failure: &Failure) {
    let (cause, side) = match &failure.cause {
        Cause::Filesystem((Side::Source, code)) => (code.name(), "source"),
        Cause::Filesystem((Side::Destination, code)) => (code.name(), "destination"),
        Cause::Denied => ("denied", "-"),
        Cause::Limit(Limit::ReadSize) => ("limit:read-size", "-"),
        Cause::Limit(Limit::Copies) => ("limit:copies", "-"),
        Cause::Limit(_) => ("limit", "-"),
        Cause::Cancelled => ("cancelled", "-"),
        Cause::TimedOut => ("timed-out", "-"),
        Cause::SameFile => ("same-file", "-"),
        Cause::Unsupported => ("unsupported", "-"),
        Cause::Other(_) => ("other", "-"),
    };
    let Summary {
        bytes, consumed, ..
    } = failure.done;
    say(format_args!(
        "err cause={cause} side={side} bytes={bytes} consumed={consumed}"
    ));
}

/// A program that ends so drops nothing, as one that traps.
#[expect(clippy::mem_forget, reason = "it is what this is for")]
fn forget(state: State) {
    std::mem::forget(state);
}

fn parse<T: std::str::FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is not a number"))
}
