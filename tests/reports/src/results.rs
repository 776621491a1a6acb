//! What came of the tests, by what the harness said and by what the tests said that they skipped.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::Test;

/// What a script says before it runs tests on a file system.
const PLACE: &str = "== on ";

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Passed,
    Ignored,
    Failed,
}

/// What came of a test on one file system.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    /// The worst, where it ran more than once; none if it did not come to its end.
    pub(crate) ending: Option<Ending>,
    /// What was not tried, and why.
    pub(crate) skipped: BTreeSet<String>,
}

/// By test, and by the file system that had the temporary directory.
#[derive(Debug, Default)]
pub(crate) struct Results(BTreeMap<String, BTreeMap<String, Ran>>);

impl Results {
    /// Adds what a log tells: the standard output of the harness, and of a script between.
    pub(crate) fn read(&mut self, log: &str) {
        let mut place = "here";
        for line in log.lines() {
            if let Some(name) = line.strip_prefix(PLACE) {
                place = name;
            } else if let Some((name, ending)) = ended(line) {
                let ran = self.at(name, place);
                ran.ending = ran.ending.max(Some(ending));
            }
        }
    }

    /// Adds what a list of skips tells, in lines of `FILE SYSTEM: TEST: REASON`. (Without a test it is
    /// the file system that was not to be had.)
    pub(crate) fn read_skips(&mut self, list: &str) {
        let parts = |line: &'_ str| {
            let (place, rest) = line.split_once(": ")?;
            let (test, why) = rest.split_once(": ")?;
            Some([place, test, why].map(str::to_owned))
        };
        for [place, test, why] in list.lines().filter_map(parts) {
            self.at(&test, &place).skipped.insert(why);
        }
    }

    /// Where a test ran.
    pub(crate) fn of(&self, test: &Test) -> Option<&BTreeMap<String, Ran>> {
        self.0.get(&test.name)
    }

    /// Whether it ran to its end, somewhere.
    pub(crate) fn has_run(&self, test: &Test) -> bool {
        let ended = |ran: &Ran| matches!(ran.ending, Some(Ending::Passed | Ending::Failed));
        self.of(test)
            .is_some_and(|places| places.values().any(ended))
    }

    /// Tests that failed or did not run.
    pub(crate) fn problems(&self, tests: &[Test]) -> Vec<String> {
        let mut problems = Vec::new();
        for test in tests {
            let name = &test.name;
            if !self.has_run(test) {
                problems.push(format!("{name} has not run"));
            }
            for (place, ran) in self.of(test).into_iter().flatten() {
                match ran.ending {
                    Some(Ending::Failed) => problems.push(format!("{name} FAILED on {place}")),
                    None => problems.push(format!("{name} did not end on {place}")),
                    Some(Ending::Passed | Ending::Ignored) => {}
                }
            }
        }
        problems
    }

    fn at(&mut self, name: &str, place: &str) -> &mut Ran {
        // The harness names a test by its modules, which the sources of another crate may have too.
        let name = name.rsplit("::").next().unwrap_or(name).to_owned();
        let places = self.0.entry(name).or_default();
        places.entry(place.to_owned()).or_default()
    }
}

/// A test, by the line of the harness that says how it ended.
fn ended(line: &str) -> Option<(&str, Ending)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    // `test NAME - should panic ... ok`
    let name = name.split(' ').next().unwrap_or(name);
    let ending = match rest {
        "ok" => Ending::Passed,
        "FAILED" => Ending::Failed,
        _ if rest.starts_with("ignored") => Ending::Ignored,
        _ => return None,
    };
    Some((name, ending))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const LOG: &str = "
== on ext4
running 3 tests
test holes::a ... ok
test holes::b ... ok
test c - should panic ... FAILED
test d ... ignored, it is slow
test a_long_one has been running for over 60 seconds
== on xfs
test holes::a ... ok
test holes::b ... ok
test result: ok. 2 passed; 0 failed
";
    const SKIPS: &str = "
vfat: the kernel has no vfat
ext4: holes::b: no holes: EOPNOTSUPP
ext4: f: it dies
";

    fn results() -> Results {
        let mut results = Results::default();
        results.read(LOG);
        results.read_skips(SKIPS);
        results
    }

    fn test_named(name: &str) -> Test {
        Test {
            name: name.to_owned(),
            file: PathBuf::new(),
            line: 1,
            reports: Vec::new(),
        }
    }

    #[test]
    fn a_log_is_read() {
        let results = results();
        let told = |name: &str, place: &str| {
            let ran = &results.of(&test_named(name)).unwrap()[place];
            let skipped: Vec<_> = ran.skipped.iter().map(String::as_str).collect();
            (ran.ending, skipped.join("; "))
        };
        let passed = Some(Ending::Passed);
        let nothing = String::new();
        assert_eq!(told("a", "ext4"), (passed, nothing.clone()));
        assert_eq!(told("a", "xfs"), (passed, nothing.clone()));
        assert_eq!(told("b", "ext4"), (passed, "no holes: EOPNOTSUPP".into()));
        assert_eq!(told("b", "xfs"), (passed, nothing.clone()));
        assert_eq!(told("c", "ext4"), (Some(Ending::Failed), nothing.clone()));
        assert_eq!(told("d", "ext4"), (Some(Ending::Ignored), nothing));
        assert_eq!(told("f", "ext4"), (None, "it dies".into()));
    }

    #[test]
    fn what_failed_or_did_not_run_is_a_problem() {
        let tests = ["a", "b", "c", "d", "f", "g"].map(test_named);
        assert_eq!(
            results().problems(&tests),
            [
                "c FAILED on ext4",
                "d has not run",
                "f has not run",
                "f did not end on ext4",
                "g has not run",
            ]
        );
    }
}
