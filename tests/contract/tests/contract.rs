//! The rules that `wit/copy.wit` keeps.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use copyist_contract::{Contract, Item, Kind, baselines, breaks, current_text, repository};

fn parse(text: &str) -> Contract {
    Contract::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn current() -> Contract {
    parse(&current_text())
}

/// The name of the option that a method of `options` sets, or answers.
fn option_name(item: &Item) -> Option<&str> {
    let method = item.path.strip_prefix("types.[method]options.")?;
    Some(method.strip_prefix("set-").unwrap_or(method))
}

fn is_setter(item: &Item) -> bool {
    item.path.starts_with("types.[method]options.set-")
}

#[test]
fn everything_is_documented() {
    let items = current().items();
    let bare = items.iter().filter(|item| match item.kind {
        Kind::Use | Kind::Port | Kind::ForeignPort => false,
        // What an option is stands at its setter.
        Kind::Function if option_name(item).is_some() => is_setter(item) && item.docs.is_empty(),
        Kind::World | Kind::Interface | Kind::Type | Kind::Part | Kind::Function => {
            item.docs.is_empty()
        }
    });
    let bare: Vec<_> = bare.map(|item| &item.path).collect();
    assert!(bare.is_empty(), "without documentation: {bare:#?}");
}

#[test]
fn everything_has_a_version_gate() {
    let items = current().items();
    let gated = items
        .iter()
        .filter(|item| !matches!(item.kind, Kind::Part | Kind::ForeignPort));
    let open: Vec<_> = gated
        .filter(|item| item.since.is_none())
        .map(|item| &item.path)
        .collect();
    assert!(open.is_empty(), "without @since: {open:#?}");
}

#[test]
fn every_option_can_be_set_and_read() {
    let items = current().items();
    let shapes = |setter: bool| {
        let methods = items.iter().filter(move |item| is_setter(item) == setter);
        methods
            .filter_map(|item| Some((option_name(item)?, &*item.shape)))
            .collect::<Vec<_>>()
    };
    let (setters, getters) = (shapes(true), shapes(false));
    assert_eq!(setters.len(), getters.len());
    for ((set, setter), (get, getter)) in setters.into_iter().zip(getters) {
        assert_eq!(set, get, "a getter follows its setter");
        let set = setter.strip_prefix("func(self: borrow<options>, value: ");
        let get = getter.strip_prefix("func(self: borrow<options>) -> ");
        assert_eq!(
            set.and_then(|set| set.strip_suffix(')')),
            get,
            "{setter} and {getter}"
        );
    }
}

/// The table of options by kind of destination, in the documentation of the package.
#[test]
fn the_table_of_options_is_whole() {
    let contract = current();
    let rows = contract
        .docs()
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('|'));
    let rows: Vec<Vec<_>> = rows
        .map(|row| {
            row.trim_matches('|')
                .split('|')
                .map(str::trim)
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        rows[0],
        ["option", "new path", "existing path", "open descriptor"]
    );
    for row in &rows {
        assert_eq!(row.len(), 4, "{row:?}");
    }
    let options: HashSet<_> = rows[2..]
        .iter()
        .filter_map(|row| row[0].split(' ').next())
        .collect();
    for item in contract.items().iter().filter(|item| is_setter(item)) {
        let option = option_name(item).expect("a setter sets an option");
        // What must be preserved is told with what should be.
        let row = if option == "require" {
            "preserve"
        } else {
            option
        };
        assert!(options.contains(row), "no row for {option}");
    }
}

/// The lowest version, so that components of every toolchain link.
#[test]
fn the_contract_stands_on_wasi_0_2_0() {
    let mut packages = current().foreign_packages();
    packages.sort();
    assert_eq!(
        packages,
        [
            "wasi:clocks@0.2.0",
            "wasi:filesystem@0.2.0",
            "wasi:io@0.2.0"
        ]
    );
}

#[test]
fn every_published_contract_is_kept() {
    let current_text = current_text();
    let current = parse(&current_text);
    let baselines = baselines();
    assert!(
        !baselines.is_empty(),
        "no published contract to compare with"
    );
    for (name, text) in baselines {
        let published = parse(&text);
        assert_eq!(name, format!("copy-{}.wit", published.version()));
        let broken = breaks(&published, &current);
        assert!(
            broken.is_empty(),
            "components built against {name} break: {broken:#?}"
        );
        #[cfg(feature = "semver-check")]
        copyist_contract::links(&text, &current_text).unwrap_or_else(|error| {
            panic!("components built against {name} fail to link: {error}")
        });
    }
}

/// What keeps a component from linking: a name, the text to replace, its replacement.
const BREAKING: &[(&str, &str, &str)] = &[
    (
        "import gone",
        "@since(version = 0.2.0)\n    import read;",
        "",
    ),
    ("function gone", "text: func(", "words: func("),
    ("method gone", "set-window: func(", "set-part: func("),
    (
        "parameter type",
        "set-reflink: func(value: reflink",
        "set-reflink: func(value: existing",
    ),
    (
        "parameter name",
        "transfer: func(source:",
        "transfer: func(reader:",
    ),
    (
        "parameter added",
        "transfer: func(",
        "transfer: func(first: bool, ",
    ),
    ("result type", "-> option<window>", "-> window"),
    ("async", "transfer: func(", "transfer: async func("),
    ("field type", "changed: bool,", "changed: u8,"),
    ("field name", "files: u64,", "regular: u64,"),
    ("field gone", "changed: bool,", ""),
    (
        "field added",
        "changed: bool,",
        "changed: bool, more: bool,",
    ),
    ("enum case gone", "        update,", ""),
    (
        "enum case added",
        "        update,",
        "        update, rename,",
    ),
    ("variant case type", "other(string)", "other(u32)"),
    ("variant case added", "timed-out,", "timed-out, late,"),
    ("flag added", "        links,", "        links, forks,"),
    (
        "case of an enum that only trees have",
        "enum special {",
        "enum special { some,",
    ),
    (
        "origin",
        "{input-stream, output-stream}",
        "{output-stream, output-stream as input-stream}",
    ),
];

/// What linking lets pass, since it sees structure alone, and that only of what functions use.
const BREAKING_SOURCES: &[(&str, &str, &str)] = &[
    (
        "type of equal structure",
        "(value: reflink)",
        "(value: sparse)",
    ),
    (
        "gate moved",
        "@since(version = 0.2.0)\nworld",
        "@since(version = 0.1.0)\nworld",
    ),
];

/// What breaks nobody.
const ADDING: &[(&str, &str, &str)] = &[
    (
        "a function",
        "transfer: func(",
        "later: func(); @since(version = 0.2.0) transfer: func(",
    ),
    (
        "a method",
        "set-window: func(",
        "later: func(); @since(version = 0.2.0) set-window: func(",
    ),
    (
        "a type",
        "enum sparse {",
        "enum later { never } @since(version = 0.2.0) enum sparse {",
    ),
    (
        "an interface and its import",
        "world imports {",
        "world imports { import later: interface { go: func(); }",
    ),
];

/// The current contract with one replacement, which must be there to be made.
fn changed(from: &str, to: &str) -> String {
    let text = current_text();
    assert!(text.contains(from), "the contract no longer has `{from}`");
    text.replacen(from, to, 1)
}

#[test]
fn a_break_is_found() {
    let current = current();
    for (name, from, to) in BREAKING.iter().chain(BREAKING_SOURCES) {
        assert_ne!(
            breaks(&current, &parse(&changed(from, to))),
            [""; 0],
            "{name}"
        );
    }
}

#[cfg(feature = "semver-check")]
#[test]
fn a_break_fails_to_link() {
    let links = |from, to| {
        let text = changed(from, to);
        parse(&text);
        copyist_contract::links(&current_text(), &text)
    };
    for (name, from, to) in BREAKING {
        assert!(links(from, to).is_err(), "{name}");
    }
    for (name, from, to) in BREAKING_SOURCES {
        assert_eq!(
            links(from, to),
            Ok(()),
            "{name}: linking notices it; list it with the others"
        );
    }
}

#[test]
fn an_addition_is_no_break() {
    let current = current();
    for &(name, from, to) in ADDING {
        let text = changed(from, to);
        assert_eq!(breaks(&current, &parse(&text)), [""; 0], "{name} is added");
        #[cfg(feature = "semver-check")]
        assert_eq!(
            copyist_contract::links(&current_text(), &text),
            Ok(()),
            "{name} is added"
        );
    }
}

/// Every `copyist:copy/..@version` in sources and documents is the version of the contract.
#[test]
fn one_version_is_named_everywhere() {
    let version = current().version();
    let mut others = Vec::new();
    // The command is tested with components that import other versions.
    let elsewhere = repository().join("host/cli/tests");
    let files = text_files(&repository()).into_iter();
    for path in files.filter(|path| !path.starts_with(&elsewhere)) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let named = text.split("copyist:copy").skip(1).filter_map(version_after);
        let other = named.filter(|named| *named != version);
        others.extend(other.map(|named| format!("{}: {named}", path.display())));
    }
    assert!(
        others.is_empty(),
        "the contract is {version}, but: {others:#?}"
    );
}

/// The version at the start of `/interface@1.2.3` or `@1.2.3`, if there is one.
fn version_after(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/-.@{},".contains(c)));
    let (_, version) = rest[..end.unwrap_or(rest.len())].split_once('@')?;
    let end = version.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let version = version[..end.unwrap_or(version.len())].trim_end_matches('.');
    (!version.is_empty()).then_some(version)
}

/// The repository's own files that name the present: no build output, no published contract,
/// no history.
fn text_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the repository");
    let paths = entries.map(|entry| entry.expect("a directory entry").path());
    let kept = paths.filter(|path| {
        let name = path
            .file_name()
            .expect("an entry has a name")
            .to_string_lossy();
        !["target", ".git", "node_modules", "baseline", "CHANGELOG.md"].contains(&&*name)
            && !path.is_symlink()
    });
    kept.flat_map(|path| {
        if path.is_dir() {
            text_files(&path)
        } else {
            vec![path]
        }
    })
    .collect()
}

#[test]
fn versions_are_found_in_text() {
    assert_eq!(version_after("@0.2.0;"), Some("0.2.0"));
    assert_eq!(version_after("/types@0.2.1.{source}"), Some("0.2.1"));
    assert_eq!(version_after("/copy` asks, say a@b"), None);
}
