//! A scheduler, and requests that go to the disk before all of its own.
//!
//! A write that had to wait for a flush enters at the head (`BLK_MQ_INSERT_AT_HEAD`): some schedulers put it
//! first in a queue of their own ([`Scheduler::insert_first`](crate::scheduler::Scheduler::insert_first)). For the
//! others it is here, as in the list `dispatch` of mq-deadline.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::request::RequestId;
use crate::scheduler::{AnyScheduler, Queue};
use crate::units::Nanos;

/// See the [module](self).
pub(super) struct Elevator {
    scheduler: AnyScheduler,
    /// Each with its hardware queue; the first goes next.
    first: VecDeque<(u16, RequestId)>,
    /// Dispatched from there, and not completed yet.
    passed: Vec<RequestId>,
}

impl Elevator {
    pub fn new(scheduler: AnyScheduler) -> Elevator {
        Elevator { scheduler, first: VecDeque::new(), passed: Vec::new() }
    }

    /// A request enters that goes before all others.
    #[cold]
    pub fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) {
        if !self.scheduler.insert_first(queue, id) {
            self.first.push_front((queue.requests[id].hw_queue, id));
        }
    }

    /// The next request for a hardware queue.
    #[inline]
    pub fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        if !self.first.is_empty()
            && let Some(id) = self.take_first(hw_queue)
        {
            return Some(id);
        }
        self.scheduler.dispatch(queue, hw_queue)
    }

    #[cold]
    fn take_first(&mut self, hw_queue: u16) -> Option<RequestId> {
        let place = self.first.iter().position(|&(of, _)| of == hw_queue)?;
        let (_, id) = self.first.remove(place)?;
        self.passed.push(id);
        Some(id)
    }

    /// The disk has completed the request.
    #[inline]
    pub fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        if !self.passed.is_empty()
            && let Some(place) = self.passed.iter().position(|&passed| passed == id)
        {
            self.passed.swap_remove(place);
            return;
        }
        self.scheduler.completed(queue, id);
    }

    /// Waiting requests.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.first.len() + self.scheduler.waiting()
    }

    /// See [`crate::scheduler::Scheduler::has_work`].
    #[inline]
    pub fn has_work(&self, hw_queue: u16) -> bool {
        self.first.iter().any(|&(of, _)| of == hw_queue) || self.scheduler.has_work(hw_queue)
    }

    /// See [`crate::scheduler::Scheduler::is_settled`].
    #[inline]
    pub fn is_settled(&self, now: Nanos) -> bool {
        self.first.is_empty() && self.scheduler.is_settled(now)
    }
}

impl Deref for Elevator {
    type Target = AnyScheduler;

    #[inline]
    fn deref(&self) -> &AnyScheduler {
        &self.scheduler
    }
}

impl DerefMut for Elevator {
    #[inline]
    fn deref_mut(&mut self) -> &mut AnyScheduler {
        &mut self.scheduler
    }
}
