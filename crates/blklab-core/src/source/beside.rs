//! Processes of fio and a replay of recordings on one machine.

use super::fio::{Fio, Jobs};
use super::replay::{Replay, Replayed};
use crate::engine::{Ran, Source, World};
use crate::request::ProcessId;
use crate::units::Nanos;

/// Both sources. The processes of the replay have the numbers behind those of fio.
pub struct Beside {
    fio: Fio,
    replay: Replay,
    /// The number of the first process of the replay.
    first: u32,
}

impl Beside {
    /// Both; `first` is the number of the first process of the replay.
    pub fn new(fio: Fio, replay: Replay, first: u32) -> Beside {
        Beside { fio, replay, first }
    }

    fn is_replayed(&self, process: ProcessId) -> bool {
        process.0 >= self.first
    }
}

impl Source for Beside {
    type Measured = (Jobs, Replayed);

    fn begin(&mut self, world: &mut World) {
        self.fio.begin(world);
        self.replay.begin(world);
    }

    fn run(&mut self, process: ProcessId, world: &mut World) -> Ran {
        match self.is_replayed(process) {
            true => self.replay.run(process, world),
            false => self.fio.run(process, world),
        }
    }

    fn bio_ended(&mut self, process: ProcessId, io: u32, world: &mut World) {
        match self.is_replayed(process) {
            true => self.replay.bio_ended(process, io, world),
            false => self.fio.bio_ended(process, io, world),
        }
    }

    fn flush_ended(&mut self, process: ProcessId, world: &mut World) {
        match self.is_replayed(process) {
            true => self.replay.flush_ended(process, world),
            false => self.fio.flush_ended(process, world),
        }
    }

    fn has_ended(&self) -> bool {
        self.fio.has_ended() && self.replay.has_ended()
    }

    fn stop(&mut self, now: Nanos) {
        self.fio.stop(now);
        self.replay.stop(now);
    }

    fn finish(self) -> (Jobs, Replayed) {
        (self.fio.finish(), self.replay.finish())
    }
}
