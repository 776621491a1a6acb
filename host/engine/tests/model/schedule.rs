//! What goes wrong: which call fails, does little, lies, or comes after something that somebody else
//! did meanwhile.

use std::collections::HashMap;

use copyist_engine::{Errno, Side};

/// A call of the seam. `Read` is both ways to read, `Write` is both ways to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Open,
    Close,
    Stat,
    IsLocal,
    StatAt,
    ReadLinkAt,
    StatusFlags,
    Clone,
    CloneRange,
    CopyRange,
    Probe,
    SendFile,
    Seek,
    SeekData,
    SeekHole,
    PunchHole,
    Reopen,
    Read,
    Write,
    Truncate,
    SetMode,
    SetTimes,
    SetOwner,
    XattrNames,
    Xattr,
    SetXattr,
    RemoveXattr,
    Advise,
    Sync,
    Lock,
    Duplicate,
    Link,
    Rename,
    RenameExclusive,
    Unlink,
}

impl Op {
    pub(crate) const ALL: [Self; 35] = [
        Self::Open,
        Self::Close,
        Self::Stat,
        Self::IsLocal,
        Self::StatAt,
        Self::ReadLinkAt,
        Self::StatusFlags,
        Self::Clone,
        Self::CloneRange,
        Self::CopyRange,
        Self::Probe,
        Self::SendFile,
        Self::Seek,
        Self::SeekData,
        Self::SeekHole,
        Self::PunchHole,
        Self::Reopen,
        Self::Read,
        Self::Write,
        Self::Truncate,
        Self::SetMode,
        Self::SetTimes,
        Self::SetOwner,
        Self::XattrNames,
        Self::Xattr,
        Self::SetXattr,
        Self::RemoveXattr,
        Self::Advise,
        Self::Sync,
        Self::Lock,
        Self::Duplicate,
        Self::Link,
        Self::Rename,
        Self::RenameExclusive,
        Self::Unlink,
    ];

    /// Whether it moves bytes and says how many.
    pub(crate) fn counts_bytes(self) -> bool {
        matches!(
            self,
            Self::CopyRange | Self::SendFile | Self::Read | Self::Write
        )
    }

    /// Whether it is a mechanism that another one can take the place of, or belongs to one.
    pub(crate) fn is_copier(self) -> bool {
        matches!(
            self,
            Self::Clone | Self::CloneRange | Self::CopyRange | Self::SendFile | Self::Seek
        )
    }
}

/// Which calls a rule is about, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// This call of all, whatever it is.
    Call(usize),
    /// Of this kind, so many from the nth on.
    Of(Op, usize, usize),
}

/// What happens to the file that is read, before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// So many bytes are added to it.
    Grow(u64),
    /// It is cut by so many bytes.
    Shrink(u64),
    /// So many bytes from here on are written anew, by others.
    Rewrite(u64, u64),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Fail(Errno),
    /// It moves at most so many bytes, and says so.
    Short(usize),
    /// It claims success and moves nothing. Of a read, that is the end.
    Nothing,
    /// A clone onto an empty file ends before the source does, and claims success.
    CutShort,
    /// lseek(2) answers this.
    Nonsense(u64),
    /// Somebody changes the source.
    Source(Change),
    /// Somebody makes the destination's name one of a file of their own, or takes it away.
    Name(Meddling),
}

/// What somebody does to the destination's name, before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meddling {
    /// They make a file of that name, where there is none.
    Make,
    /// They put another file in its place, whatever is there.
    Replace,
    /// They remove it.
    Remove,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) when: When,
    pub(crate) fault: Fault,
}

/// A fault that came to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) op: Op,
    /// The end that the call is about.
    pub(crate) side: Side,
    /// Whether it is about a directory or a name rather than a file.
    pub(crate) of_name: bool,
    pub(crate) fault: Fault,
}

/// More calls than any copy or read of these tests makes.
const MOST: usize = 100_000;
/// What every call answers once there were too many.
pub(crate) const SPUN: Errno = Errno::NOTRECOVERABLE;

/// The rules, and what came of them.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    rules: Vec<Rule>,
    counts: HashMap<Op, usize>,
    /// More calls than this all fail.
    most: usize,
    calls: usize,
    fired: Vec<Fired>,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Schedule {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            counts: HashMap::new(),
            most: MOST,
            calls: 0,
            fired: Vec::new(),
        }
    }

    /// Lets no more calls pass than so many.
    pub(crate) fn at_most(&mut self, calls: usize) {
        self.most = calls;
    }

    /// Takes some faults out.
    pub(crate) fn drop_faults(&mut self, which: impl Fn(&Fault) -> bool) {
        self.rules.retain(|rule| !which(&rule.fault));
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// Whether a call of this kind was made.
    pub(crate) fn count(&self, op: Op) -> usize {
        self.counts.get(&op).copied().unwrap_or(0)
    }

    /// The faults so far.
    pub(crate) fn fired(&self) -> &[Fired] {
        &self.fired
    }

    /// Counts a call and tells the faults that it is to have. Whether they make sense for it is for
    /// the caller, who tells by [`note`](Self::note).
    pub(crate) fn enter(&mut self, op: Op) -> Vec<Fault> {
        self.calls += 1;
        let count = self.counts.entry(op).or_default();
        *count += 1;
        let (count, calls) = (*count, self.calls);
        let mut faults = Vec::new();
        if calls > self.most {
            faults.push(Fault::Fail(SPUN));
        }
        for rule in &self.rules {
            let is_now = match rule.when {
                When::Call(n) => n == calls,
                When::Of(of, first, times) => of == op && (first..first + times).contains(&count),
            };
            if is_now {
                faults.push(rule.fault);
            }
        }
        faults
    }

    pub(crate) fn note(&mut self, fired: Fired) {
        self.fired.push(fired);
    }
}
