//! A guest's paths stay beneath the directory that it holds, whatever they look like.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use copyist_engine::{
    Base, Cancel, Cause, Destination, Errno, Handle, Location, Options, ReadOptions, ReadRequest,
    Side, Source, WriteMode,
};
use rustix::fs::RenameFlags;
use tempfile::TempDir;

use crate::support::place::{names_in, open_as_guest};
use crate::support::{
    Place, WRITE_MODES, assert_same, at, beside, copy, follow, handle, pattern, places,
};

const SECRET: &[u8] = b"what no guest may read";

/// A root that a guest holds, and around it what it must not reach.
struct Jail {
    outer: TempDir,
}

impl Jail {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path();
        fs::create_dir_all(path.join("root/sub/deep")).unwrap();
        fs::create_dir(path.join("beside")).unwrap();
        fs::write(path.join("secret"), SECRET).unwrap();
        fs::write(path.join("beside/secret"), SECRET).unwrap();
        fs::write(path.join("root/file"), "inside").unwrap();
        fs::write(path.join("root/sub/file"), "deeper").unwrap();
        let absolute = |name: &str| path.join(name);
        for (link, target) in [
            ("leaf", PathBuf::from("../secret")),
            ("leaf-absolute", absolute("secret")),
            ("up", "..".into()),
            ("beside", "../beside".into()),
            ("beside-absolute", absolute("beside")),
            ("chain", "sub/chain".into()),
            ("sub/chain", "../leaf".into()),
            // Outside and back in again is outside.
            ("back", "../root/file".into()),
            ("back-absolute", absolute("root/file")),
            ("inside", "sub/file".into()),
            ("slash", "file/".into()),
            ("new-outside", "../new".into()),
            ("new-beside", "../beside/new".into()),
        ] {
            symlink(target, path.join("root").join(link)).unwrap();
        }
        Self { outer }
    }

    fn root(&self) -> PathBuf {
        self.outer.path().join("root")
    }

    /// Everything that is there: names, inodes, modes, lengths, bytes.
    fn state(&self) -> Vec<String> {
        let mut state = Vec::new();
        let mut left = vec![self.outer.path().to_owned()];
        while let Some(directory) = left.pop() {
            for name in names_in(&directory) {
                let path = directory.join(name);
                let metadata = path.symlink_metadata().unwrap();
                let content = if metadata.is_file() {
                    fs::read(&path).unwrap()
                } else {
                    Vec::new()
                };
                state.push(format!(
                    "{path:?} {} {:o} {:?}",
                    metadata.ino(),
                    metadata.mode(),
                    String::from_utf8_lossy(&content)
                ));
                if metadata.is_dir() {
                    left.push(path);
                }
            }
        }
        state.sort();
        state
    }

    /// The root, as wasmtime opens a preopen and as anybody else opens a directory.
    fn handles(&self) -> [(&'static str, Handle); 2] {
        [
            ("O_PATH", open_as_guest(&self.root())),
            ("plain", handle(fs::File::open(self.root()).unwrap())),
        ]
    }
}

const ESCAPE: Errno = Errno::PERM;

/// Paths, and what is answered to them as a source: not followed, followed.
fn sources(jail: &Jail) -> Vec<(PathBuf, Errno, Errno)> {
    let absolute = |name: &str| jail.outer.path().join(name);
    let both = |path: PathBuf, errno| (path, errno, errno);
    let mut paths = vec![
        both("../secret".into(), ESCAPE),
        both("sub/../../secret".into(), ESCAPE),
        both("./.././secret".into(), ESCAPE),
        both("../root/file".into(), ESCAPE),
        both(absolute("secret"), ESCAPE),
        both(absolute("root/file"), ESCAPE),
        both("/etc/hostname".into(), ESCAPE),
        both("/".into(), ESCAPE),
        both("..".into(), ESCAPE),
        both("up/secret".into(), ESCAPE),
        both("up/root/file".into(), ESCAPE),
        both("beside/secret".into(), ESCAPE),
        both("beside-absolute/secret".into(), ESCAPE),
        // A slash at the end follows a link, wanted or not.
        both("leaf/".into(), ESCAPE),
        both("leaf-absolute/".into(), ESCAPE),
        both("beside/".into(), ESCAPE),
        both("up/".into(), ESCAPE),
        both("up/.".into(), ESCAPE),
        both("chain/".into(), ESCAPE),
        both("file/".into(), Errno::NOTDIR),
        both("file/.".into(), Errno::NOTDIR),
        both("file/..".into(), Errno::NOTDIR),
        both("inside/".into(), Errno::NOTDIR),
        both(".".into(), Errno::ISDIR),
        both("./".into(), Errno::ISDIR),
        both("sub".into(), Errno::ISDIR),
        both("sub/".into(), Errno::ISDIR),
        both("sub/..".into(), Errno::ISDIR),
        both("".into(), Errno::NOENT),
        both("fi\0le".into(), Errno::INVAL),
        both("file\0".into(), Errno::INVAL),
        both("a".repeat(5000).into(), Errno::NAMETOOLONG),
    ];
    for link in ["leaf", "leaf-absolute", "chain", "back", "back-absolute"] {
        paths.push((link.into(), Errno::LOOP, ESCAPE));
    }
    paths.push(("slash".into(), Errno::LOOP, Errno::NOTDIR));
    paths
}

// https://github.com/advisories/GHSA-vqjp-4c8c-hfgg and its kind,
// https://github.com/bytecodealliance/cap-std/issues/382: a slash after the name of a link.
#[test]
fn cap_std_382_a_source_outside_is_not_read() {
    let jail = Jail::new();
    let before = jail.state();
    let to = Place::disk();
    for (kind, base) in jail.handles() {
        for (path, unfollowed, followed) in sources(&jail) {
            for (location, errno) in [
                (at(&base, &path), unfollowed),
                (follow(&base, &path), followed),
            ] {
                let what = format!("{path:?} beneath {kind}, followed: {}", location.follow);
                let source = Source::Path(location.clone());
                let cause = Cause::Io(Side::Source, errno);
                for write_mode in WRITE_MODES {
                    let options = Options {
                        write_mode,
                        ..Options::default()
                    };
                    let error =
                        copy(source.clone(), to.destination("to"), &options).expect_err(&what);
                    assert_eq!(error.cause, cause, "{what}");
                    assert_eq!(error.path.as_deref(), Some(&*path), "{what}");
                    to.assert_names(&[], &what);
                }
                let request = ReadRequest {
                    source,
                    options: ReadOptions::default(),
                };
                let error = copyist_engine::read(&request, &Cancel::new()).expect_err(&what);
                assert_eq!(error.cause, cause, "{what}");
            }
        }
        // And what is inside is read, however it is reached.
        for (path, content) in [
            ("file", "inside"),
            ("./sub/../file", "inside"),
            ("sub//file", "deeper"),
            ("sub/deep/../file", "deeper"),
            ("inside", "deeper"),
            ("./inside", "deeper"),
        ] {
            let source = Source::Path(follow(&base, path));
            copy(source, to.destination("to"), &Options::default()).unwrap();
            assert_same(&to.read("to"), content.as_bytes(), path);
            fs::remove_file(to.path("to")).unwrap();
        }
    }
    assert_eq!(jail.state(), before);
}

/// Paths as a destination, and what is answered to them: in place not followed and followed, by
/// replacing not followed and followed. `None`: it is written, inside.
type Answers = [Option<Errno>; 4];

fn destinations(jail: &Jail) -> Vec<(PathBuf, Answers)> {
    let absolute = |name: &str| jail.outer.path().join(name);
    let all = |path: PathBuf, errno| (path, [Some(errno); 4]);
    let mut paths = vec![
        all("../new".into(), ESCAPE),
        all("../secret".into(), ESCAPE),
        all("../root/new".into(), ESCAPE),
        all("sub/../../new".into(), ESCAPE),
        all(absolute("new"), ESCAPE),
        all(absolute("secret"), ESCAPE),
        all(absolute("root/new"), ESCAPE),
        all("up/new".into(), ESCAPE),
        all("up/secret".into(), ESCAPE),
        all("up/root/new".into(), ESCAPE),
        all("beside/new".into(), ESCAPE),
        all("beside-absolute/secret".into(), ESCAPE),
        all("file/new".into(), Errno::NOTDIR),
        all("new/".into(), Errno::ISDIR),
        all("sub/".into(), Errno::ISDIR),
        all("sub".into(), Errno::ISDIR),
        all(".".into(), Errno::ISDIR),
        all("sub/.".into(), Errno::ISDIR),
        all("file/".into(), Errno::ISDIR),
        all("leaf/".into(), Errno::ISDIR),
        all("beside/".into(), Errno::ISDIR),
        all("inside/".into(), Errno::ISDIR),
        all("".into(), Errno::NOENT),
        all("ne\0w".into(), Errno::INVAL),
        all("a".repeat(300).into(), Errno::NAMETOOLONG),
        // Refused for what is a directory or for what is outside, whichever is seen first.
        (
            "..".into(),
            [
                Some(ESCAPE),
                Some(ESCAPE),
                Some(Errno::ISDIR),
                Some(Errno::ISDIR),
            ],
        ),
        (
            "/".into(),
            [
                Some(ESCAPE),
                Some(ESCAPE),
                Some(Errno::ISDIR),
                Some(Errno::ISDIR),
            ],
        ),
        (
            "slash".into(),
            [
                Some(Errno::LOOP),
                Some(Errno::NOTDIR),
                None,
                Some(Errno::ISDIR),
            ],
        ),
    ];
    for link in [
        "leaf",
        "leaf-absolute",
        "chain",
        "back",
        "back-absolute",
        "beside",
        "up",
        "new-outside",
        "new-beside",
    ] {
        let up = (link == "up").then_some(Errno::ISDIR);
        paths.push((
            link.into(),
            [
                Some(Errno::LOOP),
                Some(ESCAPE),
                // The link itself is replaced, which stands inside.
                None,
                Some(up.unwrap_or(ESCAPE)),
            ],
        ));
    }
    paths
}

#[test]
fn a_destination_outside_is_not_written() {
    let from = Place::disk();
    from.write("from", pattern(10_000));
    for case in 0..destinations(&Jail::new()).len() {
        for (kind, way) in [0, 1]
            .into_iter()
            .flat_map(|kind| [0, 1, 2, 3].map(|way| (kind, way)))
        {
            let jail = Jail::new();
            let before = jail.state();
            let (path, answers) = destinations(&jail).swap_remove(case);
            let (kind, base) = jail.handles()[kind].clone();
            let (write_mode, follow) = [
                (WriteMode::InPlace, false),
                (WriteMode::InPlace, true),
                (WriteMode::Replace, false),
                (WriteMode::Replace, true),
            ][way];
            let what = format!("{path:?} beneath {kind}, {write_mode:?}, followed: {follow}");
            let location = Location {
                base: Base::Beneath(base),
                path: path.clone(),
                follow,
            };
            let options = Options {
                write_mode,
                ..Options::default()
            };
            let answer = copy(from.source("from"), Destination::Path(location), &options);
            match answers[way] {
                Some(errno) => {
                    let error = answer.expect_err(&what);
                    assert_eq!(error.cause, Cause::Io(Side::Destination, errno), "{what}");
                    assert_eq!(error.path.as_deref(), Some(&*path), "{what}");
                    assert_eq!(jail.state(), before, "{what}");
                }
                None => {
                    answer.expect(&what);
                    let written = jail.root().join(&path);
                    assert!(!written.is_symlink(), "{what}");
                    assert_same(&fs::read(&written).unwrap(), &pattern(10_000), &what);
                    let others = |mut state: Vec<String>| {
                        let this = format!("{written:?} ");
                        state.retain(|line| !line.starts_with(&this));
                        state
                    };
                    assert_eq!(others(jail.state()), others(before), "{what}");
                }
            }
        }
    }
}

#[test]
fn magic_links_lead_nowhere() {
    let outside = Place::disk();
    outside.write("secret", SECRET);
    let secret = outside.open_to_write("secret");
    let directory = outside.path("").to_str().unwrap().to_owned();
    let to = Place::disk();
    to.write("from", pattern(1000));
    let beneath = open_as_guest(Path::new("/proc"));
    let number = secret.as_raw_fd();
    let paths = [
        format!("self/root{directory}/secret"),
        format!("thread-self/root{directory}/secret"),
        format!("self/fd/{number}"),
        format!("self/fd/{}/secret", outside.base.as_raw_fd()),
        format!("self/task/../fd/{number}"),
        "self/exe".to_owned(),
        "self/cwd/Cargo.toml".to_owned(),
    ];
    for path in paths {
        for location in [at(&beneath, &path), follow(&beneath, &path)] {
            let what = format!("{path}, followed: {}", location.follow);
            let error = copy(
                Source::Path(location.clone()),
                to.destination("to"),
                &Options::default(),
            )
            .expect_err(&what);
            assert_eq!(error.cause, Cause::Io(Side::Source, Errno::LOOP), "{what}");
            to.assert_names(&["from"], &what);
            for write_mode in WRITE_MODES {
                let options = Options {
                    write_mode,
                    ..Options::default()
                };
                let error = copy(
                    to.source("from"),
                    Destination::Path(location.clone()),
                    &options,
                )
                .expect_err(&what);
                assert!(
                    matches!(error.cause, Cause::Io(Side::Destination, _)),
                    "{what}: {error}"
                );
                assert_same(&outside.read("secret"), SECRET, &what);
                outside.assert_names(&["secret"], &what);
            }
        }
    }
}

#[test]
fn what_is_no_directory_holds_nothing() {
    let place = Place::disk();
    place.write("file", pattern(10));
    let base = place.open("file");
    for path in ["file", ".", "..", ""] {
        let error = copy(
            Source::Path(at(&base, path)),
            place.destination("to"),
            &Options::default(),
        )
        .unwrap_err();
        assert!(
            matches!(
                error.cause,
                Cause::Io(Side::Source, Errno::NOTDIR | Errno::NOENT)
            ),
            "{path}: {error}"
        );
        for write_mode in WRITE_MODES {
            let options = Options {
                write_mode,
                ..Options::default()
            };
            let error = copy(
                place.source("file"),
                Destination::Path(at(&base, path)),
                &options,
            )
            .unwrap_err();
            assert!(
                matches!(error.cause, Cause::Io(Side::Destination, _)),
                "{path}: {error}"
            );
        }
    }
    place.assert_names(&["file"], "nothing was made");
}

#[test]
fn only_who_gives_up_the_sandbox_goes_anywhere() {
    let jail = Jail::new();
    let ambient = |path: PathBuf| Location {
        base: Base::Ambient(copyist_engine::ambient_authority()),
        path,
        follow: true,
    };
    for write_mode in WRITE_MODES {
        let options = Options {
            write_mode,
            durability: copyist_engine::Durability::Each,
            ..Options::default()
        };
        let from = Source::Path(ambient(jail.root().join("leaf-absolute")));
        let to = Destination::Path(ambient(jail.root().join("beside/secret")));
        copy(from, to, &options).unwrap();
        assert_same(
            &fs::read(jail.root().join("../beside/secret")).unwrap(),
            SECRET,
            "secret",
        );
    }
}

// A name that is a file at one moment and a link out of the root at the next, and a directory the
// same (https://github.com/uutils/coreutils/issues/10017, CVE-2018-15664).
#[test]
fn uutils_10017_names_that_change_meanwhile_lead_nowhere_either() {
    for outside in places() {
        outside.write("secret", SECRET);
        fs::create_dir(outside.path("root")).unwrap();
        fs::create_dir(outside.path("root/directory")).unwrap();
        let inside = |name: &str| outside.path("root").join(name);
        fs::write(inside("file"), "inside").unwrap();
        fs::write(inside("directory/secret"), "inside").unwrap();
        symlink("../secret", inside("other file")).unwrap();
        symlink("..", inside("other directory")).unwrap();
        let base = open_as_guest(&outside.path("root"));
        let to = Place::disk();
        let swap = |one: &str, two: &str| {
            rustix::fs::renameat_with(&base, one, &base, two, RenameFlags::EXCHANGE).unwrap();
        };
        let swap_both = || {
            swap("file", "other file");
            swap("directory", "other directory");
        };
        beside(swap_both, || {
            let (mut copied, mut refused) = (0, 0);
            // Until the race was run: some are neither none nor all.
            for round in 0.. {
                if round >= 500 && copied > 0 && refused > 0 {
                    break;
                }
                // A replaced name may have been the link just then.
                if !inside("file").is_symlink() && !inside("other file").is_symlink() {
                    symlink("../secret", inside("link")).unwrap();
                    fs::rename(inside("link"), inside("other file")).unwrap();
                }
                let path = ["file", "directory/secret"][round % 2];
                for write_mode in WRITE_MODES {
                    let options = Options {
                        write_mode,
                        ..Options::default()
                    };
                    let source = Source::Path(follow(&base, path));
                    match copy(source, to.destination("to"), &options) {
                        Ok(_) => {
                            copied += 1;
                            assert_same(&to.read("to"), b"inside", path);
                        }
                        Err(_) => refused += 1,
                    }
                    to.write("new", "inside");
                    let destination = Destination::Path(follow(&base, path));
                    let _ = copy(to.source("new"), destination, &options);
                    assert_same(&outside.read("secret"), SECRET, "secret");
                }
            }
        });
        outside.assert_names(&["root", "secret"], "nothing was made outside");
    }
}
