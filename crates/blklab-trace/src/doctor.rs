//! What is wrong with a trace: oddities that a reader counts, and those that its I/Os show.

use blklab_base::recorded::{Flags, Header, Io, Op, SIMULATOR, Tables};
use blklab_base::units::{Nanos, Sector};

use crate::notes::{Kind, Note, Notes};

/// A share of I/Os at the time of the one before that is more than chance: estimate. On a clock of 1 ns
/// two I/Os of one time are rare; of one of 1 us, a few percent share it at 100,000 I/Os a second.
const SHARED_TIME_MIN: f64 = 0.1;

/// The least I/Os of which shares say something: estimate.
const IOS_MIN: u64 = 100;

/// Times before 1973 of a clock that counts from a date: estimate. A machine that was up for three
/// years has a smaller monotonic clock.
const DATE_NS: u64 = 100_000_000_000_000_000;

/// Looks at each I/O of a trace.
#[derive(Clone, Debug, Default)]
pub struct Doctor {
    capacity: Option<Sector>,
    ios: u64,
    last: Option<Nanos>,
    shared: u64,
    first_shared: u64,
    finer: bool,
    with_operation: bool,
    writes: u64,
    kernel_writes: u64,
    first_kernel: u64,
    notes: Notes,
}

impl Doctor {
    /// For a disk of this size, if it is known.
    pub fn new(capacity: Option<Sector>) -> Doctor {
        Doctor { capacity, ..Doctor::default() }
    }

    /// Looks at the next I/O.
    pub fn take(&mut self, io: &Io, tables: &Tables) {
        self.ios += 1;
        if self.last == Some(io.queued) {
            self.shared += 1;
            if self.shared == 1 {
                self.first_shared = io.number;
            }
        }
        self.last = Some(io.queued);
        let times = [Some(io.queued), io.inserted, io.issued, io.completed];
        self.finer |= times.into_iter().flatten().any(|time| time.0 % 1000 != 0);
        self.with_operation |= io.op != Op::Other;
        if let Some(capacity) = self.capacity
            && io.end() > capacity
        {
            self.notes.add(Kind::Beyond, io.number, || {
                format!("sectors {} to {}; the disk has {}", io.sector.0, io.end().0, capacity.0)
            });
        }
        if io.op == Op::Write {
            self.writes += 1;
            let name = tables.processes.name(io.process);
            if name.starts_with("kworker/") || name.starts_with("flush-") {
                self.kernel_writes += 1;
                if self.kernel_writes == 1 {
                    self.first_kernel = io.number;
                }
            }
        }
        if io.flags.has(Flags::FAILED) {
            self.notes.add(Kind::Failed, io.number, String::new);
        }
    }

    /// All findings, with those of the reader.
    pub fn findings(self, header: &Header, read: &Notes, chosen_device: bool) -> Vec<Note> {
        let Doctor { mut notes, ios, shared, first_shared, finer, .. } = self;
        for note in read.sorted() {
            let told = match note.kind {
                // The choice of a device has resolved it.
                Kind::TwoLevels => !chosen_device,
                // The I/Os have it.
                Kind::Failed => notes.count(Kind::Failed) == 0,
                // Some have one.
                Kind::NoOperation => !self.with_operation,
                _ => true,
            };
            if told {
                notes.add_many(note.kind, note.count, note.first, || note.found.clone());
            }
        }
        if ios == 0 {
            notes.add(Kind::Empty, 0, String::new);
        }
        let share = |part: u64| part as f64 / ios.max(1) as f64;
        let untimed = notes.get(Kind::NoTimes).is_some();
        let exact = header.spread || header.source == SIMULATOR;
        if ios >= IOS_MIN && share(shared) >= SHARED_TIME_MIN && !untimed && !exact {
            notes.add_many(Kind::SharedTime, shared, first_shared, || {
                format!("{:.0} % of I/Os", 100.0 * share(shared))
            });
        }
        if ios >= IOS_MIN && !finer && !untimed && header.resolution <= Nanos(1000) {
            notes.add_many(Kind::WholeMicroseconds, ios, 0, String::new);
        }
        if self.kernel_writes > 0 {
            notes.add_many(Kind::Writeback, self.kernel_writes, self.first_kernel, || {
                format!("{:.0} % of writes", 100.0 * self.kernel_writes as f64 / self.writes as f64)
            });
        }
        notes.sorted()
    }
}

/// Whether a clock that begins here counts from a date.
pub fn is_date(time_ns: u64) -> bool {
    time_ns >= DATE_NS
}
