//! The disk in sysfs: scheduler, tunables, counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use blklab_core::units::Sector;
use serde::Serialize;

use crate::config::{Name, Setting};
use crate::ticks;

/// A disk's directory in sysfs.
pub struct Block {
    directory: PathBuf,
}

/// The directory of the scheduler's tunables.
const IOSCHED: &str = "queue/iosched";

/// A tunable that the kernel rounded to an equivalent value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rounded {
    /// Its file, such as `queue/iosched/read_expire`.
    pub tunable: String,
    /// The written value.
    pub asked: String,
    /// The kernel's value.
    pub set: String,
}

/// The columns of `stat` (`Documentation/admin-guide/iostats.rst`), in their order.
const COUNTERS: &[&str] = &[
    "read_ios",
    "read_merges",
    "read_sectors",
    "read_ticks_ms",
    "write_ios",
    "write_merges",
    "write_sectors",
    "write_ticks_ms",
    "in_flight",
    "io_ticks_ms",
    "in_queue_ms",
    "discard_ios",
    "discard_merges",
    "discard_sectors",
    "discard_ticks_ms",
    "flush_ios",
    "flush_ticks_ms",
];

/// The counters of `stat` by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// A counter; 0 if the kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The difference to `earlier`; `in_flight` unchanged.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let before =
            |name: &str| if name == "in_flight" { 0 } else { earlier.0.get(name).copied().unwrap_or(0) };
        Counters(self.0.iter().map(|(name, value)| (*name, value.saturating_sub(before(name)))).collect())
    }

    fn parse(text: &str) -> Counters {
        let values = text.split_whitespace().map_while(|word| word.parse().ok());
        Counters(COUNTERS.iter().copied().zip(values).collect())
    }
}

impl Block {
    /// The disk `name`, as in `/sys/block/NAME`.
    pub fn new(name: &str) -> Block {
        Block::at(Path::new("/sys/block").join(name))
    }

    fn at(directory: PathBuf) -> Block {
        Block { directory }
    }

    fn read(&self, file: &Path) -> Result<String, String> {
        let path = self.directory.join(file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Sets the scheduler and checks it.
    ///
    /// # Errors
    /// One line: the kernel does not have it, or has set another one.
    pub fn set_scheduler(&self, name: &Name) -> Result<(), String> {
        let file = Path::new("queue/scheduler");
        if self.scheduler().is_ok_and(|set| set == name.to_string()) {
            // It has served reads since boot. A new one begins as the simulator's: mq-deadline with writes.
            let path = self.directory.join(file);
            fs::write(&path, "none").map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let written = fs::write(self.directory.join(file), name.to_string());
        let found = self.read(file)?;
        match self.scheduler() {
            Ok(set) if set == name.to_string() => Ok(()),
            _ => {
                let why = written.err().map(|error| format!(" ({error})")).unwrap_or_default();
                Err(format!("scheduler: '{name}' was not taken{why}; the kernel has: {found}"))
            }
        }
    }

    /// The current scheduler.
    ///
    /// # Errors
    /// One line.
    pub fn scheduler(&self) -> Result<String, String> {
        let found = self.read(Path::new("queue/scheduler"))?;
        let set = found.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        // If there is only one scheduler, it has no brackets.
        Ok(set.unwrap_or(&found).to_owned())
    }

    /// Sets tunables in `folder` (`queue` or `queue/iosched`) and checks them when all are written.
    /// A scheduler's time may be rounded up to whole ticks.
    ///
    /// # Errors
    /// One line: no such tunable, refused, or the kernel set another value.
    pub fn set(&self, folder: &str, settings: &BTreeMap<Name, Setting>) -> Result<Vec<Rounded>, String> {
        let mut ordered: Vec<_> = settings.iter().collect();
        // It changes async_depth in proportion, so a value for that is written later.
        ordered.sort_by_key(|(name, _)| name.to_string() != "nr_requests");
        for (name, value) in &ordered {
            self.write(folder, name, value)?;
        }
        let mut rounded = Vec::new();
        for (name, value) in settings {
            let tunable = format!("{folder}/{name}");
            let (asked, set) = (value.to_string(), self.read(Path::new(&tunable))?);
            if asked == set {
                continue;
            }
            if folder != IOSCHED || !ticks::is_rounded(&asked, &set, ticks::tick_ns()) {
                return Err(format!("{tunable}={asked}: the kernel made {set} of it"));
            }
            rounded.push(Rounded { tunable, asked, set });
        }
        Ok(rounded)
    }

    fn write(&self, folder: &str, name: &Name, value: &Setting) -> Result<(), String> {
        let path = self.directory.join(folder).join(name);
        if !path.exists() {
            let mut names: Vec<_> = self.values(folder).into_keys().collect();
            names.sort_unstable();
            return Err(format!("{folder}/{name}: no such tunable; there are: {}", names.join(" ")));
        }
        fs::write(&path, value.to_string())
            .map_err(|error| format!("{folder}/{name}={value}: refused: {error}"))
    }

    /// Throttling of writeback has as many places again as on a new disk, which a change of its target gives it
    /// (`wbt_update_limits`). Without throttling, as under bfq, nothing changes.
    ///
    /// # Errors
    /// One line.
    pub fn reset_throttling(&self) -> Result<(), String> {
        let file = Path::new("queue/wbt_lat_usec");
        // The file of a disk that never had it cannot be read.
        let target = self.read(file).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(target_us) = target.filter(|&us| us > 0) else { return Ok(()) };
        for us in [target_us + 1, target_us] {
            let path = self.directory.join(file);
            fs::write(&path, us.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// All readable values of `folder`.
    pub fn values(&self, folder: &str) -> BTreeMap<String, String> {
        let files = fs::read_dir(self.directory.join(folder)).into_iter().flatten().flatten();
        let files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let value = |entry: fs::DirEntry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().into_string().ok()?, text.trim().to_owned()))
        };
        files.filter_map(value).collect()
    }

    /// The disk's size.
    ///
    /// # Errors
    /// One line.
    pub fn capacity(&self) -> Result<Sector, String> {
        let text = self.read(Path::new("size"))?;
        text.parse().map(Sector).map_err(|_| format!("size: found '{text}', expected a number of sectors"))
    }

    /// Whether the disk has a volatile write cache, which a sync flushes.
    ///
    /// # Errors
    /// One line.
    pub fn has_write_cache(&self) -> Result<bool, String> {
        Ok(self.read(Path::new("queue/write_cache"))? == "write back")
    }

    /// Whether the disk writes durably by itself (FUA).
    ///
    /// # Errors
    /// One line.
    pub fn has_fua(&self) -> Result<bool, String> {
        Ok(self.read(Path::new("queue/fua"))? == "1")
    }

    /// The counters.
    ///
    /// # Errors
    /// One line.
    pub fn counters(&self) -> Result<Counters, String> {
        Ok(Counters::parse(&self.read(Path::new("stat"))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::try_from(text.to_owned()).expect("a name")
    }

    /// A folder like a disk's in sysfs that accepts everything.
    fn disk() -> (tempfile::TempDir, Block) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("queue/iosched")).expect("made");
        for (file, text) in [("scheduler", "none [mq-deadline]\n"), ("nr_requests", "64\n")] {
            fs::write(folder.path().join("queue").join(file), text).expect("written");
        }
        let block = Block::at(folder.path().to_owned());
        (folder, block)
    }

    #[test]
    fn throttling_keeps_its_target_and_stays_off_where_it_is() {
        let (folder, block) = disk();
        assert_eq!(block.reset_throttling(), Ok(()));
        let file = folder.path().join("queue/wbt_lat_usec");
        for text in ["2000", "0"] {
            fs::write(&file, format!("{text}\n")).expect("written");
            assert_eq!(block.reset_throttling(), Ok(()));
            assert_eq!(fs::read_to_string(&file).expect("there").trim(), text);
        }
    }

    #[test]
    fn a_scheduler_that_was_not_accepted_is_an_error_with_the_available_ones() {
        let (folder, block) = disk();
        assert_eq!(block.scheduler().as_deref(), Ok("mq-deadline"));
        // No brackets: only "kyber" remains in the file, as if it were the only scheduler.
        assert_eq!(block.set_scheduler(&name("kyber")), Ok(()));
        let settings = |name_: &str| BTreeMap::from([(name(name_), Setting::Number(7))]);
        assert_eq!(block.set("queue", &settings("nr_requests")), Ok(vec![]));
        let error = block.set("queue", &settings("nr_request")).unwrap_err();
        assert_eq!(error, "queue/nr_request: no such tunable; there are: nr_requests scheduler");
        // A device that ignores writes.
        std::os::unix::fs::symlink("/dev/null", folder.path().join("queue/iosched/forgets")).expect("made");
        let error = block.set("queue/iosched", &settings("forgets")).unwrap_err();
        assert_eq!(error, "queue/iosched/forgets=7: the kernel made  of it");
    }

    #[test]
    fn counters_of_a_run_are_those_since_its_start() {
        let before = Counters::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
        let after = Counters::parse("11 2 13 4 5 6 7 8 3 20 11 12 13 14 15 17 17\n");
        let run = after.since(&before);
        assert_eq!((run.0["read_ios"], run.0["in_flight"], run.0["flush_ios"]), (10, 3, 1));
        assert_eq!(run.0.len(), COUNTERS.len());
    }
}
