//! A source that begins somewhere in its file: all else is as if nothing came before.

use copyist_engine::{Cause, Errno, Options, Side, Tuning, Window};

use crate::support::{
    WRITE_MODES, assert_same, byte_movers, copy, fallback, only, other, pairs, pattern, refusal,
};

const SIZE: usize = 70_001;

#[test]
fn what_comes_before_is_no_part_of_it() {
    let source = pattern(SIZE);
    for (from, to, same_device) in pairs() {
        from.write("from", &source);
        for tuning in byte_movers()
            .map(only)
            .into_iter()
            .chain([Tuning::default(), fallback()])
        {
            if tuning.only == Some(copyist_engine::Mechanism::CopyRange) && !same_device {
                continue;
            }
            for start in [0, 1, 4096, SIZE - 1, SIZE, SIZE + 1] {
                for write_mode in WRITE_MODES {
                    // Longer than what it becomes: it is cut, as it is not where a window is given.
                    to.write("to", other(2 * SIZE));
                    let options = Options {
                        source_start: start as u64,
                        write_mode,
                        tuning,
                        ..Options::default()
                    };
                    let what = format!("{options:?}, {} to {}", from.name, to.name);
                    let done = copy(from.source("from"), to.destination("to"), &options);
                    let wanted = &source[start.min(SIZE)..];
                    assert_eq!(done.expect(&what).bytes, wanted.len() as u64, "{what}");
                    assert_same(&to.read("to"), wanted, &what);
                }
            }
        }
    }
}

#[test]
fn a_window_counts_from_there() {
    let source = pattern(SIZE);
    for (from, to, _) in pairs() {
        from.write("from", &source);
        to.write("to", b"");
        let mut options = Options {
            source_start: 10,
            window: Some(Window {
                source_offset: 5,
                length: Some(100),
                destination_offset: 0,
            }),
            ..Options::default()
        };
        copy(from.source("from"), to.destination("to"), &options).unwrap();
        assert_same(&to.read("to"), &source[15..115], "15 to 115");
        options.source_start = i64::MAX.cast_unsigned() - 50;
        assert_eq!(
            refusal(from.source("from"), to.destination("to"), &options),
            Cause::Io(Side::Source, Errno::OVERFLOW)
        );
    }
}
