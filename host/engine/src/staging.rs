//! What a copy creates, how it gets its name, and what is removed when the copy fails.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::resolve::{ALWAYS, Entry};
use crate::sys::{At, FileInfo, Result, Sys, UNNAMED};

/// How the name of a staged file begins. What else it takes to tell a leftover from a file in use
/// stands in `sweep.rs`.
const PREFIX: &str = ".copyist-";
/// Hexadecimal digits after it.
const DIGITS: usize = 16;

/// Random names tried before giving up. One is enough unless somebody guesses 64 bits, or sweeps in
/// the moment between the making of a file and its lock.
const TRIES: usize = 8;

/// When the descriptor of a staged file is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// Before the name changes hands: what only close(2) reports must not cost the old file.
    First,
    /// After it, since close(2) has nothing to report here.
    Last,
}

/// A file that is written beside its destination and gets the destination's name at the end.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) target: Entry,
    /// The name it has meanwhile; none while it is an unnamed file, which vanishes by itself.
    name: Option<OsString>,
    /// What keeps it in use once it is closed.
    held: Option<OwnedFd>,
}

impl Staged {
    /// Creates the file in the directory of `target`, unnamed where the file system can.
    pub(crate) fn create(sys: &dyn Sys, target: Entry, mode: Mode) -> Result<(OwnedFd, Self)> {
        let directory = target.directory.as_fd();
        if let Some(unnamed) = UNNAMED {
            let flags = ALWAYS | OFlags::WRONLY | unnamed;
            if let Ok(fd) = sys.open(At::Beneath(directory), ".".as_ref(), flags, mode) {
                return Ok((fd, Self::new(target, None)));
            }
            // File systems and kernels that have no unnamed files say so in several ways
            // (open(2)); what is wrong with the directory itself shows again below.
        }
        let (fd, name) = with_fresh_name(|name| create_locked(sys, directory, name, mode))?;
        let staged = Self::new(target.clone(), Some(name));
        Ok((fd, staged))
    }

    fn new(target: Entry, name: Option<OsString>) -> Self {
        Self {
            target,
            name,
            held: None,
        }
    }

    /// Whether it has a name meanwhile.
    pub(crate) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// Gives the file the destination's name. With `over`, in place of what has it; else `EEXIST`
    /// if something has, and all is as before. `made` tells what to remove if close(2) fails where
    /// the file has its name already.
    pub(crate) fn publish(
        &mut self,
        sys: &dyn Sys,
        fd: &mut Option<OwnedFd>,
        made: Option<&FileInfo>,
        over: bool,
        close: Close,
    ) -> Result<()> {
        let directory = self.target.directory.as_fd();
        if self.name.is_none()
            && let Some(unnamed) = fd
        {
            if !over {
                sys.link_unnamed(unnamed.as_fd(), directory, &self.target.name)?;
                return match fd.take().map(|fd| shut(sys, fd)) {
                    Some(Err(errno)) => {
                        if let Some(made) = made {
                            remove(sys, &self.target, made);
                        }
                        Err(errno)
                    }
                    _ => Ok(()),
                };
            }
            // From here on it could be taken for a leftover. On a local file system it shows that it
            // is open for writing.
            if close == Close::First {
                let _ = sys.lock(unnamed.as_fd());
            }
            let ((), name) =
                with_fresh_name(|name| sys.link_unnamed(unnamed.as_fd(), directory, name))?;
            self.name = Some(name);
        }
        if close == Close::First
            && let Some(fd) = fd.take()
        {
            // Both marks stay as long as there is one more descriptor. Without it there is a
            // leftover for one moment, which is no reason to fail.
            self.held = sys.duplicate(fd.as_fd()).ok();
            shut(sys, fd)?;
        }
        if let Some(name) = &self.name {
            let renamed = if over {
                sys.rename(directory, name, &self.target.name)
            } else {
                sys.rename_exclusive(directory, name, &self.target.name)
            };
            match renamed {
                Ok(()) => self.name = None,
                Err(Errno::EXIST) => return Err(Errno::EXIST),
                Err(errno) => {
                    // After an interruption nobody knows, so that it must not be done again.
                    let _ = fd.take().map(|fd| sys.close(fd));
                    return Err(errno);
                }
            }
        }
        self.release(sys);
        fd.take().map_or(Ok(()), |fd| shut(sys, fd))
    }

    /// It is in use no more.
    fn release(&mut self, sys: &dyn Sys) {
        let _ = self.held.take().map(|fd| sys.close(fd));
    }

    /// Removes what is left of a copy that failed. The name is random and was made exclusively, so
    /// the file is the copy's own.
    pub(crate) fn remove(&mut self, sys: &dyn Sys) {
        if let Some(name) = self.name.take() {
            let directory = self.target.directory.as_fd();
            let _ = despite_signals(|| sys.unlink(directory, &name));
        }
        self.release(sys);
    }
}

/// Closes what was written. What it says is about no name, as `EEXIST` would be taken to be.
fn shut(sys: &dyn Sys, fd: OwnedFd) -> Result<()> {
    match sys.close(fd) {
        Err(Errno::EXIST) => Err(Errno::IO),
        answer => answer,
    }
}

/// Makes a file of this name, and marks it as being in use. `EEXIST`: try another name.
fn create_locked(
    sys: &dyn Sys,
    directory: BorrowedFd<'_>,
    name: &OsStr,
    mode: Mode,
) -> Result<OwnedFd> {
    let flags = ALWAYS | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let fd = match sys.open(At::Beneath(directory), name.as_ref(), flags, mode) {
        // A sweep is just looking at it.
        Err(Errno::AGAIN) => return Err(Errno::EXIST),
        opened => opened?,
    };
    // A file system without locks leaves it to its name. One that came between the two calls and has
    // the lock now is a sweep, which takes the file for a leftover; and after it the name is gone.
    let marked = match sys.lock(fd.as_fd()) {
        Err(errno @ (Errno::WOULDBLOCK | Errno::INTR)) => Err(errno),
        _ => sys.stat_at(directory, name).map(drop),
    };
    match marked {
        Ok(()) => Ok(fd),
        Err(errno) => {
            let _ = despite_signals(|| sys.unlink(directory, name));
            let _ = sys.close(fd);
            Err(match errno {
                Errno::WOULDBLOCK | Errno::NOENT => Errno::EXIST,
                errno => errno,
            })
        }
    }
}

/// Whether a name is one that a staged file may have.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes()
        .strip_prefix(PREFIX.as_bytes())
        .is_some_and(|digits| {
            digits.len() == DIGITS
                && digits
                    .iter()
                    .all(|digit| b"0123456789abcdef".contains(digit))
        })
}

/// Removes a file that this copy created, unless something else has its name by now.
pub(crate) fn remove(sys: &dyn Sys, entry: &Entry, made: &FileInfo) {
    let directory = entry.directory.as_fd();
    let found = despite_signals(|| sys.stat_at(directory, &entry.name));
    if matches!(found, Ok(found) if found.is_same_file(made)) {
        let _ = despite_signals(|| sys.unlink(directory, &entry.name));
    }
}

/// Does what takes something back, which a signal must not end. Nobody is asked whether to go on: the
/// copy has failed, or was cancelled.
pub(crate) fn despite_signals<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    let mut answer = Err(Errno::INTR);
    for _ in 0..TRIES {
        answer = call();
        if !matches!(answer, Err(Errno::INTR)) {
            break;
        }
    }
    answer
}

pub(crate) fn with_fresh_name<T>(
    mut make: impl FnMut(&OsStr) -> Result<T>,
) -> Result<(T, OsString)> {
    let mut answer = Err(Errno::EXIST);
    for _ in 0..TRIES {
        // std seeds every `RandomState` from the system's random numbers.
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!("{PREFIX}{random:0DIGITS$x}"));
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => answer = Err(Errno::EXIST),
            Err(errno) => return Err(errno),
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_exists_is_passed_over() {
        let mut refusals = 3;
        let mut names = Vec::new();
        let ((), name) = with_fresh_name(|name| {
            names.push(name.to_owned());
            if refusals > 0 {
                refusals -= 1;
                return Err(Errno::EXIST);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(names.len(), 4);
        assert_eq!(names.last(), Some(&name));
        assert!(names.iter().all(|name| is_temporary(name)), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 4, "every try has a name of its own");
    }

    #[test]
    fn a_name_that_never_gets_free_is_an_error() {
        let answer = with_fresh_name(|_| Err::<(), _>(Errno::EXIST));
        assert_eq!(answer, Err(Errno::EXIST));
    }

    #[test]
    fn a_name_of_another_form_is_not_one_of_ours() {
        for (name, expected) in [
            (".copyist-0123456789abcdef", true),
            (".copyist-0123456789abcde", false),
            (".copyist-0123456789abcdef0", false),
            (".copyist-0123456789abcdeF", false),
            (".copyist-0123456789abcdeg", false),
            (".copyist-", false),
            ("copyist-0123456789abcdef", false),
            ("0123456789abcdef", false),
        ] {
            assert_eq!(is_temporary(name.as_ref()), expected, "{name}");
        }
    }
}
