//! A terminal for the command to stand on, and what is to be seen there.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::PATIENCE;

const ROWS: u16 = 24;
const COLUMNS: u16 = 120;

/// A pseudo-terminal. What is written to it is kept, and shown as a terminal shows it.
pub(crate) struct Terminal {
    name: String,
    /// Open until a command has it, so that its end is not taken for the terminal's.
    slave: Option<File>,
    written: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    pub(crate) raw: Vec<u8>,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = open(&name);
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let (write, written) = channel();
        let mut master = File::from(master);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Once nobody has it open any more, a read fails or is the end.
            while let Ok(length @ 1..) = master.read(&mut buffer) {
                if write.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            name,
            slave: Some(slave),
            written,
            parser: vt100::Parser::new(ROWS, COLUMNS, 0),
            raw: Vec::new(),
        }
    }

    /// For a stream of a command.
    pub(crate) fn stdio(&self) -> Stdio {
        open(&self.name).into()
    }

    /// What is on the screen now: its lines without the blanks behind them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let contents = self.parser.screen().contents();
        contents
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Waits until the screen looks so.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: impl Fn(&[String]) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !what(&self.lines()) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.written.recv_timeout(left) else {
                panic!("the screen does not come to be so: {:#?}", self.lines());
            };
            self.take(&bytes);
        }
    }

    /// Looks for so long, whatever comes.
    pub(crate) fn look(&mut self, length: Duration) {
        let until = Instant::now() + length;
        while let Ok(bytes) = self
            .written
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.take(&bytes);
        }
    }

    /// Looks until nobody has it any more. The commands are those that have their streams by now.
    pub(crate) fn look_to_the_end(&mut self) {
        self.slave = None;
        while let Ok(bytes) = self.written.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.parser.process(bytes);
    }
}

fn open(name: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true).open(name).unwrap()
}
