//! Copies and reads that bytes without a form make up: paths, handles, windows and options as no
//! author means them, one after the other in one tree.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use copyist_engine::{
    Base, Cancel, Destination, Durability, Environment, Errno, Existing, Grants, Handle, Limits,
    Location, Mechanism, Options, Preserve, Quota, ReadOptions, ReadRequest, Reflink, Request,
    Side, Source, Sparse, Step, Transfer, Tuning, Window, WriteMode, ambient_authority, read_in,
};
use proptest::prelude::*;
use rustix::fs::OFlags;

use crate::config;
use crate::content::{BLOCK, Content, LAST};
use crate::layout::{Fill, Layout, Stretch};
use crate::oracle::{Verdict, ensure};
use crate::schedule::{Change, Fault, Meddling, Op, Rule, When};
use crate::world::{Clones, Form, Habits, Id, Node, ROOT, Ranges, World, is_staged};

/// No request is let copy more, so that none lasts.
const MOST: u64 = 64 << 10;
/// More calls than one takes, at four bytes each.
const MOST_CALLS: usize = 100_000;

/// Bytes that are decided by; after the last come zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn coin(&mut self) -> bool {
        self.byte().is_multiple_of(2)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    fn number(&mut self) -> u64 {
        let byte = u64::from(self.byte());
        match byte % 5 {
            0 => byte,
            1 => byte * 97,
            2 => (byte / 5) * BLOCK,
            3 => self.one(&[LAST - 1, LAST, LAST + 1, u64::MAX, 1 << 40]),
            _ => u64::from_le_bytes([(); 8].map(|()| self.byte())),
        }
    }

    fn maybe(&mut self) -> Option<u64> {
        (!self.coin()).then(|| self.number())
    }

    fn preserve(&mut self) -> Preserve {
        let all = [
            Preserve::MODE,
            Preserve::TIMESTAMPS,
            Preserve::OWNERSHIP,
            Preserve::XATTRS,
            Preserve::ACLS,
            Preserve::LINKS,
        ];
        let bits = self.byte();
        let some = all.into_iter().enumerate();
        some.filter(|(bit, _)| bits >> bit & 1 == 1)
            .fold(Preserve::NONE, |set, (_, one)| set | one)
    }
}

/// A tree with one of everything.
struct Tree {
    world: Arc<World>,
    environment: Environment,
    directories: Vec<Handle>,
    files: Vec<(Handle, Handle)>,
}

impl Tree {
    fn new(habits: Habits) -> Self {
        let world = World::new(habits);
        let names = || Form::Directory(std::collections::BTreeMap::new());
        let file =
            |layout: &[(Stretch, u64)], fill| Form::File(Layout(layout.to_vec()).content(fill));
        let node = |form, mode| Node::new(form, 1, mode);
        let inner = world.add(ROOT, "d", node(names(), 0o755));
        let noise = file(
            &[(Stretch::Data, 9000), (Stretch::Hole, 20_000)],
            Fill::Noise,
        );
        let one = world.add(ROOT, "a", node(noise, 0o644));
        let other = file(&[(Stretch::Data, 12_000)], Fill::Old);
        let other = world.add(inner, "c", node(other, 0o4755));
        world.add(ROOT, "empty", node(file(&[], Fill::Noise), 0o600));
        for (name, target) in [
            ("l", "a"),
            ("m", "d/c"),
            ("up", ".."),
            ("loop", "loop"),
            ("out", "/etc/passwd"),
            ("nowhere", "gone"),
        ] {
            world.add(ROOT, name, node(Form::Link(target.into()), 0o777));
        }
        world.add(ROOT, "fifo", node(Form::Fifo, 0o600));
        world.add(ROOT, "socket", node(Form::Socket, 0o600));
        let hold = |id, flags, side| world.hold(id, flags, 0, side);
        let directories = vec![
            hold(ROOT, OFlags::PATH, Side::Destination),
            hold(inner, OFlags::RDONLY, Side::Destination),
            hold(one, OFlags::RDONLY, Side::Destination),
        ];
        let both = |id: Id, flags| {
            let write = hold(id, flags, Side::Destination);
            (hold(id, OFlags::RDONLY, Side::Source), write)
        };
        let files = vec![
            both(one, OFlags::RDWR),
            both(other, OFlags::WRONLY),
            both(other, OFlags::WRONLY | OFlags::APPEND),
            both(inner, OFlags::RDONLY),
        ];
        Self {
            environment: world.environment(),
            directories,
            files,
            world,
        }
    }

    fn location(&self, bytes: &mut Bytes<'_>) -> Location {
        const PARTS: [&[u8]; 20] = [
            b"a", b"d", b"c", b"d/c", b"l", b"m", b"up", b"loop", b"out", b"nowhere", b"fifo",
            b"socket", b"new", b"d/new", b".", b"..", b"", b"\0", b"\xFF", b"empty",
        ];
        let mut path = Vec::new();
        match bytes.byte() % 16 {
            0 => path.extend_from_slice(b"/"),
            1 => path.resize(300, b'x'),
            2 => path.extend("./".repeat(2100).bytes()),
            _ => {}
        }
        loop {
            path.extend_from_slice(bytes.one(&PARTS));
            match bytes.byte() % 8 {
                1 => path.extend_from_slice(b"/"),
                2 => path.push(bytes.byte()),
                _ => break,
            }
        }
        let base = if bytes.byte().is_multiple_of(16) {
            Base::Ambient(ambient_authority())
        } else {
            let which = bytes.one(&[0, 0, 0, 1, 2]);
            Base::Beneath(self.directories[which].clone())
        };
        Location {
            base,
            path: OsStr::from_bytes(&path).into(),
            follow: bytes.coin(),
        }
    }

    fn source(&self, bytes: &mut Bytes<'_>) -> Source {
        if bytes.byte().is_multiple_of(4) {
            let which = usize::from(bytes.byte()) % self.files.len();
            return Source::File(self.files[which].0.clone());
        }
        Source::Path(self.location(bytes))
    }

    fn destination(&self, bytes: &mut Bytes<'_>) -> Destination {
        if bytes.byte().is_multiple_of(4) {
            let which = usize::from(bytes.byte()) % self.files.len();
            return Destination::File(self.files[which].1.clone());
        }
        Destination::Path(self.location(bytes))
    }
}

fn window(bytes: &mut Bytes<'_>) -> Option<Window> {
    (!bytes.coin()).then(|| Window {
        source_offset: bytes.number(),
        length: bytes.maybe(),
        destination_offset: bytes.number(),
    })
}

fn options(bytes: &mut Bytes<'_>) -> Options {
    use Existing::{Refuse, Skip, Update, Write};
    Options {
        existing: bytes.one(&[Write, Write, Refuse, Skip, Update]),
        write_mode: bytes.one(&[WriteMode::InPlace, WriteMode::Replace]),
        reflink: bytes.one(&[Reflink::Auto, Reflink::Always, Reflink::Never]),
        sparse: bytes.one(&[Sparse::Auto, Sparse::Always, Sparse::Never]),
        durability: bytes.one(&[Durability::None, Durability::Each, Durability::End]),
        preserve: bytes.preserve(),
        require: if bytes.coin() {
            Preserve::NONE
        } else {
            bytes.preserve()
        },
        window: window(bytes),
        grants: Grants {
            special_mode_bits: bytes.coin(),
            ownership: bytes.coin(),
            privileged_xattrs: bytes.coin(),
        },
        limits: Limits {
            bytes: Some(bytes.maybe().unwrap_or(MOST).min(MOST)),
            total: bytes.maybe().map(|left| Arc::new(Quota::new(left))),
        },
        bounded_calls: bytes.coin(),
        tuning: Tuning {
            only: (bytes.byte() % 8 == 1).then(|| bytes.one(&Mechanism::ALL)),
            force_fallback: bytes.byte() % 8 == 1,
            call_size: NonZeroUsize::new(bytes.one(&[0, 0, 4, 100, 4096, 65_536])),
        },
        ..Options::default()
    }
}

fn rule(bytes: &mut Bytes<'_>) -> Rule {
    let first = usize::from(bytes.byte() % 32) + 1;
    let when = if bytes.coin() {
        When::Call(first)
    } else {
        When::Of(
            bytes.one(&Op::ALL),
            first % 4 + 1,
            bytes.one(&[1, 1, 3, 100]),
        )
    };
    // Every number that the system may say.
    let errno = Errno::from_raw_os_error(i32::from(bytes.byte() % 133) + 1);
    let length = u64::from(bytes.byte()) * 70;
    let fault = match bytes.byte() % 12 {
        0 => Fault::Short(usize::from(bytes.byte()) * 16 + 4),
        1 => Fault::Nothing,
        2 => Fault::CutShort,
        3 => Fault::Nonsense(bytes.number()),
        4 => Fault::Source(Change::Grow(length)),
        5 => Fault::Source(Change::Shrink(length)),
        6 => Fault::Name(bytes.one(&[Meddling::Make, Meddling::Replace, Meddling::Remove])),
        _ => Fault::Fail(errno),
    };
    Rule { when, fault }
}

fn habits(bytes: &mut Bytes<'_>) -> Habits {
    let errnos = [Errno::OPNOTSUPP, Errno::XDEV, Errno::NOSYS, Errno::PERM];
    Habits {
        clones: bytes.one(&[
            Clones::Always,
            Clones::Mismatch,
            Clones::Never(Errno::NOTTY),
        ]),
        ranges: match bytes.byte() % 4 {
            0 => Ranges::Copies,
            1 => Ranges::Shares,
            _ => Ranges::Never(bytes.one(&errnos)),
        },
        sends: bytes.one(&[None, Some(Errno::INVAL)]),
        unnamed: bytes.coin(),
        local: bytes.coin(),
        punches: bytes.coin(),
        xattrs: bytes.coin(),
        block_size: bytes.one(&[4096, 0, 512, 65_536, u64::MAX]),
        ..Habits::default()
    }
}

/// Does one thing in the tree.
fn act(tree: &Tree, bytes: &mut Bytes<'_>) -> Verdict {
    let rules = (0..bytes.byte() % 4).map(|_| rule(bytes)).collect();
    let before = tree.world.snapshot();
    let subject = before.at(bytes.one(&["a", "d/c", "empty"]));
    tree.world.begin(subject, Some((ROOT, "new")), rules);
    let held: Vec<_> = tree
        .files
        .iter()
        .map(|(one, _)| tree.world.held(one))
        .collect();
    if bytes.byte() % 4 == 1 {
        let request = ReadRequest {
            source: tree.source(bytes),
            options: ReadOptions {
                window: window(bytes),
                limit: bytes.maybe(),
                limits: Limits {
                    bytes: Some(MOST),
                    total: None,
                },
            },
        };
        let waits = |rule: &Fault| *rule == Fault::Fail(Errno::AGAIN);
        tree.world.state().schedule.drop_faults(waits);
        let read = read_in(&tree.environment, &request, &Cancel::new());
        let length = read.map_or(0, |read| read.len() as u64);
        ensure!(length <= MOST, "more than the limit");
    } else {
        let request = Request {
            source: tree.source(bytes),
            destination: tree.destination(bytes),
            options: options(bytes),
        };
        let most = if bytes.coin() {
            u64::MAX
        } else {
            u64::from(bytes.byte()) * 64
        };
        let end = usize::from(bytes.byte());
        let mut transfer = Transfer::new(tree.environment.clone(), request);
        for steps in 0.. {
            let step = match end {
                200..=220 if steps == end - 200 => transfer.cancel(),
                221..=240 if steps == end - 221 => break,
                _ => transfer.step(most),
            };
            if matches!(step, Step::Done(_) | Step::Failed(_)) {
                break;
            }
            let calls = tree.world.state().schedule.calls();
            ensure!(calls.max(steps) < MOST_CALLS, "no end after {calls} calls");
        }
    }
    let open = tree.world.left_open();
    ensure!(open == 0, "{open} descriptors are left open");
    for (handle, held) in tree.files.iter().zip(held) {
        ensure!(tree.world.held(&handle.0) == held, "a descriptor moved");
    }
    let after = tree.world.snapshot();
    let state = tree.world.state();
    ensure!(
        state.wronged().is_empty(),
        "it removed what it had not made"
    );
    let disturbed = state
        .schedule
        .fired()
        .iter()
        .any(|fired| matches!(fired.op, Op::Unlink | Op::StatAt | Op::Stat | Op::Open));
    let left = after
        .names
        .keys()
        .find(|path| !before.names.contains_key(*path) && path.file_name().is_some_and(is_staged));
    ensure!(disturbed || left.is_none(), "{left:?} is left");
    let content = |id: &Id| after.node(*id).content().map_or(0, Content::size);
    ensure!(
        after.names.values().all(|id| content(id) <= LAST),
        "a file beyond all offsets"
    );
    Ok(())
}

fn run(bytes: &[u8]) -> Verdict {
    let mut bytes = Bytes(bytes);
    let tree = Tree::new(habits(&mut bytes));
    for _ in 0..5 {
        act(&tree, &mut bytes)?;
    }
    // And it copies still.
    tree.world.begin(None, None, Vec::new());
    let directory = &tree.directories[0];
    let at = |path: &str| Location {
        base: Base::Beneath(directory.clone()),
        path: path.into(),
        follow: false,
    };
    let fresh = Node::new(
        Form::File(Layout(vec![(Stretch::Data, 5000)]).content(Fill::Noise)),
        1,
        0o644,
    );
    tree.world.add(ROOT, "plain", fresh);
    let request = Request {
        source: Source::Path(at("plain")),
        destination: Destination::Path(at("copy of it")),
        options: Options::default(),
    };
    let done = copyist_engine::copy_in(&tree.environment, request, &Cancel::new());
    ensure!(
        done.is_ok_and(|done| done.bytes == 5000),
        "it copies no more"
    );
    let after = tree.world.snapshot();
    let copy = after
        .at("copy of it")
        .and_then(|id| after.node(id).content());
    let whole = copy.is_some_and(|copy| copy.bytes() == crate::layout::noise(0, 5000));
    ensure!(whole, "the copy is another");
    Ok(())
}

proptest! {
    #![proptest_config(config(6000))]

    #[test]
    fn bytes_without_a_form_end_no_copier(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        run(&bytes).map_err(TestCaseError::fail)?;
    }
}
