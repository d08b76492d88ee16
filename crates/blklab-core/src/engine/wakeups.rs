//! The run queue: actors that can run now, and timers of actors.

use std::collections::VecDeque;

use crate::owner::Actor;
use crate::pagecache::BackingId;
use crate::request::ProcessId;
use crate::units::Nanos;
use blklab_base::event_queue::{EventQueue, Turn};

/// A process that began so many places before another takes the only CPU from it.
const PLACES_AHEAD: u32 = 2;

/// The number of the first flusher among the timers; those of processes are smaller.
const FLUSHERS: u32 = 1 << 31;
/// The number of the first kernel thread that syncs.
const SYNCERS: u32 = 3 << 30;
/// The numbers of the journal's thread and of its timer there.
const JOURNAL: [u32; 2] = [u32::MAX, u32::MAX - 1];

/// Actors that are awake or have a timer.
#[derive(Debug)]
pub struct Wakeups {
    ready: VecDeque<Actor>,
    timers: EventQueue,
    /// Those of actors that are ready; see [`Wakeups::wake_in_turn`].
    turns: Vec<(Actor, Turn)>,
    /// Per process: it is in `ready` or has a timer; it is not woken a second time.
    scheduled: Vec<bool>,
    /// The same per flusher.
    flushers_scheduled: Vec<bool>,
    /// The same of kernel threads that sync.
    syncers_scheduled: Vec<bool>,
    /// The same of the journal's thread and of its timer.
    journal_scheduled: [bool; 2],
    /// Per process that has run: its place among these. It decides on one CPU ([`Wakeups::next_on_one_cpu`]).
    places: Vec<Option<u32>>,
    have_run: u32,
}

impl Wakeups {
    /// For this many processes and flushers, all asleep.
    pub fn new(processes: usize, flushers: usize) -> Wakeups {
        Wakeups {
            ready: VecDeque::with_capacity(processes + flushers),
            timers: EventQueue::default(),
            turns: Vec::new(),
            scheduled: vec![false; processes],
            flushers_scheduled: vec![false; flushers],
            syncers_scheduled: Vec::new(),
            journal_scheduled: [false; 2],
            places: vec![None; processes],
            have_run: 0,
        }
    }

    #[inline]
    fn scheduled(&mut self, actor: Actor) -> &mut bool {
        match actor {
            Actor::Process(process) => &mut self.scheduled[process.0 as usize],
            Actor::Flusher(backing) => &mut self.flushers_scheduled[usize::from(backing.0)],
            Actor::Syncer(number) => {
                let number = number as usize;
                if number >= self.syncers_scheduled.len() {
                    self.syncers_scheduled.resize(number + 1, false);
                }
                &mut self.syncers_scheduled[number]
            }
            Actor::Journal => &mut self.journal_scheduled[0],
            Actor::JournalTimer => &mut self.journal_scheduled[1],
        }
    }

    /// The actor is about to run: from now on it may be woken again.
    #[inline]
    pub fn begin(&mut self, actor: Actor) {
        *self.scheduled(actor) = false;
    }

    /// Lets a sleeping actor run at `at`; no effect on an actor that will run anyway.
    #[inline(always)]
    pub fn wake(&mut self, actor: Actor, at: Nanos, now: Nanos) {
        let scheduled = self.scheduled(actor);
        if *scheduled {
            return;
        }
        *scheduled = true;
        if at <= now {
            self.ready.push_back(actor);
        } else {
            self.timers.push(at.0, payload(actor));
        }
    }

    /// Lets a sleeping actor run now. If it then works first, it has its turn of now among those that go on at the same
    /// time: its work begins when it runs, and that of an I/O's end at once, but a kernel sets both timers in turn.
    pub fn wake_in_turn(&mut self, actor: Actor, now: Nanos) {
        if !*self.scheduled(actor) {
            self.turns.push((actor, self.timers.turn()));
            self.wake(actor, now, now);
        }
    }

    /// The turn in which an actor that runs was woken.
    pub fn take_turn(&mut self, actor: Actor) -> Option<Turn> {
        let place = self.turns.iter().position(|turn| turn.0 == actor)?;
        Some(self.turns.swap_remove(place).1)
    }

    /// Lets an actor that runs go on `at` a later time, in that turn if it has one.
    pub fn sleep_in_turn(&mut self, actor: Actor, at: Nanos, turn: Option<Turn>) {
        *self.scheduled(actor) = true;
        let turn = turn.unwrap_or_else(|| self.timers.turn());
        self.timers.push_in_turn(at.0, turn, payload(actor));
    }

    /// Moves actors with expired timers to the ready list.
    #[inline(always)]
    pub fn expire(&mut self, now: Nanos) {
        while self.timers.next() <= now.0
            && let Some((_, payload)) = self.timers.pop()
        {
            self.ready.push_back(match payload.checked_sub(FLUSHERS) {
                None => Actor::Process(ProcessId(payload)),
                Some(_) if payload == JOURNAL[0] => Actor::Journal,
                Some(_) if payload == JOURNAL[1] => Actor::JournalTimer,
                Some(_) if payload >= SYNCERS => Actor::Syncer(payload - SYNCERS),
                Some(flusher) => Actor::Flusher(BackingId(flusher as u16)),
            });
        }
    }

    /// The next actor to run on the only CPU: of the processes the one that ran first of all.
    ///
    /// CFS chooses by virtual run times. Those of new processes are milliseconds apart (`START_DEBIT` in
    /// `place_entity()`), so that their order is also that in which they begin; and it stays, since where only
    /// reading the clock takes time, a process works for microseconds between its I/Os.
    pub fn next_on_one_cpu(&mut self) -> Option<Actor> {
        let place = |actor: &Actor| match actor {
            Actor::Process(process) => 1 + self.places[process.0 as usize].unwrap_or(u32::MAX - 1),
            Actor::Flusher(_) | Actor::Journal | Actor::JournalTimer | Actor::Syncer(_) => 0,
        };
        let (index, actor) = self.ready.iter().enumerate().min_by_key(|(_, actor)| place(actor))?;
        if let Actor::Process(process) = *actor {
            let place = &mut self.places[process.0 as usize];
            if place.is_none() {
                *place = Some(self.have_run);
                self.have_run += 1;
            }
        }
        self.ready.remove(index)
    }

    /// The next of the processes that are ready and take the only CPU from this one, which works. It is ready no more.
    ///
    /// CFS lets a process that wakes up have the CPU if its virtual run time is less by more than a millisecond
    /// (`wakeup_preempt_entity()`). Processes that began one after the other are not that far apart.
    pub fn next_instead_of(&mut self, running: ProcessId) -> Option<ProcessId> {
        let place = |process: ProcessId| self.places[process.0 as usize];
        let limit = place(running)?.checked_sub(PLACES_AHEAD)?;
        let is_ahead = |(index, actor): (usize, &Actor)| match *actor {
            Actor::Process(process) => {
                place(process).filter(|&place| place <= limit).map(|place| (place, index, process))
            }
            _ => None,
        };
        let (_, index, process) = self.ready.iter().enumerate().filter_map(is_ahead).min()?;
        self.ready.remove(index);
        Some(process)
    }

    /// The next actor to run.
    #[inline]
    pub fn next_ready(&mut self) -> Option<Actor> {
        self.ready.pop_front()
    }

    /// At least one actor can run now.
    #[inline]
    pub fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next timer expires.
    #[inline]
    pub fn next_timer(&self) -> Nanos {
        Nanos(self.timers.next())
    }
}

/// The number of an actor among the timers.
#[inline]
fn payload(actor: Actor) -> u32 {
    match actor {
        Actor::Process(process) => process.0,
        Actor::Flusher(backing) => FLUSHERS + u32::from(backing.0),
        Actor::Syncer(number) => SYNCERS + number,
        Actor::Journal => JOURNAL[0],
        Actor::JournalTimer => JOURNAL[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Actor = Actor::Process(ProcessId(0));
    const SECOND: Actor = Actor::Process(ProcessId(1));

    fn drain(wakeups: &mut Wakeups) -> Vec<Actor> {
        std::iter::from_fn(|| wakeups.next_ready()).collect()
    }

    #[test]
    fn on_one_cpu_the_process_that_ran_first_of_all_is_next() {
        let mut wakeups = Wakeups::new(2, 2);
        let mut next_of = |woken: &[Actor]| {
            for &actor in woken {
                wakeups.begin(actor);
                wakeups.wake(actor, Nanos(5), Nanos(5));
            }
            std::iter::from_fn(|| wakeups.next_on_one_cpu()).collect::<Vec<_>>()
        };
        assert_eq!(next_of(&[SECOND, FIRST]), [SECOND, FIRST], "none has run");
        assert_eq!(next_of(&[FIRST, SECOND]), [SECOND, FIRST]);
        let flusher = Actor::Flusher(BackingId(0));
        assert_eq!(
            next_of(&[FIRST, SECOND, flusher]),
            [flusher, SECOND, FIRST],
            "threads of the kernel go before"
        );
    }

    #[test]
    fn a_process_takes_the_only_cpu_from_one_that_began_two_places_later() {
        let mut wakeups = Wakeups::new(4, 0);
        let actors = [2, 1, 0].map(|number| Actor::Process(ProcessId(number)));
        actors.iter().for_each(|&actor| wakeups.wake(actor, Nanos(5), Nanos(5)));
        assert_eq!(std::iter::from_fn(|| wakeups.next_on_one_cpu()).collect::<Vec<_>>(), actors);
        actors.iter().for_each(|&actor| wakeups.begin(actor));
        wakeups.wake(SECOND, Nanos(6), Nanos(6));
        assert_eq!(wakeups.next_instead_of(ProcessId(0)), None, "its neighbour");
        wakeups.wake(actors[0], Nanos(6), Nanos(6));
        assert_eq!(wakeups.next_instead_of(ProcessId(0)), Some(ProcessId(2)));
        assert_eq!(wakeups.next_instead_of(ProcessId(0)), None);
        wakeups.wake(Actor::Process(ProcessId(3)), Nanos(6), Nanos(6));
        assert_eq!(wakeups.next_instead_of(ProcessId(0)), None, "it has not run yet");
        assert_eq!(drain(&mut wakeups), [SECOND, Actor::Process(ProcessId(3))]);
    }

    #[test]
    fn an_actor_that_works_first_goes_on_in_the_turn_in_which_it_was_woken() {
        let (mut wakeups, now, later) = (Wakeups::new(2, 2), Nanos(5), Nanos(9));
        wakeups.wake_in_turn(FIRST, now);
        // An I/O of another one ends, and its work begins at once.
        wakeups.wake(SECOND, later, now);
        assert_eq!(drain(&mut wakeups), [FIRST]);
        wakeups.begin(FIRST);
        let turn = wakeups.take_turn(FIRST);
        wakeups.sleep_in_turn(FIRST, later, turn);
        wakeups.expire(later);
        assert_eq!(drain(&mut wakeups), [FIRST, SECOND]);
        assert_eq!(wakeups.take_turn(FIRST), None);
    }

    #[test]
    fn actors_go_on_in_the_order_of_their_times_and_once_for_each_wake_up() {
        let mut wakeups = Wakeups::new(2, 2);
        wakeups.wake(SECOND, Nanos(7), Nanos(5));
        let flusher = Actor::Flusher(BackingId(1));
        wakeups.wake(flusher, Nanos(6), Nanos(5));
        wakeups.wake(FIRST, Nanos(5), Nanos(5));
        for actor in [FIRST, SECOND, flusher] {
            wakeups.wake(actor, Nanos(5), Nanos(5));
        }
        assert_eq!((drain(&mut wakeups), wakeups.next_timer()), (vec![FIRST], Nanos(6)));
        wakeups.expire(Nanos(7));
        assert_eq!((drain(&mut wakeups), wakeups.next_timer()), (vec![flusher, SECOND], Nanos::NEVER));
        wakeups.wake(SECOND, Nanos(8), Nanos(7));
        assert_eq!(wakeups.next_timer(), Nanos::NEVER, "it has not begun to run yet");
        wakeups.begin(SECOND);
        wakeups.wake(SECOND, Nanos(8), Nanos(7));
        assert_eq!(wakeups.next_timer(), Nanos(8));
    }
}
