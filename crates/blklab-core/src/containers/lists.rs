//! Doubly linked lists of requests, with all links in one table beside the request slab, and of other things that have
//! a place in a table. Inserting, removing from the middle and splicing take constant time and allocate nothing.

use std::marker::PhantomData;

use crate::request::RequestId;

/// What can be in a list: it has a place in a table.
pub(crate) trait Place: Copy {
    fn at(place: u32) -> Self;
    fn place(self) -> u32;
}

impl Place for RequestId {
    #[inline]
    fn at(place: u32) -> RequestId {
        RequestId(place)
    }

    #[inline]
    fn place(self) -> u32 {
        self.0
    }
}

impl Place for u32 {
    #[inline]
    fn at(place: u32) -> u32 {
        place
    }

    #[inline]
    fn place(self) -> u32 {
        self
    }
}

/// "No request" in a link.
const NIL: u32 = u32::MAX;

/// The ends of one list. A request is in at most one list of a [`Links`] table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<I = RequestId> {
    head: u32,
    tail: u32,
    of: PhantomData<I>,
}

impl<I> Default for List<I> {
    fn default() -> List<I> {
        List { head: NIL, tail: NIL, of: PhantomData }
    }
}

impl List {
    pub const EMPTY: List = List { head: NIL, tail: NIL, of: PhantomData };
}

impl<I: Place> List<I> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub fn first(&self) -> Option<I> {
        (self.head != NIL).then_some(I::at(self.head))
    }

    #[inline]
    pub fn last(&self) -> Option<I> {
        (self.tail != NIL).then_some(I::at(self.tail))
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// The links of all requests, by id.
#[derive(Debug)]
pub(crate) struct Links<I = RequestId>(Vec<Link>, PhantomData<I>);

impl<I> Default for Links<I> {
    fn default() -> Links<I> {
        Links(Vec::new(), PhantomData)
    }
}

impl Links {
    pub fn with_capacity(requests: usize) -> Links {
        Links(Vec::with_capacity(requests), PhantomData)
    }
}

impl<I: Place> Links<I> {
    #[inline]
    fn room_for(&mut self, id: I) {
        if id.place() as usize >= self.0.len() {
            self.0.resize(id.place() as usize + 1, Link { previous: NIL, next: NIL });
        }
    }

    /// Links `id` between two neighbours; either may be the list's end.
    #[inline]
    fn put(&mut self, list: &mut List<I>, previous: u32, id: I, next: u32) {
        self.0[id.place() as usize] = Link { previous, next };
        match previous {
            NIL => list.head = id.place(),
            p => self.0[p as usize].next = id.place(),
        }
        match next {
            NIL => list.tail = id.place(),
            n => self.0[n as usize].previous = id.place(),
        }
    }

    #[inline]
    pub fn push_back(&mut self, list: &mut List<I>, id: I) {
        self.room_for(id);
        self.put(list, list.tail, id, NIL);
    }

    #[inline]
    pub fn push_front(&mut self, list: &mut List<I>, id: I) {
        self.room_for(id);
        self.put(list, NIL, id, list.head);
    }

    /// Links `id` directly after `place`, which is in `list`.
    pub fn insert_after(&mut self, list: &mut List<I>, place: I, id: I) {
        self.room_for(id);
        self.put(list, place.place(), id, self.0[place.place() as usize].next);
    }

    #[inline]
    pub fn remove(&mut self, list: &mut List<I>, id: I) {
        let Link { previous, next } = self.0[id.place() as usize];
        match previous {
            NIL => list.head = next,
            p => self.0[p as usize].next = next,
        }
        match next {
            NIL => list.tail = previous,
            n => self.0[n as usize].previous = previous,
        }
    }

    #[inline]
    pub fn pop_front(&mut self, list: &mut List<I>) -> Option<I> {
        let id = list.first()?;
        self.remove(list, id);
        Some(id)
    }

    /// Moves all of `from` to the end of `to`.
    pub fn append(&mut self, to: &mut List<I>, from: &mut List<I>) {
        if from.is_empty() {
            return;
        }
        match to.tail {
            NIL => to.head = from.head,
            tail => {
                self.0[tail as usize].next = from.head;
                self.0[from.head as usize].previous = tail;
            }
        }
        to.tail = from.tail;
        *from = List::default();
    }

    pub fn after(&self, id: I) -> Option<I> {
        let next = self.0[id.place() as usize].next;
        (next != NIL).then_some(I::at(next))
    }

    pub fn before(&self, id: I) -> Option<I> {
        let previous = self.0[id.place() as usize].previous;
        (previous != NIL).then_some(I::at(previous))
    }

    /// From the list's last request to its first.
    pub fn newest_first(&self, list: &List<I>) -> impl Iterator<Item = I> + '_ {
        std::iter::successors(list.last(), |&id| self.before(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forward(links: &Links, list: &List) -> Vec<u32> {
        std::iter::successors(list.first(), |&id| links.after(id)).map(|id| id.0).collect()
    }

    proptest! {
        /// Compares all list operations with plain vectors, in both directions of links.
        #[test]
        fn two_lists_in_one_table_have_the_entries_of_two_vectors(
            steps in prop::collection::vec((0u8..6, 0usize..2, 0u32..24, any::<prop::sample::Index>()), 0..200)
        ) {
            let mut links = Links::default();
            let mut lists = [List::EMPTY; 2];
            let mut model: [Vec<u32>; 2] = Default::default();
            for (step, which, id, at) in steps {
                let free = !model.iter().any(|m| m.contains(&id));
                match step {
                    0 if free => {
                        links.push_back(&mut lists[which], RequestId(id));
                        model[which].push(id);
                    }
                    1 if free => {
                        links.push_front(&mut lists[which], RequestId(id));
                        model[which].insert(0, id);
                    }
                    2 if free && !model[which].is_empty() => {
                        let place = at.index(model[which].len());
                        links.insert_after(&mut lists[which], RequestId(model[which][place]), RequestId(id));
                        model[which].insert(place + 1, id);
                    }
                    3 if model[which].contains(&id) => {
                        links.remove(&mut lists[which], RequestId(id));
                        model[which].retain(|&m| m != id);
                    }
                    4 => {
                        let popped = links.pop_front(&mut lists[which]).map(|id| id.0);
                        let expected = (!model[which].is_empty()).then(|| model[which].remove(0));
                        prop_assert_eq!(popped, expected);
                    }
                    5 => {
                        let [a, b] = &mut lists;
                        links.append(a, b);
                        let moved = std::mem::take(&mut model[1]);
                        model[0].extend(moved);
                    }
                    _ => {}
                }
                for (list, model) in lists.iter().zip(&model) {
                    prop_assert_eq!(&forward(&links, list), model);
                    let mut backward: Vec<_> = links.newest_first(list).map(|id| id.0).collect();
                    backward.reverse();
                    prop_assert_eq!(&backward, model);
                }
            }
        }
    }
}
