//! Which I/Os a process handed over together.
//!
//! The kernel has an event where a process begins to collect requests under a plug, which is after the
//! first bio was queued, and one where it hands them over by a flush of the plug. Some flushes have no
//! event (a driver that takes requests at once, `blk_mq_flush_plug_list`), so a plug also ends when an I/O
//! under it is inserted or issued. A full plug is flushed when the next bio was queued: for the kernel
//! another plug begins with that bio, but the process has not ended the one that it began, so that the bio
//! joins those before. An I/O that is inserted or issued without a plug came without one
//! ([`Flags::BARE`]), if the trace has these events at all.

use std::collections::HashMap;

use blklab_base::recorded::{Flags, Io};

/// The state of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// The last I/O that it queued, until that has been handed over.
    last: Option<u64>,
    /// That came while a plug was open.
    joined: bool,
    /// The first I/O under the open plug.
    plug: Option<u64>,
}

/// The plugs of all processes.
#[derive(Debug, Default)]
pub struct Plugs {
    processes: HashMap<u32, Process>,
    /// The trace has events of plugs, or would have them. Processes are followed from the first of them on: most traces of
    /// other programs have none.
    known: bool,
    /// Process and number of the latest I/O, as long as none is followed.
    latest: (u32, u64),
}

/// The most processes that are followed; those beyond have no plugs.
const PROCESSES_MAX: usize = 1 << 16;

impl Plugs {
    /// Those of events among which there are some of each plug, so that an I/O without them had none.
    pub fn all_known() -> Plugs {
        Plugs { known: true, ..Plugs::default() }
    }

    /// The process collects requests, from the bio on that it queued last.
    pub fn begin(&mut self, pid: u32) {
        if !self.known && self.latest.0 == pid {
            self.processes.insert(pid, Process { last: Some(self.latest.1), ..Process::default() });
        }
        self.known = true;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.plug = process.last;
            process.joined = true;
        }
    }

    /// The process has handed over what it had collected.
    pub fn end(&mut self, pid: u32) {
        self.known = true;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.plug = None;
        }
    }

    /// The process has queued the I/O of this number; whether it joins an open plug.
    pub fn queued(&mut self, pid: u32, number: u64) -> bool {
        if !self.known {
            self.latest = (pid, number);
            return false;
        }
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            return false;
        }
        let process = self.processes.entry(pid).or_default();
        process.last = Some(number);
        process.joined = process.plug.is_some();
        process.joined
    }

    /// The I/O of this number is inserted or issued.
    pub fn handed_over(&mut self, io: &mut Io, number: u64) {
        if !self.known {
            return;
        }
        let Some(process) = self.processes.get_mut(&io.pid) else { return };
        // All of the plug goes together, but perhaps for the last bio, for which there was no room.
        if process.plug.is_some_and(|first| number >= first) {
            process.plug = None;
        }
        if process.last == Some(number) {
            io.flags = io.flags.with_if(!process.joined, Flags::BARE);
            process.last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(pid: u32) -> Io {
        Io { pid, ..Io::default() }
    }

    #[test]
    fn ios_between_plug_and_unplug_join_the_first() {
        let mut plugs = Plugs::default();
        assert!(!plugs.queued(7, 0));
        plugs.begin(7);
        assert!(plugs.queued(7, 1));
        assert!(!plugs.queued(8, 2), "another process has no plug");
        assert!(plugs.queued(7, 3));
        plugs.end(7);
        assert!(!plugs.queued(7, 4));
    }

    #[test]
    fn a_plug_ends_when_one_of_its_ios_is_issued() {
        let mut plugs = Plugs::default();
        plugs.queued(7, 0);
        plugs.begin(7);
        plugs.queued(7, 1);
        let mut first = io(7);
        plugs.handed_over(&mut first, 0);
        assert_eq!(first.flags, Flags::default(), "it came under a plug");
        assert!(!plugs.queued(7, 2));
    }

    #[test]
    fn the_bio_that_finds_a_full_plug_joins_those_before_and_so_do_the_next_ones() {
        for has_event in [true, false] {
            let mut plugs = Plugs::default();
            plugs.queued(7, 0);
            plugs.begin(7);
            assert!(plugs.queued(7, 1) && plugs.queued(7, 2));
            if has_event {
                plugs.end(7);
            }
            let mut ios = [io(7); 2];
            plugs.handed_over(&mut ios[0], 0);
            plugs.handed_over(&mut ios[1], 1);
            plugs.begin(7);
            assert!(plugs.queued(7, 3), "event {has_event}");
            plugs.end(7);
            let mut rest = [io(7); 2];
            plugs.handed_over(&mut rest[0], 2);
            plugs.handed_over(&mut rest[1], 3);
            assert!([ios, rest].concat().iter().all(|io| io.flags == Flags::default()), "none came bare");
            assert!(!plugs.queued(7, 4));
        }
    }

    #[test]
    fn an_io_that_is_issued_at_once_came_without_a_plug_if_the_trace_has_plugs() {
        let mut plugs = Plugs::default();
        let mut one = io(7);
        plugs.queued(7, 0);
        plugs.handed_over(&mut one, 0);
        assert_eq!(one.flags, Flags::default(), "the trace has no plugs so far");
        plugs.end(9);
        plugs.queued(7, 1);
        plugs.handed_over(&mut one, 1);
        assert_eq!(one.flags, Flags::BARE);
        let mut plugs = Plugs::all_known();
        let mut first = io(7);
        plugs.queued(7, 0);
        plugs.handed_over(&mut first, 0);
        assert_eq!(first.flags, Flags::BARE, "its events are of a kind that has plugs");
    }
}
