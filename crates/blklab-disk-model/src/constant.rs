//! A disk on which every command takes the same time, wherever and however large it is.
//! No real disk behaves like this. It shows only a scheduler's decisions: which request goes first, how long
//! a turn lasts, how many requests are in flight. Up to `queue_depth` commands are served at once, each in
//! that time, as in Linux's `scsi_debug` with `ndelay` and `null_blk` with `completion_nsec`. There is no
//! cache: a write is durable when it completes, and hosts send no flushes; a flush takes the same time.

use std::collections::VecDeque;

use blklab_base::units::{Nanos, Sector};

use super::keys::Values;
use super::{Begins, Command, Completion, Disk, DiskLimits, Tag};

/// The parameters from the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantConfig {
    service: Nanos,
}

impl ConstantConfig {
    pub fn new(values: &Values) -> ConstantConfig {
        ConstantConfig { service: Nanos(values.us("service_us")) }
    }
}

/// A disk of constant service time.
#[derive(Debug)]
pub struct Constant {
    service: Nanos,
    limits: DiskLimits,
    /// Commands with the times at which they end. They all take the same time, so they end in the
    /// order of submission.
    ends: VecDeque<(Nanos, Tag)>,
    busy: Nanos,
    /// `busy` includes the time up to here.
    counted: Nanos,
    begins: Begins,
}

impl Constant {
    pub(super) fn new(config: ConstantConfig, limits: DiskLimits) -> Constant {
        Constant {
            service: config.service,
            limits,
            ends: VecDeque::new(),
            busy: Nanos::ZERO,
            counted: Nanos::ZERO,
            begins: Begins::default(),
        }
    }
}

impl Disk for Constant {
    fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) {
        let end = now + self.service;
        self.busy += end - self.counted.max(now);
        self.counted = end;
        self.begins.note(command.tag, now.0);
        self.ends.push_back((end, command.tag));
    }

    #[inline]
    fn next_event(&self) -> Nanos {
        self.ends.front().map_or(Nanos::NEVER, |&(end, _)| end)
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(&(at, tag)) = self.ends.front()
            && at <= now
        {
            self.ends.pop_front();
            done.push(Completion { tag, at, began: self.begins.of(tag) });
        }
    }

    fn is_durable(&self, _: Sector, _: u32) -> bool {
        true
    }

    fn keep_begins(&mut self) {
        self.begins.keep();
    }

    fn busy(&self) -> Nanos {
        // Includes the time of commands that have not ended yet; no run ends with such commands.
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONSTANT, Harness};
    use super::super::{DiskModel, Op};
    use super::*;

    fn disk(depth: &str, service_us: &str) -> Harness {
        let model = DiskModel::parse(CONSTANT, "test").expect("a good file");
        let model = model.with_override("queue_depth", depth).expect("a good depth");
        Harness::new(&model.with_override("service_us", service_us).expect("a good time"))
    }

    #[test]
    fn every_command_takes_the_same_time_whatever_it_is() {
        let mut disk = disk("1", "500");
        let commands =
            [(Op::Read, 0, 8), (Op::Read, 900_000, 1_024), (Op::Write, 8, 1), (Op::Discard, 0, 65_536)];
        for (turn, (op, sector, sectors)) in (1..).zip(commands) {
            disk.submit(op, sector, sectors, false);
            assert_eq!(disk.drain_one().at, Nanos::from_micros(500 * turn));
        }
        disk.submit(Op::Flush, 0, 0, false);
        assert_eq!(disk.drain_one().at, Nanos::from_micros(2_500));
        assert_eq!(disk.disk.busy(), Nanos::from_micros(2_500));
    }

    #[test]
    fn commands_at_once_do_not_slow_each_other_down() {
        let mut disk = disk("32", "5000");
        for sector in 0..32 {
            disk.submit(Op::Read, sector * 1_000, 8, false);
            disk.rest(Nanos(100));
        }
        let ends: Vec<_> = disk.drain().iter().map(|ended| ended.at).collect();
        let expected: Vec<_> = (0..32).map(|turn| Nanos(5_000_000 + turn * 100)).collect();
        assert_eq!(ends, expected);
        assert_eq!(disk.disk.busy(), Nanos(5_000_000 + 31 * 100), "while at least one is served");
        disk.rest(Nanos::from_millis(3));
        disk.submit(Op::Read, 0, 8, false);
        disk.drain();
        assert_eq!(disk.disk.busy(), Nanos(10_000_000 + 31 * 100));
    }

    #[test]
    fn it_is_rotational_or_not_and_has_no_cache() {
        let model = DiskModel::parse(CONSTANT, "test").expect("a good file");
        assert!(model.limits().rotational && !model.limits().volatile_write_cache);
        let flash = model.with_override("rotational", "off").expect("a flag");
        assert!(!flash.limits().rotational);
        let refused = model.with_override("service_us", "0").unwrap_err();
        assert!(refused.reason.contains("found '0'; expected a number from 0.001 to"), "{refused}");
        let refused = model.with_override("hw_queues", "4").unwrap_err();
        assert!(refused.reason.contains("only nvme has more than one"), "{refused}");
    }
}
