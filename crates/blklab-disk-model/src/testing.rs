//! Small disks for tests.

/// A hard disk of half a GiB, 7,200 rpm.
pub const HDD: &str = r#"
kind = "hdd"
name = "Test disk"
summary = "small disk for tests"
transport = "sata"
capacity_sectors = 1000000
link_mb_s = 300
rpm = 7200
heads = 3
zones = 5
outer_sectors_per_track = 500
inner_sectors_per_track = 300
seek_track_to_track_ms = 0.8
seek_average_ms = 6
seek_full_stroke_ms = 12
write_settle_ms = 0.5
head_switch_ms = 0.6
track_skew_ms = 0.8
cylinder_skew_ms = 1.0
cache_kib = 8192
cache_segments = 8
read_ahead_kib = 512
write_cache_kib = 2048
write_cache_extents = 64
read_overhead_us = 100
read_hit_us = 50
write_overhead_us = 50
"#;

/// 64 MiB of flash.
pub const SSD: &str = r#"
kind = "ssd"
name = "Test flash"
summary = "small flash disk for tests"
transport = "nvme"
capacity_sectors = 131072
link_mb_s = 3000
queue_depth = 256
channels = 2
dies_per_channel = 2
planes = 2
page_kib = 16
pages_per_block = 8
read_us = [50, 70]
program_us = [400, 900]
erase_ms = 2
channel_mb_s = 400
command_us = 1
read_latency_us = 8
write_latency_us = 5
write_buffer_kib = 1024
overprovision_percent = 16
flush_us = 200
"#;

/// Half a GiB on which every command takes a millisecond.
pub const CONSTANT: &str = r#"
kind = "constant"
name = "Test disk"
summary = "disk of constant service time for tests"
transport = "sas"
capacity_sectors = 1000000
service_us = 1000
"#;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{AnyDisk, Command, Completion, Disk, DiskModel, Op, Tag};
use blklab_base::units::{Nanos, Sector};

/// One step of a random load: operation, place, length, whether FUA, pause before it.
pub type Step = (u8, u64, u32, bool, u64);

/// A disk with a host that records its commands.
pub struct Harness {
    pub disk: AnyDisk,
    pub now: Nanos,
    tags: u32,
    out: BTreeMap<u32, (Nanos, Command)>,
    done: Vec<Completion>,
}

impl Harness {
    pub fn new(model: &DiskModel) -> Harness {
        Harness::with(model.build(1))
    }

    pub fn with(disk: AnyDisk) -> Harness {
        Harness { disk, now: Nanos::ZERO, tags: 0, out: BTreeMap::new(), done: Vec::new() }
    }

    pub fn submit(&mut self, op: Op, sector: u64, sectors: u32, fua: bool) {
        let command = Command { tag: Tag(self.tags), op, sector: Sector(sector), sectors, fua };
        self.tags += 1;
        self.out.insert(command.tag.0, (self.now, command));
        self.disk.submit(self.now, command);
    }

    /// Performs the next event; returns the completions.
    fn step(&mut self) -> Vec<(Completion, Command)> {
        let at = self.disk.next_event();
        assert!(at != Nanos::NEVER, "the disk forgot {:?}", self.out);
        assert!(at >= self.now, "time ran back from {:?} to {at:?}", self.now);
        self.now = at;
        self.disk.advance(at, &mut self.done);
        let mut ended = Vec::new();
        for completion in std::mem::take(&mut self.done) {
            let (submitted, command) =
                self.out.remove(&completion.tag.0).expect("a command ended twice, or was never asked for");
            assert!(completion.at >= submitted && completion.at == at);
            ended.push((completion, command));
        }
        ended
    }

    /// Waits until one command ends.
    pub fn drain_one(&mut self) -> Completion {
        loop {
            if let Some((completion, _)) = self.step().into_iter().next() {
                return completion;
            }
        }
    }

    /// Waits until all commands have ended; returns their order.
    pub fn drain(&mut self) -> Vec<Completion> {
        let mut order = Vec::new();
        while !self.out.is_empty() {
            order.extend(self.step().into_iter().map(|(completion, _)| completion));
        }
        order
    }

    /// Lets time pass without new commands.
    pub fn rest(&mut self, span: Nanos) {
        let until = self.now + span;
        while self.disk.next_event() <= until {
            self.step();
        }
        self.now = until;
        self.disk.advance(until, &mut self.done);
    }

    /// A random workload: after a flush, and after a write-through, the written data survive.
    pub fn run(&mut self, steps: &[Step]) -> Result<(), TestCaseError> {
        let depth = self.disk.limits().queue_depth as usize;
        // Writes that ended before the newest flush was submitted, with that flush.
        let mut ended: Vec<Command> = Vec::new();
        let mut flushes: BTreeMap<u32, Vec<Command>> = BTreeMap::new();
        let mut left = steps.iter();
        loop {
            let next = if self.out.len() < depth { left.next() } else { None };
            if let Some((kind, sector, sectors, fua, pause)) = next {
                let until = self.now + Nanos(*pause);
                while self.disk.next_event() <= until {
                    self.note(&mut ended, &mut flushes)?;
                }
                self.now = until;
                match kind {
                    0..=2 => self.submit(Op::Read, *sector, *sectors, false),
                    3..=5 => self.submit(Op::Write, *sector, *sectors, *fua),
                    6 => {
                        flushes.insert(self.tags, ended.clone());
                        self.submit(Op::Flush, 0, 0, false);
                    }
                    _ => self.submit(Op::Discard, *sector, *sectors, false),
                }
            } else if self.out.is_empty() {
                return Ok(());
            } else {
                self.note(&mut ended, &mut flushes)?;
            }
        }
    }

    fn note(
        &mut self,
        ended: &mut Vec<Command>,
        flushes: &mut BTreeMap<u32, Vec<Command>>,
    ) -> Result<(), TestCaseError> {
        for (_, command) in self.step() {
            let written_since = |w: &Command| {
                // Overlapping writes in flight have no order.
                let mut later =
                    ended.iter().filter(|e| e.tag.0 > w.tag.0).chain(self.out.values().map(|(_, c)| c));
                // A disk reports blocks of 4 KiB: a write of a block's other part counts.
                let (first, last) = (w.sector.0 / 8, w.sector.offset(w.sectors).0.div_ceil(8));
                later.any(|e| e.sector.0 / 8 < last && first < e.sector.offset(e.sectors).0.div_ceil(8))
            };
            match command.op {
                Op::Write => {
                    if command.fua && !written_since(&command) {
                        prop_assert!(self.disk.is_durable(command.sector, command.sectors), "{command:?}");
                    }
                    ended.push(command);
                }
                Op::Flush => {
                    for write in flushes.remove(&command.tag.0).unwrap_or_default() {
                        if !written_since(&write) {
                            prop_assert!(self.disk.is_durable(write.sector, write.sectors), "{write:?}");
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
