//! Between the contract's words and the engine's. Every conversion is in this file, once.

use copyist_engine::{
    Cause, Durability, Errno, Error, Existing, Limit, Mechanism, Preserve, Reflink, Side, Sparse,
    Special, Summary, Symlinks, TreeEntry, Window, WriteMode,
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::bindings::types as wit;

pub(crate) fn failure(error: Error) -> wit::Failure {
    wit::Failure {
        cause: cause(error.cause),
        // What the guest gave, given back: it was UTF-8. What a tree has beneath may not be.
        path: error.path.map(|path| path.to_string_lossy().into_owned()),
        done: summary(error.done),
    }
}

/// The one place where an engine's error becomes a guest's. No text of the system goes through.
fn cause(cause: Cause) -> wit::Cause {
    match cause {
        Cause::Io(at, errno) => wit::Cause::Filesystem((side(at), error_code(errno))),
        Cause::Denied => wit::Cause::Denied,
        Cause::Limit(which) => wit::Cause::Limit(match which {
            Limit::Bytes => wit::Limit::Bytes,
            Limit::TotalBytes => wit::Limit::TotalBytes,
            Limit::Entries => wit::Limit::Entries,
            Limit::Depth => wit::Limit::Depth,
            Limit::ReadSize => wit::Limit::ReadSize,
            Limit::Copies => wit::Limit::Copies,
        }),
        Cause::Cancelled => wit::Cause::Cancelled,
        Cause::TimedOut => wit::Cause::TimedOut,
        Cause::SameFile => wit::Cause::SameFile,
        Cause::Unsupported(_) => wit::Cause::Unsupported,
        Cause::NotUtf8 => {
            wit::Cause::Filesystem((wit::Side::Source, ErrorCode::IllegalByteSequence))
        }
        Cause::Panicked => wit::Cause::Other("internal error of the host".to_owned()),
    }
}

fn side(side: Side) -> wit::Side {
    match side {
        Side::Source => wit::Side::Source,
        Side::Destination => wit::Side::Destination,
    }
}

/// As wasmtime-wasi maps them; what WASI has no word for is `io`.
fn error_code(errno: Errno) -> ErrorCode {
    match errno {
        Errno::ACCESS => ErrorCode::Access,
        Errno::AGAIN => ErrorCode::WouldBlock,
        Errno::ALREADY => ErrorCode::Already,
        Errno::BADF => ErrorCode::BadDescriptor,
        Errno::BUSY => ErrorCode::Busy,
        Errno::DEADLK => ErrorCode::Deadlock,
        Errno::DQUOT => ErrorCode::Quota,
        Errno::EXIST => ErrorCode::Exist,
        Errno::FBIG => ErrorCode::FileTooLarge,
        Errno::ILSEQ => ErrorCode::IllegalByteSequence,
        Errno::INPROGRESS => ErrorCode::InProgress,
        Errno::INTR => ErrorCode::Interrupted,
        Errno::INVAL => ErrorCode::Invalid,
        Errno::ISDIR => ErrorCode::IsDirectory,
        Errno::LOOP => ErrorCode::Loop,
        Errno::MLINK => ErrorCode::TooManyLinks,
        Errno::MSGSIZE => ErrorCode::MessageSize,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        Errno::NODEV => ErrorCode::NoDevice,
        Errno::NOENT => ErrorCode::NoEntry,
        Errno::NOLCK => ErrorCode::NoLock,
        Errno::NOMEM => ErrorCode::InsufficientMemory,
        Errno::NOSPC => ErrorCode::InsufficientSpace,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::NOTEMPTY => ErrorCode::NotEmpty,
        Errno::NOTRECOVERABLE => ErrorCode::NotRecoverable,
        Errno::NOTSUP | Errno::NOSYS => ErrorCode::Unsupported,
        Errno::NOTTY => ErrorCode::NoTty,
        Errno::NXIO => ErrorCode::NoSuchDevice,
        Errno::OVERFLOW => ErrorCode::Overflow,
        Errno::PERM => ErrorCode::NotPermitted,
        Errno::PIPE => ErrorCode::Pipe,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::SPIPE => ErrorCode::InvalidSeek,
        Errno::TXTBSY => ErrorCode::TextFileBusy,
        Errno::XDEV => ErrorCode::CrossDevice,
        _ => ErrorCode::Io,
    }
}

pub(crate) fn summary(summary: Summary) -> wit::Summary {
    wit::Summary {
        bytes: summary.bytes,
        shared: summary.shared,
        consumed: summary.consumed,
        method: match summary.method {
            None => wit::Method::None,
            Some(Mechanism::Clone) => wit::Method::Clone,
            Some(Mechanism::CopyRange) => wit::Method::CopyRange,
            Some(Mechanism::SendFile) => wit::Method::SendFile,
            Some(Mechanism::Splice) => wit::Method::Splice,
            Some(Mechanism::ReadWrite) => wit::Method::ReadWrite,
        },
        files: summary.files,
        directories: summary.directories,
        links: summary.links,
        special: summary.special,
        skipped: summary.skipped,
        failed: summary.failed,
        lost: preserve_out(summary.lost),
        changed: summary.changed,
    }
}

/// An entry of a tree. A name that is no text is told as near as text comes to it.
pub(crate) fn entry(entry: TreeEntry) -> wit::Failure {
    wit::Failure {
        cause: cause(entry.cause),
        path: Some(entry.path.to_string_lossy().into_owned()),
        done: summary(Summary::default()),
    }
}

pub(crate) fn symlinks_in(value: wit::Symlinks) -> Symlinks {
    match value {
        wit::Symlinks::Keep => Symlinks::Keep,
        wit::Symlinks::Follow => Symlinks::Follow,
        wit::Symlinks::Skip => Symlinks::Skip,
    }
}

pub(crate) fn symlinks_out(value: Symlinks) -> wit::Symlinks {
    match value {
        Symlinks::Keep => wit::Symlinks::Keep,
        Symlinks::Follow => wit::Symlinks::Follow,
        Symlinks::Skip => wit::Symlinks::Skip,
    }
}

pub(crate) fn special_in(value: wit::Special) -> Special {
    match value {
        wit::Special::Refuse => Special::Refuse,
        wit::Special::Skip => Special::Skip,
        wit::Special::Keep => Special::Keep,
    }
}

pub(crate) fn special_out(value: Special) -> wit::Special {
    match value {
        Special::Refuse => wit::Special::Refuse,
        Special::Skip => wit::Special::Skip,
        Special::Keep => wit::Special::Keep,
    }
}

pub(crate) fn existing_in(value: wit::Existing) -> Existing {
    match value {
        wit::Existing::Refuse => Existing::Refuse,
        wit::Existing::Skip => Existing::Skip,
        wit::Existing::Update => Existing::Update,
        wit::Existing::Write => Existing::Write,
    }
}

pub(crate) fn existing_out(value: Existing) -> wit::Existing {
    match value {
        Existing::Refuse => wit::Existing::Refuse,
        Existing::Skip => wit::Existing::Skip,
        Existing::Update => wit::Existing::Update,
        Existing::Write => wit::Existing::Write,
    }
}

pub(crate) fn write_mode_in(value: wit::WriteMode) -> WriteMode {
    match value {
        wit::WriteMode::InPlace => WriteMode::InPlace,
        wit::WriteMode::Replace => WriteMode::Replace,
    }
}

pub(crate) fn write_mode_out(value: WriteMode) -> wit::WriteMode {
    match value {
        WriteMode::InPlace => wit::WriteMode::InPlace,
        WriteMode::Replace => wit::WriteMode::Replace,
    }
}

pub(crate) fn reflink_in(value: wit::Reflink) -> Reflink {
    match value {
        wit::Reflink::Auto => Reflink::Auto,
        wit::Reflink::Always => Reflink::Always,
        wit::Reflink::Never => Reflink::Never,
    }
}

pub(crate) fn reflink_out(value: Reflink) -> wit::Reflink {
    match value {
        Reflink::Auto => wit::Reflink::Auto,
        Reflink::Always => wit::Reflink::Always,
        Reflink::Never => wit::Reflink::Never,
    }
}

pub(crate) fn sparse_in(value: wit::Sparse) -> Sparse {
    match value {
        wit::Sparse::Auto => Sparse::Auto,
        wit::Sparse::Always => Sparse::Always,
        wit::Sparse::Never => Sparse::Never,
    }
}

pub(crate) fn sparse_out(value: Sparse) -> wit::Sparse {
    match value {
        Sparse::Auto => wit::Sparse::Auto,
        Sparse::Always => wit::Sparse::Always,
        Sparse::Never => wit::Sparse::Never,
    }
}

pub(crate) fn durability_in(value: wit::Durability) -> Durability {
    match value {
        wit::Durability::None => Durability::None,
        wit::Durability::Each => Durability::Each,
        wit::Durability::End => Durability::End,
    }
}

pub(crate) fn durability_out(value: Durability) -> wit::Durability {
    match value {
        Durability::None => wit::Durability::None,
        Durability::Each => wit::Durability::Each,
        Durability::End => wit::Durability::End,
    }
}

/// Each attribute in both vocabularies.
const ATTRIBUTES: [(wit::Preserve, Preserve); 6] = [
    (wit::Preserve::MODE, Preserve::MODE),
    (wit::Preserve::TIMESTAMPS, Preserve::TIMESTAMPS),
    (wit::Preserve::OWNERSHIP, Preserve::OWNERSHIP),
    (wit::Preserve::XATTRS, Preserve::XATTRS),
    (wit::Preserve::ACLS, Preserve::ACLS),
    (wit::Preserve::LINKS, Preserve::LINKS),
];

pub(crate) fn preserve_in(value: wit::Preserve) -> Preserve {
    ATTRIBUTES
        .into_iter()
        .filter(|(theirs, _)| value.contains(*theirs))
        .fold(Preserve::NONE, |set, (_, ours)| set | ours)
}

pub(crate) fn preserve_out(value: Preserve) -> wit::Preserve {
    ATTRIBUTES
        .into_iter()
        .filter(|(_, ours)| value.contains(*ours))
        .fold(wit::Preserve::empty(), |set, (theirs, _)| set | theirs)
}

pub(crate) fn window_in(value: wit::Window) -> Window {
    Window {
        source_offset: value.source_offset,
        length: value.length,
        destination_offset: value.destination_offset,
    }
}

pub(crate) fn window_out(value: Window) -> wit::Window {
    wit::Window {
        source_offset: value.source_offset,
        length: value.length,
        destination_offset: value.destination_offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_go_both_ways() {
        for bits in 0..64_u8 {
            let theirs = ATTRIBUTES
                .into_iter()
                .enumerate()
                .filter(|(place, _)| bits & (1 << place) != 0)
                .fold(wit::Preserve::empty(), |set, (_, (theirs, _))| set | theirs);
            assert!(preserve_out(preserve_in(theirs)) == theirs, "{bits:#b}");
        }
    }
}
