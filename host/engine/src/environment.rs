//! The system that copies run on, and what is known of it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::support::Support;
use crate::sys::{self, Sys};

/// A system layer with its memory of what does not work. Clones share both.
#[derive(Clone)]
pub struct Environment {
    sys: Arc<dyn Sys>,
    support: Arc<Support>,
}

impl Environment {
    /// The system that the process runs on, with one memory for the whole process.
    pub fn native() -> Self {
        static NATIVE: OnceLock<Environment> = OnceLock::new();
        NATIVE.get_or_init(|| Self::new(sys::native())).clone()
    }

    /// Another system layer, or the same one with a memory of its own.
    pub fn new(sys: Arc<dyn Sys>) -> Self {
        Self {
            sys,
            support: Arc::default(),
        }
    }

    pub(crate) fn sys(&self) -> &dyn Sys {
        &*self.sys
    }

    pub(crate) fn support(&self) -> &Support {
        &self.support
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::native()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("sys", &self.sys)
            .finish_non_exhaustive()
    }
}
