//! From rows, each an I/O with its arrival, to I/Os in order of time.
//!
//! Rows wait in a window and leave in order; times count from the first. Where the clock's step is
//! long, all rows of a step have its time: bursts that never were. They are spread evenly over the
//! step instead, unless the user wants them as they are.

use std::collections::VecDeque;

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, Tables};
use blklab_base::units::{Nanos, Sector};

use crate::Records;
use crate::doctor::is_date;
use crate::matching::Shared;
use crate::notes::{Kind, Notes};
use crate::order::{Ordered, Timed};

/// A clock's step from which on I/Os are spread.
pub const COARSE: Nanos = Nanos(1_000_000);

/// I/Os of one step that are spread together. Of more, each such part has half of the rest.
const SPREAD_MAX: usize = 1 << 16;

/// A row: an I/O whose times are those of the file.
impl Timed for Io {
    fn time(&self) -> u64 {
        self.queued.0
    }

    fn set_time(&mut self, time: u64) {
        let later =
            |at: Option<Nanos>| at.map(|at| Nanos(at.0.saturating_sub(self.queued.0).saturating_add(time)));
        (self.inserted, self.issued, self.completed) =
            (later(self.inserted), later(self.issued), later(self.completed));
        self.queued = Nanos(time);
    }
}

/// A reader of rows.
pub trait Rows {
    /// The next row of the file; None at the end. Its times are of the file's clock, in ns.
    ///
    /// # Errors
    /// The row is wrong, or the file cannot be read further.
    fn next_row(&mut self, shared: &mut Shared) -> Result<Option<Io>, InputError>;
}

/// The I/Os of a reader of rows.
pub struct Arrivals<R> {
    rows: R,
    shared: Shared,
    ordered: Ordered<Io>,
    ended: bool,
    epoch: Option<u64>,
    spread: bool,
    /// I/Os of one step, spread.
    ready: VecDeque<Io>,
    /// Behind them, the first of the next step.
    next: Option<Io>,
    /// A step, and how much of it was used, ns.
    used: (Nanos, u64),
}

impl<R: Rows> Arrivals<R> {
    /// The I/Os of these rows, those of a coarse clock spread if `spread`.
    pub fn new(rows: R, shared: Shared, spread: bool) -> Arrivals<R> {
        Arrivals {
            rows,
            shared,
            ordered: Ordered::default(),
            ended: false,
            epoch: None,
            spread,
            ready: VecDeque::new(),
            next: None,
            used: (Nanos::ZERO, 0),
        }
    }

    fn fill(&mut self) -> Result<(), InputError> {
        while !self.ended && !self.ordered.is_full() {
            let Some(row) = self.rows.next_row(&mut self.shared)? else {
                self.ended = true;
                break;
            };
            let (number, back) = (row.number, self.ordered.push(0, row));
            self.shared.notes.add_back(back, number);
        }
        Ok(())
    }

    /// The next in order, from time 0.
    fn pop(&mut self) -> Result<Option<Io>, InputError> {
        self.fill()?;
        let Some((mut io, _)) = self.ordered.pop() else { return Ok(None) };
        let epoch = *self.epoch.get_or_insert_with(|| {
            if is_date(io.queued.0) {
                self.shared.notes.add(Kind::Epoch, io.number, || format!("the first is {} ns", io.queued.0));
            }
            io.queued.0
        });
        io.set_time(io.queued.0 - epoch);
        Ok(Some(io))
    }

    /// All I/Os of one step of the clock, spread over it.
    fn spread(&mut self) -> Result<Option<Io>, InputError> {
        if let Some(io) = self.ready.pop_front() {
            return Ok(Some(io));
        }
        let first = match self.next.take() {
            Some(io) => io,
            None => match self.pop()? {
                Some(io) => io,
                None => return Ok(None),
            },
        };
        let step = first.queued;
        self.ready.push_back(first);
        while self.ready.len() < SPREAD_MAX {
            match self.pop()? {
                Some(io) if io.queued == step => self.ready.push_back(io),
                other => {
                    self.next = other;
                    break;
                }
            }
        }
        let is_part = self.ready.len() == SPREAD_MAX;
        let used = if self.used.0 == step { self.used.1 } else { 0 };
        // The clock's step is estimated from the first rows: the next I/O may come within it.
        let until_next = self.next.as_ref().map_or(u64::MAX, |next| next.queued.0.saturating_sub(step.0));
        let left = self.shared.header.resolution.0.min(until_next).saturating_sub(used);
        let span = if is_part { left / 2 } else { left };
        if self.ready.len() > 1 {
            self.shared.header.spread = true;
            let (number, count) = (self.ready[0].number, self.ready.len() as u64);
            self.shared.notes.add_many(Kind::CoarseTime, count, number, || {
                format!("{count} I/Os in one step of {}", self.shared.header.resolution)
            });
        }
        let count = self.ready.len() as u128;
        for (place, io) in self.ready.iter_mut().enumerate() {
            let offset = u128::from(span) * place as u128 / count;
            io.set_time(step.0.saturating_add(used).saturating_add(offset as u64));
        }
        self.used = (step, used + span);
        Ok(self.ready.pop_front())
    }
}

impl<R: Rows> Records for Arrivals<R> {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        // The step is known when the first row was read.
        self.fill()?;
        if self.spread && self.shared.header.resolution >= COARSE { self.spread() } else { self.pop() }
    }

    fn header(&self) -> &Header {
        &self.shared.header
    }

    fn tables(&self) -> &Tables {
        &self.shared.tables
    }

    fn notes(&self) -> &Notes {
        &self.shared.notes
    }
}

/// The sectors that hold these bytes: the first, how many, and whether bytes beside them belong too.
pub fn sectors_of(offset: u64, length: u64) -> Option<(Sector, u32, bool)> {
    let end = offset.checked_add(length)?;
    let (first, last) = (offset / 512, end.div_ceil(512));
    let widened = !offset.is_multiple_of(512) || !end.is_multiple_of(512);
    Some((Sector(first), u32::try_from(last - first).ok()?, widened))
}
