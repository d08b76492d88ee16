//! `my-sstf`: shortest seek first, but no request waits for ever.
//!
//! The arm goes to the request that is nearest to where the last one ended. That keeps
//! seeks short and starves distant requests, so a request that has waited for
//! `max_wait` goes first, wherever it is.

use blklab_plugin::{
    Generation, Info, Limits, Merges, Nanos, Queue, RequestId, Scheduler, Sector, Settings, Tunable, Unit,
};

/// The state of my-sstf.
pub struct Sstf {
    /// In order of arrival.
    waiting: Vec<RequestId>,
    /// Where the last request ended.
    position: Sector,
    max_wait: Nanos,
}

impl Scheduler for Sstf {
    const INFO: Info = Info {
        name: "my-sstf",
        generation: Generation::MultiQueue,
        summary: "the nearest request first, unless one has waited too long",
        follows: "no kernel's; Denning 1967 with a limit of waiting",
        // estimate: a scan of some dozen requests under one lock.
        lock_ns: 500,
        merges: Merges::Latest,
        tunables: &[Tunable {
            name: "max_wait",
            unit: Unit::Milliseconds,
            default: 500,
            min: 0,
            max: 3_600_000,
            help: "a request that has waited this long goes before nearer ones",
        }],
    };

    fn new(settings: &Settings, limits: &Limits) -> Self {
        Sstf {
            waiting: Vec::with_capacity(limits.nr_requests as usize),
            position: Sector(0),
            max_wait: Nanos::from_millis(settings.get("max_wait") as u64),
        }
    }

    fn insert(&mut self, _: &Queue<'_>, id: RequestId) {
        self.waiting.push(id);
    }

    fn dispatch(&mut self, queue: &Queue<'_>, _: u16) -> Option<RequestId> {
        let oldest = &queue.requests[*self.waiting.first()?];
        let place = if oldest.inserted + self.max_wait <= queue.now {
            0
        } else {
            let far = |id: RequestId| queue.requests[id].sector.0.abs_diff(self.position.0);
            (0..self.waiting.len()).min_by_key(|&place| far(self.waiting[place]))?
        };
        let id = self.waiting.remove(place);
        self.position = queue.requests[id].end();
        Some(id)
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, gone: RequestId) {
        self.waiting.retain(|&id| id != gone);
    }
}

blklab_plugin::plugin!(Sstf);
