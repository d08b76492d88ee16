//! ext4's journal (jbd2): a kernel thread commits one transaction at a time.
//!
//! Follows `fs/ext4/fsync.c` and `fs/jbd2/commit.c` of Linux 7.3. The thread writes a descriptor and the changed
//! blocks, waits for them, and writes the commit record between two flushes (`REQ_PREFLUSH`, `REQ_FUA`). All
//! processes that wait for this transaction go on then. Times that change meanwhile are in the next transaction, whose
//! first process waits until the block has been copied to the journal (`BH_Shadow`).
//!
//! A process that writes an inode writes the times of all inodes in that block (`ext4_update_other_inodes_time`), so the
//! next process that syncs there finds no change, and only flushes. That is so with `lazytime`; without it, each write is
//! a change of its own inode, and has to wait where that is being copied.
//!
//! A transaction for which no process asks is committed after 5 s: by the next process that changes something, or by a
//! timer at a full second.
//!
//! Left out: the journal's superblock; `fast_commit`; data that must be
//! written before the commit (`data=ordered`), of which there are none without allocation.

use super::super::world::World;
use super::{Area, Forced, Taken};
use crate::block::{BioStream, Manner};
use crate::device::DeviceId;
use crate::owner::{Actor, Owner};
use crate::pagecache::FileId;
use crate::request::{Bio, IoPrio, KERNEL_CPU, Op, ProcessId};
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};
use crate::workload::journal::{BLOCK_SECTORS, JournalPlan};

/// `JBD2_DEFAULT_MAX_COMMIT_AGE`
const COMMIT_INTERVAL: Nanos = Nanos::from_secs(5);

/// The number of a transaction.
type Tid = u64;

/// What a file's inode has in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Inode {
    /// The tick of its times.
    tick: Option<u64>,
    /// They are not in the inode's block yet, and no process is about to write them there (`I_DIRTY_TIME`).
    changed: bool,
    /// The last transaction that has a change of it (`i_sync_tid`).
    tid: Tid,
}

/// The progress of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is none.
    #[default]
    Idle,
    /// Writing the descriptor and the blocks; this one is the next to be submitted.
    Logging(u32),
    /// Waiting for them.
    Logged,
    /// Submitting the commit record (`T_COMMIT_JFLUSH`).
    Record,
    /// Waiting for it.
    Recorded,
}

/// A process that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Until the transaction is committed.
    Commit(Tid),
    /// Until the block of inodes has been copied to the journal.
    Copied(u32),
}

/// How far a process is with its commit.
#[derive(Clone, Copy, Debug, Default)]
pub enum Progress {
    /// Not begun.
    #[default]
    Begin,
    /// It sleeps until its transaction is committed. `flushes`: nothing flushes the disk's cache after its data
    /// but itself, afterwards.
    Awaited { flushes: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Journal {
    area: Area,
    /// Times stay in memory until fsync.
    lazytime: bool,
    /// By file.
    inodes: Vec<Inode>,
    /// Blocks of inodes that the running transaction changes.
    running: Vec<u32>,
    /// The tick from which the next change commits it (`t_expires`); none before its first process.
    due: Option<u64>,
    /// When it is committed at the latest.
    expires: Nanos,
    /// Those of the transaction that is being committed.
    committing: Vec<u32>,
    /// The number of the last one that is committed; the next is being committed or runs.
    committed: Tid,
    /// The last one for which a process has asked.
    requested: Tid,
    state: State,
    /// Blocks that are not on the disk yet.
    left: u32,
    /// Changed blocks are under way to the journal.
    copying: bool,
    stream: Option<BioStream>,
    waits: Vec<(Actor, Wait)>,
    /// Processes that have slept, or do, before they write times to the block of an inode.
    writing: Vec<Actor>,
}

impl Journal {
    /// A journal of that many files on a device, with nothing to commit.
    pub fn new(device: DeviceId, plan: JournalPlan, files: usize, lazytime: bool) -> Journal {
        Journal {
            area: Area::new(device, plan),
            lazytime,
            due: None,
            expires: Nanos::NEVER,
            inodes: vec![Inode::default(); files],
            running: Vec::new(),
            committing: Vec::new(),
            committed: 0,
            requested: 0,
            state: State::Idle,
            left: 0,
            copying: false,
            stream: None,
            waits: Vec::new(),
            writing: Vec::new(),
        }
    }

    /// See [`super::Journal::writes`].
    pub fn writes(&mut self, file: FileId, actor: Actor, now: Nanos, ticks: Ticks) -> Taken {
        let inode = &mut self.inodes[file.index()];
        let tick = ticks.at(now);
        // One that has slept for this does not look at the clock again.
        if inode.tick != Some(tick) && !self.writing.contains(&actor) {
            *inode = Inode { tick: Some(tick), changed: true, ..*inode };
        }
        if self.lazytime { Taken::Yes } else { self.take_times(file, actor, now, ticks) }
    }

    /// The number of the transaction that takes changes now.
    fn now_running(&self) -> Tid {
        self.committed + if self.state == State::Idle { 1 } else { 2 }
    }

    /// Writes changed times to the block of the inode (`ext4_dirty_inode`).
    pub fn take_times(&mut self, file: FileId, actor: Actor, now: Nanos, ticks: Ticks) -> Taken {
        match self.writing.iter().position(|&other| other == actor) {
            Some(index) => {
                self.writing.swap_remove(index);
            }
            // The first process takes the mark off before it sleeps (`__mark_inode_dirty()`): others find no change, and
            // wait for none.
            None if std::mem::take(&mut self.inodes[file.index()].changed) => {}
            None => return Taken::Yes,
        }
        let (tick, due) = (ticks.at(now), self.begin(now, ticks));
        let block = JournalPlan::inode_block(file.index());
        if self.copying && self.committing.contains(&block) {
            self.waits.push((actor, Wait::Copied(block)));
            self.writing.push(actor);
            return Taken::Asleep;
        }
        if self.lazytime {
            let is_other =
                |number: usize| number != file.index() && JournalPlan::inode_block(number) == block;
            for other in (0..self.inodes.len()).filter(|&number| is_other(number)) {
                self.inodes[other].changed = false;
            }
        }
        self.inodes[file.index()].tid = self.now_running();
        let is_first = self.running.is_empty();
        if !self.running.contains(&block) {
            self.running.push(block);
        }
        // `jbd2_journal_stop()`
        if tick >= due && self.requested < self.now_running() {
            self.requested = self.now_running();
            return Taken::Due;
        }
        if is_first { Taken::Began { expires: self.expires } } else { Taken::Yes }
    }

    /// A process changes something in the running transaction, of which there is one then: the tick from which
    /// it is due.
    fn begin(&mut self, now: Nanos, ticks: Ticks) -> u64 {
        *self.due.get_or_insert_with(|| {
            let tick = ticks.at(now);
            let due = tick + ticks.span(COMMIT_INTERVAL);
            self.expires = ticks.timer(now, ticks.next_second(due) - tick);
            due
        })
    }

    /// The timer has expired: what is to be woken, and when.
    pub fn timer(&mut self, now: Nanos) -> Option<(Actor, Nanos)> {
        if self.running.is_empty() {
            return None;
        }
        if now < self.expires {
            return Some((Actor::JournalTimer, self.expires));
        }
        self.requested = self.now_running();
        Some((Actor::Journal, now))
    }

    /// See [`super::force`] (`ext4_fsync_journal`).
    pub fn force(
        &mut self,
        progress: &mut Progress,
        file: FileId,
        with_times: bool,
        actor: Actor,
        world: &mut World,
    ) -> Forced {
        if let Progress::Awaited { flushes } = std::mem::take(progress) {
            return if flushes { Forced::Flush } else { Forced::Done };
        }
        let tid = if with_times { self.inodes[file.index()].tid } else { 0 };
        if tid <= self.committed {
            return Forced::Flush;
        }
        self.waits.push((actor, Wait::Commit(tid)));
        let is_running = tid == self.now_running();
        let flushes = !is_running && matches!(self.state, State::Record | State::Recorded);
        if is_running && self.requested < tid {
            self.requested = tid;
            world.wake(Actor::Journal, world.now());
        }
        *progress = Progress::Awaited { flushes };
        Forced::Asleep
    }

    /// A block of the commit is on the disk.
    pub fn bio_ended(&mut self, block: u32, woken: &mut Vec<Actor>) {
        self.left -= 1;
        if let Some(copied) = block.checked_sub(1).and_then(|index| self.committing.get(index as usize)) {
            let copied = Wait::Copied(*copied);
            self.wake_all(woken, |wait| wait == copied);
        }
        if self.left == 0 {
            self.copying = false;
            woken.push(Actor::Journal);
        }
    }

    /// Appends to `woken` those that waited for this: the last to come is the first (`__add_wait_queue`).
    fn wake_all(&mut self, woken: &mut Vec<Actor>, is_over: impl Fn(Wait) -> bool) {
        let before = woken.len();
        woken.extend(self.waits.extract_if(.., |&mut (_, wait)| is_over(wait)).map(|(actor, _)| actor));
        woken[before..].reverse();
    }

    /// The disk's sector of a block of the commit. Behind the journal's end comes its second block; the first is its
    /// superblock.
    fn sector(&self, number: u32) -> Sector {
        let block = u64::from(BLOCK_SECTORS);
        let at = self.area.plan.head + u64::from(number) * block;
        self.area.sector(block + (at - block) % (self.area.sectors - block))
    }

    fn bio(&self, number: u32, cpu_queue: u16) -> Bio {
        Bio {
            op: Op::Write,
            sector: self.sector(number),
            sectors: BLOCK_SECTORS,
            sync: true,
            fua: false,
            idle: true,
            background: false,
            process: ProcessId::JOURNAL,
            prio: IoPrio::JOURNAL,
            cpu: KERNEL_CPU,
            thread: ProcessId::KERNEL,
            hw_queue: cpu_queue,
            owner: Owner::Journal(number).pack(),
        }
    }

    /// The transaction is committed: appends to `woken` all that wait for it.
    fn ended(&mut self, woken: &mut Vec<Actor>) {
        self.committed += 1;
        self.area.plan.head += (self.committing.len() as u64 + 2) * u64::from(BLOCK_SECTORS);
        let committed = self.committed;
        self.wake_all(woken, |wait| matches!(wait, Wait::Commit(tid) if tid <= committed));
        // All are woken (`j_wait_done_commit`), the last first, and in this order those for a later one wait again.
        let later =
            self.waits.extract_if(.., |(_, wait)| matches!(wait, Wait::Commit(_))).collect::<Vec<_>>();
        self.waits.extend(later.into_iter().rev());
        self.state = State::Idle;
    }
}

impl Journal {
    /// See [`super::run`].
    pub fn run(&mut self, world: &mut World) {
        loop {
            match self.state {
                State::Idle if self.requested == self.committed => return,
                State::Idle => {
                    self.committing = std::mem::take(&mut self.running);
                    self.due = None;
                    self.left = self.committing.len() as u32 + 1;
                    self.copying = true;
                    self.state = State::Logging(0);
                }
                State::Logging(next) if next > self.committing.len() as u32 => {
                    world.unplug();
                    world.pass_on_request();
                    self.state = State::Logged;
                    return;
                }
                State::Logging(next) => {
                    if !self.submit(next, false, world) {
                        return;
                    }
                    self.state = State::Logging(next + 1);
                }
                State::Logged if self.left > 0 => return,
                State::Logged => {
                    self.left = 1;
                    self.state = State::Record;
                }
                State::Record => {
                    if !self.submit(self.committing.len() as u32 + 1, true, world) {
                        return;
                    }
                    self.state = State::Recorded;
                    return;
                }
                State::Recorded if self.left > 0 => return,
                State::Recorded => {
                    self.ended(&mut world.woken);
                    world.wake_all_woken();
                }
            }
        }
    }

    /// Submits a block of the commit; false if the thread sleeps for a request.
    fn submit(&mut self, number: u32, is_record: bool, world: &mut World) -> bool {
        let now = world.now();
        let device = &mut world.devices[self.area.device];
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let bio = Bio { fua: is_record, ..self.bio(number, device.hw_queue(KERNEL_CPU)) };
                let manner = if is_record { Manner::AFTER_FLUSH } else { Manner::PLUGGED };
                match device.begin(now, bio, manner) {
                    None => return true,
                    Some(stream) => stream,
                }
            }
        };
        let taken = device.hand_over(now, &mut stream, Actor::Journal);
        if !taken {
            self.stream = Some(stream);
            world.pass_on_request();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::workload::journal::JournalKind;

    const FILE: FileId = FileId(0);
    const TICKS: Ticks = Ticks::per_second(1000);

    fn process(number: u32) -> Actor {
        Actor::Process(ProcessId(number))
    }

    /// A journal of one file, to which the inode of that file is being copied.
    fn copying(lazytime: bool) -> Journal {
        let plan = JournalPlan::in_the_middle(JournalKind::Ext4, Sector(1 << 30), Bytes(4096));
        let mut journal = Journal::new(DeviceId(0), plan, 1, lazytime);
        journal.committing = vec![JournalPlan::inode_block(0)];
        (journal.copying, journal.state, journal.left) = (true, State::Logged, 2);
        journal
    }

    #[test]
    fn while_a_process_waits_for_the_copy_of_an_inode_others_find_no_change_there() {
        let mut journal = copying(true);
        let at = |ms| Nanos::from_millis(ms);
        assert_eq!(
            journal.writes(FILE, process(1), at(1), TICKS),
            Taken::Yes,
            "with lazytime only fsync takes times"
        );
        assert_eq!(journal.take_times(FILE, process(1), at(1), TICKS), Taken::Asleep);
        assert_eq!(
            journal.take_times(FILE, process(2), at(1), TICKS),
            Taken::Yes,
            "it syncs the last commit"
        );
        assert_eq!(journal.inodes[0].tid, 0);
        // A later write is a change of its own.
        assert_eq!(journal.writes(FILE, process(2), at(2), TICKS), Taken::Yes);
        let mut woken = Vec::new();
        journal.bio_ended(1, &mut woken);
        journal.bio_ended(0, &mut woken);
        assert_eq!(woken, [process(1), Actor::Journal]);
        assert!(matches!(journal.take_times(FILE, process(1), at(3), TICKS), Taken::Began { .. }));
        assert_eq!((journal.inodes[0].tid, journal.inodes[0].changed), (2, true));
    }

    #[test]
    fn without_lazytime_only_the_first_writer_of_a_tick_waits_for_the_copy() {
        let mut journal = copying(false);
        let at = |ms| Nanos::from_millis(ms);
        assert_eq!(journal.writes(FILE, process(1), at(1), TICKS), Taken::Asleep);
        assert_eq!(journal.writes(FILE, process(2), at(1), TICKS), Taken::Yes);
        assert_eq!(journal.writes(FILE, process(2), at(2), TICKS), Taken::Asleep);
        let mut woken = Vec::new();
        journal.bio_ended(1, &mut woken);
        journal.bio_ended(0, &mut woken);
        assert_eq!(woken, [process(2), process(1), Actor::Journal]);
        for number in [2, 1] {
            assert_ne!(journal.writes(FILE, process(number), at(9), TICKS), Taken::Asleep);
        }
        assert_eq!(journal.inodes[0].tick, Some(TICKS.at(at(2))), "they do not look at the clock again");
    }

    #[test]
    fn the_end_of_any_commit_turns_round_the_order_of_those_that_wait_for_a_later_one() {
        let mut journal = copying(true);
        journal.waits =
            [(1, 1), (2, 1), (3, 2), (4, 2)].map(|(number, tid)| (process(number), Wait::Commit(tid))).into();
        let mut woken = Vec::new();
        journal.ended(&mut woken);
        assert_eq!(woken, [process(2), process(1)]);
        journal.ended(&mut woken);
        assert_eq!(woken[2..], [process(3), process(4)]);
    }
}
