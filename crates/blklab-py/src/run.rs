//! A finished run: scalars as objects, bulk data as columns.

use std::collections::BTreeMap;

use blklab_core::result::{self, RunResult};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::record::record;

/// One of the core's results as an object.
trait Of<T> {
    fn of(from: &T) -> Self;
}

impl<T: Clone> Of<T> for T {
    fn of(from: &T) -> T {
        from.clone()
    }
}

/// A class with these fields of one of the core's structs.
macro_rules! scalars {
    ($(#[$about:meta])* $name:ident of $core:ident { $($field:ident: $type:ty,)* }) => {
        record! { $(#[$about])* $name { $($field: $type,)* } }

        impl Of<result::$core> for $name {
            fn of(from: &result::$core) -> $name {
                $name { $($field: Of::of(&from.$field),)* }
            }
        }
    };
}

scalars! {
    /// Exact moments of a latency, ns.
    LatencySummary of LatencySummary {
        count: u64,
        min_ns: u64,
        max_ns: u64,
        mean_ns: f64,
        stddev_ns: f64,
    }
}

scalars! {
    /// Moments of samples taken over time.
    SampleSummary of SampleSummary {
        count: u64,
        min: f64,
        max: f64,
        mean: f64,
        stddev: f64,
    }
}

scalars! {
    /// The block layer's counters, as in `/proc/diskstats`.
    DiskCounters of DiskCounters {
        read_ios: u64,
        read_merges: u64,
        read_sectors: u64,
        read_ticks_ns: u64,
        write_ios: u64,
        write_merges: u64,
        write_sectors: u64,
        write_ticks_ns: u64,
        flush_ios: u64,
        flush_ticks_ns: u64,
        discard_ios: u64,
        discard_ticks_ns: u64,
        io_ticks_ns: u64,
        in_queue_ns: u64,
        joined_ns: u64,
        in_flight_ns: u64,
        service_ns: u64,
        disk_busy_ns: u64,
        depth_max: u64,
    }
}

scalars! {
    /// One direction of one job.
    DirectionSummary of DirectionResult {
        ios: u64,
        bytes: u64,
        runtime_ns: u64,
        slat: LatencySummary,
        clat: LatencySummary,
        lat: LatencySummary,
        bw: SampleSummary,
        iops: SampleSummary,
    }
}

scalars! {
    /// One fio process.
    JobSummary of JobResult {
        name: String,
        group: u32,
        group_reporting: bool,
        options: Vec<(String, String)>,
        percentiles: Vec<f64>,
        start_ns: u64,
        end_ns: u64,
        user_ns: u64,
        system_ns: u64,
        context_switches: u64,
        read: DirectionSummary,
        write: DirectionSummary,
        trim: DirectionSummary,
        sync_lat: LatencySummary,
        depth_levels: [u64; 7],
        submit_levels: [u64; 7],
        complete_levels: [u64; 7],
        latency_levels: Vec<u64>,
    }
}

record! {
    /// The scalars of a run.
    RunSummary {
        duration_ns: u64,
        jobs: Vec<JobSummary>,
        disk: DiskCounters,
        series_interval_ns: u64,
        overview_stride: u64,
        detail_left_out: u64,
        decisions_left_out: Option<u64>,
    }
}

impl RunSummary {
    fn new(result: &RunResult) -> RunSummary {
        RunSummary {
            duration_ns: result.duration_ns,
            jobs: result.jobs.iter().map(Of::of).collect(),
            disk: Of::of(&result.disk),
            series_interval_ns: result.series_interval_ns,
            overview_stride: result.overview_stride,
            detail_left_out: result.detail_left_out,
            decisions_left_out: result.decisions_left_out,
        }
    }
}

/// A finished run.
#[pyclass(frozen)]
pub struct Run {
    #[pyo3(get)]
    summary: RunSummary,
    columns: BTreeMap<String, Vec<i64>>,
}

impl Run {
    pub fn new(result: &RunResult) -> Run {
        let columns = result.columns().into_iter().map(|(name, column)| (name, column.to_vec()));
        Run { summary: RunSummary::new(result), columns: columns.collect() }
    }
}

#[pymethods]
impl Run {
    /// Names of all columns.
    fn columns(&self) -> Vec<&str> {
        self.columns.keys().map(String::as_str).collect()
    }

    /// One column, little-endian 64-bit integers.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let column = self.columns.get(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }
}
