//! The results of a run: plain data, the same from every rig.
//!
//! Scalars are few and serialise (a guest writes them as JSON, `blklab-py` makes objects of them);
//! bulk data (histograms, series, traces) are columns of equal length, so that they pass into other
//! languages without a loop.

use serde::Serialize;

use crate::decisions::Decisions;

/// All measurements of one run of one job file, on one disk under one scheduler or on several.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunResult {
    /// Virtual time from the first process's start to the last one's end, in ns.
    pub duration_ns: u64,
    /// One entry per process, in the job file's order (`numjobs=3` gives three).
    pub jobs: Vec<JobResult>,
    /// The block layer's counters, as in `/proc/diskstats`: of all devices together.
    pub disk: DiskCounters,
    /// The counters of each device, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DiskCounters>,
    /// Width of an interval of `series`, ns.
    pub series_interval_ns: u64,
    /// `overview` has one of this many commands.
    pub overview_stride: u64,
    /// Throughput, latency and depth over time, of all devices together. Equal intervals over the
    /// whole run.
    #[serde(skip)]
    pub series: Series,
    /// Queue and latency over short intervals, which show pile-ups; empty from rigs that do not
    /// record them.
    #[serde(skip)]
    pub levels: Levels,
    /// Percentiles of latencies over long intervals; empty from rigs that do not record them.
    #[serde(skip)]
    pub percentiles: Percentiles,
    /// A sample of the first disk's commands, spread evenly over the whole run.
    #[serde(skip)]
    pub overview: DiskTrace,
    /// The first disk's commands: all of one part of the run.
    #[serde(skip)]
    pub detail: DiskTrace,
    /// Commands of the requested window that did not fit in `detail`.
    pub detail_left_out: u64,
    /// Decisions of the window that did not fit in `decisions`; `None` if the journal was off: no
    /// window was requested, or the scheduler makes no decisions.
    pub decisions_left_out: Option<u64>,
    /// The decisions of the first disk's scheduler in the window.
    #[serde(skip)]
    pub decisions: Decisions,
}

/// One fio process ("job" in fio's output).
#[derive(Clone, Debug, Default, Serialize)]
pub struct JobResult {
    /// fio's `jobname`.
    pub name: String,
    /// fio's `groupid`: rises at each `stonewall` and `new_group`.
    pub group: u32,
    /// `group_reporting` is on: merged with its group's other jobs in the output.
    pub group_reporting: bool,
    /// The options as given in the job file (section's own over `[global]`), in order.
    pub options: Vec<(String, String)>,
    /// Percentiles to print, in percent (`percentile_list`).
    pub percentiles: Vec<f64>,
    /// When it started, ns of virtual time.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// CPU time spent outside the kernel, ns.
    pub user_ns: u64,
    /// CPU time spent in the kernel on its behalf, ns.
    pub system_ns: u64,
    /// The number of sleeps.
    pub context_switches: u64,
    /// Reads, as fio's `read`.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// Trims.
    pub trim: DirectionResult,
    /// Latency of fsync and fdatasync, ns, with `sync_latency_hist`.
    pub sync_lat: LatencySummary,
    /// Histogram of `sync_lat`.
    #[serde(skip)]
    pub sync_hist: HistogramColumns,
    /// I/Os by depth when queued: 1, 2, 4, 8, 16, 32, 64 and more (fio's `iodepth_level`).
    pub depth_levels: [u64; 7],
    /// Submit calls by number of I/Os: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
    pub submit_levels: [u64; 7],
    /// The same for reaping completions.
    pub complete_levels: [u64; 7],
    /// I/Os by total latency, bounds in [`LATENCY_BOUNDS_NS`]; the last is "more".
    pub latency_levels: Vec<u64>,
}

/// Upper bounds (exclusive) of fio's `latency_ns`, `latency_us` and `latency_ms` classes.
pub const LATENCY_BOUNDS_NS: [u64; 31] = [
    2,
    4,
    10,
    20,
    50,
    100,
    250,
    500,
    750,
    1_000,
    2_000,
    4_000,
    10_000,
    20_000,
    50_000,
    100_000,
    250_000,
    500_000,
    750_000,
    1_000_000,
    2_000_000,
    4_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_000_000_000,
];

/// One direction of one job. Counts only I/O after `ramp_time`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DirectionResult {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// The time of these I/Os, ns: the divisor of bandwidth and IOPS.
    pub runtime_ns: u64,
    /// Start of I/O to queued.
    pub slat: LatencySummary,
    /// Queued to completed.
    pub clat: LatencySummary,
    /// Start of I/O to completed.
    pub lat: LatencySummary,
    /// Bandwidth samples, KiB/s (fio's `bw_*`; one sample per `bwavgtime`, 500 ms).
    pub bw: SampleSummary,
    /// IOPS samples.
    pub iops: SampleSummary,
    /// Distribution of `clat`.
    #[serde(skip)]
    pub clat_hist: HistogramColumns,
}

/// Exact moments of a latency, ns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LatencySummary {
    /// How many.
    pub count: u64,
    /// Smallest, 0 if none.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Sample standard deviation.
    pub stddev_ns: f64,
}

/// Moments of samples taken over time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SampleSummary {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation.
    pub stddev: f64,
}

/// A histogram's non-empty buckets, in ascending order. HDR, three significant digits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramColumns {
    /// Highest value of the bucket, ns.
    pub value_ns: Vec<i64>,
    /// I/Os in it.
    pub count: Vec<i64>,
}

/// Counters over equal intervals; row `i` covers `series_interval_ns` from
/// `i * series_interval_ns` on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Bytes completed to processes, reads.
    pub read_bytes: Vec<i64>,
    /// The same, writes.
    pub write_bytes: Vec<i64>,
    /// I/Os completed to processes, reads.
    pub read_ios: Vec<i64>,
    /// The same, writes.
    pub write_ios: Vec<i64>,
    /// Sum of the completion latencies of those reads, ns.
    pub read_clat_sum_ns: Vec<i64>,
    /// The same, writes.
    pub write_clat_sum_ns: Vec<i64>,
    /// Largest of those latencies, ns.
    pub read_clat_max_ns: Vec<i64>,
    /// The same, writes.
    pub write_clat_max_ns: Vec<i64>,
    /// Requests waiting in the scheduler, mean over the interval, times 1000.
    pub waiting_milli: Vec<i64>,
    /// Commands in flight, mean over the interval, times 1000.
    pub in_flight_milli: Vec<i64>,
}

/// The level of queue and latency in equal intervals over the whole run, 65,536 at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    /// The start of each interval.
    pub start_ns: Vec<i64>,
    /// I/Os completed to processes.
    pub ios: Vec<i64>,
    /// Sum of their completion latencies, ns.
    pub clat_sum_ns: Vec<i64>,
    /// Requests waiting or in flight, mean over the interval, times 1000.
    pub depth_milli: Vec<i64>,
}

/// Percentiles of the completion latencies in equal intervals over the whole run, 512 at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// The start of each interval.
    pub start_ns: Vec<i64>,
    /// Bytes completed to processes.
    pub bytes: Vec<i64>,
    /// Those of reads; empty without reads.
    pub read: PercentileColumns,
    /// Those of writes and trims; empty without them.
    pub write: PercentileColumns,
}

/// The percentiles of one direction in each interval, within 6 %; 0 without I/Os.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PercentileColumns {
    /// I/Os completed to processes.
    pub ios: Vec<i64>,
    /// The median, ns.
    pub p50_ns: Vec<i64>,
    /// The 99th percentile, ns.
    pub p99_ns: Vec<i64>,
    /// The 99.9th percentile, ns.
    pub p999_ns: Vec<i64>,
}

/// The disk's commands in order of issue. Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskTrace {
    /// Inserted into the scheduler, ns.
    pub queued_ns: Vec<i64>,
    /// Dispatched to the disk, ns.
    pub issued_ns: Vec<i64>,
    /// The disk started the command, ns: the arm of a hard disk started to move, or else the
    /// controller started it. Empty if it was not recorded; only windows record it.
    pub began_ns: Vec<i64>,
    /// Completed, ns.
    pub completed_ns: Vec<i64>,
    /// First sector.
    pub sector: Vec<i64>,
    /// Length in sectors.
    pub sectors: Vec<i64>,
    /// 0 read, 1 write, 2 flush, 3 discard.
    pub op: Vec<i64>,
    /// Index into `jobs`; -1 for the kernel's writeback.
    pub process: Vec<i64>,
}

macro_rules! columns {
    ($table:expr, $prefix:expr, $($name:ident),+) => {
        [$((concat!($prefix, ".", stringify!($name)), $table.$name.as_slice())),+]
    };
}

impl HistogramColumns {
    fn columns(&self) -> [(&'static str, &[i64]); 2] {
        [("value_ns", &self.value_ns), ("count", &self.count)]
    }
}

impl RunResult {
    /// All bulk data by name: `series.read_bytes`, `overview.sector`,
    /// `jobs.0.read.clat_hist.value_ns`, `jobs.0.sync_hist.count` and so on. Empty
    /// histograms are left out.
    pub fn columns(&self) -> Vec<(String, &[i64])> {
        let mut all: Vec<(String, &[i64])> = Vec::new();
        let series = &self.series;
        let rows = columns!(
            series,
            "series",
            read_bytes,
            write_bytes,
            read_ios,
            write_ios,
            read_clat_sum_ns,
            write_clat_sum_ns,
            read_clat_max_ns,
            write_clat_max_ns,
            waiting_milli,
            in_flight_milli
        );
        all.extend(rows.map(|(name, column)| (name.to_owned(), column)));
        let rows = columns!(self.levels, "levels", start_ns, ios, clat_sum_ns, depth_milli);
        all.extend(rows.map(|(name, column)| (name.to_owned(), column)));
        let rows = columns!(self.percentiles, "percentiles", start_ns, bytes);
        all.extend(rows.map(|(name, column)| (name.to_owned(), column)));
        for (side, prefix) in [(&self.percentiles.read, "read"), (&self.percentiles.write, "write")] {
            let rows = columns!(side, "", ios, p50_ns, p99_ns, p999_ns);
            let named = |name: &str| format!("percentiles.{prefix}_{}", &name[1..]);
            all.extend(rows.map(|(name, column)| (named(name), column)));
        }
        for (trace, prefix) in [(&self.overview, "overview"), (&self.detail, "detail")] {
            let rows = columns!(
                trace,
                "",
                queued_ns,
                issued_ns,
                began_ns,
                completed_ns,
                sector,
                sectors,
                op,
                process
            );
            all.extend(rows.map(|(name, column)| (format!("{prefix}{name}"), column)));
        }
        let rows = columns!(self.decisions, "decisions", at_ns, process, kind, a, b);
        all.extend(rows.map(|(name, column)| (name.to_owned(), column)));
        for (index, job) in self.jobs.iter().enumerate() {
            let histograms = [
                ("read.clat_hist", &job.read.clat_hist),
                ("write.clat_hist", &job.write.clat_hist),
                ("trim.clat_hist", &job.trim.clat_hist),
                ("sync_hist", &job.sync_hist),
            ];
            for (owner, histogram) in histograms.into_iter().filter(|(_, h)| !h.count.is_empty()) {
                let rows = histogram.columns();
                all.extend(rows.map(|(name, column)| (format!("jobs.{index}.{owner}.{name}"), column)));
            }
        }
        all
    }
}

/// The block layer's counters (`Documentation/admin-guide/iostats.rst`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskCounters {
    /// Read commands completed.
    pub read_ios: u64,
    /// Bios merged into waiting reads.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Sum over reads of the time from insertion to completion, ns.
    pub read_ticks_ns: u64,
    /// Write commands completed.
    pub write_ios: u64,
    /// Bios merged into waiting writes.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Sum over writes of the time from insertion to completion, ns.
    pub write_ticks_ns: u64,
    /// Flush commands completed.
    pub flush_ios: u64,
    /// Sum over flushes of the time from issue to completion, ns.
    pub flush_ticks_ns: u64,
    /// Discards completed.
    pub discard_ios: u64,
    /// Sum over discards of the time from insertion to completion, ns.
    pub discard_ticks_ns: u64,
    /// Time during which at least one request was waiting or in flight, ns.
    pub io_ticks_ns: u64,
    /// Integral over time of the requests waiting or in flight, ns.
    pub in_queue_ns: u64,
    /// Time for which two requests were counted that were merged later, ns.
    pub joined_ns: u64,
    /// Integral over time of the commands in flight, ns.
    pub in_flight_ns: u64,
    /// Sum over commands of the time from issue to completion, ns.
    pub service_ns: u64,
    /// Time for which the disk model was busy, ns.
    pub disk_busy_ns: u64,
    /// The maximum of requests waiting or in flight.
    pub depth_max: u64,
}

impl DiskCounters {
    /// The counters of several devices together: sums, and the largest of `depth_max`.
    pub fn sum(devices: &[DiskCounters]) -> DiskCounters {
        let add = |a: DiskCounters, b: &DiskCounters| DiskCounters {
            read_ios: a.read_ios + b.read_ios,
            read_merges: a.read_merges + b.read_merges,
            read_sectors: a.read_sectors + b.read_sectors,
            read_ticks_ns: a.read_ticks_ns + b.read_ticks_ns,
            write_ios: a.write_ios + b.write_ios,
            write_merges: a.write_merges + b.write_merges,
            write_sectors: a.write_sectors + b.write_sectors,
            write_ticks_ns: a.write_ticks_ns + b.write_ticks_ns,
            flush_ios: a.flush_ios + b.flush_ios,
            flush_ticks_ns: a.flush_ticks_ns + b.flush_ticks_ns,
            discard_ios: a.discard_ios + b.discard_ios,
            discard_ticks_ns: a.discard_ticks_ns + b.discard_ticks_ns,
            io_ticks_ns: a.io_ticks_ns + b.io_ticks_ns,
            in_queue_ns: a.in_queue_ns + b.in_queue_ns,
            joined_ns: a.joined_ns + b.joined_ns,
            in_flight_ns: a.in_flight_ns + b.in_flight_ns,
            service_ns: a.service_ns + b.service_ns,
            disk_busy_ns: a.disk_busy_ns + b.disk_busy_ns,
            depth_max: a.depth_max.max(b.depth_max),
        };
        devices.iter().fold(DiskCounters::default(), add)
    }
}
