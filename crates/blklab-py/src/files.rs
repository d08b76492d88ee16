//! What a job file may read from the machine: variables and included files.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use blklab_core::formats::fio::jobfile::Resolver;

/// A job file has some kilobytes; a file of this size is something else.
const INCLUDE_BYTES_MAX: u64 = 16 << 20;

/// The given environment, the existing files, the simulated host's size.
pub struct Machine {
    pub env: BTreeMap<String, String>,
    /// The directory that must contain included files, with links followed; `None` for any.
    pub within: Option<PathBuf>,
    pub cpus: u64,
    pub memory_mib: u64,
}

impl Resolver for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn include(&mut self, path: &str) -> Result<String, String> {
        if let Some(directory) = &self.within {
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
            if !real(Path::new(path))?.starts_with(real(directory)?) {
                return Err("on a real disk a job includes files of its own directory only".to_owned());
            }
        }
        // Opening a pipe would wait for its other end.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|error| error.to_string())?;
        if !file.metadata().map_err(|error| error.to_string())?.is_file() {
            return Err("not a regular file".to_owned());
        }
        let mut text = String::new();
        // A device does not report a length.
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
