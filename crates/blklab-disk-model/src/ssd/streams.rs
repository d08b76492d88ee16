//! Detects sequential streams among random commands by the ends of recent commands.

/// The number of streams that the controller follows at once (estimate: no maker publishes it).
pub(super) const STREAMS: usize = 8;

/// The next sector of each followed stream.
#[derive(Debug)]
pub(super) struct Streams {
    /// The next sector and the stream's number, the latest first.
    next: [(u64, usize); STREAMS],
}

impl Streams {
    pub fn new() -> Streams {
        Streams { next: std::array::from_fn(|number| (u64::MAX, number)) }
    }

    /// The number of the stream, below [`STREAMS`], that a command of these sectors continues. If there is
    /// none, it replaces the stream that has been idle for longest.
    #[inline]
    pub fn follows(&mut self, sector: u64, end: u64) -> Option<usize> {
        let found = self.next.iter().position(|(next, _)| *next == sector);
        let place = found.unwrap_or(STREAMS - 1);
        let (_, number) = self.next[place];
        self.next.copy_within(0..place, 1);
        self.next[0] = (end, number);
        found.map(|_| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_streams_are_followed_each_by_its_number() {
        let mut streams = Streams::new();
        let mut round = |number: u64| -> Vec<_> {
            (0..8).map(|stream| stream * 10_000 + number * 8).map(|at| streams.follows(at, at + 8)).collect()
        };
        assert!(round(0).iter().all(Option::is_none));
        let numbers = round(1);
        let mut all: Vec<_> = numbers.iter().copied().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..8).collect::<Vec<_>>());
        assert_eq!(round(2), numbers);
    }

    #[test]
    fn a_stream_outlives_seven_random_commands_between_two_of_its_own() {
        let mut streams = Streams::new();
        for round in 0..20 {
            assert_eq!(streams.follows(round * 8, round * 8 + 8).is_some(), round > 0);
            (0..7).for_each(|random| assert_eq!(streams.follows(1_000_001 + random * 16, 1_000_009), None));
        }
    }
}
