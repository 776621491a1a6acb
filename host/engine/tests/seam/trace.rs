//! The system calls that a child of this test binary really makes, by strace(1).

use std::io::{ErrorKind, Write};
use std::process::Command;

/// What the child is to do, told by the environment.
const SCENARIO: &str = "COPYIST_TEST_SCENARIO";
const BEGIN: &str = "/copyist-begin";
const END: &str = "/copyist-end";
/// The allocator's, which are none of the copy's.
const MEMORY: [&str; 5] = ["brk", "madvise", "mmap", "mremap", "munmap"];

/// What the child is to do, in the child.
pub(crate) fn scenario() -> Option<String> {
    std::env::var(SCENARIO).ok()
}

/// Does it between two marks.
pub(crate) fn marked<T>(what: impl FnOnce() -> T) -> T {
    let _ = std::fs::symlink_metadata(BEGIN);
    let answer = what();
    let _ = std::fs::symlink_metadata(END);
    answer
}

/// Runs `test` of this binary under strace and tells the names of the calls between the marks.
/// `None`, after saying why, where that cannot be done.
pub(crate) fn calls(test: &str, scenario: &str) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().expect("a directory for the trace");
    let trace = directory.path().join("trace");
    let child = std::env::current_exe().expect("this binary");
    let output = Command::new("strace")
        .args(["-f", "-q", "-o"])
        .arg(&trace)
        .arg(child)
        .args([test, "--exact", "--test-threads=1"])
        .env(SCENARIO, scenario)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return skip("strace is not installed");
        }
        Err(error) => panic!("strace: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("PTRACE") {
        return skip(&told);
    }
    assert!(
        output.status.success(),
        "{scenario}: {told}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let trace = std::fs::read_to_string(&trace).expect("what strace wrote");
    Some(between_the_marks(&trace))
}

fn skip(why: &str) -> Option<Vec<String>> {
    // Past the capture of the test harness: a skip is never silent.
    let _ = writeln!(
        std::io::stderr(),
        "skipped: no trace of system calls: {why}"
    );
    None
}

fn between_the_marks(trace: &str) -> Vec<String> {
    let begin = trace
        .lines()
        .find(|line| line.contains(BEGIN))
        .expect("the child came to the mark");
    let thread = begin.split(' ').next().expect("a thread's number");
    trace
        .lines()
        .filter_map(|line| line.strip_prefix(thread))
        .map(str::trim_start)
        .skip_while(|line| !line.contains(BEGIN))
        .skip(1)
        .take_while(|line| !line.contains(END))
        .filter_map(|line| line.split_once('('))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !MEMORY.contains(&name.as_str()))
        .filter(|name| !name.starts_with('<'))
        .collect()
}
