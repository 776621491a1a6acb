//! A bar that is measured in a process of its own, which has nothing but it: its threads, its
//! descriptors, its memory, and where it is bound to one processor all of that on that one.

use std::fs;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use wasmtime::error::Context as _;
use wasmtime::{Result, bail};

use crate::bars::{Bar, Bench};
use crate::row::Row;

/// Where the process may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    All,
    /// Who feeds and who drains a copy as well.
    One,
}

/// Measures a bar in a process of its own, in the place of this one.
pub(crate) fn measure(bench: &Bench, bar: Bar, processors: Processors) -> Result<Vec<Row>> {
    let program = std::env::current_exe()?;
    let mut command = match processors {
        Processors::All => Command::new(program),
        Processors::One => {
            let mut command = Command::new("taskset");
            command.args(["-c", &last_processor()?]).arg(program);
            command
        }
    };
    let name = bar.to_possible_value().context("a bar without a name")?;
    let output = command
        .args([
            "apart",
            "--size",
            &format!("{}B", bench.size),
            name.get_name(),
        ])
        .current_dir(bench.place.path())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("on Debian, `apt-get install util-linux` brings taskset")?;
    if !output.status.success() {
        bail!("a process of its own: {}", output.status);
    }
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| Row::parse(line).context("a row that is none"))
        .collect()
}

/// The last that this process may use: the first has the machine's interrupts, mostly.
fn last_processor() -> Result<String> {
    let status = fs::read_to_string("/proc/self/status").context("it needs Linux")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .context("the kernel does not tell the processors")?;
    let last = allowed.trim().rsplit([',', '-']).next();
    Ok(last.unwrap_or_default().to_owned())
}
