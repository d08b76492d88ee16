//! The longest wait of a command in the disk, from the disk's own parameters.
//!
//! When a command's deadline passes, only earlier commands and the arm's current work still go first
//! ([`super::deadline`]). So it waits at most for
//!
//! * its deadline;
//! * the controller and the link, once for each command that the disk has;
//! * the arm, once for each command that the disk has and once for its current work: the longest seek, a
//!   revolution until the sector comes, another one if a part of a physical sector is written, the passing of
//!   the sectors with the changes of track between;
//! * the writing of all data in the write cache, piece by piece, if it or a command before it is a
//!   flush or a write that finds the cache full.
//!
//! On a drive that takes batches it may wait as long again for the others of its batch.
//!
//! A read has that last part only if there are such commands. The bound is safe, not tight: no workload makes
//! every seek the longest.

use super::HddConfig;
use super::arm::DESTAGE_SECTORS;
use blklab_base::units::Nanos;

/// The longest time from a command's submission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestWait {
    /// While the disk has only reads, and no data to write except one piece in progress.
    pub reads: Nanos,
    /// Under any workload.
    pub any: Nanos,
}

impl HddConfig {
    /// With at most `depth` commands in the disk, none longer than `largest` sectors.
    pub(crate) fn longest_wait(&self, depth: u64, largest: u64) -> LongestWait {
        let before = self.read_overhead_ns.iter().chain(&self.read_hit_ns).chain(&self.write_overhead_ns);
        let before = before.fold(self.write_data_ns.unwrap_or(0), |most, ns| most.max(*ns));
        let after = self.read_end_ns.max(self.write_reselect_ns + self.write_end_ns);
        let overhead = before + self.read_reselect_ns + after;
        // The link carries a command's data once; reads wait for the link again with their last block.
        let link = (2 * largest * self.link_fx.max(self.link_write_fx)) >> 16;
        let before = self.deadline_ns + depth * (overhead + link);
        let (at_arm, sectors) = (depth + 1, depth * largest + largest.max(DESTAGE_SECTORS));
        let reads = before + self.arm_ns(at_arm, sectors);
        // Each command of a batch has been served by its own bound, and all were there when the batch began.
        let batch = if self.batch > 1 { 2 } else { 1 };
        if !self.write_cache {
            return LongestWait { reads: Nanos(batch * reads), any: Nanos(batch * reads) };
        }
        // Extents in the cache, plus those of admitted writes and of extents cut in two.
        let extents = self.write_cache_extents as u64 + 3 * depth + 1;
        let data = self.write_cache_sectors + depth * largest;
        let pieces = at_arm + extents + data / DESTAGE_SECTORS;
        let any = before + self.arm_ns(pieces, sectors + data);
        LongestWait { reads: Nanos(batch * reads), any: Nanos(batch * any) }
    }

    /// The longest time of the arm for `pieces` with this total of sectors.
    fn arm_ns(&self, pieces: u64, sectors: u64) -> u64 {
        let turn = self.geometry.turn_ns;
        let settle = self.write_settle_ns.max(0) as u64;
        let longest = (self.seek.longest_ns() + self.head_switch_ns).max(self.write_seek_min_ns);
        let piece = longest + settle + 2 * turn;
        let (sector_fx, tracks) = self.geometry.slowest(sectors);
        let change = self.seek.longest_within(self.geometry.step_max()).max(self.head_switch_ns);
        let changes = (tracks + pieces) * (change + settle + turn);
        pieces * piece + ((u128::from(sectors) * u128::from(sector_fx)) >> 32) as u64 + changes
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::HDD;
    use super::super::super::{Command, Disk, DiskModel, Op, Tag};
    use blklab_base::units::{Nanos, Sector};
    use proptest::prelude::*;

    /// A constant number of commands of one kind in the disk.
    #[derive(Clone, Copy, Debug)]
    struct Flow {
        op: Op,
        fua: bool,
        sequential: bool,
        sectors: u32,
        in_flight: u32,
        first: u64,
    }

    fn model(overrides: &[(&str, &str)]) -> DiskModel {
        let model = DiskModel::parse(HDD, "test").unwrap();
        overrides.iter().fold(model, |m, (key, value)| m.with_override(key, value).unwrap())
    }

    /// Keeps the flows at the disk for `span`; returns each one's waits, rising. At the end all commands
    /// complete.
    fn waits(model: &DiskModel, flows: &[Flow], span: Nanos, seed: u64) -> Vec<Vec<Nanos>> {
        let mut disk = model.build(seed);
        let capacity = disk.limits().capacity.0;
        let mut state = seed | 1;
        let mut next: Vec<u64> = flows.iter().map(|flow| flow.first).collect();
        let mut out: Vec<(usize, Nanos)> = Vec::new();
        let mut waits = vec![Vec::new(); flows.len()];
        let mut free: Vec<(u32, usize)> = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            for _ in 0..flow.in_flight {
                free.push((out.len() as u32, number));
                out.push((number, Nanos::ZERO));
            }
        }
        let (mut now, mut done, mut left) = (Nanos::ZERO, Vec::new(), out.len());
        loop {
            for (tag, number) in free.drain(..) {
                let flow = flows[number];
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let places = capacity - u64::from(flow.sectors);
                let sector = if flow.sequential { next[number] % places } else { (state >> 20) % places };
                next[number] = sector + u64::from(flow.sectors);
                let (sectors, sector) = if flow.op == Op::Flush { (0, 0) } else { (flow.sectors, sector) };
                out[tag as usize].1 = now;
                disk.submit(
                    now,
                    Command { tag: Tag(tag), op: flow.op, sector: Sector(sector), sectors, fua: flow.fua },
                );
            }
            if left == 0 {
                waits.iter_mut().for_each(|waits| waits.sort());
                return waits;
            }
            now = disk.next_event();
            assert!(now != Nanos::NEVER, "the disk forgot a command");
            disk.advance(now, &mut done);
            for completion in done.drain(..) {
                let (number, submitted) = out[completion.tag.0 as usize];
                waits[number].push(completion.at - submitted);
                if now < span {
                    free.push((completion.tag.0, number));
                } else {
                    left -= 1;
                }
            }
        }
    }

    fn flow() -> impl Strategy<Value = Flow> {
        let op = prop_oneof![4 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Flush)];
        (op, any::<bool>(), any::<bool>(), 0u32..8, 1u32..9, 0u64..900_000).prop_map(
            |(op, fua, sequential, size, in_flight, first)| Flow {
                op,
                fua: fua && op == Op::Write,
                sequential,
                sectors: 8 << size,
                in_flight,
                first,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_command_waits_longer_than_the_bound(
            flows in prop::collection::vec(flow(), 1..5), write_cache: bool, read_ahead: bool,
            policy in 0usize..4, plan in 1u32..10, burst in 1u32..40, serpentine: bool, deadline in 20u32..400, batch in 1u32..64,
            cache_kib in 64u32..2048, extents in 2u32..64, linger in 0u32..200,
            taken in 1u32..40, percent in 1u32..101, facts: bool, seed: u64,
        ) {
            let on = |flag| if flag { "on" } else { "off" };
            let model = model(&[
                ("write_cache", on(write_cache)), ("read_ahead", on(read_ahead)), ("ncq_ageing", "0"),
                ("ncq_policy", ["fcfs", "clook", "sstf", "sptf"][policy]),
                ("ncq_plan", &plan.to_string()), ("ncq_look_ahead_percent", &percent.to_string()), ("destage_burst", &burst.to_string()),
                ("mapping", if serpentine { "serpentine" } else { "plain" }),
                ("ncq_deadline_ms", &deadline.to_string()), ("ncq_deadline_batch", &batch.to_string()),
                ("write_cache_kib", &cache_kib.to_string()), ("write_cache_extents", &extents.to_string()),
                ("ncq_linger_ms", &linger.to_string()), ("ncq_batch", &taken.to_string()), ("link_held", on(facts)),
                ("read_ahead_ends_sector", on(facts)), ("write_reselect_us", if facts { "300" } else { "0" }),
            ]);
            let depth = flows.iter().map(|flow| flow.in_flight).sum();
            let largest = flows.iter().map(|flow| flow.sectors).max().unwrap();
            let bound = model.longest_wait(depth, largest).unwrap();
            let only_reads = flows.iter().all(|flow| flow.op == Op::Read);
            let bound = if only_reads { bound.reads } else { bound.any };
            for (flow, waits) in flows.iter().zip(waits(&model, &flows, Nanos::from_secs(12), seed)) {
                let longest = *waits.last().expect("no command ended");
                prop_assert!(longest <= bound, "{flow:?}: {longest:?} of {bound:?}");
            }
        }
    }

    #[test]
    fn a_read_beside_a_stream_waits_for_its_deadline_and_then_some_go_through_at_once() {
        let stream =
            Flow { op: Op::Read, fua: false, sequential: true, sectors: 1_024, in_flight: 2, first: 0 };
        let random = Flow { sequential: false, sectors: 8, in_flight: 1, first: 500_000, ..stream };
        let model = model(&[("ncq_deadline_ms", "1500"), ("ncq_deadline_batch", "10")]);
        let found = waits(&model, &[stream, random], Nanos::from_secs(60), 1);
        let (reads, longest) = (found[1].len(), found[1][found[1].len() - 1]);
        let bound = model.longest_wait(3, 1_024).unwrap().reads;
        assert!(longest >= Nanos::from_millis(1_500) && longest <= bound, "{longest:?} of {bound:?}");
        // After each deadline ten reads, then the stream again.
        let rounds = reads as f64 / 10.0;
        assert!((20.0..40.0).contains(&rounds), "{reads} reads in a minute");
        let bytes = found[0].len() * 1_024 * 512;
        assert!(bytes > 60 * 20_000_000, "the stream got {} MB/s", bytes / 60_000_000);
    }

    #[test]
    fn a_read_beside_a_stream_with_one_read_in_flight_waits_only_on_a_drive_that_lingers() {
        let stream =
            Flow { op: Op::Read, fua: false, sequential: true, sectors: 256, in_flight: 1, first: 0 };
        let random = Flow { sequential: false, sectors: 8, first: 500_000, ..stream };
        let minute = |linger| {
            let deadline = [("ncq_deadline_ms", "1500"), ("ncq_deadline_batch", "10")];
            let model = model(&[&deadline[..], &[("ncq_linger_ms", linger)]].concat());
            let bound = model.longest_wait(2, 256).unwrap().reads;
            let found = waits(&model, &[stream, random], Nanos::from_secs(60), 1);
            let longest = found[1][found[1].len() - 1];
            assert!(longest <= bound, "{longest:?} of {bound:?}");
            (found[0].len(), found[1].len(), longest)
        };
        let (_, reads, longest) = minute("0");
        assert!(reads > 2_000 && longest < Nanos::from_millis(100), "{reads} reads, longest {longest:?}");
        let (streamed, reads, longest) = minute("5");
        assert!((200..400).contains(&reads), "{reads} reads: ten after each deadline");
        assert!(longest >= Nanos::from_millis(1_500), "{longest:?}");
        assert!(streamed * 256 * 512 > 60 * 20_000_000, "the stream got {streamed} reads");
    }

    #[test]
    fn after_a_deadline_a_drive_that_lingers_serves_the_other_reads_one_after_another() {
        let stream =
            Flow { op: Op::Read, fua: false, sequential: true, sectors: 1_024, in_flight: 2, first: 0 };
        let random = Flow { sequential: false, sectors: 8, in_flight: 1, first: 500_000, ..stream };
        let minute = |linger, flows: &[Flow]| {
            let keys = [("ncq_deadline_ms", "1500"), ("ncq_deadline_batch", "10"), ("ncq_linger_ms", linger)];
            waits(&model(&keys), flows, Nanos::from_secs(60), 1)
        };
        let alone = minute("0", &[random]).remove(0);
        let typical =
            |waits: &[Nanos]| waits[waits.len() / 2].as_secs_f64() / alone[alone.len() / 2].as_secs_f64();
        let [stays, goes] = ["10", "0"].map(|linger| minute(linger, &[stream, random]).remove(1));
        // Of ten reads one has waited for the deadline; a few more wait when the stream begins again.
        let long = stays.iter().filter(|wait| **wait > Nanos::from_millis(128)).count();
        assert!((8..=10).contains(&(stays.len() / long)), "{long} of {}", stays.len());
        assert!(typical(&stays) < 1.1, "{} times that of reads alone", typical(&stays));
        assert!(typical(&goes) > 1.5, "the stream is served between two: {}", typical(&goes));
        let bound = model(&[("ncq_deadline_ms", "1500")]).longest_wait(3, 1_024).unwrap().reads;
        assert!(stays[stays.len() - 1] <= bound, "{:?} of {bound:?}", stays[stays.len() - 1]);
    }

    #[test]
    fn a_drive_lingers_also_while_its_read_ahead_serves_the_stream() {
        let mut disk = model(&[("ncq_deadline_ms", "300"), ("ncq_linger_ms", "5")]).build(1);
        let read = |tag, sector| Command {
            tag: Tag(tag),
            op: Op::Read,
            sector: Sector(sector),
            sectors: 8,
            fua: false,
        };
        let mut done = Vec::new();
        // A read of the stream each 2 ms, slower than the medium; beside it another from 40 ms on.
        for step in 0..200u64 {
            let now = Nanos::from_millis(2 * step);
            while disk.next_event() <= now {
                let event = disk.next_event();
                disk.advance(event, &mut done);
            }
            disk.submit(now, read(0, 8 * step));
            if step == 20 {
                disk.submit(now, read(1, 500_000));
            }
        }
        let ended = done.iter().find(|completion| completion.tag == Tag(1)).expect("its deadline").at;
        let waited = ended - Nanos::from_millis(40);
        assert!(waited > Nanos::from_millis(300) && waited < Nanos::from_millis(340), "{waited:?}");
    }

    #[test]
    fn a_longer_deadline_or_more_to_serve_before_makes_the_bound_longer() {
        let bound = |key: &str, value: &str, depth, largest| {
            model(&[(key, value)]).longest_wait(depth, largest).unwrap()
        };
        let base = bound("ncq_deadline_ms", "1000", 4, 8);
        assert!(base.reads > Nanos::from_millis(1_000) && base.reads < Nanos::from_millis(1_400), "{base:?}");
        assert_eq!(bound("ncq_deadline_ms", "2000", 4, 8).reads - base.reads, Nanos::from_millis(1_000));
        assert!(bound("ncq_deadline_ms", "1000", 5, 8).any > base.any);
        assert!(bound("ncq_deadline_ms", "1000", 4, 64).reads > base.reads);
        let through = model(&[("ncq_deadline_ms", "1000"), ("write_cache", "off")]);
        let through = through.longest_wait(4, 8).unwrap();
        assert_eq!(through.any, through.reads);
    }
}
