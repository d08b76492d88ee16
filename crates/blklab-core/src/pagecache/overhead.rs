//! The memory that cached pages take beside themselves: less is left for others.
//!
//! Nodes of the tree that finds the pages of a file (`xa_node`), one for each 64 that lie side by side. They stay where pages
//! were reclaimed, to tell when those come back (`mm/workingset.c`). Buffer heads of what is written, where it is not XFS's
//! iomap that writes, and the bios of what is being written, of which a bare disk has one for each page
//! (`block_write_full_folio`).
//!
//! The kernel takes memory for all of these by whole pages, which are free again when nothing on them is in use. Here
//! that is so as soon as the rest would fit on fewer.

/// Nodes of 576 bytes on a page.
const NODES: u64 = 7;
/// Pages of a node, and nodes of one of the next level, as a power of two.
const NODE_PAGES: u32 = 6;
/// Buffer heads of 96 bytes on a page (104 before `b_end_io` was removed).
const HEADS: u64 = 42;
/// Bios for one page of data on a page, with what file systems keep before them (192 bytes).
const BIOS: u64 = 21;
/// Nodes without pages are freed beyond so many for the pages in use, as a power of two (`count_shadow_nodes`).
const EMPTY_NODES_MAX: u32 = 3;

/// What the kernel keeps for pages, beside the tree that finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// A buffer head for each page that is written, until it is dropped.
    pub heads: bool,
    /// A bio for each page that is being written.
    pub bios: bool,
}

/// The number of each.
#[derive(Debug, Default)]
pub(super) struct Overhead {
    kept: Kept,
    nodes: u64,
    empty_nodes: u64,
    heads: u64,
}

/// Pages of the tree of so many cached pages that lie side by side.
pub(super) fn tree_of(cached: u64) -> u64 {
    let nodes = cached >> NODE_PAGES;
    (nodes + (nodes >> NODE_PAGES)) / NODES
}

impl Overhead {
    pub fn new(kept: Kept) -> Overhead {
        Overhead { kept, ..Overhead::default() }
    }

    /// Pages that all of it takes, while so many are being written, and so many nodes of the next level have pages.
    #[inline]
    pub fn pages(&self, writeback: u64, nodes_above: u64) -> u64 {
        let empty = self.empty_nodes + (self.empty_nodes >> NODE_PAGES);
        let nodes = self.nodes + nodes_above + empty;
        let bios = if self.kept.bios { writeback / BIOS } else { 0 };
        nodes / NODES + self.heads / HEADS + bios
    }

    /// The first page of a line comes.
    #[inline]
    pub fn line_begins(&mut self, has_node: bool) {
        self.nodes += 1;
        self.empty_nodes -= u64::from(has_node);
    }

    /// The last page of a line was reclaimed: its node stays.
    #[inline]
    pub fn line_ends(&mut self) {
        self.nodes -= 1;
        self.empty_nodes += 1;
    }

    /// The number of empty nodes.
    pub fn empty_nodes(&self) -> u64 {
        self.empty_nodes
    }

    /// The kernel frees some empty nodes while so many pages are in use.
    pub fn has_too_many_empty_nodes(&self, taken: u64) -> bool {
        self.empty_nodes > taken >> EMPTY_NODES_MAX
    }

    /// An empty node goes.
    pub fn node_goes(&mut self) {
        self.empty_nodes -= 1;
    }

    /// Pages of a line are written to, which has buffer heads of these.
    #[inline]
    pub fn written(&mut self, with_heads: &mut u64, mask: u64) {
        if self.kept.heads {
            self.heads += u64::from((mask & !*with_heads).count_ones());
            *with_heads |= mask;
        }
    }

    /// Pages of a line are dropped.
    #[inline]
    pub fn dropped(&mut self, with_heads: &mut u64, mask: u64) {
        if self.kept.heads {
            self.heads -= u64::from((mask & *with_heads).count_ones());
            *with_heads &= !mask;
        }
    }
}
