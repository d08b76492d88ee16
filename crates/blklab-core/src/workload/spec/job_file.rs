//! A job file after parsing: its jobs, and the options that were left out.

use std::sync::Arc;

use super::JobSpec;

/// An option that was read and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// File.
    pub path: String,
    /// Line.
    pub line: u32,
    /// The option's name, as given.
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// The reason.
    pub why: String,
}

/// A job file, read and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFile {
    /// Its path, as given.
    pub path: String,
    /// The options of the `[global]` sections, in order (fio's `global options`).
    pub global: Vec<(String, String)>,
    /// The sections other than `[global]`, in order.
    pub jobs: Vec<Arc<JobSpec>>,
    /// Not simulated and left out (`--ignore-unsupported`).
    pub ignored: Vec<Idle>,
    /// Accepted, but without effect in a simulation.
    pub without_effect: Vec<Idle>,
}
