//! Kernel threads that sync writes which no process waits for (`iomap_dio_complete_work`).
//!
//! A durable write that was queued, by `libaio` or io_uring, to a file in a file system ends when a thread has synced it
//! after its data were on the disk; if the disk has durable writes and O_DSYNC is asked for, the write is one, and no
//! thread is needed. Each write has a thread of its own, since a thread that sleeps lets the next one work.

use super::page_io::Submitter;
use super::sync::{Dirty, SyncProgress, Syncing};
use super::world::World;
use crate::owner::Actor;
use crate::pagecache::FileId;
use crate::request::{IoPrio, KERNEL_CPU, ProcessId};

/// A thread at work.
#[derive(Debug)]
pub struct Syncer {
    syncing: Syncing,
    process: ProcessId,
    io: u32,
    file: u32,
}

/// A write of that process has its data on the disk: a thread syncs it, and then the process's bio ends once more.
pub fn begin(process: ProcessId, io: u32, file: FileId, with_times: bool, world: &mut World) {
    let now = world.now();
    let mut syncing = Syncing::default();
    syncing.begin_sync(now, with_times);
    let number = world.syncers.insert(Syncer { syncing, process, io, file: file.0 }) as u32;
    world.wake(Actor::Syncer(number), now);
}

/// The thread runs; returns the process and its bio when it is done.
pub fn run(number: u32, world: &mut World) -> Option<(ProcessId, u32)> {
    let actor = Actor::Syncer(number);
    let submitter =
        Submitter { actor, prio: IoPrio::default(), cpu: KERNEL_CPU, waits: true, background: false };
    let number = number as usize;
    let file = world.syncers[number].file;
    let mut syncing = std::mem::take(&mut world.syncers[number].syncing);
    if syncing.run(&[file], Dirty::None, submitter, world) == SyncProgress::Done {
        let syncer = world.syncers.remove(number);
        return Some((syncer.process, syncer.io));
    }
    world.syncers[number].syncing = syncing;
    None
}

/// A flush for the thread has ended.
pub fn flush_ended(number: u32, world: &mut World) {
    let now = world.now();
    let World { syncers, wakeups, .. } = world;
    syncers[number as usize].syncing.flush_ended(Actor::Syncer(number), wakeups, now);
}
