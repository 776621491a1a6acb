//! What this process has and does, as proc(5) tells.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use wasmtime::Result;
use wasmtime::error::Context as _;

/// The names of its threads.
pub(crate) fn threads() -> Result<Vec<String>> {
    let names = tasks()?.into_iter().map(|task| {
        let name = fs::read_to_string(task.join("comm"))?;
        Ok(name.trim().to_owned())
    });
    names.collect()
}

/// How many descriptors it has, the one that looks not counted.
pub(crate) fn descriptors() -> Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count() - 1)
}

/// How many of its descriptors are of files below a directory.
pub(crate) fn descriptors_below(directory: &std::path::Path) -> Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir("/proc/self/fd")? {
        // It may be closed meanwhile.
        let name = fs::read_link(entry?.path());
        found += usize::from(name.is_ok_and(|name| name.starts_with(directory)));
    }
    Ok(found)
}

/// How often its threads were switched away from, all but this one: each time they had run.
pub(crate) fn switches_of_others() -> Result<u64> {
    let mut switches = 0;
    for task in others()? {
        let status = fs::read_to_string(task.join("status"))?;
        for name in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
            let number = status.lines().find_map(|line| line.strip_prefix(name));
            let number = number.context("the kernel does not count switches")?;
            switches += number.trim().parse::<u64>()?;
        }
    }
    Ok(switches)
}

/// How long its threads ran, all but this one.
pub(crate) fn time_of_others() -> Result<Duration> {
    let mut time = 0;
    for task in others()? {
        let stat = fs::read_to_string(task.join("schedstat"))
            .context("the kernel keeps no times of threads")?;
        let first = stat.split_whitespace().next();
        time += first.context("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(time))
}

/// What it has in memory, in bytes (`VmRSS`).
pub(crate) fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.context("the kernel does not tell the memory")?;
    let kib = kib.trim().trim_end_matches("kB").trim();
    Ok(kib.parse::<u64>()? << 10)
}

fn tasks() -> Result<Vec<PathBuf>> {
    let tasks = fs::read_dir("/proc/self/task").context("it needs Linux")?;
    tasks.map(|task| Ok(task?.path())).collect()
}

fn others() -> Result<Vec<PathBuf>> {
    let own = fs::read_link("/proc/thread-self")?;
    let own = own.file_name().map(ToOwned::to_owned);
    let mut tasks = tasks()?;
    tasks.retain(|task| task.file_name() != own.as_deref());
    Ok(tasks)
}

/// Lets time pass.
pub(crate) fn pause(time: Duration) {
    let until = std::time::Instant::now() + time;
    while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
        std::thread::park_timeout(left);
    }
}

/// Waits until something is so, and fails where it is not after a minute.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let bound = std::time::Instant::now() + Duration::from_secs(60);
    while !is_so()? {
        if std::time::Instant::now() > bound {
            wasmtime::bail!("{what}: not within a minute");
        }
        pause(Duration::from_millis(1));
    }
    Ok(())
}
