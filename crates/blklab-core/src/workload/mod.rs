//! Workloads: the jobs of a job file, and their processes.
//!
//! [`crate::formats::fio::jobfile::parse`] reads a job file and returns one typed [`spec::JobSpec`]
//! per section. [`plan::plan`] turns the jobs into processes on a disk: clones, files with their
//! sizes, the order in which processes start. [`pattern::Pattern`] then yields one I/O after
//! another. The options have the meaning of fio 3.33.

pub mod cgroups;
pub mod distribution;
pub mod error;
mod fio_numbers;
pub mod journal;
pub mod machine;
mod offsets;
pub mod pattern;
pub mod plan;
pub mod random;
pub mod random_map;
pub mod rate;
pub mod spec;
