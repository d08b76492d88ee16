//! A scheduler's text as an object with fields.

use std::collections::BTreeMap;

use blklab_core::scheduler::spec::{self, OpenSpec, SchedulerSpec};
use pyo3::prelude::*;

use crate::bad_input;

/// A scheduler with its tunables.
#[pyclass(frozen, get_all, module = "blklab._core")]
pub struct Scheduler {
    name: String,
    settings: BTreeMap<&'static str, i64>,
    changed: BTreeMap<&'static str, i64>,
    own: Vec<(String, String)>,
}

impl Scheduler {
    fn of(name: String, known: &SchedulerSpec, own: Vec<(String, String)>) -> Scheduler {
        Scheduler { name, settings: known.values().collect(), changed: known.given().collect(), own }
    }
}

/// Read a scheduler: a simulated one, or with `real` one of any kernel.
#[pyfunction]
pub fn parse_scheduler(text: &str, real: bool) -> PyResult<Scheduler> {
    if real {
        let open = OpenSpec::parse(text).map_err(bad_input)?;
        return Ok(Scheduler::of(open.name, &open.known, open.own));
    }
    let spec = SchedulerSpec::parse(text).map_err(bad_input)?;
    Ok(Scheduler::of(spec.info.name.to_owned(), &spec, Vec::new()))
}

/// Take a scheduler's text apart without looking at its values.
#[pyfunction]
pub fn split_scheduler(text: &str) -> PyResult<(&str, Vec<(&str, &str)>)> {
    spec::written(text).map_err(bad_input)
}
