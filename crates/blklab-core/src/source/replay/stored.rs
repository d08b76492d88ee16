//! A plan as bytes, which blklab writes and its own program in a guest reads.
//!
//! Little-endian: a magic number; the processes, each with class, level and name; the cgroups, each with
//! whether its weight was given, its weight and its path; the I/Os, each with as many bytes.

use super::{Plug, ReplayIo, Start, THE_RECORDING};
use crate::device::{DeviceId, Location};
use crate::request::{IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::CgroupId;
use crate::units::{Nanos, Sector};
use crate::workload::cgroups::Cgroups;

const MAGIC: &[u8; 8] = b"blkplan5";

/// Stands for an I/O that follows no other.
const NONE: u32 = u32::MAX;

const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Discard];
const PLUGS: [Plug; 3] = [Plug::None, Plug::Ends, Plug::GoesOn];
const CLASSES: [PrioClass; 4] =
    [PrioClass::None, PrioClass::RealTime, PrioClass::BestEffort, PrioClass::Idle];

/// I/Os to replay on one disk, and their processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The I/Os, as in a [`super::ReplayPlan`].
    pub ios: Vec<ReplayIo>,
    /// Each process's name and priority, by id.
    pub processes: Vec<(String, IoPrio)>,
    /// The cgroups that the I/Os name.
    pub cgroups: Cgroups,
}

impl Load {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let count = |count: usize| u32::try_from(count).expect("a plan has fewer").to_le_bytes();
        bytes.extend(count(self.processes.len()));
        for (name, prio) in &self.processes {
            bytes.extend([number(&CLASSES, prio.class), prio.level]);
            bytes.extend(count(name.len()));
            bytes.extend(name.as_bytes());
        }
        bytes.extend(count(self.cgroups.all().len()));
        for cgroup in self.cgroups.all() {
            bytes.push(cgroup.weighed_by.is_some().into());
            bytes.extend(cgroup.group.weight.to_le_bytes());
            bytes.extend(count(cgroup.path.len()));
            bytes.extend(cgroup.path.as_bytes());
        }
        bytes.extend(count(self.ios.len()));
        for io in &self.ios {
            let Start { not_before, after, follows, drains, if_begun, unless, goes_on, think } = io.start;
            bytes.extend(not_before.0.to_le_bytes());
            bytes.extend(think.0.to_le_bytes());
            bytes.extend(io.place.sector.0.to_le_bytes());
            bytes.extend(after.to_le_bytes());
            bytes.extend(follows.unwrap_or(NONE).to_le_bytes());
            bytes.extend(unless.unwrap_or(NONE).to_le_bytes());
            bytes.extend(io.process.0.to_le_bytes());
            bytes.extend(io.sectors.to_le_bytes());
            bytes.extend(io.cgroup.0.to_le_bytes());
            bytes.extend([number(&OPS, io.op), number(&PLUGS, io.plug)]);
            let own = [io.sync, io.fua, io.preflush, io.counted];
            bytes.extend([drains, if_begun, goes_on].into_iter().chain(own).map(u8::from));
        }
        bytes
    }

    /// Reads what [`Load::to_bytes`] has written; `None` for other bytes.
    pub fn of_bytes(bytes: &[u8]) -> Option<Load> {
        let mut reader = Reader(bytes);
        if reader.take()? != *MAGIC {
            return None;
        }
        let mut load = Load::default();
        for _ in 0..reader.word()? {
            let class = reader.one_of(&CLASSES)?;
            let [level] = reader.take()?;
            load.processes.push((reader.text()?, IoPrio { class, level }));
        }
        for number in 0..reader.word()? {
            let [is_weighed] = reader.take()?;
            let weight = reader.half()?;
            let id = load.cgroups.place(&reader.text()?);
            if u32::from(id.0) != number {
                return None;
            }
            if is_weighed != 0 {
                load.cgroups.weigh(id, weight, THE_RECORDING).ok()?;
            }
        }
        for _ in 0..reader.word()? {
            let (not_before, think, sector) = (reader.long()?, reader.long()?, reader.long()?);
            let (after, follows, unless) = (reader.word()?, reader.word()?, reader.word()?);
            let (process, sectors, cgroup) = (reader.word()?, reader.word()?, CgroupId(reader.half()?));
            let (op, plug) = (reader.one_of(&OPS)?, reader.one_of(&PLUGS)?);
            let [drains, if_begun, goes_on] = reader.take()?.map(|flag: u8| flag != 0);
            let [sync, fua, preflush, counted] = reader.take()?.map(|flag: u8| flag != 0);
            load.ios.push(ReplayIo {
                start: Start {
                    not_before: Nanos(not_before),
                    after,
                    follows: (follows != NONE).then_some(follows),
                    drains,
                    if_begun,
                    unless: (unless != NONE).then_some(unless),
                    goes_on,
                    think: Nanos(think),
                },
                process: ProcessId(process),
                cgroup,
                op,
                place: Location { device: DeviceId(0), sector: Sector(sector) },
                sectors,
                sync,
                fua,
                preflush,
                counted,
                plug,
            });
        }
        let (known, cgroups) = (load.processes.len(), load.cgroups.all().len());
        let is_known = |io: &ReplayIo| (io.process.0 as usize) < known && usize::from(io.cgroup.0) < cgroups;
        (reader.0.is_empty() && load.ios.iter().all(is_known)).then_some(load)
    }
}

fn number<T: PartialEq + Copy>(all: &[T], one: T) -> u8 {
    all.iter().position(|&other| other == one).expect("all are listed") as u8
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.word()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let [number] = self.take()?;
        all.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prio() -> impl Strategy<Value = IoPrio> {
        (prop::sample::select(&CLASSES), 0..8_u8).prop_map(|(class, level)| IoPrio { class, level })
    }

    fn io() -> impl Strategy<Value = ReplayIo> {
        let other = || prop::option::of(0..NONE);
        let start = (any::<[u64; 2]>(), any::<u32>(), other(), other(), any::<[bool; 3]>());
        let what = (0..2_u32, 0..3_u16, prop::sample::select(&OPS), any::<u64>(), any::<u32>());
        let how = (any::<[bool; 4]>(), prop::sample::select(&PLUGS));
        (start, what, how).prop_map(|(start, (process, cgroup, op, sector, sectors), how)| {
            let ([not_before, think], after, follows, unless, [drains, if_begun, goes_on]) = start;
            let ([sync, fua, preflush, counted], plug) = how;
            let (not_before, think) = (Nanos(not_before), Nanos(think));
            ReplayIo {
                start: Start { not_before, after, follows, drains, if_begun, unless, goes_on, think },
                process: ProcessId(process),
                cgroup: CgroupId(cgroup),
                op,
                place: Location { device: DeviceId(0), sector: Sector(sector) },
                sectors,
                sync,
                fua,
                preflush,
                counted,
                plug,
            }
        })
    }

    fn load() -> impl Strategy<Value = Load> {
        let processes = prop::collection::vec(("\\PC{0,9}", prio()), 2..4);
        let weight = prop::option::of(10..=1000_u16);
        (prop::collection::vec(io(), 0..5), processes, weight).prop_map(|(ios, processes, weight)| {
            let mut cgroups = Cgroups::default();
            let inner = cgroups.place("a/b");
            if let Some(weight) = weight {
                cgroups.weigh(inner, weight, THE_RECORDING).expect("it has none");
            }
            Load { ios, processes, cgroups }
        })
    }

    proptest! {
        #[test]
        fn a_load_is_read_as_it_was_written(load in load()) {
            prop_assert_eq!(Load::of_bytes(&load.to_bytes()), Some(load));
        }

        #[test]
        fn bytes_that_were_cut_or_are_too_many_are_no_load(load in load(), cut in any::<prop::sample::Index>()) {
            let mut bytes = load.to_bytes();
            bytes.push(0);
            prop_assert_eq!(Load::of_bytes(&bytes), None);
            bytes.truncate(cut.index(bytes.len() - 1));
            prop_assert_eq!(Load::of_bytes(&bytes), None);
        }
    }

    #[test]
    fn an_io_of_a_process_or_cgroup_that_is_not_there_is_no_load() {
        let ios = vec![ReplayIo { process: ProcessId(1), sectors: 8, ..ReplayIo::default() }];
        let processes = vec![(String::new(), IoPrio::default()); 2];
        let mut load = Load { ios, processes, ..Load::default() };
        assert!(Load::of_bytes(&load.to_bytes()).is_some());
        load.ios[0].cgroup = CgroupId(1);
        assert_eq!(Load::of_bytes(&load.to_bytes()), None);
        load.ios[0].cgroup = CgroupId(0);
        load.processes.pop();
        assert_eq!(Load::of_bytes(&load.to_bytes()), None);
    }
}
