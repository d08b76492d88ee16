//! A job file as it was read: its jobs, and the options that were left out.

use std::sync::Arc;

use super::JobSpec;

/// An option that was read and does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// File.
    pub path: String,
    /// Line.
    pub line: u32,
    /// The option, as written.
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Why it does nothing.
    pub why: String,
}

/// A job file, read and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFile {
    /// As it was named.
    pub path: String,
    /// What the `[global]` sections say, in order (fio's `global options`).
    pub global: Vec<(String, String)>,
    /// The sections other than `[global]`, in order.
    pub jobs: Vec<Arc<JobSpec>>,
    /// Not simulated and left out (`--ignore-unsupported`).
    pub ignored: Vec<Idle>,
    /// Accepted, but without effect in a simulation.
    pub without_effect: Vec<Idle>,
}
