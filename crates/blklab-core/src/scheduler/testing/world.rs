//! A disk with one request at a time, and processes that wait for each of their requests.

use super::{Rig, bio, limits};
use crate::request::Op::Read;
use crate::request::{Bio, ProcessId, RequestId};
use crate::scheduler::journal::{Decision, Note};
use crate::scheduler::{AnyScheduler, QueueLimits, Task, Tasks};
use crate::units::{Nanos, Sector};

/// The time of a request that does not begin where the last one ended.
const SEEK: Nanos = Nanos::from_millis(8);
/// About 100 MB/s.
const SECTOR: Nanos = Nanos(5_000);

/// A process that reads: after each completion it thinks, then sends the next request.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct Reader {
    pub task: Task,
    pub sectors: u32,
    pub random: bool,
    pub think: Nanos,
    /// The number of requests.
    pub count: u32,
}

pub(in crate::scheduler) struct World {
    pub rig: Rig,
    readers: Vec<Reader>,
    /// The time and sector of each reader's next request.
    due: Vec<(Nanos, u64)>,
    head: Sector,
    completes: Nanos,
    /// Since when the disk is free while requests wait.
    free_since: Option<Nanos>,
    pub free_longest: Nanos,
    /// Spans in which no request waited or was at the disk.
    pub quiet: Vec<(Nanos, Nanos)>,
    /// Sectors that each reader has got.
    pub served: Vec<u64>,
    /// Sectors that all readers had got at each reader's last request; then the most sectors moved
    /// while it waited.
    asked_at: Vec<u64>,
    pub waited: Vec<u64>,
    /// When each reader sent its last request; then the longest time that one took.
    asked_when: Vec<Nanos>,
    pub took: Vec<Nanos>,
    /// All decisions.
    pub notes: Vec<Note>,
}

impl World {
    pub fn new(name: &str, tunables: &[(&str, i64)], readers: &[Reader]) -> World {
        let tasks = readers.iter().map(|reader| reader.task).collect();
        let root = Tasks::default().cgroups().to_vec();
        let limits = QueueLimits { rotational: true, ..limits() };
        let mut rig = Rig::with_tasks(name, tunables, limits, Tasks::new(tasks, root));
        rig.scheduler.journal().expect("it has one").keep(Nanos::ZERO, 10_000);
        World {
            rig,
            due: (0..readers.len() as u64).map(|place| (Nanos::ZERO, place << 32)).collect(),
            head: Sector(0),
            completes: Nanos::NEVER,
            free_since: None,
            free_longest: Nanos::ZERO,
            quiet: Vec::new(),
            served: vec![0; readers.len()],
            asked_at: vec![0; readers.len()],
            waited: vec![0; readers.len()],
            asked_when: vec![Nanos::ZERO; readers.len()],
            took: vec![Nanos::ZERO; readers.len()],
            notes: Vec::new(),
            readers: readers.to_vec(),
        }
    }

    /// The reader has sent a request that has not completed.
    pub fn is_waiting(&self, place: usize) -> bool {
        let own = |id: &RequestId| self.rig.requests[*id].process.0 as usize == place;
        self.rig.waiting.keys().any(own) || self.rig.in_flight.iter().any(|(id, _)| own(id))
    }

    /// The request is in a queue and not chosen yet.
    pub fn is_in_queue(&self, id: RequestId) -> bool {
        match &self.rig.scheduler {
            AnyScheduler::Bfq2008(bfq) => bfq.is_in_queue(id),
            AnyScheduler::Cfq2008(cfq) => cfq.is_in_queue(id),
            _ => panic!("another scheduler"),
        }
    }

    /// Performs the next event, if it comes before `end`. Returns the processes whose turns began.
    pub fn step(&mut self, end: Nanos) -> Option<Vec<usize>> {
        let asks = self.due.iter().map(|due| due.0).min().unwrap_or(Nanos::NEVER);
        let next = asks.min(self.completes).min(self.rig.scheduler.next_timer()).max(self.rig.now);
        if next > end {
            return None;
        }
        let is_quiet = self.rig.waiting.is_empty() && self.rig.in_flight.is_empty();
        if is_quiet {
            self.quiet.push((self.rig.now, next));
        }
        self.rig.advance(next.saturating_sub(self.rig.now));
        if self.completes <= next {
            self.complete();
        }
        for place in 0..self.readers.len() {
            if self.due[place].0 <= next {
                self.ask(place);
            }
        }
        self.dispatch();
        let notes = self.rig.scheduler.journal().expect("it has one").take().0;
        let begins = |note: &&Note| matches!(note.decision, Decision::SliceStart { .. });
        let begun = notes.iter().filter(begins).map(|note| note.process.0 as usize).collect();
        self.notes.extend(notes);
        Some(begun)
    }

    /// Sectors moved since the reader's last request.
    pub fn waits(&self, place: usize) -> u64 {
        self.served.iter().sum::<u64>() - self.asked_at[place]
    }

    fn complete(&mut self) {
        let id = self.rig.in_flight[0].0;
        let request = self.rig.requests[id];
        let place = request.process.0 as usize;
        self.rig.complete(0);
        self.completes = Nanos::NEVER;
        self.served[place] += u64::from(request.sectors);
        self.waited[place] = self.waited[place].max(self.waits(place));
        self.took[place] = self.took[place].max(self.rig.now - self.asked_when[place]);
        let reader = &mut self.readers[place];
        reader.count -= 1;
        if reader.count > 0 {
            let jump = if reader.random { request.end().0 * 7919 % (1 << 31) / 64 * 64 } else { 0 };
            let sector = if reader.random { ((place as u64) << 32) + jump } else { request.end().0 };
            self.due[place] = (self.rig.now + reader.think, sector);
        }
    }

    fn ask(&mut self, place: usize) {
        let sector = std::mem::replace(&mut self.due[place].0, Nanos::NEVER);
        debug_assert!(sector <= self.rig.now);
        self.asked_at[place] = self.served.iter().sum();
        self.asked_when[place] = self.rig.now;
        let process = ProcessId(place as u32);
        self.rig.submit(Bio {
            sectors: self.readers[place].sectors,
            process,
            ..bio(Read, self.due[place].1)
        });
    }

    fn dispatch(&mut self) {
        if !self.rig.in_flight.is_empty() {
            return;
        }
        let now = self.rig.now;
        let Some(id) = self.rig.dispatch(0) else {
            let waits = !self.rig.waiting.is_empty();
            self.free_since = waits.then(|| self.free_since.unwrap_or(now));
            return;
        };
        let free = self.free_since.take().map_or(Nanos::ZERO, |since| now.saturating_sub(since));
        self.free_longest = self.free_longest.max(free);
        let request = &self.rig.requests[id];
        let seek = if request.sector == self.head { Nanos::ZERO } else { SEEK };
        self.completes = now + seek + Nanos(SECTOR.0 * u64::from(request.sectors));
        self.head = request.end();
    }
}
