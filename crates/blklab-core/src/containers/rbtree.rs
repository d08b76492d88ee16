//! A red-black tree with the shape of the kernel's.
//!
//! Where the kernel takes the node at which a search has ended, and not the nearest one, the shape of the tree decides. The
//! shape follows from the order of insertions and removals, if both restore the balance as `lib/rbtree.c` does. For
//! everything else [`super::sorted`] is faster.
//!
//! Nodes are numbers of the caller's, each in one tree at a time; the caller compares.

use std::cmp::Ordering;

/// No node.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    parent: u32,
    /// Left, right.
    children: [u32; 2],
    red: bool,
}

const LONE: Node = Node { parent: NIL, children: [NIL; 2], red: true };

/// Where a search has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// At the node that was searched for.
    At(u32),
    /// Below this node; `None` in an empty tree.
    Below(Option<Place>),
}

/// A free place below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The node.
    pub parent: u32,
    side: usize,
}

/// Trees that share the numbers of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Trees {
    nodes: Vec<Node>,
    roots: Vec<u32>,
}

impl Trees {
    /// So many empty trees.
    pub fn new(trees: usize) -> Trees {
        Trees { nodes: Vec::new(), roots: vec![NIL; trees] }
    }

    /// Searches in a tree: `order` is that of what is searched for relative to a node.
    pub fn search(&self, tree: usize, order: impl Fn(u32) -> Ordering) -> Found {
        let (mut at, mut place) = (self.roots[tree], None);
        while at != NIL {
            let side = match order(at) {
                Ordering::Less => 0,
                Ordering::Greater => 1,
                Ordering::Equal => return Found::At(at),
            };
            place = Some(Place { parent: at, side });
            at = self.child(at, side);
        }
        Found::Below(place)
    }

    /// The node before that one in its tree's order.
    pub fn before(&self, node: u32) -> Option<u32> {
        self.neighbour(node, 0)
    }

    /// The node after that one.
    pub fn after(&self, node: u32) -> Option<u32> {
        self.neighbour(node, 1)
    }

    /// Inserts a node behind those that are equal to it; `order` is that of the new node relative to another
    /// (`elv_rb_add`).
    pub fn insert_behind(&mut self, tree: usize, node: u32, order: impl Fn(u32) -> Ordering) {
        if let Found::Below(place) = self.search(tree, |other| order(other).then(Ordering::Greater)) {
            self.insert(tree, node, place);
        }
    }

    /// Inserts a node where a search for it has ended (`rb_link_node`, `rb_insert_color`).
    pub fn insert(&mut self, tree: usize, node: u32, place: Option<Place>) {
        if self.nodes.len() <= node as usize {
            self.nodes.resize(node as usize + 1, LONE);
        }
        self.nodes[node as usize] = LONE;
        match place {
            None => self.roots[tree] = node,
            Some(Place { parent, side }) => {
                self.at(node).parent = parent;
                self.at(parent).children[side] = node;
            }
        }
        self.balance_insertion(tree, node);
    }

    /// Removes a node (`rb_erase`).
    pub fn remove(&mut self, tree: usize, node: u32) {
        let Node { parent, children: [left, right], red } = self.nodes[node as usize];
        let lacks_black = if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.replace(tree, node, child);
            self.fill_gap(parent, child, red)
        } else {
            self.remove_inner(tree, node)
        };
        if lacks_black != NIL {
            self.balance_removal(tree, lacks_black);
        }
    }

    /// Removes a node with two children. The next node in order takes its place. The result is that of
    /// [`Trees::fill_gap`].
    fn remove_inner(&mut self, tree: usize, node: u32) -> u32 {
        let Node { parent: above, children: [left, right], red } = self.nodes[node as usize];
        let mut successor = right;
        while self.child(successor, 0) != NIL {
            successor = self.child(successor, 0);
        }
        let Node { parent: before, children: [_, moved], red: was_red } = self.nodes[successor as usize];
        let gap = if before == node {
            successor
        } else {
            self.at(before).children[0] = moved;
            self.at(successor).children[1] = right;
            self.at(right).parent = successor;
            before
        };
        self.at(successor).children[0] = left;
        self.at(left).parent = successor;
        self.replace(tree, node, successor);
        let successor = self.at(successor);
        (successor.parent, successor.red) = (above, red);
        self.fill_gap(gap, moved, was_red)
    }

    /// Below `parent` a node has left its place to its only child, if it had one. The result is `parent` if a black node
    /// is missing there now, otherwise none.
    fn fill_gap(&mut self, parent: u32, child: u32, was_red: bool) -> u32 {
        if child != NIL {
            // An only child is red, and so the node was black.
            let child = self.at(child);
            (child.parent, child.red) = (parent, false);
            NIL
        } else if was_red {
            NIL
        } else {
            parent
        }
    }

    /// `__rb_insert`: the node is red, and its parent may be.
    fn balance_insertion(&mut self, tree: usize, mut node: u32) {
        loop {
            let mut parent = self.nodes[node as usize].parent;
            if parent == NIL {
                self.at(node).red = false;
                return;
            }
            if !self.is_red(parent) {
                return;
            }
            let grandparent = self.nodes[parent as usize].parent;
            let side = self.side_of(grandparent, parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.at(uncle).red = false;
                self.at(parent).red = false;
                self.at(grandparent).red = true;
                node = grandparent;
                continue;
            }
            if node == self.child(parent, 1 - side) {
                self.rotate(tree, parent, side);
                parent = node;
            }
            self.rotate(tree, grandparent, 1 - side);
            self.at(parent).red = false;
            self.at(grandparent).red = true;
            return;
        }
    }

    /// Restores the balance where a black node is missing below `parent`, on the side that has no child
    /// (`____rb_erase_color`).
    fn balance_removal(&mut self, tree: usize, mut parent: u32) {
        let mut node = NIL;
        loop {
            let side = usize::from(node != self.child(parent, 0));
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.rotate(tree, parent, side);
                self.at(sibling).red = false;
                self.at(parent).red = true;
                sibling = self.child(parent, 1 - side);
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, 1 - side));
            if !self.is_red(near) && !self.is_red(far) {
                self.at(sibling).red = true;
                if self.is_red(parent) {
                    self.at(parent).red = false;
                    return;
                }
                node = parent;
                parent = self.nodes[node as usize].parent;
                if parent == NIL {
                    return;
                }
                continue;
            }
            if !self.is_red(far) {
                self.rotate(tree, sibling, 1 - side);
                self.at(near).red = false;
                self.at(sibling).red = true;
                sibling = near;
            }
            let far = self.child(sibling, 1 - side);
            self.rotate(tree, parent, side);
            let red = self.is_red(parent);
            self.at(sibling).red = red;
            self.at(parent).red = false;
            self.at(far).red = false;
            return;
        }
    }

    /// The node goes down to that side, and its child on the other side takes its place.
    fn rotate(&mut self, tree: usize, node: u32, side: usize) {
        let up = self.child(node, 1 - side);
        let between = self.child(up, side);
        let above = self.nodes[node as usize].parent;
        self.replace(tree, node, up);
        self.at(up).parent = above;
        self.at(up).children[side] = node;
        self.at(node).parent = up;
        self.at(node).children[1 - side] = between;
        if between != NIL {
            self.at(between).parent = node;
        }
    }

    /// `new`, which may be none, takes the place of `old` below its parent (`__rb_change_child`).
    fn replace(&mut self, tree: usize, old: u32, new: u32) {
        match self.nodes[old as usize].parent {
            NIL => self.roots[tree] = new,
            parent => {
                let side = self.side_of(parent, old);
                self.at(parent).children[side] = new;
            }
        }
    }

    fn neighbour(&self, node: u32, side: usize) -> Option<u32> {
        let mut at = self.child(node, side);
        if at != NIL {
            while self.child(at, 1 - side) != NIL {
                at = self.child(at, 1 - side);
            }
            return Some(at);
        }
        let (mut below, mut above) = (node, self.nodes[node as usize].parent);
        while above != NIL && self.child(above, side) == below {
            (below, above) = (above, self.nodes[above as usize].parent);
        }
        (above != NIL).then_some(above)
    }

    fn at(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].children[side]
    }

    fn side_of(&self, parent: u32, child: u32) -> usize {
        usize::from(self.child(parent, 0) != child)
    }

    /// A node that is missing counts as black.
    fn is_red(&self, node: u32) -> bool {
        node != NIL && self.nodes[node as usize].red
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Trees {
        /// The tree in brackets: a node, its left and its right side; red ones with a star.
        fn shape(&self, node: u32) -> String {
            if node == NIL {
                return String::new();
            }
            let Node { children: [left, right], red, .. } = self.nodes[node as usize];
            let name = format!("{node}{}", if red { "*" } else { "" });
            match (left, right) {
                (NIL, NIL) => name,
                _ => format!("{name}({},{})", self.shape(left), self.shape(right)),
            }
        }

        /// Black nodes on every way down; fails if they differ or a red node has a red child.
        fn black_height(&self, node: u32) -> u32 {
            if node == NIL {
                return 1;
            }
            let Node { children, red, .. } = self.nodes[node as usize];
            let heights = children.map(|child| {
                assert!(child == NIL || self.nodes[child as usize].parent == node);
                assert!(!(red && self.is_red(child)), "two red ones");
                self.black_height(child)
            });
            assert_eq!(heights[0], heights[1]);
            heights[0] + u32::from(!red)
        }
    }

    /// Each number is a node in its own place.
    fn insert(trees: &mut Trees, node: u32) {
        if let Found::Below(place) = trees.search(0, |other| node.cmp(&other)) {
            trees.insert(0, node, place);
        }
    }

    fn shape_of(inserted: &[u32], removed: &[u32]) -> String {
        let mut trees = Trees::new(1);
        inserted.iter().for_each(|&node| insert(&mut trees, node));
        removed.iter().for_each(|&node| trees.remove(0, node));
        trees.shape(trees.roots[0])
    }

    #[test]
    fn the_shape_is_that_of_the_order_of_insertions() {
        assert_eq!(shape_of(&[1, 2], &[]), "1(,2*)");
        assert_eq!(shape_of(&[2, 1], &[]), "2(1*,)");
        assert_eq!(shape_of(&[1, 2, 3], &[]), "2(1*,3*)");
        assert_eq!(shape_of(&[3, 1, 2], &[]), "2(1*,3*)");
        assert_eq!(shape_of(&[1, 2, 3, 4], &[]), "2(1,3(,4*))");
        assert_eq!(shape_of(&[1, 2, 3, 4, 5, 6], &[]), "2(1,4*(3,5(,6*)))");
    }

    #[test]
    fn a_removed_inner_node_is_replaced_by_its_successor() {
        assert_eq!(shape_of(&[1, 2, 3], &[2]), "3(1*,)");
        assert_eq!(shape_of(&[1, 2, 3, 4], &[1]), "3(2,4)");
        assert_eq!(shape_of(&[1, 2, 3, 4, 5, 6], &[2]), "3(1,5*(4,6))");
        assert_eq!(shape_of(&[5], &[5]), "");
    }

    #[test]
    fn a_search_ends_at_the_last_node_on_its_way() {
        let mut trees = Trees::new(1);
        for node in [10, 30] {
            insert(&mut trees, node);
        }
        let end = |wanted: u32| match trees.search(0, |other| wanted.cmp(&other)) {
            Found::At(node) => node,
            Found::Below(place) => place.expect("it is not empty").parent,
        };
        assert_eq!([end(5), end(10), end(12), end(40)], [10, 10, 30, 30], "12 is nearer to 10");
        assert_eq!((trees.before(30), trees.after(30), trees.after(10)), (Some(10), None, Some(30)));
    }

    proptest! {
        #[test]
        fn it_is_balanced_and_in_order_after_any_insertions_and_removals(
            steps in proptest::collection::vec((0_u32..60, any::<bool>()), 1..300),
        ) {
            let (mut trees, mut truth) = (Trees::new(1), BTreeMap::new());
            for (node, inserts) in steps {
                if inserts {
                    insert(&mut trees, node);
                    truth.insert(node, ());
                } else if truth.remove(&node).is_some() {
                    trees.remove(0, node);
                }
                let root = trees.roots[0];
                prop_assert!(!trees.is_red(root));
                trees.black_height(root);
                let first = truth.keys().next().copied();
                let forth: Vec<_> = std::iter::successors(first, |&node| trees.after(node)).collect();
                prop_assert!(forth.iter().eq(truth.keys()));
                let last = truth.keys().next_back().copied();
                let back: Vec<_> = std::iter::successors(last, |&node| trees.before(node)).collect();
                prop_assert!(back.iter().eq(truth.keys().rev()));
            }
        }
    }
}
