//! Traces: read once, for findings, figures and a recording.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use blklab_core::InputError;
use blklab_core::recorded::{Io, Op, Tables};
use blklab_core::units::{SECTOR_BYTES, Sector};
use blklab_trace::doctor::Doctor;
use blklab_trace::likeness::Likeness;
use blklab_trace::notes::{Kind, Note};
use blklab_trace::over_time::{LATENCIES, LATENCY_MIN, OverTime, PLACES};
use blklab_trace::recording::{COLUMNS, Writer};
use blklab_trace::summary::{AREA_SECTORS, Figures, Spread, Summary};
use blklab_trace::{Records, Trace, Wanted, files_of, format_of, formats};
use pyo3::prelude::*;

use crate::bad_input;
use crate::record::record;

/// I/Os between two checks for Ctrl-C: some milliseconds.
pub const IOS_PER_LOOK: u64 = 1 << 16;

/// Rows of a list of processes or sizes.
const ROWS: usize = 1000;

record! {
    /// A format of traces.
    TraceFormat {
        name: &'static str,
        about: &'static str,
    }
}

record! {
    /// A column of recordings.
    RecordingColumn {
        name: &'static str,
        kind: &'static str,
        nullable: bool,
        help: &'static str,
    }
}

record! {
    /// A kind of findings.
    TraceFindingKind {
        name: &'static str,
        weight: &'static str,
        text: &'static str,
    }
}

record! {
    /// What is odd about a trace.
    TraceFinding {
        kind: &'static str,
        weight: &'static str,
        count: u64,
        first: u64,
        found: String,
        text: &'static str,
    }
}

record! {
    /// Quantiles of some values.
    TraceFigures {
        count: u64,
        min: u64,
        mean: f64,
        p50: u64,
        p90: u64,
        p99: u64,
        p999: u64,
        max: u64,
    }
}

record! {
    /// The I/Os of one operation.
    TraceOperation {
        name: &'static str,
        count: u64,
        bytes: u64,
        sync: u64,
        read_ahead: u64,
        meta: u64,
        fua: u64,
        preflush: u64,
        sizes_bytes: TraceFigures,
        common_sizes: Vec<(u64, u64)>,
        q2c_ns: TraceFigures,
    }
}

record! {
    /// The I/Os of one process.
    TraceProcess {
        pid: u32,
        name: String,
        count: u64,
        read_bytes: u64,
        written_bytes: u64,
        sequential: u64,
        mean_q2c_ns: Option<f64>,
        working_set_bytes: u64,
        thinks: u64,
        think_mean_ns: Option<f64>,
        think_median_ns: Option<f64>,
    }
}

record! {
    /// The I/Os of one cgroup; of number 0, of those that are not known.
    TraceCgroup {
        number: u64,
        path: String,
        count: u64,
        read_bytes: u64,
        written_bytes: u64,
        sequential: u64,
        mean_q2c_ns: Option<f64>,
        working_set_bytes: Option<u64>,
        thinks: u64,
        think_mean_ns: Option<f64>,
        think_median_ns: Option<f64>,
    }
}

record! {
    /// A trace over time: counts and sums of each step, for reads, writes and others.
    TraceOverTime {
        step_ns: u64,
        ios: Vec<[u64; 3]>,
        bytes: Vec<[u64; 3]>,
        under_way_ns: Vec<u64>,
        place_sectors: u64,
        places: Vec<Vec<[u32; 3]>>,
        latency_min_ns: u64,
        latencies: Vec<Vec<[u32; 3]>>,
    }
}

record! {
    /// What a job file can say of a recorded process; lists of three are of reads, writes, discards.
    LikeProcess {
        pid: u32,
        name: String,
        counts: [u64; 3],
        sizes: [Vec<(u64, u64)>; 3],
        flushes: u64,
        sequential: u64,
        span_sectors: (u64, u64),
        first_ns: u64,
        depth: u32,
        pauses: u64,
        paused_ns: u64,
    }
}

record! {
    /// What a job file can say of a trace.
    TraceLikeness {
        processes: Vec<LikeProcess>,
        left_out: u64,
    }
}

record! {
    /// A trace that was read.
    TraceReading {
        format: &'static str,
        source: String,
        compression: Option<&'static str>,
        files: usize,
        level: &'static str,
        resolution_ns: u64,
        spread: bool,
        begun_unix_ns: Option<i64>,
        machine: Option<String>,
        scheduler: Option<String>,
        capacity_sectors: Option<u64>,
        findings: Vec<TraceFinding>,
        count: u64,
        last_ns: u64,
        end_ns: u64,
        end_sector: u64,
        lost: u64,
        sequential: u64,
        devices: Vec<(String, u64)>,
        operations: Vec<TraceOperation>,
        processes: Vec<TraceProcess>,
        process_count: usize,
        cgroups: Vec<TraceCgroup>,
        cgroup_count: usize,
        areas_incomplete: bool,
        seeks_sectors: TraceFigures,
        q2q_ns: TraceFigures,
        q2i_ns: TraceFigures,
        i2d_ns: TraceFigures,
        d2c_ns: TraceFigures,
        q2c_ns: TraceFigures,
        think_ns: TraceFigures,
        working_set_bytes: u64,
        depth: TraceFigures,
    }
}

fn figures(spread: &Spread) -> TraceFigures {
    let Figures { count, min, mean, p50, p90, p99, p999, max } = spread.figures();
    TraceFigures { count, min, mean, p50, p90, p99, p999, max }
}

fn finding(note: Note) -> TraceFinding {
    let Note { kind, count, first, found } = note;
    let (weight, text) = (kind.weight().name(), kind.text());
    TraceFinding { kind: kind.name(), weight, count, first, found, text }
}

/// The formats of traces.
#[pyfunction]
pub fn trace_formats() -> Vec<TraceFormat> {
    formats::all().into_iter().map(|format| TraceFormat { name: format.name, about: format.about }).collect()
}

/// The name of a file's format; None if it is no trace.
#[pyfunction]
pub fn trace_format_of(path: PathBuf) -> PyResult<Option<&'static str>> {
    Ok(format_of(&path).map_err(bad_input)?.map(|format| format.name))
}

/// The files of a trace: blktrace has one for each CPU.
#[pyfunction]
pub fn trace_files(path: PathBuf) -> Vec<PathBuf> {
    files_of(&path)
}

/// The kinds of findings.
#[pyfunction]
pub fn trace_finding_kinds() -> Vec<TraceFindingKind> {
    let kind =
        |kind: &Kind| TraceFindingKind { name: kind.name(), weight: kind.weight().name(), text: kind.text() };
    Kind::ALL.iter().map(kind).collect()
}

/// The columns of recordings.
#[pyfunction]
pub fn recording_columns() -> Vec<RecordingColumn> {
    let column = |column: &blklab_trace::recording::Column| RecordingColumn {
        name: column.name,
        kind: column.kind.name(),
        nullable: column.nullable,
        help: column.help,
    };
    COLUMNS.iter().map(column).collect()
}

fn reading(trace: &Trace, summary: &Summary, doctor: Doctor, capacity: Option<Sector>) -> TraceReading {
    let (header, tables) = (trace.header(), trace.tables());
    let findings = doctor.findings(header, trace.notes(), trace.device().is_some());
    let operations =
        Op::ALL.into_iter().zip(&summary.operations).filter(|(_, operation)| operation.count > 0);
    let operations = operations.map(|(op, operation)| {
        let mut common: Vec<_> = operation.by_size.iter().map(|(size, count)| (*size, *count)).collect();
        common.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        common.truncate(ROWS);
        TraceOperation {
            name: op.name(),
            count: operation.count,
            bytes: operation.bytes,
            sync: operation.sync,
            read_ahead: operation.read_ahead,
            meta: operation.meta,
            fua: operation.fua,
            preflush: operation.preflush,
            sizes_bytes: figures(&operation.sizes),
            common_sizes: common,
            q2c_ns: figures(&operation.q2c),
        }
    });
    let mut processes = summary.by_count(tables);
    let process_count = processes.len();
    processes.truncate(ROWS);
    let processes = processes.into_iter().map(|(pid, name, process)| TraceProcess {
        pid,
        name,
        count: process.count,
        read_bytes: process.read_bytes,
        written_bytes: process.written_bytes,
        sequential: process.sequential,
        mean_q2c_ns: process.mean_q2c_ns(),
        working_set_bytes: process.areas * AREA_SECTORS * SECTOR_BYTES,
        thinks: process.think.count,
        think_mean_ns: process.think.mean_ns(),
        think_median_ns: process.think.median_ns(),
    });
    let mut cgroups = summary.cgroups_by_count();
    let cgroup_count = cgroups.len();
    cgroups.truncate(ROWS);
    let cgroups = cgroups.into_iter().map(|(number, cgroup)| TraceCgroup {
        number,
        path: tables.cgroups.path(number).to_owned(),
        count: cgroup.count,
        read_bytes: cgroup.read_bytes,
        written_bytes: cgroup.written_bytes,
        sequential: cgroup.sequential,
        mean_q2c_ns: cgroup.mean_q2c_ns(),
        working_set_bytes: (number != 0).then_some(cgroup.areas * AREA_SECTORS * SECTOR_BYTES),
        thinks: cgroup.think.count,
        think_mean_ns: cgroup.think.mean_ns(),
        think_median_ns: cgroup.think.median_ns(),
    });
    let mut devices: Vec<_> =
        summary.devices().map(|(id, count)| (tables.devices.name(id).to_owned(), count)).collect();
    devices.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    devices.truncate(ROWS);
    TraceReading {
        format: trace.format().name,
        source: header.source.clone(),
        compression: trace.compression(),
        files: trace.files(),
        level: header.level.name(),
        resolution_ns: header.resolution.0,
        spread: header.spread,
        begun_unix_ns: header.begun_unix_ns,
        machine: header.machine.clone(),
        scheduler: header.scheduler.clone(),
        capacity_sectors: capacity.map(|capacity| capacity.0),
        findings: findings.into_iter().map(finding).collect(),
        count: summary.count,
        last_ns: summary.last.0,
        end_ns: summary.end.0,
        end_sector: summary.end_sector,
        lost: summary.lost,
        sequential: summary.sequential,
        devices,
        operations: operations.collect(),
        processes: processes.collect(),
        process_count,
        cgroups: cgroups.collect(),
        cgroup_count,
        areas_incomplete: summary.areas_are_incomplete(),
        seeks_sectors: figures(&summary.seeks),
        q2q_ns: figures(&summary.q2q),
        q2i_ns: figures(&summary.q2i),
        i2d_ns: figures(&summary.i2d),
        d2c_ns: figures(&summary.d2c),
        q2c_ns: figures(&summary.q2c),
        think_ns: figures(&summary.think),
        working_set_bytes: summary.areas * AREA_SECTORS * SECTOR_BYTES,
        depth: figures(&summary.depth),
    }
}

/// Reads a trace in one pass, for pictures over time.
#[pyfunction]
#[pyo3(signature = (path, *, format=None, device=None, keep_steps=false))]
pub fn trace_over_time(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
    device: Option<String>,
    keep_steps: bool,
) -> PyResult<TraceOverTime> {
    let wanted = Wanted { format, device, keep_steps, ..Wanted::default() };
    let read = py.detach(|| {
        let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
        let mut over = OverTime::default();
        pass(&mut trace, |io, _| {
            over.take(io);
            Ok(())
        })?;
        Ok(over.finish())
    });
    let over = read.map_err(Stop::raised)?;
    let steps = over.steps();
    let rows = |grid: &[[u32; 3]], rows: usize| grid.chunks(rows).map(<[_]>::to_vec).collect();
    Ok(TraceOverTime {
        step_ns: over.step().0,
        ios: steps.iter().map(|step| step.ios).collect(),
        bytes: steps.iter().map(|step| step.bytes).collect(),
        under_way_ns: steps.iter().map(|step| step.under_way_ns).collect(),
        place_sectors: over.place_sectors(),
        places: rows(over.places(), PLACES),
        latency_min_ns: LATENCY_MIN.0,
        latencies: rows(over.latencies(), LATENCIES),
    })
}

/// Reads a trace in one pass: what a job file can say of its processes, the one with the most I/Os first.
#[pyfunction]
#[pyo3(signature = (path, *, format=None, device=None, keep_steps=false))]
pub fn trace_likeness(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
    device: Option<String>,
    keep_steps: bool,
) -> PyResult<TraceLikeness> {
    let wanted = Wanted { format, device, keep_steps, ..Wanted::default() };
    let read = py.detach(|| {
        let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
        let mut like = Likeness::default();
        pass(&mut trace, |io, _| {
            like.take(io);
            Ok(())
        })?;
        let left_out = like.left_out;
        Ok((like.by_count(trace.tables()), left_out))
    });
    let (processes, left_out) = read.map_err(Stop::raised)?;
    let processes = processes.into_iter().map(|(pid, name, process)| LikeProcess {
        pid,
        name,
        counts: std::array::from_fn(|kind| process.operations[kind].count),
        sizes: std::array::from_fn(|kind| {
            process.operations[kind].sizes.iter().map(|(a, b)| (*a, *b)).collect()
        }),
        flushes: process.flushes,
        sequential: process.sequential,
        span_sectors: process.span.unwrap_or_default(),
        first_ns: process.first.0,
        depth: process.depth,
        pauses: process.pauses,
        paused_ns: process.paused.0,
    });
    Ok(TraceLikeness { processes: processes.collect(), left_out })
}

/// Every I/O of a trace, with a look for Ctrl-C between.
fn pass(trace: &mut Trace, mut take: impl FnMut(&Io, &Tables) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut count = 0_u64;
    while let Some(io) = trace.next_io().map_err(Stop::Input)? {
        take(&io, trace.tables())?;
        count += 1;
        if count.is_multiple_of(IOS_PER_LOOK) {
            Python::attach(|py| py.check_signals()).map_err(Stop::Signal)?;
        }
    }
    Ok(())
}

/// What ends a reading.
pub enum Stop {
    Input(InputError),
    Output(std::io::Error),
    Signal(PyErr),
}

impl Stop {
    /// As Python's exception.
    pub fn raised(self) -> PyErr {
        match self {
            Stop::Input(error) => bad_input(error),
            Stop::Output(error) => error.into(),
            Stop::Signal(error) => error,
        }
    }
}

/// Reads a trace in one pass, and writes it to `out` as a recording.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what is read, how, and where to")]
#[pyo3(signature = (path, *, format=None, device=None, keep_steps=false, capacity_sectors=None, plugs=false, cgroups=Vec::new(),
    out=None))]
pub fn read_trace(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
    device: Option<String>,
    keep_steps: bool,
    capacity_sectors: Option<u64>,
    plugs: bool,
    cgroups: Vec<(u64, String)>,
    out: Option<PathBuf>,
) -> PyResult<TraceReading> {
    let wanted = Wanted { format, device, keep_steps, plugs, cgroups };
    let read = py.detach(|| {
        let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
        let mut header = trace.header().clone();
        let capacity = capacity_sectors.map(Sector).or(header.capacity);
        header.capacity = capacity;
        let mut writer = match &out {
            Some(out) => {
                let file = BufWriter::new(File::create_new(out).map_err(Stop::Output)?);
                Some(Writer::new(file, &header).map_err(Stop::Output)?)
            }
            None => None,
        };
        let (mut doctor, mut summary) = (Doctor::new(capacity), Summary::default());
        pass(&mut trace, |io, tables| {
            doctor.take(io, tables);
            summary.take(io);
            match &mut writer {
                Some(writer) => writer.push(io, tables).map_err(Stop::Output),
                None => Ok(()),
            }
        })?;
        if let Some(writer) = writer {
            let (mut file, _) = writer.finish(trace.tables()).map_err(Stop::Output)?;
            file.flush().map_err(Stop::Output)?;
        }
        Ok(reading(&trace, &summary.finish(), doctor, capacity))
    });
    read.map_err(Stop::raised)
}
