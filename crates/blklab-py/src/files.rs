//! What a job file may ask of the machine: variables and included files.

use std::collections::BTreeMap;
use std::io::Read;

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
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let mut text = String::new();
        // A device has no length to ask for.
        let read = file.take(INCLUDE_BYTES_MAX + 1).read_to_string(&mut text);
        if read.map_err(|error| error.to_string())? as u64 > INCLUDE_BYTES_MAX {
            return Err(format!("more than {INCLUDE_BYTES_MAX} bytes are no job file"));
        }
        Ok(text)
    }

    fn memory_mib(&self) -> u64 {
        self.memory_mib
    }

    fn cpus(&self) -> u64 {
        self.cpus
    }
}
