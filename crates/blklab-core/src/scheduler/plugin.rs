//! A scheduler from outside the simulator: a plug-in.
//!
//! [`Foreign`] decides which request goes next. What goes between it and the block layer is here: the
//! list of what waits, merges, and the checks. A plug-in that breaks a rule, or fails, is asked no
//! more: its requests are served in order of arrival, and the engine ends the run soon with the
//! [`Fault`]. So no answer of a plug-in stops the simulator.
//!
//! Its merges are those of the kernel's elevator core, which asks a scheduler only whether it allows
//! one, which request begins after a bio, and which request is next to another.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use super::journal::Journal;
use super::shared::merge::{MergeIndex, find_in_list};
use super::{Info, Merge, Queue, QueueLimits, Settings, adjoins};
use crate::containers::lists::{Links, List};
use crate::request::{Bio, Op, ProcessId, Request, RequestId};
use crate::units::{Nanos, Sector};

/// Requests wait, the disk is idle, and the plug-in has dispatched nothing for this time: it never will.
pub const STALLED: Nanos = Nanos::from_secs(60);
/// Timers in a row after which nothing else has happened.
pub const TIMERS: u32 = 1_000_000;

/// The moment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The current time.
    pub now: Nanos,
    /// Requests in flight.
    pub in_flight: u32,
}

impl At {
    fn of(queue: &Queue<'_>) -> At {
        At { now: queue.now, in_flight: queue.in_flight }
    }
}

/// A plug-in's answer, or why it has none, in a few words for an error message.
pub type Answer<T> = Result<T, String>;

/// A scheduler outside the simulator. It knows what it was told; see [`super::Scheduler`] for the order of
/// calls.
pub trait Foreign: Send {
    /// A request enters.
    fn insert(&mut self, at: At, id: RequestId, request: &Request) -> Answer<()>;
    /// The next request for that hardware queue. Any number: the caller checks it.
    fn dispatch(&mut self, at: At, hw_queue: u16) -> Answer<Option<u32>>;
    /// The disk has completed the request.
    fn completed(&mut self, at: At, id: RequestId) -> Answer<()>;
    /// A waiting request has grown: this is its new form.
    fn grown(&mut self, at: At, id: RequestId, request: &Request) -> Answer<()>;
    /// The waiting request `gone` was appended to `kept`, and waits no more.
    fn joined(&mut self, at: At, kept: RequestId, gone: RequestId) -> Answer<()>;
    /// The waiting request that begins where `bio` ends.
    fn front(&mut self, at: At, bio: &Bio) -> Answer<Option<u32>>;
    /// Whether `bio` may be merged into the waiting request.
    fn allows(&mut self, at: At, id: RequestId, bio: &Bio) -> Answer<bool>;
    /// The waiting request after `id`, or before it, which may be merged with it.
    fn neighbour(&mut self, at: At, id: RequestId, after: bool) -> Answer<Option<u32>>;
    /// See [`super::Scheduler::depth_limit`].
    fn depth_limit(&mut self, at: At, process: ProcessId, op: Op, sync: bool) -> Answer<u32>;
    /// See [`super::Scheduler::least_depth`].
    fn least_depth(&self) -> u32;
    /// See [`super::Scheduler::next_timer`].
    fn next_timer(&self) -> Nanos;
    /// See [`super::Scheduler::timer`].
    fn timer(&mut self, at: At) -> Answer<bool>;
    /// A process has exited.
    fn exited(&mut self, at: At, process: ProcessId) -> Answer<()>;
}

/// Which requests a bio may be merged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// None.
    Never,
    /// The latest eight (`blk_bio_list_merge`).
    Latest,
    /// Any that the bio continues, and one that begins after it (`elv_merge`).
    Indexed,
}

/// Makes a plug-in for a run.
pub trait Maker: Send + Sync {
    /// A hash of the plug-in's content: plug-ins of one hash are the same.
    fn hash(&self) -> &str;
    /// Which requests a bio may be merged into.
    fn merges(&self) -> Merges;
    /// The plug-in with these settings.
    ///
    /// # Errors
    /// Why it does not start.
    fn make(&self, settings: &Settings, limits: &QueueLimits) -> Answer<Box<dyn Foreign>>;
}

/// A plug-in in a specification of a scheduler.
#[derive(Clone)]
pub struct Made(pub Arc<dyn Maker>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Made").field(&self.0.hash()).finish()
    }
}

impl PartialEq for Made {
    fn eq(&self, other: &Made) -> bool {
        self.0.hash() == other.0.hash()
    }
}

impl Eq for Made {}

/// What a plug-in did wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The virtual time.
    pub at: Nanos,
    /// In a few words: `it dispatched request 7, which does not wait`.
    pub reason: String,
}

/// A plug-in on a queue.
pub struct Plugin {
    info: &'static Info,
    policy: Merges,
    state: RefCell<State>,
    fifo: List,
    links: Links,
    /// By the number of a request: whether it waits.
    waits: Vec<bool>,
    waiting: usize,
    merges: MergeIndex,
    /// Since when requests wait, the disk is idle and nothing is dispatched.
    idle_since: Nanos,
    /// Timers since the last other call.
    timers: u32,
}

/// What calls that do not change the queue need too.
struct State {
    foreign: Option<Box<dyn Foreign>>,
    fault: Option<Fault>,
}

impl State {
    /// Asks the plug-in, unless it has failed.
    #[inline]
    fn ask<T>(&mut self, now: Nanos, call: impl FnOnce(&mut dyn Foreign) -> Answer<T>) -> Option<T> {
        match call(self.foreign.as_deref_mut()?) {
            Ok(answer) => Some(answer),
            Err(reason) => {
                self.fail(now, reason);
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, now: Nanos, reason: String) {
        self.foreign = None;
        self.fault.get_or_insert(Fault { at: now, reason });
    }
}

/// The request that the plug-in has named, if it waits.
fn checked(
    waits: &[bool],
    state: &RefCell<State>,
    now: Nanos,
    verb: &str,
    answer: Option<u32>,
) -> Option<RequestId> {
    let id = answer?;
    if waits.get(id as usize).copied().unwrap_or(false) {
        return Some(RequestId(id));
    }
    state.borrow_mut().fail(now, format!("it {verb} request {id}, which does not wait"));
    None
}

impl Plugin {
    /// A plug-in with these settings on a queue.
    pub fn new(info: &'static Info, maker: &Made, settings: &Settings, limits: &QueueLimits) -> Plugin {
        let requests = limits.nr_requests as usize;
        let (foreign, fault) = match maker.0.make(settings, limits) {
            Ok(foreign) => (Some(foreign), None),
            Err(reason) => (None, Some(Fault { at: Nanos::ZERO, reason })),
        };
        Plugin {
            info,
            policy: maker.0.merges(),
            state: RefCell::new(State { foreign, fault }),
            fifo: List::EMPTY,
            links: Links::with_capacity(requests),
            waits: vec![false; requests],
            waiting: 0,
            merges: MergeIndex::with_capacity(requests),
            idle_since: Nanos::NEVER,
            timers: 0,
        }
    }

    /// Its description.
    pub fn described(&self) -> &'static Info {
        self.info
    }

    /// What it did wrong.
    pub fn fault(&self) -> Option<Fault> {
        self.state.borrow().fault.clone()
    }

    fn remove(&mut self, id: RequestId) {
        self.links.remove(&mut self.fifo, id);
        self.waits[id.index()] = false;
        self.waiting -= 1;
        if self.policy == Merges::Indexed {
            self.merges.remove(id);
        }
    }

    /// See [`super::Scheduler::find_merge`].
    pub fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        let at = At::of(queue);
        let state = &self.state;
        let allows = |id: RequestId| {
            state.borrow_mut().ask(at.now, |foreign| foreign.allows(at, id, bio)).unwrap_or(false)
        };
        match self.policy {
            Merges::Never => None,
            Merges::Latest => {
                let merge = find_in_list(queue, bio, self.links.newest_first(&self.fifo))?;
                let (Merge::Back(id) | Merge::Front(id)) = merge;
                allows(id).then_some(merge)
            }
            Merges::Indexed => {
                let waits = &self.waits;
                let front = || {
                    let answer = state.borrow_mut().ask(at.now, |foreign| foreign.front(at, bio));
                    let id = checked(waits, state, at.now, "would merge a bio into", answer.flatten())?;
                    matches!(adjoins(queue, id, bio), Some(Merge::Front(_))).then_some(id)
                };
                self.merges.find_among(queue, bio, allows, front)
            }
        }
    }

    /// See [`super::Scheduler::bio_merged`].
    pub fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, _: Sector) {
        let (Merge::Back(id) | Merge::Front(id)) = merge;
        let front = matches!(merge, Merge::Front(_));
        let request = &queue.requests[id];
        if self.policy == Merges::Indexed {
            if front {
                self.merges.grown_downwards(id);
            } else {
                self.merges.grown(id, request.end());
            }
        }
        let at = At::of(queue);
        self.state.get_mut().ask(at.now, |foreign| foreign.grown(at, id, request));
    }

    /// See [`super::Scheduler::neighbour`].
    pub fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        if self.policy != Merges::Indexed {
            return None;
        }
        let at = At::of(queue);
        let answer = self.state.borrow_mut().ask(at.now, |foreign| foreign.neighbour(at, id, after));
        let other = checked(&self.waits, &self.state, at.now, "named as a neighbour", answer.flatten())?;
        (other != id && self.merges.joins(queue, id, other, after)).then_some(other)
    }

    /// See [`super::Scheduler::find_join`].
    pub fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        match self.policy {
            Merges::Indexed => self.merges.find_join(queue, id),
            Merges::Never | Merges::Latest => None,
        }
    }

    /// See [`super::Scheduler::requests_merged`].
    pub fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        let at = At::of(queue);
        let end = queue.requests[gone].end();
        if self.waits.get(gone.index()).copied().unwrap_or(false) {
            self.remove(gone);
            self.state.get_mut().ask(at.now, |foreign| foreign.joined(at, kept, gone));
        } else {
            let grown = &queue.requests[kept];
            let sectors = grown.sectors + queue.requests[gone].sectors;
            let grown = Request { sectors, ..*grown };
            self.state.get_mut().ask(at.now, |foreign| foreign.grown(at, kept, &grown));
        }
        self.merges.grown(kept, end);
    }

    /// See [`super::Scheduler::insert_first`].
    pub fn insert_first(&mut self, _: &Queue<'_>, _: RequestId) -> bool {
        false
    }

    /// See [`super::Scheduler::is_settled`].
    pub fn is_settled(&self, _: Nanos) -> bool {
        false
    }

    /// See [`super::Scheduler::flush_ended`].
    pub fn flush_ended(&mut self, _: &Queue<'_>, _: Nanos) {}

    /// See [`super::Scheduler::woken`].
    pub fn woken(&mut self) -> Option<u16> {
        None
    }

    /// See [`super::Scheduler::journal`].
    pub fn journal(&mut self) -> Option<&mut Journal> {
        None
    }

    /// See [`super::Scheduler::insert`].
    pub fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.timers = 0;
        self.waiting += 1;
        if id.index() >= self.waits.len() {
            self.waits.resize(id.index() + 1, false);
        }
        self.waits[id.index()] = true;
        self.links.push_back(&mut self.fifo, id);
        if self.policy == Merges::Indexed {
            self.merges.insert(queue, id);
        }
        let at = At::of(queue);
        self.state.get_mut().ask(at.now, |foreign| foreign.insert(at, id, &queue.requests[id]));
    }

    /// See [`super::Scheduler::dispatch`].
    pub fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        if self.waiting == 0 {
            return None;
        }
        let at = At::of(queue);
        self.timers = 0;
        let answer = self.state.get_mut().ask(at.now, |foreign| foreign.dispatch(at, hw_queue));
        let mut next = checked(&self.waits, &self.state, at.now, "dispatched", answer.flatten());
        if self.state.get_mut().fault.is_some() {
            next = self.fifo.first();
        }
        match next {
            Some(id) => {
                self.remove(id);
                self.idle_since = Nanos::NEVER;
            }
            None if queue.in_flight == 0 => self.idle_since = self.idle_since.min(at.now),
            None => self.idle_since = Nanos::NEVER,
        }
        next
    }

    /// See [`super::Scheduler::completed`].
    pub fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        self.timers = 0;
        let at = At::of(queue);
        self.state.get_mut().ask(at.now, |foreign| foreign.completed(at, id));
    }

    /// See [`super::Scheduler::depth_limit`].
    pub fn depth_limit(&self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        let at = At::of(queue);
        let limit = self.state.borrow_mut().ask(at.now, |foreign| foreign.depth_limit(at, process, op, sync));
        // No request at all would be a wait without an end.
        limit.unwrap_or(u32::MAX).max(1)
    }

    /// See [`super::Scheduler::least_depth`].
    pub fn least_depth(&self) -> u32 {
        let state = self.state.borrow();
        state.foreign.as_ref().map_or(u32::MAX, |foreign| foreign.least_depth()).max(1)
    }

    /// See [`super::Scheduler::next_timer`]. The end of its patience is a timer too.
    #[inline]
    pub fn next_timer(&self) -> Nanos {
        let state = self.state.borrow();
        let timer = state.foreign.as_ref().map_or(Nanos::NEVER, |foreign| foreign.next_timer());
        timer.min(self.idle_since.saturating_add(STALLED))
    }

    /// See [`super::Scheduler::timer`].
    pub fn timer(&mut self, queue: &Queue<'_>) -> bool {
        let at = At::of(queue);
        let stalled = at.now >= self.idle_since.saturating_add(STALLED);
        let waiting = self.waiting;
        let state = self.state.get_mut();
        if stalled {
            self.idle_since = Nanos::NEVER;
            state.fail(at.now, format!("it holds {waiting} requests and has dispatched none for 60 s"));
            return true;
        }
        self.timers += 1;
        let runs = state.ask(at.now, |foreign| foreign.timer(at));
        let next = state.foreign.as_ref().map_or(Nanos::NEVER, |foreign| foreign.next_timer());
        if next <= at.now {
            state.fail(at.now, "its next timer is not after this one".to_owned());
        } else if self.timers == TIMERS {
            state.fail(at.now, format!("{TIMERS} timers in a row came to nothing"));
        }
        runs.unwrap_or(true)
    }

    /// See [`super::Scheduler::has_work`].
    #[inline]
    pub fn has_work(&self, _: u16) -> bool {
        self.waiting > 0
    }

    /// See [`super::Scheduler::waiting`].
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// See [`super::Scheduler::process_exited`].
    pub fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        let at = At::of(queue);
        self.state.get_mut().ask(at.now, |foreign| foreign.exited(at, process));
    }
}
