//! The arm: choice of the next command, and its duration.

use super::cache::Span;
use super::geometry::Location;
use super::queue::{Head, Part, QueueIndex, Queued, bound_of};
use super::{AheadTo, Command, Hdd, Op, Policy, SLACK_NS, Sending, Served, Stream, Work};

/// The most sectors that one step of destaging writes before the arm chooses again.
pub(super) const DESTAGE_SECTORS: u64 = 2_048;

/// A command that the controller understands later than this counts as understood then for the choice.
const DELAY_MAX_NS: u64 = 500_000_000;

/// Sectors have smaller numbers than 2^this.
const BEHIND_SHIFT: u32 = 48;

/// The least cost and its index, the first of equals.
fn least(some: impl Iterator<Item = usize>, cost: impl Fn(usize) -> i64) -> (i64, usize) {
    some.map(|index| (cost(index), index)).min().unwrap_or((i64::MAX, 0))
}

impl Hdd {
    pub(super) fn enqueue(&mut self, now: u64, ready: u64, span: Span, command: &Command) {
        self.orders += 1;
        let place = self.config.geometry.locate(span.start);
        self.queue.push(Queued {
            span,
            place,
            ready,
            arrived: now,
            handicap: self.head_start(now),
            order: self.orders,
            tag: command.tag,
            write: command.op == Op::Write,
        });
        self.plan(now);
        self.look(ready);
    }

    /// Fixes the order of as many commands as the drive plans.
    fn plan(&mut self, now: u64) {
        if self.config.batch > 1 {
            return;
        }
        while self.queue.plan_lacks() {
            // Place and time at which the arm will have finished the planned commands, without interruptions.
            let free = self.work.as_ref().map_or(now, |(end, _)| now.max(*end));
            let (head, lba, time) = match self.queue.last_planned() {
                Some(last) => (last.place, last.span.end, self.planned_until.max(free)),
                None => (self.head, self.head_lba, free),
            };
            let (_, index) = self.next_command(&head, lba, time);
            if self.config.policy == Policy::Sptf {
                // The other policies do not depend on the time.
                let stands = (time + self.phase_ns) % self.config.geometry.turn_ns;
                let queued = &self.queue.commands[index];
                let passing = (queued.span.len() * queued.place.sector_fx) >> 32;
                self.planned_until = time + self.positioning_ns(&head, time, stands, index) + passing;
            }
            self.queue.join_plan(index);
        }
    }

    /// The first time, at least `least` after `from`, at which `angle` is under the head.
    #[inline]
    pub(super) fn comes_round(&self, from: u64, least: u64, angle_ns: u32) -> u64 {
        let stands = (from + self.phase_ns) % self.config.geometry.turn_ns;
        from + self.wait_ns(stands, angle_ns, least)
    }

    /// Time from angle `stands` to `angle`, at least `least`.
    #[inline]
    pub(super) fn wait_ns(&self, stands: u64, angle_ns: u32, least: u64) -> u64 {
        let turn = self.config.geometry.turn_ns;
        let angle = u64::from(angle_ns) + SLACK_NS;
        let mut wait = angle + if angle < stands { turn } else { 0 } - stands;
        wait -= if wait >= turn { turn } else { 0 };
        // A fixed number of conditional moves, because these branches are unpredictable.
        for _ in 0..self.turns_max {
            wait += if wait < least { turn } else { 0 };
        }
        // Waits longer than the longest seek are rare: a command that is not understood yet.
        while wait < least {
            wait += turn;
        }
        wait.saturating_sub(SLACK_NS).max(least)
    }

    /// Time to bring the head from `from` to `to` and let it settle.
    #[inline]
    pub(super) fn move_ns(&self, from: &Location, to: &Location, write: bool) -> u64 {
        let moved = match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => return 0,
            0 => self.config.head_switch_ns,
            distance if from.head == to.head => self.config.seek.ns(distance),
            distance => self.config.seek.ns(distance).max(self.config.head_switch_ns),
        };
        if write { moved.saturating_add_signed(self.config.write_settle_ns) } else { moved }
    }

    /// Puts the head before sector `lba`, which follows the last one served at `time`; returns the place and
    /// the time after a change of track, if any.
    pub(super) fn go_on(&mut self, lba: u64, time: u64, write: bool) -> (u64, u64) {
        let behind = lba.wrapping_sub(self.head_lba);
        if behind < u64::from(self.head.left_on_track) {
            self.head = self.config.geometry.along_track(self.head, behind as u32);
            self.head_lba = lba;
            return (lba, time);
        }
        let next = self.config.geometry.locate(lba.min(self.limits.capacity.0 - 1));
        let moved = self.move_ns(&self.head, &next, write);
        self.head = next;
        self.head_lba = lba;
        // Without a move a slipped sector lies between.
        (lba, self.comes_round(time, moved, next.angle_ns))
    }

    /// Lets `sectors` pass the head, beginning at `time`; returns the time after the last one. The head is
    /// then before the next sector.
    #[inline]
    fn pass(&mut self, mut sectors: u64, mut time: u64, write: bool) -> u64 {
        let mut lba = self.head_lba;
        while sectors > 0 {
            let here = self.head;
            let run = sectors.min(u64::from(here.left_on_track));
            if let Some(sending) = &mut self.sending {
                sending.pass(time, here.sector_fx, run);
            }
            let end = time + ((run * here.sector_fx) >> 32);
            sectors -= run;
            (lba, time) = self.go_on(lba + run, end, write);
            if sectors == 0 {
                return end;
            }
        }
        time
    }

    /// Chooses work at `now` and begins it.
    pub(super) fn begin(&mut self, now: u64) {
        self.look_at = u64::MAX;
        self.catch_up(now);
        if !self.serve_in_order(now) {
            self.begin_by_policy(now);
        }
        self.plan(now);
    }

    fn begin_by_policy(&mut self, now: u64) {
        match self.flushes.front().copied() {
            Some(flush) if flush.ready <= now => {
                if !self.write_back(now, flush.order) {
                    self.end_flushes(now);
                    self.look(now);
                }
            }
            Some(flush) => {
                self.begin_without_flush(now);
                self.look(flush.ready);
            }
            None => self.begin_without_flush(now),
        }
    }

    fn begin_without_flush(&mut self, now: u64) {
        if self.write_burst(now) {
            return;
        }
        if self.queue.is_empty() {
            let wrote = now >= self.quiet_at && self.write_back(now, u64::MAX);
            if !wrote && !self.write_cache.extents.is_empty() {
                self.look(self.quiet_at);
            }
            return;
        }
        if let Some(stream) = self.stream {
            let start = self.read_cache.span(stream.segment).start;
            let width = stream.limit.saturating_sub(start);
            if let Some(slot) = self.queue.first_read_within(start, width, now) {
                return self.serve_stream(now, stream, slot);
            }
        }
        if !self.queue.any_ready(now) {
            return self.look(self.queue.ready().unwrap_or(now));
        }
        if self.lingers(now) {
            return;
        }
        if self.config.batch > 1 && !self.take_batch(now) {
            return;
        }
        if let Some(slot) = self.queue.next_planned() {
            return self.serve(now, slot, None);
        }
        let (cost, index) = self.next_command(&{ self.head }, self.head_lba, now);
        let sptf = self.config.policy == Policy::Sptf;
        // Its positioning time plus its handicap, minus all head starts.
        let handicap = self.queue.commands[index].handicap;
        let reached = sptf.then(|| now + (cost + self.head_start(now) - handicap) as u64);
        self.serve(now, QueueIndex::Free(index), reached);
    }

    /// The unplanned command to serve next when the arm is at `head`, before sector `lba`, at `now`; with
    /// SPTF also the time to reach it, minus its head start.
    fn next_command(&mut self, head: &Location, lba: u64, now: u64) -> (i64, usize) {
        let part = self.queue.part(self.config.look_ahead_percent);
        let commands = &self.queue.commands;
        match self.config.policy {
            Policy::Sptf => self.soonest_reached(head, now, &part),
            Policy::Sstf => (0, self.queue.nearest(&part, head.cylinder)),
            // Those behind the head come after all those before it.
            Policy::Clook => least(part.indices(), |index| {
                let start = commands[index].span.start;
                start as i64 + (i64::from(start < lba) << BEHIND_SHIFT)
            }),
            Policy::Fcfs => least(0..commands.len(), |index| commands[index].order as i64),
        }
    }

    /// Shortest positioning time first, among the commands of `part`. All head starts grow at the same rate, so
    /// each command has a constant handicap from its arrival. A lower bound of each cost selects the few commands
    /// that need an exact computation.
    pub(super) fn soonest_reached(&mut self, from: &Location, now: u64, part: &Part) -> (i64, usize) {
        let turn = self.config.geometry.turn_ns;
        let stands = (now + self.phase_ns) % turn;
        let head_start = self.head_start(now);
        let head = Head { stands, cylinder: from.cylinder as i32, floor: self.config.seek.floor() };
        self.queue.bound_costs(part, head, turn, head_start);
        let bounds = &self.queue.bounds;
        let Some(first) = part.indices().min_by_key(|&index| bounds[index]) else { return (i64::MAX, 0) };
        let mut best = (self.cost(from, now, stands, first), first);
        let mut limit = bound_of(best.0 - head_start);
        for index in part.indices() {
            if bounds[index] <= limit && index != first {
                best = best.min((self.cost(from, now, stands, index), index));
                limit = bound_of(best.0 - head_start);
            }
        }
        (best.0 - head_start, best.1)
    }

    /// The head start of a command that has waited from time zero to `now`.
    fn head_start(&self, now: u64) -> i64 {
        ((now * self.config.ageing) >> 10) as i64
    }

    /// The cost of a queued command, without head starts.
    fn cost(&self, from: &Location, now: u64, stands: u64, index: usize) -> i64 {
        self.positioning_ns(from, now, stands, index) as i64 + self.queue.commands[index].handicap
    }

    /// Time to move the head from a place to the start of a queued command's first sector.
    fn positioning_ns(&self, from: &Location, now: u64, stands: u64, index: usize) -> u64 {
        let queued = &self.queue.commands[index];
        let moved = self.move_ns(from, &queued.place, queued.write);
        let understood = queued.ready.saturating_sub(now).min(DELAY_MAX_NS);
        self.wait_ns(stands, queued.place.angle_ns, moved + understood)
    }

    /// Moves the head to the command's first sector and serves the command. `reached`: the time of arrival,
    /// if known.
    pub(super) fn serve(&mut self, now: u64, slot: QueueIndex, reached: Option<u64>) {
        let in_batch = self.is_in_batch(slot);
        let queued = self.queue.take(slot);
        self.begins.note(queued.tag, now);
        let leaves = self.leave_stream(now);
        let mut start = queued.span.start;
        let continued = if queued.write { None } else { self.read_cache.continues(start) };
        if let Some(segment) = continued {
            // Its first sectors are in the cache already.
            start = self.read_cache.span(segment).end.min(queued.span.end - 1);
        }
        let in_front = start == queued.span.start;
        let place = if in_front { queued.place } else { self.config.geometry.locate(start) };
        let span = Span { start, end: queued.span.end };
        if self.config.link_holds_up && !queued.write {
            let share = self.config.read_reselect_share * queued.span.len() as f64;
            self.send(now.max(queued.ready), start - queued.span.start, share.ceil() as u64);
        }
        let sets_out = leaves.max(queued.ready);
        let moved = self.move_ns(&self.head, &place, queued.write);
        let waits = if queued.write { self.write_waits_ns(&queued, sets_out) } else { 0 };
        let begins = match reached {
            Some(reached) if in_front && sets_out == now && waits <= moved => reached,
            _ => self.comes_round(sets_out, moved.max(waits), place.angle_ns),
        };
        let passed = match continued {
            None if self.config.read_keeps_passed && !queued.write => {
                self.config.geometry.passed_before(start, &place, begins - (sets_out + moved))
            }
            _ => 0,
        };
        let end = self.work_on(sets_out + moved, begins, span, place, queued.write);
        if self.config.link_held && !queued.write {
            self.held = (begins.min(end), end);
        }
        self.busy_ns += end - now;
        self.work = Some((end, Work::Serve(Served::new(&queued, passed, in_batch), continued)));
    }

    /// The head leaves the stream, if it is in one; returns the time from which it may move.
    #[inline]
    pub(super) fn leave_stream(&mut self, now: u64) -> u64 {
        let stream = self.stream.take();
        let Some(stream) = stream.filter(|_| self.config.read_ahead_ends_sector) else { return now };
        // Between two tracks no sector passes.
        if stream.at >= stream.limit || stream.time >= now {
            return now;
        }
        self.read_cache.extend(stream.segment, stream.at + 1);
        (stream.time + (self.head.sector_fx >> 32)).max(now)
    }

    /// The least time from `now` until a write's first sector may pass the head, so that each sector's data
    /// have arrived by then.
    fn write_waits_ns(&self, queued: &Queued, now: u64) -> u64 {
        let least = self.config.write_seek_min_ns;
        let Some(data) = self.config.write_data_ns else { return least };
        let over = |sectors: u64| queued.arrived + data + ((sectors * self.config.link_write_fx) >> 16);
        let passing = ((queued.span.len() - 1) * queued.place.sector_fx) >> 32;
        let there = over(1).max(over(queued.span.len()).saturating_sub(passing));
        least.max(there.saturating_sub(now))
    }

    /// The link is free from `start` on for a read with `cached` sectors in the cache.
    fn send(&mut self, start: u64, cached: u64, after: u64) {
        let (reselect_ns, link_fx) = (self.config.read_reselect_ns, self.config.link_fx);
        self.sending = Some(Sending::new(start.max(self.link_free), cached, after, reselect_ns, link_fx));
    }

    /// Serves a read that the head reaches by reading ahead.
    pub(super) fn serve_stream(&mut self, now: u64, stream: Stream, slot: QueueIndex) {
        let in_batch = self.is_in_batch(slot);
        let queued = self.queue.take(slot);
        self.begins.note(queued.tag, now);
        let mut end = now;
        if queued.span.end > stream.at {
            if self.config.link_holds_up {
                let cached = stream.at.saturating_sub(queued.span.start);
                self.send(now.max(queued.ready), cached, 0);
            }
            // A stream that stopped at its limit waits for its sector to come round.
            let time = if stream.at >= stream.limit && stream.time < now {
                self.comes_round(now, 0, self.head.angle_ns)
            } else {
                stream.time
            };
            end = self.pass(queued.span.end - stream.at, time, false).max(now);
            if self.config.link_held {
                self.held = (time.clamp(now, end), end);
            }
        }
        self.busy_ns += end - now;
        self.work = Some((end, Work::Serve(Served::new(&queued, 0, in_batch), Some(stream.segment))));
    }

    /// The head reaches the track at `arrives` and `place` at `start`: lets all of `span`, which begins
    /// there, pass; returns the time after the last sector.
    pub(super) fn work_on(
        &mut self,
        arrives: u64,
        mut start: u64,
        span: Span,
        place: Location,
        write: bool,
    ) -> u64 {
        let physical = self.config.physical_sectors;
        if write && !(span.start.is_multiple_of(physical) && span.end.is_multiple_of(physical)) {
            // A part of a physical sector: read it in one revolution, write it in the next.
            start += self.config.geometry.turn_ns;
        }
        self.head = place;
        self.head_lba = span.start;
        let any_first = if write { self.config.zero_latency_write } else { self.config.zero_latency_read };
        if any_first {
            let on_track = span.len().min(u64::from(place.left_on_track));
            let passing = (on_track * place.sector_fx) >> 32;
            // The head arrived within the sectors: those before it come last.
            let into = passing.saturating_sub(self.config.geometry.turn_ns.saturating_sub(start - arrives));
            let first = on_track - ((into << 32) / place.sector_fx).min(on_track - 1);
            if first < on_track {
                return self.pass_from_within(span, start, first, on_track, write);
            }
        }
        self.pass(span.len(), start, write)
    }

    /// The last sectors of `span` on its first track have passed when its first one comes, at `start`: only
    /// `first` of `on_track` sectors remain.
    fn pass_from_within(&mut self, span: Span, start: u64, first: u64, on_track: u64, write: bool) -> u64 {
        let here = self.head;
        if let Some(sending) = &mut self.sending {
            sending.pass(start, here.sector_fx, first);
            sending.follow(on_track - first);
        }
        let end = start + ((first * here.sector_fx) >> 32);
        let (_, time) = self.go_on(span.start + on_track, end, write);
        match span.len() - on_track {
            0 => end,
            rest => self.pass(rest, time, write),
        }
    }

    /// The arm has finished its work at `now`.
    pub(super) fn finish(&mut self, now: u64, work: Work) {
        match work {
            Work::Serve(served, _) if served.write => {
                let geometry = &self.config.geometry;
                self.write_cache.remove(served.span, served.order, |lba| geometry.locate(lba));
                let reported = now + self.config.write_reselect_ns + self.config.write_end_ns;
                self.report(reported, &served);
                self.admit(now);
            }
            Work::Serve(served, continued) => {
                // The data crossed the link as they came; the last block remains.
                let mut end = self.over_link(now, served.span.len().min(self.config.physical_sectors));
                if let Some(sending) = self.sending.take() {
                    end = end.max(sending.until());
                    self.link_free = end;
                }
                self.report(end + self.config.read_end_ns, &served);
                self.read_on(now, &served, continued);
            }
            Work::Destage => {
                self.write_cache.end_writing();
                self.admit(now);
            }
        }
        self.end_flushes(now);
        if !self.queue.is_empty() || !self.write_cache.extents.is_empty() {
            self.look(now);
        }
    }

    /// After a read: adds it to the segment that it continues, if any, and lets the head read ahead.
    fn read_on(&mut self, now: u64, served: &Served, continued: Option<usize>) {
        let span = served.span;
        let segment = match continued {
            Some(segment) => segment,
            None => self.read_cache.replace(span),
        };
        let at = self.head_lba.max(span.end);
        self.read_cache.extend(segment, at);
        let limit = self.read_on_to(span.end, segment, continued.is_some());
        if served.passed > 0 {
            self.read_cache.add_passed(segment, u64::from(served.passed), limit);
        }
        let time = match self.stream {
            Some(stream) if span.end <= stream.at => stream.time,
            _ => self.comes_round(now, 0, self.head.angle_ns),
        };
        self.lingers_until = 0;
        if continued.is_some() || self.leaves_stream_aside() {
            self.linger(now);
        }
        let on = self.config.read_ahead_sectors > 0;
        self.stream = on.then_some(Stream { segment, at, time, limit: limit.max(at) });
    }

    /// After a read that this segment has served wholly, up to `end`: the head reads ahead from the segment's
    /// end, as after a read from the medium, if nothing else waits for it.
    pub(super) fn read_on_again(&mut self, now: u64, segment: usize, end: u64) {
        let idle = self.work.is_none()
            && self.queue.is_empty()
            && self.flushes.is_empty()
            && self.write_cache.extents.is_empty();
        let at = self.read_cache.span(segment).end;
        let limit = self.read_on_to(end, segment, true);
        if !idle || limit <= at {
            return;
        }
        let stream = self.stream.filter(|stream| stream.segment == segment);
        let time = match stream {
            Some(stream) if stream.at < stream.limit => stream.time,
            Some(_) => self.comes_round(now, 0, self.head.angle_ns),
            None => {
                let leaves = self.leave_stream(now);
                let place = self.config.geometry.locate(at);
                let moved = self.move_ns(&self.head, &place, false);
                (self.head, self.head_lba) = (place, at);
                self.comes_round(leaves, moved, place.angle_ns)
            }
        };
        let limit = limit.max(stream.map_or(0, |stream| stream.limit));
        self.stream = Some(Stream { segment, at, time, limit });
    }

    /// The end of the read-ahead after a read that ends at `end`.
    #[inline(always)]
    fn read_on_to(&self, end: u64, segment: usize, continued: bool) -> u64 {
        let room = self.read_cache.segment_sectors();
        let most = end + self.config.read_ahead_sectors.min(room);
        let track_end = |lba: u64| {
            let last = lba.min(self.limits.capacity.0 - 1);
            last + u64::from(self.config.geometry.locate(last).left_on_track)
        };
        let rule = match self.config.read_ahead_to {
            AheadTo::Distance => self.stream.map_or(most, |stream| stream.limit.max(most)),
            AheadTo::Segment => most,
            AheadTo::NextTrack if continued => track_end(track_end(end - 1)).min(most),
            AheadTo::Track | AheadTo::NextTrack => track_end(end - 1).min(most),
        };
        let full = match self.config.read_ahead_keeps {
            true => self.read_cache.requested_from(segment) + room,
            false => u64::MAX,
        };
        rule.min(full).min(self.limits.capacity.0)
    }
}
