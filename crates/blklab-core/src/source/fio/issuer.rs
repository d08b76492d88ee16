//! The next step of a fio process: the decisions of `do_io()` in fio's backend.
//!
//! An [`Issuer`] has no clock and does no I/O. Its caller gives the time, asks for the next
//! [`Step`], performs it and reports it. The simulator's process calls it in virtual time; the
//! driver in the kernel rig's guest calls it around real system calls. So both issue the same I/Os
//! in the same order, with the same think times, rates and ends, and count them in the same way.

use std::sync::Arc;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::tally::{IoTimes, Tally};
use crate::request::IoPrio;
use crate::result::JobResult;
use crate::units::Nanos;
use crate::workload::pattern::{IoUnit, Pattern};
use crate::workload::plan::ProcessSpec;
use crate::workload::random::{self, Stream};
use crate::workload::rate::RateLimiter;
use crate::workload::spec::{Direction, JobSpec, ThinkAfter};

/// The next step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start this I/O, and report it by [`Issuer::begun`].
    Begin(IoUnit),
    /// Sync what was written, and report it by [`Issuer::synced`].
    Sync,
    /// Reap everything in flight, then continue with this.
    Drain(Then),
}

/// The step after everything was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Pause until the time that [`Issuer::think`] gives.
    Think,
    /// Pause until then: the rate limit allows no I/O earlier.
    Pace(Nanos),
    /// Drop the cached pages of this file, which starts again from its beginning.
    Drop(u32),
    /// The pass is over: see [`Issuer::owes_sync`], then [`Issuer::begin_pass`].
    EndPass,
    /// The process ends: see [`Issuer::owes_sync`].
    Finish,
}

/// The state of a process's loop.
pub struct Issuer {
    job: Arc<JobSpec>,
    pattern: Pattern,
    rate: Option<RateLimiter>,
    priorities: Xoshiro256PlusPlus,
    /// An I/O that waits for the end of a pause.
    put_off: Option<IoUnit>,
    /// Writes since the last fsync.
    unsynced: u32,
    since_think: u32,
    think_end: Nanos,
    wrote: bool,
    counting: bool,
    count_from: Nanos,
    end_by: Nanos,
    told_to_end: bool,
    started: Nanos,
    /// Its measurements.
    pub tally: Tally,
}

impl Issuer {
    /// The loop of `spec` in a run with `seed`, not started yet.
    pub fn new(spec: &ProcessSpec, seed: u64) -> Issuer {
        let job = Arc::clone(&spec.job);
        let seed = job.access.randseed.unwrap_or(seed);
        let priorities = random::stream_seed(seed, spec.id, Stream::Priority);
        Issuer {
            pattern: Pattern::new(spec, seed),
            rate: RateLimiter::new(spec, seed),
            priorities: Xoshiro256PlusPlus::seed_from_u64(priorities),
            put_off: None,
            unsynced: 0,
            since_think: 0,
            think_end: Nanos::ZERO,
            wrote: false,
            counting: false,
            count_from: Nanos::ZERO,
            end_by: Nanos::NEVER,
            told_to_end: false,
            started: Nanos::ZERO,
            tally: Tally::new(job.reporting.bw_average, job.reporting.iops_average),
            job,
        }
    }

    /// Starts at `now`.
    pub fn start(&mut self, now: Nanos) {
        let timing = &self.job.timing;
        self.started = now;
        self.count_from = now + timing.ramp_time;
        self.end_by = timing.runtime.map_or(Nanos::NEVER, |runtime| self.count_from.saturating_add(runtime));
        self.think_end = now;
    }

    /// Ends at the next opportunity (`exitall`).
    pub fn tell_to_end(&mut self) {
        self.told_to_end = true;
    }

    /// The next step at `now`.
    #[inline(always)]
    pub fn next(&mut self, now: Nanos) -> Step {
        if !self.counting && now >= self.count_from {
            self.counting = true;
            self.tally.restart(now);
        }
        if now >= self.end_by || self.told_to_end {
            return Step::Drain(Then::Finish);
        }
        if self.job.think.time > Nanos::ZERO && self.think_is_due(now) {
            return Step::Drain(Then::Think);
        }
        if self.sync_is_due() {
            return Step::Sync;
        }
        let unit = match self.put_off {
            Some(unit) => {
                self.put_off = None;
                unit
            }
            None => match self.pattern.next() {
                None => return Step::Drain(Then::EndPass),
                Some(unit) => unit,
            },
        };
        if unit.wrapped && self.drops_pages() {
            self.put_off = Some(IoUnit { wrapped: false, ..unit });
            return Step::Drain(Then::Drop(unit.file));
        }
        if let Some(rate) = &mut self.rate {
            let due = self.started.saturating_add(rate.due(unit.direction));
            if due > now {
                self.put_off = Some(unit);
                return Step::Drain(Then::Pace(due.min(self.end_by)));
            }
            rate.issued(unit.direction, unit.len);
        }
        Step::Begin(unit)
    }

    /// An I/O has started.
    #[inline]
    pub fn begun(&mut self, direction: Direction) {
        if direction == Direction::Write {
            self.wrote = true;
            self.unsynced += 1;
        }
        self.since_think += u32::from(self.job.think.after == ThinkAfter::Issue);
    }

    /// Records a call that submitted `ios` I/Os.
    #[inline]
    pub fn submitted(&mut self, ios: u32) {
        self.tally.submit_levels[Tally::batch_level(ios)] += 1;
    }

    /// Records a batch of `ios` reaped I/Os.
    #[inline]
    pub fn collected(&mut self, ios: u32) {
        self.tally.complete_levels[Tally::batch_level(ios)] += 1;
    }

    /// An I/O was reaped.
    #[inline]
    pub fn reaped(&mut self, unit: &IoUnit, times: IoTimes) {
        let queued = self.job.queueing.engine.is_queued();
        self.tally.io(unit.direction as usize, unit.len.into(), times, queued);
        self.since_think += u32::from(self.job.think.after == ThinkAfter::Complete);
    }

    /// The priority of an I/O (`cmdprio_percentage`); a new random draw with each call.
    #[inline(always)]
    pub fn priority(&mut self, direction: Direction) -> IoPrio {
        let priorities = &self.job.priorities;
        let percent = priorities.raised_percent[direction];
        if percent > 0 && random::chance(&mut self.priorities, percent) {
            priorities.raised[direction]
        } else {
            priorities.base
        }
    }

    #[inline]
    fn think_is_due(&self, now: Nanos) -> bool {
        let think = &self.job.think;
        (think.blocks > 0 && self.since_think >= think.blocks)
            || (think.io_time > Nanos::ZERO && now.saturating_sub(self.think_end) >= think.io_time)
    }

    /// Thinks from `now` on; the CPU is busy with it until `spun`. Returns the end of the pause.
    pub fn think(&mut self, now: Nanos, spun: Nanos) -> Nanos {
        self.since_think = 0;
        self.think_end = (now + self.job.think.time).max(spun).min(self.end_by.max(now));
        if let Some(rate) = &mut self.rate {
            for direction in Direction::ALL {
                rate.paused(direction, self.think_end - now);
            }
        }
        self.think_end
    }

    #[inline]
    fn sync_is_due(&self) -> bool {
        let durability = &self.job.durability;
        let due = |every| every > 0 && self.unsynced >= every;
        due(durability.fsync_every) || due(durability.fdatasync_every)
    }

    /// A sync that is due is one of the file's times too: fsync, not fdatasync.
    pub fn syncs_times(&self) -> bool {
        let every = self.job.durability.fsync_every;
        every > 0 && self.unsynced >= every
    }

    /// A sync that was due took `latency`.
    pub fn synced(&mut self, latency: Nanos) {
        self.tally.sync(latency);
        self.unsynced = 0;
    }

    /// At the end of a pass: written files must be synced. Report it by [`Issuer::synced_at_end`].
    pub fn owes_sync(&self) -> bool {
        let durability = &self.job.durability;
        self.wrote && (durability.end_fsync || durability.fsync_on_close)
    }

    /// The sync at the end of a pass is done.
    pub fn synced_at_end(&mut self) {
        self.wrote = false;
    }

    /// Starts another pass, if there is one.
    pub fn begin_pass(&mut self) -> bool {
        self.pattern.begin_pass()
    }

    /// fio drops its files' pages before it starts them again.
    pub fn drops_pages(&self) -> bool {
        self.job.invalidate && !self.job.queueing.direct
    }

    /// When it started, or will start.
    pub fn started(&self) -> Nanos {
        self.started
    }

    /// The measurements, with CPU times and sleeps at 0.
    pub fn result(&mut self, ended: Nanos) -> JobResult {
        let job = &self.job;
        let [read, write, trim] = self.tally.directions(ended);
        let (sync_lat, sync_hist) = self.tally.syncs();
        JobResult {
            name: job.name.clone(),
            group: job.group,
            group_reporting: job.reporting.group_reporting,
            options: job.given.clone(),
            percentiles: job.reporting.percentiles.clone(),
            start_ns: self.started.0,
            end_ns: ended.0,
            read,
            write,
            trim,
            sync_lat,
            sync_hist,
            depth_levels: self.tally.depth_levels,
            submit_levels: self.tally.submit_levels,
            complete_levels: self.tally.complete_levels,
            latency_levels: self.tally.latency_levels(),
            ..JobResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fio::jobfile::{self, Bare};
    use crate::units::Bytes;
    use crate::workload::plan;

    /// The steps of a job whose I/Os take `io` each, one letter per step: begin, sync, think, pace,
    /// drop, end of a pass, finish. And the time of the end.
    fn steps(options: &str, io: Nanos) -> (String, Nanos) {
        let text = format!("[a]\nbs=4k\n{options}\n");
        let mut machine = Bare { memory_mib: 1024, cpus: 4 };
        let file = jobfile::parse(&text, "a.fio", &mut machine, Default::default()).expect("a good job");
        let plan = plan::plan(&file, Bytes(1 << 30), 1).expect("it fits");
        let mut issuer = Issuer::new(&plan.processes[0], 1);
        let (mut steps, mut now) = (String::new(), Nanos::ZERO);
        issuer.start(now);
        loop {
            let step = issuer.next(now);
            match step {
                Step::Begin(unit) => {
                    issuer.begun(unit.direction);
                    let start = now;
                    now += io;
                    issuer.reaped(&unit, IoTimes { start, issued: start, reaped: now });
                }
                Step::Sync => issuer.synced(Nanos::ZERO),
                Step::Drain(Then::Think) => now = issuer.think(now, now),
                Step::Drain(Then::Pace(until)) => now = until,
                Step::Drain(_) => {}
            }
            steps.push(match step {
                Step::Begin(_) => 'b',
                Step::Sync => 's',
                Step::Drain(Then::Think) => 't',
                Step::Drain(Then::Pace(_)) => 'p',
                Step::Drain(Then::Drop(_)) => 'd',
                Step::Drain(Then::EndPass) => 'e',
                Step::Drain(Then::Finish) => 'f',
            });
            let ends = step == Step::Drain(Then::EndPass) && !issuer.begin_pass();
            if ends || step == Step::Drain(Then::Finish) {
                return (steps, now);
            }
        }
    }

    const MS: Nanos = Nanos::from_millis(1);

    #[test]
    fn a_pass_ends_with_the_size_and_is_repeated_as_loops_say() {
        assert_eq!(steps("size=16k", MS), ("bbbbe".to_owned(), Nanos::from_millis(4)));
        assert_eq!(steps("size=8k\nloops=3", MS).0, "bbebbebbe");
    }

    #[test]
    fn syncs_come_after_so_many_writes_and_think_times_after_so_many_ios() {
        assert_eq!(steps("rw=write\nsize=32k\nfsync=3", MS).0, "bbbsbbbsbbe");
        assert_eq!(steps("rw=read\nsize=32k\nfsync=3", MS).0, "bbbbbbbbe");
        let think = "size=32k\nthinktime=5000\nthinktime_blocks=4";
        assert_eq!(steps(think, MS), ("bbbbtbbbbte".to_owned(), Nanos::from_millis(18)));
    }

    #[test]
    fn a_limited_rate_is_kept_where_the_disk_is_faster() {
        assert_eq!(steps("size=16k\nrate_iops=100", MS), ("bpbpbpbe".to_owned(), Nanos::from_millis(31)));
        assert_eq!(steps("size=16k\nrate_iops=100", Nanos::from_millis(10)).0, "bbbbe");
    }

    #[test]
    fn a_runtime_ends_it_and_a_file_begun_anew_loses_its_pages() {
        let timed = "size=8k\ntime_based\nruntime=3ms";
        assert_eq!(steps(timed, MS).0, "bbdbf");
        assert_eq!(steps(&format!("{timed}\ndirect=1"), MS).0, "bbbf");
        assert_eq!(
            steps("size=8k\ntime_based\nruntime=3ms\nthinktime=9000", MS),
            ("btf".to_owned(), Nanos::from_millis(3))
        );
    }
}
