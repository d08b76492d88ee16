//! The measurements of one process, counted as fio does.

use crate::result::{DirectionResult, LATENCY_BOUNDS_NS};
use crate::stats::{LatencyHistogram, Moments, Samples, latency_level};
use crate::units::Nanos;

/// fio's classes of depths and batch sizes: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
pub type BatchLevels = [u64; 7];

/// Times of one I/O.
#[derive(Clone, Copy, Debug)]
pub struct IoTimes {
    /// fio started to work on it.
    pub start: Nanos,
    /// It was submitted; for a blocking engine the same as `start`.
    pub issued: Nanos,
    /// fio saw its completion.
    pub reaped: Nanos,
}

/// Bandwidth or IOPS over spans of `bwavgtime` or `iopsavgtime`.
#[derive(Debug)]
struct Sampler {
    width: Nanos,
    begin: Nanos,
    /// The total at `begin`.
    before: u64,
    samples: Samples,
}

impl Sampler {
    fn new(width: Nanos, begin: Nanos) -> Sampler {
        Sampler { width, begin, before: 0, samples: Samples::default() }
    }

    /// A span ends with the first I/O at or after this time.
    fn due(&self) -> Nanos {
        self.begin.saturating_add(self.width)
    }

    /// `total` at `now`, with an I/O: takes a sample if that ends the span.
    fn look(&mut self, now: Nanos, total: u64, per_second: f64) {
        if now >= self.due() {
            let span = now - self.begin;
            self.samples.record((total - self.before) as f64 * per_second / span.as_secs_f64());
            (self.begin, self.before) = (now, total);
        }
    }
}

/// Latencies of one I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Latencies {
    clat: Nanos,
    lat: Nanos,
}

/// One direction of one process.
#[derive(Debug)]
struct DirectionTally {
    ios: u64,
    bytes: u64,
    slat: Moments,
    clat: Moments,
    lat: Moments,
    clat_hist: LatencyHistogram,
    /// The latencies of the latest I/Os, which were all equal and are not counted yet: I/Os from
    /// the page cache take the same time again and again, and submissions nearly always.
    latest: Latencies,
    alike: u64,
    latest_slat: Nanos,
    alike_slat: u64,
    bw: Sampler,
    iops: Sampler,
    /// When the first of the two spans ends.
    sample_at: Nanos,
}

impl DirectionTally {
    fn new(bw_width: Nanos, iops_width: Nanos, begin: Nanos) -> DirectionTally {
        let (bw, iops) = (Sampler::new(bw_width, begin), Sampler::new(iops_width, begin));
        DirectionTally {
            ios: 0,
            bytes: 0,
            slat: Moments::default(),
            clat: Moments::default(),
            lat: Moments::default(),
            clat_hist: LatencyHistogram::default(),
            latest: Latencies::default(),
            alike: 0,
            latest_slat: Nanos::ZERO,
            alike_slat: 0,
            sample_at: bw.due().min(iops.due()),
            bw,
            iops,
        }
    }

    #[inline(never)]
    fn sample(&mut self, now: Nanos) {
        self.bw.look(now, self.bytes, 1.0 / 1024.0);
        self.iops.look(now, self.ios, 1.0);
        self.sample_at = self.bw.due().min(self.iops.due());
    }

    #[inline(always)]
    fn count_latest(&mut self, levels: &mut [u64; LATENCY_BOUNDS_NS.len() + 1]) {
        let (Latencies { clat, lat }, times) = (self.latest, std::mem::take(&mut self.alike));
        if times == 0 {
            return;
        }
        self.clat.record_n(clat, times);
        self.lat.record_n(lat, times);
        self.clat_hist.record_n(clat, times);
        levels[latency_level(lat)] += times;
    }

    #[inline(always)]
    fn submitted(&mut self, slat: Nanos) {
        if slat != self.latest_slat {
            self.count_slat();
            self.latest_slat = slat;
        }
        self.alike_slat += 1;
    }

    fn count_slat(&mut self) {
        match std::mem::take(&mut self.alike_slat) {
            0 => {}
            times => self.slat.record_n(self.latest_slat, times),
        }
    }
}

/// All counts of one process.
#[derive(Debug)]
pub struct Tally {
    bw_width: Nanos,
    iops_width: Nanos,
    /// Start of counting: the process's start, or the end of its ramp time.
    pub begin: Nanos,
    directions: [DirectionTally; 3],
    sync_lat: Moments,
    sync_hist: LatencyHistogram,
    /// I/Os by depth when queued: 1, 2, 4, 8, 16, 32, 64 and more.
    pub depth_levels: [u64; 7],
    /// Submit calls by number of I/Os.
    pub submit_levels: BatchLevels,
    /// Reaping calls by number of I/Os.
    pub complete_levels: BatchLevels,
    latency_levels: [u64; LATENCY_BOUNDS_NS.len() + 1],
}

impl Tally {
    /// Without counts, with samples of these widths.
    pub fn new(bw_width: Nanos, iops_width: Nanos) -> Tally {
        Tally::beginning(bw_width, iops_width, Nanos::ZERO)
    }

    fn beginning(bw_width: Nanos, iops_width: Nanos, begin: Nanos) -> Tally {
        Tally {
            bw_width,
            iops_width,
            begin,
            directions: std::array::from_fn(|_| DirectionTally::new(bw_width, iops_width, begin)),
            sync_lat: Moments::default(),
            sync_hist: LatencyHistogram::default(),
            depth_levels: [0; 7],
            submit_levels: [0; 7],
            complete_levels: [0; 7],
            latency_levels: [0; LATENCY_BOUNDS_NS.len() + 1],
        }
    }

    /// Starts to count at `now`, and drops everything before.
    pub fn restart(&mut self, now: Nanos) {
        *self = Tally::beginning(self.bw_width, self.iops_width, now);
    }

    /// An I/O of direction `side` (0 read, 1 write, 2 trim) was reaped. `queued`: the engine
    /// separates submission and completion, so that there is a latency of submission.
    #[inline(always)]
    pub fn io(&mut self, side: usize, bytes: u64, times: IoTimes, queued: bool) {
        let tally = &mut self.directions[side];
        if queued {
            tally.submitted(times.issued.saturating_sub(times.start));
        }
        let latencies =
            Latencies { clat: times.reaped.saturating_sub(times.issued), lat: times.reaped - times.start };
        tally.ios += 1;
        tally.bytes += bytes;
        if times.reaped >= tally.sample_at {
            tally.sample(times.reaped);
        }
        if latencies != tally.latest {
            tally.count_latest(&mut self.latency_levels);
            tally.latest = latencies;
        }
        tally.alike += 1;
    }

    /// Counts the latencies that are not counted yet.
    fn settle(&mut self) {
        for direction in &mut self.directions {
            direction.count_latest(&mut self.latency_levels);
            direction.count_slat();
        }
    }

    /// An fsync or fdatasync returned.
    pub fn sync(&mut self, latency: Nanos) {
        self.sync_lat.record(latency);
        self.sync_hist.record(latency);
    }

    /// One I/O was queued with `depth` in flight, including itself.
    #[inline]
    pub fn depth(&mut self, depth: u32) {
        self.depth_levels[(depth.max(1).ilog2() as usize).min(6)] += 1;
    }

    /// The class of a call that submitted or reaped `ios`.
    #[inline]
    pub fn batch_level(ios: u32) -> usize {
        match ios {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            _ => 6,
        }
    }

    /// The results of all directions and of syncs; the process ended at `end`.
    pub fn directions(&mut self, end: Nanos) -> [DirectionResult; 3] {
        self.settle();
        self.directions.each_ref().map(|tally| DirectionResult {
            ios: tally.ios,
            bytes: tally.bytes,
            runtime_ns: if tally.ios > 0 { end.saturating_sub(self.begin).0 } else { 0 },
            slat: tally.slat.summary(),
            clat: tally.clat.summary(),
            lat: tally.lat.summary(),
            bw: tally.bw.samples.summary(),
            iops: tally.iops.samples.summary(),
            clat_hist: tally.clat_hist.columns(),
        })
    }

    /// I/Os by total latency.
    pub fn latency_levels(&mut self) -> Vec<u64> {
        self.settle();
        self.latency_levels.to_vec()
    }

    /// Latency of syncs.
    pub fn syncs(&self) -> (crate::result::LatencySummary, crate::result::HistogramColumns) {
        (self.sync_lat.summary(), self.sync_hist.columns())
    }
}
