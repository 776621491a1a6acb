//! Descriptors that the caller holds too, and that block: no call sleeps on one, and none of them is
//! any different afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use copyist_engine::sys::Way;
use copyist_engine::{Cause, Destination, Errno, Handle, Mechanism, Options, Side, Source};
use rustix::fs::OFlags;
use rustix::pipe::PIPE_BUF;

use super::support::{
    Call, Place, Running, Watched, both_ways, copy, drain, fill, from, into, non_blocking, pattern,
    pipe, put, socket, take, tcp, terminal,
};

/// More than a pipe, a socket or a terminal holds.
const LENGTH: usize = 1_000_000;

/// The same stream, to be held beside the copy.
fn held(fd: &impl AsFd) -> Handle {
    Arc::new(File::from(fd.as_fd().try_clone_to_owned().unwrap()))
}

fn flags(fd: impl AsFd) -> OFlags {
    rustix::fs::fcntl_getfl(fd).unwrap()
}

fn collect(fd: impl Into<OwnedFd>, length: usize) -> JoinHandle<Vec<u8>> {
    let fd = fd.into();
    thread::spawn(move || take(&fd, length))
}

/// A system on which nothing can be opened once more: there is no procfs.
fn without_procfs(deny: fn(Call) -> Option<Errno>) -> Arc<Watched> {
    Watched::with(move |call| match call {
        Call::Reopen => Some(Errno::NOENT),
        call => deny(call),
    })
}

/// As before preadv2(2) knew of pipes and sockets.
fn no_wait_is_unknown(call: Call) -> Option<Errno> {
    match call {
        Call::Read(Way::NoWait) | Call::Write(Way::NoWait, _) => Some(Errno::OPNOTSUPP),
        _ => None,
    }
}

/// As where a filter denies it.
fn no_wait_and_messages_are_denied(call: Call) -> Option<Errno> {
    match call {
        Call::Read(Way::Message) | Call::Write(Way::Message, _) => Some(Errno::PERM),
        call => no_wait_is_unknown(call),
    }
}

type Start = fn() -> Arc<Watched>;

/// All that a system can have and lack.
const SYSTEMS: [(&str, Start); 4] = [
    ("all", Watched::new),
    ("no procfs", || without_procfs(|_| None)),
    ("no RWF_NOWAIT", || without_procfs(no_wait_is_unknown)),
    ("nothing", || {
        without_procfs(no_wait_and_messages_are_denied)
    }),
];

/// What the copy is given, what the test holds of the same stream, and the other side.
struct End {
    name: &'static str,
    given: Handle,
    peer: OwnedFd,
}

fn sources() -> Vec<End> {
    let end = |name, fd: &dyn AsFd, peer: OwnedFd| End {
        name,
        given: held(&fd.as_fd()),
        peer,
    };
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_reader);
    let (ours, theirs) = socket();
    let (tcp_ours, tcp_theirs) = tcp();
    vec![
        end("pipe", &reader, writer),
        end("open pipe", &open_reader, open_writer),
        end("socket", &ours, theirs.into()),
        end("tcp", &tcp_ours, tcp_theirs.into()),
    ]
}

fn destinations() -> Vec<End> {
    let end = |name, fd: &dyn AsFd, peer: OwnedFd| End {
        name,
        given: held(&fd.as_fd()),
        peer,
    };
    let (reader, writer) = pipe();
    let (open_reader, open_writer) = pipe();
    non_blocking(&open_writer);
    let (ours, theirs) = socket();
    let (open_ours, open_theirs) = socket();
    open_ours.set_nonblocking(true).unwrap();
    let (tcp_ours, tcp_theirs) = tcp();
    let (master, slave) = terminal();
    let (other_master, other_slave) = terminal();
    vec![
        end("pipe", &writer, reader),
        end("open pipe", &open_writer, open_reader),
        end("socket", &ours, theirs.into()),
        end("open socket", &open_ours, open_theirs.into()),
        end("tcp", &tcp_ours, tcp_theirs.into()),
        end("terminal", &slave, master),
        end("master", &other_master, other_slave),
    ]
}

// https://github.com/RayforceDB/rayforce/issues/572: streams were taken for files.
#[test]
fn rayforce_572_a_source_that_pauses_is_waited_for() {
    for (system, start) in SYSTEMS {
        for options in both_ways() {
            for end in sources() {
                let what = format!("{}, {system}", end.name);
                let place = Place::new();
                let before = flags(&end.given);
                let running = Running::start_on(
                    start(),
                    Source::File(end.given.clone()),
                    place.destination("out"),
                    options.clone(),
                );
                running.waits(1);
                assert_eq!(flags(&end.given), before, "while it waits: {what}");
                put(&end.peer, b"one, ");
                running.waits(2);
                put(&end.peer, b"two");
                running.waits(3);
                assert!(!running.has_ended(), "{what}");
                drop(end.peer);
                assert_eq!(running.end().unwrap().bytes, 8, "{what}");
                assert_eq!(fs::read(place.path("out")).unwrap(), b"one, two", "{what}");
                assert_eq!(flags(&end.given), before, "{what}");
            }
        }
    }
}

#[test]
fn a_full_destination_is_waited_for_and_gets_all() {
    for (system, start) in SYSTEMS {
        for number in 0..destinations().len() {
            let end = destinations().swap_remove(number);
            let what = format!("{}, {system}", end.name);
            // A byte at a time where a terminal can be written to no better way.
            let length = match end.name {
                "terminal" | "master" => 50_000,
                _ => LENGTH,
            };
            let place = Place::new();
            fs::write(place.path("in"), pattern(length)).unwrap();
            let filled = fill(&end.given);
            let before = flags(&end.given);
            let running = Running::start_on(
                start(),
                place.source("in"),
                Destination::File(end.given.clone()),
                Options::default(),
            );
            running.waits(1);
            assert!(!running.has_ended(), "{what}");
            assert_eq!(flags(&end.given), before, "while it waits: {what}");
            let collector = collect(end.peer, filled + length);
            let done = running
                .end()
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let all = collector.join().unwrap();
            assert!(all[..filled].iter().all(|byte| *byte == b'f'), "{what}");
            assert!(all[filled..] == pattern(length), "{what}");
            assert_eq!(done.bytes, length as u64, "{what}");
            assert_eq!(flags(&end.given), before, "{what}");
        }
    }
}

/// Where neither a private description nor a call that does not wait is to be had, a write waits for
/// poll(2) and is no larger than what that promises.
#[test]
fn a_write_that_might_sleep_is_small_and_comes_after_a_poll() {
    for end in destinations() {
        let what = end.name;
        let promised = match what {
            "pipe" => PIPE_BUF,
            "socket" | "open socket" | "tcp" => 512,
            "terminal" | "master" => 1,
            // Its own flag keeps it from sleeping.
            _ => continue,
        };
        let place = Place::new();
        fs::write(place.path("in"), pattern(20_000)).unwrap();
        let sys = without_procfs(no_wait_and_messages_are_denied);
        let collector = collect(end.peer, 20_000);
        let running = Running::start_on(
            sys.clone(),
            place.source("in"),
            Destination::File(end.given.clone()),
            Options::default(),
        );
        running.end().unwrap();
        assert!(collector.join().unwrap() == pattern(20_000), "{what}");
        let calls = sys.calls();
        let mut writes = 0;
        for (at, call) in calls.iter().enumerate() {
            if let Call::Write(Way::Plain, length) = call {
                writes += 1;
                assert!(*length <= promised, "{what}: {length}");
                assert!(
                    matches!(calls[at - 1], Call::Look | Call::Wait),
                    "{what}: {:?}",
                    &calls[at - 1..=at]
                );
            }
        }
        assert!(writes >= 20_000 / promised, "{what}: {writes}");
    }
}

/// Somebody else fills it between the copy's last look and its write.
#[test]
fn a_pipe_that_gets_full_in_between_does_not_hold_the_thread() {
    for has_procfs in [true, false] {
        let place = Place::new();
        fs::write(place.path("in"), pattern(LENGTH)).unwrap();
        let (reader, writer) = pipe();
        let other = held(&writer);
        let filled = Arc::new(std::sync::OnceLock::new());
        let sys = {
            let filled = filled.clone();
            Watched::with(move |call| match call {
                Call::Reopen if !has_procfs => Some(Errno::NOENT),
                Call::Write(..) => {
                    filled.get_or_init(|| fill(&other));
                    None
                }
                _ => None,
            })
        };
        let running = Running::start_on(
            sys.clone(),
            place.source("in"),
            into(writer),
            Options::default(),
        );
        running.waits(1);
        let filled = *filled.get().unwrap();
        assert!(filled > 0);
        let collector = collect(reader, filled + LENGTH);
        running.end().unwrap();
        assert!(collector.join().unwrap()[filled..] == pattern(LENGTH));
        let ways = sys.count(|call| matches!(call, Call::Write(Way::NoWait, _)));
        assert_eq!(ways > 0, !has_procfs);
    }
}

#[test]
fn a_pipe_whose_writer_is_gone_already_ends_at_once() {
    for (system, start) in SYSTEMS {
        for options in both_ways() {
            for bytes in [b"".as_slice(), b"left behind"] {
                let place = Place::new();
                let (reader, writer) = pipe();
                put(&writer, bytes);
                drop(writer);
                let sys = start();
                let running = Running::start_on(
                    sys.clone(),
                    from(reader),
                    place.destination("out"),
                    options.clone(),
                );
                assert_eq!(running.end().unwrap().bytes, bytes.len() as u64, "{system}");
                assert_eq!(sys.waits(), 0, "{system}");
                assert_eq!(fs::read(place.path("out")).unwrap(), bytes, "{system}");
            }
        }
    }
}

/// The slave is what programs run on: it ends when its master is closed.
#[test]
fn a_terminal_is_read_until_it_is_hung_up() {
    for (system, start) in SYSTEMS {
        let place = Place::new();
        let (master, slave) = terminal();
        let given = held(&slave);
        drop(slave);
        let before = flags(&given);
        let running = Running::start_on(
            start(),
            Source::File(given.clone()),
            place.destination("out"),
            Options::default(),
        );
        running.waits(1);
        put(&master, b"typed");
        running.waits(2);
        assert_eq!(flags(&given), before, "{system}");
        drop(master);
        assert_eq!(running.end().unwrap().bytes, 5, "{system}");
        assert_eq!(fs::read(place.path("out")).unwrap(), b"typed", "{system}");
    }
}

#[test]
fn a_file_between_streams_keeps_its_position_and_its_flags() {
    let place = Place::new();
    let old = pattern(5000);
    for name in ["written", "appended"] {
        fs::write(place.path(name), &old).unwrap();
    }
    let open = |name: &str, append: bool| {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .append(append)
            .open(place.path(name))
            .unwrap();
        file.seek(SeekFrom::Start(42)).unwrap();
        file
    };
    for options in both_ways() {
        for append in [false, true] {
            let name = if append { "appended" } else { "written" };
            fs::write(place.path(name), &old).unwrap();
            let file: Handle = Arc::new(open(name, append));
            let before = flags(&file);
            let (reader, writer) = pipe();
            put(&writer, b"a few words");
            drop(writer);
            let done = copy(
                from(reader),
                Destination::File(file.clone()),
                options.clone(),
            )
            .unwrap();
            assert_eq!(done.bytes, 11);
            let now = fs::read(place.path(name)).unwrap();
            if append {
                assert!(now[..5000] == old && &now[5000..] == b"a few words");
                assert_eq!(done.method, Some(Mechanism::ReadWrite));
            } else {
                assert_eq!(now, b"a few words");
            }
            assert_eq!((&*file).stream_position().unwrap(), 42, "{name}");
            assert_eq!(flags(&file), before, "{name}");
        }
        // As a source, also with holes, which are looked for at the position.
        let file = open("written", false);
        file.set_len(2 << 20).unwrap();
        let file: Handle = Arc::new(file);
        let (reader, writer) = pipe();
        let collector = thread::spawn(move || drain(reader));
        copy(
            Source::File(file.clone()),
            into(writer),
            Options {
                zero_copy: true,
                ..options
            },
        )
        .unwrap();
        assert!(collector.join().unwrap() == fs::read(place.path("written")).unwrap());
        assert_eq!((&*file).stream_position().unwrap(), 42);
    }
}

/// `O_APPEND` means nothing to a pipe, and stays.
#[test]
fn a_pipe_with_the_flag_of_files_that_are_appended_to_keeps_it() {
    for zero_copy in [false, true] {
        let place = Place::new();
        fs::write(place.path("in"), pattern(1000)).unwrap();
        let (reader, writer) = pipe();
        rustix::fs::fcntl_setfl(&writer, flags(&writer) | OFlags::APPEND).unwrap();
        let given = held(&writer);
        drop(writer);
        let options = Options {
            zero_copy,
            ..Options::default()
        };
        copy(
            place.source("in"),
            Destination::File(given.clone()),
            options.clone(),
        )
        .unwrap();
        let (other_reader, other_writer) = pipe();
        put(&other_writer, &pattern(1000));
        drop(other_writer);
        copy(
            from(other_reader),
            Destination::File(given.clone()),
            options,
        )
        .unwrap();
        assert!(flags(&given).contains(OFlags::APPEND));
        assert!(!flags(&given).contains(OFlags::NONBLOCK));
        drop(given);
        assert!(drain(reader) == [pattern(1000), pattern(1000)].concat());
    }
}

/// A stream may be opened once more for the copy, and whoever may only write to it does not come to
/// read it by that.
#[test]
fn a_descriptor_is_good_for_what_it_was_opened_for() {
    for options in both_ways() {
        let place = Place::new();
        fs::write(place.path("file"), "some").unwrap();
        let (reader, writer) = pipe();
        put(&writer, b"not for everybody");
        let secret = copy(
            from(writer.try_clone().unwrap()),
            place.destination("new"),
            options.clone(),
        );
        assert_eq!(
            secret.unwrap_err().cause,
            Cause::Io(Side::Source, Errno::BADF)
        );
        let (master, slave) = terminal();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let opened = |flags: OFlags| {
            let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap()
        };
        put(&master, b"typed in confidence");
        let overheard = copy(
            from(opened(OFlags::WRONLY)),
            place.destination("new"),
            options.clone(),
        );
        assert_eq!(
            overheard.unwrap_err().cause,
            Cause::Io(Side::Source, Errno::BADF)
        );
        for read_only in [reader, opened(OFlags::RDONLY)] {
            let forged = copy(place.source("file"), into(read_only), options.clone());
            assert_eq!(
                forged.unwrap_err().cause,
                Cause::Io(Side::Destination, Errno::BADF)
            );
        }
        assert_eq!(place.names(), ["file"]);
        assert_eq!(take(&slave, 5), b"typed");
    }
}

/// What a copy opens for itself is closed again, so that the other side sees the end.
#[test]
fn no_end_is_held_open_after_the_copy() {
    let place = Place::new();
    fs::write(place.path("in"), pattern(1000)).unwrap();
    let (reader, writer) = pipe();
    copy(place.source("in"), into(writer), Options::default()).unwrap();
    assert!(drain(reader) == pattern(1000));
    let (reader, writer) = pipe();
    put(&writer, b"some");
    let running = Running::start(from(reader), place.destination("out"), Options::default());
    running.waits(1);
    running.cancel.cancel();
    running.fails();
    let answer = rustix::io::write(&writer, b"more");
    assert_eq!(answer, Err(Errno::PIPE), "nobody reads it any more");
}
