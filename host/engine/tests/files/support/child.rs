//! Tests that need a process of their own: the umask, a resource limit, another user, a death.

use std::env;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use super::skipped;

const CHILD: &str = "COPYIST_TEST_CHILD";
/// The user and group that have nothing: "nobody".
const NOBODY: u32 = 65534;

/// Runs `body` in a child of this test binary, where `test` is the test function that calls this
/// first of all.
pub(crate) fn alone<T>(test: T, body: impl FnOnce()) {
    let name = name_of(&test);
    if is_child(name) {
        body();
        return;
    }
    let mut command = command(name);
    check(name, &command.output().unwrap());
}

/// The same as a user without rights, who is whoever runs the tests, unless that is root.
pub(crate) fn as_nobody<T>(test: T, body: impl FnOnce()) {
    let name = name_of(&test);
    if is_child(name) || !rustix::process::geteuid().is_root() {
        body();
        return;
    }
    let mut command = command(name);
    // std drops the supplementary groups with the user.
    command.gid(NOBODY).uid(NOBODY);
    match command.output() {
        Ok(output) => check(name, &output),
        Err(error) => skipped(&format!("nobody cannot run this binary: {error}")),
    }
}

/// Runs `body` in a child that dies of it, and hands its end back to the parent.
pub(crate) fn dies<T>(test: T, argument: &str, body: impl FnOnce(&str)) -> Option<Output> {
    let name = name_of(&test);
    if is_child(name) {
        body(&env::var(ARGUMENT).unwrap());
        return None;
    }
    Some(command(name).env(ARGUMENT, argument).output().unwrap())
}

const ARGUMENT: &str = "COPYIST_TEST_ARGUMENT";

fn is_child(name: &str) -> bool {
    env::var(CHILD).is_ok_and(|test| test == name)
}

fn command(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, name)
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn check(name: &str, output: &Output) {
    let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let printed = said(&output.stdout);
    // What the child skipped is heard too; the list of skips has it already.
    for line in said(&output.stderr).lines() {
        if line.contains(": skipped: ") {
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{name} in a child: {}\n{printed}\n{}",
        output.status,
        said(&output.stderr)
    );
}

/// The name of a test function, as the test harness knows it.
fn name_of<T>(_: &T) -> &'static str {
    let name = std::any::type_name::<T>();
    name.split_once("::").map_or(name, |(_, rest)| rest)
}
