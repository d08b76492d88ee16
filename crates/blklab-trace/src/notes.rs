//! Oddities of a trace, counted while it is read: a table of their kinds, and the first place of each.

/// How much an oddity matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A fact that explains the trace.
    Fact,
    /// A result may be off by it.
    Doubt,
    /// The trace cannot be used as it is.
    Unusable,
}

impl Weight {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Weight::Fact => "note",
            Weight::Doubt => "warning",
            Weight::Unusable => "unusable",
        }
    }
}

macro_rules! kinds {
    ($($kind:ident, $name:literal, $weight:ident, $text:literal;)*) => {
        /// The kinds of oddities.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $(#[doc = $text] $kind,)* }

        impl Kind {
            /// All, in the order of lists.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// Its name in `--json`.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }

            /// How much it matters.
            pub const fn weight(self) -> Weight {
                match self { $(Kind::$kind => Weight::$weight,)* }
            }

            /// What it means, and what is done about it.
            pub const fn text(self) -> &'static str {
                match self { $(Kind::$kind => $text,)* }
            }
        }
    };
}

kinds! {
    Empty, "empty", Unusable, "the trace has no I/O";
    TwoLevels, "two-levels", Unusable,
        "the same I/O is recorded at two devices, one of which lies on the other; choose one: --device";
    NoTimes, "no-times", Unusable, "the format has no times; order and sizes are all that can be used";
    NoOperation, "no-operation", Unusable,
        "no record says whether it reads or writes; it cannot be replayed";
    Beyond, "beyond-the-disk", Unusable,
        "I/O ends beyond the disk's last sector: the size is wrong, or the trace is another disk's";
    Truncated, "truncated", Doubt, "the file ends inside a record; the records before it are used";
    Lost, "lost-events", Doubt, "the tracer lost events: I/Os are missing, or lack times";
    ClockStep, "clock-step", Doubt,
        "the clock steps back by a second or more, as where two traces are joined; I/Os are sorted, and those \
         behind 65,536 others get the time of the one before";
    NoQueue, "no-queue-event", Doubt,
        "requests were issued or completed whose beginning is not in the trace; they are left out";
    NoCompletion, "no-completion", Doubt, "I/Os never complete: events are missing, or the trace ends before";
    CoarseTime, "coarse-time", Doubt,
        "the clock's steps are longer than the gaps; I/Os of one step are spread over it, unless --no-spread";
    SharedTime, "shared-time", Doubt,
        "many I/Os have the time of the one before: bursts are the clock's, not the load's";
    WholeMicroseconds, "whole-microseconds", Doubt,
        "all times are whole microseconds: gaps are off by up to one";
    ZeroLength, "zero-length", Doubt, "reads or writes without length; they are left out";
    NoSector, "no-sector", Doubt, "commands without sectors, as of a driver; they are left out";
    Unaligned, "unaligned", Doubt, "offsets or lengths that are no whole sectors; they are widened to sectors";
    BlankOperation, "blank-operation", Doubt, "records without an operation; their operation is 'other'";
    Foreign, "foreign-lines", Doubt, "lines of another form; they are left out";
    WaitUnit, "wait-unit", Doubt,
        "version 2 of fio's iolog documents waits in microseconds; fio replays them as milliseconds since its \
         start, and so does blklab";
    PastEnd, "grows", Doubt, "more I/Os are incomplete at once than blklab follows; the oldest lose their ends";
    Disorder, "out-of-order", Fact, "records are not in order of time, as of several CPUs; they are sorted";
    Merges, "merges", Fact, "bios were merged into requests: there are fewer requests than bios";
    Splits, "splits", Fact, "bios were split into several requests";
    Remaps, "remaps", Fact, "bios were remapped from a partition or a device above; counted once";
    Requeues, "requeues", Fact, "the disk refused requests, which were issued again";
    Flushes, "flushes", Fact, "flushes without data; they have no sector, and no seek is counted for them";
    Failed, "failed", Fact, "I/Os completed with an error";
    CgroupBit, "cgroup-bit", Fact,
        "actions carry a cgroup (bit 0x100), by which some tools find no I/O in this file";
    Version8, "version-8", Fact, "blktrace version 8 (Linux 6.19); tools for version 7 refuse it, or misread it";
    Swapped, "other-endian", Fact, "the file is of a machine with the other order of bytes";
    Writeback, "writeback", Fact,
        "writes are write-back's: their process is a kernel worker, not the program that wrote";
    Epoch, "absolute-times", Fact, "times count from a date; blklab counts from the first, without rounding";
    Notes, "messages", Fact, "messages of the kernel or of a scheduler; they are left out";
}

/// A jump back of this length is a step of the clock, not the disorder of several CPUs: estimate.
const CLOCK_STEP_NS: u64 = 1_000_000_000;

/// An oddity of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its kind.
    pub kind: Kind,
    /// How often it was found.
    pub count: u64,
    /// The first line or record with it, from 1; 0 if it is the whole trace.
    pub first: u64,
    /// What was found there.
    pub found: String,
}

/// The oddities found so far.
#[derive(Clone, Debug, Default)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// One more, at this line or record.
    #[inline]
    pub fn add(&mut self, kind: Kind, number: u64, found: impl FnOnce() -> String) {
        self.add_many(kind, 1, number, found);
    }

    /// `count` more, the first of them at this line or record.
    pub fn add_many(&mut self, kind: Kind, count: u64, number: u64, found: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|note| note.kind == kind) {
            Some(note) => note.count += count,
            None => self.0.push(Note { kind, count, first: number, found: found() }),
        }
    }

    /// A record that is earlier than the one before it, by so many ns.
    #[inline]
    pub fn add_back(&mut self, back_ns: u64, number: u64) {
        if back_ns > 0 {
            let kind = if back_ns >= CLOCK_STEP_NS { Kind::ClockStep } else { Kind::Disorder };
            self.add(kind, number, || format!("{back_ns} ns earlier than the one before"));
        }
    }

    /// The note of this kind.
    pub fn get(&self, kind: Kind) -> Option<&Note> {
        self.0.iter().find(|note| note.kind == kind)
    }

    /// How often this kind was found.
    pub fn count(&self, kind: Kind) -> u64 {
        self.get(kind).map_or(0, |note| note.count)
    }

    /// All, in the order of [`Kind::ALL`].
    pub fn sorted(&self) -> Vec<Note> {
        let mut notes = self.0.clone();
        notes.sort_by_key(|note| note.kind);
        notes
    }

    /// Those of another reading, after these.
    pub fn extend(&mut self, others: &Notes) {
        for note in &others.0 {
            self.add_many(note.kind, note.count, note.first, || note.found.clone());
        }
    }
}
