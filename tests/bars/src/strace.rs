//! Counts the system calls of a process, all its threads together.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

/// What has so few calls a copy is not of the copy: a heap that grows, a lock that was held.
pub(crate) const RARE: f64 = 0.05;

/// How many calls of each name one copy makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Calls(BTreeMap<String, f64>);

/// Runs this program with `words` in `directory`, and counts what lies between the second mark and
/// the third beyond what lies between the first and the second: so many `copies`.
pub(crate) fn count(
    directory: &Path,
    words: &[OsString],
    marks: &[&str; 3],
    copies: u32,
) -> Result<Calls> {
    let log = tempfile::NamedTempFile::new()?;
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-s", "200", "-e", "signal=none", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe()?)
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::null());
    let output = match strace.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("strace is missing; on Debian, `apt-get install strace` brings it")
        }
        Err(error) => return Err(error.into()),
    };
    if !output.status.success() {
        bail!("under strace: {}", String::from_utf8_lossy(&output.stderr));
    }
    let trace = fs::read(log.path())?;
    between(&String::from_utf8_lossy(&trace), marks, copies).context("the trace has no marks")
}

/// None where a mark is missing.
fn between(trace: &str, marks: &[&str; 3], copies: u32) -> Option<Calls> {
    let lines: Vec<_> = trace.lines().collect();
    let first = |mark| lines.iter().position(|line| line.contains(mark));
    let last = |mark| lines.iter().rposition(|line| line.contains(mark));
    let few = lines.get(last(marks[0])? + 1..first(marks[1])?)?;
    let many = lines.get(last(marks[1])? + 1..first(marks[2])?)?;
    let mut calls = BTreeMap::<String, f64>::new();
    for (lines, sign) in [(many, 1.0), (few, -1.0)] {
        for name in lines.iter().filter_map(|line| name(line)) {
            *calls.entry(name.to_owned()).or_default() += sign;
        }
    }
    for count in calls.values_mut() {
        *count /= f64::from(copies);
    }
    Some(Calls(calls))
}

/// `1234 close(3) = 0` is a call, and so is `1234 futex(0x7f.., <unfinished ...>`; its end, `1234
/// <... futex resumed>) = 0`, is not another.
fn name(line: &str) -> Option<&str> {
    let (_thread, call) = line.split_once(' ')?;
    let (name, _) = call.trim_start().split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

impl Calls {
    pub(crate) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let mut rest = self.clone();
        rest.0.retain(|name, _| !names.contains(&name.as_str()));
        rest
    }

    /// What these are more than others.
    pub(crate) fn beyond(&self, others: &Self) -> Self {
        let mut more = self.clone();
        for (name, count) in &others.0 {
            *more.0.entry(name.clone()).or_default() -= count;
        }
        more
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (name, count) in &self.0 {
            if count.abs() > RARE {
                let count = (count * 100.0).round() / 100.0;
                write!(f, "{comma}{name} {count}")?;
                comma = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_lies_between_marks_and_once() {
        let trace = "\
            10 openat(AT_FDCWD, \"before\") = 3\n\
            10 statx(AT_FDCWD, \"mark-0\") = -1 ENOENT\n\
            10 futex(0x1, FUTEX_WAIT <unfinished ...>\n\
            11 close(3) = 0\n\
            10 <... futex resumed>) = 0\n\
            10 statx(AT_FDCWD, \"mark-1\") = -1 ENOENT\n\
            10 futex(0x1, FUTEX_WAIT <unfinished ...>\n\
            11  close(3) = 0\n\
            10 <... futex resumed>) = 0\n\
            11 close(3) = 0\n\
            11 close(4) = 0\n\
            10 statx(AT_FDCWD, \"mark-2\") = -1 ENOENT\n\
            10 +++ exited with 0 +++\n";
        let calls = between(trace, &["mark-0", "mark-1", "mark-2"], 2).unwrap();
        assert_eq!(calls.total(), 1.0);
        assert_eq!(calls.to_string(), "close 1");
        assert_eq!(between(trace, &["mark-0", "mark-1", "mark-3"], 2), None);
    }
}
