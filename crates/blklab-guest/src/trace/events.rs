//! The block layer's events, in the text format of tracefs.
//!
//! They collect in the kernel's ring buffer and are read when the program has ended: a reader that
//! runs at the same time would change the measurements.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const TRACEFS: &str = "/sys/kernel/tracing";

/// About half a million events.
const BUFFER_KIB: u32 = 64 << 10;

/// Tracing that is switched on.
pub struct Events {
    root: PathBuf,
}

impl Events {
    /// Starts.
    ///
    /// # Errors
    /// One line: the kernel has no such events.
    pub fn begin() -> Result<Events, String> {
        Events::begin_at(Path::new(TRACEFS))
    }

    fn begin_at(root: &Path) -> Result<Events, String> {
        let trace = Events { root: root.to_owned() };
        trace.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        // The clock of the disk's and the program's measurements.
        trace.set("trace_clock", "mono")?;
        trace.set("events/block/enable", "1")?;
        trace.set("tracing_on", "1")?;
        Ok(trace)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.root.join(file);
        fs::write(&path, value).map_err(|error| {
            format!("trace: {}: {error}; the kernel needs CONFIG_BLK_DEV_IO_TRACE", path.display())
        })
    }

    /// Ends, and writes the events to `path`. Returns the number of events, and of earlier ones
    /// that did not fit.
    ///
    /// # Errors
    /// One line.
    pub fn end(self, path: &Path) -> Result<(u64, u64), String> {
        self.set("tracing_on", "0")?;
        let lost = self.lost();
        let events = self.copy(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((events, lost))
    }

    /// Copies lines from `trace_pipe`, which empties the buffer.
    fn copy(&self, to: &Path) -> io::Result<u64> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut pipe =
            File::options().read(true).custom_flags(nonblocking).open(self.root.join("trace_pipe"))?;
        let mut out = File::create(to)?;
        let mut buffer = vec![0; 1 << 16];
        let mut lines = 0;
        loop {
            let bytes = match pipe.read(&mut buffer) {
                Ok(0) => return Ok(lines),
                Ok(bytes) => bytes,
                // No events are left.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(lines),
                Err(error) => return Err(error),
            };
            let text = &buffer[..bytes];
            lines += text.iter().filter(|byte| **byte == b'\n').count() as u64;
            out.write_all(text)?;
        }
    }

    /// Events overwritten in the CPUs' buffers.
    fn lost(&self) -> u64 {
        let buffers = fs::read_dir(self.root.join("per_cpu")).into_iter().flatten().flatten();
        let texts = buffers.filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok());
        texts.map(|text| overrun(&text)).sum()
    }
}

fn overrun(stats: &str) -> u64 {
    let line = stats.lines().find_map(|line| line.strip_prefix("overrun:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_copied_and_lost_ones_counted() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("events/block")).expect("made");
        fs::create_dir_all(root.path().join("per_cpu/cpu0")).expect("made");
        let trace = Events::begin_at(root.path()).expect("files take anything");
        let text = |file: &str| fs::read_to_string(root.path().join(file)).expect("written");
        assert_eq!((text("tracing_on"), text("events/block/enable")), ("1".into(), "1".into()));
        fs::write(root.path().join("trace_pipe"), "one\ntwo\n").expect("written");
        fs::write(root.path().join("per_cpu/cpu0/stats"), "entries: 2\noverrun: 7\nbytes: 3\n").expect("ok");
        assert_eq!(trace.end(&root.path().join("trace.txt")), Ok((2, 7)), "events, and how many are lost");
        assert_eq!((text("trace.txt"), text("tracing_on")), ("one\ntwo\n".into(), "0".into()));
    }

    #[test]
    fn a_kernel_without_the_events_is_one_line() {
        let error = Events::begin_at(Path::new("/no/tracing")).map(|_| ()).unwrap_err();
        assert!(error.starts_with("trace: /no/tracing/buffer_size_kb: No such file"), "{error}");
    }
}
