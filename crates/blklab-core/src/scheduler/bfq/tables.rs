//! Two small tables over queues: those that stand in the service trees, and their weights.

use super::queue::QueueId;

const NIL: u32 = u32::MAX;

/// Queues in the active trees, the one inserted last first (`active_list`).
#[derive(Debug)]
pub(super) struct ActiveList {
    head: u32,
    /// Previous and next of each queue, by id.
    links: Vec<Option<(u32, u32)>>,
}

impl ActiveList {
    pub fn new() -> ActiveList {
        ActiveList { head: NIL, links: Vec::new() }
    }

    /// The queue has been inserted into a tree, perhaps after having been taken out.
    pub fn insert(&mut self, q: QueueId) {
        self.remove(q);
        if q.index() >= self.links.len() {
            self.links.resize(q.index() + 1, None);
        }
        self.links[q.index()] = Some((NIL, self.head));
        if let Some(Some(link)) = self.links.get_mut(self.head as usize) {
            link.0 = q.0;
        }
        self.head = q.0;
    }

    /// The queue has been taken out of its tree, if it was there.
    pub fn remove(&mut self, q: QueueId) {
        let Some((previous, next)) = self.links.get_mut(q.index()).and_then(Option::take) else { return };
        match self.links.get_mut(previous as usize) {
            Some(Some(link)) => link.1 = next,
            _ => self.head = next,
        }
        if let Some(Some(link)) = self.links.get_mut(next as usize) {
            link.0 = previous;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = QueueId> + '_ {
        let first = (self.head != NIL).then_some(QueueId(self.head));
        std::iter::successors(first, |q| {
            let (_, next) = self.links[q.index()].expect("listed queues have links");
            (next != NIL).then_some(QueueId(next))
        })
    }
}

/// How many queues have each weight (`queue_weights_tree`). Raised queues are not counted, so
/// that there are few different weights.
#[derive(Debug, Default)]
pub(super) struct Weights(Vec<(u32, u32)>);

impl Weights {
    pub fn add(&mut self, weight: u32) {
        match self.0.binary_search_by_key(&weight, |entry| entry.0) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (weight, 1)),
        }
    }

    pub fn remove(&mut self, weight: u32) {
        let at = self.0.binary_search_by_key(&weight, |entry| entry.0).expect("it was added");
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }

    #[inline]
    pub fn least(&self) -> Option<u32> {
        self.0.first().map(|entry| entry.0)
    }

    #[inline]
    pub fn vary(&self) -> bool {
        self.0.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_inserted_last_comes_first() {
        let mut list = ActiveList::new();
        [3, 1, 2].map(QueueId).iter().for_each(|&q| list.insert(q));
        list.insert(QueueId(3));
        assert_eq!(list.iter().map(|q| q.0).collect::<Vec<_>>(), [3, 2, 1]);
        list.remove(QueueId(2));
        list.remove(QueueId(2));
        assert_eq!(list.iter().map(|q| q.0).collect::<Vec<_>>(), [3, 1]);
        list.remove(QueueId(3));
        list.remove(QueueId(1));
        assert_eq!(list.iter().count(), 0);
    }

    #[test]
    fn weights_vary_while_queues_of_two_are_counted() {
        let mut weights = Weights::default();
        [40, 80, 40].iter().for_each(|&weight| weights.add(weight));
        assert!(weights.vary() && weights.least() == Some(40));
        weights.remove(40);
        assert!(weights.vary());
        weights.remove(40);
        assert!(!weights.vary() && weights.least() == Some(80));
    }
}
