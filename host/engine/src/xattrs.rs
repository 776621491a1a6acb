//! Extended attributes, and the access control lists that Linux keeps as two of them.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::error::Side;
use crate::sys::{Result, Sys};

/// What came of an attribute: at which end, and what the system said there.
type Carried<T> = std::result::Result<T, (Side, Errno)>;

/// A file's access control list beyond its mode.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// What a directory gives to what is made in it.
const DEFAULT_LIST: &str = "system.posix_acl_default";

/// Whose business an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Of whoever may write the file.
    User,
    /// Capabilities, and what else only root sets (xattr(7)): a grant of the embedder.
    Privileged,
    /// The system's own labels, which its policy gives to every file, and what is kept as something
    /// else here. Never carried over, and no loss.
    System,
}

fn class(name: &OsStr) -> Class {
    const SYSTEM: [&[u8]; 6] = [
        b"security.SMACK64",
        b"security.evm",
        b"security.ima",
        b"security.selinux",
        b"system.posix_acl_",
        // As XFS shows an access control list to root once more.
        b"trusted.SGI_ACL_",
    ];
    let name = name.as_bytes();
    if name.starts_with(b"user.") {
        Class::User
    } else if SYSTEM.iter().any(|prefix| name.starts_with(prefix)) {
        Class::System
    } else {
        Class::Privileged
    }
}

/// Whether the source has attributes that a guest may not carry over.
pub(crate) fn has_privileged(sys: &dyn Sys, source: BorrowedFd<'_>) -> Result<bool> {
    let names = names(sys, source)?;
    Ok(names.iter().any(|name| class(name) == Class::Privileged))
}

/// Copies the attributes and says whether all that there were are there now. The first that the
/// destination refuses is the error; the others are tried all the same.
pub(crate) fn copy(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
    privileged: bool,
) -> Carried<bool> {
    let mut whole = true;
    let mut answer = Ok(());
    for name in names(sys, source).map_err(at(Side::Source))? {
        match class(&name) {
            Class::System => {}
            Class::Privileged if !privileged => whole = false,
            Class::User | Class::Privileged => {
                let value = sys.xattr(source, &name).map_err(at(Side::Source));
                let copied = value.and_then(|value| {
                    let answer = sys.set_xattr(destination, &name, &value);
                    answer.map_err(at(Side::Destination))
                });
                match copied {
                    Err((_, Errno::INTR)) => return copied.map(|()| false),
                    // Taken away between the list and now.
                    Err((_, Errno::NODATA)) => {}
                    copied => answer = answer.and(copied),
                }
            }
        }
    }
    answer.map(|()| whole)
}

/// Gives the destination the source's access control list; none if it has none, since a directory's
/// default list may have given the new file one.
pub(crate) fn copy_access_list(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
) -> Carried<()> {
    copy_list(sys, source, destination, ACCESS_LIST)
}

/// The same of a directory's list for what is made in it.
pub(crate) fn copy_default_list(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
) -> Carried<()> {
    copy_list(sys, source, destination, DEFAULT_LIST)
}

fn copy_list(
    sys: &dyn Sys,
    source: BorrowedFd<'_>,
    destination: BorrowedFd<'_>,
    name: &str,
) -> Carried<()> {
    let name = OsStr::new(name);
    let answer = match sys.xattr(source, name) {
        Ok(list) => sys.set_xattr(destination, name, &list),
        Err(errno) if is_none(errno) => match sys.remove_xattr(destination, name) {
            Err(errno) if is_none(errno) => Ok(()),
            answer => answer,
        },
        Err(errno) => return Err((Side::Source, errno)),
    };
    answer.map_err(at(Side::Destination))
}

fn at(side: Side) -> impl Fn(Errno) -> (Side, Errno) {
    move |errno| (side, errno)
}

fn names(sys: &dyn Sys, fd: BorrowedFd<'_>) -> Result<Vec<std::ffi::OsString>> {
    match sys.xattr_names(fd) {
        Err(errno) if is_none(errno) => Ok(Vec::new()),
        answer => answer,
    }
}

/// There is none, or the file system has none at all.
fn is_none(errno: Errno) -> bool {
    matches!(errno, Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_root_needs_a_grant_and_labels_stay() {
        for (name, expected) in [
            ("user.mime_type", Class::User),
            ("user.security.x", Class::User),
            ("security.capability", Class::Privileged),
            ("trusted.overlay.opaque", Class::Privileged),
            ("system.nfs4_acl", Class::Privileged),
            ("usermime", Class::Privileged),
            ("security.selinux", Class::System),
            ("system.posix_acl_access", Class::System),
            ("system.posix_acl_default", Class::System),
            ("trusted.SGI_ACL_FILE", Class::System),
            ("trusted.SGI", Class::Privileged),
        ] {
            assert_eq!(class(OsStr::new(name)), expected, "{name}");
        }
    }
}
