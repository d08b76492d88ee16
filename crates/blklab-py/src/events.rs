//! The block layer's events of a disk during a job.

use blklab_core::InputError;
use blklab_core::formats::tracefs::ring::{Format, Ring, TRACEPOINTS};
use blklab_core::formats::tracefs::{Owners, Watch};
use blklab_core::recorder::TraceRecorder;
use blklab_core::result::{DiskCounters, RunResult};
use blklab_core::units::{Nanos, Sector};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::bad_input;
use crate::live::FioJob;
use crate::run::Run;

/// Tracks the requests of one disk.
#[pyclass]
pub struct BlockEvents {
    /// None after the end.
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
        let format = Format::new(header_page, &formats).map_err(|why| bad_input(InputError::new(why)))?;
        let owners = job.map_or_else(Owners::default, FioJob::owners).shifted(Sector(first_sector));
        let watch = Watch::new(Nanos(epoch_ns), owners, TraceRecorder::default(), false);
        Ok(BlockEvents { ring: Some(Ring::new(format, devices, watch)) })
    }

    /// The tracepoints that are read.
    #[staticmethod]
    fn tracepoints() -> Vec<&'static str> {
        TRACEPOINTS.iter().map(|(name, _)| *name).collect()
    }

    /// Takes a page of a CPU's ring buffer.
    fn take(&mut self, py: Python<'_>, page: &[u8]) -> PyResult<()> {
        let ring = self.ring()?;
        py.detach(|| ring.take(page));
        Ok(())
    }

    /// All events of every CPU up to this time have been taken.
    fn advance(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<()> {
        let ring = self.ring()?;
        py.detach(|| ring.advance(until_ns));
        Ok(())
    }

    /// The results, and how often events were missing.
    fn finish(&mut self) -> PyResult<(Run, u64)> {
        self.ring()?.advance(u64::MAX);
        let ring = self.ring.take().ok_or_else(ended)?;
        let gaps = ring.gaps();
        let seen = ring.into_watch().finish();
        let mut result = RunResult { detail_left_out: seen.left_out, ..RunResult::default() };
        (result.overview, result.overview_stride, result.detail) = seen.commands;
        // With gaps in the events the queue would be wrong: none.
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
