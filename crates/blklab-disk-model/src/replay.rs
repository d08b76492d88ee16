//! Replays a trace on a disk as on the measured drive: one command at a time, each at its recorded distance
//! after the end of the previous one. No scheduler, no merging, no splitting. In the gaps the disk continues
//! its own work: it reads ahead and writes back.

use super::{Command, Disk, DiskModel, Op, Tag};
use blklab_base::units::{Nanos, Sector};

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// From the end of the previous request to the submission of this one.
    pub gap: Nanos,
    /// The operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors, at least 1.
    pub sectors: u32,
}

/// The response time of each request of a trace, or the number of the first one beyond the disk's end.
///
/// # Errors
/// A request without sectors or beyond the disk's end.
pub fn replay(model: &DiskModel, seed: u64, trace: &[TraceRequest]) -> Result<Vec<Nanos>, usize> {
    let capacity = model.limits().capacity.0;
    let fits = |request: &TraceRequest| {
        request.sectors > 0 && request.sector.0.saturating_add(u64::from(request.sectors)) <= capacity
    };
    if let Some(number) = trace.iter().position(|request| !fits(request)) {
        return Err(number);
    }
    let mut disk = model.build(seed);
    let (mut now, mut done) = (Nanos::ZERO, Vec::new());
    let mut times = Vec::with_capacity(trace.len());
    for request in trace {
        let submitted = now + request.gap;
        while disk.next_event() <= submitted {
            let event = disk.next_event();
            disk.advance(event, &mut done);
        }
        let TraceRequest { op, sector, sectors, .. } = *request;
        disk.submit(submitted, Command { tag: Tag(0), op, sector, sectors, fua: false });
        while done.is_empty() {
            let event = disk.next_event();
            disk.advance(event, &mut done);
        }
        now = done[0].at;
        done.clear();
        times.push(now - submitted);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::super::testing::HDD;
    use super::*;

    fn request(gap_ms: u64, op: Op, sector: u64) -> TraceRequest {
        TraceRequest { gap: Nanos::from_millis(gap_ms), op, sector: Sector(sector), sectors: 8 }
    }

    #[test]
    fn a_gap_is_time_for_reading_ahead_and_a_read_of_it_is_quick() {
        let model = DiskModel::parse(HDD, "test").unwrap();
        let trace =
            [request(0, Op::Read, 1_000), request(50, Op::Read, 1_008), request(50, Op::Write, 9_000)];
        let times = replay(&model, 1, &trace).unwrap();
        assert!(times[0] > Nanos::from_millis(1) && times[1] < Nanos(100_000) && times[2] < Nanos(100_000));
    }

    #[test]
    fn a_request_beyond_the_disk_is_reported_by_its_number() {
        let model = DiskModel::parse(HDD, "test").unwrap();
        let trace = [request(0, Op::Read, 999_992), request(0, Op::Read, 999_993)];
        assert_eq!(replay(&model, 1, &trace), Err(1));
    }
}
