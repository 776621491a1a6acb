//! However a process ends that has a bed, it ends, and nothing is left of the bed.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use copyist_bed::{Bed, faults};

use super::{open, open_to_write, pattern};

const ENDING: &str = "COPYIST_BED_ENDING";
const READY: &str = "a read hangs";

/// In the child: a read hangs on another thread, what closes with a fault is open, and the
/// process ends.
#[expect(
    clippy::exit,
    clippy::print_stderr,
    reason = "one of the ways to end, and how the parent is told of it"
)]
fn end_like_this(ending: &str) {
    let bed = Bed::mount().unwrap();
    bed.add("it", faults::READ_HANGS, pattern(1000));
    bed.add("open", faults::CLOSE_HANGS, "");
    let (file, open) = (open(&bed, "it"), open_to_write(&bed, "open"));
    std::thread::spawn(move || {
        let _ = rustix::io::pread(file, &mut [0; 10], 0);
        drop(open);
    });
    bed.wait_for_hang("it");
    eprintln!("{READY}");
    match ending {
        "panic" => panic!("as a test that fails"),
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        _ => loop {
            std::thread::park();
        },
    }
}

#[test]
fn a_process_that_ends_with_a_hanging_call_ends() {
    const NAME: &str = "endings::a_process_that_ends_with_a_hanging_call_ends";
    if let Ok(ending) = env::var(ENDING) {
        end_like_this(&ending);
        return;
    }
    if Bed::mount().is_none() {
        return;
    }
    for ending in ["panic", "exit", "abort", "kill"] {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env(ENDING, ending)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == READY), "{ending}");
        if ending == "kill" {
            child.kill().unwrap();
        }
        // With a server that dies too late, this never returns.
        let status = child.wait().unwrap();
        assert!(!status.success(), "{ending}: {status}");
    }
}

#[test]
fn no_mount_table_shows_it() {
    let Some(bed) = Bed::mount() else { return };
    bed.add("it", faults::GOOD, "");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let shown = |line: &str| line.contains("fuse.bed") || line.contains(" bed ");
    assert!(!mounts.lines().any(shown), "{mounts}");
}
