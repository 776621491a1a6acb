//! What kind of [`io::Error`] a failure is.

use std::io;

use crate::{Cause, ErrorCode, Limit};

pub(crate) fn of(cause: &Cause) -> io::ErrorKind {
    match cause {
        Cause::Filesystem((_, code)) => of_code(*code),
        Cause::Denied => io::ErrorKind::PermissionDenied,
        Cause::Limit(Limit::Bytes | Limit::ReadSize) => io::ErrorKind::FileTooLarge,
        Cause::Limit(Limit::TotalBytes | Limit::Entries | Limit::Depth | Limit::Copies) => {
            io::ErrorKind::QuotaExceeded
        }
        Cause::TimedOut => io::ErrorKind::TimedOut,
        Cause::SameFile => io::ErrorKind::InvalidInput,
        Cause::Unsupported => io::ErrorKind::Unsupported,
        // Not `Interrupted`, upon which callers try again.
        Cause::Cancelled | Cause::Other(_) => io::ErrorKind::Other,
    }
}

fn of_code(code: ErrorCode) -> io::ErrorKind {
    match code {
        ErrorCode::Access | ErrorCode::NotPermitted => io::ErrorKind::PermissionDenied,
        ErrorCode::WouldBlock => io::ErrorKind::WouldBlock,
        ErrorCode::Busy => io::ErrorKind::ResourceBusy,
        ErrorCode::Deadlock => io::ErrorKind::Deadlock,
        ErrorCode::Quota => io::ErrorKind::QuotaExceeded,
        ErrorCode::Exist => io::ErrorKind::AlreadyExists,
        ErrorCode::FileTooLarge => io::ErrorKind::FileTooLarge,
        ErrorCode::IllegalByteSequence => io::ErrorKind::InvalidData,
        ErrorCode::Interrupted => io::ErrorKind::Interrupted,
        ErrorCode::Invalid | ErrorCode::Overflow => io::ErrorKind::InvalidInput,
        ErrorCode::IsDirectory => io::ErrorKind::IsADirectory,
        ErrorCode::TooManyLinks => io::ErrorKind::TooManyLinks,
        ErrorCode::NameTooLong => io::ErrorKind::InvalidFilename,
        ErrorCode::NoEntry => io::ErrorKind::NotFound,
        ErrorCode::InsufficientMemory => io::ErrorKind::OutOfMemory,
        ErrorCode::InsufficientSpace => io::ErrorKind::StorageFull,
        ErrorCode::NotDirectory => io::ErrorKind::NotADirectory,
        ErrorCode::NotEmpty => io::ErrorKind::DirectoryNotEmpty,
        ErrorCode::Unsupported => io::ErrorKind::Unsupported,
        ErrorCode::Pipe => io::ErrorKind::BrokenPipe,
        ErrorCode::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        ErrorCode::InvalidSeek => io::ErrorKind::NotSeekable,
        ErrorCode::TextFileBusy => io::ErrorKind::ExecutableFileBusy,
        ErrorCode::CrossDevice => io::ErrorKind::CrossesDevices,
        ErrorCode::Already
        | ErrorCode::BadDescriptor
        | ErrorCode::InProgress
        | ErrorCode::Io
        // Its kind, FilesystemLoop, is not stable yet.
        | ErrorCode::Loop
        | ErrorCode::MessageSize
        | ErrorCode::NoDevice
        | ErrorCode::NoLock
        | ErrorCode::NotRecoverable
        | ErrorCode::NoTty
        | ErrorCode::NoSuchDevice => io::ErrorKind::Other,
    }
}
