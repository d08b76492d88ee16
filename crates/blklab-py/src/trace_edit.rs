//! Changes of recordings, one or several, written as a new one.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use blklab_core::InputError;
use blklab_core::recorded::Op;
use blklab_core::units::Nanos;
use blklab_trace::edit::{Edit, Edited, Merged, Secret};
use blklab_trace::recording::Writer;
use blklab_trace::{Records, Trace, Wanted};
use pyo3::prelude::*;

use crate::traces::{IOS_PER_LOOK, Stop};

/// What is kept of a trace, and what is changed.
#[pyclass(frozen, module = "blklab._core")]
pub struct TraceEdit(Edit);

#[pymethods]
impl TraceEdit {
    #[new]
    #[pyo3(signature = (*, from_ns=0, until_ns=None, processes=Vec::new(), cgroups=Vec::new(), operations=Vec::new(),
        sectors=None, lengths=None, stretch=1.0, scale=None, shift=0, secret=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords, one for each field")]
    fn new(
        from_ns: u64,
        until_ns: Option<u64>,
        processes: Vec<String>,
        cgroups: Vec<String>,
        operations: Vec<String>,
        sectors: Option<(u64, u64)>,
        lengths: Option<(u32, u32)>,
        stretch: f64,
        scale: Option<(u64, u64)>,
        shift: u64,
        secret: Option<(u64, u64)>,
    ) -> PyResult<TraceEdit> {
        let op = |name: &String| {
            Op::ALL.into_iter().find(|op| op.name() == name).ok_or_else(|| {
                let names = Op::ALL.map(Op::name).join(", ");
                crate::bad_input(InputError::new(format!("operation '{name}'; expected one of: {names}")))
            })
        };
        let all = Edit::default();
        Ok(TraceEdit(Edit {
            window: Nanos(from_ns)..until_ns.map_or(all.window.end, Nanos),
            processes,
            cgroups,
            ops: operations.iter().map(op).collect::<PyResult<_>>()?,
            sectors: sectors.map_or(all.sectors, |(start, end)| start..end),
            lengths: lengths.map_or(all.lengths, |(least, most)| least..=most),
            stretch,
            scale,
            shift,
            secret: secret.map(|(seed, end)| Secret { seed, end }),
        }))
    }
}

/// Writes the I/Os of all traces to the new file `out`, each changed by its own edit; returns how many there are.
#[pyfunction]
#[pyo3(signature = (traces, out, *, format=None, device=None))]
pub fn edit_traces(
    py: Python<'_>,
    traces: Vec<(PathBuf, PyRef<'_, TraceEdit>)>,
    out: PathBuf,
    format: Option<String>,
    device: Option<String>,
) -> PyResult<u64> {
    let parts: Vec<_> = traces.into_iter().map(|(path, edit)| (path, edit.0.clone())).collect();
    let wanted = Wanted { format, device, ..Wanted::default() };
    let written = py.detach(move || {
        let opened = parts.into_iter().map(|(path, edit)| {
            let trace = Trace::open(&path, &wanted)?;
            Ok(Box::new(Edited::new(trace, edit)) as Box<dyn Records + Send>)
        });
        let mut opened = opened.collect::<Result<Vec<_>, InputError>>().map_err(Stop::Input)?;
        // Merging gives I/Os new numbers and one device.
        let mut records = if opened.len() == 1 {
            opened.remove(0)
        } else {
            Box::new(Merged::new(opened).map_err(Stop::Input)?)
        };
        let file = BufWriter::new(File::create_new(&out).map_err(Stop::Output)?);
        let mut writer = Writer::new(file, records.header()).map_err(Stop::Output)?;
        let mut count = 0_u64;
        while let Some(io) = records.next_io().map_err(Stop::Input)? {
            writer.push(&io, records.tables()).map_err(Stop::Output)?;
            count += 1;
            if count.is_multiple_of(IOS_PER_LOOK) {
                Python::attach(|py| py.check_signals()).map_err(Stop::Signal)?;
            }
        }
        let (mut file, _) = writer.finish(records.tables()).map_err(Stop::Output)?;
        file.flush().map_err(Stop::Output)?;
        Ok(count)
    });
    written.map_err(Stop::raised)
}
