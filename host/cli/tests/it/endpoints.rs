//! `--endpoint`: channels that the guest opens by name.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use copyist_test_artifacts::ENDPOINTS;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::command::{Ended, Place, copyist, run};

const COPY_IN: [&str; 2] = ["open:in", "copy:@in:w/to"];
const COPY_OUT: [&str; 3] = ["open:out", "copy:w/from:@out", "finish:out"];

/// `copyist run` with this endpoint, of a guest that sees the place as `w` and takes these steps.
fn words<'a>(place: &'a str, endpoint: &'a str, steps: &[&'a str]) -> Vec<&'a str> {
    let options = [
        "run",
        "--timeout=1m",
        "--dir",
        place,
        "--endpoint",
        endpoint,
    ];
    [&options, &[ENDPOINTS][..], steps].concat()
}

fn fifo(place: &Place, name: &str) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, place.path(name), FileType::Fifo, mode, 0).unwrap();
}

/// All that comes to this reader, once it is there.
fn collect<R: Read>(reader: impl FnOnce() -> R + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        reader().read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Runs what a shell says, in which `"$@"` is the command.
fn shell(script: &str, directory: &Path, words: &[&str]) -> Ended {
    let command = copyist(words);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(directory)
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null());
    Ended::of(&mut shell)
}

#[test]
fn the_standard_streams_are_ends_and_not_the_guests_own_then() {
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    let script = r#"printf 'one two' | "$@""#;
    let words = words(
        &dir,
        "in=stdin",
        &["open:in", "input:in:4", "copy:@in:w/to"],
    );
    let ended = shell(script, &place.path("."), &words).with_status(0);
    assert!(ended.output.contains("ok text=one"), "{}", ended.output);
    place.assert_holds("to", b"two");

    // What the guest prints goes nowhere.
    let words = self::words(
        &dir,
        "out=stdout",
        &["open:out", "output:out:the ", COPY_OUT[1]],
    );
    let ended = shell(r#""$@" | cat"#, &place.path("."), &words).with_status(0);
    assert_eq!(ended.output, "the bytes");

    // A file goes on where it stands, and whoever has it too goes on behind.
    fs::write(place.path("log"), "older, and longer than all that comes\n").unwrap();
    let script = r#"{ printf 'before '; "$@"; printf ' after'; } 1<>log"#;
    shell(script, &place.path("."), &words).with_status(0);
    place.assert_holds("log", b"before the bytes after all that comes\n");
    let script = r#"{ head -c 1 >/dev/null; "$@"; cat; } <abc"#;
    fs::write(place.path("abc"), "abc").unwrap();
    let words = self::words(&dir, "in=fd:0", &["open:in", "input:in:1"]);
    let ended = shell(script, &place.path("."), &words).with_status(0);
    assert!(!ended.output.contains("text=a"), "{}", ended.output);
}

#[test]
fn a_descriptor_is_one_that_was_inherited() {
    let place = Place::with(b"bytes");
    fs::write(place.path("in"), "a file").unwrap();
    let dir = place.under("w");
    let words = |endpoint, steps| words(&dir, endpoint, steps);
    let in_shell = |script, words: &[&str]| shell(script, &place.path("."), words);

    in_shell(r#""$@" 3<in"#, &words("in=fd:3", &COPY_IN)).with_status(0);
    place.assert_holds("to", b"a file");
    in_shell(r#""$@" 5>out"#, &words("out=fd:5", &COPY_OUT)).with_status(0);
    place.assert_holds("out", b"bytes");
    let script = r#""$@" 4>&1 >/dev/null | tr b B"#;
    let ended = in_shell(script, &words("out:w=fd:4", &COPY_OUT)).with_status(0);
    assert_eq!(ended.output, "Bytes");

    for (script, endpoint, complaint) in [
        (r#""$@""#, "in=fd:3", "not open"),
        // Those of the command itself, whichever they are.
        (r#""$@""#, "in=fd:6", "not open"),
        (r#""$@" 3<in"#, "in:w=fd:3", "reading alone"),
        (r#""$@" 3>out"#, "in:r=fd:3", "writing alone"),
        (r#""$@" 3<."#, "in=fd:3", "directory"),
    ] {
        let ended = in_shell(script, &words(endpoint, &COPY_IN)).with_status(125);
        let said = ended.complaint();
        assert!(said.contains(endpoint.split_once('=').unwrap().1), "{said}");
        assert!(said.to_lowercase().contains(complaint), "{said}");
    }
}

#[test]
fn a_fifo_is_read_or_written_whoever_comes_first() {
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    fifo(&place, "fifo");
    let path = place.path("fifo");
    let host = path.to_str().unwrap();
    for mode in ["", ":r"] {
        let path = path.clone();
        // Waits until it is opened.
        let writer = thread::spawn(move || fs::write(path, "from elsewhere").unwrap());
        run(words(&dir, &format!("in{mode}={host}"), &COPY_IN)).with_status(0);
        writer.join().unwrap();
        place.assert_holds("to", b"from elsewhere");
    }
    let reader = {
        let path = path.clone();
        collect(move || File::open(path).unwrap())
    };
    run(words(&dir, &format!("out:w={host}"), &COPY_OUT)).with_status(0);
    assert_eq!(reader.join().unwrap(), b"bytes");

    // Two, of which the other side opens the second when it has written the first.
    fifo(&place, "other");
    let other = place.path("other");
    let peer = {
        let path = path.clone();
        thread::spawn(move || {
            fs::write(path, "question").unwrap();
            fs::read(other).unwrap()
        })
    };
    let (question, answer) = (format!("in={host}"), place.path("other"));
    let answer = format!("out:w={}", answer.to_str().unwrap());
    let options = [
        "run",
        "--timeout=1m",
        "--endpoint",
        &answer,
        "--endpoint",
        &question,
    ];
    let steps = [ENDPOINTS, "open:in", "open:out", "copy:@in:@out"];
    run([&options[..], &steps].concat()).with_status(0);
    assert_eq!(peer.join().unwrap(), b"question");

    // Nobody comes.
    let endpoint = format!("out:w={host}");
    let words = ["run", "--timeout=300ms", "--endpoint", &endpoint, ENDPOINTS];
    let ended = run(words).with_status(124);
    assert!(ended.complaint().contains("--timeout"));
    let idle = format!("in={host}");
    let words = [
        "run",
        "--timeout=300ms",
        "--dir",
        &dir,
        "--endpoint",
        &idle,
        ENDPOINTS,
    ];
    let ended = run([&words[..], &COPY_IN].concat()).with_status(124);
    assert!(ended.complaint().contains("--timeout"));
}

#[test]
fn a_file_is_read_or_made_or_written() {
    let place = Place::with(b"bytes");
    fs::write(place.path("file"), "old content, and longer").unwrap();
    let dir = place.under("w");
    let file = place.path("file");
    let host = file.to_str().unwrap();
    run(words(&dir, &format!("in={host}"), &COPY_IN)).with_status(0);
    place.assert_holds("to", b"old content, and longer");
    // Not unless it is said.
    let ended = run(words(&dir, &format!("out={host}"), &COPY_OUT)).with_status(0);
    assert!(
        ended
            .output
            .contains("err cause=bad-descriptor side=destination")
    );
    place.assert_holds("file", b"old content, and longer");
    // As `>` and `<>`.
    run(words(&dir, &format!("out:rw={host}"), &COPY_OUT)).with_status(0);
    place.assert_holds("file", b"bytesontent, and longer");
    run(words(&dir, &format!("out:w={host}"), &COPY_OUT)).with_status(0);
    place.assert_holds("file", b"bytes");
    run(words(&dir, &format!("out:w={host}.new"), &COPY_OUT)).with_status(0);
    place.assert_holds("file.new", b"bytes");
    run(words(&dir, "out=/dev/null", &COPY_OUT)).with_status(0);
    // What it says once the copy is under way.
    let ended = run(words(&dir, "out:w=/dev/full", &COPY_OUT)).with_status(0);
    assert!(
        ended
            .output
            .contains("err cause=insufficient-space side=destination")
    );
}

#[test]
fn a_connection_is_made() {
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    let socket = place.path("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let reader = collect(move || listener.accept().unwrap().0);
    let endpoint = format!("out=unix:{}", socket.to_str().unwrap());
    run(words(&dir, &endpoint, &COPY_OUT)).with_status(0);
    assert_eq!(reader.join().unwrap(), b"bytes");

    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        // The guest's finish ends it, and it reads on.
        peer.read_to_end(&mut asked).unwrap();
        peer.write_all(b"answer").unwrap();
        asked
    });
    let endpoint = format!("both=tcp:127.0.0.1:{port}");
    let steps = [
        "open:both",
        "copy:w/from:@both",
        "finish:both",
        "copy:@both:w/to",
    ];
    run(words(&dir, &endpoint, &steps)).with_status(0);
    assert_eq!(peer.join().unwrap(), b"bytes");
    place.assert_holds("to", b"answer");
}

#[test]
fn what_cannot_be_opened_is_told_in_a_line_that_says_what_to_do() {
    let place = Place::with(b"bytes");
    fifo(&place, "fifo");
    let _listener = UnixListener::bind(place.path("socket")).unwrap();
    let absent = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr();
    let tcp = format!("in=tcp:{}", absent.unwrap());
    let at = |form: &str| form.replace('/', &format!("{}/", place.host()));
    for (endpoint, complaint) in [
        (at("in=/absent"), ":w"),
        (at("in:w=/absent/file"), "No such file"),
        (at("in=/"), "--dir"),
        (at("in=/socket"), "unix:"),
        (at("in:rw=/fifo"), ":r or :w"),
        (at("in=unix:/absent"), "listens on"),
        (at("in=unix:/fifo"), "listens on"),
        (tcp, "listens on"),
    ] {
        let ended = run(["run", "--endpoint", &endpoint, ENDPOINTS]).with_status(125);
        let said = ended.complaint();
        assert!(
            said.starts_with("--endpoint in=") && said.contains(complaint),
            "{said}"
        );
    }
    assert_eq!(place.names(), ["fifo", "from", "socket"]);
    for bad in ["in", "in:x=stdin", "in=tcp:host", "in:w=stdin", "in=fd:2"] {
        let ended = run(["run", "--endpoint", bad, ENDPOINTS]).with_status(125);
        assert!(ended.errors.contains("--endpoint"), "{}", ended.errors);
    }
    for twice in [
        ["a=stdin", "a=stdout"],
        ["a=stdin", "b=fd:0"],
        ["a=fd:9", "b=fd:9"],
    ] {
        let [one, other] = twice;
        let ended = run(["run", "--endpoint", one, "--endpoint", other, ENDPOINTS]);
        let ended = ended.with_status(125);
        let said = ended.complaint();
        assert!(said.contains("twice") || said.contains("already"), "{said}");
    }
}

/// systemd hands over such ones, and a guest could accept nothing.
#[test]
fn a_socket_that_listens_is_refused_by_name() {
    let place = Place::new();
    let socket = place.path("socket");
    // No shell opens one: the listener comes as the standard input.
    let listener = UnixListener::bind(&socket).unwrap();
    let mut command = copyist(["run", "--endpoint", "in=stdin", ENDPOINTS]);
    let ended = Ended::of(command.stdin(std::os::fd::OwnedFd::from(listener))).with_status(125);
    assert!(
        ended.complaint().contains("listens"),
        "{}",
        ended.complaint()
    );
}

/// It would end the command where nobody has said otherwise.
#[test]
fn a_reader_that_is_gone_is_an_error_of_the_copy() {
    let place = Place::with(&[7; 100_000]);
    let dir = place.under("w");
    let words = words(
        &dir,
        "out=stdout",
        &["open:out", "copy:w/from:@out", "copy:w/from:w/to"],
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = copyist([&["run", "--report=json"][..], &words[1..]].concat());
    let child = command
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        errors.lines().next().unwrap().contains("Broken pipe"),
        "{errors}"
    );
    place.assert_holds("to", &[7; 100_000]);
}

#[test]
fn a_terminal_is_read_and_written() {
    use rustix::pty::OpenptFlags;
    let place = Place::with(b"bytes");
    let dir = place.under("w");
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOCTTY.bits().cast_signed())
        .open(name.to_str().unwrap())
        .unwrap();
    let mut attributes = rustix::termios::tcgetattr(&slave).unwrap();
    attributes.make_raw();
    rustix::termios::tcsetattr(&slave, rustix::termios::OptionalActions::Now, &attributes).unwrap();
    let mut master = File::from(master);
    master.write_all(b"typed").unwrap();
    let endpoint = format!("tty={}", name.to_str().unwrap());
    let steps = ["open:tty", "input:tty:5", "copy:w/from:@tty"];
    let ended = run(words(&dir, &endpoint, &steps)).with_status(0);
    assert!(ended.output.contains("text=typed"), "{}", ended.output);
    let mut shown = [0; 5];
    master.read_exact(&mut shown).unwrap();
    assert_eq!(&shown, b"bytes");
}
