//! A name that is made at the destination, for what is written to by no descriptor.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::node::Ends;
use super::shared::Tree;
use crate::error::Cause;
use crate::request::Existing;
use crate::staging::with_fresh_name;
use crate::sys::{FileInfo, Kind, Result as SysResult};
use crate::transfer::at_destination;

/// A name that comes and goes is looked for again so many times.
const TRIES: usize = 4;

type Outcome<T> = Result<T, Cause>;

/// What came of making a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    Made,
    /// It is the same file already.
    Already,
    /// What stands there is left.
    Left,
}

/// Makes a name by `make`, in place of what stands there, if that may be and is no directory: then
/// beside it, and renamed over it. `same` is what may stand there already.
pub(super) fn place(
    tree: &Tree,
    ends: &Ends,
    to: &OsStr,
    source: &FileInfo,
    same: Option<&FileInfo>,
    make: &dyn Fn(&OsStr) -> SysResult<()>,
) -> Outcome<Placed> {
    let sys = tree.sys();
    let directory = ends.destination.as_fd();
    for _ in 0..TRIES {
        match make(to) {
            Ok(()) => return Ok(Placed::Made),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(at_destination(errno)),
        }
        let found = match sys.stat_at(directory, to) {
            Err(Errno::NOENT) => continue,
            found => found.map_err(at_destination)?,
        };
        if same.is_some_and(|same| found.is_same_file(same)) {
            return Ok(Placed::Already);
        }
        if found.is_same_file(source) {
            return Err(Cause::SameFile);
        }
        match tree.options.entries.existing {
            Existing::Refuse => return Err(at_destination(Errno::EXIST)),
            Existing::Skip => return Ok(Placed::Left),
            Existing::Update if found.modified >= source.modified => return Ok(Placed::Left),
            Existing::Update | Existing::Write => {}
        }
        if found.kind == Kind::Directory {
            return Err(at_destination(Errno::ISDIR));
        }
        let ((), beside) = with_fresh_name(make).map_err(at_destination)?;
        let renamed = sys.rename(directory, &beside, to);
        if renamed.is_err() {
            let _ = sys.unlink(directory, &beside);
        }
        return renamed.map(|()| Placed::Made).map_err(at_destination);
    }
    Err(at_destination(Errno::NOENT))
}
