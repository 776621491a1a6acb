//! The small copies whose system calls are counted, and the read.

use clap::ValueEnum;
use copyist_engine::{Options, Preserve, WriteMode};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    New,
    NewMode,
    NewModeTimestamps,
    InPlace,
    InPlaceLonger,
    Replace,
    ReplaceModeTimestamps,
    Read,
}

impl Shape {
    pub(crate) const ALL: [Self; 8] = [
        Self::New,
        Self::NewMode,
        Self::NewModeTimestamps,
        Self::InPlace,
        Self::InPlaceLonger,
        Self::Replace,
        Self::ReplaceModeTimestamps,
        Self::Read,
    ];

    /// As on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::NewMode => "new-mode",
            Self::NewModeTimestamps => "new-mode-timestamps",
            Self::InPlace => "in-place",
            Self::InPlaceLonger => "in-place-longer",
            Self::Replace => "replace",
            Self::ReplaceModeTimestamps => "replace-mode-timestamps",
            Self::Read => "read",
        }
    }

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::New => "4 KiB to a new file",
            Self::NewMode => "4 KiB to a new file, mode kept",
            Self::NewModeTimestamps => "4 KiB to a new file, mode and timestamps kept",
            Self::InPlace => "4 KiB over a file of that length, in place",
            Self::InPlaceLonger => "4 KiB over a longer file, in place",
            Self::Replace => "4 KiB that replace a file, whose mode stays",
            Self::ReplaceModeTimestamps => "4 KiB that replace a file, mode and timestamps kept",
            Self::Read => "a whole-file read of 300 kB",
        }
    }

    /// System calls that the engine may make.
    pub(crate) const fn most(self) -> u32 {
        match self {
            Self::New => 7,
            Self::InPlace => 9,
            // One for each attribute kept, and one for what is cut off.
            Self::NewMode => 7 + 1,
            Self::NewModeTimestamps => 7 + 2,
            Self::InPlaceLonger => 9 + 1,
            Self::Replace => 10 + 1,
            Self::ReplaceModeTimestamps => 10 + 2,
            // Between open and close.
            Self::Read => 3,
        }
    }

    /// What is not among them.
    pub(crate) const fn not_counted(self) -> &'static [&'static str] {
        match self {
            Self::Read => &[
                "openat2", "close", "mmap", "munmap", "brk", "mremap", "madvise",
            ],
            _ => &[],
        }
    }

    /// Says so.
    pub(crate) const fn counted(self) -> &'static str {
        match self {
            Self::Read => " between open and close, memory aside",
            _ => "",
        }
    }

    /// The hop is the same for all, so that a few are enough.
    pub(crate) const fn has_hop_row(self) -> bool {
        matches!(self, Self::New | Self::InPlace | Self::Replace | Self::Read)
    }

    /// Whether each copy has a destination of its own.
    pub(crate) const fn is_fresh(self) -> bool {
        matches!(
            self,
            Self::New | Self::NewMode | Self::NewModeTimestamps | Self::InPlaceLonger
        )
    }

    pub(crate) fn options(self) -> Options {
        let mut options = Options::default();
        match self {
            Self::New | Self::InPlace | Self::InPlaceLonger | Self::Read => {}
            Self::NewMode => options.preserve = Preserve::MODE,
            Self::NewModeTimestamps => options.preserve = Preserve::MODE | Preserve::TIMESTAMPS,
            Self::Replace => options.write_mode = WriteMode::Replace,
            Self::ReplaceModeTimestamps => {
                options.write_mode = WriteMode::Replace;
                options.preserve = Preserve::MODE | Preserve::TIMESTAMPS;
            }
        }
        options
    }

    /// The same, as a guest is told.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::New => &["--fresh"],
            Self::NewMode => &["--fresh", "--preserve=mode"],
            Self::NewModeTimestamps => &["--fresh", "--preserve=mode,timestamps"],
            Self::InPlace | Self::InPlaceLonger => &[],
            Self::Replace => &["--replace"],
            Self::ReplaceModeTimestamps => &["--replace", "--preserve=mode,timestamps"],
            Self::Read => &["--read"],
        }
    }
}
