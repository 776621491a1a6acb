//! What a copy creates, how it gets its name, and what is removed when the copy fails.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::resolve::{ALWAYS, Entry};
use crate::sys::{At, FileInfo, Result, Sys, UNNAMED};

/// How the name of a staged file begins. With the lock that its writer holds, it tells a leftover
/// from a file in use.
pub(crate) const PREFIX: &str = ".copyist-";

/// Random names tried before giving up. One is enough unless somebody guesses 64 bits.
const TRIES: usize = 8;

/// A file that is written beside its destination and gets the destination's name at the end.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) target: Entry,
    /// The name it has meanwhile; none while it is an unnamed file, which vanishes by itself.
    name: Option<OsString>,
}

impl Staged {
    /// Creates the file in the directory of `target`, unnamed where the file system can.
    pub(crate) fn create(sys: &dyn Sys, target: Entry, mode: Mode) -> Result<(OwnedFd, Self)> {
        let directory = target.directory.as_fd();
        if let Some(unnamed) = UNNAMED {
            let flags = ALWAYS | OFlags::WRONLY | unnamed;
            if let Ok(fd) = sys.open(At::Beneath(directory), ".".as_ref(), flags, mode) {
                return Ok((fd, Self { target, name: None }));
            }
            // File systems and kernels that have no unnamed files say so in several ways
            // (open(2)); what is wrong with the directory itself shows again below.
        }
        let flags = ALWAYS | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let (fd, name) =
            with_fresh_name(|name| sys.open(At::Beneath(directory), name.as_ref(), flags, mode))?;
        let staged = Self {
            target: target.clone(),
            name: Some(name),
        };
        // Says that the file is in use. A file system without locks leaves it to its name.
        let _ = sys.lock(fd.as_fd());
        Ok((fd, staged))
    }

    /// Gives the file the destination's name. With `over`, in place of what has it; else `EEXIST`
    /// if something has, and all is as before. The descriptor is closed on the way, before the name
    /// changes hands where that is possible: what only close(2) reports must not cost the old file.
    /// `made` tells what to remove if it is not.
    pub(crate) fn publish(
        &mut self,
        sys: &dyn Sys,
        fd: &mut Option<OwnedFd>,
        made: Option<&FileInfo>,
        over: bool,
    ) -> Result<()> {
        let directory = self.target.directory.as_fd();
        if self.name.is_none()
            && let Some(unnamed) = fd
        {
            if !over {
                sys.link_unnamed(unnamed.as_fd(), directory, &self.target.name)?;
                return match fd.take().map(|fd| sys.close(fd)) {
                    Some(Err(errno)) => {
                        if let Some(made) = made {
                            remove(sys, &self.target, made);
                        }
                        Err(errno)
                    }
                    _ => Ok(()),
                };
            }
            let ((), name) =
                with_fresh_name(|name| sys.link_unnamed(unnamed.as_fd(), directory, name))?;
            self.name = Some(name);
        }
        if let Some(fd) = fd.take() {
            sys.close(fd)?;
        }
        if let Some(name) = &self.name {
            if over {
                sys.rename(directory, name, &self.target.name)?;
            } else {
                sys.rename_exclusive(directory, name, &self.target.name)?;
            }
            self.name = None;
        }
        Ok(())
    }

    /// Removes what is left of a copy that failed. The name is random and was made exclusively, so
    /// the file is the copy's own.
    pub(crate) fn remove(&mut self, sys: &dyn Sys) {
        if let Some(name) = self.name.take() {
            let _ = sys.unlink(self.target.directory.as_fd(), &name);
        }
    }
}

/// Removes a file that this copy created, unless something else has its name by now.
pub(crate) fn remove(sys: &dyn Sys, entry: &Entry, made: &FileInfo) {
    let directory = entry.directory.as_fd();
    if matches!(sys.stat_at(directory, &entry.name), Ok(found) if found.is_same_file(made)) {
        let _ = sys.unlink(directory, &entry.name);
    }
}

fn with_fresh_name<T>(mut make: impl FnMut(&OsStr) -> Result<T>) -> Result<(T, OsString)> {
    let mut answer = Err(Errno::EXIST);
    for _ in 0..TRIES {
        // std seeds every `RandomState` from the system's random numbers.
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!("{PREFIX}{random:016x}"));
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
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 4, "every try has a name of its own");
    }

    #[test]
    fn a_name_that_never_gets_free_is_an_error() {
        let answer = with_fresh_name(|_| Err::<(), _>(Errno::EXIST));
        assert_eq!(answer, Err(Errno::EXIST));
    }
}
