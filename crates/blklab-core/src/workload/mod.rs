//! Workloads: fio job files, and the processes they become.
//!
//! [`jobfile::parse`] reads the text and gives one typed [`spec::JobSpec`] per section;
//! [`plan::plan`] lays the jobs on a disk: clones, files and their sizes, who waits for
//! whom; [`pattern::Pattern`] then yields one I/O after another. The language and what
//! it means follow fio 3.33.

pub mod cgroups;
pub mod distribution;
pub mod error;
pub mod jobfile;
pub mod machine;
mod offsets;
pub mod options;
pub mod pattern;
pub mod plan;
pub mod random;
pub mod random_map;
pub mod rate;
pub mod spec;
pub mod value;
