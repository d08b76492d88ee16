//! Recordings without names and places.
//!
//! Names of processes and devices and paths of cgroups become `process-1`, `device-1`, `/cgroup-1` and so on,
//! in the order in which they appear; numbers of processes and cgroups likewise. Areas of the disk change their places within
//! groups, by a secret order: I/Os inside an area stay neighbours, and seeks between groups stay about
//! as far. What stays: times, sizes, operations, priorities, CPUs, order, and the group of each place.

use std::collections::HashMap;

use blklab_base::recorded::{Io, NameId, Names, Tables};
use blklab_base::units::Sector;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Sectors of an area: 64 MiB.
pub(super) const AREA: u64 = 1 << 17;

/// Areas of a group: 4 GiB.
pub(super) const GROUP: u64 = 64;

/// Numbers that are told apart; all later ones are one.
const NUMBERS_MAX: usize = 1 << 20;

/// The order of the areas, and where the recorded disk ends.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    /// It decides the order.
    pub seed: u64,
    /// The end of the disk, or of its last I/O: no I/O moves beyond it.
    pub end: u64,
}

impl Secret {
    /// The place of each area of a group of `count`.
    fn order(self, group: u64, count: u64) -> Vec<u64> {
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ group.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut order: Vec<_> = (0..count).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        order
    }
}

/// Numbers for what was seen, from 1; 0 stays 0.
#[derive(Debug, Default)]
struct Numbers<T>(HashMap<T, u32>);

impl<T: std::hash::Hash + Eq + Default> Numbers<T> {
    fn of(&mut self, old: T) -> u32 {
        if old == T::default() {
            return 0;
        }
        let next = (self.0.len() + 1).min(NUMBERS_MAX) as u32;
        if self.0.len() < NUMBERS_MAX {
            *self.0.entry(old).or_insert(next)
        } else {
            *self.0.get(&old).unwrap_or(&next)
        }
    }
}

/// Replaces names, numbers and places.
pub(super) struct Anonymous {
    secret: Secret,
    tables: Tables,
    /// The new names of old ones.
    processes: HashMap<NameId, NameId>,
    devices: HashMap<NameId, NameId>,
    pids: Numbers<u32>,
    cgroups: Numbers<u64>,
    orders: HashMap<u64, Vec<u64>>,
}

fn renamed(known: &mut HashMap<NameId, NameId>, old: NameId, kind: &str, names: &mut Names) -> NameId {
    if old == NameId::NONE {
        return old;
    }
    *known.entry(old).or_insert_with(|| names.id(&format!("{kind}-{}", names.len())))
}

impl Anonymous {
    pub fn new(secret: Secret) -> Anonymous {
        Anonymous {
            secret,
            tables: Tables::default(),
            processes: HashMap::new(),
            devices: HashMap::new(),
            pids: Numbers::default(),
            cgroups: Numbers::default(),
            orders: HashMap::new(),
        }
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The I/O, from which nothing of the names can be read.
    ///
    /// `has_path`: its cgroup has one.
    pub fn of(&mut self, io: Io, has_path: bool) -> Io {
        let Tables { processes, devices, cgroups } = &mut self.tables;
        let cgroup = self.cgroups.of(io.cgroup).into();
        if has_path {
            cgroups.set(cgroup, &format!("/cgroup-{cgroup}"));
        }
        Io {
            process: renamed(&mut self.processes, io.process, "process", processes),
            device: renamed(&mut self.devices, io.device, "device", devices),
            pid: self.pids.of(io.pid),
            cgroup,
            sector: if io.sectors == 0 { io.sector } else { self.place(io) },
            ..io
        }
    }

    /// The last area of the disk, which is not whole, keeps its place.
    fn place(&mut self, io: Io) -> Sector {
        let end = self.secret.end;
        let (area, inside) = (io.sector.0 / AREA, io.sector.0 % AREA);
        let (group, index) = (area / GROUP, area % GROUP);
        let whole = (end / AREA).saturating_sub(group * GROUP).min(GROUP);
        if index >= whole {
            return io.sector;
        }
        let order = self.orders.entry(group).or_insert_with(|| self.secret.order(group, whole));
        let sector = (group * GROUP + order[index as usize]) * AREA + inside;
        Sector(sector.min(end.saturating_sub(io.sectors.into())))
    }
}
