//! What may happen: why a copy may fail or leave a file as it is.

use copyist_engine::{
    Cause, Errno, Existing, Limit, Platform, Preserve, Reflink, Refused, Side, Sparse, Unsupported,
    WriteMode,
};
use rustix::fs::OFlags;

use super::Trial;
use crate::case::{Attribute, From, Place, Standing, To};
use crate::content::{BLOCK, LAST};
use crate::schedule::{Fault, Fired, Op};
use crate::world::{Clones, Says};

impl Trial<'_> {
    /// Every reason why this cannot be copied, without any fault.
    pub(super) fn reasons(&self) -> Vec<Cause> {
        let case = self.case;
        let options = &case.options;
        let io = Cause::Io;
        let mut reasons = Vec::new();
        self.reasons_of_options(&mut reasons);
        match case.from {
            From::Missing => reasons.push(io(Side::Source, Errno::NOENT)),
            From::Link(false) => reasons.push(io(Side::Source, Errno::LOOP)),
            From::Directory => reasons.push(io(Side::Source, Errno::ISDIR)),
            From::Fifo | From::Socket => {
                reasons.extend(refused(Side::Source));
            }
            From::Path | From::Link(true) | From::Descriptor(..) => {}
        }
        let longest = self.longest();
        if options.limits.bytes.is_some_and(|limit| limit < longest) {
            reasons.push(Cause::Limit(Limit::Bytes));
        }
        if case.quota.is_some_and(|limit| limit < longest) {
            reasons.push(Cause::Limit(Limit::TotalBytes));
        }
        self.reasons_of_destination(&mut reasons);
        reasons
    }

    /// What may stand in the way, without any fault.
    pub(super) fn excuses(&self) -> Vec<Cause> {
        let case = self.case;
        let options = &case.options;
        let mut excuses = Vec::new();
        if let From::Descriptor(flags, _) = case.from
            && flags.contains(OFlags::WRONLY)
        {
            excuses.push(Cause::Io(Side::Source, Errno::BADF));
        }
        if let To::Descriptor { flags, .. } = case.to
            && !writes(flags)
        {
            excuses.push(Cause::Io(Side::Destination, Errno::BADF));
            excuses.push(Cause::Io(Side::Destination, Errno::INVAL));
        }
        if options.reflink == Reflink::Always && !self.clones_surely() {
            excuses.push(Unsupported::Clone.into_cause());
        }
        if options.tuning.only.is_some() {
            excuses.push(Unsupported::Mechanism.into_cause());
            excuses.push(Unsupported::Clone.into_cause());
        }
        // The owner that it would run as may not be the source's.
        if options.require.contains(Preserve::MODE) && case.mode & 0o7000 != 0 {
            excuses.push(Cause::Denied);
        }
        if case.habits.says != Says::Truth {
            excuses.push(Cause::Io(Side::Destination, Errno::OVERFLOW));
            excuses.push(Cause::Io(Side::Destination, Errno::FBIG));
            excuses.push(Cause::Io(Side::Destination, Errno::INVAL));
        }
        if let Says::Page(said) = case.habits.says {
            if options.limits.bytes.is_some_and(|limit| limit < said) {
                excuses.push(Cause::Limit(Limit::Bytes));
            }
            if case.quota.is_some_and(|limit| limit < said) {
                excuses.push(Cause::Limit(Limit::TotalBytes));
            }
        }
        excuses
    }

    pub(super) fn reasons_of_options(&self, reasons: &mut Vec<Cause>) {
        let options = &self.case.options;
        if let Some(window) = options.window {
            let ends = [
                (
                    Side::Source,
                    window.source_offset,
                    window.length.unwrap_or(0),
                ),
                (
                    Side::Destination,
                    window.destination_offset,
                    window.length.unwrap_or(self.longest()),
                ),
            ];
            for (side, offset, length) in ends {
                if offset.checked_add(length).is_none_or(|end| end > LAST) {
                    reasons.push(Cause::Io(side, Errno::OVERFLOW));
                }
            }
        }
        let special = self.case.mode & 0o7000 != 0;
        let has = |attribute| self.case.attributes.contains(&attribute);
        if options.require.contains(Preserve::OWNERSHIP) && !options.grants.ownership
            || options.require.contains(Preserve::MODE)
                && special
                && !options.grants.special_mode_bits
            || options.require.contains(Preserve::XATTRS)
                && has(Attribute::Privileged)
                && !options.grants.privileged_xattrs
        {
            reasons.push(Cause::Denied);
        }
        let kept = has(Attribute::User) || has(Attribute::Privileged);
        if !self.case.habits.xattrs
            && (options.require.contains(Preserve::XATTRS) && kept
                || options.require.contains(Preserve::ACLS) && has(Attribute::AccessList))
        {
            reasons.push(Cause::Io(Side::Destination, Errno::OPNOTSUPP));
        }
    }

    pub(super) fn reasons_of_destination(&self, reasons: &mut Vec<Cause>) {
        let options = &self.case.options;
        let replaces = options.write_mode == WriteMode::Replace;
        let refuses = options.existing == Existing::Refuse;
        let mut at = |errno| reasons.push(Cause::Io(Side::Destination, errno));
        let (place, standing, follow) = match self.case.to {
            To::Descriptor { .. } => {
                if refuses {
                    at(Errno::EXIST);
                }
                if replaces {
                    reasons.push(Unsupported::Replace.into_cause());
                }
                let access = Preserve::MODE | Preserve::OWNERSHIP | Preserve::ACLS;
                if options.require.intersects(access) {
                    reasons.push(Unsupported::Attribute.into_cause());
                }
                if self.case.is_one_file() && !self.is_disjoint() {
                    reasons.push(Cause::SameFile);
                }
                return;
            }
            To::Path {
                place,
                standing,
                follow,
            } => (place, standing, follow),
        };
        match place {
            Place::Nowhere => return at(Errno::NOENT),
            Place::InFile => return at(Errno::NOTDIR),
            Place::Slash => return at(Errno::ISDIR),
            Place::Here | Place::Below => {}
        }
        if standing == Standing::Nothing {
            return;
        }
        if refuses {
            at(Errno::EXIST);
        }
        let is_link = matches!(standing, Standing::LinkToOld | Standing::LinkToSource);
        match standing {
            Standing::Directory => at(Errno::ISDIR),
            Standing::Dangling if follow => at(Errno::NOENT),
            Standing::Dangling if !replaces => at(Errno::LOOP),
            _ if is_link && !follow && !replaces => at(Errno::LOOP),
            Standing::Fifo | Standing::Socket => {
                reasons.extend(refused(Side::Destination));
            }
            _ if self.case.is_one_file() && (replaces || !self.is_disjoint()) => {
                reasons.push(Cause::SameFile);
            }
            _ => {}
        }
        if replaces && options.window.is_some() {
            reasons.push(Unsupported::Replace.into_cause());
        }
    }

    /// Whether the two parts of one file have nothing in common, wherever that file ends.
    pub(super) fn is_disjoint(&self) -> bool {
        let Some(window) = self.case.options.window else {
            return false;
        };
        let Some(length) = window.length else {
            return false;
        };
        let (from, to) = (window.source_offset, window.destination_offset);
        self.case.appends()
            || from.saturating_add(length) <= to
            || to.saturating_add(length) <= from
    }

    /// Whether a clone that is required can be had, beyond doubt.
    pub(super) fn clones_surely(&self) -> bool {
        let case = self.case;
        let options = &case.options;
        let below = matches!(
            case.to,
            To::Path {
                place: Place::Below,
                ..
            } | To::Descriptor { same: false, .. }
        );
        let readable =
            !matches!(case.from, From::Descriptor(flags, _) if flags.contains(OFlags::WRONLY));
        let writable = !matches!(case.to, To::Descriptor { flags, .. } if !writes(flags));
        readable
            && writable
            && case.habits.platform == Platform::Linux
            && case.habits.clones == Clones::Always
            && case.habits.says == Says::Truth
            // What may be shared begins at blocks, of which the system may say something else.
            && case.habits.block_size > 0
            && case.habits.block_size.is_multiple_of(BLOCK)
            && !(below && case.across)
            && options.window.is_none()
            && !case.appends()
            && options.sparse == Sparse::Auto
            && !options.tuning.force_fallback
            && options.tuning.only.is_none()
            // A piece may be less than a block.
            && !(options.bounded_calls && options.tuning.call_size.is_some())
    }

    /// Whether what is there may be left as it is.
    pub(super) fn may_skip(&self) -> bool {
        let there = match self.case.to {
            To::Descriptor { .. } => true,
            To::Path {
                place: Place::Here | Place::Below,
                standing,
                ..
            } => standing != Standing::Nothing,
            To::Path { .. } => false,
        };
        let meddled = self
            .fired
            .iter()
            .any(|fired| matches!(fired.fault, Fault::Name(_)));
        match self.case.options.existing {
            Existing::Skip => there || meddled,
            Existing::Update => {
                meddled
                    || there && {
                        let before = self.stage.aim.as_ref().and_then(|aim| aim.before);
                        let source = self.stage.before.node(self.stage.source).modified;
                        // A link is older than anything.
                        before
                            .map(|id| self.stage.before.node(id))
                            .is_some_and(|node| node.content().is_some() && node.modified >= source)
                    }
            }
            Existing::Refuse | Existing::Write => false,
        }
    }

    /// Whether a fault that came to pass may end the copy so.
    pub(super) fn explains(&self, fired: &Fired, cause: &Cause) -> bool {
        const FINAL: [Errno; 6] = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::NOMEM,
            Errno::PIPE,
            Errno::CONNRESET,
            Errno::CANCELED,
        ];
        let options = &self.case.options;
        let none_left = matches!(
            cause,
            Cause::Unsupported(Unsupported::Clone | Unsupported::Mechanism)
        ) && (options.reflink == Reflink::Always || options.tuning.only.is_some());
        let errno = match fired.fault {
            Fault::Fail(errno) => errno,
            Fault::Nothing if fired.op == Op::Write => {
                return *cause == Cause::Io(Side::Destination, Errno::IO);
            }
            Fault::Nothing | Fault::CutShort if fired.op.is_copier() => return none_left,
            Fault::Source(_) => {
                return none_left
                    || matches!(cause, Cause::Limit(_))
                    || *cause == Cause::Io(Side::Destination, Errno::OVERFLOW)
                    || *cause == Cause::Io(Side::Destination, Errno::FBIG)
                    || *cause == Cause::Io(Side::Destination, Errno::INVAL);
            }
            Fault::Name(_) => {
                return matches!(
                    cause,
                    Cause::Io(Side::Destination, Errno::EXIST | Errno::NOENT)
                        | Cause::Unsupported(Unsupported::Replace)
                );
            }
            _ => return false,
        };
        let at = |side| *cause == Cause::Io(side, errno);
        let required = !options.require.is_empty();
        match fired.op {
            op if op.is_copier() => none_left || FINAL.contains(&errno) && at(Side::Destination),
            // After an interruption it is closed, and renamed or not: nobody knows.
            Op::Close => fired.side == Side::Destination && at(Side::Destination),
            Op::Rename | Op::RenameExclusive => at(Side::Destination),
            _ if errno == Errno::INTR => false,
            // Somebody sweeps, for as many names as are tried.
            Op::Lock | Op::Open if errno == Errno::AGAIN => {
                *cause == Cause::Io(Side::Destination, Errno::EXIST)
            }
            Op::Open if errno == Errno::NXIO => {
                refused(fired.side).contains(cause) || at(fired.side)
            }
            Op::Open => at(fired.side),
            Op::Read | Op::Write => errno != Errno::AGAIN && at(fired.side),
            Op::Stat | Op::StatAt | Op::ReadLinkAt | Op::StatusFlags | Op::Truncate | Op::Link => {
                at(fired.side)
            }
            Op::Sync => at(Side::Destination) && !(fired.of_name && errno == Errno::INVAL),
            Op::SetMode => at(Side::Destination),
            Op::SetOwner
            | Op::SetTimes
            | Op::XattrNames
            | Op::Xattr
            | Op::SetXattr
            | Op::RemoveXattr => required && at(fired.side),
            _ => false,
        }
    }
}

fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

trait IntoCause {
    fn into_cause(self) -> Cause;
}

impl IntoCause for Unsupported {
    fn into_cause(self) -> Cause {
        Cause::Unsupported(self)
    }
}

/// How an end is refused that is neither file nor stream: the name of a socket and whatever else the
/// model has no content for.
pub(crate) fn refused(side: Side) -> [Cause; 4] {
    let kind = |what| Cause::Unsupported(Unsupported::Kind(side, what));
    [
        kind(Refused::SocketName),
        kind(Refused::Unknown),
        kind(Refused::Stream),
        Cause::Io(side, Errno::NXIO),
    ]
}
