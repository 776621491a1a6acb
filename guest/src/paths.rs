//! Which granted directory a path is beneath: text alone, no handles.
//!
//! It answers as wasi-libc does, and so as `std::fs` does: the longest name that is a prefix by
//! whole components wins, of equal names the last. `..` is left to the host, since what stands
//! before it may be a symbolic link: a path that leaves its directory by one is not permitted, even
//! where it enters another granted one.

use std::borrow::Cow;
use std::cmp::Reverse;

/// Finds among the names of `granted` directories the one that holds `path`: its index, and the
/// path from there on. Relative paths start at `cwd`.
pub(crate) fn find<'g>(
    granted: impl IntoIterator<Item = &'g str>,
    cwd: &str,
    path: &str,
) -> Option<(usize, String)> {
    let absolute = if path.starts_with('/') {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(format!("{cwd}/{path}"))
    };
    let (index, rest) = granted
        .into_iter()
        .enumerate()
        .filter_map(|(index, name)| Some((index, beneath(&absolute, name)?)))
        // The longest name leaves the shortest rest.
        .min_by_key(|(index, rest)| (rest.len(), Reverse(*index)))?;
    let rest = if rest.is_empty() { "." } else { rest };
    Some((index, rest.to_owned()))
}

/// What is left of `path` from `directory` on, as it was written: a trailing slash says something.
fn beneath<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let (mut rest, mut directory) = (skip_here(path), skip_here(directory));
    while !directory.is_empty() {
        let (wanted, deeper) = first_component(directory);
        let (found, after) = first_component(rest);
        if found != wanted {
            return None;
        }
        (rest, directory) = (skip_here(after), skip_here(deeper));
    }
    Some(rest)
}

fn first_component(path: &str) -> (&str, &str) {
    path.split_once('/').unwrap_or((path, ""))
}

/// Leaves out slashes and `.` in front, which lead nowhere. A granted directory may be called `/`,
/// `.` or `./data`; the root and the first working directory are one.
fn skip_here(mut path: &str) -> &str {
    while let Some(rest) = path.strip_prefix('/').or_else(|| path.strip_prefix("./")) {
        path = rest;
    }
    if path == "." { "" } else { path }
}

#[cfg(test)]
mod tests {
    use super::find;

    fn found(granted: &[&str], path: &str) -> Option<(usize, String)> {
        find(granted.iter().copied(), "/", path)
    }

    fn some(index: usize, rest: &str) -> Option<(usize, String)> {
        Some((index, rest.to_owned()))
    }

    #[test]
    fn the_longest_name_wins_wherever_it_stands() {
        for granted in [["/", "/data", "/data/in"], ["/data/in", "/data", "/"]] {
            let position = |name| granted.iter().position(|&granted| granted == name).unwrap();
            assert_eq!(
                found(&granted, "/data/in/a"),
                some(position("/data/in"), "a")
            );
            assert_eq!(
                found(&granted, "/data/out/a"),
                some(position("/data"), "out/a")
            );
            assert_eq!(found(&granted, "/etc/a"), some(position("/"), "etc/a"));
        }
    }

    #[test]
    fn of_equal_names_the_last_wins() {
        assert_eq!(
            found(&["/data", "data/", "./data"], "/data/a"),
            some(2, "a")
        );
    }

    #[test]
    fn names_match_by_whole_components() {
        assert_eq!(found(&["/data"], "/database/a"), None);
        assert_eq!(found(&["/data"], "/dat"), None);
        assert_eq!(found(&["/data/in"], "/data"), None);
        assert_eq!(found(&["/data"], "/data"), some(0, "."));
    }

    #[test]
    fn the_root_and_the_first_working_directory_are_one() {
        for granted in ["/", ".", "", "./", "//"] {
            assert_eq!(found(&[granted], "a/b"), some(0, "a/b"), "{granted:?}");
            assert_eq!(found(&[granted], "/a/b"), some(0, "a/b"), "{granted:?}");
            assert_eq!(found(&[granted], "././/a/b"), some(0, "a/b"), "{granted:?}");
        }
        for granted in ["in", "/in", "./in", "in/", "/in//"] {
            for path in ["in/a", "/in/a", "./in/a", ".//in/./a", "//in//a"] {
                assert_eq!(
                    found(&[granted], path),
                    some(0, "a"),
                    "{granted:?} {path:?}"
                );
            }
        }
    }

    #[test]
    fn relative_paths_start_at_the_working_directory() {
        let granted = || ["/data", "/data/in"];
        assert_eq!(find(granted(), "/data", "in/a"), some(1, "a"));
        assert_eq!(find(granted(), "/data", "./out/a"), some(0, "out/a"));
        assert_eq!(find(granted(), "/data/in", "a"), some(1, "a"));
        assert_eq!(find(granted(), "/data/in", "/data/a"), some(0, "a"));
        assert_eq!(find(granted(), "/data/in", ""), some(1, "."));
    }

    #[test]
    fn the_rest_is_as_it_was_written() {
        assert_eq!(found(&["in"], "in/a//b/./c/"), some(0, "a//b/./c/"));
        assert_eq!(found(&["in"], "in/"), some(0, "."));
        assert_eq!(found(&["in"], "in/."), some(0, "."));
    }

    #[test]
    fn parents_are_left_to_the_host() {
        assert_eq!(found(&["in", "out"], "in/../out/a"), some(0, "../out/a"));
        assert_eq!(found(&["in"], "../in/a"), None);
        assert_eq!(found(&["/", "in"], "../in/a"), some(0, "../in/a"));
        // wasmtime's `--dir ..` grants a directory of this name.
        assert_eq!(found(&[".."], "../a"), some(0, "a"));
    }

    #[test]
    fn nothing_granted_holds_nothing() {
        assert_eq!(found(&[], "a"), None);
        assert_eq!(found(&["in"], "a"), None);
        assert_eq!(found(&["in"], ""), None);
    }
}
