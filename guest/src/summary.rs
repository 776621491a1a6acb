//! What a copy did, in words and from the start.

use std::fmt;

use crate::{Method, Preserve, Summary};

impl Default for Summary {
    /// A copy that did nothing.
    fn default() -> Self {
        Summary {
            bytes: 0,
            shared: 0,
            consumed: 0,
            method: Method::None,
            files: 0,
            directories: 0,
            links: 0,
            special: 0,
            skipped: 0,
            failed: 0,
            lost: Preserve::empty(),
            changed: false,
        }
    }
}

/// The name of the contract, such as `copy-range`.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::None => "none",
            Method::Clone => "clone",
            Method::CopyRange => "copy-range",
            Method::SendFile => "send-file",
            Method::Splice => "splice",
            Method::ReadWrite => "read-write",
            Method::Other(name) => name,
        })
    }
}
