//! fio's own random numbers, for jobs that say `random_generator=tausworthe`: the same blocks in the
//! same order as fio 3.33, and the same mix of reads and writes.
//!
//! Follows `setup_random_seeds()`, `td_fill_rand_seeds()`, `__get_next_rand_offset()` and
//! `get_rw_ddir()` of fio 3.33. The generator is L'Ecuyer's taus88 ("Maximally equidistributed
//! combined Tausworthe generators", Mathematics of Computation 65, 1996). Sizes, files and skewed
//! distributions are drawn as in all jobs.

use super::spec::Direction;
use crate::request::ProcessId;

/// Multiplied by the number of the process, the seed of the offsets if they are to be repeated
/// (`FIO_RANDSEED`).
const REPEATED: u64 = 0xb189_9bed;
/// fio's `randseed` if the job gives none.
const DEFAULT_SEED: u64 = 0x89;
/// Successive seeds differ by this factor (`GOLDEN_RATIO_PRIME` of 32 bits).
const NEXT_SEED: u64 = 0x9e37_0001;
/// Seeds before the first one.
const SEEDS_BEFORE: u32 = 4;
/// The seeds of mix and offsets among those of a process (`FIO_RAND_MIX_OFF`, `FIO_RAND_BLOCK_OFF`).
const MIX: u32 = 4;
const BLOCK: u32 = 6;
/// Numbers that are thrown away first.
const CRANKS: usize = 6;

/// L'Ecuyer's taus88.
#[derive(Clone, Copy, Debug)]
struct Tausworthe([u32; 3]);

impl Tausworthe {
    fn new(seed: u64) -> Tausworthe {
        let seed = seed as u32;
        let next = |before: u32, least: u32| {
            let mixed = before.wrapping_mul(69_069) ^ seed;
            if mixed < least { mixed + least } else { mixed }
        };
        // In fio's source the first is `(2^31) + (2^17) + (2^7)`, where C's `^` is no power.
        let first = next(53, 1);
        let second = next(first, 7);
        let mut numbers = Tausworthe([first, second, next(second, 15)]);
        for _ in 0..CRANKS {
            numbers.next();
        }
        numbers
    }

    fn next(&mut self) -> u32 {
        let step = |s: u32, a: u32, b: u32, mask: u32, d: u32| ((s & mask) << d) ^ (((s << a) ^ s) >> b);
        let [first, second, third] = self.0;
        self.0 = [step(first, 13, 19, !1, 12), step(second, 2, 25, !7, 4), step(third, 3, 11, !15, 17)];
        self.0[0] ^ self.0[1] ^ self.0[2]
    }

    /// A number in `0..bound`, by fio's arithmetic.
    fn below(&mut self, bound: u64) -> u64 {
        (bound as f64 * (f64::from(self.next()) / (f64::from(u32::MAX) + 1.0))) as u64
    }
}

/// The generators of one process.
#[derive(Clone, Debug)]
pub(super) struct FioNumbers {
    blocks: Tausworthe,
    block_seed: u64,
    mix: Tausworthe,
    /// I/Os of the present direction up to which it is not drawn again.
    until: u64,
    /// Reads and writes so far.
    issued: [u64; 2],
    direction: Direction,
}

impl FioNumbers {
    /// The numbers of `process` with fio's `randseed` and `randrepeat`; without both, the run's seed counts.
    pub fn new(randseed: Option<u64>, randrepeat: bool, process: ProcessId, run_seed: u64) -> FioNumbers {
        let number = u64::from(process.0) + 1;
        let seed_of = |index: u32| {
            let base = randseed.unwrap_or(if randrepeat { DEFAULT_SEED } else { run_seed });
            let seed = (0..SEEDS_BEFORE + index).fold(base, |seed, _| seed.wrapping_mul(NEXT_SEED));
            seed.wrapping_mul(number).wrapping_add(index.into())
        };
        let block_seed = if randrepeat { REPEATED.wrapping_mul(number) } else { seed_of(BLOCK) };
        FioNumbers {
            blocks: Tausworthe::new(block_seed),
            block_seed,
            mix: Tausworthe::new(seed_of(MIX)),
            until: 0,
            issued: [0; 2],
            direction: Direction::Read,
        }
    }

    /// Another pass begins, with the same offsets.
    pub fn repeat(&mut self) {
        self.blocks = Tausworthe::new(self.block_seed);
    }

    /// A block of `count`.
    #[inline(never)]
    pub fn block(&mut self, count: u64) -> u64 {
        self.blocks.below(count)
    }

    /// The direction of the next I/O of a mix: drawn again once that of the last has had its share of
    /// all I/Os so far.
    #[inline(never)]
    pub fn direction(&mut self, read_percent: u32) -> Direction {
        let percent = [u64::from(read_percent), 100 - u64::from(read_percent)];
        let now = self.direction as usize;
        if self.issued[now] >= self.until {
            let is_read = self.mix.below(100) < percent[0];
            let drawn = if is_read { Direction::Read } else { Direction::Write };
            if drawn != self.direction {
                self.until = self.issued[now] * percent[1 - now] / 100;
            }
            self.direction = drawn;
        }
        self.issued[self.direction as usize] += 1;
        self.direction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(process: u32) -> FioNumbers {
        FioNumbers::new(Some(4124), true, ProcessId(process), 1)
    }

    #[test]
    fn blocks_are_those_that_fio_reads() {
        // fio 3.33, write_iolog of the second job, randrw over 20 GiB in blocks of 4 KiB.
        let mut second = numbers(1);
        let blocks: Vec<_> = (0..3).map(|_| second.block(20 << 18)).collect();
        assert_eq!(blocks, [1_335_807, 952_333, 3_149_404]);
        second.repeat();
        assert_eq!(second.block(20 << 18), 1_335_807);
    }

    #[test]
    fn reads_and_writes_are_mixed_as_fio_mixes_them() {
        // The same two jobs with rwmixread=70, randseed=4124.
        let mix = |process| -> String {
            let mut numbers = numbers(process);
            (0..60).map(|_| if numbers.direction(70) == Direction::Read { 'r' } else { 'w' }).collect()
        };
        assert_eq!(mix(0), "rrrwrrrrrrrrrrrwwwwrrwrrrwrwrrwrwrwrwrwrrwrwrrrrrrrwrrwwwrrw");
        assert_eq!(mix(1), "rrwwrrrrwrrrrwwwrwwrwwwwrwrwrwrwrwwrrrwrrwrwrwwwrrrrwrrrwrrw");
    }
}
