//! How cases are drawn: most of them plain, so that deep places are reached, and at the edges where
//! things go wrong.

use std::num::NonZeroUsize;

use copyist_engine::{
    Durability, Errno, Existing, Grants, Limits, Mechanism, Options, Platform, Preserve, Reflink,
    Sparse, Tuning, Window, WriteMode,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use rustix::fs::OFlags;

use crate::case::{Attribute, Case, Ending, From, Place, Standing, To};
use crate::content::LAST;
use crate::layout::{Layout, Stretch};
use crate::schedule::{Change, Fault, Meddling, Op, Rule, When};
use crate::world::{Clones, Habits, Ranges, Says, Seeks};

/// One value with a weight.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    usual: T,
    weight: u32,
    others: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = T> {
    Union::new_weighted(vec![(weight, Just(usual).boxed()), (1, others.boxed())])
}

/// A length at the edges of blocks, buffers and calls.
fn length() -> impl Strategy<Value = u64> {
    let near = |edge: u64| (0..5_u64).prop_map(move |off| (edge + off).saturating_sub(2));
    prop_oneof![
        1 => Just(0),
        3 => 1..300_u64,
        5 => (1..6_u64).prop_flat_map(move |blocks| near(blocks * 4096)),
        3 => near(64 << 10),
        1 => near(256 << 10),
        1 => near(1 << 20),
        4 => 0..100_000_u64,
        1 => 0..3_000_000_u64,
    ]
}

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    let stretch = prop_oneof![
        4 => Just(Stretch::Data),
        1 => Just(Stretch::Zeros),
        3 => Just(Stretch::Hole),
        1 => Just(Stretch::Unwritten),
    ];
    let mixed = prop::collection::vec((stretch, length()), 1..6);
    prop_oneof![
        2 => length().prop_map(|length| vec![(Stretch::Data, length)]),
        3 => mixed,
    ]
    .prop_map(Layout)
}

/// An offset or a length of a window.
pub(crate) fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0),
        12 => length(),
        6 => (0..80_u64).prop_map(|blocks| blocks * 4096),
        1 => select(vec![1 << 40, LAST - 4096, LAST - 1, LAST, 1 << 63, u64::MAX]),
    ]
}

pub(crate) fn window() -> impl Strategy<Value = Option<Window>> {
    let some = (offset(), prop::option::weighted(0.7, offset()), offset()).prop_map(
        |(source_offset, length, destination_offset)| {
            Some(Window {
                source_offset,
                length,
                destination_offset,
            })
        },
    );
    prop_oneof![2 => Just(None), 1 => some]
}

fn errno() -> impl Strategy<Value = Errno> {
    select(vec![
        Errno::INTR,
        Errno::INTR,
        Errno::AGAIN,
        Errno::IO,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::NOMEM,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::XDEV,
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOSYS,
        Errno::BADF,
        Errno::TXTBSY,
        Errno::FBIG,
        Errno::NOENT,
        Errno::NXIO,
        Errno::STALE,
        Errno::ROFS,
        Errno::CANCELED,
        // The kernel's ENOTSUPP, which leaks from some file systems.
        Errno::from_raw_os_error(524),
    ])
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        length().prop_map(Change::Grow),
        length().prop_map(Change::Shrink),
        (length(), length()).prop_map(|(from, length)| Change::Rewrite(from, length)),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let few = prop_oneof![1..20_usize, 500..9000_usize];
    prop_oneof![
        10 => errno().prop_map(Fault::Fail),
        4 => few.prop_map(Fault::Short),
        2 => Just(Fault::Nothing),
        1 => Just(Fault::CutShort),
        1 => offset().prop_map(Fault::Nonsense),
        2 => change().prop_map(Fault::Source),
    ]
}

fn data_op() -> impl Strategy<Value = Op> {
    select(vec![
        Op::Clone,
        Op::CloneRange,
        Op::CopyRange,
        Op::SendFile,
        Op::Read,
        Op::Write,
        Op::SeekData,
        Op::SeekHole,
        Op::PunchHole,
    ])
}

fn when() -> impl Strategy<Value = When> {
    let op = prop_oneof![4 => data_op(), 1 => select(Op::ALL.to_vec())];
    let times = prop_oneof![3 => Just(1), 1 => 2..5_usize, 1 => Just(200)];
    prop_oneof![
        (1..25_usize).prop_map(When::Call),
        (op, 1..5_usize, times).prop_map(|(op, first, times)| When::Of(op, first, times)),
    ]
}

pub(crate) fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (when(), fault()).prop_map(|(when, fault)| Rule { when, fault });
    prop_oneof![1 => Just(Vec::new()), 4 => prop::collection::vec(rule, 1..5)]
}

pub(crate) fn habits() -> impl Strategy<Value = Habits> {
    let clones = prop_oneof![
        4 => Just(Clones::Always),
        4 => select(vec![Errno::OPNOTSUPP, Errno::NOTTY, Errno::INVAL, Errno::PERM])
            .prop_map(Clones::Never),
        1 => Just(Clones::Mismatch),
    ];
    let ranges = prop_oneof![
        2 => Just(Ranges::Copies),
        2 => Just(Ranges::Shares),
        2 => select(vec![Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::INVAL])
            .prop_map(Ranges::Never),
    ];
    let sends = mostly(
        None,
        3,
        select(vec![Some(Errno::INVAL), Some(Errno::NOSYS)]),
    );
    let most = mostly(0x7FFF_F000, 4, select(vec![4096, 5000, 65_536]));
    let seeks = mostly(
        Seeks::Honest,
        4,
        select(vec![
            Seeks::AllData,
            Seeks::Refuses(Errno::INVAL),
            Seeks::Refuses(Errno::OPNOTSUPP),
        ]),
    );
    let says = mostly(
        Says::Truth,
        12,
        prop_oneof![Just(Says::Nothing), length().prop_map(Says::Page)],
    );
    let platform = mostly(Platform::Linux, 6, Just(Platform::Posix));
    let umask = select(vec![0o022, 0o077, 0]);
    let block_size = mostly(4096, 4, select(vec![512, 65_536, 1 << 20, 12_288, 0]));
    (
        (clones, ranges, sends, most, seeks, says, platform),
        (umask, block_size),
        (
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.6),
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.8),
        ),
    )
        .prop_map(|(first, (umask, block_size), switches)| {
            let (clones, ranges, sends, most, seeks, says, platform) = first;
            let (unnamed, local, punches, xattrs) = switches;
            // What makes its files up has none to share.
            let clones = match says {
                Says::Truth => clones,
                _ => Clones::Never(Errno::OPNOTSUPP),
            };
            Habits {
                platform,
                clones,
                ranges,
                sends,
                most,
                unnamed,
                // Where the length is a lie nothing is known to be right.
                local: local && says == Says::Truth,
                seeks,
                punches,
                xattrs,
                umask,
                says,
                block_size,
            }
        })
}

fn from() -> impl Strategy<Value = From> {
    let position = prop_oneof![Just(0), Just(10_000_u64)];
    let flags = prop_oneof![
        4 => Just(OFlags::RDONLY),
        2 => Just(OFlags::RDWR),
        1 => Just(OFlags::WRONLY),
    ];
    prop_oneof![
        12 => Just(From::Path),
        4 => (flags, position).prop_map(|(flags, at)| From::Descriptor(flags, at)),
        1 => any::<bool>().prop_map(From::Link),
        1 => select(vec![From::Missing, From::Directory, From::Fifo, From::Socket]),
    ]
}

fn to() -> impl Strategy<Value = To> {
    let place = prop_oneof![
        12 => Just(Place::Here),
        8 => Just(Place::Below),
        1 => select(vec![Place::Nowhere, Place::InFile, Place::Slash]),
    ];
    let standing = prop_oneof![
        8 => Just(Standing::Nothing),
        8 => Just(Standing::Old),
        2 => select(vec![Standing::LinkToOld, Standing::LinkToSource, Standing::Source]),
        1 => select(vec![
            Standing::Directory,
            Standing::Fifo,
            Standing::Socket,
            Standing::Dangling,
        ]),
    ];
    let path = (place, standing, any::<bool>()).prop_map(|(place, standing, follow)| To::Path {
        place,
        standing,
        follow,
    });
    let flags = prop_oneof![
        4 => Just(OFlags::WRONLY),
        4 => Just(OFlags::RDWR),
        4 => Just(OFlags::WRONLY | OFlags::APPEND),
        1 => Just(OFlags::RDONLY),
    ];
    let position = prop_oneof![Just(0), Just(10_000_u64)];
    let descriptor =
        (flags, position, prop::bool::weighted(0.2)).prop_map(|(flags, position, same)| {
            To::Descriptor {
                flags,
                position,
                same,
            }
        });
    prop_oneof![3 => path, 1 => descriptor]
}

fn preserve() -> impl Strategy<Value = Preserve> {
    let all = [
        Preserve::MODE,
        Preserve::TIMESTAMPS,
        Preserve::OWNERSHIP,
        Preserve::XATTRS,
        Preserve::ACLS,
        Preserve::LINKS,
    ];
    let some = prop::sample::subsequence(all.to_vec(), 0..=all.len())
        .prop_map(|some| some.into_iter().fold(Preserve::NONE, Preserve::union));
    prop_oneof![2 => Just(Preserve::NONE), 1 => some]
}

pub(crate) fn limits() -> impl Strategy<Value = (Option<u64>, Option<u64>)> {
    (
        prop::option::weighted(0.15, offset()),
        prop::option::weighted(0.15, offset()),
    )
}

fn options() -> impl Strategy<Value = Options> {
    let existing = prop_oneof![
        5 => Just(Existing::Write),
        1 => Just(Existing::Refuse),
        1 => Just(Existing::Skip),
        1 => Just(Existing::Update),
    ];
    let write_mode = select(vec![WriteMode::InPlace, WriteMode::Replace]);
    let reflink = prop_oneof![
        5 => Just(Reflink::Auto),
        2 => Just(Reflink::Always),
        2 => Just(Reflink::Never),
    ];
    let sparse = prop_oneof![
        3 => Just(Sparse::Auto),
        1 => Just(Sparse::Always),
        1 => Just(Sparse::Never),
    ];
    let durability = prop_oneof![
        3 => Just(Durability::None),
        1 => Just(Durability::Each),
        1 => Just(Durability::End),
    ];
    let require = prop_oneof![3 => Just(Preserve::NONE), 1 => preserve()];
    let grants =
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(mode, owner, xattrs)| Grants {
            special_mode_bits: mode,
            ownership: owner,
            privileged_xattrs: xattrs,
        });
    let call_size = prop_oneof![
        2 => Just(None),
        2 => select(vec![4096, 65_536]).prop_map(NonZeroUsize::new),
        1 => select(vec![1, 7, 511, 4097, 5000]).prop_map(NonZeroUsize::new),
    ];
    let only = mostly(None, 9, select(Mechanism::ALL.to_vec()).prop_map(Some));
    let tuning = (call_size, only, prop::bool::weighted(0.15)).prop_map(
        |(call_size, only, force_fallback)| Tuning {
            call_size,
            only,
            force_fallback,
        },
    );
    (
        (existing, write_mode, reflink, sparse, durability),
        (preserve(), require, window(), grants, tuning),
        (limits().prop_map(|(bytes, _)| bytes), any::<bool>()),
    )
        .prop_map(|(first, second, (bytes, bounded_calls))| {
            let (existing, write_mode, reflink, sparse, durability) = first;
            let (preserve, require, window, grants, tuning) = second;
            Options {
                existing,
                write_mode,
                reflink,
                sparse,
                durability,
                preserve,
                require,
                window,
                grants,
                limits: Limits { bytes, total: None },
                bounded_calls,
                tuning,
                ..Options::default()
            }
        })
}

/// One copy, with all that may go wrong.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let mode = prop_oneof![
        4 => select(vec![0o644, 0o600, 0o755, 0o444]),
        1 => select(vec![0o4755, 0o2755, 0o1644]),
    ];
    let attributes = prop::sample::subsequence(
        vec![
            Attribute::User,
            Attribute::Privileged,
            Attribute::AccessList,
        ],
        0..=3,
    );
    let ending = prop_oneof![
        6 => Just(Ending::Itself),
        1 => (0..25_usize).prop_map(Ending::Cancel),
        1 => (0..25_usize).prop_map(Ending::Drop),
    ];
    let budget = prop_oneof![6 => Just(u64::MAX), 1 => Just(1), 1 => 100..9000_u64];
    (
        (habits(), layout(), mode, select(vec![0, 1000]), attributes),
        (
            layout(),
            select(vec![0o644, 0o600, 0o4711]),
            any::<bool>(),
            any::<bool>(),
        ),
        (from(), to(), prop::bool::weighted(0.1)),
        (options(), limits().prop_map(|(_, total)| total)),
        (prop::bool::weighted(0.3), budget, rules(), ending),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(source, old, ends, how, fate, is_sound)| {
            let (habits, layout, mode, owner, attributes) = source;
            let (old, old_mode, old_is_newer, across) = old;
            let (from, to, ambient) = ends;
            let (options, quota) = how;
            let (warm, budget, rules, ending) = fate;
            let case = Case {
                habits,
                source: layout,
                mode,
                owner,
                attributes,
                old,
                old_mode,
                old_is_newer,
                across,
                from,
                to,
                ambient,
                options,
                quota,
                warm,
                budget,
                rules,
                ending,
            };
            let case = if is_sound { case.sound() } else { case };
            case.within_reason()
        })
}

/// A copy while somebody meddles with the destination's name.
pub(crate) fn meddled() -> impl Strategy<Value = Case> {
    let meddling = select(vec![Meddling::Make, Meddling::Replace, Meddling::Remove]);
    let rule = (1..20_usize, meddling).prop_map(|(n, meddling)| Rule {
        when: When::Call(n),
        fault: Fault::Name(meddling),
    });
    (case(), prop::collection::vec(rule, 1..3)).prop_map(|(mut case, rules)| {
        case.rules.extend(rules);
        case
    })
}

impl Case {
    /// One that is refused for no reason of its own, so that it comes to the bytes.
    fn sound(mut self) -> Self {
        let length = self.source.length();
        let options = &mut self.options;
        options.tuning.only = None;
        options.limits.bytes = options.limits.bytes.map(|limit| limit.max(length));
        self.quota = self.quota.map(|limit| limit.max(length));
        if options.require.contains(Preserve::OWNERSHIP) {
            options.grants.ownership = true;
        }
        if let Some(window) = &mut options.window {
            window.source_offset %= length + 1;
            window.destination_offset %= 3 << 20;
            window.length = window.length.map(|length| length % (3 << 20));
        }
        self.from = match self.from {
            From::Descriptor(flags, at) if !flags.contains(OFlags::WRONLY) => {
                From::Descriptor(flags, at)
            }
            From::Link(true) => From::Link(true),
            _ => From::Path,
        };
        let replaces = options.write_mode == WriteMode::Replace && options.window.is_none();
        match &mut self.to {
            To::Path {
                place,
                standing,
                follow,
            } => {
                if !matches!(place, Place::Here | Place::Below) {
                    *place = Place::Here;
                }
                *standing = match standing {
                    Standing::Nothing => Standing::Nothing,
                    Standing::LinkToOld => Standing::LinkToOld,
                    _ => Standing::Old,
                };
                *follow |= !replaces;
                if *standing != Standing::Nothing {
                    options.existing = Existing::Write;
                    if !replaces {
                        options.write_mode = WriteMode::InPlace;
                    }
                }
            }
            To::Descriptor { flags, same, .. } => {
                *same = false;
                if *flags == OFlags::RDONLY {
                    *flags = OFlags::RDWR;
                }
                options.existing = Existing::Write;
                options.write_mode = WriteMode::InPlace;
                options.require = Preserve::NONE;
            }
        }
        let clones = self.habits.clones == Clones::Always
            && options.sparse == Sparse::Auto
            && !self.across
            && !self.appends();
        let options = &mut self.options;
        if options.reflink == Reflink::Always && !clones {
            options.reflink = Reflink::Auto;
        }
        self
    }

    /// Without what cannot be, and without calls by the byte for a file of megabytes.
    pub(crate) fn within_reason(mut self) -> Self {
        let least = usize::try_from(self.source.length() / 64).unwrap_or(usize::MAX);
        let tuning = &mut self.options.tuning;
        tuning.call_size = tuning
            .call_size
            .and_then(|size| NonZeroUsize::new(size.get().max(least)));
        self.budget = self.budget.max(least as u64);
        self.habits.most = self.habits.most.max(least);
        let one_file = self.is_one_file();
        // It ends where it said that it ended.
        if one_file {
            self.habits.says = Says::Truth;
        }
        self.rules.retain_mut(|rule| {
            let for_long = matches!(rule.when, When::Of(_, _, times) if times > 5);
            match &mut rule.fault {
                Fault::Short(most) if for_long => {
                    *most = (*most).max(least);
                    true
                }
                // What the copy itself writes would be what others wrote.
                Fault::Source(_) => !one_file && !for_long,
                _ => true,
            }
        });
        self
    }
}
