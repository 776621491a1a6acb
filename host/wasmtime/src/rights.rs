//! What a guest may do with a descriptor.

use copyist_engine::{Cause, Errno, Side};
use wasmtime_wasi::filesystem::{Dir, File, OpenMode};

/// What a guest may do with one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// It may read the file, or look into the directory.
    pub read: bool,
    /// It may write the file.
    pub write: bool,
    /// The embedder lets it change anything here at all.
    pub mutable: bool,
}

impl Rights {
    /// Everything that the open file itself allows.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        mutable: true,
    };

    /// As `wasi:filesystem` enforces them: a file's mode of opening, and the preopen's permission.
    pub(crate) fn of_file(file: &File) -> Self {
        Self {
            read: file.open_mode.contains(OpenMode::READ),
            write: file.open_mode.contains(OpenMode::WRITE),
            mutable: !file.perms.write_not_permitted(),
        }
    }

    /// wasmtime-wasi looks at a directory's permission alone, not at how it was opened.
    pub(crate) fn of_directory(directory: &Dir) -> Self {
        let mutable = !directory.perms.write_not_permitted();
        Self {
            read: true,
            write: mutable,
            mutable,
        }
    }

    /// Whether this can be a source.
    pub(crate) fn check_source(self) -> Result<(), Cause> {
        if self.read {
            Ok(())
        } else {
            Err(Cause::Io(Side::Source, Errno::BADF))
        }
    }

    /// Whether this can be a destination.
    pub(crate) fn check_destination(self) -> Result<(), Cause> {
        if !self.mutable {
            Err(Cause::Io(Side::Destination, Errno::PERM))
        } else if !self.write {
            Err(Cause::Io(Side::Destination, Errno::BADF))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_and_a_destination_written() {
        let rights = |read, write, mutable| Rights {
            read,
            write,
            mutable,
        };
        assert!(rights(true, false, false).check_source().is_ok());
        assert_eq!(
            rights(false, true, true).check_source(),
            Err(Cause::Io(Side::Source, Errno::BADF))
        );
        assert!(rights(false, true, true).check_destination().is_ok());
        assert_eq!(
            rights(true, true, false).check_destination(),
            Err(Cause::Io(Side::Destination, Errno::PERM))
        );
        assert_eq!(
            rights(true, false, true).check_destination(),
            Err(Cause::Io(Side::Destination, Errno::BADF))
        );
    }
}
