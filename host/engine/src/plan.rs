//! Which mechanisms are tried, and in which order: a pure function of what is known before the
//! first byte moves. Every platform's table compiles, and is tested, on every platform.

use std::fmt;

use crate::request::{Reflink, Sparse, Tuning};

/// A way to move bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// Storage is shared, copy on write: `ioctl(FICLONE)`, or `ioctl(FICLONERANGE)` of a part.
    Clone,
    /// copy_file_range(2): within the kernel; some file systems share or copy on the server.
    CopyRange,
    /// sendfile(2): within the kernel, also between file systems.
    SendFile,
    /// splice(2): within the kernel, where one end is a pipe.
    Splice,
    /// pread(2) and pwrite(2) through a buffer: works wherever anything does, and decides which
    /// end is at fault.
    ReadWrite,
}

impl Mechanism {
    /// All of them, in the order of their worth.
    pub const ALL: [Self; 5] = [
        Self::Clone,
        Self::CopyRange,
        Self::SendFile,
        Self::Splice,
        Self::ReadWrite,
    ];

    /// Which moved most, by how much each did; the worthier where two are even.
    pub(crate) fn of_most(moved_by: &[u64; Self::ALL.len()]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .max_by_key(|mechanism| moved_by[*mechanism as usize])
            .filter(|mechanism| moved_by[*mechanism as usize] > 0)
    }

    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::CopyRange => "copy-range",
            Self::SendFile => "send-file",
            Self::Splice => "splice",
            Self::ReadWrite => "read-write",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The systems that have a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// Linux 4.5 and later; what a kernel lacks is found at run time.
    Linux,
    /// Any other Unix, macOS among them: POSIX calls alone.
    Posix,
}

/// What an end is, as far as the mechanisms differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A regular file.
    File,
    /// A disk or a part of one: read and written at offsets, and that is all.
    Disk,
    /// A FIFO, or a pipe without a name.
    Pipe,
    /// A connected socket.
    Socket,
    /// A socket on which no call sleeps, since it has `O_NONBLOCK`.
    OpenSocket,
    /// A terminal or another device that is a stream.
    Device,
}

/// What is known of the two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// What bytes are taken from.
    pub(crate) source: End,
    /// What they are put into.
    pub(crate) destination: End,
    /// Pages of a file may be passed on, in which a later write to it shows.
    pub(crate) zero_copy: bool,
    /// What the source says of its size: 0 is no promise (procfs).
    pub(crate) source_size: u64,
    /// The copy begins at whole blocks at both ends, so that storage can be shared.
    pub(crate) aligned: bool,
    /// Every write goes to the end of the destination (`O_APPEND`).
    pub(crate) appends: bool,
    /// The source has fewer blocks than its size needs.
    pub(crate) may_have_holes: bool,
    /// The copy opened the destination, so its file position is the copy's alone.
    pub(crate) destination_is_ours: bool,
}

/// An order of mechanisms, each tried at most once. It always ends with one that works on
/// anything, unless the caller ruled that out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// A bit for each of [`Mechanism::ALL`]: the order is theirs, so a set says it all.
    left: u8,
}

impl Plan {
    fn of(mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        Self {
            left: mechanisms.into_iter().fold(0, |set, m| set | bit(m)),
        }
    }

    /// What is tried next.
    pub(crate) fn current(self) -> Option<Mechanism> {
        Mechanism::ALL
            .into_iter()
            .find(|m| self.left & bit(*m) != 0)
    }

    pub(crate) fn contains(self, mechanism: Mechanism) -> bool {
        self.left & bit(mechanism) != 0
    }

    /// Whether a mechanism comes first that depends on where the destination lies.
    pub(crate) fn depends_on_devices(self) -> bool {
        self.contains(Mechanism::Clone) || self.contains(Mechanism::CopyRange)
    }

    /// Takes a mechanism out of the plan.
    pub(crate) fn rule_out(&mut self, mechanism: Mechanism) {
        self.left &= !bit(mechanism);
    }

    /// Nothing but the read and write loop from here on, if the plan has it.
    pub(crate) fn fall_back(&mut self) {
        self.left &= bit(Mechanism::ReadWrite);
    }
}

const fn bit(mechanism: Mechanism) -> u8 {
    1 << mechanism as u8
}

/// The order for one copy.
pub(crate) fn plan(
    platform: Platform,
    facts: Facts,
    reflink: Reflink,
    sparse: Sparse,
    tuning: Tuning,
) -> Plan {
    let mut plan = match platform {
        Platform::Linux => linux(facts),
        Platform::Posix => Plan::of([Mechanism::ReadWrite]),
    };
    match reflink {
        // An empty file has nothing to share.
        Reflink::Auto if facts.source_size == 0 => plan.rule_out(Mechanism::Clone),
        Reflink::Auto => {}
        // No way to forbid sharing to copy_file_range(2): btrfs, XFS and NFS share when asked to copy.
        Reflink::Never => {
            plan.rule_out(Mechanism::Clone);
            plan.rule_out(Mechanism::CopyRange);
        }
        Reflink::Always => plan.left &= bit(Mechanism::Clone),
    }
    match sparse {
        // Zeros are only seen in a buffer.
        Sparse::Always => plan.fall_back(),
        // These keep holes, or may.
        Sparse::Never if facts.may_have_holes => {
            plan.rule_out(Mechanism::Clone);
            plan.rule_out(Mechanism::CopyRange);
        }
        Sparse::Auto | Sparse::Never => {}
    }
    if tuning.force_fallback {
        plan.fall_back();
    }
    if let Some(only) = tuning.only {
        plan.left &= bit(only);
    }
    plan
}

fn linux(facts: Facts) -> Plan {
    use End::{File, OpenSocket, Pipe, Socket};
    // copy_file_range answers EBADF, sendfile and splice EINVAL to O_APPEND (their man pages).
    if facts.appends {
        return Plan::of([Mechanism::ReadWrite]);
    }
    match (facts.source, facts.destination) {
        (File, File) => linux_files(facts),
        (Pipe, File | Pipe) | (Socket | OpenSocket, Pipe) => {
            Plan::of([Mechanism::Splice, Mechanism::ReadWrite])
        }
        // What is spliced or sent from a file are its pages, in which a later write to the file
        // shows (https://github.com/systemd/systemd/issues/29044,
        // https://github.com/rust-lang/rust/issues/116451).
        (File, Pipe) if facts.zero_copy => Plan::of([Mechanism::Splice, Mechanism::ReadWrite]),
        // sendfile(2) sleeps on a socket that does not say otherwise.
        (File, OpenSocket) if facts.zero_copy => {
            Plan::of([Mechanism::SendFile, Mechanism::ReadWrite])
        }
        _ => Plan::of([Mechanism::ReadWrite]),
    }
}

fn linux_files(facts: Facts) -> Plan {
    let mut plan = Plan::of([
        Mechanism::Clone,
        Mechanism::CopyRange,
        Mechanism::SendFile,
        Mechanism::ReadWrite,
    ]);
    // A size of 0 says nothing: procfs claims it for files with content, and older kernels answer
    // 0 to copy_file_range there (https://lwn.net/Articles/846403/). A read tells.
    if facts.source_size == 0 {
        plan.rule_out(Mechanism::CopyRange);
        plan.rule_out(Mechanism::SendFile);
    }
    if !facts.aligned {
        plan.rule_out(Mechanism::Clone);
    }
    // sendfile writes at the file position, which somebody else's descriptor shares.
    if !facts.destination_is_ours {
        plan.rule_out(Mechanism::SendFile);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mechanism::{Clone, CopyRange, ReadWrite, SendFile, Splice};

    const FACTS: Facts = Facts {
        source: End::File,
        destination: End::File,
        zero_copy: false,
        source_size: 4096,
        aligned: true,
        appends: false,
        may_have_holes: false,
        destination_is_ours: true,
    };

    fn order(platform: Platform, facts: Facts, reflink: Reflink, tuning: Tuning) -> Vec<Mechanism> {
        rest(plan(platform, facts, reflink, Sparse::Auto, tuning))
    }

    fn rest(mut plan: Plan) -> Vec<Mechanism> {
        let mut order = Vec::new();
        while let Some(mechanism) = plan.current() {
            assert!(!order.contains(&mechanism), "{mechanism} twice");
            order.push(mechanism);
            plan.rule_out(mechanism);
        }
        order
    }

    #[test]
    fn the_table() {
        let own = FACTS;
        let theirs = Facts {
            destination_is_ours: false,
            ..FACTS
        };
        let askew = Facts {
            aligned: false,
            ..FACTS
        };
        let appends = Facts {
            appends: true,
            ..theirs
        };
        let empty = Facts {
            source_size: 0,
            ..FACTS
        };
        use Platform::{Linux, Posix};
        use Reflink::{Always, Auto, Never};
        let table: &[(Platform, Facts, Reflink, &[Mechanism])] = &[
            (Linux, own, Auto, &[Clone, CopyRange, SendFile, ReadWrite]),
            (Linux, own, Always, &[Clone]),
            (Linux, own, Never, &[SendFile, ReadWrite]),
            (Linux, theirs, Auto, &[Clone, CopyRange, ReadWrite]),
            (Linux, theirs, Never, &[ReadWrite]),
            (Linux, askew, Auto, &[CopyRange, SendFile, ReadWrite]),
            (Linux, askew, Always, &[]),
            (Linux, appends, Auto, &[ReadWrite]),
            (Linux, appends, Always, &[]),
            (Linux, empty, Auto, &[ReadWrite]),
            (Linux, empty, Never, &[ReadWrite]),
            (Linux, empty, Always, &[Clone]),
            (Posix, own, Auto, &[ReadWrite]),
            (Posix, own, Always, &[]),
        ];
        for (platform, facts, reflink, expected) in table {
            assert_eq!(
                &order(*platform, *facts, *reflink, Tuning::default()),
                expected,
                "{platform:?} {facts:?} {reflink:?}"
            );
        }
    }

    #[test]
    fn what_must_be_allocated_is_written_and_what_must_not_is_looked_at() {
        let holes = Facts {
            may_have_holes: true,
            ..FACTS
        };
        let order = |facts, reflink, sparse| {
            let tuning = Tuning::default();
            rest(plan(Platform::Linux, facts, reflink, sparse, tuning))
        };
        assert_eq!(
            order(holes, Reflink::Auto, Sparse::Never),
            [SendFile, ReadWrite]
        );
        assert_eq!(order(FACTS, Reflink::Auto, Sparse::Never).len(), 4);
        assert_eq!(order(FACTS, Reflink::Auto, Sparse::Always), [ReadWrite]);
        assert_eq!(order(holes, Reflink::Always, Sparse::Never), []);
        assert_eq!(order(FACTS, Reflink::Always, Sparse::Always), []);
    }

    #[test]
    fn the_switches_only_take_away() {
        let fallback = Tuning {
            force_fallback: true,
            ..Tuning::default()
        };
        assert_eq!(
            order(Platform::Linux, FACTS, Reflink::Auto, fallback),
            [ReadWrite]
        );
        for mechanism in [Clone, CopyRange, SendFile, ReadWrite] {
            let only = Tuning {
                only: Some(mechanism),
                ..Tuning::default()
            };
            assert_eq!(
                order(Platform::Linux, FACTS, Reflink::Auto, only),
                [mechanism]
            );
        }
        let shared_only = Tuning {
            only: Some(CopyRange),
            ..Tuning::default()
        };
        assert!(order(Platform::Linux, FACTS, Reflink::Never, shared_only).is_empty());
    }

    #[test]
    fn each_has_the_name_that_reports_use() {
        let names = Mechanism::ALL.map(|mechanism| mechanism.to_string());
        assert_eq!(
            names,
            ["clone", "copy-range", "send-file", "splice", "read-write"]
        );
    }

    #[test]
    fn where_the_destination_lies_counts_for_what_shares_or_copies_within_the_kernel() {
        for mechanism in Mechanism::ALL {
            assert_eq!(
                Plan::of([mechanism, ReadWrite]).depends_on_devices(),
                [Clone, CopyRange].contains(&mechanism),
                "{mechanism}"
            );
        }
    }

    #[test]
    fn the_table_of_streams() {
        use End::{Device, Disk, File, OpenSocket, Pipe, Socket};
        const ALL: [End; 6] = [File, Disk, Pipe, Socket, OpenSocket, Device];
        let order = |platform, source, destination, zero_copy| {
            let facts = Facts {
                source,
                destination,
                zero_copy,
                ..FACTS
            };
            order(platform, facts, Reflink::Auto, Tuning::default())
        };
        for source in ALL {
            for destination in ALL {
                if (source, destination) == (File, File) {
                    continue;
                }
                for zero_copy in [false, true] {
                    let expected: &[Mechanism] = match (source, destination) {
                        (Pipe, File | Pipe) | (Socket | OpenSocket, Pipe) => &[Splice, ReadWrite],
                        (File, Pipe) if zero_copy => &[Splice, ReadWrite],
                        (File, OpenSocket) if zero_copy => &[SendFile, ReadWrite],
                        _ => &[ReadWrite],
                    };
                    let what = format!("{source:?}, {destination:?}, {zero_copy}");
                    assert_eq!(
                        order(Platform::Linux, source, destination, zero_copy),
                        expected,
                        "{what}"
                    );
                    assert_eq!(
                        order(Platform::Posix, source, destination, zero_copy),
                        [ReadWrite],
                        "{what}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_appended_or_looked_through_for_zeros_goes_through_a_buffer() {
        let pipe = Facts {
            source: End::Pipe,
            ..FACTS
        };
        let appended = Facts {
            appends: true,
            ..pipe
        };
        let tuning = Tuning::default();
        assert_eq!(
            order(Platform::Linux, appended, Reflink::Auto, tuning),
            [ReadWrite]
        );
        let zeros = plan(Platform::Linux, pipe, Reflink::Auto, Sparse::Always, tuning);
        assert_eq!(rest(zeros), [ReadWrite]);
    }
}
