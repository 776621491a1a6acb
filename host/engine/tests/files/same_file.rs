//! A copy of a file onto itself, by whatever names: refused, and the file untouched.

use std::fs;
use std::os::unix::fs::symlink;

use copyist_engine::{Base, Cause, Destination, Existing, Location, Options, Source, WriteMode};

use crate::support::{
    Place, WRITE_MODES, assert_same, at, copy, every_way, file, follow, handle, is_root, kernel,
    pattern, places, refusal, skipped,
};

// https://github.com/nodejs/node/issues/34624, https://github.com/oven-sh/bun/pull/43388,
// https://github.com/oven-sh/bun/issues/37962: the file was emptied.
#[test]
fn node_34624_bun_43388_a_file_is_not_copied_onto_itself_by_any_name() {
    for place in places() {
        let bytes = pattern(100_000);
        place.write("file", &bytes);
        place.set_mode("file", 0o640);
        fs::create_dir(place.path("sub")).unwrap();
        fs::hard_link(place.path("file"), place.path("hard")).unwrap();
        fs::hard_link(place.path("file"), place.path("sub/hard")).unwrap();
        symlink("file", place.path("soft")).unwrap();
        symlink("soft", place.path("chain")).unwrap();
        symlink("sub", place.path("way")).unwrap();
        let names = place.names();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let before = fs::metadata(place.path("file")).unwrap();

        let paths = [
            "file",
            "./file",
            "sub/../file",
            "hard",
            "sub/hard",
            "way/hard",
            "soft",
            "chain",
        ];
        let mut sources: Vec<_> = paths
            .iter()
            .map(|path| (*path, Source::Path(follow(&place.base, path))))
            .collect();
        sources.push(("a descriptor", Source::File(place.open("hard"))));
        let mut destinations: Vec<_> = paths
            .iter()
            .map(|path| (*path, Destination::Path(follow(&place.base, path))))
            .collect();
        destinations.push(("a descriptor", file(&place.open_to_write("hard"))));

        for (from, source) in &sources {
            for (to, destination) in &destinations {
                for write_mode in WRITE_MODES {
                    if matches!(destination, Destination::File(_))
                        && write_mode == WriteMode::Replace
                    {
                        continue;
                    }
                    for (way, tuning) in every_way() {
                        let options = Options {
                            write_mode,
                            tuning,
                            ..Options::default()
                        };
                        let what = format!("{from} to {to}, {write_mode:?}, {way}");
                        let cause = refusal(source.clone(), destination.clone(), &options);
                        assert_eq!(cause, Cause::SameFile, "{what}");
                        assert_same(&place.read("file"), &bytes, &what);
                        place.assert_names(&names, &what);
                    }
                    // Where nothing would be written, nothing is wrong.
                    let options = Options {
                        write_mode,
                        existing: Existing::Skip,
                        ..Options::default()
                    };
                    let summary = copy(source.clone(), destination.clone(), &options).unwrap();
                    assert_eq!(summary.skipped, 1, "{from} to {to}");
                }
            }
        }
        let after = fs::metadata(place.path("file")).unwrap();
        assert_eq!(after.modified().unwrap(), before.modified().unwrap());
        assert_eq!(place.mode("file"), 0o640);
    }
}

#[test]
fn one_directory_by_two_mounts_is_one_directory() {
    if !is_root("a bind mount") {
        return;
    }
    for place in places() {
        place.write("file", pattern(100_000));
        let bind = match kernel::bind(&place.path("")) {
            Ok(bind) => handle(bind),
            Err(error) => return skipped(&format!("a bind mount: {error}")),
        };
        for write_mode in WRITE_MODES {
            let options = Options {
                write_mode,
                ..Options::default()
            };
            let cause = refusal(
                place.source("file"),
                Destination::Path(at(&bind, "file")),
                &options,
            );
            assert_eq!(cause, Cause::SameFile, "{write_mode:?}");
            assert_same(&place.read("file"), &pattern(100_000), "file");
            // Another file of the other mount is another file, between mounts or not.
            copy(
                place.source("file"),
                Destination::Path(at(&bind, "other")),
                &options,
            )
            .unwrap();
            assert_same(&place.read("other"), &pattern(100_000), "other");
        }
    }
}

// https://github.com/oven-sh/bun/issues/37962: /proc/self/fd is one more name.
#[test]
fn bun_37962_a_descriptors_name_is_a_name_too() {
    let place = Place::disk();
    place.write("file", pattern(100_000));
    let open = place.open("file");
    let number = std::os::fd::AsRawFd::as_raw_fd(&*open);
    // No guest gets there (`escape.rs`); the command line does.
    let ambient = |path: String| Location {
        base: Base::Ambient(copyist_engine::ambient_authority()),
        path: path.into(),
        follow: true,
    };
    for write_mode in WRITE_MODES {
        let options = Options {
            write_mode,
            ..Options::default()
        };
        let name = format!("/proc/self/fd/{number}");
        let cause = refusal(
            place.source("file"),
            Destination::Path(ambient(name.clone())),
            &options,
        );
        assert_eq!(cause, Cause::SameFile, "{write_mode:?}");
        let cause = refusal(
            Source::Path(ambient(name)),
            place.destination("file"),
            &options,
        );
        assert_eq!(cause, Cause::SameFile, "{write_mode:?}");
        assert_same(&place.read("file"), &pattern(100_000), "file");
    }
}

// A link that is not followed is a name of its own, which may be replaced.
#[test]
fn a_link_to_the_source_can_be_replaced_by_a_copy_of_it() {
    let place = Place::disk();
    place.write("file", pattern(1000));
    symlink("file", place.path("link")).unwrap();
    copy(
        place.source("file"),
        place.destination("link"),
        &crate::support::replacing(),
    )
    .unwrap();
    assert_ne!(place.inode("link"), place.inode("file"));
    assert_same(&place.read("link"), &pattern(1000), "link");
    assert_same(&place.read("file"), &pattern(1000), "file");
}
