//! The resource `options`: new ones are as the contract says, and every getter returns what its
//! setter set. `options`, which checks itself.

use std::fmt::Debug;

use copyist_test_guests::contract::types::{
    Durability, Existing, Options, Preserve, Reflink, Sparse, Window, WriteMode,
};
use copyist_test_guests::{Arguments, say};

fn main() {
    let [] = Arguments::from_env().paths();
    let options = Options::new();
    let others = Options::new();
    are_new(&options);

    let existing = [
        Existing::Refuse,
        Existing::Update,
        Existing::Write,
        Existing::Skip,
    ];
    keeps(&options, Options::set_existing, Options::existing, existing);
    let modes = [WriteMode::Replace, WriteMode::InPlace];
    keeps(
        &options,
        Options::set_write_mode,
        Options::write_mode,
        modes,
    );
    let reflinks = [Reflink::Always, Reflink::Never, Reflink::Auto];
    keeps(&options, Options::set_reflink, Options::reflink, reflinks);
    let sparses = [Sparse::Always, Sparse::Never, Sparse::Auto];
    keeps(&options, Options::set_sparse, Options::sparse, sparses);
    let durabilities = [Durability::Each, Durability::End, Durability::None];
    keeps(
        &options,
        Options::set_durability,
        Options::durability,
        durabilities,
    );
    let sets = (0..=Preserve::all().bits()).map(Preserve::from_bits_retain);
    keeps(
        &options,
        Options::set_preserve,
        Options::preserve,
        sets.clone(),
    );
    keeps(&options, Options::set_require, Options::require, sets);
    let window = |source_offset, length, destination_offset| {
        Some(Window {
            source_offset,
            length,
            destination_offset,
        })
    };
    let windows = [
        window(0, None, 0),
        window(1, Some(2), 3),
        window(u64::MAX, Some(u64::MAX), u64::MAX),
        None,
    ];
    keeps(&options, Options::set_window, Options::window, windows);
    let copies = [true, false, true];
    keeps(&options, Options::set_zero_copy, Options::zero_copy, copies);
    let timeouts = [Some(0), Some(1_500_000_001), Some(u64::MAX), None];
    keeps(&options, Options::set_timeout, Options::timeout, timeouts);

    // None of it has become another's.
    assert_eq!(options.existing(), Existing::Skip);
    assert_eq!(options.preserve(), Preserve::all());
    are_new(&others);
    say(format_args!("ok"));
}

fn keeps<T: Copy + PartialEq + Debug>(
    options: &Options,
    set: fn(&Options, T),
    get: fn(&Options) -> T,
    values: impl IntoIterator<Item = T>,
) {
    for value in values {
        set(options, value);
        assert_eq!(get(options), value);
    }
}

fn are_new(options: &Options) {
    assert_eq!(options.existing(), Existing::Write);
    assert_eq!(options.write_mode(), WriteMode::InPlace);
    assert_eq!(options.reflink(), Reflink::Auto);
    assert_eq!(options.sparse(), Sparse::Auto);
    assert_eq!(options.durability(), Durability::None);
    assert_eq!(options.preserve(), Preserve::empty());
    assert_eq!(options.require(), Preserve::empty());
    assert_eq!(options.window(), None);
    assert!(!options.zero_copy());
    assert_eq!(options.timeout(), None);
}
