//! The journal of a file system, which fsync commits.
//!
//! For files whose blocks are all allocated and written. A write changes the times of its file, which fsync
//! commits: they are in the journal's running transaction as soon as the write begins, or, in a file system that is
//! mounted with `lazytime`, when fsync begins. Times are ticks of the
//! kernel's clock, so a second write in one tick changes nothing, and fsync after it has nothing to commit. Then it only flushes
//! the disk's cache, as fdatasync always does, and as it does where another process has committed
//! before its data were on the disk.
//!
//! Left out: allocation, and all other metadata; inodes at their own place on the disk, which are written after half a
//! minute; the journal's tail; what file systems write when they are not used.

mod ext4;
#[cfg(test)]
mod tests;
mod xfs;

use crate::block::BioStream;
use crate::device::DeviceId;
use crate::owner::Actor;
use crate::pagecache::FileId;
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};
use crate::workload::journal::{JournalKind, JournalPlan};

use super::page_io::Submitter;
use super::world::World;

/// A journal of either kind.
#[derive(Debug)]
pub enum Journal {
    /// ext4's.
    Ext4(ext4::Journal),
    /// XFS's log.
    Xfs(xfs::Log),
}

/// Where a journal lies, and where its next transaction begins.
#[derive(Debug)]
struct Area {
    device: DeviceId,
    plan: JournalPlan,
    /// Its length in sectors.
    sectors: u64,
}

impl Area {
    fn new(device: DeviceId, plan: JournalPlan) -> Area {
        Area { device, sectors: plan.sectors(), plan }
    }

    /// The disk's sector of a sector of the journal.
    fn sector(&self, mut at: u64) -> Sector {
        for range in &self.plan.extents {
            if at < range.end - range.start {
                return Sector(range.start + at);
            }
            at -= range.end - range.start;
        }
        unreachable!("the journal has been checked")
    }
}

/// Whether a journal has taken the times of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Yes, or there was nothing to take.
    Yes,
    /// They are the first change of a transaction, which is committed at the latest then.
    Began {
        /// Then.
        expires: Nanos,
    },
    /// Yes, and the transaction is so old that the journal's thread commits it now.
    Due,
    /// Not yet: the actor sleeps, and tries again when it is woken.
    Asleep,
}

/// How far a process is with its commit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forcing {
    ext4: ext4::Progress,
    xfs: xfs::Progress,
    /// The journal's bio that has found no request yet.
    stream: Option<BioStream>,
}

/// What a process has to do that commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// It sleeps; call again when it is woken.
    Asleep,
    /// It must flush the disk's cache.
    Flush,
    /// Its data and times are durable, since a commit flushes.
    Done,
}

impl Journal {
    /// A journal of that many files on a device, with nothing to commit.
    pub fn new(device: DeviceId, plan: JournalPlan, files: usize, lazytime: bool) -> Journal {
        match plan.kind {
            JournalKind::Ext4 => Journal::Ext4(ext4::Journal::new(device, plan, files, lazytime)),
            JournalKind::Xfs => Journal::Xfs(xfs::Log::new(device, plan, files, lazytime)),
        }
    }

    /// A call of `actor` begins to write the file.
    pub fn writes(&mut self, file: FileId, actor: Actor, now: Nanos, ticks: Ticks) -> Taken {
        match self {
            Journal::Ext4(journal) => journal.writes(file, actor, now, ticks),
            Journal::Xfs(log) => log.writes(file, ticks.at(now)),
        }
    }

    /// A process begins to sync a file: its changed times are to be committed (`sync_lazytime`).
    pub fn take_times(&mut self, file: FileId, actor: Actor, now: Nanos, ticks: Ticks) -> Taken {
        match self {
            Journal::Ext4(journal) => journal.take_times(file, actor, now, ticks),
            Journal::Xfs(log) => log.take_times(file),
        }
    }

    /// Actors that wait for its bios are woken by a worker of high priority (`xlog_ioend_work`).
    pub fn has_worker(&self) -> bool {
        matches!(self, Journal::Xfs(_))
    }

    /// A bio of the journal has ended, with the number that it has there: appends to `woken` the actors that go on.
    pub fn bio_ended(&mut self, number: u32, woken: &mut Vec<Actor>) {
        match self {
            Journal::Ext4(journal) => journal.bio_ended(number, woken),
            Journal::Xfs(log) => log.bio_ended(number, woken),
        }
    }
}

/// A process that has written a file's data commits; `with_times`: fsync, not fdatasync.
pub fn force(
    forcing: &mut Forcing,
    file: FileId,
    with_times: bool,
    submitter: Submitter,
    world: &mut World,
) -> Forced {
    let Some(mut journal) = world.journal.take() else { return Forced::Flush };
    let forced = match &mut *journal {
        Journal::Ext4(journal) => journal.force(&mut forcing.ext4, file, with_times, submitter.actor, world),
        Journal::Xfs(log) => log.force(forcing, file, with_times, submitter, world),
    };
    world.journal = Some(journal);
    forced
}

/// ext4's timer has expired.
pub fn timer(world: &mut World) {
    let now = world.now();
    let Some(Journal::Ext4(journal)) = world.journal.as_deref_mut() else { return };
    if let Some((actor, at)) = journal.timer(now) {
        world.wake(actor, at);
    }
}

/// ext4's thread runs until it has nothing to commit, or waits (`kjournald2`); or XFS's worker.
pub fn run(world: &mut World) {
    let Some(mut journal) = world.journal.take() else { return };
    match &mut *journal {
        Journal::Ext4(journal) => journal.run(world),
        Journal::Xfs(log) => {
            log.push(&mut world.woken);
            world.wake_all_woken();
        }
    }
    world.journal = Some(journal);
}
