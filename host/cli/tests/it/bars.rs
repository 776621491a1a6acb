//! Bars on the terminal for copies that last, which leave the guest's own output as it is.
//!
//! The copies last for as long as a test wants: a pipe has no end before its writer has gone.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use copyist_test_artifacts::{JOB, TRANSFER_PATH};
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Place, copyist};
use crate::terminal::Terminal;

/// With a FIFO that nobody has written to.
fn place() -> Place {
    let place = Place::with(b"bytes");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, place.path("fifo"), FileType::Fifo, mode, 0).unwrap();
    place
}

/// Has the FIFO open, so that a copy of it does not end.
fn held_open(place: &Place) -> File {
    let mut options = File::options();
    let fifo = options.read(true).write(true).open(place.path("fifo"));
    fifo.unwrap()
}

/// A command that runs, and is ended with its test.
struct Running(Child);

impl Running {
    /// The command itself is gone then, and has the terminal no more.
    fn new(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Its exit status, and what it wrote where that is kept.
    fn end(mut self) -> (Option<i32>, String) {
        let mut output = String::new();
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_string(&mut output).unwrap();
        }
        (self.0.wait().unwrap().code(), output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.0), Signal::KILL);
        }
    }
}

/// `copyist run` on a terminal, with its output elsewhere.
fn on(terminal: &Terminal, place: &Place, options: &[&str], guest: &[&str]) -> Command {
    let dir = place.under("w");
    let words = [&["run", "--dir", &dir], options, guest].concat();
    let mut command = copyist(words);
    command
        .env("TERM", "xterm")
        .stdout(Stdio::piped())
        .stderr(terminal.stdio());
    command
}

const COPY_OF_A_PIPE: [&str; 3] = [TRANSFER_PATH, "w/fifo", "w/to"];

fn has_bar(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains("→"))
}

#[test]
fn a_copy_that_lasts_has_a_bar_and_leaves_no_trace_of_it() {
    let place = place();
    let mut writer = held_open(&place);
    writer.write_all(b"early").unwrap();
    let mut terminal = Terminal::new();
    let running = Running::new(on(&terminal, &place, &[], &COPY_OF_A_PIPE));
    terminal.wait_until(|lines| {
        lines.len() == 1 && lines[0].starts_with("fifo → to") && lines[0].contains("5 B")
    });
    writer.write_all(&[7; 4000]).unwrap();
    terminal.wait_until(|lines| lines.iter().any(|line| line.contains("3.91 KiB")));
    drop(writer);
    let (status, output) = running.end();
    assert_eq!(status, Some(0));
    assert!(output.starts_with("ok bytes=4005 "), "{output}");
    terminal.look_to_the_end();
    assert_eq!(terminal.lines(), [""; 0]);
}

#[test]
fn a_source_that_promises_its_length_fills_the_bar() {
    let place = place();
    std::fs::write(place.path("from"), vec![7; 1 << 20]).unwrap();
    // Nobody reads: it is full after 64 KiB, or what a pipe holds here.
    let reader = held_open(&place);
    let mut terminal = Terminal::new();
    let guest = [TRANSFER_PATH, "w/from", "w/fifo"];
    let running = Running::new(on(&terminal, &place, &[], &guest));
    terminal.wait_until(|lines| {
        let shown = |line: &String| line.starts_with("from → fifo") && line.contains("/1.00 MiB");
        lines.iter().any(shown)
    });
    let mut copied = Vec::new();
    reader.take(1 << 20).read_to_end(&mut copied).unwrap();
    assert_eq!(copied.len(), 1 << 20);
    assert_eq!(running.end().0, Some(0));
    terminal.look_to_the_end();
    assert_eq!(terminal.lines(), [""; 0]);
}

#[test]
fn what_the_guest_writes_beside_a_bar_is_whole() {
    let place = place();
    let mut writer = held_open(&place);
    writer.write_all(b"early").unwrap();
    let mut terminal = Terminal::new();
    let steps = [
        JOB,
        "print:before\n",
        "start:w/fifo:w/to",
        "await:w/line",
        "progress:0",
        "await:w/half",
        "print:a line that ",
        "await:w/rest",
        "print:is whole\n",
        "await:w/end",
        "wait:0",
    ];
    let mut command = on(&terminal, &place, &[], &steps);
    command.stdout(terminal.stdio());
    let running = Running::new(command);
    let go = |name: &str| std::fs::write(place.path(name), b"").unwrap();
    // The bar is always the last line, below all that the guest has said.
    let shows = |lines: &[String], said: &[&str]| {
        has_bar(lines) && lines.len() == said.len() + 1 && lines[..said.len()] == *said
    };
    terminal.wait_until(|lines| shows(lines, &["before"]));
    go("line");
    let line = "ok bytes=5 total=- entries=0";
    terminal.wait_until(|lines| shows(lines, &["before", line]));
    go("half");
    let half = ["before", line, "a line that"];
    terminal.wait_until(|lines| *lines == half);
    // There it stays: a bar in the guest's line would clear it.
    terminal.look(Duration::from_millis(500));
    assert_eq!(terminal.lines(), half);
    go("rest");
    let whole = ["before", line, "a line that is whole"];
    terminal.wait_until(|lines| shows(lines, &whole));
    drop(writer);
    go("end");
    assert_eq!(running.end().0, Some(0));
    terminal.look_to_the_end();
    let lines = terminal.lines();
    assert_eq!(lines[..3], whole);
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[3].starts_with("ok bytes=5 "), "{lines:#?}");
}

/// It may have drawn a form, or a bar of its own.
#[test]
fn a_guest_that_moves_the_cursor_has_the_terminal_for_itself() {
    let place = place();
    let writer = held_open(&place);
    let mut terminal = Terminal::new();
    let form = "print:\x1b[2J\x1b[5;5Ha form\x1b[1;1H\n";
    let steps = [JOB, form, "start:w/fifo:w/to", "await:w/end", "wait:0"];
    let mut command = on(&terminal, &place, &[], &steps);
    command.stdout(terminal.stdio());
    let running = Running::new(command);
    terminal.wait_until(|lines| lines.iter().any(|line| line.ends_with("a form")));
    terminal.look(Duration::from_millis(1500));
    assert!(!has_bar(&terminal.lines()), "{:#?}", terminal.lines());
    drop(writer);
    std::fs::write(place.path("end"), b"").unwrap();
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_line_of_the_command_stands_alone() {
    let place = place();
    let _writer = held_open(&place);
    let mut terminal = Terminal::new();
    let options = ["--timeout=1500ms"];
    let running = Running::new(on(&terminal, &place, &options, &COPY_OF_A_PIPE));
    terminal.wait_until(has_bar);
    assert_eq!(running.end().0, Some(124));
    terminal.look_to_the_end();
    let lines = terminal.lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(
        lines[0].starts_with("copyist: the guest was ended"),
        "{lines:#?}"
    );
}

#[test]
fn a_name_of_the_guest_cannot_clear_the_screen() {
    let place = place();
    let writer = held_open(&place);
    let mut terminal = Terminal::new();
    let guest = [TRANSFER_PATH, "w/fifo", "w/\x1b[2J\x1b]0;title\x07to"];
    let running = Running::new(on(&terminal, &place, &[], &guest));
    terminal.wait_until(has_bar);
    drop(writer);
    assert_eq!(running.end().0, Some(0));
    terminal.look_to_the_end();
    let raw = String::from_utf8_lossy(&terminal.raw);
    assert!(
        !raw.contains("\x1b[2J") && !raw.contains("\x1b]0"),
        "{raw:?}"
    );
}

#[test]
fn a_copy_that_does_not_last_has_none() {
    let place = Place::with(b"bytes");
    let mut terminal = Terminal::new();
    let guest = [TRANSFER_PATH, "w/from", "w/to"];
    let running = Running::new(on(&terminal, &place, &[], &guest));
    assert_eq!(running.end().0, Some(0));
    terminal.look_to_the_end();
    assert_eq!(String::from_utf8_lossy(&terminal.raw), "");
}

#[test]
fn who_cannot_see_them_is_shown_none() {
    let place = place();
    let writer = held_open(&place);
    // A terminal that cannot move its cursor, lines for a program, and no terminal at all.
    let [mut dumb, mut report] = [(); 2].map(|()| Terminal::new());
    let mut dumb_command = on(&dumb, &place, &[], &COPY_OF_A_PIPE);
    dumb_command.env("TERM", "dumb");
    let report_command = on(&report, &place, &["--report=json"], &COPY_OF_A_PIPE);
    let mut none_command = on(&dumb, &place, &[], &COPY_OF_A_PIPE);
    none_command.stderr(Stdio::piped());
    let running = [dumb_command, report_command, none_command].map(Running::new);
    // They have all begun, and would have shown a bar by then.
    report.look(Duration::from_secs(3));
    drop(writer);
    let [first, second, mut third] = running;
    let errors = third.0.stderr.take();
    for running in [first, second, third] {
        assert_eq!(running.end().0, Some(0));
    }
    dumb.look_to_the_end();
    assert_eq!(String::from_utf8_lossy(&dumb.raw), "");
    report.look_to_the_end();
    let raw = String::from_utf8_lossy(&report.raw);
    assert!(
        raw.starts_with('{') && raw.trim_end().ends_with('}'),
        "{raw:?}"
    );
    assert!(!raw.contains('\x1b'), "{raw:?}");
    let mut said = String::new();
    errors.unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}
