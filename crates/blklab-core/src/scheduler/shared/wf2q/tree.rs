//! Entities in order of their finish times, with the smallest start time of each subtree.
//!
//! A red-black tree with all nodes in one table, so that a move allocates nothing. It must be
//! red-black, and balanced by the textbook's rules (Cormen et al., "Introduction to Algorithms",
//! chapter 13, which `lib/rbtree.c` also follows): [`Nodes::first_eligible`] answers as the kernel
//! does, and that answer depends on the tree's shape.

/// "No node" in a link.
pub(super) const NIL: u32 = u32::MAX;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// `a` is later than `b`, also across a wrap of the clock (`bfq_gt`).
#[inline]
pub(super) const fn later(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

/// An entity's node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Virtual start time. It changes only while the node is in no tree; so does `finish`.
    pub start: u64,
    /// Virtual finish time: the key of the tree.
    pub finish: u64,
    /// The smallest start time of the node and all below it.
    min_start: u64,
    parent: u32,
    child: [u32; 2],
    red: bool,
}

impl Node {
    pub const NEW: Node =
        Node { start: 0, finish: 0, min_start: 0, parent: NIL, child: [NIL; 2], red: false };
}

/// The root of one tree. A node is in at most one tree of a [`Nodes`] table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    root: u32,
}

impl Tree {
    pub const EMPTY: Tree = Tree { root: NIL };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }
}

/// All nodes, by the number of their entity.
#[derive(Debug, Default)]
pub(super) struct Nodes(Vec<Node>);

impl Nodes {
    pub fn push(&mut self, node: Node) {
        self.0.push(node);
    }

    /// Inserts the node after all nodes that finish no later.
    pub fn insert(&mut self, tree: &mut Tree, id: u32) {
        let Node { start, finish, .. } = self[id];
        let (mut parent, mut side, mut at) = (NIL, LEFT, tree.root);
        while at != NIL {
            let node = &mut self[at];
            if later(node.min_start, start) {
                node.min_start = start;
            }
            parent = at;
            side = if later(node.finish, finish) { LEFT } else { RIGHT };
            at = node.child[side];
        }
        self[id] = Node { start, finish, min_start: start, parent, child: [NIL; 2], red: true };
        match parent {
            NIL => tree.root = id,
            _ => self[parent].child[side] = id,
        }
        self.repaint_after_insert(tree, id);
    }

    /// Removes the node from its tree.
    pub fn remove(&mut self, tree: &mut Tree, id: u32) {
        let Node { child: [left, right], parent, red, min_start, .. } = self[id];
        // The position with one node fewer than before, and the colour of the lost node.
        let (from, side, below, lost_red);
        if left == NIL || right == NIL {
            below = if left == NIL { right } else { left };
            (from, lost_red) = (parent, red);
            side = self.side_of(id);
            self.replace(tree, id, below);
        } else {
            let next = self.outermost(right, LEFT);
            let above = self[next].parent;
            below = self[next].child[RIGHT];
            lost_red = self[next].red;
            if above == id {
                (from, side) = (next, RIGHT);
            } else {
                (from, side) = (above, LEFT);
                self.hang(above, LEFT, below);
                self.hang(next, RIGHT, right);
            }
            self.hang(next, LEFT, left);
            self.replace(tree, id, next);
            self[next].red = red;
            self[next].min_start = min_start;
        }
        let mut at = from;
        while at != NIL {
            self.refresh(at);
            at = self[at].parent;
        }
        if below != NIL {
            // An only child is red; it becomes black in its parent's place.
            self[below].red = false;
        } else if !lost_red {
            self.repaint_after_remove(tree, from, side);
        }
    }

    /// The node that the kernel would serve at this virtual time: eligible (its start time has
    /// come), with the smallest finish time that `bfq_first_active_entity` finds. That search goes
    /// left wherever the left subtree has an eligible node; but once it has seen an eligible node
    /// it never turns right. So it misses a node that is in the right subtree of a node that is not
    /// eligible, left of an eligible one.
    #[inline]
    pub fn first_eligible(&self, tree: &Tree, vtime: u64) -> Option<u32> {
        let (mut first, mut at) = (None, tree.root);
        while at != NIL {
            let node = &self[at];
            if !later(node.start, vtime) {
                first = Some(at);
            }
            let left = node.child[LEFT];
            if left != NIL && !later(self[left].min_start, vtime) {
                at = left;
            } else if first.is_some() {
                break;
            } else {
                at = node.child[RIGHT];
            }
        }
        first
    }

    /// The smallest start time in a tree that is not empty.
    #[inline]
    pub fn min_start(&self, tree: &Tree) -> u64 {
        self[tree.root].min_start
    }

    /// The node after `id`.
    pub fn next(&self, id: u32) -> u32 {
        self.neighbour(id, RIGHT)
    }

    /// The node before `id`.
    pub fn previous(&self, id: u32) -> u32 {
        self.neighbour(id, LEFT)
    }

    fn neighbour(&self, id: u32, side: usize) -> u32 {
        let below = self[id].child[side];
        if below != NIL {
            return self.outermost(below, 1 - side);
        }
        let mut at = id;
        loop {
            let parent = self[at].parent;
            if parent == NIL || self[parent].child[side] != at {
                return parent;
            }
            at = parent;
        }
    }

    fn outermost(&self, mut at: u32, side: usize) -> u32 {
        while self[at].child[side] != NIL {
            at = self[at].child[side];
        }
        at
    }

    fn is_red(&self, id: u32) -> bool {
        id != NIL && self[id].red
    }

    /// The side on which `id` hangs below its parent.
    fn side_of(&self, id: u32) -> usize {
        let parent = self[id].parent;
        usize::from(parent != NIL && self[parent].child[RIGHT] == id)
    }

    fn hang(&mut self, parent: u32, side: usize, id: u32) {
        self[parent].child[side] = id;
        if id != NIL {
            self[id].parent = parent;
        }
    }

    /// Puts `new` (or nothing) in the place of `old` below its parent.
    fn replace(&mut self, tree: &mut Tree, old: u32, new: u32) {
        let parent = self[old].parent;
        if parent == NIL {
            tree.root = new;
            if new != NIL {
                self[new].parent = NIL;
            }
        } else {
            let side = self.side_of(old);
            self.hang(parent, side, new);
        }
    }

    /// Computes `min_start` from the children.
    fn refresh(&mut self, id: u32) {
        let mut min = self[id].start;
        for child in self[id].child {
            if child != NIL && later(min, self[child].min_start) {
                min = self[child].min_start;
            }
        }
        self[id].min_start = min;
    }

    /// Rotates: `top` moves down on `side`, its child from the other side moves up.
    fn rotate(&mut self, tree: &mut Tree, top: u32, side: usize) {
        let up = self[top].child[1 - side];
        let middle = self[up].child[side];
        self.replace(tree, top, up);
        self.hang(top, 1 - side, middle);
        self.hang(up, side, top);
        self[up].min_start = self[top].min_start;
        self.refresh(top);
    }

    fn repaint_after_insert(&mut self, tree: &mut Tree, id: u32) {
        let mut node = id;
        loop {
            let parent = self[node].parent;
            if parent == NIL {
                self[node].red = false;
                return;
            }
            if !self[parent].red {
                return;
            }
            let grandparent = self[parent].parent;
            let side = self.side_of(parent);
            let uncle = self[grandparent].child[1 - side];
            if !self.is_red(uncle) {
                if self[parent].child[1 - side] == node {
                    self.rotate(tree, parent, side);
                }
                let middle = self[grandparent].child[side];
                self.rotate(tree, grandparent, 1 - side);
                self[middle].red = false;
                self[grandparent].red = true;
                return;
            }
            self[parent].red = false;
            self[uncle].red = false;
            self[grandparent].red = true;
            node = grandparent;
        }
    }

    /// Below `parent`, on `side`, every path has one black node fewer than elsewhere.
    fn repaint_after_remove(&mut self, tree: &mut Tree, mut parent: u32, mut side: usize) {
        while parent != NIL {
            let mut sibling = self[parent].child[1 - side];
            if self[sibling].red {
                self.rotate(tree, parent, side);
                self[sibling].red = false;
                self[parent].red = true;
                sibling = self[parent].child[1 - side];
            }
            let near = self[sibling].child[side];
            if !self.is_red(self[sibling].child[1 - side]) {
                if !self.is_red(near) {
                    self[sibling].red = true;
                    if self[parent].red {
                        self[parent].red = false;
                        return;
                    }
                    side = self.side_of(parent);
                    parent = self[parent].parent;
                    continue;
                }
                self.rotate(tree, sibling, 1 - side);
                self[near].red = false;
                self[sibling].red = true;
                sibling = near;
            }
            self.rotate(tree, parent, side);
            self[sibling].red = self[parent].red;
            self[parent].red = false;
            let far = self[sibling].child[1 - side];
            self[far].red = false;
            return;
        }
    }
}

impl std::ops::Index<u32> for Nodes {
    type Output = Node;
    #[inline]
    fn index(&self, id: u32) -> &Node {
        &self.0[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Node {
        &mut self.0[id as usize]
    }
}
