//! Who is to be ended when, soonest first: a tick at which nobody is looks at one entry.

use std::collections::{BTreeSet, HashMap};

/// Deadlines, each with what it is for.
#[derive(Debug)]
pub(super) struct Deadlines<V> {
    next: u64,
    all: HashMap<Id, (Option<u64>, V)>,
    order: BTreeSet<(u64, Id)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(u64);

impl<V> Deadlines<V> {
    pub(super) fn insert(&mut self, due: Option<u64>, value: V) -> Id {
        let id = Id(self.next);
        self.next += 1;
        self.all.insert(id, (due, value));
        self.order.extend(due.map(|due| (due, id)));
        id
    }

    /// Gives it back, so that the caller drops it where it holds no lock.
    pub(super) fn remove(&mut self, id: Id) -> Option<V> {
        let (due, value) = self.all.remove(&id)?;
        if let Some(due) = due {
            self.order.remove(&(due, id));
        }
        Some(value)
    }

    /// Moves a deadline, unless it was taken or removed.
    pub(super) fn change(
        &mut self,
        id: Id,
        change: impl FnOnce(Option<u64>) -> Option<u64>,
    ) -> bool {
        let Some((due, _)) = self.all.get_mut(&id) else {
            return false;
        };
        let old = std::mem::replace(due, change(*due));
        if let Some(old) = old {
            self.order.remove(&(old, id));
        }
        self.order.extend(due.map(|due| (due, id)));
        true
    }

    /// When it is due, unless it was taken or removed.
    pub(super) fn due(&self, id: Id) -> Option<u64> {
        self.all.get(&id)?.0
    }

    /// Takes out those that are due by now, the soonest first.
    pub(super) fn take_due(&mut self, now: u64) -> Vec<V> {
        let mut taken = Vec::new();
        while let Some(&(due, id)) = self.order.first()
            && due <= now
        {
            taken.extend(self.remove(id));
        }
        taken
    }
}

impl<V> Default for Deadlines<V> {
    fn default() -> Self {
        Self {
            next: 0,
            all: HashMap::new(),
            order: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_due_is_taken_once_the_soonest_first() {
        let mut deadlines = Deadlines::default();
        deadlines.insert(Some(3), "three");
        deadlines.insert(Some(2), "two");
        deadlines.insert(Some(2), "two again");
        deadlines.insert(Some(4), "four");
        deadlines.insert(None, "never");
        assert_eq!(deadlines.take_due(1), [""; 0]);
        assert_eq!(deadlines.take_due(3), ["two", "two again", "three"]);
        assert_eq!(deadlines.take_due(3), [""; 0]);
        assert_eq!(deadlines.take_due(u64::MAX), ["four"]);
    }

    #[test]
    fn a_deadline_moves_until_it_is_taken() {
        let mut deadlines = Deadlines::default();
        let id = deadlines.insert(Some(1), "moved");
        assert!(deadlines.change(id, |due| due.map(|due| due + 4)));
        assert_eq!(deadlines.due(id), Some(5));
        assert_eq!(deadlines.take_due(4), [""; 0]);
        assert!(deadlines.change(id, |_| None));
        assert_eq!(deadlines.take_due(u64::MAX), [""; 0]);
        assert!(deadlines.change(id, |_| Some(2)));
        assert_eq!(deadlines.take_due(2), ["moved"]);
        assert!(!deadlines.change(id, |_| Some(9)));
        assert_eq!(deadlines.due(id), None);
        assert_eq!(deadlines.take_due(u64::MAX), [""; 0]);
    }

    #[test]
    fn what_is_removed_is_not_taken_and_leaves_nothing() {
        let mut deadlines = Deadlines::default();
        let (first, second) = (
            deadlines.insert(Some(1), "one"),
            deadlines.insert(None, "none"),
        );
        assert_eq!(deadlines.remove(first), Some("one"));
        assert_eq!(deadlines.remove(first), None);
        assert_eq!(deadlines.remove(second), Some("none"));
        assert_eq!(deadlines.take_due(u64::MAX), [""; 0]);
        assert!(deadlines.all.is_empty() && deadlines.order.is_empty());
    }
}
