//! One recorded process: a thread that submits and waits.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::thread::Scope;

use blklab_core::request::{IoPrio, Op, ProcessId};
use blklab_core::scheduler::CgroupId;
use blklab_core::source::replay::issuer::Step;
use blklab_core::source::replay::{Plug, ReplayIo};
use blklab_core::units::Nanos;

use crate::Run;
use crate::aio::{Event, Iocb, TAKEN_MAX, lengthen_for_a_plug};
use crate::deputy::Deputy;
use crate::sys;

/// A process and its state.
pub struct Process<'a> {
    run: &'a Run<'a>,
    id: ProcessId,
    deputy: Deputy<'a>,
    /// That of the calling thread.
    cgroup: CgroupId,
    /// I/Os that have begun and are not submitted.
    begun: Vec<u32>,
    blocks: Vec<Iocb>,
    addresses: Vec<*mut Iocb>,
    events: Vec<Event>,
}

impl<'a> Process<'a> {
    /// The process of the calling thread.
    pub fn new(run: &'a Run<'a>, id: ProcessId, prio: IoPrio) -> io::Result<Process<'a>> {
        // Otherwise a pause may take 50 us longer, so that it can end together with others.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        run.begin(id);
        match sys::set_priority(prio) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                run.without_priority.fetch_add(1, Ordering::Relaxed);
            }
            result => result?,
        }
        let mut process = Process {
            run,
            id,
            cgroup: CgroupId::ROOT,
            deputy: Deputy::new(run, id),
            begun: Vec::new(),
            blocks: Vec::new(),
            addresses: Vec::new(),
            events: vec![Event::default(); TAKEN_MAX],
        };
        let first = run.issuer().first(id).map(|io| io.cgroup);
        process.enter(first.unwrap_or_default())?;
        Ok(process)
    }

    /// Moves into that cgroup.
    fn enter(&mut self, cgroup: CgroupId) -> io::Result<()> {
        if self.cgroup != cgroup {
            self.run.enter(cgroup)?;
            self.cgroup = cgroup;
        }
        Ok(())
    }

    /// Submits all of its I/Os and waits for them.
    pub fn live<'scope>(mut self, scope: &'scope Scope<'scope, 'a>) -> io::Result<()> {
        sys::sleep_until(self.run.epoch);
        while !self.run.has_failed() {
            let step = self.run.issuer().next(self.id, self.run.now());
            match step {
                Step::Submit { io, due } => self.submit(io, due, scope)?,
                Step::Pause(until) => self.wait(Some(until))?,
                Step::Wait => self.wait(None)?,
                Step::Finish => break,
            }
        }
        Ok(())
    }

    /// Submits an I/O, and those that come under the same plug.
    fn submit<'scope>(&mut self, first: u32, due: Nanos, scope: &'scope Scope<'scope, 'a>) -> io::Result<()> {
        let mut issuer = self.run.issuer();
        let now = self.run.now();
        let before = issuer.in_flight(self.id);
        let mut step = Step::Submit { io: first, due };
        while let Step::Submit { io, due } = step {
            issuer.begin(io, due, now);
            self.begun.push(io);
            if issuer.io(io).plug != Plug::GoesOn {
                break;
            }
            step = issuer.next(self.id, now);
        }
        let ios: Vec<ReplayIo> = self.begun.iter().map(|&io| *issuer.io(io)).collect();
        drop(issuer);
        self.run.in_flight.fetch_add(ios.len(), Ordering::Relaxed);
        if (before > 0 || ios.len() > 1) && self.run.may_sleep() {
            self.deputy.begin(scope)?;
        }
        let mut from = 0;
        while from < ios.len() {
            let cgroup = ios[from].cgroup;
            self.enter(cgroup)?;
            // A bio is of the cgroup that its process is in when it is submitted.
            let stays = self.run.enter.is_none();
            let is_together = |io: &&ReplayIo| io.op != Op::Discard && (stays || io.cgroup == cgroup);
            let moved = ios[from..].iter().take_while(is_together).count();
            if moved == 0 {
                self.discard(self.begun[from], &ios[from])?;
                from += 1;
            } else {
                self.hand_over(from, &ios[from..from + moved])?;
                from += moved;
            }
        }
        self.begun.clear();
        self.deputy.end()
    }

    /// Submits reads, writes and flushes to the block layer: those from the `from`-th of `begun` on.
    fn hand_over(&mut self, from: usize, ios: &[ReplayIo]) -> io::Result<()> {
        let (place, fd) = (self.run.place, self.run.place.file().as_raw_fd());
        self.blocks.clear();
        for (&index, io) in self.begun[from..].iter().zip(ios) {
            let (data, at) = (u64::from(index), io.place.sector.to_bytes().0);
            let moving =
                |write| Iocb::moving(data, fd, write, at, (place.address(index, write), io.bytes()), 0);
            self.blocks.push(match io.op {
                Op::Read => moving(false),
                Op::Write if io.fua => moving(true).durable(),
                Op::Write => moving(true),
                Op::Flush => Iocb::sync(data, fd),
                Op::Discard => unreachable!("a discard is handed over by itself"),
            });
        }
        self.addresses.clear();
        self.addresses.extend(self.blocks.iter_mut().map(ptr::from_mut));
        if ios.last().is_some_and(|io| io.plug != Plug::None && io.op != Op::Flush) {
            lengthen_for_a_plug(&mut self.addresses);
        }
        let mut done = 0;
        while done < ios.len() {
            // SAFETY: addresses of blocks that stay where they are meanwhile, or null. The buffer is as
            // long as the longest of all I/Os, no thread looks at it, and it outlives the contexts.
            match unsafe { self.run.context(self.id).submit(&self.addresses[done..]) } {
                Ok(count) => done += count,
                // Too many in flight. Only one of two may wait for the last completion.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.deputy.is_needed() => {
                    self.deputy.end()?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(None)?,
                Err(error) => {
                    return Err(crate::failure(
                        self.begun[from + done],
                        &ios[done],
                        crate::result_of(&error),
                    ));
                }
            }
        }
        let mut issuer = self.run.issuer();
        let now = self.run.now();
        self.begun[from..from + ios.len()].iter().for_each(|&io| issuer.submitted(io, now));
        Ok(())
    }

    /// Discards, and waits for it.
    fn discard(&mut self, index: u32, io: &ReplayIo) -> io::Result<()> {
        self.run.issuer().submitted(index, self.run.now());
        match sys::discard(self.run.place.file(), io.place.sector.to_bytes().0, io.bytes()) {
            // The disk has none, and the block layer ends it at once; or it is a file.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) => {}
            result => result.map_err(|error| crate::failure(index, io, crate::result_of(&error)))?,
        }
        let mut woken = Vec::new();
        let mut issuer = self.run.issuer();
        self.run.completed(&mut issuer, index, self.run.now(), &mut woken);
        drop(issuer);
        woken.into_iter().filter(|&other| other != self.id).try_for_each(|other| self.run.notify(other))
    }

    /// Waits for a completion or a notice, until a time at the latest.
    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        // The least slack of a timer is 1 ns: it ends that much later, or with an interrupt before. A
        // pause of 1 ns takes two, since a span of zero would be no wait at all.
        let span = |until: Nanos| Nanos(until.saturating_sub(self.run.now()).0.saturating_sub(1).max(1));
        let within = until.map(span);
        match self.run.context(self.id).get(1, &mut self.events, within) {
            Ok(count) => self.run.take(self.id, &self.events[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}
