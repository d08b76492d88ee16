//! A recording of this machine in progress.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::path::PathBuf;

use blklab_core::InputError;
use blklab_core::units::{Nanos, Sector};
use blklab_trace::live::{Format, Recorder, TRACEPOINTS, header};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::bad_input;

/// The bytes that are read at once; the kernel hands over whole pages.
const READ_BYTES: usize = 1 << 16;

/// Records the I/O of some disks.
#[pyclass(module = "blklab._core")]
pub struct MachineRecorder {
    /// None after the end.
    recorder: Option<Recorder<BufWriter<File>>>,
}

#[pymethods]
impl MachineRecorder {
    /// Writes the header to `out`, a new file. `disks` are names with the kernel's numbers of each disk and
    /// its partitions.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "what a recording says of itself")]
    fn new(
        header_page: &str,
        formats: Vec<(String, String)>,
        disks: Vec<(String, Vec<u64>)>,
        out: PathBuf,
        machine: &str,
        capacity_sectors: Option<u64>,
        scheduler: Option<&str>,
        epoch_ns: u64,
        begun_unix_ns: i64,
    ) -> PyResult<MachineRecorder> {
        let format = Format::new(header_page, &formats).map_err(|why| bad_input(InputError::new(why)))?;
        let header = header(machine, capacity_sectors.map(Sector), scheduler, begun_unix_ns);
        let out = BufWriter::new(File::create_new(&out)?);
        let recorder = Recorder::new(out, format, &disks, &header, Nanos(epoch_ns))?;
        Ok(MachineRecorder { recorder: Some(recorder) })
    }

    /// The tracepoints that are read, and whether a recording needs them.
    #[staticmethod]
    fn tracepoints() -> Vec<(&'static str, bool)> {
        TRACEPOINTS.iter().map(|(name, _, is_needed)| (*name, *is_needed)).collect()
    }

    /// Takes all that is in the CPUs' buffers now: open files without waiting, by the number of the CPU.
    fn drain(&mut self, py: Python<'_>, pipes: Vec<(u16, i32)>) -> PyResult<()> {
        let recorder = self.recorder()?;
        py.detach(|| {
            let mut page = vec![0; READ_BYTES];
            for (cpu, handle) in pipes {
                // SAFETY: the caller keeps the file open during this call, and it is not closed here.
                let mut pipe = ManuallyDrop::new(unsafe { File::from_raw_fd(handle) });
                loop {
                    match pipe.read(&mut page) {
                        Ok(0) => break,
                        Ok(length) => recorder.take(cpu, &page[..length]),
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(())
        })
    }

    /// The threads that have queued I/O since this was called last.
    fn queueing(&mut self) -> PyResult<Vec<u32>> {
        Ok(self.recorder()?.queueing())
    }

    /// The cgroup of a thread, with its path; 0 if it is not known.
    fn set_cgroup(&mut self, thread: u32, number: u64, path: &str) -> PyResult<()> {
        self.recorder()?.set_cgroup(thread, number, path);
        Ok(())
    }

    /// Every CPU has been read up to this time: writes what is complete; with `flush` the file has it.
    fn advance(&mut self, py: Python<'_>, until_ns: u64, flush: bool) -> PyResult<()> {
        let recorder = self.recorder()?;
        py.detach(|| {
            recorder.advance(Nanos(until_ns))?;
            if flush {
                recorder.flush()?;
            }
            Ok(())
        })
    }

    /// Closes the file, which has what was written.
    fn close(&mut self) {
        self.recorder = None;
    }

    /// The number of lost events so far.
    fn lost(&mut self) -> PyResult<u64> {
        Ok(self.recorder()?.lost())
    }

    /// Writes the rest; the number of I/Os.
    fn finish(&mut self, py: Python<'_>) -> PyResult<u64> {
        let recorder = self.recorder.take().ok_or_else(ended)?;
        Ok(py.detach(|| recorder.finish())?)
    }
}

impl MachineRecorder {
    fn recorder(&mut self) -> PyResult<&mut Recorder<BufWriter<File>>> {
        self.recorder.as_mut().ok_or_else(ended)
    }
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the recording has been finished")
}
