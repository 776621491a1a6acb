//! The directories that the component was granted.

use std::env;
use std::sync::OnceLock;

use wasip2::filesystem::preopens::get_directories;

use crate::Descriptor;
use crate::paths;

/// Every question makes the host hand out new handles, so that it is asked once.
static GRANTED: OnceLock<Vec<(Descriptor, String)>> = OnceLock::new();

fn granted() -> &'static [(Descriptor, String)] {
    GRANTED.get_or_init(get_directories)
}

/// The names under which directories were granted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    granted().iter().map(|(_, name)| name.as_str())
}

/// The granted directory that holds `path`, and the path from there on.
pub(crate) fn find(path: &str) -> Option<(&'static Descriptor, String)> {
    // std::env::set_current_dir moves it, for std::fs and so here.
    let cwd = env::current_dir().unwrap_or_else(|_| "/".into());
    let (index, rest) = paths::find(names(), &cwd.to_string_lossy(), path)?;
    Some((&granted()[index].0, rest))
}
