//! The block layer's events of a disk while a job runs on it.

use blklab_core::formats::tracefs::ring::{Format, Ring, TRACEPOINTS};
use blklab_core::formats::tracefs::{Owners, Watch};
use blklab_core::recorder::TraceRecorder;
use blklab_core::result::{DiskCounters, RunResult};
use blklab_core::units::{Nanos, Sector};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::live::FioJob;
use crate::{Run, bad_input};

/// Follows the requests of one disk.
#[pyclass]
pub struct BlockEvents {
    /// None when it has ended.
    ring: Option<Ring>,
}

#[pymethods]
impl BlockEvents {
    #[new]
    #[pyo3(signature = (header_page, formats, devices, epoch_ns, job = None, first_sector = 0))]
    fn new(
        header_page: &str,
        formats: Vec<(String, String)>,
        devices: Vec<u64>,
        epoch_ns: u64,
        job: Option<&FioJob>,
        first_sector: u64,
    ) -> PyResult<BlockEvents> {
        let format = Format::new(header_page, &formats).map_err(bad_input)?;
        let owners = job.map_or_else(Owners::default, FioJob::owners).shifted(Sector(first_sector));
        let watch = Watch::new(Nanos(epoch_ns), owners, TraceRecorder::default(), false);
        Ok(BlockEvents { ring: Some(Ring::new(format, devices, watch)) })
    }

    /// The tracepoints that are followed.
    #[staticmethod]
    fn tracepoints() -> Vec<&'static str> {
        TRACEPOINTS.iter().map(|(name, _)| *name).collect()
    }

    /// A page of a CPU's ring buffer.
    fn take(&mut self, py: Python<'_>, page: &[u8]) -> PyResult<()> {
        let ring = self.ring()?;
        py.detach(|| ring.take(page));
        Ok(())
    }

    /// Of every CPU, all events up to this time have been taken.
    fn advance(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<()> {
        let ring = self.ring()?;
        py.detach(|| ring.advance(until_ns));
        Ok(())
    }

    /// What was seen, and how often events were missing in between.
    fn finish(&mut self) -> PyResult<(Run, u64)> {
        self.ring()?.advance(u64::MAX);
        let ring = self.ring.take().ok_or_else(ended)?;
        let gaps = ring.gaps();
        let seen = ring.into_watch().finish();
        let mut result = RunResult { detail_left_out: seen.left_out, ..RunResult::default() };
        (result.overview, result.overview_stride, result.detail) = seen.commands;
        // A queue that was followed with gaps would be a wrong one: none.
        if gaps == 0 {
            (result.series, result.series_interval_ns) = (seen.series, seen.interval.0);
            result.disk = DiskCounters {
                in_flight_ns: seen.depth.in_flight_ns,
                service_ns: seen.depth.service_ns,
                depth_max: seen.depth.max,
                ..DiskCounters::default()
            };
        }
        Ok((Run::new(&result), gaps))
    }
}

impl BlockEvents {
    fn ring(&mut self) -> PyResult<&mut Ring> {
        self.ring.as_mut().ok_or_else(ended)
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the events have been finished")
}
