//! The command line. One definition makes the parser and the help.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::endpoints;

/// Lets WebAssembly components copy files at the speed of the host.
#[derive(Debug, Parser)]
#[command(name = "copyist", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a component with copying granted
    Run(Run),
}

const EXIT_STATUS: &str = "\
Exit status:
  the guest's own    It ended by itself. WASI 0.2 knows success (0) and failure (1); other numbers
                     need wasi:cli/exit's exit-with-code.
  124                The timeout ended it.
  125                The host could not run it; one line says what to do.
  134                It trapped.

Examples:
  Copy out of one directory into another, which the guest sees as /in and /out:
    copyist run --ro-dir photos::/in --dir backup::/out plugin.wasm /out /in/cat.jpg

  Copy what comes from one program to another, with the guest in between:
    tar c photos | copyist run --endpoint in=stdin --endpoint out:w=backup.tar plugin.wasm

  No more than a gigabyte and no longer than a minute, with a report of each copy:
    copyist run --dir . --max-bytes 1GiB --timeout 1m --report json plugin.wasm copies a b";

/// Runs a component that exports wasi:cli/run, as `wasmtime run` does, and lets it copy files by
/// copyist:copy. It sees the directories that are given here and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Run {
    /// Let the guest read and write a directory of the host
    ///
    /// It sees it under GUEST, or under the same name where none is given. Copies stay beneath it.
    #[arg(long = "dir", value_name = "HOST[::GUEST]")]
    pub(crate) dirs: Vec<Preopen>,

    /// Let the guest read a directory of the host
    ///
    /// As --dir, but nothing in it can be changed: it can be copied from, not to.
    #[arg(long = "ro-dir", value_name = "HOST[::GUEST]")]
    pub(crate) read_only_dirs: Vec<Preopen>,

    /// Let the guest open a pipe, a socket, a terminal or a file under a name, to copy from and to
    ///
    /// END is one of:
    ///   stdin, stdout   of this command; the guest's own is empty then, or leads nowhere
    ///   fd:N            a descriptor that this command inherits
    ///   unix:PATH       a connection to a socket
    ///   tcp:HOST:PORT   a connection
    ///   PATH            a FIFO, a device or a file: read, unless :w after the name (as > in a
    ///                   shell) or :rw (as <>) says otherwise; a device also written
    /// What is opened is narrowed by :r, :w or :rw after the name. A FIFO that is written waits for
    /// its reader before the guest starts.
    #[arg(
        long = "endpoint",
        value_name = "NAME[:r|:w|:rw]=END",
        verbatim_doc_comment
    )]
    pub(crate) endpoints: Vec<endpoints::Grant>,

    /// Set a variable in the guest's environment, which is empty otherwise
    ///
    /// Without a value it has the host's.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) variables: Vec<String>,

    /// End the guest after so long, such as 500ms, 30s or 1h, also while it copies
    ///
    /// A copy that it ends leaves what a failed copy leaves: a new file is gone again, a file to be
    /// replaced is the old one, one written in place is written in part.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Let the guest copy so many bytes in all, such as 1000000 or 1GiB
    ///
    /// Holes count. Without it there is no bound.
    #[arg(long, value_name = "N", value_parser = bytes)]
    pub(crate) max_bytes: Option<bytesize::ByteSize>,

    /// Let each tree that the guest copies have so many entries
    ///
    /// Without it there is no bound.
    #[arg(long, value_name = "N")]
    pub(crate) max_entries: Option<u64>,

    /// Let the trees that the guest copies be so deep, in directories
    ///
    /// Without it there is no bound.
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<u32>,

    /// Let the guest do what WASI alone does not
    #[arg(long = "grant", value_name = "GRANT")]
    pub(crate) grants: Vec<Grant>,

    /// Tell each copy on the standard error, a line each
    #[arg(long, value_name = "FORMAT")]
    pub(crate) report: Option<ReportFormat>,

    /// The component, a .wasm file, and what the guest gets as its arguments
    ///
    /// All that follows the component is the guest's, also where it looks like an option of this
    /// command.
    // One list, since everything after its first item is taken as it is.
    #[arg(required = true, trailing_var_arg = true, value_names = ["COMPONENT", "ARGUMENT"])]
    component_and_arguments: Vec<String>,
}

impl Run {
    /// The component.
    pub(crate) fn component(&self) -> &Path {
        self.component_and_arguments
            .first()
            .map_or(Path::new(""), Path::new)
    }

    /// What the guest gets as its arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.component_and_arguments.get(1..).unwrap_or_default()
    }
}

fn variable(text: &str) -> Result<String, &'static str> {
    if text.is_empty() || text.starts_with('=') {
        return Err("a variable has a name before the `=`");
    }
    Ok(text.to_owned())
}

fn bytes(text: &str) -> Result<bytesize::ByteSize, &'static str> {
    text.parse()
        .map_err(|_| "give a number of bytes below 2^64, such as 1000000 or 1GiB")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Grant {
    /// Setuid, setgid and sticky bits are kept when the mode is preserved
    SpecialModeBits,
    /// User and group are kept when ownership is preserved
    Ownership,
    /// Attributes that only root sets are kept when attributes are preserved, such as capabilities
    PrivilegedXattrs,
    /// FIFOs, sockets and devices of a tree are made anew
    SpecialFiles,
    /// Symbolic links of a tree are made also where they lead out of it
    LeavingLinks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// One JSON object a line
    Json,
}

/// A directory of the host and its name in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preopen {
    pub(crate) host: PathBuf,
    pub(crate) guest: String,
}

impl std::str::FromStr for Preopen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, guest) = text.split_once("::").unwrap_or((text, text));
        if host.is_empty() || guest.is_empty() {
            return Err("a directory has a name on both sides of `::`");
        }
        Ok(Self {
            host: host.into(),
            guest: guest.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_directory_has_the_hosts_name_unless_it_gets_another() {
        let preopen = |host: &str, guest: &str| {
            Ok(Preopen {
                host: host.into(),
                guest: guest.into(),
            })
        };
        assert_eq!("data".parse(), preopen("data", "data"));
        assert_eq!("a/b::/in".parse(), preopen("a/b", "/in"));
        assert_eq!("a::b::c".parse(), preopen("a", "b::c"));
        for bad in ["", "::", "a::", "::b"] {
            assert!(bad.parse::<Preopen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_follows_the_component_is_the_guests() {
        let args = Args::try_parse_from([
            "copyist",
            "run",
            "--timeout",
            "1s",
            "x.wasm",
            "--dir",
            "y",
            "-h",
        ])
        .unwrap();
        let Command::Run(run) = args.command;
        assert_eq!(run.arguments(), ["--dir", "y", "-h"]);
        assert!(run.dirs.is_empty());
        assert_eq!(run.timeout, Some(Duration::from_secs(1)));
    }
}
