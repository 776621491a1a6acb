//! The world beside the system itself: what tmpfs answers, it answers too.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use copyist_engine::Side;
use copyist_engine::sys::{Result, Sys, native};
use proptest::prelude::*;
use rustix::fs::OFlags;

use crate::config;
use crate::content::{Content, LAST};
use crate::layout::noise;
use crate::world::{Form, Habits, Node, ROOT, Ranges, World};

/// A call on one of two files, or between both.
#[derive(Clone, Copy, Debug)]
enum Call {
    Read(u64, u64),
    Write(u64, u64),
    Truncate(u64),
    Punch(u64, u64),
    Data(u64),
    Hole(u64),
    Copy(u64, u64, u64),
    Send(u64, u64, u64),
    Size,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        6 => (0..8_u64, 0..5_u64).prop_map(|(block, off)| (block * 4096 + off).saturating_sub(2)),
        2 => 0..40_000_u64,
        1 => Just(LAST),
    ]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        4 => 1..6000_u64,
        2 => (1..5_u64).prop_map(|blocks| blocks * 4096),
    ]
}

fn call() -> impl Strategy<Value = (bool, Call)> {
    let call = prop_oneof![
        (offset(), length()).prop_map(|(at, length)| Call::Read(at, length)),
        (offset(), length()).prop_map(|(at, length)| Call::Write(at, length)),
        (0..40_000_u64).prop_map(Call::Truncate),
        (offset(), length()).prop_map(|(at, length)| Call::Punch(at, length)),
        offset().prop_map(Call::Data),
        offset().prop_map(Call::Hole),
        (offset(), offset(), length()).prop_map(|(from, to, length)| Call::Copy(from, to, length)),
        (offset(), offset(), length()).prop_map(|(from, to, length)| Call::Send(from, to, length)),
        Just(Call::Size),
    ];
    (any::<bool>(), call)
}

/// What it answers, and what it read.
fn ask(sys: &dyn Sys, [one, other]: [BorrowedFd<'_>; 2], call: Call) -> Result<(u64, Vec<u8>)> {
    let size = |length: u64| usize::try_from(length).expect("a short one");
    let mut read = Vec::new();
    let answer = match call {
        Call::Read(at, length) => {
            read.resize(size(length), 0);
            sys.read(one, &mut read, at)? as u64
        }
        Call::Write(at, length) => sys.write(one, noise(3, length), at)? as u64,
        Call::Truncate(to) => sys.truncate(one, to).map(|()| 0)?,
        Call::Punch(at, length) => sys.punch_hole(one, at, length).map(|()| 0)?,
        Call::Data(at) => sys.seek_data(one, at)?,
        Call::Hole(at) => sys.seek_hole(one, at)?,
        Call::Copy(from, to, length) => sys.copy_range(one, from, other, to, size(length))? as u64,
        Call::Send(from, to, _) if from > LAST - 8192 || to > LAST - 40_000 => 0,
        Call::Send(from, to, length) => {
            sys.seek(other, to)?;
            sys.send_file(one, from, other, size(length))? as u64
        }
        Call::Size => {
            let info = sys.stat(one)?;
            info.size * 1_000_000 + info.blocks
        }
    };
    Ok((answer, read))
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_world_answers_like_the_system(calls in prop::collection::vec(call(), 1..40)) {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            copyist_bed::skipped("no tmpfs to compare with: /dev/shm is not there");
            return Ok(());
        }
        let files = [(); 2].map(|()| tempfile::tempfile_in(memory).expect("a file in memory"));
        let world = World::new(Habits { ranges: Ranges::Copies, ..Habits::default() });
        let handles = ["one", "other"].map(|name| {
            let node = Node::new(Form::File(Content::default()), 1, 0o600);
            let id = world.add(ROOT, name, node);
            world.hold(id, OFlags::RDWR, 0, Side::Source)
        });
        let system = native();
        for (swap, call) in calls {
            let mut real = files.each_ref().map(File::as_fd);
            let mut made_up = handles.each_ref().map(|handle| handle.as_fd());
            if swap {
                real.reverse();
                made_up.reverse();
            }
            let ours = ask(&*world, made_up, call);
            let theirs = ask(&*system, real, call);
            prop_assert_eq!(ours, theirs, "{:?}, swapped: {}", call, swap);
        }
    }
}
