//! Whose a request is.

use std::ops::Range;

use blklab_core::request::ProcessId;
use blklab_core::units::Sector;
use blklab_core::workload::plan::Plan;

/// The sectors that each process uses, in the order of processes.
#[derive(Debug)]
pub struct Owners(Vec<(Range<u64>, ProcessId)>);

impl Owners {
    /// Those of the plan's processes on a disk of `capacity`.
    pub fn new(plan: &Plan, capacity: Sector) -> Owners {
        let starts = plan.starts(capacity);
        let regions = plan.processes.iter().flat_map(|process| {
            process.regions.iter().map(|region| (starts[region.file as usize], region, process.id))
        });
        Owners(
            regions
                .map(|(start, region, id)| {
                    let first = start.0 + region.start / 512;
                    (first..first + region.length.div_ceil(512), id)
                })
                .collect(),
        )
    }

    /// The process that uses this sector, of several the first; the kernel where there is none.
    pub fn of(&self, sector: u64) -> ProcessId {
        let found = self.0.iter().find(|(range, _)| range.contains(&sector));
        found.map_or(ProcessId::KERNEL, |(_, process)| *process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::plan;

    #[test]
    fn a_request_belongs_to_the_process_whose_file_it_lies_in() {
        let owners = Owners::new(&plan("[a]\nsize=1m\n[b]\nsize=1m\n"), Sector(1 << 21));
        let found = [0, 2047, 2048, 1 << 20].map(|sector| owners.of(sector));
        assert_eq!(found, [ProcessId(0), ProcessId(0), ProcessId(1), ProcessId::KERNEL]);
    }
}
