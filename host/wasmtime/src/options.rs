//! What a guest's `options` hold: how each file is copied, and what of a tree.

use std::sync::Arc;

use copyist_engine::{Cause, Exclude, Options, Special, Symlinks, TreeOptions};

use crate::exclude::Patterns;

/// See the module.
#[derive(Clone, Debug, Default)]
#[expect(unreachable_pub, reason = "the bindings want it public")]
pub struct Asked {
    pub(crate) files: Options,
    pub(crate) symlinks: Symlinks,
    pub(crate) special: Special,
    pub(crate) one_file_system: bool,
    pub(crate) keep_going: bool,
    pub(crate) exclude: Vec<String>,
}

impl Asked {
    /// As a tree is asked for, with nothing granted.
    pub(crate) fn of_tree(self) -> Result<TreeOptions, Cause> {
        let exclude = Patterns::new(&self.exclude)?;
        Ok(TreeOptions {
            entries: self.files,
            symlinks: self.symlinks,
            special: self.special,
            one_file_system: self.one_file_system,
            keep_going: self.keep_going,
            exclude: exclude.map(|patterns| Arc::new(patterns) as Arc<dyn Exclude>),
            ..TreeOptions::default()
        })
    }
}
