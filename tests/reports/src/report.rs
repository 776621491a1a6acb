//! A public report, by the name that it has in the table: `golang/go#44272`, or its address without
//! the scheme.

use std::fmt;

const GITHUB: &str = "https://github.com/";
/// Where else reports are kept.
const TRACKERS: [&str; 3] = ["bugs.gnu.org/", "bugs.openjdk.org/", "bugs.python.org/"];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Report(String);

impl Report {
    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The report at this address; `None` if it is another kind of page. An issue and a pull request
    /// share their numbers, and GitHub leads from one to the other.
    pub(crate) fn at(address: &str) -> Option<Self> {
        if let Some(path) = address.strip_prefix(GITHUB) {
            let parts: Vec<_> = path.split('/').collect();
            return match parts[..] {
                [owner, repository, "issues" | "pull", number] => {
                    Some(Self(format!("{owner}/{repository}#{number}")))
                }
                ["advisories", advisory] | [_, _, "security", "advisories", advisory] => {
                    Some(Self(format!("github.com/advisories/{advisory}")))
                }
                _ => None,
            };
        }
        let name = address.strip_prefix("https://")?;
        let is_kept = TRACKERS.iter().any(|tracker| name.starts_with(tracker));
        is_kept.then(|| Self(name.to_owned()))
    }

    /// All reports whose addresses stand in a text.
    pub(crate) fn all_in(text: &str) -> Vec<Self> {
        text.split_whitespace()
            .filter_map(|word| word.find("https://").map(|start| &word[start..]))
            .map(|word| word.trim_end_matches([',', ';', ':', '.', ')', '>']))
            .filter_map(Self::at)
            .collect()
    }

    pub(crate) fn address(&self) -> String {
        match self.0.split_once('#') {
            Some((repository, number)) => format!("{GITHUB}{repository}/issues/{number}"),
            None => format!("https://{}", self.0),
        }
    }

    /// The number that a test's name has.
    pub(crate) fn number(&self) -> Option<&str> {
        let digits = self.0.rfind(|c: char| !c.is_ascii_digit())? + 1;
        Some(&self.0[digits..]).filter(|number| !number.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names() {
        let text = "// https://github.com/a/b/issues/1, <https://github.com/a/b/pull/23>: it
            // (https://bugs.gnu.org/15574). https://lwn.net/Articles/846403/ is none, and
            // https://github.com/a/b/security/advisories/GHSA-x has no number;
            // https://bugs.openjdk.org/browse/JDK-8269074";
        let reports = Report::all_in(text);
        let told: Vec<_> = reports
            .iter()
            .map(|report| (report.to_string(), report.address(), report.number()))
            .collect();
        let of = |name: &str, address: &str, number| (name.to_owned(), address.to_owned(), number);
        assert_eq!(
            told,
            [
                of("a/b#1", "https://github.com/a/b/issues/1", Some("1")),
                of("a/b#23", "https://github.com/a/b/issues/23", Some("23")),
                of(
                    "bugs.gnu.org/15574",
                    "https://bugs.gnu.org/15574",
                    Some("15574")
                ),
                of(
                    "github.com/advisories/GHSA-x",
                    "https://github.com/advisories/GHSA-x",
                    None
                ),
                of(
                    "bugs.openjdk.org/browse/JDK-8269074",
                    "https://bugs.openjdk.org/browse/JDK-8269074",
                    Some("8269074")
                ),
            ]
        );
        for report in reports {
            assert_eq!(Report::at(&report.address()), Some(report));
        }
    }
}
