//! What a job file may ask of the machine: variables and included files.

use std::collections::BTreeMap;

use blklab_core::workload::jobfile::Resolver;

/// A job file is some kilobytes; anything this large is something else.
const INCLUDE_BYTES_MAX: u64 = 16 << 20;

/// The environment handed over, the files there are, the simulated host's size.
pub struct Machine {
    pub env: BTreeMap<String, String>,
    pub cpus: u64,
    pub memory_mib: u64,
}

impl Resolver for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn include(&mut self, path: &str) -> Result<String, String> {
        let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
        if length > INCLUDE_BYTES_MAX {
            return Err(format!("{length} bytes are too many for a job file"));
        }
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn memory_mib(&self) -> u64 {
        self.memory_mib
    }

    fn cpus(&self) -> u64 {
        self.cpus
    }
}
