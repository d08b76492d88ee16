//! Helpers of the tests of job files.

use std::collections::BTreeMap;

use blklab_core::formats::fio::jobfile::{self, ParseOptions, Resolver};
use blklab_core::units::Bytes;
use blklab_core::workload::error::JobError;
use blklab_core::workload::plan::{self, Plan};
use blklab_core::workload::spec::JobFile;

/// A machine with these files and variables.
#[derive(Default)]
pub struct Machine {
    /// Files that can be included.
    pub files: BTreeMap<String, String>,
    /// Environment.
    pub variables: BTreeMap<String, String>,
}

impl Resolver for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn include(&mut self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "no such file".to_owned())
    }
    fn memory_mib(&self) -> u64 {
        1024
    }
    fn cpus(&self) -> u64 {
        4
    }
}

/// Parses `text` as `JOB.fio`.
pub fn parse(text: &str) -> Result<JobFile, JobError> {
    jobfile::parse(text, "JOB.fio", &mut Machine::default(), ParseOptions::default())
}

/// The plan of `text` on a disk of 1 TiB.
#[allow(dead_code)] // Not every test file that includes this lays jobs out.
pub fn plan(text: &str) -> Plan {
    plan::plan(&parse(text).expect("the job file is right"), Bytes(1 << 40), 1).expect("it fits the disk")
}
