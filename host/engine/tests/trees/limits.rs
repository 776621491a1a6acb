//! Bounds on a tree, and what is left out of it.

use std::path::Path;
use std::sync::Arc;

use copyist_engine::{
    Cause, Exclude, Limit, Limits, Options, Quota, TreeLimits, TreeOptions, Unsupported, Window,
};

use crate::support::Place;

fn made() -> Place {
    let place = Place::new();
    for name in ["1", "2", "3"] {
        for file in ["a", "b"] {
            place.write(format!("from/{name}/sub/{file}"), [0; 1000]);
        }
    }
    place
}

#[test]
fn no_more_entries_than_are_allowed() {
    let place = made();
    for threads in [1, 4] {
        for most in [0, 1, 2, 7, 12] {
            let options = TreeOptions {
                limits: TreeLimits {
                    entries: Some(most),
                    ..TreeLimits::default()
                },
                keep_going: true,
                ..TreeOptions::default()
            };
            let to = format!("to-{threads}-{most}");
            let (outcome, _) = place.copy_by(threads, "from", &to, &options);
            let error = outcome.unwrap_err();
            assert_eq!(error.cause, Cause::Limit(Limit::Entries));
            assert!(error.done.files + error.done.directories <= most);
        }
    }
    let options = TreeOptions {
        limits: TreeLimits {
            entries: Some(13),
            ..TreeLimits::default()
        },
        ..TreeOptions::default()
    };
    place.copy("from", "all", &options).unwrap();
}

#[test]
fn no_deeper_than_is_allowed() {
    let place = made();
    let options = |depth| TreeOptions {
        limits: TreeLimits {
            depth: Some(depth),
            ..TreeLimits::default()
        },
        ..TreeOptions::default()
    };
    for depth in [0, 1, 2] {
        let to = format!("to-{depth}");
        let error = place.copy("from", &to, &options(depth)).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::Depth), "{depth}");
    }
    assert_eq!(place.copy("from", "all", &options(3)).unwrap().files, 6);
}

/// The bytes of all its files count together, and against what others have left.
#[test]
fn no_more_bytes_than_are_allowed() {
    let place = made();
    for threads in [1, 4] {
        let options = |bytes, total| TreeOptions {
            entries: Options {
                limits: Limits { bytes, total },
                ..Options::default()
            },
            ..TreeOptions::default()
        };
        let to = |name: &str| format!("{name}-{threads}");
        let copy = |to: &str, options: &TreeOptions| place.copy_by(threads, "from", to, options).0;
        let error = copy(&to("bytes"), &options(Some(3500), None)).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::Bytes));
        assert!(error.done.bytes <= 3500);
        let quota = Arc::new(Quota::new(10_000));
        let both = options(Some(6000), Some(quota.clone()));
        assert_eq!(copy(&to("both"), &both).unwrap().bytes, 6000);
        assert_eq!(quota.left(), 4000);
        let error = copy(&to("total"), &both).unwrap_err();
        assert_eq!(error.cause, Cause::Limit(Limit::TotalBytes));
        assert_eq!(quota.left(), 4000 - error.done.bytes);
    }
}

#[test]
fn a_window_of_a_tree_is_none() {
    let place = made();
    let options = TreeOptions {
        entries: Options {
            window: Some(Window {
                source_offset: 0,
                length: Some(1),
                destination_offset: 0,
            }),
            ..Options::default()
        },
        ..TreeOptions::default()
    };
    let error = place.copy("from", "to", &options).unwrap_err();
    assert_eq!(error.cause, Cause::Unsupported(Unsupported::Window));
    assert_eq!(place.names(""), ["from"]);
}

#[derive(Debug)]
struct Named(&'static str);

impl Exclude for Named {
    fn is_excluded(&self, path: &Path, is_directory: bool) -> bool {
        assert_eq!(is_directory, !path.ends_with("a") && !path.ends_with("b"));
        path == Path::new(self.0)
    }
}

#[test]
fn what_is_excluded_is_left_out_with_all_beneath() {
    let place = made();
    for (path, files, directories, skipped) in [
        ("1/sub/a", 5, 7, 1),
        ("2", 4, 5, 1),
        ("2/sub", 4, 6, 1),
        ("sub", 6, 7, 0),
    ] {
        let options = TreeOptions {
            exclude: Some(Arc::new(Named(path))),
            ..TreeOptions::default()
        };
        let to = format!("without-{}", path.replace('/', "-"));
        let summary = place.copy("from", &to, &options).unwrap();
        let counts = (summary.files, summary.directories, summary.skipped);
        assert_eq!(counts, (files, directories, skipped), "{path}");
        assert!(!place.path(to).join(path).exists());
    }
}
