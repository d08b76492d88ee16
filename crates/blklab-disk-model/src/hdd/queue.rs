//! Commands that wait for the arm: the plan, with a fixed order, and the unplanned commands, from which the
//! next one to join the plan is chosen. The data that this search needs first are stored in columns, separate
//! from the rest.

use std::collections::VecDeque;
use std::ops::Range;

use super::super::Tag;
use super::SLACK_NS;
use super::cache::Span;
use super::geometry::Location;
use super::seek::Floor;

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub span: Span,
    pub place: Location,
    /// The time at which the controller has understood it.
    pub ready: u64,
    /// The time of its submission.
    pub arrived: u64,
    /// This time multiplied by the ageing factor: see [`super::Hdd::soonest_reached`].
    pub handicap: i64,
    pub order: u64,
    pub tag: Tag,
    pub write: bool,
}

/// The bound of a cost: costs are first compared coarsely, in 32 bits, then exactly.
#[inline]
pub(super) fn bound_of(cost_ns: i64) -> i32 {
    (cost_ns >> BOUND_SHIFT).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Costs are bounded in units of 2^this nanoseconds.
const BOUND_SHIFT: u32 = 10;
/// The largest rounding error of a bound, in units.
const BOUND_ERROR: i32 = 2;
/// Sectors are compared coarsely in units of 2^this: 32 bits then hold 512 TiB.
const START_SHIFT: u32 = 8;

/// The arm's place when it looks for the next command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The angle under it, in nanoseconds after the index mark.
    pub stands: u64,
    pub cylinder: i32,
    pub floor: Floor,
}

/// The place of a command in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueIndex {
    Planned(usize),
    Free(usize),
}

/// Some of the unplanned commands, by index: those of the first range, then those of the second, which begins
/// at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part([Range<usize>; 2]);

impl Part {
    /// Their indices.
    pub fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let [first, rest] = self.0.clone();
        first.chain(rest)
    }
}

/// All commands. Unplanned ones are in no order; their columns have one narrow entry per command, so that the
/// compiler can vectorise the search.
#[derive(Debug)]
pub(super) struct Queue {
    /// The plan, the next one first.
    plan: VecDeque<Queued>,
    plan_max: usize,
    /// The unplanned commands.
    pub commands: Vec<Queued>,
    /// A lower bound of each cost, minus the head start, of the commands in the last call of
    /// [`Queue::bound_costs`].
    pub bounds: Vec<i32>,
    /// The angles of their first sectors, [`SLACK_NS`] added.
    angles: Vec<i32>,
    handicaps: Vec<i32>,
    cylinders: Vec<i32>,
    starts: Vec<u32>,
    /// The start of the next search among some of the commands.
    look_at: usize,
    /// No command is older than this.
    since: u64,
}

impl Queue {
    /// Room for `capacity` commands, of which `plan_max` are planned.
    pub fn new(commands: usize, plan_max: usize) -> Queue {
        Queue {
            plan: VecDeque::with_capacity(plan_max.min(commands)),
            plan_max,
            commands: Vec::with_capacity(commands),
            bounds: Vec::with_capacity(commands),
            angles: Vec::with_capacity(commands),
            handicaps: Vec::with_capacity(commands),
            cylinders: Vec::with_capacity(commands),
            starts: Vec::with_capacity(commands),
            look_at: 0,
            since: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.plan.is_empty() && self.commands.is_empty()
    }

    /// The last command of the plan.
    pub fn last_planned(&self) -> Option<&Queued> {
        self.plan.back()
    }

    /// True when a command can join the plan.
    pub fn plan_lacks(&self) -> bool {
        self.plan.len() < self.plan_max && !self.commands.is_empty()
    }

    /// The unplanned command with this index joins the plan.
    pub fn join_plan(&mut self, index: usize) {
        let queued = self.take_free(index);
        self.plan.push_back(queued);
    }

    /// Plans the `most` unplanned commands with addresses closest together, in order of address.
    pub fn plan_closest(&mut self, most: usize) {
        let mut order: Vec<usize> = (0..self.commands.len()).collect();
        order.sort_unstable_by_key(|&index| (self.commands[index].span.start, self.commands[index].order));
        let start = |place: usize| self.commands[order[place]].span.start;
        let count = most.min(order.len());
        let first = (0..=order.len() - count).min_by_key(|&first| match count {
            0 => 0,
            _ => start(first + count - 1) - start(first),
        });
        let first = first.unwrap_or(0);
        self.plan.extend(order[first..first + count].iter().map(|&index| self.commands[index]));
        let mut taken = order[first..first + count].to_vec();
        // From the last one on, so that the others keep their places.
        taken.sort_unstable_by(|a, b| b.cmp(a));
        for index in taken {
            self.take_free(index);
        }
    }

    /// The next command of the plan.
    pub fn next_planned(&self) -> Option<QueueIndex> {
        (!self.plan.is_empty()).then_some(QueueIndex::Planned(0))
    }

    pub fn get(&self, slot: QueueIndex) -> &Queued {
        match slot {
            QueueIndex::Planned(index) => &self.plan[index],
            QueueIndex::Free(index) => &self.commands[index],
        }
    }

    /// True when the controller has understood a command by `now`.
    pub fn any_ready(&self, now: u64) -> bool {
        self.plan.iter().chain(&self.commands).any(|queued| queued.ready <= now)
    }

    /// The time at which the controller has understood the first command.
    pub fn ready(&self) -> Option<u64> {
        self.plan.iter().chain(&self.commands).map(|queued| queued.ready).min()
    }

    /// The first time after `now` at which the controller has understood a command.
    pub fn ready_after(&self, now: u64) -> Option<u64> {
        self.plan.iter().chain(&self.commands).map(|queued| queued.ready).filter(|ready| *ready > now).min()
    }

    /// The arrival of the oldest command.
    pub fn oldest_arrival(&self) -> Option<u64> {
        self.plan.iter().chain(&self.commands).map(|queued| queued.arrived).min()
    }

    pub fn push(&mut self, queued: Queued) {
        if self.is_empty() {
            self.since = queued.arrived;
        }
        self.angles.push((u64::from(queued.place.angle_ns) + SLACK_NS) as i32);
        self.handicaps.push(coarse(queued.handicap));
        self.cylinders.push(queued.place.cylinder as i32);
        self.starts.push((queued.span.start >> START_SHIFT) as u32);
        self.commands.push(queued);
    }

    /// Removes a command.
    pub fn take(&mut self, slot: QueueIndex) -> Queued {
        match slot {
            QueueIndex::Planned(0) => self.plan.pop_front().expect("a slot of a command in the plan"),
            QueueIndex::Planned(index) => self.plan.remove(index).expect("a slot of a command in the plan"),
            QueueIndex::Free(index) => self.take_free(index),
        }
    }

    fn take_free(&mut self, index: usize) -> Queued {
        self.angles.swap_remove(index);
        self.handicaps.swap_remove(index);
        self.cylinders.swap_remove(index);
        self.starts.swap_remove(index);
        self.commands.swap_remove(index)
    }

    /// The oldest command, if it arrived by `by` and the controller has understood it by `now`.
    pub fn oldest(&mut self, by: u64, now: u64) -> Option<QueueIndex> {
        // A command is rarely so old: the search runs only when one may be.
        if self.is_empty() || self.since > by {
            return None;
        }
        let (_, slot) = self.all().min_by_key(|(queued, _)| queued.order)?;
        let (arrived, ready) = (self.get(slot).arrived, self.get(slot).ready);
        self.since = arrived;
        (arrived <= by && ready <= now).then_some(slot)
    }

    /// All commands, planned or not.
    fn all(&self) -> impl Iterator<Item = (&Queued, QueueIndex)> {
        let planned = self.plan.iter().enumerate().map(|(n, queued)| (queued, QueueIndex::Planned(n)));
        let free = self.commands.iter().enumerate().map(|(n, queued)| (queued, QueueIndex::Free(n)));
        planned.chain(free)
    }

    /// Where a stream's waiting reads end, the first of which begins between `start` and `limit`.
    pub fn stream_end(&self, start: u64, mut limit: u64) -> u64 {
        let follows = |queued: &&Queued, limit| {
            !queued.write && (start..=limit).contains(&queued.span.start) && queued.span.end > limit
        };
        while let Some(next) = self.plan.iter().chain(&self.commands).find(|queued| follows(queued, limit)) {
            limit = next.span.end;
        }
        limit
    }

    /// The oldest command that the controller has understood by `now`, without reads that begin within `width`
    /// sectors from `start` on.
    pub fn oldest_outside(&self, start: u64, width: u64, now: u64) -> Option<QueueIndex> {
        let fits = |queued: &Queued| {
            queued.ready <= now && (queued.write || queued.span.start.wrapping_sub(start) > width)
        };
        let outside = self.all().filter(|(queued, _)| fits(queued));
        outside.min_by_key(|(queued, _)| queued.order).map(|(_, slot)| slot)
    }

    /// The next part of the unplanned commands, in turn: as many as `percent` of all commands in the drive, of
    /// which one is at the arm; or all.
    #[inline]
    pub fn part(&mut self, percent: usize) -> Part {
        let all = self.commands.len();
        let most = ((all + self.plan.len() + 1) * percent).div_ceil(100);
        if all <= most {
            return Part([0..all, 0..0]);
        }
        let first = if self.look_at < all { self.look_at } else { self.look_at % all };
        let end = first + most;
        self.look_at = if end < all { end } else { end - all };
        Part([first..end.min(all), 0..end.saturating_sub(all)])
    }

    /// The command of `part` with the cylinder nearest to `cylinder`, the first of equals.
    pub fn nearest(&self, part: &Part, cylinder: u32) -> usize {
        // Signed numbers, because the compiler can vectorise their minimum. Cylinders are fewer than ten million.
        let distance = |at: &i32| (at - cylinder as i32).abs();
        let columns = part.0.clone().map(|range| &self.cylinders[range]);
        let [least, rest] = columns.map(|column| column.iter().fold(i32::MAX, |l, at| l.min(distance(at))));
        // Of equals, the first is in the range that begins at 0.
        let range = usize::from(rest <= least);
        let least = least.min(rest);
        let found = columns[range].iter().position(|at| distance(at) == least);
        part.0[range].start + found.unwrap_or(0)
    }

    /// Computes a lower bound of the cost of each command of `part`: the time until its angle comes round after
    /// a lower bound of its seek, plus its handicap, minus `head_start`.
    pub fn bound_costs(&mut self, part: &Part, head: Head, turn_ns: u64, head_start: i64) {
        let (stands, turn) = (head.stands as i32, turn_ns as i32);
        // Wraps around after half an hour of head start: no command waits so long.
        let won = coarse(head_start).wrapping_add(BOUND_ERROR);
        self.bounds.resize(self.commands.len(), 0);
        for range in part.0.clone() {
            let [angles, handicaps, cylinders] =
                [&self.angles, &self.handicaps, &self.cylinders].map(|column| &column[range.clone()]);
            let columns = angles.iter().zip(handicaps).zip(cylinders);
            for (bound, ((angle, handicap), cylinder)) in self.bounds[range].iter_mut().zip(columns) {
                let apart = angle - stands;
                let mut passes = apart + if apart < 0 { turn } else { 0 };
                passes -= if passes >= turn { turn } else { 0 };
                let seek = head.floor.ns(((cylinder - head.cylinder) as f32).abs());
                // Few seeks take longer than a revolution.
                passes += if (passes as f32) < seek { turn } else { 0 };
                let coarse = (passes - SLACK_NS as i32) >> BOUND_SHIFT;
                *bound = coarse.wrapping_add(handicap.wrapping_sub(won));
            }
        }
    }

    /// The read, ready at `now`, that begins first within `width` sectors from `start` on.
    pub fn first_read_within(&self, start: u64, width: u64, now: u64) -> Option<QueueIndex> {
        let free = self.first_free_read_within(start, width, now);
        let within = |queued: &Queued| queued.span.start.wrapping_sub(start);
        let fits = |queued: &Queued| within(queued) <= width && !queued.write && queued.ready <= now;
        let planned = self.plan.iter().enumerate().filter(|(_, queued)| fits(queued));
        let planned = planned.map(|(index, queued)| (within(queued), QueueIndex::Planned(index)));
        let free = free.map(|index| (within(&self.commands[index]), QueueIndex::Free(index)));
        planned.chain(free).min_by_key(|(within, _)| *within).map(|(_, slot)| slot)
    }

    fn first_free_read_within(&self, start: u64, width: u64, now: u64) -> Option<usize> {
        // Sectors before `start` wrap around to large values: one comparison is enough.
        let (from, units) = ((start >> START_SHIFT) as u32, ((width >> START_SHIFT) + 1) as u32);
        let near = |any, begins: &u32| any | (begins.wrapping_sub(from) <= units);
        if !self.starts.iter().fold(false, near) {
            return None;
        }
        let within = |queued: &Queued| queued.span.start.wrapping_sub(start);
        let commands = self.commands.iter().enumerate();
        commands
            .filter(|(_, queued)| within(queued) <= width && !queued.write && queued.ready <= now)
            .min_by_key(|(_, queued)| within(queued))
            .map(|(index, _)| index)
    }
}

/// A cost in units of [`BOUND_SHIFT`], as far as 32 bits hold it.
fn coarse(cost_ns: i64) -> i32 {
    (cost_ns >> BOUND_SHIFT) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(order: u64, sector: u64) -> Queued {
        Queued {
            span: Span::new(sector, 8),
            place: Location::default(),
            ready: 0,
            arrived: 0,
            handicap: 0,
            order,
            tag: Tag(order as u32),
            write: false,
        }
    }

    #[test]
    fn a_choice_compares_a_share_of_all_commands_and_the_next_one_goes_on_after_them() {
        let mut queue = Queue::new(16, 5);
        (0..15).for_each(|order| queue.push(read(order, 8 * order)));
        (0..5).for_each(|_| queue.join_plan(0));
        // Ten wait for their choice, five are planned, one is at the arm.
        let mut next = |percent| queue.part(percent).indices().collect::<Vec<_>>();
        let all: Vec<_> = (0..10).collect();
        assert_eq!(next(50), all[..8]);
        assert_eq!(next(50), [8, 9, 0, 1, 2, 3, 4, 5]);
        assert_eq!(next(10), [6, 7]);
        assert_eq!([next(63), next(100)], [all.clone(), all]);
    }

    #[test]
    fn a_stream_ends_after_the_last_of_the_reads_that_follow_it() {
        let mut queue = Queue::new(5, 1);
        for (order, sector) in [(0, 1_016), (1, 1_008), (2, 1_000), (3, 1_100)] {
            queue.push(read(order, sector));
        }
        queue.push(Queued { write: true, ..read(4, 1_024) });
        queue.join_plan(1);
        assert_eq!([queue.stream_end(990, 1_000), queue.stream_end(990, 999)], [1_024, 999]);
    }

    #[test]
    fn the_oldest_outside_is_no_read_of_the_stream() {
        let mut queue = Queue::new(4, 1);
        queue.push(read(0, 1_000));
        queue.push(Queued { write: true, ..read(1, 1_000) });
        queue.push(read(2, 3_000));
        queue.join_plan(0);
        let mut orders = Vec::new();
        while let Some(slot) = queue.oldest_outside(900, 200, 0) {
            orders.push(queue.take(slot).order);
        }
        assert_eq!(orders, [1, 2]);
        assert_eq!(queue.oldest_outside(1_008, 200, 0), Some(QueueIndex::Planned(0)));
    }

    proptest! {
        #[test]
        fn the_nearest_command_of_a_part_is_the_one_that_looking_at_each_finds(
            cylinders in prop::collection::vec(0u32..20, 1..40), percent in 1usize..110, at in 0u32..20, turns in 0..4
        ) {
            let mut queue = Queue::new(1, 1);
            for (order, cylinder) in cylinders.iter().enumerate() {
                let place = Location::on_track(*cylinder, 0, 0, 0, 1, 1, 1);
                queue.push(Queued { place, ..read(order as u64, 0) });
            }
            for _ in 0..turns {
                let part = queue.part(percent);
                let wanted = part.indices().min_by_key(|&index| (cylinders[index].abs_diff(at), index));
                prop_assert_eq!(Some(queue.nearest(&part, at)), wanted);
            }
        }

        #[test]
        fn the_first_read_within_is_the_one_that_looking_at_each_finds(
            commands in prop::collection::vec((0u64..4_000, 0u64..3, any::<bool>()), 0..40),
            start in 0u64..4_000, width in 0u64..2_000, planned in 0usize..7
        ) {
            let mut queue = Queue::new(1, 7);
            for (order, (sector, ready, write)) in commands.into_iter().enumerate() {
                queue.push(Queued { ready, write, ..read(order as u64, sector) });
            }
            for _ in 0..planned.min(queue.commands.len()) {
                queue.join_plan(0);
            }
            let fits = |queued: &&Queued| {
                !queued.write && queued.ready <= 1 && (start..=start + width).contains(&queued.span.start)
            };
            let all = queue.plan.iter().chain(&queue.commands);
            let wanted = all.filter(fits).map(|queued| queued.span.start).min();
            let found = queue.first_read_within(start, width, 1);
            prop_assert_eq!(found.map(|slot| queue.get(slot).span.start), wanted);
            prop_assert!(found.is_none_or(|slot| fits(&queue.get(slot))));
        }
    }
}
