//! The order in which a process touches its files: one I/O after another.
//!
//! Follows fio's `get_io_u()` and `keep_running()`. A *pass* ends after `size` bytes (or when no
//! block is left) and [`Pattern::next`] returns `None`; [`Pattern::begin_pass`] returns whether
//! there is another (`loops`, `io_size`, `time_based`). Within a pass a `time_based` job starts a
//! file again each time it reaches its end.
//!
//! The code for each I/O is always inlined: passing an `IoUnit` through memory costs half as much
//! again as creating it. Rare cases are functions of their own.
//!
//! Unlike fio's, random numbers are xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021)
//! and reads and writes are mixed by independent draws; with `random_generator=tausworthe` both are
//! fio's own (`fio_numbers.rs`).

use std::sync::Arc;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::distribution::Skewed;
use super::fio_numbers::FioNumbers;
use super::offsets::{NextOffset, Offsets};
use super::plan::ProcessSpec;
use super::random::{self, Stream};
use super::spec::{BlockSizes, Direction, FileService, JobSpec, Rw, Sequencer};
use crate::request::ProcessId;

/// One I/O of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoUnit {
    /// Read, write or trim.
    pub direction: Direction,
    /// The file starts again with this I/O: with `invalidate` and without `direct`, its pages must
    /// be dropped from the page cache first.
    pub wrapped: bool,
    /// Index into [`super::plan::Plan::files`].
    pub file: u32,
    /// Length in bytes, not 0.
    pub len: u32,
    /// First byte in the file.
    pub offset: u64,
}

/// The distribution of a size.
#[derive(Clone, Debug)]
enum Sizes {
    Fixed(u32),
    /// `step` times 1 to `steps`.
    Stepped {
        min: u32,
        steps: u64,
    },
    Unaligned {
        min: u32,
        max: u32,
    },
    /// Bytes, and the sum of the weights up to and including them.
    Weighted(Vec<(u32, u64)>),
}

/// Generates a process's I/O.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The direction, unless reads and writes are mixed.
    only: Option<Direction>,
    random: bool,
    trims_first: bool,
    time_based: bool,
    /// `bs_is_seq_rand`.
    by_randomness: bool,
    /// Bytes skipped after each sequential I/O.
    skip: i64,
    /// All I/Os are at new random offsets.
    all_random: bool,
    job: Arc<JobSpec>,
    id: ProcessId,
    seed: u64,
    rng_offset: Xoshiro256PlusPlus,
    rng_shape: Xoshiro256PlusPlus,
    /// In place of both for places and directions.
    fio_numbers: Option<Box<FioNumbers>>,
    files: Vec<Offsets>,
    file_chooser: Option<Skewed>,
    sizes: [Sizes; 3],
    file_now: usize,
    file_left: u32,
    files_done: usize,
    /// I/Os until the next random offset.
    offset_left: u32,
    limits: Limits,
    /// Bytes that the pass may still issue; it began with `budget`.
    bytes_left: u64,
    budget: u64,
    ios_left: u64,
    /// Bytes of the completed passes.
    bytes_before: u64,
    loops_left: u32,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes in a pass.
    pass: u64,
    /// Bytes in all passes.
    total: u64,
    /// After this many bytes passes are no longer repeated to reach `io_size` or `size`.
    enough: u64,
    /// The largest I/O.
    largest: u64,
}

impl Limits {
    /// The bytes that a pass may issue after `before` bytes.
    fn budget(&self, before: u64, time_based: bool) -> u64 {
        if time_based { u64::MAX } else { self.pass.min(self.total.saturating_sub(before)) }
    }
}

impl Pattern {
    /// The pattern of `process` in a run with `seed`; the first pass has begun.
    pub fn new(process: &ProcessSpec, seed: u64) -> Pattern {
        let job = Arc::clone(&process.job);
        let access = &job.access;
        let seed = access.randseed.unwrap_or(seed);
        let rng_offset = stream(seed, process.id, Stream::Offset);
        let mut rng_shape = stream(seed, process.id, Stream::Shape);
        let files: Vec<Offsets> =
            process.regions.iter().map(|region| Offsets::new(access, *region, &mut rng_shape)).collect();
        let n = files.len() as u64;
        let file_chooser = match job.files.service {
            FileService::Zipf(theta) => Some(Skewed::zipf(n, theta, Some(0.0), &mut rng_shape).unhashed()),
            FileService::Pareto(h) => Some(Skewed::pareto(n, h, Some(0.0), &mut rng_shape).unhashed()),
            FileService::Normal(deviation) => Some(Skewed::normal(n, deviation, 0.5).unhashed()),
            FileService::RoundRobin | FileService::Random | FileService::Sequential => None,
        };
        let loops = u64::from(job.timing.loops);
        let enough = process.io_bytes.unwrap_or(process.pass_bytes);
        // Without a map a random writer does not stop after one pass over the file.
        let pass = if access.rw.is_random() && access.rw.writes() && !access.random_map {
            process.pass_bytes.max(process.io_bytes.unwrap_or(0))
        } else {
            process.pass_bytes
        };
        let largest = Direction::ALL.map(|d| access.block_sizes[d].max()).into_iter().max();
        let limits = Limits {
            pass,
            total: enough.saturating_mul(loops),
            enough,
            largest: largest.map_or(0, u64::from),
        };
        let time_based = job.timing.time_based;
        let budget = limits.budget(0, time_based);
        Pattern {
            only: match access.rw {
                Rw::Read | Rw::RandRead => Some(Direction::Read),
                Rw::Write | Rw::RandWrite => Some(Direction::Write),
                Rw::Trim | Rw::RandTrim | Rw::TrimWrite | Rw::RandTrimWrite => Some(Direction::Trim),
                Rw::ReadWrite | Rw::RandReadWrite => None,
            },
            random: access.rw.is_random(),
            trims_first: access.rw.trims_before_writing(),
            by_randomness: access.sizes_by_randomness,
            skip: access.sequential_skip_bytes,
            time_based,
            all_random: access.rw.is_random()
                && access.ios_per_offset == 1
                && Direction::ALL.iter().all(|d| access.percentage_random[*d] == 100),
            id: process.id,
            seed,
            rng_offset,
            rng_shape,
            fio_numbers: access
                .fio_numbers
                .then(|| Box::new(FioNumbers::new(access.randseed, access.randrepeat, process.id, seed))),
            files,
            file_chooser,
            sizes: Direction::ALL.map(|d| Sizes::new(&access.block_sizes[d])),
            file_now: 0,
            file_left: 0,
            files_done: 0,
            offset_left: 1,
            limits,
            bytes_left: budget,
            budget,
            // As in fio: for all loops together, and without effect in a time-based job.
            ios_left: match access.number_ios {
                Some(ios) if !time_based => ios.saturating_mul(u64::from(job.timing.loops)),
                _ => u64::MAX,
            },
            bytes_before: 0,
            loops_left: job.timing.loops - 1,
            job,
        }
    }

    /// The direction of the next I/O by the mix. In `trimwrite` the file decides, so
    /// [`Pattern::next_in`] may return another one.
    #[inline(always)]
    pub fn direction(&mut self) -> Direction {
        match self.only {
            Some(direction) => direction,
            None if self.fio_numbers.is_some() => self.fio_direction(),
            None if random::chance(&mut self.rng_shape, self.job.access.read_percent) => Direction::Read,
            None => Direction::Write,
        }
    }

    #[cold]
    fn fio_direction(&mut self) -> Direction {
        let percent = self.job.access.read_percent;
        self.fio_numbers.as_mut().map_or(Direction::Read, |numbers| numbers.direction(percent))
    }

    /// The next I/O; `None` when the pass is done.
    #[allow(clippy::should_implement_trait)] // A pass's end is not the pattern's.
    #[inline(always)]
    pub fn next(&mut self) -> Option<IoUnit> {
        let direction = self.direction();
        self.next_in(direction)
    }

    /// The next I/O in a direction that the caller has chosen (a rate limit holds the other
    /// direction back).
    #[inline(always)]
    pub fn next_in(&mut self, direction: Direction) -> Option<IoUnit> {
        if self.bytes_left == 0 || self.ios_left == 0 {
            return None;
        }
        loop {
            let file = self.choose_file()?;
            if let Some(unit) = self.in_file(file, direction) {
                // A trim that a write follows counts once.
                if !(self.trims_first && unit.direction == Direction::Trim) {
                    self.bytes_left = self.bytes_left.saturating_sub(u64::from(unit.len));
                    self.ios_left -= 1;
                }
                return Some(unit);
            }
            self.files[file].done = true;
            self.files_done += 1;
            self.file_left = 0;
        }
    }

    /// Starts another pass, if the job has one: the last pass was not empty and `loops` or
    /// `io_size` require more, or the job is `time_based`. With `randrepeat` its random numbers are
    /// those of the first pass.
    pub fn begin_pass(&mut self) -> bool {
        let issued = self.budget - self.bytes_left;
        if issued == 0 || self.ios_left == 0 {
            return false;
        }
        self.bytes_before = self.bytes_before.saturating_add(issued);
        if self.loops_left > 0 {
            self.loops_left -= 1;
        } else if !self.time_based {
            let missing = self.limits.enough.saturating_sub(self.bytes_before);
            let through = self.files_done == self.files.len() && self.job.files.io_size.is_none();
            if missing == 0 || missing < self.limits.largest || through {
                return false;
            }
        }
        if self.job.access.randrepeat && self.job.access.randseed.is_none() {
            self.rng_offset = stream(self.seed, self.id, Stream::Offset);
        }
        if let Some(numbers) = self.fio_numbers.as_mut().filter(|_| self.job.access.randrepeat) {
            numbers.repeat();
        }
        for file in &mut self.files {
            file.reset();
        }
        self.budget = self.limits.budget(self.bytes_before, self.time_based);
        self.bytes_left = self.budget;
        self.files_done = 0;
        self.offset_left = 1;
        self.file_left = 0;
        true
    }

    /// The file of the next I/O; `None` when all are done.
    #[inline(always)]
    fn choose_file(&mut self) -> Option<usize> {
        match self.files.as_slice() {
            [file] => (!file.done).then_some(0),
            _ => self.choose_among_files(),
        }
    }

    #[inline(never)]
    fn choose_among_files(&mut self) -> Option<usize> {
        let n = self.files.len();
        if self.files_done == n {
            return None;
        }
        let begun = self.bytes_left < self.budget;
        let sequential = begun && self.job.files.service == FileService::Sequential;
        if !self.files[self.file_now].done && (sequential || self.file_left > 0) {
            self.file_left = self.file_left.saturating_sub(1);
            return Some(self.file_now);
        }
        let wanted = match (&self.file_chooser, self.job.files.service) {
            (Some(chooser), _) => chooser.next(&mut self.rng_shape) as usize,
            (None, FileService::Random) => random::below(&mut self.rng_shape, n as u64) as usize,
            (None, _) if !begun && self.files_done == 0 => 0,
            (None, _) => (self.file_now + 1) % n,
        };
        self.file_now = (wanted..n).chain(0..wanted).find(|&file| !self.files[file].done)?;
        self.file_left = self.job.files.ios_per_file - 1;
        Some(self.file_now)
    }

    /// The next I/O in that file; `None` when there is none.
    #[inline(always)]
    fn in_file(&mut self, at: usize, direction: Direction) -> Option<IoUnit> {
        if self.trims_first
            && let Some((offset, len)) = self.files[at].trimmed.take()
        {
            return Some(self.unit(at, Direction::Write, false, offset, len));
        }
        let place = self.place(at, direction)?;
        let class = match (self.by_randomness, place.random) {
            (false, _) => direction,
            (true, false) => Direction::Read,
            (true, true) => Direction::Write,
        };
        let room = self.files[at].room(place.offset);
        let len = match &self.sizes[class as usize] {
            Sizes::Fixed(bytes) if u64::from(*bytes) <= room => *bytes,
            sizes => sizes.draw(&mut self.rng_shape, room)?,
        };
        let file = &mut self.files[at];
        let len = file.take(direction, place, len);
        if self.trims_first {
            file.trimmed = Some((place.offset, len));
        }
        Some(self.unit(at, direction, place.wrapped, place.offset, len))
    }

    #[inline(always)]
    fn unit(&self, at: usize, direction: Direction, wrapped: bool, offset: u64, len: u32) -> IoUnit {
        let region = &self.files[at].region;
        IoUnit { direction, wrapped, file: region.file, len, offset: region.start + offset }
    }

    #[inline(always)]
    fn place(&mut self, at: usize, direction: Direction) -> Option<NextOffset> {
        if self.all_random { self.random_place(at, direction) } else { self.some_place(at, direction) }
    }

    #[inline(always)]
    fn random_place(&mut self, at: usize, direction: Direction) -> Option<NextOffset> {
        let again = self.time_based || self.file_chooser.is_some();
        self.files[at].random(direction, &mut self.rng_offset, self.fio_numbers.as_deref_mut(), again)
    }

    /// The same where some I/Os are not at random places.
    #[inline]
    fn some_place(&mut self, at: usize, direction: Direction) -> Option<NextOffset> {
        // fio starts a file again if it is the only one or if files are chosen by popularity;
        // otherwise each file is done once per pass.
        let again = self.time_based && self.files.len() == 1 || self.file_chooser.is_some();
        if !self.random {
            return self.files[at].sequential(self.skip, direction, again);
        }
        match self.place_of_a_follower(at, direction, again) {
            Some(place) => Some(place),
            None => self.random_place(at, direction),
        }
    }

    /// The place of an I/O of a random job that is not random itself (`rw=randread:N`,
    /// `percentage_random`); `None` if it is random, or if there is no I/O to follow.
    #[inline(never)]
    fn place_of_a_follower(&mut self, at: usize, direction: Direction, again: bool) -> Option<NextOffset> {
        let access = &self.job.access;
        self.offset_left -= 1;
        if self.offset_left > 0 && access.sequencer == Sequencer::Identical {
            return Some(self.files[at].identical(direction));
        }
        let percent = access.percentage_random[direction];
        let follow = self.offset_left > 0 || !random::chance(&mut self.rng_shape, percent);
        if self.offset_left == 0 {
            self.offset_left = access.ios_per_offset;
        }
        if follow { self.files[at].sequential(self.skip, direction, again) } else { None }
    }
}

impl Sizes {
    fn new(sizes: &BlockSizes) -> Sizes {
        match sizes {
            BlockSizes::Fixed(bytes) => Sizes::Fixed(*bytes),
            BlockSizes::Range { min, max, unaligned: true } => Sizes::Unaligned { min: *min, max: *max },
            BlockSizes::Range { min, max, unaligned: false } => {
                Sizes::Stepped { min: *min, steps: u64::from(max / min) }
            }
            BlockSizes::Split(split) => {
                let mut sum = 0;
                let upto = split.iter().map(|(bytes, weight)| {
                    sum += u64::from(*weight);
                    (*bytes, sum)
                });
                Sizes::Weighted(upto.collect())
            }
        }
    }

    /// A size that fits into `room` bytes; `None` if none does.
    #[inline(never)]
    fn draw(&self, rng: &mut Xoshiro256PlusPlus, room: u64) -> Option<u32> {
        match self {
            Sizes::Fixed(bytes) => (u64::from(*bytes) <= room).then_some(*bytes),
            Sizes::Stepped { min, steps } => {
                let fitting = (*steps).min(room / u64::from(*min));
                (fitting > 0).then(|| min * (1 + random::below(rng, fitting) as u32))
            }
            Sizes::Unaligned { min, max } => {
                let most = u64::from(*max).min(room);
                (u64::from(*min) <= most).then(|| random::between(rng, u64::from(*min), most) as u32)
            }
            Sizes::Weighted(upto) => {
                let total = upto.last()?.1;
                let drawn = random::below(rng, total);
                let (bytes, _) = *upto.iter().find(|(_, sum)| drawn < *sum)?;
                if u64::from(bytes) <= room {
                    return Some(bytes);
                }
                // Near the end of the file: the largest size that still fits.
                upto.iter().map(|(bytes, _)| *bytes).filter(|b| u64::from(*b) <= room).max()
            }
        }
    }
}

fn stream(seed: u64, process: ProcessId, stream: Stream) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(random::stream_seed(seed, process, stream))
}
