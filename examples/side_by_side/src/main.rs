//! `side_by_side FILE DIRECTORY`: copies a file into a directory twice, by the host and by the
//! guest's own `std::fs::copy`, and says how long each took.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, io};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, directory] = arguments.as_slice() else {
        eprintln!("usage: side_by_side FILE DIRECTORY");
        std::process::exit(2);
    };
    let directory = Path::new(directory);

    let started = Instant::now();
    let summary = copyist_guest::copy(file, directory.join("by-the-host"))?;
    let host = started.elapsed();
    let started = Instant::now();
    let bytes = copy_by_itself(file, &directory.join("by-the-guest"))?;
    let guest = started.elapsed();

    line(&format!("copyist, {}", summary.method), summary.bytes, host);
    line("std::fs::copy", bytes, guest);
    let times = guest.as_secs_f64() / host.as_secs_f64();
    println!("the host is {times:.1} times as fast as the guest alone");
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a guest has without copyist"
)]
fn copy_by_itself(from: &str, to: &Path) -> io::Result<u64> {
    std::fs::copy(from, to)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn line(how: &str, bytes: u64, time: Duration) {
    let megabytes = bytes as f64 / 1e6;
    let rate = megabytes / time.as_secs_f64();
    let milliseconds = time.as_secs_f64() * 1e3;
    println!("{how:24} {megabytes:8.1} MB in {milliseconds:8.1} ms: {rate:8.1} MB/s");
}
