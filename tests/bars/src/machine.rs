//! Where and when it was measured.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// One line.
pub(crate) fn describe(directory: &Path) -> String {
    let profile = if cfg!(debug_assertions) {
        "NOT A RELEASE BUILD"
    } else {
        "release"
    };
    format!(
        "{}, {}, {} processors, {}, {} on {}, {profile}\n",
        humantime::format_rfc3339_seconds(SystemTime::now()),
        processor().unwrap_or_else(|| "an unknown processor".to_owned()),
        std::thread::available_parallelism().map_or(1, usize::from),
        answer("uname", &["-sr"]).unwrap_or_else(|| "an unknown kernel".to_owned()),
        directory.display(),
        file_system(directory).unwrap_or_else(|| "an unknown file system".to_owned()),
    )
}

fn processor() -> Option<String> {
    let Ok(text) = fs::read_to_string("/proc/cpuinfo") else {
        return answer("sysctl", &["-n", "machdep.cpu.brand_string"]);
    };
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the file system that is mounted nearest above.
fn file_system(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| directory.starts_with(point))
        // Of two mounts at one point, the later hides the other.
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

fn answer(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
