//! What the disk did, from its own log.

use blklab_core::result::DiskTrace;
use blklab_core::units::Sector;
use blklab_core::workload::plan::Plan;
use blklab_disk::log::Log;

/// The logged requests that have ended, in order of issue. The disk sees a request when it is
/// issued and not before, so both times are the same here. Whose a request is follows from
/// where it lies: of several processes on one file the first.
pub fn of(log: &Log, plan: &Plan, capacity: Sector) -> DiskTrace {
    let owners = owners(plan, capacity);
    let mut trace = DiskTrace::default();
    for row in 0..log.rows() {
        if log.completed_ns[row] < 0 {
            continue;
        }
        let sector = log.sector[row];
        let owner = owners.iter().find(|(range, _)| range.contains(&sector));
        trace.queued_ns.push(log.arrived_ns[row]);
        trace.issued_ns.push(log.arrived_ns[row]);
        trace.completed_ns.push(log.completed_ns[row]);
        trace.sector.push(sector);
        trace.sectors.push(log.sectors[row]);
        trace.op.push(log.op[row]);
        trace.process.push(owner.map_or(-1, |(_, process)| *process));
    }
    trace
}

/// The sectors that each process uses, in the order of processes.
fn owners(plan: &Plan, capacity: Sector) -> Vec<(std::ops::Range<i64>, i64)> {
    let starts = plan.starts(capacity);
    let regions = plan.processes.iter().flat_map(|process| {
        process.regions.iter().map(|region| (starts[region.file as usize], region, i64::from(process.id.0)))
    });
    regions
        .map(|(start, region, id)| {
            let first = (start.0 + region.start / 512) as i64;
            (first..first + region.length.div_ceil(512) as i64, id)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use blklab_core::disk::{Command, Tag};
    use blklab_core::request::Op;
    use blklab_core::units::Nanos;

    use super::*;
    use crate::job::testing::plan;

    #[test]
    fn a_request_belongs_to_the_process_whose_file_it_lies_in() {
        let plan = plan("[a]\nsize=1m\n[b]\nsize=1m\n");
        let mut log = Log::new(10);
        for (at, sector) in [(5, 0), (6, 2048), (7, 2047), (8, 1 << 20)] {
            let command = Command {
                tag: Tag(0),
                op: Op::Read,
                sector: Sector(sector),
                sectors: 8,
                fua: false,
                urgent: false,
            };
            let row = log.arrived(Nanos(at), &command).expect("there is room");
            if sector != 2047 {
                log.ended(row, Nanos(at + 100));
            }
        }
        let trace = of(&log, &plan, Sector(1 << 21));
        assert_eq!(trace.process, [0, 1, -1], "the third has not ended");
        assert_eq!((trace.issued_ns[1], trace.completed_ns[1]), (6, 106));
    }
}
