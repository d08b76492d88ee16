//! Ordered sets of small numbers; the kernel's schedulers use red-black trees.
//!
//! A treap (Seidel and Aragon, "Randomized search trees", 1996) with all nodes in one table; each
//! node is at the index of its member. Inserting and removing cost the logarithm of the set's size
//! and allocate nothing once the table is long enough. Of equal keys the one inserted first is
//! first.

/// "No node."
const NIL: u32 = u32::MAX;

/// A set. A member of one set of a table is in no other set of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    root: u32,
}

impl Set {
    pub const EMPTY: Set = Set { root: NIL };
}

#[derive(Clone, Copy, Debug)]
struct Node<K> {
    key: K,
    /// When it was inserted, counted over the table.
    turn: u64,
    /// At most the height of the node above it.
    height: u32,
    left: u32,
    right: u32,
}

/// The members of all sets of a kind, by number.
#[derive(Clone, Debug)]
pub(crate) struct Members<K> {
    nodes: Vec<Node<K>>,
    turn: u64,
}

impl<K> Default for Members<K> {
    fn default() -> Members<K> {
        Members { nodes: Vec::new(), turn: 0 }
    }
}

/// Sufficiently random, and the same in every run: the finalizer of SplitMix64 (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
fn height(turn: u64) -> u32 {
    let mixed = (turn ^ (turn >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 32) as u32
}

impl<K: Copy + Ord + Default> Members<K> {
    /// The key with which `id` was inserted.
    #[inline]
    pub fn key(&self, id: u32) -> K {
        self.nodes[id as usize].key
    }

    #[inline]
    fn place(&self, id: u32) -> (K, u64) {
        let node = &self.nodes[id as usize];
        (node.key, node.turn)
    }

    #[inline]
    fn child(&mut self, id: u32, right: bool) -> &mut u32 {
        let node = &mut self.nodes[id as usize];
        if right { &mut node.right } else { &mut node.left }
    }

    /// Puts `id` in the place of another node below `above` (or at the root).
    #[inline]
    fn hang(&mut self, set: &mut Set, above: Option<(u32, bool)>, id: u32) {
        match above {
            Some((above, right)) => *self.child(above, right) = id,
            None => set.root = id,
        }
    }

    /// Inserts `id` after all members whose key is not greater.
    pub fn insert(&mut self, set: &mut Set, key: K, id: u32) {
        self.turn += 1;
        let node = Node { key, turn: self.turn, height: height(self.turn), left: NIL, right: NIL };
        if id as usize >= self.nodes.len() {
            self.nodes.resize(id as usize + 1, Node { key: K::default(), ..node });
        }
        self.nodes[id as usize] = node;
        let (mut at, mut above) = (set.root, None);
        while at != NIL && self.nodes[at as usize].height >= node.height {
            let right = self.nodes[at as usize].key <= key;
            above = Some((at, right));
            at = *self.child(at, right);
        }
        self.hang(set, above, id);
        if at != NIL {
            self.split(at, id);
        }
    }

    /// Splits the subtree at `at` and puts the halves on both sides of `id`, which takes its place.
    fn split(&mut self, mut at: u32, id: u32) {
        let place = self.place(id);
        // Where the next part before `id`, and the next part after it, will be attached.
        let mut ends = [(id, false), (id, true)];
        while at != NIL {
            let behind = self.place(at) > place;
            let (end, right) = ends[usize::from(behind)];
            *self.child(end, right) = at;
            ends[usize::from(behind)] = (at, !behind);
            at = *self.child(at, !behind);
        }
        for (end, right) in ends {
            *self.child(end, right) = NIL;
        }
    }

    /// Removes `id`, which is in the set.
    pub fn remove(&mut self, set: &mut Set, id: u32) {
        let place = self.place(id);
        let (mut at, mut above) = (set.root, None);
        while at != id {
            let right = self.place(at) < place;
            above = Some((at, right));
            at = *self.child(at, right);
        }
        let Node { mut left, mut right, .. } = self.nodes[id as usize];
        // Merges the two halves, from the top.
        while left != NIL && right != NIL {
            let left_first = self.nodes[left as usize].height >= self.nodes[right as usize].height;
            let top = if left_first { left } else { right };
            self.hang(set, above, top);
            above = Some((top, left_first));
            let next = *self.child(top, left_first);
            *(if left_first { &mut left } else { &mut right }) = next;
        }
        self.hang(set, above, if left == NIL { right } else { left });
    }

    /// The member at one end.
    fn end(&self, set: &Set, right: bool) -> Option<u32> {
        let (mut at, mut found) = (set.root, None);
        while at != NIL {
            found = Some(at);
            let node = &self.nodes[at as usize];
            at = if right { node.right } else { node.left };
        }
        found
    }

    /// The member with the smallest key.
    #[inline]
    pub fn first(&self, set: &Set) -> Option<u32> {
        self.end(set, false)
    }

    /// The member with the largest key.
    #[inline]
    pub fn last(&self, set: &Set) -> Option<u32> {
        self.end(set, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn depth(members: &Members<u32>, at: u32) -> usize {
        if at == NIL {
            return 0;
        }
        let node = &members.nodes[at as usize];
        1 + depth(members, node.left).max(depth(members, node.right))
    }

    proptest! {
        /// Compares all operations of two sets in one table with sorted vectors.
        #[test]
        fn sets_have_the_members_of_sorted_vectors(
            steps in prop::collection::vec((any::<bool>(), 0usize..2, 0u32..40, 0u32..12), 1..300)
        ) {
            let mut members = Members::default();
            let mut sets = [Set::EMPTY; 2];
            let mut model: [Vec<(u32, usize, u32)>; 2] = Default::default();
            for (turn, (join, which, id, key)) in steps.into_iter().enumerate() {
                let home = (0..2).find(|&set| model[set].iter().any(|entry| entry.2 == id));
                match (join, home) {
                    (true, None) => {
                        members.insert(&mut sets[which], key, id);
                        model[which].push((key, turn, id));
                        model[which].sort_unstable();
                    }
                    (false, Some(home)) => {
                        prop_assert!(model[home].iter().any(|entry| (entry.0, entry.2) == (members.key(id), id)));
                        members.remove(&mut sets[home], id);
                        model[home].retain(|entry| entry.2 != id);
                    }
                    _ => {}
                }
                for (set, model) in sets.iter().zip(&model) {
                    prop_assert_eq!(members.first(set), model.first().map(|entry| entry.2));
                    prop_assert_eq!(members.last(set), model.last().map(|entry| entry.2));
                }
            }
        }
    }

    #[test]
    fn a_set_that_is_filled_in_order_stays_flat() {
        let mut members = Members::default();
        let mut set = Set::EMPTY;
        (0..4096).for_each(|id| members.insert(&mut set, id, id));
        // At most about 2.99 log2 n (Mahmoud, "The height of random binary search trees").
        assert!(depth(&members, set.root) <= 36, "{}", depth(&members, set.root));
    }
}
