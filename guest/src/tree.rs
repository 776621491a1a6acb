//! Copying whole trees.

use crate::bindings::copyist::copy::copy::{start_tree, tree};
use crate::bindings::copyist::copy::types::{Failure, Options};
use crate::error::Call;
use crate::{Cause, CopyOptions, Error, Job, Location, Side, Special, Summary, Symlinks};

/// Copies a directory with all that is in it and waits for its end, in the host. Symbolic links are
/// made anew; where both are directories they become one, and so on beneath; FIFOs, sockets and devices
/// are failures, and the first failure ends it. [`TreeOptions`] has everything else.
///
/// `to` is what the copy of `from` is to be, and not the directory into which it goes.
///
/// ```no_run
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let summary = copyist_guest::copy_tree("in/assets", "out/assets")?;
/// println!("{} files, {} bytes", summary.files, summary.bytes);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Cause::SameFile`] before anything is made where `to` is `from` or lies in it; otherwise the first
/// entry that failed, which the text of the error names. What was finished by then stays, and
/// [`Error::summary`] counts it.
pub fn copy_tree<'a, 'b>(
    from: impl Into<Location<'a>>,
    to: impl Into<Location<'b>>,
) -> Result<Summary, Error> {
    let (from, to) = (from.into(), to.into());
    let call = Named::new(&from, &to);
    let (source, destination) = call.resolve(&from, &to)?;
    tree(&source, &destination, None).map_err(|failure| call.failed(failure))
}

/// How to copy a tree.
///
/// ```no_run
/// use copyist_guest::{CopyOptions, Existing, TreeOptions};
///
/// # fn main() -> Result<(), copyist_guest::Error> {
/// let mut files = CopyOptions::new();
/// files.existing(Existing::Update);
/// let copied = TreeOptions::new()
///     .files(files)
///     .exclude(["*.o", "/target"])
///     .keep_going(true)
///     .copy("in/project", "out/project")?;
/// for entry in copied.failed {
///     eprintln!("{}: {:?}", entry.path, entry.cause);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    files: CopyOptions,
    symlinks: Symlinks,
    special: Special,
    one_file_system: bool,
    keep_going: bool,
    exclude: Vec<String>,
}

/// What came of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTree {
    /// What was done.
    pub summary: Summary,
    /// The entries that failed, where it was to go on: the first 10,000.
    pub failed: Vec<TreeEntry>,
    /// The entries that were left out for a cause, such as a FIFO by
    /// [`Special::Skip`]: the first 10,000.
    pub skipped: Vec<TreeEntry>,
}

/// An entry of a tree, and what was the matter with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path beneath the directory that was granted, or beneath the handle that was given.
    pub path: String,
    /// Why it is told of.
    pub cause: Cause,
}

impl TreeOptions {
    /// As [`copy_tree`].
    #[must_use]
    pub fn new() -> Self {
        TreeOptions {
            files: CopyOptions::new(),
            symlinks: Symlinks::Keep,
            special: Special::Refuse,
            one_file_system: false,
            keep_going: false,
            exclude: Vec::new(),
        }
    }

    /// How each entry is copied. A window is [`Cause::Unsupported`] of a tree; a timeout is the whole
    /// tree's.
    pub fn files(&mut self, files: CopyOptions) -> &mut Self {
        self.files = files;
        self
    }

    /// What becomes of symbolic links.
    pub fn symlinks(&mut self, symlinks: Symlinks) -> &mut Self {
        self.symlinks = symlinks;
        self
    }

    /// What becomes of FIFOs, sockets and devices.
    pub fn special(&mut self, special: Special) -> &mut Self {
        self.special = special;
        self
    }

    /// Whether directories on which other file systems are mounted are made and not gone into.
    pub fn one_file_system(&mut self, one: bool) -> &mut Self {
        self.one_file_system = one;
        self
    }

    /// Whether to go on after an entry fails: a success then, whose
    /// [`failed`](CopiedTree::failed) says which.
    pub fn keep_going(&mut self, keep_going: bool) -> &mut Self {
        self.keep_going = keep_going;
        self
    }

    /// What to leave out, with all beneath it: patterns as the lines of a .gitignore file in the root
    /// of the tree, up to 256 and 8,192 bytes.
    pub fn exclude<S: Into<String>>(&mut self, patterns: impl IntoIterator<Item = S>) -> &mut Self {
        self.exclude = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Copies a tree by these options and waits for its end, in the host.
    ///
    /// # Errors
    ///
    /// As [`copy_tree`]; with [`keep_going`](Self::keep_going) only what ends the tree as a whole: a
    /// limit, a timeout, a root that cannot be opened.
    pub fn copy<'a, 'b>(
        &self,
        from: impl Into<Location<'a>>,
        to: impl Into<Location<'b>>,
    ) -> Result<CopiedTree, Error> {
        let job = self.start(from, to)?;
        let summary = job.wait()?;
        Ok(CopiedTree {
            summary,
            failed: job.failures().collect(),
            skipped: job.skipped().collect(),
        })
    }

    /// Starts to copy a tree by these options, and does not wait for its end.
    ///
    /// # Errors
    ///
    /// As [`start`](crate::start()).
    pub fn start<'a, 'b>(
        &self,
        from: impl Into<Location<'a>>,
        to: impl Into<Location<'b>>,
    ) -> Result<Job, Error> {
        let (from, to) = (from.into(), to.into());
        let call = Named::new(&from, &to);
        let (source, destination) = call.resolve(&from, &to)?;
        match start_tree(&source, &destination, self.to_host().as_ref()) {
            Ok(host) => Ok(Job::of_tree(host, call.0)),
            Err(failure) => Err(call.failed(failure)),
        }
    }

    /// The host's own, or nothing where all is as the host has it without.
    fn to_host(&self) -> Option<Options> {
        if *self == TreeOptions::new() {
            return None;
        }
        let options = self.files.to_host().unwrap_or_else(Options::new);
        options.set_symlinks(self.symlinks);
        options.set_special(self.special);
        options.set_one_file_system(self.one_file_system);
        options.set_keep_going(self.keep_going);
        options.set_exclude(&self.exclude);
        Some(options)
    }
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions::new()
    }
}

impl TreeEntry {
    pub(crate) fn of(failure: Failure) -> Self {
        TreeEntry {
            path: failure.path.unwrap_or_default(),
            cause: failure.cause,
        }
    }
}

/// A tree as its author named it, for errors.
struct Named(Call);

impl Named {
    fn new(from: &Location<'_>, to: &Location<'_>) -> Self {
        Named(Call::Tree {
            from: from.name(),
            to: to.name(),
            at: None,
        })
    }

    fn resolve<'a, 'b>(
        &self,
        from: &Location<'a>,
        to: &Location<'b>,
    ) -> Result<(crate::end::Host<'a>, crate::end::Host<'b>), Error> {
        let before = |side| move |why| Error::before(self.0.clone(), side, why);
        let source = from.resolve().map_err(before(Side::Source))?;
        let destination = to.resolve().map_err(before(Side::Destination))?;
        Ok((source, destination))
    }

    fn failed(&self, failure: Failure) -> Error {
        Error::of_tree(self.0.clone(), failure)
    }
}
