//! Copies of all kinds, and the ones that once went wrong.

use proptest::prelude::*;

use crate::config;
use crate::draw;
use crate::oracle;

proptest! {
    #![proptest_config(config(5000))]

    #[test]
    fn a_copy_is_what_the_model_says(case in draw::case()) {
        oracle::check(&case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whoever_meddles_with_the_name_loses_nothing(case in draw::meddled()) {
        oracle::check(&case).map_err(TestCaseError::fail)?;
    }
}
