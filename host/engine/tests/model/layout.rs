//! Where a file has data, zeros and holes, and the bytes that it so has: the model that copies are
//! held to.

use std::sync::LazyLock;

use crate::content::{Content, place};

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    Data,
    /// Data that is zero.
    Zeros,
    Hole,
    /// Allocated and never written.
    Unwritten,
}

/// The parts of a file, each with its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout(pub(crate) Vec<(Stretch, u64)>);

/// What its data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Noise,
    /// Full of 'D's, which show what was there before.
    Old,
}

impl Fill {
    fn bytes(self, length: u64) -> &'static [u8] {
        static OLD: [u8; MOST] = [b'D'; MOST];
        match self {
            Self::Noise => noise(0, length),
            Self::Old => &OLD[..place(length)],
        }
    }
}

impl Layout {
    pub(crate) fn length(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }

    pub(crate) fn has_holes(&self) -> bool {
        self.content(Fill::Noise).units() * 512 < self.length()
    }

    /// The file.
    pub(crate) fn content(&self, fill: Fill) -> Content {
        let mut content = Content::default();
        let mut at = 0;
        // Data over what is allocated before, which it may share a block with.
        for (stretch, length) in &self.0 {
            if *stretch == Stretch::Unwritten && *length > 0 {
                content.allocate(at..at + length);
            }
            at += length;
        }
        let all = fill.bytes(at);
        at = 0;
        for (stretch, length) in &self.0 {
            let range = place(at)..place(at + length);
            match stretch {
                Stretch::Data => content.write(at, &all[range]),
                Stretch::Zeros => content.write(at, &vec![0; range.len()]),
                Stretch::Hole | Stretch::Unwritten => {}
            }
            at += length;
        }
        content.truncate(at);
        content
    }

    /// Its bytes, without asking the file.
    pub(crate) fn bytes(&self, fill: Fill) -> Vec<u8> {
        let all = fill.bytes(self.length());
        let mut bytes = Vec::with_capacity(all.len());
        for (stretch, length) in &self.0 {
            let range = bytes.len()..bytes.len() + place(*length);
            match stretch {
                Stretch::Data => bytes.extend_from_slice(&all[range]),
                _ => bytes.resize(range.end, 0),
            }
        }
        bytes
    }
}

/// No file of these tests is longer.
const MOST: usize = 16 << 20;

/// Bytes without a pattern that a copy at a wrong place could hide behind.
pub(crate) fn noise(seed: usize, length: u64) -> &'static [u8] {
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut bytes = Vec::with_capacity(MOST + (1 << 20));
        while bytes.len() < MOST + (1 << 20) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes
    });
    &NOISE[seed * 4099..][..place(length)]
}
