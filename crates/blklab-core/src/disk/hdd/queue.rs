//! Commands that wait for the arm. What the search for the next one looks at first lies
//! side by side, apart from the rest.

use super::super::Tag;
use super::SLACK_NS;
use super::cache::Span;
use super::geometry::Place;

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub span: Span,
    pub place: Place,
    /// When the controller has understood it.
    pub ready: u64,
    /// Its time of submission times the ageing, less much if it is urgent: see
    /// [`super::Hdd::soonest_reached`].
    pub handicap: i64,
    pub order: u64,
    pub tag: Tag,
    pub write: bool,
    pub urgent: bool,
}

/// All of them, in no order. The columns have one entry per command.
#[derive(Debug)]
pub(super) struct Queue {
    pub commands: Vec<Queued>,
    pub cylinders: Vec<u32>,
    /// The angles of their first sectors, [`SLACK_NS`] added.
    pub angles: Vec<i32>,
    pub handicaps: Vec<i64>,
    starts: Vec<u64>,
}

impl Queue {
    pub fn with_capacity(commands: usize) -> Queue {
        Queue {
            commands: Vec::with_capacity(commands),
            cylinders: Vec::with_capacity(commands),
            angles: Vec::with_capacity(commands),
            handicaps: Vec::with_capacity(commands),
            starts: Vec::with_capacity(commands),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub fn push(&mut self, queued: Queued) {
        self.cylinders.push(queued.place.cylinder);
        self.angles.push((u64::from(queued.place.angle_ns) + SLACK_NS) as i32);
        self.handicaps.push(queued.handicap);
        self.starts.push(queued.span.start);
        self.commands.push(queued);
    }

    /// Take a command out.
    pub fn take(&mut self, index: usize) -> Queued {
        self.cylinders.swap_remove(index);
        self.angles.swap_remove(index);
        self.handicaps.swap_remove(index);
        self.starts.swap_remove(index);
        self.commands.swap_remove(index)
    }

    /// The read, ready at `now`, that begins first within `width` sectors from `start` on.
    pub fn first_read_within(&self, start: u64, width: u64, now: u64) -> Option<usize> {
        let (mut first, mut found) = (width.saturating_add(1), None);
        for (index, begins) in self.starts.iter().enumerate() {
            // Those before `start` wrap round to far behind it: one comparison tells.
            let within = begins.wrapping_sub(start);
            if within < first {
                let queued = &self.commands[index];
                if !queued.write && queued.ready <= now {
                    (first, found) = (within, Some(index));
                }
            }
        }
        found
    }
}
