//! The guest programs, built as components: a constant for the path of each, and a macro for each
//! suite that runs some, by which it shows that it runs them all: [`foreach_guest!`] for the hosts,
//! and for the command, whose programs have names that begin with `cli_`, [`foreach_cli_guest!`].
//! This does not compile while a program has no test of its name:
//!
//! ```ignore
//! macro_rules! assert_test_exists {
//!     ($name:ident) => {
//!         #[allow(unused_imports, reason = "that it exists is enough")]
//!         use self::$name as _;
//!     };
//! }
//! copyist_test_artifacts::foreach_guest!(assert_test_exists);
//! ```

include!(concat!(env!("OUT_DIR"), "/guests.rs"));
