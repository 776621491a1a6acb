//! A guest that lasts longer than it may, wherever it is: ended, told in a line, and nothing left.
//!
//! No test looks at a clock: without the timeout these guests would not end at all, or fill their
//! quota.

use std::fs;

use copyist_test_artifacts::{CLI_END, STD_COPY, TRANSFER_PATH};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;

use crate::command::{Ended, Place, copyist, run};

const TIMEOUT: &str = "--timeout=300ms";

#[track_caller]
fn assert_told(ended: &Ended) {
    let last = ended.errors.lines().last().unwrap();
    assert!(
        last.starts_with("copyist: ") && last.contains("--timeout"),
        "{last}"
    );
    let told = ended.errors.matches("copyist: ").count();
    assert_eq!(told, 1, "told once");
}

#[test]
fn a_guest_that_loops() {
    let ended = run(["run", TIMEOUT, CLI_END, "loop"]).with_status(124);
    assert_told(&ended);
}

#[test]
fn a_guest_that_sleeps() {
    let ended = run(["run", TIMEOUT, CLI_END, "sleep"]).with_status(124);
    assert_told(&ended);
}

/// As wasi:filesystem opens it: on the thread that runs the guest, without end.
#[test]
fn a_guest_that_opens_what_nobody_answers() {
    let place = Place::new();
    let fifo = place.path("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let dir = place.under("w");
    let ended = run(["run", TIMEOUT, "--dir", &dir, STD_COPY, "w/fifo", "w/to"]);
    assert_told(&ended.with_status(124));
}

/// Copies what lasts: the kernel's map of the pages of the command itself, hundreds of gigabytes that
/// take no room anywhere. A bound says what it can fill if nothing ends it.
#[cfg(target_os = "linux")]
fn copy_of_much(place: &Place, words: &[&str]) -> Ended {
    let dir = place.under("w");
    let options = [
        "run",
        TIMEOUT,
        "--report=json",
        "--max-bytes=8GiB",
        "--ro-dir=/proc/self::proc",
        "--dir",
        &dir,
    ];
    let guest = [TRANSFER_PATH, "proc/pagemap", "w/to"];
    run([&options[..], &guest, words].concat())
}

/// The copy's line, which tells that it was under way and had ended before the command did.
#[cfg(target_os = "linux")]
fn cancelled(ended: &Ended) -> u64 {
    let line: Value = serde_json::from_str(ended.errors.lines().next().unwrap()).unwrap();
    assert_eq!(line["error"], "cancelled");
    let bytes = line["bytes"].as_u64().unwrap();
    assert!(bytes > 0, "{line}");
    bytes
}

#[test]
#[cfg(target_os = "linux")]
fn a_guest_that_copies_to_a_new_file_leaves_none() {
    for words in [&[][..], &["--replace"]] {
        let place = Place::for_much();
        let ended = copy_of_much(&place, words).with_status(124);
        assert_told(&ended);
        cancelled(&ended);
        assert_eq!(place.names(), [""; 0], "{words:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_guest_that_replaces_a_file_leaves_the_old_one() {
    let place = Place::for_much();
    fs::write(place.path("to"), "old").unwrap();
    let ended = copy_of_much(&place, &["--replace"]).with_status(124);
    assert_told(&ended);
    cancelled(&ended);
    assert_eq!(place.names(), ["to"]);
    place.assert_holds("to", b"old");
}

#[test]
#[cfg(target_os = "linux")]
fn a_guest_that_writes_in_place_leaves_what_is_written() {
    let place = Place::for_much();
    fs::write(place.path("to"), "old").unwrap();
    let ended = copy_of_much(&place, &[]).with_status(124);
    assert_told(&ended);
    let written = fs::metadata(place.path("to")).unwrap().len();
    assert_eq!(cancelled(&ended), written);
}

#[test]
fn a_guest_that_ends_in_time_is_not_ended() {
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    let words = [
        "run",
        "--timeout=1h",
        "--dir",
        &dir,
        TRANSFER_PATH,
        "w/from",
        "w/to",
    ];
    let ended = run(words).with_status(0);
    assert!(ended.output.starts_with("ok bytes=5 "));
    run(["run", "--timeout=1h", CLI_END, "exit", "7"]).with_status(7);
    run(["run", "--timeout=1h", CLI_END, "trap"]).with_status(134);
}

#[test]
fn who_does_not_read_the_errors_holds_nothing_up() {
    // Whatever is written fails.
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = copyist(["run", "nowhere.wasm"]).stderr(full()).status();
    assert_eq!(ended.unwrap().code(), Some(125));

    // Whatever is written waits, for ever.
    let (_reader, mut writer) = std::io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).unwrap();
    while std::io::Write::write(&mut writer, &[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::empty()).unwrap();
    let mut child = copyist(["run", "--timeout", "100ms", CLI_END, "loop"])
        .stderr(writer)
        .spawn()
        .unwrap();
    let process = rustix::process::Pid::from_child(&child);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait()));
    match told.recv_timeout(std::time::Duration::from_secs(60)) {
        Ok(status) => assert_eq!(status.unwrap().code(), Some(124)),
        Err(_) => {
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
            panic!("it waits for a reader");
        }
    }
}
