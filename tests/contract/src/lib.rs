//! The contract in `wit/` as data, for the tests that guard it.
//!
//! [`Contract::parse`] reads a text of `copy.wit` against the vendored WASI packages,
//! [`items`](Contract::items) lists what it declares, and [`breaks`] says what a component built
//! against an older text would miss in a newer one.

mod compatibility;
mod items;

use std::fs;
use std::path::{Path, PathBuf};

pub use compatibility::breaks;
#[cfg(feature = "semver-check")]
pub use compatibility::links;
pub use items::{Item, Kind};
use wit_parser::{PackageId, Resolve, SourceMap, UnresolvedPackageGroup};

/// A text of `copy.wit`, resolved.
#[derive(Debug)]
pub struct Contract {
    resolve: Resolve,
    package: PackageId,
}

impl Contract {
    /// Resolves `text`; what is wrong with it is told in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut resolve = Resolve::default();
        let package = resolve.push_groups(parse_package(text)?, dependencies()?);
        let package = package.map_err(|error| error.render(&resolve.source_map))?;
        Ok(Self { resolve, package })
    }

    /// The version in the `package` line.
    pub fn version(&self) -> String {
        let name = &self.resolve.packages[self.package].name;
        name.version
            .as_ref()
            .expect("the package line names a version")
            .to_string()
    }

    /// The documentation of the package.
    pub fn docs(&self) -> &str {
        let docs = &self.resolve.packages[self.package].docs;
        docs.contents.as_deref().unwrap_or_default()
    }

    /// The packages that the contract stands on, as `namespace:name@version`.
    pub fn foreign_packages(&self) -> Vec<String> {
        let packages = self.resolve.packages.iter();
        let foreign = packages.filter(|(id, _)| *id != self.package);
        foreign
            .map(|(_, package)| package.name.to_string())
            .collect()
    }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of the contract as it stands.
pub fn current_text() -> String {
    read(&repository().join("wit/copy.wit"))
}

/// The published texts: file name and contents, the oldest first.
pub fn baselines() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline");
    let named = |path: PathBuf| {
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        (name, read(&path))
    };
    wit_files(&directory).into_iter().map(named).collect()
}

fn parse_package(text: &str) -> Result<UnresolvedPackageGroup, String> {
    parse([("copy.wit".to_owned(), text.to_owned())])
}

/// The vendored packages, a directory each.
fn dependencies() -> Result<Vec<UnresolvedPackageGroup>, String> {
    let directories = children(&repository().join("wit/deps"))
        .into_iter()
        .filter(|path| path.is_dir());
    let sources = |directory: PathBuf| {
        wit_files(&directory)
            .into_iter()
            .map(|path| (path.display().to_string(), read(&path)))
    };
    directories
        .map(|directory| parse(sources(directory)))
        .collect()
}

fn parse(
    sources: impl IntoIterator<Item = (String, String)>,
) -> Result<UnresolvedPackageGroup, String> {
    let mut map = SourceMap::new();
    for (name, text) in sources {
        map.push_str(&name, text);
    }
    map.parse().map_err(|(map, error)| error.render(&map))
}

fn wit_files(directory: &Path) -> Vec<PathBuf> {
    let files = children(directory).into_iter();
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "wit"))
        .collect()
}

/// The entries of a directory, sorted.
fn children(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
