//! `ioengine=libaio`.
//!
//! `io_submit()` sleeps when the disk has no tag left, and requests that complete meanwhile are
//! reaped later: this is how fio's processes compete for a short queue, and io_uring's do not.
#![allow(unsafe_code)]

use std::io;
use std::ptr;

use super::{Done, Request, Taken, outcome};
use blklab_core::units::Nanos;
use blklab_replay::aio::{Context, Event, Iocb, UNPLUGGED_MAX, lengthen_for_a_plug};

/// An asynchronous I/O context.
#[derive(Debug)]
pub struct Aio {
    context: Context,
    /// To submit, in order.
    prepared: Vec<Iocb>,
    /// Some of them, by index, come under a plug of their own.
    own_plugs: Vec<bool>,
    /// Their addresses: the kernel takes a list.
    addresses: Vec<*mut Iocb>,
    /// The first `got` are the kernel's; those before `next` have been taken.
    events: Box<[Event]>,
    got: usize,
    next: usize,
}

impl Aio {
    /// With room for `depth` I/Os.
    pub fn new(depth: u32) -> io::Result<Aio> {
        let context = Context::new(depth)?;
        let depth = depth as usize;
        Ok(Aio {
            context,
            prepared: Vec::with_capacity(depth),
            own_plugs: Vec::with_capacity(depth),
            addresses: Vec::with_capacity(depth),
            events: vec![Event::default(); depth].into(),
            got: 0,
            next: 0,
        })
    }

    /// Prepares an I/O with the buffer at `address`.
    pub fn prepare(&mut self, request: Request, address: u64) {
        let Request { slot, fd, write, at, bytes, prio, own_plug, durable } = request;
        let block = Iocb::moving(slot.into(), fd, write, at, (address, bytes.into()), prio);
        self.prepared.push(if durable { block.durable() } else { block });
        self.own_plugs.push(own_plug);
    }

    /// Submits all that is prepared, in order.
    pub fn submit(&mut self) -> io::Result<()> {
        let count = self.prepared.len();
        // More than a few have one plug for all.
        let each = count <= UNPLUGGED_MAX && self.own_plugs.contains(&true);
        let mut done = 0;
        while done < count {
            let (end, own_plug) = if each { (done + 1, self.own_plugs[done]) } else { (count, false) };
            self.addresses.clear();
            self.addresses.extend(self.prepared[done..end].iter_mut().map(ptr::from_mut));
            if own_plug {
                lengthen_for_a_plug(&mut self.addresses);
            }
            // SAFETY: addresses of blocks that stay where they are meanwhile, or null. The buffers they name
            // are their slots' alone until the completion is taken, and outlive the context (see Queue).
            done += unsafe { self.context.submit(&self.addresses) }?;
        }
        self.prepared.clear();
        self.own_plugs.clear();
        Ok(())
    }

    /// Waits until `least` completions can be taken, and gets at most `most`.
    pub fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.move_to_front();
        let most = (most as usize).min(self.events.len());
        while self.got < least as usize {
            match self.get(least as usize - self.got, most) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Gets all completions that are there.
    pub fn gather(&mut self) -> io::Result<()> {
        self.move_to_front();
        self.get(0, self.events.len())
    }

    /// Some may be left over, or a call that a signal interrupted has returned some.
    fn move_to_front(&mut self) {
        self.events.copy_within(self.next..self.got, 0);
        (self.next, self.got) = (0, self.got - self.next);
    }

    /// Gets at least `missing` completions, into the room below `most`.
    fn get(&mut self, missing: usize, most: usize) -> io::Result<()> {
        self.got += self.context.get(missing, &mut self.events[self.got..most], None)?;
        Ok(())
    }

    /// Completions that can be taken.
    pub fn ready(&self) -> u32 {
        (self.got - self.next) as u32
    }

    /// See `Queue::done_at`.
    pub fn done_at(&self, count: u32) -> Done {
        let last = self.events[..self.got].get(self.next + count as usize - 1)?;
        // `rigs/kernel/work.patch`
        (last.result2 > 0).then_some(Nanos(last.result2 as u64))
    }

    /// The next completion.
    pub fn take(&mut self) -> Option<Taken> {
        let event = self.events[..self.got].get(self.next)?;
        self.next += 1;
        Some((event.data as u32, outcome(event.result)))
    }
}
