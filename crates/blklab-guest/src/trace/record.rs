//! Records of blktrace: `struct blk_io_trace` of `include/uapi/linux/blktrace_api.h`, version 7,
//! which every kernel writes after `BLKTRACESETUP`.

use blklab_core::blktrace::{MAGIC as ANY_VERSION, act, category};
use blklab_core::formats::tracefs::{Act, Event};
use blklab_core::request::Op;

/// `BLK_IO_TRACE_MAGIC`, with the version of the records.
const MAGIC: u32 = ANY_VERSION | 7;

/// A record without the data after it.
const BYTES: usize = 48;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// ns of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The event: `enum blktrace_act`, the lower half of `action`. None for a note or an event that
    /// is not needed.
    pub act: Option<Act>,
    category: u64,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Read,
    /// It writes.
    Write {
        /// The file system marks it as metadata.
        is_metadata: bool,
        /// It is durable when it completes.
        is_fua: bool,
    },
    /// It flushes the disk's cache.
    Flush,
    /// It discards.
    Discard,
}

impl Record {
    fn parse(bytes: &[u8; BYTES]) -> Record {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let action = word(28);
        let category = u64::from(action >> 16);
        let act = match u64::from(action & 0xff) {
            _ if category & category::NOTIFY != 0 => None,
            act::QUEUE => Some(Act::Queue),
            act::BACK_MERGE => Some(Act::BackMerge),
            act::FRONT_MERGE => Some(Act::FrontMerge),
            act::REQUEUE => Some(Act::Requeue),
            act::ISSUE => Some(Act::Issue),
            act::COMPLETE => Some(Act::Complete),
            act::INSERT => Some(Act::Insert),
            _ => None,
        };
        Record { time: long(8), sector: long(16), bytes: word(24), act, category }
    }

    /// A note about a process or the time of day, not an event of the block layer.
    pub fn is_note(&self) -> bool {
        self.category & category::NOTIFY != 0
    }

    /// A command of a driver or a program for the disk itself, such as `hdparm`'s questions. The block
    /// layer's counters leave it out.
    pub fn is_passthrough(&self) -> bool {
        self.category & category::PC != 0
    }

    /// Its event, if it is needed.
    pub fn event(&self) -> Option<Event> {
        let Record { time, sector, bytes, category, .. } = *self;
        Some(Event {
            time,
            sector,
            bytes,
            act: self.act?,
            op: self.op(),
            sync: category & category::SYNC != 0,
        })
    }

    /// What its request does.
    pub fn kind(&self) -> Kind {
        let is = |category| self.category & category != 0;
        // Without data it is a flush.
        if self.bytes == 0 && is(category::FLUSH) {
            Kind::Flush
        } else if is(category::DISCARD) {
            Kind::Discard
        } else if is(category::WRITE) {
            Kind::Write { is_metadata: is(category::META), is_fua: is(category::FUA) }
        } else {
            Kind::Read
        }
    }

    fn op(&self) -> Op {
        match self.kind() {
            Kind::Flush => Op::Flush,
            Kind::Discard => Op::Discard,
            Kind::Write { .. } => Op::Write,
            Kind::Read => Op::Read,
        }
    }
}

/// A stream of records, in parts of any length.
#[derive(Debug, Default)]
pub struct Records {
    /// The start of an incomplete record.
    rest: Vec<u8>,
}

impl Records {
    /// Takes more bytes. Calls `each` with every complete record.
    ///
    /// # Errors
    /// One line: the bytes are not records.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(&Record)) -> Result<(), String> {
        let joined;
        let mut left = bytes;
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.rest);
            left = &joined;
        }
        while let Some(head) = left.first_chunk::<BYTES>() {
            let magic = u32::from_ne_bytes(head[..4].try_into().expect("four bytes"));
            if magic != MAGIC {
                return Err(format!("blktrace: a record begins with {magic:#010x}; expected {MAGIC:#010x}"));
            }
            let behind = u16::from_ne_bytes(head[46..].try_into().expect("two bytes"));
            let Some(next) = left.get(BYTES + usize::from(behind)..) else { break };
            each(&Record::parse(head));
            left = next;
        }
        self.rest = left.to_vec();
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A record as the kernel writes it: letter as in `blkparse`, operation as in `RWBS`, with `M` for
    /// metadata, `A` for FUA and `P` for a passthrough command behind it.
    pub fn written(time: u64, letter: char, op: impl ToString, sector: u64, sectors: u32) -> Vec<u8> {
        let op = op.to_string();
        let (number, what) = match letter {
            'Q' => (1_u32, 1 << 4),
            'M' => (2, 1 << 4),
            'F' => (3, 1 << 4),
            'R' => (6, 1 << 5),
            'D' => (7, 1 << 6),
            'C' => (8, 1 << 7),
            'I' => (12, 1 << 4),
            'm' => (2, category::NOTIFY),
            other => panic!("no event {other}"),
        };
        let how = op.chars().map(|letter| match letter {
            'R' => 1,
            // As a write of a process that waits for it.
            'W' => category::WRITE | category::SYNC,
            // The kernel counts neither as a write of data; a flush is not a write at all.
            'F' => 1 | category::FLUSH,
            'D' => category::WRITE | category::DISCARD,
            'M' => category::META,
            'A' => category::FUA,
            'P' => category::PC,
            other => panic!("no operation {other}"),
        });
        let how = how.fold(0, |all, one| all | one);
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(time.to_ne_bytes());
        bytes.extend(sector.to_ne_bytes());
        bytes.extend((sectors * 512).to_ne_bytes());
        bytes.extend((number | ((what | how) << 16) as u32).to_ne_bytes());
        bytes.extend([0; 16]);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::testing::written;
    use super::*;

    #[test]
    fn records_are_read_however_they_are_cut() {
        let mut stream = written(5, 'Q', 'R', 800, 8);
        let mut note = written(6, 'm', 'R', 0, 0);
        note[46..48].copy_from_slice(&3_u16.to_ne_bytes());
        stream.extend(note);
        stream.extend(b"abc");
        stream.extend(written(7, 'C', 'W', 1600, 16));
        for length in 1..stream.len() {
            let (mut records, mut found) = (Records::default(), Vec::new());
            for piece in stream.chunks(length) {
                records.take(piece, |record| found.push(*record)).expect("good");
            }
            let seen: Vec<_> = found.iter().map(|r| (r.time, r.act, r.sector, r.bytes, r.op())).collect();
            assert_eq!(seen[0], (5, Some(Act::Queue), 800, 4096, Op::Read), "pieces of {length}");
            assert_eq!((seen[1].1, found[1].is_note()), (None, true));
            assert_eq!(seen[2..], [(7, Some(Act::Complete), 1600, 8192, Op::Write)]);
            assert!(records.rest.is_empty());
        }
    }

    #[test]
    fn bytes_that_are_no_record_are_one_line() {
        let mut records = Records::default();
        let error = records.take(&[1; 60], |_| panic!("there is none")).unwrap_err();
        assert_eq!(error, "blktrace: a record begins with 0x01010101; expected 0x65617407");
    }
}
