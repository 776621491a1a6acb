//! What waits for a thread: in turn between owners, and in order within one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use super::Owner;

/// Items of several owners. Each owner with items has one place in the round.
#[derive(Debug)]
pub(super) struct Queue<T> {
    round: VecDeque<Owner>,
    items: HashMap<Owner, VecDeque<T>>,
    /// By their times; the number keeps those of one time apart.
    later: BTreeMap<(Instant, u64), (Owner, T)>,
    put_off: u64,
    length: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            round: VecDeque::new(),
            items: HashMap::new(),
            later: BTreeMap::new(),
            put_off: 0,
            length: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Items that could be taken now.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Those, and the items that must wait for their time.
    pub(super) fn len_with_later(&self) -> usize {
        self.length + self.later.len()
    }

    /// Items that must wait for their time.
    pub(super) fn put_off(&self) -> usize {
        self.later.len()
    }

    /// Whether an item could be taken at this time.
    pub(super) fn has_due(&self, now: Instant) -> bool {
        self.length > 0 || self.next_due().is_some_and(|due| due <= now)
    }

    pub(super) fn push(&mut self, owner: Owner, item: T) {
        self.place(owner).push_back(item);
    }

    /// An item that was taken and is not done: its owner's next one. Otherwise whatever an owner
    /// brought would be begun before anything of it is done.
    pub(super) fn push_again(&mut self, owner: Owner, item: T) {
        self.place(owner).push_front(item);
    }

    /// Where an owner's item goes, which is counted already.
    fn place(&mut self, owner: Owner) -> &mut VecDeque<T> {
        let items = self.items.entry(owner).or_default();
        if items.is_empty() {
            self.round.push_back(owner);
        }
        self.length += 1;
        items
    }

    /// An item that must not be taken before its time.
    pub(super) fn push_later(&mut self, owner: Owner, item: T, due: Instant) {
        self.put_off += 1;
        self.later.insert((due, self.put_off), (owner, item));
    }

    /// When the next of them is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.later.keys().next().map(|(due, _)| *due)
    }

    /// Takes one item of the owner whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(Owner, T)> {
        let owner = self.round.pop_front()?;
        let items = self.items.get_mut(&owner)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.items.remove(&owner);
        } else {
            self.round.push_back(owner);
        }
        self.length -= 1;
        Some((owner, item))
    }

    /// The same, with those whose time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Owner, T)> {
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            let (owner, item) = entry.remove();
            self.push(owner, item);
        }
        self.pop()
    }

    /// Takes the first that is wanted, of those that wait for no time.
    pub(super) fn remove(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let found = |(owner, items): (&Owner, &VecDeque<T>)| {
            Some((*owner, items.iter().position(&is_wanted)?))
        };
        let (owner, place) = self.items.iter().find_map(found)?;
        let items = self.items.get_mut(&owner)?;
        let item = items.remove(place)?;
        if items.is_empty() {
            self.items.remove(&owner);
            self.round.retain(|other| *other != owner);
        }
        self.length -= 1;
        Some(item)
    }

    /// Takes one, whether its time has come or not.
    pub(super) fn pop_any(&mut self) -> Option<(Owner, T)> {
        self.pop()
            .or_else(|| self.later.pop_first().map(|(_, item)| item))
    }

    /// Takes everything.
    pub(super) fn drain(&mut self) -> Vec<(Owner, T)> {
        std::iter::from_fn(|| self.pop_any()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn owners_take_turns_whatever_they_brought() {
        let mut queue = Queue::default();
        for item in 0..4 {
            queue.push(Owner(1), ("many", item));
        }
        queue.push(Owner(2), ("one", 0));
        queue.push(Owner(3), ("two", 0));
        queue.push(Owner(3), ("two", 1));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop().map(|(_, item)| item)).collect();
        assert_eq!(
            order,
            [
                ("many", 0),
                ("one", 0),
                ("two", 0),
                ("many", 1),
                ("two", 1),
                ("many", 2),
                ("many", 3),
            ]
        );
        assert_eq!(queue.len(), 0);
        assert!(
            queue.items.is_empty(),
            "an owner without items is forgotten"
        );
    }

    #[test]
    fn what_is_not_done_is_its_owners_next_and_others_come_between() {
        let mut queue = Queue::default();
        for (owner, item) in [(1, "a"), (1, "b"), (2, "c")] {
            queue.push(Owner(owner), item);
        }
        let mut take = |again: bool| {
            let (owner, item) = queue.pop().unwrap();
            if again {
                queue.push_again(owner, item);
            }
            item
        };
        let order = [true, true, true, false, false, false].map(&mut take);
        assert_eq!(order, ["a", "c", "a", "c", "a", "b"]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn what_is_removed_leaves_no_turn_behind() {
        let mut queue = Queue::default();
        for (owner, item) in [(1, "a"), (2, "b"), (2, "c"), (3, "d")] {
            queue.push(Owner(owner), item);
        }
        assert_eq!(queue.remove(|item| *item == "x"), None);
        for item in ["a", "c"] {
            assert_eq!(queue.remove(|other| *other == item), Some(item));
        }
        assert_eq!(queue.len(), 2);
        queue.push(Owner(1), "e");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop().map(|(_, item)| item)).collect();
        assert_eq!(order, ["b", "d", "e"]);
    }

    #[test]
    fn an_item_for_later_is_not_taken_before() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let due = now + Duration::from_millis(5);
        queue.push_later(Owner(1), "later", due);
        assert_eq!((queue.len(), queue.len_with_later()), (0, 1));
        assert!(!queue.has_due(now) && queue.has_due(due));
        assert_eq!(queue.next_due(), Some(due));
        assert_eq!(queue.pop_due(now), None);
        assert_eq!(queue.pop_due(due), Some((Owner(1), "later")));
        assert_eq!(queue.next_due(), None);
        queue.push_later(Owner(1), "left", due);
        assert_eq!(queue.drain(), [(Owner(1), "left")]);
    }
}
