//! Which I/Os a process handed over together.
//!
//! The kernel has an event where a process begins to collect requests under a plug, which is after the
//! first bio was queued, and one where it hands them over by a flush of the plug. Some flushes have no
//! event (a driver that takes requests at once, `blk_mq_flush_plug_list`), so a plug also ends when an I/O
//! under it is inserted or issued. An I/O that is inserted or issued without a plug came without one
//! ([`Flags::BARE`]), if the trace has these events at all.

use std::collections::HashMap;

use blklab_base::recorded::{Flags, Io};

/// The state of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// The last I/O that it queued, until that has been handed over.
    last: Option<u64>,
    /// The first I/O under the open plug.
    plug: Option<u64>,
}

/// The plugs of all processes.
#[derive(Debug, Default)]
pub struct Plugs {
    processes: HashMap<u32, Process>,
    /// The trace has events of plugs. Processes are followed from the first of them on: most traces of
    /// other programs have none.
    known: bool,
    /// Process and number of the latest I/O, as long as none is followed.
    latest: (u32, u64),
}

/// The most processes that are followed; those beyond have no plugs.
const PROCESSES_MAX: usize = 1 << 16;

impl Plugs {
    /// The process collects requests, from the bio on that it queued last.
    pub fn begin(&mut self, pid: u32) {
        if !self.known && self.latest.0 == pid {
            self.processes.insert(pid, Process { last: Some(self.latest.1), plug: None });
        }
        self.known = true;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.plug = process.last;
        }
    }

    /// The process has handed over what it had collected.
    pub fn end(&mut self, pid: u32) {
        self.known = true;
        if let Some(process) = self.processes.get_mut(&pid) {
            *process = Process::default();
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
        process.plug.is_some()
    }

    /// The I/O of this number is inserted or issued.
    pub fn handed_over(&mut self, io: &mut Io, number: u64) {
        if !self.known {
            return;
        }
        let Some(process) = self.processes.get_mut(&io.pid) else { return };
        match process.plug {
            // All of the plug goes together.
            Some(first) if number >= first => *process = Process::default(),
            None if process.last == Some(number) => {
                io.flags = io.flags.with(Flags::BARE);
                process.last = None;
            }
            _ => {}
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
    }
}
