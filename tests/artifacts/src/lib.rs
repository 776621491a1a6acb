//! The guest programs, built as components: a constant for the path of each, and
//! [`foreach_guest!`], by which a suite shows that it runs them all. This does not compile while a
//! program has no test of its name:
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
