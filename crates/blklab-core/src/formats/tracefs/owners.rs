//! The process of a request, found by its sector.

use std::ops::Range;

use crate::device::{DeviceId, Layout};
use crate::pagecache::FileId;
use crate::request::ProcessId;
use crate::units::{SECTOR_BYTES, Sector};
use crate::workload::plan::Plan;

/// The process that uses a sector.
#[derive(Debug)]
pub enum Owners {
    /// The sectors that each process uses, in the order of processes.
    Regions(Vec<(Range<u64>, ProcessId)>),
    /// The first sector of each I/O, in their order.
    Ios(Vec<(u64, ProcessId)>),
    /// Regions and known I/Os at once. They may share sectors.
    Beside {
        /// The processes that have regions.
        regions: Box<Owners>,
        /// The known I/Os.
        ios: Box<Owners>,
    },
}

impl Default for Owners {
    /// All requests are the kernel's.
    fn default() -> Owners {
        Owners::Regions(Vec::new())
    }
}

impl Owners {
    /// The sectors of the plan's processes on a disk of `capacity`.
    pub fn new(plan: &Plan, capacity: Sector) -> Owners {
        let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
        let mut regions = Vec::new();
        for process in &plan.processes {
            for region in &process.regions {
                let (first, end) =
                    (region.start / SECTOR_BYTES, (region.start + region.length).div_ceil(SECTOR_BYTES));
                let mut begins = 0;
                for extent in layout.file(FileId(region.file)).extents() {
                    let (from, to) = (first.max(begins), end.min(begins + extent.sectors));
                    if from < to {
                        let at = extent.start.0 + (from - begins);
                        regions.push((at..at + (to - from), process.id));
                    }
                    begins += extent.sectors;
                }
            }
        }
        Owners::Regions(regions)
    }

    /// The processes of I/Os that are known in advance, each with its first sector. A sector belongs to
    /// the nearest I/O that begins there or before it.
    pub fn of_ios(ios: impl Iterator<Item = (Sector, ProcessId)>) -> Owners {
        let mut starts: Vec<_> = ios.map(|(Sector(sector), process)| (sector, process)).collect();
        starts.sort_unstable();
        starts.dedup_by_key(|(sector, _)| *sector);
        Owners::Ios(starts)
    }

    /// These owners, and known I/Os of other processes, which are numbered from `first` on. A sector at
    /// which a known I/O begins belongs to its process; any other belongs to the region that holds it.
    pub fn beside(self, ios: Owners, first: u32) -> Owners {
        let ios = match ios {
            Owners::Ios(starts) => {
                let behind = |(start, process): (u64, ProcessId)| (start, ProcessId(process.0 + first));
                Owners::Ios(starts.into_iter().map(behind).collect())
            }
            other => other,
        };
        Owners::Beside { regions: Box::new(self), ios: Box::new(ios) }
    }

    /// The same where the planned disk is a partition that begins at `first` of another disk.
    pub fn shifted(self, first: Sector) -> Owners {
        let moved = |sector: u64| sector.saturating_add(first.0);
        let by = |range: Range<u64>| moved(range.start)..moved(range.end);
        match self {
            Owners::Regions(regions) => {
                Owners::Regions(regions.into_iter().map(|(range, process)| (by(range), process)).collect())
            }
            Owners::Ios(starts) => {
                Owners::Ios(starts.into_iter().map(|(start, process)| (moved(start), process)).collect())
            }
            Owners::Beside { regions, ios } => Owners::Beside {
                regions: Box::new(regions.shifted(first)),
                ios: Box::new(ios.shifted(first)),
            },
        }
    }

    /// The process that uses this sector, the first of several; the kernel if there is none.
    pub fn of(&self, sector: u64) -> ProcessId {
        let found = match self {
            Owners::Beside { regions, ios } => {
                let at_its_begin = match &**ios {
                    Owners::Ios(starts) => starts.binary_search_by_key(&sector, |(start, _)| *start).is_ok(),
                    _ => false,
                };
                let region = regions.of(sector);
                Some(if at_its_begin || region == ProcessId::KERNEL { ios.of(sector) } else { region })
            }
            Owners::Regions(regions) => {
                regions.iter().find(|(range, _)| range.contains(&sector)).map(|(_, process)| *process)
            }
            Owners::Ios(starts) => {
                let behind = starts.partition_point(|(start, _)| *start <= sector);
                starts[..behind].last().map(|(_, process)| *process)
            }
        };
        found.unwrap_or(ProcessId::KERNEL)
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
        let mut placed = plan.clone();
        let all = Sector(1 << 21).to_bytes();
        placed
            .place(&[vec![100..1100, 9000..10_048], std::iter::once(5000..7048).collect()], all)
            .expect("as long as the files");
        let in_pieces = Owners::new(&placed, Sector(1 << 21));
        let found = [99, 100, 1099, 1100, 9000, 10_047, 10_048, 5000].map(|sector| in_pieces.of(sector));
        let (a, b, none) = (ProcessId(0), ProcessId(1), ProcessId::KERNEL);
        assert_eq!(found, [none, a, a, none, a, a, none, b]);
        for (wrong, message) in [
            (vec![vec![100..2148]], "2 files, and places for 1"),
            (vec![vec![100..2147], vec![5000..7048]], "a.0.0: 2048 sectors, and places for 2047"),
            (
                vec![vec![0..2048], vec![(1 << 21) - 2000..(1 << 21) + 48]],
                "sectors 2095152 to 2097200 are not",
            ),
        ] {
            let refused = placed.place(&wrong, all).expect_err("wrong places");
            assert!(refused.contains(message), "{refused}");
        }
        let ios = [(Sector(80), ProcessId(1)), (Sector(8), ProcessId(0)), (Sector(80), ProcessId(2))];
        let of_ios = Owners::of_ios(ios.into_iter());
        let found = [0, 8, 79, 80, 1 << 20].map(|sector| of_ios.of(sector));
        assert_eq!(found, [ProcessId::KERNEL, ProcessId(0), ProcessId(0), ProcessId(1), ProcessId(1)]);
        assert_eq!(of_ios.shifted(Sector(8)).of(87), ProcessId(0));
        let shifted = owners.shifted(Sector(2048));
        assert_eq!([2047, 2048].map(|sector| shifted.of(sector)), [ProcessId::KERNEL, ProcessId(0)]);
        let known = Owners::of_ios([(Sector(2080), ProcessId(0)), (Sector(9000), ProcessId(1))].into_iter());
        let both = shifted.beside(known, 2);
        let found = [2048, 2080, 2088, 9000, 9008].map(|sector| both.of(sector));
        assert_eq!(found, [0, 2, 0, 3, 3].map(ProcessId));
    }
}
