//! How to copy.

use std::time::Duration;

use crate::bindings::copyist::copy::types::{Options, WriteMode};
use crate::{Durability, Existing, Preserve, Reflink, Sparse, Window};

/// How to copy, as [`std::fs::OpenOptions`] says how to open.
///
/// ```no_run
/// use copyist_guest::{CopyOptions, Durability, Existing};
///
/// # fn main() -> Result<(), copyist_guest::Error> {
/// CopyOptions::new()
///     .existing(Existing::Update)
///     .replace(true)
///     .durability(Durability::Each)
///     .copy("in/table", "out/table")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOptions {
    existing: Existing,
    write_mode: WriteMode,
    reflink: Reflink,
    sparse: Sparse,
    durability: Durability,
    preserve: Preserve,
    require: Preserve,
    window: Option<Window>,
    zero_copy: bool,
    timeout: Option<Duration>,
}

impl CopyOptions {
    /// The whole source; an existing destination overwritten in place; storage shared where the
    /// file system can and holes kept; nothing preserved and nothing waited for. A new file gets the permission
    /// bits of the source, less the umask, and an existing one keeps its own.
    #[must_use]
    pub fn new() -> Self {
        CopyOptions {
            existing: Existing::Write,
            write_mode: WriteMode::InPlace,
            reflink: Reflink::Auto,
            sparse: Sparse::Auto,
            durability: Durability::None,
            preserve: Preserve::empty(),
            require: Preserve::empty(),
            window: None,
            zero_copy: false,
            timeout: None,
        }
    }

    /// What to do where the destination exists.
    pub fn existing(&mut self, existing: Existing) -> &mut Self {
        self.existing = existing;
        self
    }

    /// Whether an existing file is replaced whole: written beside and renamed over, so that a
    /// reader sees the old file or the new one, and so does who looks after the host was killed (after a
    /// cut of power only with [`durability`](Self::durability)). Hard links to
    /// the old file keep the old bytes; the new one has its mode.
    ///
    /// Else it is overwritten in place: its hard links see the new bytes, a reader may see old and
    /// new ones mixed, and a copy that fails midway leaves them so.
    ///
    /// The copy fails with [`Cause::Unsupported`](crate::Cause::Unsupported) where it cannot
    /// replace: a destination that is an open file, or an existing one that is given a window.
    pub fn replace(&mut self, replace: bool) -> &mut Self {
        self.write_mode = if replace {
            WriteMode::Replace
        } else {
            WriteMode::InPlace
        };
        self
    }

    /// Whether the copy may, must or must not share storage with its source.
    pub fn reflink(&mut self, reflink: Reflink) -> &mut Self {
        self.reflink = reflink;
        self
    }

    /// Whether long runs of zeros become holes.
    pub fn sparse(&mut self, sparse: Sparse) -> &mut Self {
        self.sparse = sparse;
        self
    }

    /// What is on stable storage before the copy is reported as done.
    pub fn durability(&mut self, durability: Durability) -> &mut Self {
        self.durability = durability;
        self
    }

    /// What to carry over beside the bytes where it can be had; what could not be is named in
    /// [`Summary::lost`](crate::Summary::lost).
    pub fn preserve(&mut self, preserve: Preserve) -> &mut Self {
        self.preserve = preserve;
        self
    }

    /// What to carry over or fail. It need not be named in [`preserve`](Self::preserve) too.
    pub fn require(&mut self, require: Preserve) -> &mut Self {
        self.require = require;
        self
    }

    /// Part of the source, to a place in the destination, which is then never cut. Both ends may be
    /// one file, where the parts are disjoint.
    pub fn window(&mut self, window: Window) -> &mut Self {
        self.window = Some(window);
        self
    }

    /// Whether the host may pass pages of a source file to a pipe or a socket in place of their
    /// bytes: faster, and a write to the source that comes later, but before the reader reads,
    /// shows at the reader.
    pub fn zero_copy(&mut self, zero_copy: bool) -> &mut Self {
        self.zero_copy = zero_copy;
        self
    }

    /// How long the copy may take, from when it is asked for: then it fails with
    /// [`Cause::TimedOut`](crate::Cause::TimedOut), having left what a failed copy leaves. The
    /// component goes on.
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        self.timeout = Some(timeout);
        self
    }

    /// The host's own, or nothing where all is as the host has it without.
    pub(crate) fn to_host(&self) -> Option<Options> {
        if *self == CopyOptions::new() {
            return None;
        }
        let options = Options::new();
        options.set_existing(self.existing);
        options.set_write_mode(self.write_mode);
        options.set_reflink(self.reflink);
        options.set_sparse(self.sparse);
        options.set_durability(self.durability);
        options.set_preserve(self.preserve);
        options.set_require(self.require);
        options.set_window(self.window);
        options.set_zero_copy(self.zero_copy);
        // A time that nanoseconds cannot say is five centuries away.
        let nanoseconds = |timeout: Duration| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        options.set_timeout(self.timeout.map(nanoseconds));
        Some(options)
    }
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions::new()
    }
}
