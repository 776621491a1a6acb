//! What a file of the bed can do wrong, and the table of the faults that have a name.
//!
//! A file has a list of [`Rule`]s; a good one has none. A new fault is a line of the table.

use rustix::io::Errno;

/// A request that the kernel makes of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// What a name leads to.
    Lookup,
    /// stat(2) and what the kernel asks for itself.
    GetAttributes,
    /// open(2) of a file that is there.
    Open,
    /// open(2) that makes one.
    Create,
    /// read(2), and what becomes of it in sendfile(2) and splice(2).
    Read,
    /// write(2), likewise.
    Write,
    /// copy_file_range(2) within the bed.
    CopyRange,
    /// lseek(2) to data or to a hole.
    Seek,
    /// close(2); as often as there are descriptors of it.
    Flush,
    /// The last close(2).
    Release,
    /// fsync(2), of a directory too.
    Sync,
    /// ftruncate(2).
    Truncate,
    /// fchmod(2).
    Chmod,
    /// fchown(2).
    Chown,
    /// futimens(2).
    SetTimes,
    /// fsetxattr(2).
    SetAttribute,
    /// fgetxattr(2).
    GetAttribute,
    /// flistxattr(2).
    ListAttributes,
    /// fremovexattr(2).
    RemoveAttribute,
    /// fallocate(2).
    Allocate,
    /// link(2), of the file that gets another name.
    Link,
    /// rename(2), of the file that is renamed.
    Rename,
    /// unlink(2).
    Unlink,
    /// readdir(3), of the directory.
    List,
    /// mkdir(2), rmdir(2), symlink(2), readlink(2), mknod(2) and statfs(2).
    Other,
}

/// One thing that is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// stat(2) lies about the length.
    Says(Size),
    /// stat(2) says that so many units of 512 bytes are allocated.
    Blocks(u64),
    /// A call fails.
    ///
    /// What the kernel makes of some answers: `ENOSYS` counts for the whole bed from then on, as
    /// success of [`Call::Flush`] and [`Call::Sync`]; after `EOPNOTSUPP`, `EXDEV` and `ENOSYS` to
    /// [`Call::CopyRange`] it copies by itself. Errors above 511 cannot be answered at all.
    Fails(Call, Errno, When),
    /// A call moves no more bytes than this, though it succeeds.
    AtMost(Call, u32),
    /// A call is not answered until [`Bed::release`](crate::Bed::release).
    Hangs(Call),
    /// Its length changes after bytes were taken from it for the first time.
    Becomes(Length),
    /// What lseek(2) calls data and holes.
    Holes(Holes),
}

/// When a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every time.
    Always,
    /// The first so many times.
    First(u32),
    /// Where it starts at this offset or beyond; one that starts before ends there.
    From(u64),
}

/// What stat(2) says of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Nothing, whatever there is, as procfs does.
    Zero,
    /// So many bytes too many.
    Over(u64),
    /// So many too few.
    Under(u64),
}

/// What becomes of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// What is beyond is gone.
    Cut(u64),
    /// So many bytes are appended.
    Longer(u64),
}

/// What lseek(2) calls data and holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// Whole pages of zeros are holes, which is true.
    ZeroPages,
    /// All of it is a hole, whatever it has.
    Everything,
    /// Data and holes lie before the place that was asked for.
    Backwards,
    /// Every byte is followed by a hole, and every hole is empty.
    Everywhere,
}

/// A good file.
pub const GOOD: &[Rule] = &[];

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident $rules:expr;)*) => {
        $($(#[$doc])* pub const $name: &[Rule] = &$rules;)*

        /// Every fault that has a name.
        pub const ALL: &[(&str, &[Rule])] = &[$((stringify!($name), $name)),*];
    };
}

use Rule::{AtMost, Becomes, Blocks, Fails, Hangs, Holes as HasHoles, Says};
use When::{Always, First, From};

table! {
    /// Says that it is empty.
    ZERO [Says(Size::Zero)];
    /// Says that it is a page longer than it is.
    LARGER [Says(Size::Over(4096))];
    /// Says that it is 1,000 bytes shorter than it is.
    PAST_SIZE [Says(Size::Under(1000))];
    /// Its medium is broken from 64 KiB on.
    EIO_AT_64K [Fails(Call::Read, Errno::IO, From(64 << 10)), Fails(Call::CopyRange, Errno::IO, From(64 << 10))];
    /// The disk is full after 1 MiB.
    ENOSPC_AT_1M [Fails(Call::Write, Errno::NOSPC, From(1 << 20)), Fails(Call::CopyRange, Errno::NOSPC, From(1 << 20))];
    /// The quota turns out to be used up when it is closed.
    EDQUOT_AT_CLOSE [Fails(Call::Flush, Errno::DQUOT, Always)];
    /// What was written cannot be put on the medium, which only fsync(2) tells.
    EIO_AT_SYNC [Fails(Call::Sync, Errno::IO, Always)];
    /// Reads give one byte.
    READS_ONE_BYTE [AtMost(Call::Read, 1)];
    /// Reads give 4 KiB.
    READS_4K [AtMost(Call::Read, 4096)];
    /// Writes take one byte.
    WRITES_ONE_BYTE [AtMost(Call::Write, 1)];
    /// Writes take 4 KiB.
    WRITES_4K [AtMost(Call::Write, 4096)];
    /// Writes succeed and take nothing.
    WRITES_NOTHING [AtMost(Call::Write, 0)];
    /// copy_file_range(2) copies 4 KiB and then answers `EINVAL`.
    COPY_RANGE_EINVAL_AT_4K [Fails(Call::CopyRange, Errno::INVAL, From(4096))];
    /// copy_file_range(2) answers 0.
    COPY_RANGE_ZERO [AtMost(Call::CopyRange, 0)];
    /// copy_file_range(2) copies one byte at a time.
    COPY_RANGE_ONE_BYTE [AtMost(Call::CopyRange, 1)];
    /// copy_file_range(2) copies 4 KiB at a time.
    COPY_RANGE_4K [AtMost(Call::CopyRange, 4096)];
    /// copy_file_range(2) is not there, and the kernel copies by itself.
    COPY_RANGE_ENOSYS [Fails(Call::CopyRange, Errno::NOSYS, Always)];
    /// As `COPY_RANGE_ENOSYS`.
    COPY_RANGE_EXDEV [Fails(Call::CopyRange, Errno::XDEV, Always)];
    /// As `COPY_RANGE_ENOSYS`.
    COPY_RANGE_EOPNOTSUPP [Fails(Call::CopyRange, Errno::OPNOTSUPP, Always)];
    /// copy_file_range(2) is refused.
    COPY_RANGE_EINVAL [Fails(Call::CopyRange, Errno::INVAL, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EPERM [Fails(Call::CopyRange, Errno::PERM, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EACCES [Fails(Call::CopyRange, Errno::ACCESS, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EBADF [Fails(Call::CopyRange, Errno::BADF, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EIO [Fails(Call::CopyRange, Errno::IO, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_ENOENT [Fails(Call::CopyRange, Errno::NOENT, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_ENOTTY [Fails(Call::CopyRange, Errno::NOTTY, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_ETXTBSY [Fails(Call::CopyRange, Errno::TXTBSY, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EFBIG [Fails(Call::CopyRange, Errno::FBIG, Always)];
    /// As `COPY_RANGE_EINVAL`.
    COPY_RANGE_EOVERFLOW [Fails(Call::CopyRange, Errno::OVERFLOW, Always)];
    /// copy_file_range(2) would have to wait, once.
    COPY_RANGE_EAGAIN_ONCE [Fails(Call::CopyRange, Errno::AGAIN, First(1))];
    /// copy_file_range(2) is interrupted, three times.
    COPY_RANGE_EINTR [Fails(Call::CopyRange, Errno::INTR, First(3))];
    /// Its length cannot be set.
    TRUNCATE_REFUSED [Fails(Call::Truncate, Errno::PERM, Always)];
    /// Its mode cannot be set.
    CHMOD_REFUSED [Fails(Call::Chmod, Errno::PERM, Always)];
    /// Its owner cannot be set.
    CHOWN_REFUSED [Fails(Call::Chown, Errno::PERM, Always)];
    /// Its times cannot be set.
    TIMES_REFUSED [Fails(Call::SetTimes, Errno::PERM, Always)];
    /// It takes no extended attributes.
    ATTRIBUTES_REFUSED [Fails(Call::SetAttribute, Errno::OPNOTSUPP, Always)];
    /// It has no room for more of them.
    ATTRIBUTES_FULL [Fails(Call::SetAttribute, Errno::NOSPC, Always)];
    /// It cannot be allocated in advance.
    ALLOCATE_REFUSED [Fails(Call::Allocate, Errno::OPNOTSUPP, Always)];
    /// It gets no other name.
    LINK_REFUSED [Fails(Call::Link, Errno::PERM, Always)];
    /// It keeps its name.
    RENAME_REFUSED [Fails(Call::Rename, Errno::IO, Always)];
    /// It cannot be opened: the medium is broken.
    OPEN_EIO [Fails(Call::Open, Errno::IO, Always)];
    /// It cannot be looked at.
    STAT_EIO [Fails(Call::GetAttributes, Errno::IO, Always)];
    /// Reads are not answered.
    READ_HANGS [Hangs(Call::Read)];
    /// copy_file_range(2) is not answered, nor reads.
    COPY_HANGS [Hangs(Call::CopyRange), Hangs(Call::Read)];
    /// Writes are not answered.
    WRITE_HANGS [Hangs(Call::Write), Hangs(Call::CopyRange)];
    /// fsync(2) does not return.
    SYNC_HANGS [Hangs(Call::Sync)];
    /// close(2) does not return.
    CLOSE_HANGS [Hangs(Call::Flush)];
    /// open(2) does not return.
    OPEN_HANGS [Hangs(Call::Open)];
    /// It is cut to a page after the first read.
    SHRINKS [Becomes(Length::Cut(4096))];
    /// It is emptied after the first read.
    EMPTIES [Becomes(Length::Cut(0))];
    /// It gets 10,000 bytes longer after the first read.
    GROWS [Becomes(Length::Longer(10_000))];
    /// The first read would have to wait.
    READ_EAGAIN_ONCE [Fails(Call::Read, Errno::AGAIN, First(1))];
    /// The first write would have to wait.
    WRITE_EAGAIN_ONCE [Fails(Call::Write, Errno::AGAIN, First(1))];
    /// The first hundred reads are interrupted.
    READ_EINTR [Fails(Call::Read, Errno::INTR, First(100))];
    /// The first hundred writes are interrupted.
    WRITE_EINTR [Fails(Call::Write, Errno::INTR, First(100))];
    /// Opening it is interrupted at first.
    OPEN_EINTR_ONCE [Fails(Call::Open, Errno::INTR, First(1))];
    /// Pages of zeros are holes.
    HOLES [HasHoles(Holes::ZeroPages)];
    /// Says that it has one page, and makes no holes: as if it were compressed.
    FEW_BLOCKS [Blocks(8)];
    /// Says that nothing is allocated, and lseek(2) calls all of it a hole.
    HOLES_EVERYTHING [Blocks(0), HasHoles(Holes::Everything)];
    /// lseek(2) finds data and holes before the place that was asked for.
    HOLES_BACKWARDS [Blocks(8), HasHoles(Holes::Backwards)];
    /// lseek(2) finds an empty hole at every byte.
    HOLES_EVERYWHERE [Blocks(8), HasHoles(Holes::Everywhere)];
    /// lseek(2) knows no holes.
    HOLES_EINVAL [Blocks(8), Fails(Call::Seek, Errno::INVAL, Always)];
    /// lseek(2) fails.
    HOLES_EIO [Blocks(8), Fails(Call::Seek, Errno::IO, Always)];
    /// lseek(2) is interrupted, three times.
    HOLES_EINTR [Blocks(8), HasHoles(Holes::ZeroPages), Fails(Call::Seek, Errno::INTR, First(3))];
}
