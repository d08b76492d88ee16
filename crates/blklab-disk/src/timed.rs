//! A disk model with an external clock.
//!
//! The clock may be late: the model then performs everything that was due, each event at its own
//! time, before it gets a new request. So its behaviour depends only on the arrival times of
//! requests, not on the times of the calls.

use blklab_core::disk::{AnyDisk, Command, Completion, Disk, DiskModel};
use blklab_core::units::Nanos;

use crate::lateness::Lateness;

/// A disk model in operation.
#[derive(Debug)]
pub struct Timed {
    disk: AnyDisk,
    /// The start of the model's time, on the clock.
    epoch: Nanos,
    done: Vec<Completion>,
    lateness: Lateness,
}

impl Timed {
    /// A disk at rest; its time starts at `epoch` of the clock.
    pub fn new(model: &DiskModel, seed: u64, epoch: Nanos) -> Timed {
        Timed { disk: model.build(seed), epoch, done: Vec::new(), lateness: Lateness::default() }
    }

    /// The model's time at `now` of the clock.
    #[inline]
    pub fn model_time(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.epoch)
    }

    /// When [`Timed::run_to`] must be called next, on the clock; `None` while the disk has no
    /// events.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        match self.disk.next_event() {
            Nanos::NEVER => None,
            at => Some(at.saturating_add(self.epoch)),
        }
    }

    /// Advances to `until` of the clock, which is at `now`. Returns the requests completed until
    /// then, in order, each once.
    #[inline]
    pub fn run_to(&mut self, until: Nanos, now: Nanos) -> &[Completion] {
        self.done.clear();
        let (model_until, model_now) = (self.model_time(until), self.model_time(now));
        loop {
            let next = self.disk.next_event();
            if next > model_until {
                break;
            }
            self.disk.advance(next, &mut self.done);
        }
        for completion in &self.done {
            self.lateness.record(completion.at, model_now);
        }
        &self.done
    }

    /// The result of the last [`Timed::run_to`].
    pub fn done(&self) -> &[Completion] {
        &self.done
    }

    /// A request arrived at `now` of the clock, the time of the last [`Timed::run_to`].
    #[inline]
    pub fn submit(&mut self, now: Nanos, command: Command) {
        self.disk.submit(self.model_time(now), command);
    }

    /// The lateness of completions so far.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Time that the model was busy, ns.
    pub fn busy_ns(&self) -> u64 {
        self.disk.busy().0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blklab_core::disk::{Op, Tag, catalogue};
    use blklab_core::units::Sector;
    use proptest::prelude::*;

    use super::*;

    fn model(name: &str) -> DiskModel {
        catalogue::model(name).expect("a shipped disk")
    }

    /// Requests at their times, served by a server that runs `late` after each deadline. Returns
    /// the completion times by the model, and the lateness.
    fn serve(name: &str, requests: &[(u64, u64, bool)], late: u64, epoch: u64) -> (Vec<u64>, Timed) {
        let mut timed = Timed::new(&model(name), 1, Nanos(epoch));
        let mut ended = BTreeMap::new();
        let mut now = epoch;
        let collect = |timed: &mut Timed, now: u64, ended: &mut BTreeMap<u32, u64>| {
            for completion in timed.run_to(Nanos(now), Nanos(now)) {
                assert!(ended.insert(completion.tag.0, completion.at.0).is_none(), "ended twice");
            }
        };
        for (index, (gap, sector, write)) in requests.iter().enumerate() {
            let arrival = now + gap;
            while let Some(deadline) = timed.deadline().filter(|deadline| deadline.0 + late <= arrival) {
                collect(&mut timed, deadline.0 + late, &mut ended);
            }
            collect(&mut timed, arrival, &mut ended);
            now = arrival;
            let op = if *write { Op::Write } else { Op::Read };
            let tag = Tag(index as u32);
            let command = Command { tag, op, sector: Sector(*sector), sectors: 8, fua: false };
            timed.submit(Nanos(now), command);
        }
        // Background work may continue for ever, so only until all requests have completed.
        while ended.len() < requests.len() {
            let deadline = timed.deadline().expect("requests are under way");
            now = now.max(deadline.0 + late);
            collect(&mut timed, now, &mut ended);
        }
        (ended.into_values().collect(), timed)
    }

    fn requests() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
        prop::collection::vec((0..3_000_000_u64, 0..1_000_000_u64, any::<bool>()), 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_punctual_server_completes_at_exactly_the_models_times(
            requests in requests(),
            name in prop::sample::select(vec!["wd10ezrx", "su800-128gb", "optane-900p"]),
        ) {
            let (ended, timed) = serve(name, &requests, 0, 5_000_000_000);
            prop_assert_eq!(ended.len(), requests.len());
            let late = timed.lateness().summary();
            prop_assert_eq!((late.count, late.max_ns), (requests.len() as u64, 0));
        }

        #[test]
        fn looking_late_changes_nothing_but_the_lateness(
            requests in requests(),
            late in 1..400_000_u64,
            name in prop::sample::select(vec!["wd10ezrx", "su800-128gb"]),
        ) {
            let (punctual, _) = serve(name, &requests, 0, 0);
            let (tardy, timed) = serve(name, &requests, late, 77);
            prop_assert_eq!(punctual, tardy);
            prop_assert!(timed.lateness().summary().max_ns <= late.max(3_000_000));
        }
    }
}
