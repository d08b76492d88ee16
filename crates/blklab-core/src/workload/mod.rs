//! Workloads: what jobs ask for, and the processes they become.
//!
//! [`crate::formats::fio::jobfile::parse`] reads a job file and gives one typed
//! [`spec::JobSpec`] per section; [`plan::plan`] turns the jobs into processes on a disk: clones,
//! files with their sizes, the order in which processes start; [`pattern::Pattern`] then yields
//! one I/O after another. What the options mean follows fio 3.33.

pub mod cgroups;
pub mod distribution;
pub mod error;
pub mod machine;
mod offsets;
pub mod pattern;
pub mod plan;
pub mod random;
pub mod random_map;
pub mod rate;
pub mod spec;
