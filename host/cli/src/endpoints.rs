//! `--endpoint`: what the guest may open by name, and how this command gets at it.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc;
use std::time::Duration;

use copyist_wasmtime::{Direction, Endpoint};
use rustix::fs::OFlags;
use rustix::io::FdFlags;
use wasmtime::{Result, bail, format_err};

/// One `NAME[:MODE]=END`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    name: String,
    mode: Option<Mode>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Both,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum End {
    Stdin,
    Stdout,
    Fd(RawFd),
    Unix(PathBuf),
    Tcp(String),
    Path(PathBuf),
}

/// What was opened, by name.
pub(crate) type Opened = Vec<(String, Endpoint)>;

impl Grant {
    /// Whether the guest has the standard input by this, and so not by wasi:cli.
    pub(crate) fn is_stdin(&self) -> bool {
        self.end == End::Stdin
    }

    /// As [`is_stdin`](Self::is_stdin).
    pub(crate) fn is_stdout(&self) -> bool {
        self.end == End::Stdout
    }

    fn is_fifo(&self) -> bool {
        match &self.end {
            End::Path(path) => path
                .metadata()
                .is_ok_and(|found| found.file_type().is_fifo()),
            _ => false,
        }
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let Some((name, end)) = text.split_once('=') else {
            return Err("an endpoint is NAME=END, such as in=stdin or out:w=FILE".to_owned());
        };
        let (name, mode) = match name.rsplit_once(':') {
            None => (name, None),
            Some((name, "r")) => (name, Some(Mode::Read)),
            Some((name, "w")) => (name, Some(Mode::Write)),
            Some((name, "rw")) => (name, Some(Mode::Both)),
            Some((_, other)) => {
                return Err(format!(
                    "`{other}` is no mode; after the name comes :r, :w or :rw"
                ));
            }
        };
        if name.is_empty() || end.is_empty() {
            return Err("an endpoint has a name before the `=` and an end after it".to_owned());
        }
        let end = end.parse()?;
        match (&end, mode) {
            (End::Stdin, Some(Mode::Write | Mode::Both)) => {
                return Err("the standard input is read, and not written".to_owned());
            }
            (End::Stdout, Some(Mode::Read | Mode::Both)) => {
                return Err("the standard output is written, and not read".to_owned());
            }
            _ => {}
        }
        Ok(Self {
            name: name.to_owned(),
            mode,
            end,
        })
    }
}

impl FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Ok(match text.split_once(':') {
            _ if text == "stdin" => Self::Stdin,
            _ if text == "stdout" => Self::Stdout,
            Some(("fd", number)) => match number.parse() {
                Ok(0) => Self::Stdin,
                Ok(1) => Self::Stdout,
                Ok(2) => return Err("the standard error is the command's own".to_owned()),
                Ok(number) if number > 2 => Self::Fd(number),
                _ => return Err(format!("`{number}` is the number of no descriptor")),
            },
            Some(("unix", path)) => Self::Unix(path.into()),
            Some(("tcp", address)) => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Self::Tcp(address.to_owned())
                }
                _ => return Err(format!("`{address}` is not HOST:PORT")),
            },
            _ => Self::Path(text.into()),
        })
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::Stdout => f.write_str("stdout"),
            Self::Fd(number) => write!(f, "fd:{number}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Opens all of them, or says what to do about the one that cannot be. `None` where it takes longer
/// than this: a connection, or a FIFO that nobody reads.
pub(crate) fn open(grants: &[Grant], most: Option<Duration>) -> Result<Option<Opened>> {
    check(grants)?;
    let Some(most) = most.filter(|_| !grants.is_empty()) else {
        return open_all(grants).map(Some);
    };
    let (tell, told) = mpsc::channel();
    let grants = grants.to_vec();
    // Where it is not told in time it waits on, to the end of the process.
    std::thread::Builder::new()
        .name("copyist-endpoints".to_owned())
        .spawn(move || {
            let _ = tell.send(open_all(&grants));
        })?;
    told.recv_timeout(most).ok().transpose()
}

/// Each name and each descriptor once.
fn check(grants: &[Grant]) -> Result<()> {
    let (mut names, mut taken) = (HashSet::new(), HashSet::new());
    for Grant { name, end, .. } in grants {
        if !names.insert(name) {
            bail!("--endpoint {name}: the name is given twice; give each end one of its own");
        }
        if matches!(end, End::Stdin | End::Stdout | End::Fd(_)) && !taken.insert(end) {
            bail!("--endpoint {name}={end}: it has another name already; one is enough");
        }
    }
    Ok(())
}

fn open_all(grants: &[Grant]) -> Result<Opened> {
    // Who opens a FIFO for writing waits for a reader, which may wait for one of the others.
    let waits = |grant: &&Grant| grant.mode == Some(Mode::Write) && grant.is_fifo();
    let (last, first): (Vec<_>, Vec<_>) = grants.iter().partition(waits);
    let mut opened = Opened::new();
    for Grant { name, mode, end } in first.into_iter().chain(last) {
        let failed = |error: wasmtime::Error| format_err!("--endpoint {name}={end}: {error:#}");
        let endpoint = open_one(end, *mode).map_err(failed)?;
        if let Err(cause) = endpoint.check() {
            bail!("--endpoint {name}={end}: {cause}");
        }
        opened.push((name.clone(), endpoint));
    }
    Ok(opened)
}

fn open_one(end: &End, mode: Option<Mode>) -> Result<Endpoint> {
    let endpoint = match end {
        End::Stdin => Endpoint::stdin()?,
        End::Stdout => Endpoint::stdout()?,
        End::Fd(number) => Endpoint::shared(inherited(*number, mode)?),
        End::Unix(path) => match UnixStream::connect(path) {
            Ok(stream) => Endpoint::owned(stream),
            Err(error) => bail!("{error}; name a socket that somebody listens on"),
        },
        End::Tcp(address) => match TcpStream::connect(address) {
            Ok(stream) => Endpoint::owned(stream),
            Err(error) => bail!("{error}; name a host and a port that somebody listens on"),
        },
        End::Path(path) => Endpoint::owned(open_path(path, mode)?),
    };
    Ok(match mode {
        None => endpoint,
        Some(Mode::Read) => endpoint.direction(Direction::Read),
        Some(Mode::Write) => endpoint.direction(Direction::Write),
        Some(Mode::Both) => endpoint.direction(Direction::Both),
    })
}

/// A descriptor that whoever started this command left open for it.
#[expect(unsafe_code, reason = "a descriptor that comes by its number")]
fn inherited(number: RawFd, mode: Option<Mode>) -> Result<OwnedFd> {
    // SAFETY: whatever it is, it is only asked what it is.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // All that this command has opened itself is closed on exec, which nothing inherited can be.
    match rustix::io::fcntl_getfd(fd) {
        Ok(flags) if !flags.contains(FdFlags::CLOEXEC) => {}
        _ => bail!("it is not open; leave it open by {number}<FILE or {number}>FILE in a shell"),
    }
    let access = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
    match (access, mode) {
        (OFlags::WRONLY, Some(Mode::Read | Mode::Both)) => bail!("it is open for writing alone"),
        (OFlags::RDONLY, Some(Mode::Write | Mode::Both)) => bail!("it is open for reading alone"),
        _ => {}
    }
    rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    // SAFETY: it was inherited, so that nothing here owns it, and it is taken once (`check`).
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn open_path(path: &Path, mode: Option<Mode>) -> Result<File> {
    let found = match path.metadata() {
        Ok(found) => Some(found.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => bail!("{error}"),
    };
    let (is_device, is_fifo) = match found {
        None if matches!(mode, None | Some(Mode::Read)) => {
            bail!("it is not there; :w after the name makes a file");
        }
        None => (false, false),
        Some(found) if found.is_dir() => bail!("it is a directory; --dir grants those"),
        Some(found) if found.is_socket() => {
            bail!(
                "it is the name of a socket; unix:{} connects to it",
                path.display()
            );
        }
        Some(found) => (found.is_char_device(), found.is_fifo()),
    };
    let mut options = OpenOptions::new();
    // A FIFO is opened at once for reading; for writing, when somebody reads it.
    let waits = is_fifo && mode == Some(Mode::Write);
    let mut flags = OFlags::NOCTTY;
    flags.set(OFlags::NONBLOCK, !waits);
    options.custom_flags(flags.bits().cast_signed());
    let opened = match mode {
        // As `<`, `>` and `<>` in a shell.
        Some(Mode::Read) => options.read(true).open(path),
        Some(Mode::Write) => options.write(true).create(true).truncate(true).open(path),
        Some(Mode::Both) if is_fifo => {
            bail!("a FIFO is read or written; give it :r or :w after the name")
        }
        Some(Mode::Both) => options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path),
        // A device may be a terminal. What is read cannot be lost by mistake.
        None if is_device => options
            .read(true)
            .write(true)
            .open(path)
            .or_else(|_| options.write(false).open(path))
            .or_else(|_| options.read(false).write(true).open(path)),
        None => options.read(true).open(path),
    };
    match opened {
        Ok(file) => Ok(file),
        Err(error) => bail!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str, mode: Option<Mode>, end: End) -> std::result::Result<Grant, String> {
        Ok(Grant {
            name: name.to_owned(),
            mode,
            end,
        })
    }

    #[test]
    fn an_endpoint_is_a_name_a_mode_and_an_end() {
        for (text, name, mode, end) in [
            ("in=stdin", "in", None, End::Stdin),
            ("in:r=fd:0", "in", Some(Mode::Read), End::Stdin),
            ("out=stdout", "out", None, End::Stdout),
            ("out=fd:1", "out", None, End::Stdout),
            ("x=fd:7", "x", None, End::Fd(7)),
            ("x:rw=fd:7", "x", Some(Mode::Both), End::Fd(7)),
            ("x=unix:a:b", "x", None, End::Unix("a:b".into())),
            ("x=tcp:[::1]:80", "x", None, End::Tcp("[::1]:80".to_owned())),
            ("x:w=a=b", "x", Some(Mode::Write), End::Path("a=b".into())),
            ("x=./stdin", "x", None, End::Path("./stdin".into())),
            ("x=c:d", "x", None, End::Path("c:d".into())),
        ] {
            assert_eq!(text.parse(), grant(name, mode, end), "{text}");
        }
        for bad in [
            "",
            "in",
            "=stdin",
            "in=",
            ":r=stdin",
            "in:x=stdin",
            "in:w=stdin",
            "out:r=stdout",
            "x=fd:",
            "x=fd:-1",
            "x=fd:2",
            "x=fd:a",
            "x=tcp:",
            "x=tcp:host",
            "x=tcp::80",
            "x=tcp:host:99999",
        ] {
            assert!(bad.parse::<Grant>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_and_descriptors_are_given_once() {
        let grants = |texts: &[&str]| {
            let grants: Vec<Grant> = texts.iter().map(|text| text.parse().unwrap()).collect();
            check(&grants).is_ok()
        };
        assert!(grants(&[
            "a=stdin", "b=stdout", "c=fd:3", "d=fd:4", "e=x", "f=x"
        ]));
        assert!(!grants(&["a=stdin", "a=stdout"]));
        assert!(!grants(&["a=stdin", "b=fd:0"]));
        assert!(!grants(&["a=fd:3", "b=fd:3"]));
    }
}
