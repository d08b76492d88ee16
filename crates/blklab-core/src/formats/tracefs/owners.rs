//! The process of a request, found by its sector.

use std::ops::Range;

use crate::device::{DeviceId, Layout};
use crate::pagecache::FileId;
use crate::request::ProcessId;
use crate::units::{SECTOR_BYTES, Sector};
use crate::workload::plan::Plan;

/// The sectors that each process uses, in the order of processes.
#[derive(Debug, Default)]
pub struct Owners(Vec<(Range<u64>, ProcessId)>);

impl Owners {
    /// The sectors of the plan's processes on a disk of `capacity`.
    pub fn new(plan: &Plan, capacity: Sector) -> Owners {
        let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
        let regions = plan.processes.iter().flat_map(|process| {
            process.regions.iter().map(|region| {
                let begin = layout.locate(FileId(region.file), region.start).sector.0;
                (begin..begin + region.length.div_ceil(SECTOR_BYTES), process.id)
            })
        });
        Owners(regions.collect())
    }

    /// The same where the planned disk is a partition that begins at `first` of another disk.
    pub fn shifted(self, first: Sector) -> Owners {
        let by = |range: Range<u64>| range.start.saturating_add(first.0)..range.end.saturating_add(first.0);
        Owners(self.0.into_iter().map(|(range, process)| (by(range), process)).collect())
    }

    /// The process that uses this sector, the first of several; the kernel if there is none.
    pub fn of(&self, sector: u64) -> ProcessId {
        let found = self.0.iter().find(|(range, _)| range.contains(&sector));
        found.map_or(ProcessId::KERNEL, |(_, process)| *process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fio::jobfile;
    use crate::workload::plan;

    #[test]
    fn a_request_belongs_to_the_process_of_the_file_at_its_place() {
        let mut nothing = jobfile::Bare { memory_mib: 0, cpus: 0 };
        let text = "[a]\nsize=1m\n[b]\nsize=1m\n";
        let file = jobfile::parse(text, "job.fio", &mut nothing, Default::default()).expect("a good job");
        let plan = plan::plan(&file, Sector(1 << 21).to_bytes(), 1).expect("it fits");
        let owners = Owners::new(&plan, Sector(1 << 21));
        let found = [0, 2047, 2048, 1 << 20].map(|sector| owners.of(sector));
        assert_eq!(found, [ProcessId(0), ProcessId(0), ProcessId(1), ProcessId::KERNEL]);
        let shifted = owners.shifted(Sector(2048));
        assert_eq!([2047, 2048].map(|sector| shifted.of(sector)), [ProcessId::KERNEL, ProcessId(0)]);
    }
}
