//! Files of procfs and sysfs: their size says nothing.

use std::fs;
use std::path::Path;

use copyist_engine::{
    Cancel, Mechanism, Options, ReadOptions, ReadRequest, Source, Tuning, Window,
};

use crate::support::place::open_as_guest;
use crate::support::{assert_same, at, copy, every_way, file, handle, other, places, skipped};

/// Of procfs: a size of 0. Of sysfs: one of 4096, or of an attribute's own.
const FILES: [&str; 14] = [
    "/proc/version",
    "/proc/filesystems",
    "/proc/self/cmdline",
    "/proc/self/mounts",
    "/proc/self/environ",
    "/proc/cpuinfo",
    "/proc/crypto",
    "/proc/net/unix",
    "/proc/sys/kernel/ostype",
    "/proc/kallsyms",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/uevent_seqnum",
    "/sys/devices/system/cpu/online",
    "/sys/kernel/notes",
];

/// What the file holds, if that stays the same for the time of `between`.
fn while_unchanged<T>(path: &str, mut between: impl FnMut() -> T) -> Option<(Vec<u8>, T)> {
    for _ in 0..20 {
        let before = match fs::read(path) {
            Ok(before) => before,
            Err(error) => {
                skipped(&format!("{path}: {error}"));
                return None;
            }
        };
        let answer = between();
        if fs::read(path).is_ok_and(|after| after == before) {
            return Some((before, answer));
        }
    }
    skipped(&format!("{path} changes all the time"));
    None
}

fn source(path: &str, by_descriptor: bool) -> Source {
    let path = Path::new(path);
    if by_descriptor {
        return Source::File(handle(fs::File::open(path).unwrap()));
    }
    let root = path.ancestors().nth(path.components().count() - 2).unwrap();
    Source::Path(at(&open_as_guest(root), path.strip_prefix(root).unwrap()))
}

// https://github.com/nodejs/node/issues/43669, https://github.com/dotnet/runtime/issues/55358,
// https://github.com/denoland/deno/issues/12839: a size of 0 or 4096 was believed.
// https://bugs.openjdk.org/browse/JDK-8269074, https://github.com/golang/go/issues/44272: what
// sendfile and copy_file_range say to them came out, or nothing was copied.
// https://github.com/nodejs/node/issues/50437: a read that is shorter than its buffer was the end.
// https://github.com/oven-sh/bun/issues/41677: a file as long as the size says, with a NUL tail.
#[test]
fn node_43669_jdk_8269074_go_44272_virtual_files_are_copied_to_their_real_end() {
    for place in places() {
        for path in FILES {
            for by_descriptor in [false, true] {
                for (way, tuning) in every_way() {
                    for (existing, to_descriptor) in [(false, false), (true, false), (true, true)] {
                        // Once is enough of the large ones.
                        if path == "/proc/kallsyms" && (existing || by_descriptor) {
                            continue;
                        }
                        let options = Options {
                            tuning,
                            ..Options::default()
                        };
                        let run = || {
                            // What these files do not let anybody write their copies do neither.
                            let _ = fs::remove_file(place.path("to"));
                            if existing {
                                place.write("to", other(20_000));
                            }
                            let destination = if to_descriptor {
                                file(&place.open_to_write("to"))
                            } else {
                                place.destination("to")
                            };
                            copy(source(path, by_descriptor), destination, &options)
                        };
                        let what = format!("{path} by {way}");
                        let Some((expected, answer)) = while_unchanged(path, run) else {
                            continue;
                        };
                        if tuning.only.is_some_and(|only| only != Mechanism::ReadWrite)
                            && answer.is_err()
                        {
                            continue;
                        }
                        let summary = answer.expect(&what);
                        assert_same(&place.read("to"), &expected, &what);
                        assert_eq!(summary.bytes, expected.len() as u64, "{what}");
                        assert!(!summary.changed, "{what}: it did not change");
                    }
                }
            }
        }
    }
}

// These are never twice the same: they have all their lines, and their last line is whole.
#[test]
fn what_changes_all_the_time_is_copied_to_its_end_too() {
    for place in places() {
        for (path, first, last) in [
            ("/proc/self/status", "Name:", "nonvoluntary_ctxt_switches:"),
            ("/proc/self/maps", "", "vsyscall]"),
            ("/proc/meminfo", "MemTotal:", "kB"),
        ] {
            let plain = fs::read_to_string(path).unwrap();
            if !plain.trim_end().lines().last().unwrap().contains(last) {
                skipped(&format!("{path} ends otherwise here"));
                continue;
            }
            for tuning in [Tuning::default(), crate::support::fallback()] {
                let options = Options {
                    tuning,
                    ..Options::default()
                };
                let _ = fs::remove_file(place.path("to"));
                copy(source(path, false), place.destination("to"), &options).unwrap();
                let copied = String::from_utf8(place.read("to")).unwrap();
                assert!(copied.starts_with(first), "{path}: {copied}");
                assert!(copied.ends_with('\n'), "{path}: {copied}");
                let end = copied.lines().last().unwrap();
                assert!(end.contains(last), "{path}: {end}");
            }
        }
    }
}

#[test]
fn whole_reads_see_the_real_end_and_windows_theirs() {
    for path in FILES {
        for by_descriptor in [false, true] {
            let read = |window| {
                let request = ReadRequest {
                    source: source(path, by_descriptor),
                    options: ReadOptions {
                        window,
                        ..ReadOptions::default()
                    },
                };
                copyist_engine::read(&request, &Cancel::new()).unwrap()
            };
            if let Some((expected, bytes)) = while_unchanged(path, || read(None)) {
                assert_same(&bytes, &expected, path);
            }
            let window = Window {
                source_offset: 3,
                length: Some(4),
                destination_offset: 0,
            };
            if let Some((expected, bytes)) = while_unchanged(path, || read(Some(window))) {
                let part = &expected[3.min(expected.len())..7.min(expected.len())];
                assert_same(&bytes, part, path);
            }
        }
    }
}
