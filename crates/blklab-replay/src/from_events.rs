//! When I/Os completed, by the block layer's events: a process that sleeps for a request, without a deputy,
//! takes its completions late.

use std::collections::{HashMap, VecDeque};

use blklab_core::block::BIO_SECTORS;
use blklab_core::formats::tracefs::Done;
use blklab_core::recorder::SeriesRecorder;
use blklab_core::request::Op;
use blklab_core::result::RunResult;
use blklab_core::source::replay::issuer::retold;
use blklab_core::source::replay::{Outcome, ReplayIo};
use blklab_core::units::{Nanos, SECTOR_BYTES};

use crate::Replayed;

impl Replayed {
    /// The result, with the ends of bios from the events: of reads and writes. A durable write may end with a
    /// flush, which events do not tell apart, so that it keeps its time.
    #[must_use]
    pub fn with_ends(mut self, ended: &[Done]) -> RunResult {
        correct(&self.ios, &mut self.outcomes, ended);
        let mut series = SeriesRecorder::default();
        let mut order: Vec<_> = (0..self.ios.len()).collect();
        order.sort_by_key(|&io| self.outcomes[io].completed);
        for (io, Outcome { due, completed, .. }) in
            order.into_iter().map(|io| (self.ios[io], self.outcomes[io]))
        {
            if io.op != Op::Flush {
                series.completed(completed, io.op.is_write(), io.bytes(), completed - due);
            }
        }
        let (series, interval) = series.finish();
        let mut jobs = retold(std::mem::take(&mut self.ios), &self.outcomes);
        for (job, told) in jobs.iter_mut().zip(&mut self.result.jobs) {
            job.name = std::mem::take(&mut told.name);
            job.percentiles = std::mem::take(&mut told.percentiles);
        }
        self.result.duration_ns = jobs.iter().map(|job| job.end_ns).max().unwrap_or(0);
        self.result.jobs = jobs;
        (self.result.series, self.result.series_interval_ns) = (series, interval.0);
        self.result
    }
}

/// Completions by the ends of bios, where these are earlier. The bios of an I/O are found by their places; of
/// several at one place the first that came is that of the first I/O.
fn correct(ios: &[ReplayIo], outcomes: &mut [Outcome], ended: &[Done]) {
    let mut order: Vec<_> =
        (0..ios.len()).filter(|&io| matches!(ios[io].op, Op::Read | Op::Write) && !ios[io].fua).collect();
    order.sort_by_key(|&io| outcomes[io].begun);
    let mut bios: HashMap<_, VecDeque<usize>> = HashMap::new();
    let mut left = vec![0_u32; ios.len()];
    for io in order {
        let (write, end) = (ios[io].op == Op::Write, ios[io].place.sector.0 + u64::from(ios[io].sectors));
        let mut at = ios[io].place.sector.0;
        while at < end {
            let sectors = (end - at).min(BIO_SECTORS.into());
            bios.entry((write, at, sectors)).or_default().push_back(io);
            left[io] += 1;
            at += sectors;
        }
    }
    let mut came: Vec<_> = ended.iter().collect();
    came.sort_by_key(|done| done.since);
    let mut latest = vec![Nanos::ZERO; ios.len()];
    for done in came {
        let key = (done.write, done.sector, done.bytes / SECTOR_BYTES);
        let Some(io) = bios.get_mut(&key).and_then(VecDeque::pop_front) else { continue };
        left[io] -= 1;
        latest[io] = latest[io].max(done.since + done.latency);
        let outcome = &mut outcomes[io];
        if left[io] == 0 && latest[io] >= outcome.begun {
            outcome.completed = outcome.completed.min(latest[io]);
        }
    }
}

#[cfg(test)]
mod tests {
    use blklab_core::device::Location;
    use blklab_core::units::Sector;

    use super::*;

    fn io(op: Op, sector: u64, sectors: u32) -> ReplayIo {
        ReplayIo {
            op,
            place: Location { sector: Sector(sector), ..Location::default() },
            sectors,
            ..ReplayIo::default()
        }
    }

    fn done(write: bool, sector: u64, sectors: u64, since: u64, until: u64) -> Done {
        let (since, latency) = (Nanos(since), Nanos(until - since));
        Done { write, sector, bytes: sectors * SECTOR_BYTES, since, latency }
    }

    fn corrected(ios: &[ReplayIo], begun: &[u64], ended: &[Done]) -> Vec<u64> {
        let outcome =
            |&begun: &u64| Outcome { begun: Nanos(begun), completed: Nanos(900), ..Outcome::default() };
        let mut outcomes: Vec<_> = begun.iter().map(outcome).collect();
        correct(ios, &mut outcomes, ended);
        outcomes.iter().map(|outcome| outcome.completed.0).collect()
    }

    #[test]
    fn an_io_ends_with_its_last_bio_and_two_at_one_place_in_the_order_in_which_they_came() {
        let ios = [io(Op::Write, 0, 3000), io(Op::Read, 8, 8), io(Op::Read, 8, 8), io(Op::Write, 8, 8)];
        let ended = [
            done(false, 8, 8, 30, 40),
            done(true, 2048, 952, 10, 50),
            done(false, 8, 8, 20, 60),
            done(true, 0, 2048, 10, 70),
        ];
        assert_eq!(corrected(&ios, &[10, 30, 20, 30], &ended), [70, 40, 60, 900]);
    }

    #[test]
    fn durable_writes_flushes_and_ios_without_events_keep_their_times() {
        let ios = [ReplayIo { fua: true, ..io(Op::Write, 0, 8) }, io(Op::Flush, 0, 0), io(Op::Write, 64, 8)];
        assert_eq!(corrected(&ios, &[1, 2, 3], &[done(true, 0, 8, 1, 5)]), [900; 3]);
    }
}
