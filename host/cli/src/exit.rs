//! What the command answers to whoever started it.

use std::process::ExitCode;

use crate::messages;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The guest ended by itself.
    Guest(u8),
    /// The timeout ended it.
    TimedOut,
    /// The guest trapped: what a native program gets for an abort (128 + SIGABRT).
    Trapped,
    /// The host could not run it.
    HostFailed,
}

impl Exit {
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Guest(status) => status,
            Self::TimedOut => 124,
            Self::Trapped => 134,
            Self::HostFailed => 125,
        }
    }

    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.status())
    }
}

/// Tells a failure of the host in one line.
pub(crate) fn fail(error: &wasmtime::Error) -> ExitCode {
    messages::complain(format_args!("{error:#}"));
    Exit::HostFailed.code()
}
