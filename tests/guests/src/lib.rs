//! What the guest programs share: words in, one line out.
//!
//! A program takes paths and `--name` or `--name=value`, does one thing, and prints what came of
//! it in a line of `key=value`, of which only the last, a path, may hold spaces:
//!
//! ```text
//! ok bytes=7 shared=0 consumed=7 method=copy-range skipped=0 lost=- changed=false
//! err cause=no-entry side=source kind=NotFound bytes=0 consumed=0 path=in/a
//! ```
//!
//! Both are a success of the program; it fails only where it was called wrongly.

mod arguments;
pub mod contract;
mod report;

pub use arguments::{Arguments, open};
pub use report::{cause, fnv1a, preserved, report, report_error, say};
