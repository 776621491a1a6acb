//! What a copy can carry over beside the bytes.

use std::ops::{BitOr, BitOrAssign, Sub};

/// A set of attributes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Preserve(u8);

impl Preserve {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Permission bits, without the umask.
    pub const MODE: Self = Self(1);
    /// Access and modification times.
    pub const TIMESTAMPS: Self = Self(1 << 1);
    /// User and group.
    pub const OWNERSHIP: Self = Self(1 << 2);
    /// Extended attributes.
    pub const XATTRS: Self = Self(1 << 3);
    /// POSIX access control lists.
    pub const ACLS: Self = Self(1 << 4);
    /// Hard links between copied files. One file alone has none to keep.
    pub const LINKS: Self = Self(1 << 5);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::MODE, "mode"),
        (Self::TIMESTAMPS, "timestamps"),
        (Self::OWNERSHIP, "ownership"),
        (Self::XATTRS, "xattrs"),
        (Self::ACLS, "acls"),
        (Self::LINKS, "links"),
    ];

    /// Whether every attribute of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether both sets have something.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What both sets have.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either set has.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of the attributes in this set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|(_, name)| name)
    }
}

impl BitOr for Preserve {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Preserve {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Sub for Preserve {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Preserve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn every_set() -> impl Iterator<Item = Preserve> {
        (0..1 << Preserve::NAMES.len()).map(Preserve)
    }

    fn set(attributes: Preserve) -> BTreeSet<&'static str> {
        attributes.names().collect()
    }

    #[test]
    fn each_attribute_is_one_by_itself() {
        for (attribute, name) in Preserve::NAMES {
            assert_eq!(set(attribute), BTreeSet::from([name]));
        }
        let all = every_set().last().expect("sets");
        assert_eq!(set(all), Preserve::NAMES.map(|(_, name)| name).into());
        assert_eq!(format!("{:?}", Preserve::MODE), r#"{"mode"}"#);
    }

    #[test]
    fn the_operations_are_those_of_sets() {
        for a in every_set() {
            let these = set(a);
            assert_eq!(a.is_empty(), these.is_empty());
            for b in every_set() {
                let those = set(b);
                assert_eq!(a.contains(b), these.is_superset(&those));
                assert_eq!(a.intersects(b), !these.is_disjoint(&those));
                assert_eq!(set(a.intersection(b)), &these & &those);
                assert_eq!(set(a | b), &these | &those);
                assert_eq!(set(a - b), &these - &those);
                let mut both = a;
                both |= b;
                assert_eq!(both, a | b);
            }
        }
    }
}
