//! Which processes share a queue, which plan to, and how long a queue exists.
//!
//! Processes that read one area in turns should share a queue: while they have queues of their own,
//! the disk idles for each although another one has the next request. When CFQ finds two such
//! queues, it *plans a merge*: the processes of one queue will move to the other, each with its
//! next request. The queue with fewer processes is emptied; a queue with a plan of its own is
//! followed to the end of its chain. A shared queue whose requests are seeky at the end of a turn
//! is *to be split*: its processes no longer read one area. Each leaves with its next request, and
//! the last one keeps the queue.
//!
//! A queue is kept by its holders: the processes that use it, those that will move to it, and of an
//! asynchronous queue also its group. Without holders and requests it is freed.
//!
//! Follows the flags `coop` and `split_coop`, `new_cfqq` and the references of `cfq_queue` in Linux
//! 4.12: `cfq_setup_merge`, `cfq_merge_cfqqs`, `split_cfqq`, `cfq_put_cooperator`, `cfq_put_queue`.
//! The kernel counts requests and processes together (`ref`, `allocated`), and takes the difference
//! for the processes (`cfqq_process_refs`).

use super::super::kinds::QueueId;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    holders: u32,
    /// Requests of the queue that are not freed.
    requests: u32,
    /// The target of the planned merge.
    merge_with: Option<QueueId>,
    /// More than one process has used it.
    shared: bool,
    /// Its processes should have queues of their own again.
    to_split: bool,
}

/// The holders and plans of all queues.
#[derive(Debug, Default)]
pub(in crate::scheduler::cfq) struct Sharing(Vec<Entry>);

impl Sharing {
    /// A new queue, used by one process.
    pub fn queue_made(&mut self, q: QueueId) {
        if q >= self.0.len() {
            self.0.resize(q + 1, Entry::default());
        }
        self.0[q] = Entry { holders: 1, ..Entry::default() };
    }

    /// One holder more.
    pub fn hold(&mut self, q: QueueId) {
        self.0[q].holders += 1;
    }

    /// One holder fewer.
    pub fn release(&mut self, q: QueueId) {
        self.0[q].holders -= 1;
    }

    /// A request belongs to the queue from now on.
    #[inline]
    pub fn request_attached(&mut self, q: QueueId) {
        self.0[q].requests += 1;
    }

    /// A request is merged into another, or freed.
    #[inline]
    pub fn request_gone(&mut self, q: QueueId) {
        self.0[q].requests -= 1;
    }

    /// No process uses it, and no request belongs to it.
    #[inline]
    pub fn is_unused(&self, q: QueueId) -> bool {
        self.0[q].holders == 0 && self.0[q].requests == 0
    }

    /// Plans that the processes of one of the two queues, the one with fewer, move to the other, or
    /// to where the other's processes will move (`cfq_setup_merge`). They move with their next
    /// requests.
    pub fn plan_merge(&mut self, q: QueueId, mut other: QueueId) {
        if self.0[other].holders == 0 {
            return;
        }
        while let Some(further) = self.0[other].merge_with {
            if further == q {
                return;
            }
            other = further;
        }
        let (own, others) = (self.0[q].holders, self.0[other].holders);
        if own == 0 || others == 0 {
            return;
        }
        let (from, to, moving) = if others >= own { (q, other, own) } else { (other, q, others) };
        self.0[from].merge_with = Some(to);
        self.0[to].holders += moving;
    }

    /// The queue to which the processes of this one move.
    #[inline]
    pub fn target(&self, q: QueueId) -> Option<QueueId> {
        self.0[q].merge_with
    }

    /// A process moves to this queue, which already counts it as a holder.
    pub fn joined(&mut self, q: QueueId) {
        self.0[q].shared = true;
    }

    /// A turn of the queue ends.
    pub fn turn_ended(&mut self, q: QueueId, is_seeky: bool) {
        let entry = &mut self.0[q];
        entry.to_split |= entry.shared && is_seeky;
    }

    /// Its processes should have queues of their own again.
    #[inline]
    pub fn is_to_split(&self, q: QueueId) -> bool {
        self.0[q].shared && self.0[q].to_split
    }

    /// The last process of a queue that is to be split keeps it for itself; false if others use it,
    /// too.
    pub fn keep_if_last(&mut self, q: QueueId) -> bool {
        let entry = &mut self.0[q];
        let is_last = entry.holders == 1;
        if is_last {
            entry.shared = false;
            entry.to_split = false;
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues with that many processes.
    fn sharing(processes: &[u32]) -> Sharing {
        let mut sharing = Sharing::default();
        for (q, &processes) in processes.iter().enumerate() {
            sharing.queue_made(q);
            (1..processes).for_each(|_| sharing.hold(q));
        }
        sharing
    }

    /// All processes of `from` move as planned.
    fn move_all(sharing: &mut Sharing, from: QueueId, processes: u32) -> QueueId {
        let to = sharing.target(from).expect("a plan");
        for _ in 0..processes {
            sharing.joined(to);
            sharing.release(from);
        }
        to
    }

    #[test]
    fn the_queue_with_fewer_processes_is_emptied() {
        let mut two = sharing(&[2, 1]);
        two.plan_merge(0, 1);
        assert_eq!((two.target(0), two.target(1)), (None, Some(0)));
        assert_eq!(move_all(&mut two, 1, 1), 0);
        assert!(two.is_unused(1) && !two.is_unused(0));
        let mut equal = sharing(&[1, 1]);
        equal.plan_merge(0, 1);
        assert_eq!(equal.target(0), Some(1), "of two equal ones that which stopped");
    }

    #[test]
    fn a_plan_leads_to_the_end_of_a_chain_and_never_in_a_circle() {
        let mut sharing = sharing(&[1, 1, 1]);
        sharing.plan_merge(0, 1);
        sharing.plan_merge(2, 0);
        assert_eq!(sharing.target(2), Some(1));
        sharing.plan_merge(1, 2);
        assert_eq!(sharing.target(1), None);
    }

    #[test]
    fn a_queue_without_processes_takes_part_in_no_plan() {
        let mut sharing = sharing(&[1, 1]);
        sharing.release(1);
        sharing.plan_merge(0, 1);
        sharing.plan_merge(1, 0);
        assert_eq!((sharing.target(0), sharing.target(1)), (None, None));
    }

    #[test]
    fn a_shared_queue_that_became_seeky_is_split_down_to_the_last_process() {
        let mut sharing = sharing(&[1, 1]);
        sharing.turn_ended(1, true);
        assert!(!sharing.is_to_split(1), "one process alone may seek");
        sharing.plan_merge(0, 1);
        move_all(&mut sharing, 0, 1);
        sharing.turn_ended(1, false);
        assert!(!sharing.is_to_split(1));
        sharing.turn_ended(1, true);
        assert!(sharing.is_to_split(1) && !sharing.keep_if_last(1));
        sharing.release(1);
        assert!(sharing.keep_if_last(1) && !sharing.is_to_split(1));
    }

    #[test]
    fn a_queue_exists_while_it_has_a_holder_or_a_request() {
        let mut sharing = sharing(&[1]);
        sharing.request_attached(0);
        sharing.release(0);
        assert!(!sharing.is_unused(0));
        sharing.request_gone(0);
        assert!(sharing.is_unused(0));
        sharing.queue_made(0);
        assert!(!sharing.is_unused(0), "the number is used again");
    }
}
