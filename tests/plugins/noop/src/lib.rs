//! blklab's own noop as a plug-in: first come, first served.

use blklab_plugin::{
    Generation, Info, Limits, Merges, Queue, RequestId, Scheduler, Settings,
};

struct Noop {
    fifo: Vec<RequestId>,
}

impl Scheduler for Noop {
    const INFO: Info = Info {
        name: "plugin-noop",
        generation: Generation::SingleQueue,
        summary: "first come, first served, with merging (single queue)",
        follows: "Linux 4.12, noop-iosched.c",
        lock_ns: 500,
        merges: Merges::Indexed,
        tunables: &[],
    };

    fn new(_: &Settings, _: &Limits) -> Self {
        Noop { fifo: Vec::new() }
    }

    fn insert(&mut self, _: &Queue<'_>, id: RequestId) {
        self.fifo.push(id);
    }

    fn dispatch(&mut self, _: &Queue<'_>, _: u16) -> Option<RequestId> {
        (!self.fifo.is_empty()).then(|| self.fifo.remove(0))
    }

    fn neighbour(&mut self, _: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        let place = self.fifo.iter().position(|&one| one == id)?;
        let beside = if after { place.checked_add(1) } else { place.checked_sub(1) };
        beside.and_then(|place| self.fifo.get(place).copied())
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, gone: RequestId) {
        self.fifo.retain(|&id| id != gone);
    }
}

blklab_plugin::plugin!(Noop);
