//! What was served in a part of a trace, and its I/Os one by one.

use std::path::PathBuf;

use blklab_core::recorded::{Io, Tables};
use blklab_core::units::{Nanos, SECTOR_BYTES};
use blklab_trace::served::{Counts, Got, Instead, Owner, Served};
use blklab_trace::{Records, Trace, Wanted};
use pyo3::prelude::*;

use crate::record::record;
use crate::traces::{IOS_PER_LOOK, Stop};

record! {
    /// A process or a cgroup.
    ServedOwner {
        number: u64,
        name: String,
    }
}

record! {
    /// What came and was served of one process or cgroup in one step of time. Lists of two are of reads and
    /// others.
    ServedCounts {
        step: u32,
        row: u32,
        came: u64,
        ios: [u64; 2],
        bytes: [u64; 2],
        waited: u64,
        wait_ns: u64,
        wait_max_ns: u64,
        completed: u64,
        disk_ns: u64,
    }
}

record! {
    /// An I/O of a trace.
    ServedIo {
        number: u64,
        process: u32,
        op: &'static str,
        sector: u64,
        bytes: u64,
        queued_ns: u64,
        inserted_ns: Option<u64>,
        issued_ns: Option<u64>,
        completed_ns: Option<u64>,
    }
}

record! {
    /// I/Os of one process; lists of two are of reads and others.
    ServedGot {
        process: u32,
        ios: [u64; 2],
        bytes: [u64; 2],
    }
}

record! {
    /// A slow I/O, and what the disk did meanwhile.
    ServedSlow {
        io: ServedIo,
        cgroup: u32,
        step: u32,
        issued: Vec<ServedGot>,
        completed: Vec<ServedGot>,
        listed: Vec<ServedIo>,
    }
}

record! {
    /// What was served in a part of a trace.
    TraceServed {
        from_ns: u64,
        end_ns: u64,
        step_ns: u64,
        processes: Vec<ServedOwner>,
        cgroups: Vec<ServedOwner>,
        of_processes: Vec<ServedCounts>,
        of_cgroups: Vec<ServedCounts>,
        slow: Vec<ServedSlow>,
    }
}

record! {
    /// I/Os of a trace one by one, as columns.
    TraceIos {
        processes: Vec<(u32, String)>,
        devices: Vec<String>,
        count: u64,
        number: Vec<u64>,
        process: Vec<u32>,
        device: Vec<u32>,
        op: Vec<&'static str>,
        sector: Vec<u64>,
        sectors: Vec<u32>,
        queued_ns: Vec<u64>,
        inserted_ns: Vec<Option<u64>>,
        issued_ns: Vec<Option<u64>>,
        completed_ns: Vec<u64>,
    }
}

fn owners(rows: &[Owner]) -> Vec<ServedOwner> {
    rows.iter().map(|row| ServedOwner { number: row.number, name: row.name.clone() }).collect()
}

fn counted((step, row, counts): (u32, u32, Counts)) -> ServedCounts {
    let Counts { came, ios, bytes, waited, wait_ns, wait_max_ns, completed, disk_ns } = counts;
    ServedCounts { step, row, came, ios, bytes, waited, wait_ns, wait_max_ns, completed, disk_ns }
}

fn one(process: u32, io: &Io) -> ServedIo {
    let ns = |at: Option<Nanos>| at.map(|at| at.0);
    ServedIo {
        number: io.number,
        process,
        op: io.op.name(),
        sector: io.sector.0,
        bytes: u64::from(io.sectors) * SECTOR_BYTES,
        queued_ns: io.queued.0,
        inserted_ns: ns(io.inserted),
        issued_ns: ns(io.issued),
        completed_ns: ns(io.completed),
    }
}

fn meanwhile(found: &Instead) -> ServedSlow {
    let slow = &found.slow;
    let got = |rows: &[(u32, Got)]| {
        rows.iter()
            .map(|(process, got)| ServedGot { process: *process, ios: got.ios, bytes: got.bytes })
            .collect()
    };
    ServedSlow {
        io: one(slow.process, &slow.io),
        cgroup: slow.cgroup,
        step: slow.step,
        issued: got(&found.issued),
        completed: got(&found.completed),
        listed: found.listed.iter().map(|(process, io)| one(*process, io)).collect(),
    }
}

/// I/Os until `take` is false, with a look for Ctrl-C between.
fn pass(trace: &mut Trace, mut take: impl FnMut(&Io, &Tables) -> bool) -> Result<(), Stop> {
    let mut count = 0_u64;
    while let Some(io) = trace.next_io().map_err(Stop::Input)? {
        if !take(&io, trace.tables()) {
            break;
        }
        count += 1;
        if count.is_multiple_of(IOS_PER_LOOK) {
            Python::attach(|py| py.check_signals()).map_err(Stop::Signal)?;
        }
    }
    Ok(())
}

/// Reads a trace twice: what came and was served from `from_ns` to before `until_ns`, in at most `steps` steps,
/// and the `slowest` slowest
/// I/Os of each step, of each process one if `distinct`, with what the disk did meanwhile; with `listed` one by one, too.
#[pyfunction]
#[pyo3(signature = (path, *, from_ns, until_ns, steps=1, slowest=0, distinct=false, listed=false, processes=None, cgroups=None,
    format=None, device=None, keep_steps=false))]
#[expect(clippy::too_many_arguments, reason = "keywords of one reading")]
pub fn trace_served(
    py: Python<'_>,
    path: PathBuf,
    from_ns: u64,
    until_ns: u64,
    steps: u32,
    slowest: usize,
    distinct: bool,
    listed: bool,
    processes: Option<Vec<(u64, String)>>,
    cgroups: Option<Vec<(u64, String)>>,
    format: Option<String>,
    device: Option<String>,
    keep_steps: bool,
) -> PyResult<TraceServed> {
    let wanted = Wanted { format, device, keep_steps, ..Wanted::default() };
    let only = |rows: Option<Vec<(u64, String)>>| {
        rows.map(|rows| rows.into_iter().map(|(number, name)| Owner { number, name }).collect())
    };
    let read = py.detach(|| {
        let only = (only(processes), only(cgroups));
        let mut served = Served::new(Nanos(from_ns), Nanos(until_ns), steps, (slowest, distinct), only);
        let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
        pass(&mut trace, |io, tables| served.take(io, tables))?;
        let mut slow = Vec::new();
        if slowest > 0 {
            let mut meanwhile = served.meanwhile(listed);
            let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
            pass(&mut trace, |io, tables| meanwhile.take(io, tables))?;
            slow = meanwhile.finish();
        }
        Ok((served, slow))
    });
    let (served, slow) = read.map_err(Stop::raised)?;
    Ok(TraceServed {
        from_ns,
        end_ns: served.end().0,
        step_ns: served.step().0,
        processes: owners(served.processes()),
        cgroups: owners(served.cgroups()),
        of_processes: served.of_processes().map(counted).collect(),
        of_cgroups: served.of_cgroups().map(counted).collect(),
        slow: slow.iter().map(self::meanwhile).collect(),
    })
}

/// The first `most` I/Os of a trace that are queued from `from_ns` to before `until_ns` and complete; `count` has
/// all that are queued then.
#[pyfunction]
#[pyo3(signature = (path, *, from_ns, until_ns, most, format=None, device=None, keep_steps=false))]
#[expect(clippy::too_many_arguments, reason = "keywords of one reading")]
pub fn trace_ios(
    py: Python<'_>,
    path: PathBuf,
    from_ns: u64,
    until_ns: u64,
    most: usize,
    format: Option<String>,
    device: Option<String>,
    keep_steps: bool,
) -> PyResult<TraceIos> {
    let wanted = Wanted { format, device, keep_steps, ..Wanted::default() };
    let read = py.detach(|| {
        let mut trace = Trace::open(&path, &wanted).map_err(Stop::Input)?;
        let (mut ios, mut count) = (Vec::new(), 0);
        pass(&mut trace, |io, _| {
            if io.queued.0 >= until_ns {
                return false;
            }
            if io.queued.0 >= from_ns {
                count += 1;
                if io.completed.is_some() && ios.len() < most {
                    ios.push(*io);
                }
            }
            true
        })?;
        let mut processes = Vec::new();
        let mut rows = std::collections::HashMap::new();
        let of_process: Vec<u32> = ios
            .iter()
            .map(|io: &Io| {
                *rows.entry((io.pid, io.process)).or_insert_with(|| {
                    processes.push((io.pid, trace.tables().processes.name(io.process).to_owned()));
                    processes.len() as u32 - 1
                })
            })
            .collect();
        let devices: Vec<_> = trace.tables().devices.iter().map(str::to_owned).collect();
        Ok((ios, count, processes, of_process, devices))
    });
    let (ios, count, processes, process, devices) = read.map_err(Stop::raised)?;
    let ns = |at: Option<Nanos>| at.map(|at| at.0);
    Ok(TraceIos {
        processes,
        devices,
        count,
        number: ios.iter().map(|io| io.number).collect(),
        process,
        device: ios.iter().map(|io| io.device.0).collect(),
        op: ios.iter().map(|io| io.op.name()).collect(),
        sector: ios.iter().map(|io| io.sector.0).collect(),
        sectors: ios.iter().map(|io| io.sectors).collect(),
        queued_ns: ios.iter().map(|io| io.queued.0).collect(),
        inserted_ns: ios.iter().map(|io| ns(io.inserted)).collect(),
        issued_ns: ios.iter().map(|io| ns(io.issued)).collect(),
        completed_ns: ios.iter().map(|io| io.completed.unwrap_or(io.queued).0).collect(),
    })
}
