//! Opening beneath a directory where the kernel has no call for it: cap-std walks one component
//! at a time.

use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Result;

/// What a path that leads out answers, as in `wasi:filesystem`.
pub(super) const ESCAPE: Errno = Errno::PERM;

pub(super) fn open(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    if names_one_entry(path, flags) {
        return rustix::fs::openat(directory, path, flags, mode);
    }
    let directory = Dir::from_std_file(
        directory
            .try_clone_to_owned()
            .map_err(|error| errno(&error))?
            .into(),
    );
    if flags.contains(OFlags::DIRECTORY) {
        return match directory.open_dir(path) {
            Ok(found) => Ok(found.into_std_file().into()),
            Err(error) => Err(errno(&error)),
        };
    }
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
    // The widths of these types differ between platforms.
    #[allow(
        clippy::useless_conversion,
        clippy::cast_possible_wrap,
        reason = "mode_t has 16 bits on macOS, and open(2)'s flags are an int"
    )]
    let (raw_mode, custom) = (
        u32::from(mode.bits()),
        (flags & (OFlags::NONBLOCK | OFlags::NOCTTY)).bits() as i32,
    );
    let mut options = OpenOptions::new();
    options
        .read(!flags.contains(OFlags::WRONLY))
        .write(writes)
        .create_new(exclusive)
        .mode(raw_mode)
        .custom_flags(custom)
        .follow(if flags.contains(OFlags::NOFOLLOW) {
            FollowSymlinks::No
        } else {
            FollowSymlinks::Yes
        });
    match directory.open_with(path, &options) {
        Ok(file) => Ok(file.into_std().into()),
        Err(error) => Err(errno(&error)),
    }
}

/// Whether the kernel can open this without resolving anything: a single name of which no link is
/// followed, or the directory itself.
fn names_one_entry(path: &Path, flags: OFlags) -> bool {
    // By bytes: two paths are equal also if one ends in a slash, with which a link is followed.
    let bytes = path.as_os_str().as_bytes();
    if bytes == b"." {
        return true;
    }
    let mut components = path.components();
    let single = matches!(components.next(), Some(Component::Normal(name)) if name.as_bytes() == bytes)
        && components.next().is_none();
    let follows_nothing = flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::EXCL);
    single && follows_nothing
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(match error.kind() {
        // cap-std's own word for an escape has no number.
        ErrorKind::PermissionDenied => ESCAPE,
        ErrorKind::NotFound => Errno::NOENT,
        ErrorKind::InvalidInput => Errno::INVAL,
        _ => Errno::IO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

    #[test]
    fn what_leads_out_is_refused_and_what_stays_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(root.join("sub/file"), "file").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("sub/file", root.join("in")).unwrap();
        symlink("in", root.join("nested")).unwrap();
        let directory = fs::File::open(&root).unwrap();
        let answer = |path: &str, flags| {
            open(directory.as_fd(), Path::new(path), flags, Mode::empty()).map(drop)
        };
        for path in [
            "../secret",
            "out",
            "up/secret",
            "sub/../../secret",
            "/etc/hostname",
            "up",
        ] {
            assert_eq!(answer(path, READ), Err(Errno::PERM), "{path}");
        }
        symlink("../root2", root.join("dir-out")).unwrap();
        fs::create_dir(outer.path().join("root2")).unwrap();
        for path in ["dir-out/", "dir-out/.", "out/", "out/."] {
            assert!(
                matches!(
                    answer(path, READ | OFlags::NOFOLLOW),
                    Err(Errno::PERM | Errno::LOOP)
                ),
                "{path}"
            );
        }
        for path in ["sub/file", "in", "nested", "sub/../in", "./sub/./file"] {
            assert_eq!(answer(path, READ), Ok(()), "{path}");
        }
        assert_eq!(answer("in", READ | OFlags::NOFOLLOW), Err(Errno::LOOP));
        assert!(answer("sub/file/", READ).is_err());
        assert_eq!(answer("gone", READ), Err(Errno::NOENT));
        assert_eq!(
            answer("sub", READ | OFlags::DIRECTORY | OFlags::NOFOLLOW),
            Ok(())
        );
        assert_eq!(answer("up", READ | OFlags::DIRECTORY), Err(Errno::PERM));
    }

    #[test]
    fn an_exclusive_open_does_not_follow_a_dangling_link() {
        let root = tempfile::tempdir().unwrap();
        symlink("nowhere", root.path().join("link")).unwrap();
        fs::create_dir(root.path().join("sub")).unwrap();
        let directory = fs::File::open(root.path()).unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        for path in ["link", "sub/../link"] {
            let answer = open(
                directory.as_fd(),
                Path::new(path),
                flags,
                Mode::from_raw_mode(0o600),
            );
            assert_eq!(answer.map(drop), Err(Errno::EXIST));
        }
        assert!(!root.path().join("nowhere").exists());
    }
}
