//! A process's files, opened in the same way as by fio.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use blklab_core::workload::plan::ProcessSpec;
use blklab_core::workload::spec::{AdviceHint, SyncMode};
use rustix::fs::{Advice, OFlags, fadvise};

/// The place of a file of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A partition, or the whole disk.
    pub path: PathBuf,
    /// The first byte of the file on it.
    pub start: u64,
}

/// A process's open files.
pub struct Files {
    /// One per path: files on the bare disk share one.
    open: Vec<(PathBuf, File)>,
    /// Per file of the plan: the index of the open file, and the first byte in it.
    places: Vec<Option<(usize, u64)>>,
}

impl Files {
    /// The files of `spec`; `places` has all files of the plan. `makes_durable`: its writes are durable
    /// whatever the files are opened with.
    pub fn open(spec: &ProcessSpec, places: &[Target], makes_durable: bool) -> io::Result<Files> {
        let job = &spec.job;
        if job.drop_caches {
            fs::write("/proc/sys/vm/drop_caches", "3\n")?;
        }
        let mut files = Files { open: Vec::new(), places: vec![None; places.len()] };
        for region in &spec.regions {
            let Target { path, start } = &places[region.file as usize];
            let index = match files.open.iter().position(|(open, _)| open == path) {
                Some(index) => index,
                None => {
                    files.open.push((path.clone(), open(spec, path, makes_durable)?));
                    files.open.len() - 1
                }
            };
            files.places[region.file as usize] = Some((index, *start));
        }
        Ok(files)
    }

    /// The open file for the plan's file `file`, and the first byte in it.
    pub fn get(&self, file: u32) -> (&File, u64) {
        let (index, start) = self.places[file as usize].expect("the pattern keeps to the regions");
        (&self.open[index].1, start)
    }

    /// Writes all data to the disk; also the files' times, if `with_times`.
    pub fn sync(&self, with_times: bool) -> io::Result<()> {
        let sync = |file: &File| if with_times { file.sync_all() } else { file.sync_data() };
        self.open.iter().try_for_each(|(_, file)| sync(file))
    }

    /// Starts writing dirty pages of the plan's file `file`, or of all files, and drops clean
    /// pages.
    pub fn drop_pages(&self, file: Option<u32>) -> io::Result<()> {
        let drop = |file: &File| fadvise(file, 0, None, Advice::DontNeed).map_err(io::Error::from);
        match file {
            Some(file) => drop(self.get(file).0),
            None => self.open.iter().try_for_each(|(_, file)| drop(file)),
        }
    }
}

fn open(spec: &ProcessSpec, path: &PathBuf, makes_durable: bool) -> io::Result<File> {
    let job = &spec.job;
    let direct = if job.queueing.direct { OFlags::DIRECT } else { OFlags::empty() };
    let sync = match job.durability.mode {
        _ if makes_durable => OFlags::empty(),
        SyncMode::None => OFlags::empty(),
        SyncMode::Sync => OFlags::SYNC,
        SyncMode::Dsync => OFlags::DSYNC,
    };
    let flags = (direct | sync).bits().cast_signed();
    let writes = job.access.rw.writes() || job.access.rw.trims();
    let file = File::options().read(true).write(writes).custom_flags(flags).open(path)?;
    let advice = match job.advice {
        AdviceHint::Off => return Ok(file),
        AdviceHint::AsRw if job.access.rw.is_random() => Advice::Random,
        AdviceHint::Random => Advice::Random,
        AdviceHint::AsRw | AdviceHint::Sequential => Advice::Sequential,
    };
    if !job.queueing.direct {
        fadvise(&file, 0, None, advice)?;
    }
    Ok(file)
}
