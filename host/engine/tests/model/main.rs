//! Copies between file systems in memory, drawn at random and held to a model.

#![cfg(target_os = "linux")]

mod answers;
mod case;
mod content;
mod copies;
mod draw;
mod found;
mod fuzz;
mod layout;
mod oracle;
mod reads;
mod schedule;
mod system;
mod world;

use proptest::test_runner::{Config, FailurePersistence, FileFailurePersistence, RngSeed};

/// So many cases, the same in every run; others, and as many as it says, where `PROPTEST_CASES` is
/// set. What failed once is drawn first for ever, unless `PROPTEST_DISABLE_FAILURE_PERSISTENCE` is.
pub(crate) fn config(cases: u32) -> Config {
    let asked = Config::default();
    let explores = std::env::var_os("PROPTEST_CASES").is_some();
    Config {
        cases: if explores { asked.cases } else { cases },
        rng_seed: if explores {
            asked.rng_seed
        } else {
            RngSeed::Fixed(1)
        },
        failure_persistence: asked.failure_persistence.as_ref().map(|_| regressions()),
        ..asked
    }
}

fn regressions() -> Box<dyn FailurePersistence> {
    Box::new(FileFailurePersistence::WithSource("regressions"))
}
