//! XFS's log: the process that syncs writes it itself.
//!
//! Follows `fs/xfs/xfs_log_cil.c` and `fs/xfs/xfs_log.c` of Linux 7.3. fsync, or without
//! `lazytime` the write, logs the changed times of its inode in memory, in the next checkpoint. After it has written
//! its data it lets a worker push that checkpoint, with all that others have logged, into the current record (an
//! iclog), and writes the record after a flush and durably (`REQ_PREFLUSH`, `REQ_FUA`). The worker takes its turn
//! among the processes: those that are ready before it submit their I/O first. While the record before it
//! is under way, it first waits for that, so that others can add their checkpoints. Only the process that writes the
//! record counts its flush as its own; the others flush once more.
//!
//! Left out: records that are full, and those at the end of the log, which are not split; `xfsaild`; what
//! the log writes after 30 s without use.

use std::collections::VecDeque;

use super::super::page_io::Submitter;
use super::super::world::World;
use super::{Area, Forced, Forcing, Taken};
use crate::block::{BioStream, Manner};
use crate::device::{Device, DeviceId};
use crate::owner::{Actor, Owner};
use crate::pagecache::FileId;
use crate::request::{Bio, Op};
use crate::workload::journal::JournalPlan;

/// The number of a record.
type Record = u32;

/// Where the latest times of an inode are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Logged {
    /// On the disk.
    #[default]
    Durable,
    /// In the next checkpoint.
    Next,
    /// In this record, which is not on the disk yet.
    In(Record),
}

/// What a file's inode has in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Inode {
    /// The tick of its times.
    tick: Option<u64>,
    /// They are not logged (`I_DIRTY_TIME`).
    changed: bool,
    logged: Logged,
}

/// A process that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Until the record is written (`ic_write_wait`).
    Written(Record),
    /// Until it and all before it are (`ic_force_wait`).
    Durable(Record),
}

/// How far a process is with its commit.
#[derive(Clone, Copy, Debug, Default)]
pub enum Progress {
    /// Not begun.
    #[default]
    Begin,
    /// It sleeps until the worker has pushed the next checkpoint (`flush_workqueue`).
    Pushes,
    /// It looks for the record; `has_slept`: it has waited for the one before.
    Looks { record: Record, has_slept: bool },
    /// It submits the record.
    Submits(Record),
    /// It sleeps until the record is durable; `flushed`: it has submitted it.
    Waits { flushed: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Log {
    area: Area,
    /// Times are not logged before fsync.
    lazytime: bool,
    /// By file.
    inodes: Vec<Inode>,
    /// Checkpoints and inodes in the current record.
    checkpoints: u64,
    members: u64,
    /// The number of the current record, which is open.
    current: Record,
    /// Those before it that are not durable, the oldest first, each with whether it is written.
    under_way: VecDeque<(Record, bool)>,
    waits: Vec<(Actor, Wait)>,
    /// Those for which the worker pushes the next checkpoint; and those for which it has, each with the record.
    pushing: Vec<Actor>,
    pushed: Vec<(Actor, Record)>,
}

impl Log {
    /// A log of that many files on a device, with nothing to commit.
    pub fn new(device: DeviceId, plan: JournalPlan, files: usize, lazytime: bool) -> Log {
        Log {
            area: Area::new(device, plan),
            lazytime,
            inodes: vec![Inode::default(); files],
            checkpoints: 0,
            members: 0,
            current: 0,
            under_way: VecDeque::new(),
            waits: Vec::new(),
            pushing: Vec::new(),
            pushed: Vec::new(),
        }
    }

    /// See [`super::Journal::writes`].
    pub fn writes(&mut self, file: FileId, tick: u64) -> Taken {
        let inode = &mut self.inodes[file.index()];
        if inode.tick == Some(tick) {
            return Taken::Yes;
        }
        *inode = Inode { tick: Some(tick), changed: true, ..*inode };
        if self.lazytime { Taken::Yes } else { self.take_times(file) }
    }

    /// See [`super::Journal::take_times`] (`xfs_vn_sync_lazytime`).
    pub fn take_times(&mut self, file: FileId) -> Taken {
        let inode = &mut self.inodes[file.index()];
        if std::mem::take(&mut inode.changed) {
            inode.logged = Logged::Next;
        }
        Taken::Yes
    }

    /// See [`super::force`] (`xfs_fsync_flush_log`).
    pub fn force(
        &mut self,
        forcing: &mut Forcing,
        file: FileId,
        with_times: bool,
        submitter: Submitter,
        world: &mut World,
    ) -> Forced {
        loop {
            forcing.xfs = match forcing.xfs {
                Progress::Begin => {
                    let logged = if with_times { self.inodes[file.index()].logged } else { Logged::Durable };
                    let record = match logged {
                        Logged::Durable => return Forced::Flush,
                        Logged::Next => {
                            self.pushing.push(submitter.actor);
                            world.wake(Actor::Journal, world.now());
                            forcing.xfs = Progress::Pushes;
                            return Forced::Asleep;
                        }
                        Logged::In(record) => record,
                    };
                    Progress::Looks { record, has_slept: false }
                }
                Progress::Pushes => {
                    let place = self.pushed.iter().position(|&(actor, _)| actor == submitter.actor);
                    let Some(place) = place else { return Forced::Asleep };
                    let (_, record) = self.pushed.swap_remove(place);
                    Progress::Looks { record, has_slept: false }
                }
                Progress::Looks { record, has_slept } if record == self.current => {
                    let before = self.under_way.back().copied();
                    if let Some((before, false)) = before.filter(|_| !has_slept) {
                        self.waits.push((submitter.actor, Wait::Written(before)));
                        forcing.xfs = Progress::Looks { record, has_slept: true };
                        return Forced::Asleep;
                    }
                    let device = &mut world.devices[self.area.device];
                    let bio = self.close(submitter, device);
                    forcing.stream = device.begin(world.clock.now(), bio, Manner::AFTER_FLUSH);
                    Progress::Submits(record)
                }
                Progress::Looks { record, .. } if self.is_under_way(record) => {
                    self.waits.push((submitter.actor, Wait::Durable(record)));
                    forcing.xfs = Progress::Waits { flushed: false };
                    return Forced::Asleep;
                }
                Progress::Looks { .. } => {
                    forcing.xfs = Progress::Begin;
                    return Forced::Flush;
                }
                Progress::Submits(record) => {
                    if !self.submit(&mut forcing.stream, submitter, world) {
                        return Forced::Asleep;
                    }
                    forcing.xfs = Progress::Waits { flushed: true };
                    if !self.is_under_way(record) {
                        continue;
                    }
                    self.waits.push((submitter.actor, Wait::Durable(record)));
                    return Forced::Asleep;
                }
                Progress::Waits { flushed } => {
                    forcing.xfs = Progress::Begin;
                    return if flushed { Forced::Done } else { Forced::Flush };
                }
            }
        }
    }

    fn is_under_way(&self, record: Record) -> bool {
        self.under_way.iter().any(|&(other, _)| other == record)
    }

    /// The worker: all that is logged goes to the current record, as one checkpoint (`xlog_cil_push_work`). Appends
    /// to `woken` the actors that wait for that.
    pub fn push(&mut self, woken: &mut Vec<Actor>) {
        if self.pushing.is_empty() {
            return;
        }
        self.checkpoints += 1;
        for inode in self.inodes.iter_mut().filter(|inode| inode.logged == Logged::Next) {
            inode.logged = Logged::In(self.current);
            self.members += 1;
        }
        woken.extend(&self.pushing);
        self.pushed.extend(self.pushing.drain(..).map(|actor| (actor, self.current)));
    }

    /// The current record takes no more; returns its bio.
    fn close(&mut self, submitter: Submitter, device: &Device) -> Bio {
        let sectors = self.area.plan.record_sectors(self.checkpoints, self.members);
        if self.area.plan.head + sectors > self.area.sectors {
            self.area.plan.head = 0;
        }
        let sector = self.area.sector(self.area.plan.head);
        self.area.plan.head += sectors;
        self.under_way.push_back((self.current, false));
        let owner = Owner::Journal(self.current).pack();
        (self.checkpoints, self.members) = (0, 0);
        self.current = self.current.wrapping_add(1);
        Bio {
            op: Op::Write,
            sector,
            sectors: sectors as u32,
            sync: true,
            fua: true,
            idle: true,
            background: false,
            process: submitter.process(),
            prio: submitter.prio,
            cpu: submitter.cpu,
            thread: submitter.actor.thread(),
            hw_queue: device.hw_queue(submitter.cpu),
            owner,
        }
    }

    /// Submits what is left of a record; false if the process sleeps for a request.
    fn submit(&self, stream: &mut Option<BioStream>, submitter: Submitter, world: &mut World) -> bool {
        let now = world.now();
        let device = &mut world.devices[self.area.device];
        if let Some(left) = stream
            && !device.hand_over(now, left, submitter.actor)
        {
            return false;
        }
        *stream = None;
        true
    }

    /// See [`super::Journal::bio_ended`] (`xlog_state_done_syncing`, `xlog_state_do_callback`).
    pub fn bio_ended(&mut self, record: Record, woken: &mut Vec<Actor>) {
        if let Some((_, written)) = self.under_way.iter_mut().find(|(other, _)| *other == record) {
            *written = true;
        }
        self.wake_all(Wait::Written(record), woken);
        while let Some(&(first, true)) = self.under_way.front() {
            self.under_way.pop_front();
            for inode in self.inodes.iter_mut().filter(|inode| inode.logged == Logged::In(first)) {
                inode.logged = Logged::Durable;
            }
            self.wake_all(Wait::Durable(first), woken);
        }
    }

    /// Appends to `woken` those that wait for this, in order.
    fn wake_all(&mut self, over: Wait, woken: &mut Vec<Actor>) {
        woken.extend(self.waits.extract_if(.., |&mut (_, wait)| wait == over).map(|(actor, _)| actor));
    }
}
