//! What a guest leaves out of a tree, in the words of a .gitignore file.

use std::path::Path;

use copyist_engine::{Cause, Exclude, Unsupported};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// More than any plugin needs, and few enough to be read in a moment.
const MOST: usize = 256;
/// Bytes of all of them: what they are made into takes a thousand times as much.
const LONGEST: usize = 8192;

/// Patterns that were read once.
#[derive(Debug)]
pub(crate) struct Patterns(Gitignore);

impl Patterns {
    /// None where there are none.
    pub(crate) fn new(lines: &[String]) -> Result<Option<Self>, Cause> {
        let no_patterns = || Cause::Unsupported(Unsupported::Pattern);
        if lines.is_empty() {
            return Ok(None);
        }
        if lines.len() > MOST || lines.iter().map(String::len).sum::<usize>() > LONGEST {
            return Err(no_patterns());
        }
        let mut builder = GitignoreBuilder::new("");
        for line in lines {
            builder.add_line(None, line).map_err(|_| no_patterns())?;
        }
        let patterns = builder.build().map_err(|_| no_patterns())?;
        Ok(Some(Self(patterns)))
    }
}

impl Exclude for Patterns {
    fn is_excluded(&self, path: &Path, is_directory: bool) -> bool {
        self.0.matched(path, is_directory).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(lines: &[&str]) -> Result<Option<Patterns>, Cause> {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        Patterns::new(&lines)
    }

    #[test]
    fn they_mean_what_they_mean_to_git() {
        let patterns = patterns(&[
            "# a comment",
            "*.o",
            "/target",
            "build/",
            "!keep.o",
            "a/**/z",
        ]);
        let patterns = patterns.unwrap().unwrap();
        for (path, is_directory, left_out) in [
            ("x.o", false, true),
            ("deep/down/x.o", false, true),
            ("keep.o", false, false),
            ("target", true, true),
            ("deep/target", true, false),
            ("build", true, true),
            ("build", false, false),
            ("deep/build", true, true),
            ("a/b/c/z", false, true),
            ("# a comment", false, false),
        ] {
            let is = patterns.is_excluded(Path::new(path), is_directory);
            assert_eq!(is, left_out, "{path}");
        }
    }

    #[test]
    fn what_is_no_pattern_or_too_much_is_refused() {
        assert!(patterns(&[]).unwrap().is_none());
        assert!(patterns(&["a{b"]).is_err());
        assert!(patterns(&[&"x".repeat(LONGEST + 1)]).is_err());
        assert!(patterns(&vec!["x"; MOST + 1]).is_err());
        assert!(patterns(&vec!["x"; MOST]).is_ok());
        assert!(patterns(&["x".repeat(LONGEST / 2).as_str(); 3]).is_err());
    }
}
