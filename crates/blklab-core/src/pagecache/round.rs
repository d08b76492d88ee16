//! The order in which the hand of reclaim's clock comes to chunks of pages: that in which they were filled, or passed.

const NONE: u32 = u32::MAX;

/// The places of a chunk's neighbours.
#[derive(Clone, Copy)]
struct Between {
    before: u32,
    after: u32,
}

/// A list of chunks by their places.
pub(super) struct Round {
    chunks: Vec<Between>,
    first: u32,
    last: u32,
}

impl Default for Round {
    fn default() -> Round {
        Round { chunks: Vec::new(), first: NONE, last: NONE }
    }
}

impl Round {
    /// The chunk at which the hand is.
    pub fn first(&self) -> Option<u32> {
        Some(self.first).filter(|&first| first != NONE)
    }

    /// The hand comes to this chunk last. It must not be in the list.
    pub fn push_back(&mut self, chunk: u32) {
        if self.chunks.len() <= chunk as usize {
            self.chunks.resize(chunk as usize + 1, Between { before: NONE, after: NONE });
        }
        self.chunks[chunk as usize] = Between { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = chunk,
            last => self.chunks[last as usize].after = chunk,
        }
        self.last = chunk;
    }

    /// Takes a chunk out of the list.
    pub fn remove(&mut self, chunk: u32) {
        let Between { before, after } = self.chunks[chunk as usize];
        match before {
            NONE => self.first = after,
            before => self.chunks[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.chunks[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue_from_which_any_chunk_can_be_taken(steps in prop::collection::vec((0..8_u32, any::<bool>()), 0..100)) {
            let (mut round, mut model) = (Round::default(), VecDeque::new());
            for (chunk, adds) in steps {
                match model.iter().position(|&other| other == chunk) {
                    Some(at) => {
                        model.remove(at);
                        round.remove(chunk);
                    }
                    None if adds => {
                        model.push_back(chunk);
                        round.push_back(chunk);
                    }
                    None => {}
                }
                prop_assert_eq!(round.first(), model.front().copied());
            }
            while let Some(first) = round.first() {
                prop_assert_eq!(Some(first), model.pop_front());
                round.remove(first);
            }
            prop_assert!(model.is_empty());
        }
    }
}
