//! No path leaves the directory that it starts at, whatever stands in its way; and those that stay
//! are found. The directories are as wasmtime opens them: `O_PATH`, good for nothing but this.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, symlink};

use copyist_test_artifacts::{READ_FILE, TRANSFER_PATH, VERBATIM};
use rustix::fs::{CWD, FileType, Mode};

use crate::answer::Answer;
use crate::host::{Guest, Linking};
use crate::place::{Place, fnv1a};

const SECRET: &[u8] = b"nobody's business";
const OURS: &[u8] = b"ours";

/// A directory `root` with links in it that lead out and that do not, and a secret beside it.
fn jail() -> Place {
    let place = Place::with("secret", SECRET);
    fs::create_dir_all(place.path("root/sub")).unwrap();
    place.write("root/a", OURS);
    let secret = place.path("secret");
    for (link, target) in [
        ("out", "../secret".as_ref()),
        ("out-far", "sub/../../secret".as_ref()),
        ("out-absolute", secret.as_path()),
        ("out-slash", "../secret/".as_ref()),
        ("out-by-link", "out".as_ref()),
        ("up", "..".as_ref()),
        ("away", place.root()),
        ("new-out", "../new".as_ref()),
        ("in", "a".as_ref()),
        ("in-by-link", "in".as_ref()),
        ("sub/up", "..".as_ref()),
        ("nowhere", "absent".as_ref()),
        ("round", "round".as_ref()),
    ] {
        symlink(target, place.path("root").join(link)).unwrap();
    }
    place
}

/// What leads to the secret.
fn ways_out(place: &Place) -> Vec<String> {
    let mut ways: Vec<_> = [
        "../secret",
        "sub/../../secret",
        "./../secret",
        "..//secret",
        "out",
        "out-far",
        "out-absolute",
        "out-by-link",
        "up/secret",
        "away/secret",
        "sub/up/out",
        "sub/up/up/secret",
        // An escape by a slash at the end has been known:
        // https://github.com/bytecodealliance/wasmtime/security/advisories/GHSA-vqjp-4c8c-hfgg
        "out/",
        "out/.",
        "out-slash",
        "out-slash/",
        "up/secret/",
        "../secret/",
        "up",
        "up/",
        "..",
        "../",
    ]
    .map(str::to_owned)
    .into();
    let absolute = place.path("secret").into_os_string().into_string().unwrap();
    ways.push(format!("/{absolute}"));
    ways.push(absolute);
    ways.push("/".to_owned());
    ways
}

/// Runs a copy from `from` to `to`, both as they are.
fn copy(linking: Linking, place: &Place, words: &[&str]) -> Answer {
    Guest::new(TRANSFER_PATH)
        .dir(place.path("root"), "w")
        .args(["--from-dir=w", "--to-dir=w"])
        .args(words.to_vec())
        .run(linking)
        .answer()
}

/// The same way to where nothing is.
fn to_nothing(way: &str) -> String {
    way.replace("secret", "nothing")
}

#[test]
fn no_source_is_found_outside() {
    for linking in Linking::BOTH {
        let place = jail();
        let before = place.snapshot();
        for way in ways_out(&place) {
            for mode in [&[][..], &["--replace"]] {
                // Nor does the answer tell whether anything is there.
                for way in [way.clone(), to_nothing(&way)] {
                    let words = [&[&*way, "b"], mode].concat();
                    let answer = copy(linking, &place, &words).failed("not-permitted", "source");
                    assert_eq!(answer.get("path"), way);
                }
            }
            for call in ["bytes", "text"] {
                let guest = Guest::new(VERBATIM).dir(place.path("root"), "w");
                let guest = guest.args([call, "--dir=w", &way]);
                let ended = guest.run(linking);
                let said = ended.output();
                assert!(said.contains("\"not-permitted\""), "{way}: {said}");
            }
        }
        assert!(place.snapshot() == before, "something has changed");
    }
}

#[test]
fn no_destination_is_written_or_made_outside() {
    for linking in Linking::BOTH {
        let place = jail();
        let before = place.snapshot();
        let mut ways = ways_out(&place);
        ways.push("new-out".to_owned());
        for way in ways {
            for mode in [
                &[][..],
                &["--existing=refuse"],
                &["--existing=update"],
                &["--replace"],
            ] {
                let causes = [way.clone(), to_nothing(&way)].map(|way| {
                    let words = [&["a", &*way], mode].concat();
                    let answer = copy(linking, &place, &words);
                    let cause = answer.get("cause").to_owned();
                    let answer = answer.failed(&cause, "destination");
                    assert_eq!(answer.get("path"), way);
                    cause
                });
                assert_eq!(causes[0], causes[1], "{way} {mode:?} tells what is there");
                assert!(
                    refuses(&way, mode, &causes[0]),
                    "{way} {mode:?}: {}",
                    causes[0]
                );
            }
        }
        assert!(place.snapshot() == before, "something has changed");
    }
}

/// Whether a cause is one for which such a destination may be refused: that it leads out; or before
/// anybody asks where it leads, that the name itself exists, or is written like a directory's.
fn refuses(way: &str, mode: &[&str], cause: &str) -> bool {
    let is_a_link_here = ["out", "up", "new"].iter().any(|link| way.contains(link));
    let like_a_directory = way.ends_with(['/', '.']) || ["up", "out-slash"].contains(&way);
    match cause {
        "not-permitted" => true,
        "exist" => mode == ["--existing=refuse"] && is_a_link_here,
        "is-directory" => like_a_directory,
        _ => false,
    }
}

#[test]
fn what_stays_inside_is_found() {
    for linking in Linking::BOTH {
        for mode in [&[][..], &["--replace"]] {
            for way in [
                "a",
                "./a",
                "sub/../a",
                "sub/up/a",
                "in",
                "in-by-link",
                "sub//../a",
                "sub/up/sub/up/in",
            ] {
                let place = jail();
                let words = [&[way, "b"], mode].concat();
                copy(linking, &place, &words).done();
                place.assert_holds("root/b", OURS);

                place.write("root/b", b"theirs");
                let words = [&["b", way], mode].concat();
                copy(linking, &place, &words).done();
                place.assert_holds("root/a", b"theirs");
                // A link that is followed stays.
                assert!(place.stat("root/in").is_symlink());
            }
        }
    }
}

#[test]
fn what_is_no_file_is_said_to_be_none() {
    let table = [
        ("sub", "is-directory", "is-directory"),
        ("sub/", "is-directory", "is-directory"),
        (".", "is-directory", "is-directory"),
        ("sub/..", "is-directory", "is-directory"),
        // A destination that ends so names a directory, before anybody looks (open(2), O_CREAT).
        ("a/", "not-directory", "is-directory"),
        ("in/", "not-directory", "is-directory"),
        ("a/b", "not-directory", "not-directory"),
        ("round", "loop", "loop"),
        ("round/b", "loop", "loop"),
        ("nowhere", "no-entry", "no-entry"),
        ("absent/b", "no-entry", "no-entry"),
        ("", "no-entry", "no-entry"),
    ];
    for linking in Linking::BOTH {
        let place = jail();
        let before = place.snapshot();
        for (way, as_source, as_destination) in table {
            for mode in [&[][..], &["--replace"]] {
                let words = [&[way, "b"], mode].concat();
                copy(linking, &place, &words).failed(as_source, "source");
                let words = [&["a", way], mode].concat();
                copy(linking, &place, &words).failed(as_destination, "destination");
            }
        }
        assert!(place.snapshot() == before, "something has changed");
    }
}

#[test]
fn a_link_that_is_not_to_be_followed_is_not() {
    for linking in Linking::BOTH {
        for link in ["in", "out", "up", "nowhere", "round"] {
            let place = jail();
            let before = place.snapshot();
            let from = ["--no-follow-source", link, "b"];
            copy(linking, &place, &from).failed("loop", "source");
            let to = ["--no-follow-destination", "a", link];
            copy(linking, &place, &to).failed("loop", "destination");
            assert!(place.snapshot() == before, "{link}: something has changed");

            // The name itself is replaced, whatever it leads to.
            let to = ["--no-follow-destination", "--replace", "a", link];
            copy(linking, &place, &to).done();
            let name = format!("root/{link}");
            assert!(place.stat(&name).is_file(), "{link}");
            place.assert_holds(&name, OURS);
            place.assert_holds("secret", SECRET);
            place.assert_holds("root/a", OURS);
        }
    }
}

/// The links of /proc lead wherever a descriptor does, beneath nothing.
#[test]
#[cfg(target_os = "linux")]
fn no_magic_link_is_followed() {
    for linking in Linking::BOTH {
        let place = jail();
        let before = place.snapshot();
        let secret = fs::File::options()
            .read(true)
            .write(true)
            .open(place.path("secret"))
            .unwrap();
        let descriptor = format!("fd/{}", secret.as_raw_fd());
        let by_root = format!("root{}", place.path("secret").display());
        let guest = || {
            Guest::new(TRANSFER_PATH)
                .dir("/proc/self", "proc")
                .dir(place.path("root"), "w")
        };
        for way in [&*descriptor, &*by_root, "exe", "cwd/Cargo.toml"] {
            for flags in [&[][..], &["--replace"], &["--no-follow-source"]] {
                let ended = guest()
                    .args(["--from-dir=proc", "--to-dir=w", way, "b"])
                    .args(flags.to_vec())
                    .run(linking);
                ended.answer().failed("loop", "source");
            }
            let ended = Guest::new(READ_FILE)
                .dir("/proc/self", "proc")
                .args([format!("proc/{way}")])
                .run(linking);
            ended.answer().failed("loop", "source");
        }
        for way in [&*descriptor, &*by_root, "cwd/new"] {
            for flags in [&[][..], &["--existing=skip"], &["--replace"]] {
                let ended = guest()
                    .args(["--from-dir=w", "--to-dir=proc", "a", way])
                    .args(flags.to_vec())
                    .run(linking);
                let answer = ended.answer();
                if flags == ["--existing=skip"] && way == descriptor {
                    // The name is there, and stays.
                    assert_eq!(answer.done().number("skipped"), 1);
                    continue;
                }
                // As a link that leads to an absolute path, where its text is read.
                let cause = if flags == ["--replace"] && way == descriptor {
                    "not-permitted"
                } else {
                    "loop"
                };
                answer.failed(cause, "destination");
            }
        }
        assert!(place.snapshot() == before, "something has changed");
    }
}

/// wasi:filesystem itself hangs in open(2) on a FIFO without a peer.
#[test]
fn a_sockets_name_is_refused_and_so_is_a_fifo_where_only_a_file_will_do() {
    for linking in Linking::BOTH {
        let place = jail();
        let fifo = place.path("root/fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path("root/socket")).unwrap();
        for name in ["fifo", "socket"] {
            for mode in [&[][..], &["--replace"]] {
                let waits = name == "fifo";
                if !waits {
                    let words = [&[name, "b"], mode].concat();
                    let answer = copy(linking, &place, &words).failed("unsupported", "source");
                    assert_eq!(answer.get("path"), name);
                }
                if waits && mode.is_empty() {
                    continue;
                }
                let words = [&["a", name], mode].concat();
                let answer = copy(linking, &place, &words).failed("unsupported", "destination");
                assert_eq!(answer.get("path"), name);
            }
            let ended = Guest::new(READ_FILE)
                .dir(place.path("root"), "w")
                .args([format!("w/{name}")])
                .run(linking);
            ended.answer().failed("unsupported", "source");
        }
        assert!(place.stat("root/fifo").file_type().is_fifo());
        assert!(place.stat("root/socket").file_type().is_socket());
        assert!(!place.exists("root/b"));
    }
}

/// The granted directory may itself be reached by a link, and be moved meanwhile.
#[test]
fn a_granted_directory_is_the_one_that_was_granted() {
    for linking in Linking::BOTH {
        let place = jail();
        symlink(place.path("root"), place.path("link")).unwrap();
        let guest = Guest::new(TRANSFER_PATH)
            .dir(place.path("link"), "w")
            .args(["w/a", "w/b"]);
        let prepared = guest.prepare(linking);
        fs::rename(place.path("root"), place.path("moved")).unwrap();
        prepared.run().answer().done();
        place.assert_holds("moved/b", OURS);
    }
}

#[test]
fn a_read_by_path_reads_what_is_there() {
    for linking in Linking::BOTH {
        let place = jail();
        for way in ["a", "in", "in-by-link", "sub/../a", "sub/up/a"] {
            let ended = Guest::new(READ_FILE)
                .read_only_dir(place.path("root"), "w")
                .args([format!("w/{way}")])
                .run(linking);
            assert_eq!(ended.answer().done().get("fnv"), fnv1a(OURS));
        }
    }
}
