//! What else tests copy on, and how they say what they could not try.

use std::env;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;

use crate::kernel;

/// Where [`filesystems`] finds them: `ext4:/a/directory,xfs:/another`.
pub const FILESYSTEMS: &str = "COPYIST_FILESYSTEMS";
/// A file that [`skipped`] adds to.
pub const SKIPS: &str = "COPYIST_SKIPS";

/// The file systems that were mounted for the tests, each with an empty directory on it. By
/// `ci/filesystems`; without it there are none.
pub fn filesystems() -> Vec<(String, PathBuf)> {
    let listed = env::var(FILESYSTEMS).unwrap_or_default();
    parse(&listed)
}

/// One of them. Says aloud that it is missing.
pub fn filesystem(kind: &str) -> Option<PathBuf> {
    let found = filesystems().into_iter().find(|(name, _)| name == kind);
    if found.is_none() {
        skipped(&format!("no {kind}: run by ci/filesystems"));
    }
    found.map(|(_, path)| path)
}

/// Whether the start of the file lies where that of another one does, by the file system's map of
/// it.
///
/// # Errors
///
/// Where the file system has none.
pub fn shares_storage(file: &File) -> std::io::Result<bool> {
    kernel::shares_storage(file.as_fd())
}

fn parse(listed: &str) -> Vec<(String, PathBuf)> {
    listed
        .split(',')
        .filter_map(|item| item.split_once(':'))
        .map(|(name, path)| (name.to_owned(), path.into()))
        .collect()
}

/// Says what was not tested, and why: on standard error, whoever catches what tests print, and in
/// the list of whoever checks that nothing else is skipped.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    // In one piece, since others write there too. Nobody is left to be told if it fails.
    let line = format!("{name}: skipped: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = env::var_os(SKIPS)
        && let Ok(mut list) = File::options().append(true).create(true).open(list)
    {
        let _ = list.write_all(format!("{name}: {why}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        assert_eq!(parse(""), []);
        assert_eq!(
            parse("ext4:/a/b,xfs:/c:d"),
            [
                ("ext4".to_owned(), PathBuf::from("/a/b")),
                ("xfs".to_owned(), PathBuf::from("/c:d")),
            ]
        );
    }
}
