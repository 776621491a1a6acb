//! Runs the command, and looks at what came of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// As long as any command of these tests may take, a first compilation and a busy machine counted in.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// `copyist` with these arguments, in an environment of its own but for the cache of compiled
/// components, which the tests share.
pub(crate) fn copyist<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_copyist"));
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copyist-cli");
    command
        .args(arguments)
        .env_clear()
        .env("HOME", &own)
        .stdin(Stdio::null());
    command
}

/// The same, run to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    Ended::of(&mut copyist(arguments))
}

/// A command that has ended. What it said is shown when the test fails.
pub(crate) struct Ended {
    status: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    pub(crate) fn of(command: &mut Command) -> Self {
        let (output, errors) = (Stdio::piped(), Stdio::piped());
        let child = command.stdout(output).stderr(errors).spawn().unwrap();
        let process = Pid::from_child(&child);
        let (tell, told) = channel();
        thread::spawn(move || tell.send(child.wait_with_output()));
        let ended = told.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            kill_process(process, Signal::KILL).unwrap();
            panic!("{command:?} does not end");
        });
        let Output {
            status,
            stdout,
            stderr,
        } = ended.unwrap();
        Self {
            status: status.code(),
            output: String::from_utf8(stdout).unwrap(),
            errors: String::from_utf8(stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status));
        self
    }

    /// The one line on the standard error, after the name of the command.
    #[track_caller]
    pub(crate) fn complaint(&self) -> &str {
        let lines: Vec<_> = self.errors.lines().collect();
        assert_eq!(lines.len(), 1, "one line");
        lines[0].strip_prefix("copyist: ").expect("its own line")
    }
}

impl Drop for Ended {
    #[expect(
        clippy::print_stderr,
        reason = "the harness shows it where a test failed"
    )]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "it ended with {:?} and said\n{}{}",
                self.status, self.output, self.errors
            );
        }
    }
}

/// A directory that is gone after the test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With a file `from`.
    pub(crate) fn with(content: &[u8]) -> Self {
        let place = Self::new();
        std::fs::write(place.path("from"), content).unwrap();
        place
    }

    /// Where a copy of much can be under way and be taken back at once: on a file system that is
    /// memory, if there is one with room; else on the disk.
    pub(crate) fn for_much() -> Self {
        const SHARED_MEMORY: &str = "/dev/shm";
        const MUCH: u64 = 4 << 30;
        let room = rustix::fs::statvfs(SHARED_MEMORY)
            .map_or(0, |system| system.f_bavail.saturating_mul(system.f_frsize));
        if room < MUCH {
            return Self::new();
        }
        tempfile::tempdir_in(SHARED_MEMORY).map_or_else(|_| Self::new(), Self)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Its name, as the command takes it.
    pub(crate) fn host(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    /// `HOST::GUEST`.
    pub(crate) fn under(&self, guest: &str) -> String {
        format!("{}::{guest}", self.host())
    }

    #[track_caller]
    pub(crate) fn assert_holds(&self, name: &str, content: &[u8]) {
        assert_eq!(std::fs::read(self.path(name)).unwrap(), content, "{name}");
    }

    /// Sorted: leftovers show.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
