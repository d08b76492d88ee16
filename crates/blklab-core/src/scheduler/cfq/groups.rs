//! Cgroups share the disk by weight: who has had least for its weight is served.

use super::Cfq;
use super::state::{Class, QueueId};

/// Shares and service are in 4096ths (`CFQ_SERVICE_SHIFT`).
pub(super) const SERVICE_SHIFT: u32 = 12;
/// A group that becomes busy goes behind the last (`CFQ_SLICE_MODE_GROUP_DELAY`).
const GROUP_DELAY: i64 = 200_000_000;

impl Cfq {
    /// Time cannot be measured where the disk works on many requests and nobody idles: then
    /// groups share requests instead (`iops_mode`).
    fn counts_requests(&self) -> bool {
        self.tuned.slice_idle == 0 && self.queues_commands()
    }

    /// `cfq_group_notify_queue_add`
    pub(super) fn group_gains_queue(&mut self, group: usize) {
        self.groups[group].queues += 1;
        if self.groups[group].on_tree {
            return;
        }
        let delay = if self.counts_requests() { self.limits.ticks.hz() as i64 / 5 } else { GROUP_DELAY };
        self.groups[group].vdisktime = match self.group_members.last(&self.group_set) {
            Some(last) => self.group_members.key(last) + delay,
            None => self.min_vdisktime,
        };
        self.enter_group(group);
    }

    /// `cfq_group_notify_queue_del`
    pub(super) fn group_loses_queue(&mut self, group: usize) {
        self.groups[group].queues -= 1;
        if self.groups[group].queues == 0 {
            self.leave_group(group);
            self.groups[group].saved = None;
        }
    }

    /// The group takes part; its share is its weight among the busy ones, at each level from
    /// itself to the root (`cfq_group_service_tree_add`).
    fn enter_group(&mut self, index: usize) {
        let group = &mut self.groups[index];
        group.on_tree = true;
        self.group_members.insert(&mut self.group_set, group.vdisktime, index as u32);
        group.active += 1;
        group.children_weight += group.leaf_weight;
        let mut spreads = group.active == 1;
        let mut share = (1 << SERVICE_SHIFT) * group.leaf_weight / group.children_weight;
        let mut at = index;
        while let Some(parent) = self.groups[at].parent {
            let weight = self.groups[at].weight;
            let above = &mut self.groups[parent];
            if spreads {
                above.active += 1;
                spreads = above.active == 1;
                above.children_weight += weight;
            }
            share = share * weight / above.children_weight;
            at = parent;
        }
        self.groups[index].vfraction = share.max(1);
    }

    /// The opposite (`cfq_group_service_tree_del`).
    fn leave_group(&mut self, index: usize) {
        let group = &mut self.groups[index];
        group.active -= 1;
        group.children_weight -= group.leaf_weight;
        let mut spreads = group.active == 0;
        let mut at = index;
        while spreads {
            self.groups[at].vfraction = 0;
            let Some(parent) = self.groups[at].parent else { break };
            let weight = self.groups[at].weight;
            let above = &mut self.groups[parent];
            above.active -= 1;
            above.children_weight -= weight;
            spreads = above.active == 0;
            at = parent;
        }
        self.groups[index].on_tree = false;
        self.group_members.remove(&mut self.group_set, index as u32);
    }

    /// The group that has had least (`cfq_get_next_cfqg`).
    pub(super) fn next_group(&mut self) -> Option<usize> {
        let first = self.group_members.first(&self.group_set)?;
        self.min_vdisktime = self.min_vdisktime.max(self.group_members.key(first));
        Some(first as usize)
    }

    /// Charge the queue's turn to its group (`cfq_group_served`).
    pub(super) fn charge(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let index = queue.group;
        let group = &self.groups[index];
        let sync = group.queues - group.busy_async() - group.busy(Class::Idle);
        let charge = if self.counts_requests() {
            queue.slice_dispatch
        } else if !queue.sync && sync == 0 {
            queue.allocated_slice
        } else {
            self.used(q)
        };
        let share = u64::from(group.vfraction);
        self.leave_group(index);
        let scaled = (charge << SERVICE_SHIFT << SERVICE_SHIFT) / share;
        self.groups[index].vdisktime += scaled as i64;
        self.enter_group(index);
        let left = self.workload_expires - self.now;
        let serving = (left as u64, self.serving_class, self.serving_kind);
        self.groups[index].saved = (left > 0).then_some(serving);
    }

    /// Time that the turn took, at most its slice; if no request has ended yet, from its
    /// beginning and at least a tick (`cfq_cfqq_slice_usage`).
    fn used(&self, q: QueueId) -> u64 {
        let queue = &self.queues[q];
        match queue.slice_start.filter(|&start| start != self.now) {
            None => ((self.now - queue.dispatch_start) as u64).max(self.tick),
            Some(start) => ((self.now - start) as u64).min(queue.allocated_slice),
        }
    }

    /// `of` is `ancestor`, or a group below it.
    pub(super) fn is_within(&self, of: usize, ancestor: usize) -> bool {
        std::iter::successors(Some(of), |&at| self.groups[at].parent).any(|at| at == ancestor)
    }
}
