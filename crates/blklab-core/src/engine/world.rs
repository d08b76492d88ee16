//! What processes share: time, the block layer, the disk, the page cache, the CPUs, and
//! who sleeps until what.

use std::collections::VecDeque;

use super::aio;
use super::waiters::{Place, RequestWaiters};
use crate::block::{BioStream, Block, Submitted};
use crate::disk::{AnyDisk, Completion, Disk};
use crate::event_queue::EventQueue;
use crate::host::{Cpus, Host};
use crate::pagecache::{FileId, PageCache, PageRange};
use crate::request::{Bio, IoPrio, Op, ProcessId};
use crate::units::{Bytes, Nanos, Sector};

/// Whom a bio's end concerns, as it travels through the block layer in `Bio::owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A direct I/O: the process and its slot.
    Direct(ProcessId, u32),
    /// Reading or writing back of pages: index into [`World::page_ios`].
    Pages(u32),
    /// A flush that this process waits for.
    Flush(ProcessId),
}

impl Owner {
    /// As a number.
    #[inline]
    pub const fn pack(self) -> u64 {
        match self {
            Owner::Direct(process, slot) => (process.0 as u64) << 32 | slot as u64,
            Owner::Pages(index) => 1 << 62 | index as u64,
            Owner::Flush(process) => 2 << 62 | process.0 as u64,
        }
    }

    /// Back from the number.
    #[inline]
    pub const fn unpack(owner: u64) -> Owner {
        match owner >> 62 {
            0 => Owner::Direct(ProcessId((owner >> 32) as u32), owner as u32),
            1 => Owner::Pages(owner as u32),
            _ => Owner::Flush(ProcessId(owner as u32)),
        }
    }
}

/// A range of pages under way to or from the disk.
#[derive(Clone, Copy, Debug)]
pub struct PageIo {
    range: PageRange,
    write: bool,
    bios_left: u32,
}

/// A file's place on the disk.
#[derive(Clone, Copy, Debug)]
pub struct PlacedFile {
    /// First sector.
    pub start: Sector,
    /// Size.
    pub size: Bytes,
    /// It is the disk itself or a partition, not a file in a file system.
    pub is_device: bool,
}

/// What a process that cannot go on waits for in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Pages of this file to be read or written back.
    Pages(FileId),
    /// Any pages to be read or written back.
    AnyPages,
}

/// Steps that processes may take while nothing else happens without yielding.
const STEPS_ALONE: u32 = 1 << 8;

/// No run goes on behind this time: 292 years, half of what 64 bits hold, which leaves room
/// for adding any time that a job file may name ([`crate::formats::fio::value::TIME_MAX`]).
pub const HORIZON: Nanos = Nanos(1 << 63);

/// Everything but the processes.
pub struct World {
    /// The time.
    pub now: Nanos,
    /// The disk's queue.
    pub block: Block,
    /// The disk.
    pub disk: AnyDisk,
    /// The page cache.
    pub cache: PageCache,
    /// What things cost.
    pub host: Host,
    /// When CPUs are free.
    pub cpus: Cpus,
    /// Files, as the plan and the page cache number them.
    pub files: Vec<PlacedFile>,
    /// Per process, what threads of POSIX AIO have to do.
    pub aio: Vec<aio::Pool>,
    /// Processes that can go on now, in order.
    pub ready: VecDeque<ProcessId>,
    timers: EventQueue,
    /// Per process, and of the flusher: it is in `ready` or has a timer, so that nobody
    /// wakes it twice.
    scheduled: Vec<bool>,
    /// It has nothing to do before the page cache says so.
    flusher_asleep: bool,
    request_waiters: RequestWaiters,
    page_waiters: Vec<(ProcessId, Wait)>,
    page_ios: slab::Slab<PageIo>,
    /// Steps that processes took since something else happened or one yielded.
    steps_alone: u32,
    /// Reused between calls.
    completions: Vec<Completion>,
    /// Reused between calls.
    woken: Vec<ProcessId>,
}

impl World {
    /// At time zero, everybody asleep: `processes` of them, threads of POSIX AIO included.
    pub fn new(
        block: Block,
        disk: AnyDisk,
        cache: PageCache,
        host: Host,
        cpus: Cpus,
        files: Vec<PlacedFile>,
        processes: usize,
    ) -> World {
        World {
            now: Nanos::ZERO,
            request_waiters: RequestWaiters::new(&block),
            block,
            disk,
            cache,
            host,
            cpus,
            files,
            aio: Vec::new(),
            ready: VecDeque::with_capacity(processes + 1),
            timers: EventQueue::default(),
            scheduled: vec![false; processes + 1],
            flusher_asleep: true,
            page_waiters: Vec::new(),
            page_ios: slab::Slab::new(),
            steps_alone: 0,
            completions: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// The flusher's is the last.
    #[inline]
    fn scheduled(&mut self, process: ProcessId) -> &mut bool {
        let last = self.scheduled.len() - 1;
        &mut self.scheduled[last.min(process.0 as usize)]
    }

    /// The process is about to run: it may be woken again.
    #[inline]
    pub fn begin(&mut self, process: ProcessId) {
        *self.scheduled(process) = false;
    }

    /// Let a sleeping process go on at `at`; one that will run anyway is left alone.
    #[inline]
    pub fn wake(&mut self, process: ProcessId, at: Nanos) {
        let scheduled = self.scheduled(process);
        if *scheduled {
            return;
        }
        *scheduled = true;
        if at <= self.now {
            self.ready.push_back(process);
        } else {
            self.timers.push(at.0, process.0);
        }
    }

    /// Go on to `at` at once if nothing else happens before; otherwise the caller yields.
    /// One that never has to wait yields now and then all the same, so that the run can be
    /// ended from outside.
    #[inline]
    pub fn advance_to(&mut self, at: Nanos) -> bool {
        self.steps_alone += 1;
        if self.steps_alone == STEPS_ALONE || at > HORIZON {
            self.steps_alone = 0;
            return false;
        }
        if at > self.now {
            if !self.ready.is_empty() || self.next_event() <= at {
                return false;
            }
            self.now = at;
        }
        true
    }

    /// True if no process and not the flusher is to run at or before `at`.
    #[inline]
    pub fn nobody_runs_before(&self, at: Nanos) -> bool {
        self.ready.is_empty() && self.timers.next() > at.0
    }

    /// Others run at this instant, on CPUs of their own: what costs CPU time in a host takes
    /// turns with them. Where it is free the one CPU is left to whoever has it.
    pub fn others_run(&self) -> bool {
        !self.host.takes_no_time() && !self.ready.is_empty()
    }

    /// When something happens next while all processes sleep.
    #[inline]
    pub fn next_event(&self) -> Nanos {
        self.next_event_before(self.disk.next_event())
    }

    /// The same with the disk's next event known.
    #[inline]
    fn next_event_before(&self, disk_due: Nanos) -> Nanos {
        let flusher = if self.flusher_asleep { self.cache.flusher_due() } else { Nanos::NEVER };
        disk_due.min(Nanos(self.timers.next())).min(self.block.next_timer()).min(flusher)
    }

    /// The flusher has written everything that it has a reason to write.
    pub fn flusher_sleeps(&mut self) {
        self.flusher_asleep = true;
    }

    /// Wake the flusher if the page cache wants it now.
    #[inline]
    pub fn wake_flusher(&mut self) {
        if self.flusher_asleep && self.cache.flusher_due() <= self.now {
            self.flusher_asleep = false;
            let now = self.now;
            self.wake(ProcessId::KERNEL, now);
        }
    }

    /// Let time run to the next event, and whatever is due happen. Whose bios have ended is
    /// appended to `owners`; when they know, [`World::pass_on_request`] is due. False if nothing
    /// happens before [`HORIZON`].
    #[inline]
    pub fn happen(&mut self, owners: &mut Vec<u64>) -> bool {
        let disk_due = self.disk.next_event();
        let at = self.next_event_before(disk_due);
        if at > HORIZON {
            return false;
        }
        self.now = self.now.max(at);
        self.steps_alone = 0;
        if disk_due <= self.now {
            let mut completions = std::mem::take(&mut self.completions);
            self.disk.advance(self.now, &mut completions);
            for completion in &completions {
                self.block.complete(Completion { at: self.now, ..*completion }, owners);
            }
            completions.clear();
            self.completions = completions;
            self.block.run(self.now, &mut self.disk);
        }
        if self.block.next_timer() <= self.now {
            self.block.timer(self.now);
            self.block.run(self.now, &mut self.disk);
        }
        self.wake_flusher();
        while self.timers.next() <= self.now.0
            && let Some((_, process)) = self.timers.pop()
        {
            self.ready.push_back(ProcessId(process));
        }
        true
    }

    /// Sleep until what is waited for may have come.
    pub fn sleep_until(&mut self, process: ProcessId, wait: Wait) {
        self.page_waiters.push((process, wait));
    }

    /// Hand over what is left of `stream`; false if `process` sleeps, to try again when woken.
    #[inline]
    pub fn hand_over(&mut self, stream: &mut BioStream, process: ProcessId) -> bool {
        let hw_queue = stream.next().hw_queue;
        let in_vain = stream.was_just_refused() && self.block.refuses_again();
        let place = stream.awake().then(|| self.request_waiters.place(hw_queue));
        let rest = stream.rest();
        if !in_vain && stream.submit(self.now, &mut self.block, &mut self.disk) == Submitted::Taken {
            return true;
        }
        self.hand_over_or_sleep(stream, process, place.filter(|_| stream.rest() == rest))
    }

    /// A plug is flushed and the queue run before its owner sleeps (`blk_mq_get_tag`).
    #[cold]
    fn hand_over_or_sleep(
        &mut self,
        stream: &mut BioStream,
        process: ProcessId,
        mut place: Option<Place>,
    ) -> bool {
        loop {
            let rest = stream.rest();
            let here = place.take().unwrap_or_else(|| self.request_waiters.place(stream.next().hw_queue));
            let in_vain = self.block.refuses_again();
            self.unplug();
            if !in_vain && stream.submit(self.now, &mut self.block, &mut self.disk) == Submitted::Taken {
                return true;
            }
            if stream.rest() == rest {
                stream.sleep();
                self.request_waiters.sleep(process, stream.next(), here, &mut self.block);
                return false;
            }
        }
    }

    /// Requests may have become free: let those go on whose turn it is.
    #[inline]
    pub fn pass_on_request(&mut self) {
        if !self.request_waiters.is_empty() {
            self.wake_request_waiters();
        }
    }

    #[cold]
    fn wake_request_waiters(&mut self) {
        let now = self.now;
        if self.block.is_single_queue() {
            if let Some(process) = self.request_waiters.wake_first(&self.block) {
                self.wake(process, now);
            }
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.request_waiters.wake(&mut self.block, &mut woken);
        woken.drain(..).for_each(|process| self.wake(process, now));
        self.woken = woken;
    }

    /// Hand plugged requests to the scheduler and what it lets go to the disk.
    #[inline]
    pub fn unplug(&mut self) {
        self.block.unplug(self.now, &mut self.disk);
    }

    /// Whoever ran sleeps. Next on the CPU is the worker of `kblockd`, if it has been woken:
    /// before all other processes, for its priority is high (`WQ_HIGHPRI`).
    #[inline]
    pub fn leave_cpu(&mut self) {
        self.block.run_worker(self.now, &mut self.disk);
    }

    /// The bios that read or write `range`.
    pub fn page_bios(&mut self, range: PageRange, write: bool, who: Submitter) -> BioStream {
        let file = self.files[range.file.index()];
        let sectors = (range.pages * 8).min((file.size.sectors() - range.first * 8) as u32);
        let max_sectors = self.block.limits().max_sectors;
        let bios_left = BioStream::parts(sectors, max_sectors);
        let index = self.page_ios.insert(PageIo { range, write, bios_left }) as u32;
        let whole = Bio {
            op: if write { Op::Write } else { Op::Read },
            sector: Sector(file.start.0 + range.first * 8),
            sectors,
            sync: !write || who.waits,
            fua: false,
            idle: false,
            process: who.process,
            prio: who.prio,
            cpu: who.cpu,
            hw_queue: who.hw_queue,
            owner: Owner::Pages(index).pack(),
        };
        BioStream::new(whole, max_sectors)
    }

    /// One bio of a page I/O has ended; with the last one, its pages change state and
    /// those who wait for pages of the file look again.
    pub fn page_bio_ended(&mut self, index: u32) {
        let io = &mut self.page_ios[index as usize];
        io.bios_left -= 1;
        if io.bios_left > 0 {
            return;
        }
        let PageIo { range, write, .. } = self.page_ios.remove(index as usize);
        if write {
            self.cache.write_done(range, self.now);
        } else {
            self.cache.read_done(range);
        }
        let now = self.now;
        let mut waiters = std::mem::take(&mut self.page_waiters);
        waiters.retain(|&(process, wait)| {
            let over = wait == Wait::AnyPages || wait == Wait::Pages(range.file);
            if over {
                self.wake(process, now);
            }
            !over
        });
        self.page_waiters = waiters;
    }
}

/// On whose behalf pages are read or written.
#[derive(Clone, Copy, Debug)]
pub struct Submitter {
    /// The process.
    pub process: ProcessId,
    /// Its priority.
    pub prio: IoPrio,
    /// The CPU it runs on.
    pub cpu: u16,
    /// Hardware queue of its CPU.
    pub hw_queue: u16,
    /// Somebody waits for the writes (`WB_SYNC_ALL`).
    pub waits: bool,
}

/// Ranges of pages being handed to the block layer; goes on where it had to stop.
#[derive(Debug, Default)]
pub struct PageWork {
    /// Ranges not begun yet, in order. Filled by the page cache.
    pub ranges: Vec<PageRange>,
    next: usize,
    stream: Option<BioStream>,
    write: bool,
}

impl PageWork {
    /// Everything to be handed over is a read (`write` false) or a write.
    pub fn begin(&mut self, write: bool) {
        debug_assert!(self.stream.is_none() && self.next == self.ranges.len());
        self.ranges.clear();
        self.next = 0;
        self.write = write;
    }

    /// Hand over what is left, under a plug of its own. `Err`: asleep until there is a request.
    pub fn hand_over(&mut self, world: &mut World, who: Submitter) -> Result<(), Asleep> {
        while self.hand_over_next(world, who)? {}
        world.unplug();
        world.pass_on_request();
        Ok(())
    }

    /// Hand over the next range, under a plug that the caller flushes; false if none is left.
    pub fn hand_over_next(&mut self, world: &mut World, who: Submitter) -> Result<bool, Asleep> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let Some(&range) = self.ranges.get(self.next) else { return Ok(false) };
                self.next += 1;
                world.page_bios(range, self.write, who)
            }
        };
        if !world.hand_over(&mut stream, who.process) {
            self.stream = Some(stream);
            return Err(Asleep);
        }
        Ok(true)
    }
}

/// The caller sleeps and will be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_owner_survives_being_a_number(process in 0..1_000_000u32, slot: u32) {
            for owner in [Owner::Direct(ProcessId(process), slot), Owner::Pages(slot), Owner::Flush(ProcessId(process))] {
                prop_assert_eq!(Owner::unpack(owner.pack()), owner);
            }
        }
    }
}
