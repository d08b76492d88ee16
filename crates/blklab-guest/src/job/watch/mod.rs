//! The I/O between the processes and the disk during a job, from the block layer's events: the
//! queue over time, the disk's commands, and the processes' own direct I/O.

mod joined;

use blklab_core::formats::tracefs::{Owners, Watch, Watched};
use blklab_core::recorder::TraceRecorder;
use blklab_core::units::Nanos;

use crate::costs::{Counter, Moved};
use crate::trace::RecordFile;
use crate::trace::record::Records;
use crate::trace::relay::Sink;

pub use joined::{joined, queue_alone, together};

/// Tracks the records of one job.
pub struct Follower {
    records: Records,
    watch: Watch,
    /// Gets all records too.
    file: Option<RecordFile>,
    /// Counts a program's requests.
    counter: Option<Counter>,
}

impl Follower {
    /// See [`Watch::new`]. `file` gets all records too.
    pub fn new(
        epoch: Nanos,
        owners: Owners,
        trace: TraceRecorder,
        direct: bool,
        file: Option<RecordFile>,
    ) -> Follower {
        let watch = Watch::new(epoch, owners, trace, direct);
        Follower { records: Records::default(), watch, file, counter: None }
    }

    /// Keeps every bio: see [`Watch::keeping_bios`].
    #[must_use]
    pub fn keeping_bios(self) -> Follower {
        Follower { watch: self.watch.keeping_bios(), ..self }
    }

    /// Counts requests by kind; only those of a program's run are tracked.
    #[must_use]
    pub fn counting(self, counter: Counter) -> Follower {
        Follower { counter: Some(counter), ..self }
    }

    /// The results, the file, and the counts until the end and after it.
    pub fn finish(self) -> (Watched, Option<RecordFile>, Option<(Moved, Moved)>) {
        (self.watch.finish(), self.file, self.counter.map(|counter| counter.moved()))
    }
}

impl Sink for Follower {
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Some(file) = &mut self.file {
            file.take(bytes)?;
        }
        let (watch, counter) = (&mut self.watch, &mut self.counter);
        self.records.take(bytes, |record| {
            if let Some(counter) = counter.as_mut() {
                counter.take(record);
                if counter.has_ended(record.time) {
                    return;
                }
            }
            if let Some(event) = record.event() {
                watch.take(&event);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use blklab_core::formats::tracefs::Depth;
    use blklab_core::units::Sector;

    use super::*;
    use crate::job::testing::plan;
    use crate::trace::record::testing::written;

    const MS: u64 = 1_000_000;

    /// Events with times in ms and letters as in blkparse, of requests of a direct job on the whole
    /// disk.
    fn watched(events: &[(u64, char, char, u64, u32)]) -> Watched {
        let owners = Owners::new(&plan("[a]\nsize=1m\n[b]\nsize=1m\n"), Sector(1 << 21));
        let mut watch = Follower::new(Nanos(100), owners, TraceRecorder::default(), true, None);
        for &(at, letter, op, sector, sectors) in events {
            watch.take(&written(100 + at * MS, letter, op, sector, sectors)).expect("records");
        }
        watch.finish().0
    }

    #[test]
    fn a_request_waits_from_its_insertion_and_is_with_the_disk_from_its_issue() {
        let seen = watched(&[
            (0, 'Q', 'R', 2048, 8),
            (0, 'I', 'R', 2048, 8),
            (0, 'Q', 'W', 0, 8),
            (0, 'I', 'W', 0, 8),
            (2, 'D', 'R', 2048, 8),
            (5, 'C', 'R', 2048, 8),
            (5, 'D', 'W', 0, 8),
            (6, 'C', 'W', 0, 8),
        ]);
        assert_eq!(seen.interval, Nanos(MS));
        assert_eq!(seen.series.waiting_milli, [2000, 2000, 1000, 1000, 1000, 0, 0]);
        assert_eq!(seen.series.in_flight_milli, [0, 0, 1000, 1000, 1000, 1000, 0]);
        assert_eq!((seen.series.read_bytes[5], seen.series.write_bytes[6]), (4096, 4096));
        assert_eq!(
            (seen.series.read_clat_sum_ns[5], seen.series.write_clat_max_ns[6]),
            (5 * MS as i64, 6 * MS as i64)
        );
        assert_eq!(seen.depth, Depth { in_flight_ns: 4 * MS, service_ns: 4 * MS, max: 2 });
        let (overview, stride, detail) = seen.commands;
        assert_eq!((overview.queued_ns.as_slice(), stride), ([0, 0].as_slice(), 1));
        assert_eq!(overview.issued_ns, [2 * MS as i64, 5 * MS as i64]);
        assert_eq!((detail.process.as_slice(), detail.op.as_slice()), ([1, 0].as_slice(), [0, 1].as_slice()));
    }

    #[test]
    fn merged_bios_end_with_the_request_that_has_them() {
        // 16 is inserted; 24 is appended, 8 is merged in front; 32 waits separately and is then
        // merged.
        let seen = watched(&[
            (0, 'Q', 'R', 16, 8),
            (0, 'I', 'R', 16, 8),
            (1, 'Q', 'R', 24, 8),
            (1, 'M', 'R', 24, 8),
            (1, 'Q', 'R', 8, 8),
            (1, 'F', 'R', 8, 8),
            (1, 'Q', 'R', 32, 8),
            (1, 'I', 'R', 32, 8),
            (2, 'M', 'R', 32, 8),
            (3, 'D', 'R', 8, 32),
            (4, 'C', 'R', 8, 32),
        ]);
        assert_eq!(seen.series.waiting_milli, [1000, 2000, 1000, 0, 0]);
        assert_eq!(seen.series.in_flight_milli, [0, 0, 0, 1000, 0]);
        assert_eq!((seen.series.read_ios[4], seen.series.read_bytes[4]), (4, 4 * 4096));
        assert_eq!(seen.series.read_clat_sum_ns[4], (4 + 3 + 3 + 3) * MS as i64);
        let (overview, ..) = seen.commands;
        assert_eq!((overview.sector, overview.sectors, overview.queued_ns), (vec![8], vec![32], vec![0]));
    }

    #[test]
    fn a_split_bio_ends_with_its_last_part_and_two_at_one_place_one_by_one() {
        let seen = watched(&[
            (0, 'Q', 'W', 0, 32),
            (0, 'D', 'W', 0, 16),
            (0, 'D', 'W', 16, 16),
            (1, 'C', 'W', 16, 16),
            (2, 'C', 'W', 0, 16),
            (2, 'Q', 'R', 64, 8),
            (3, 'Q', 'R', 64, 8),
            (3, 'D', 'R', 64, 8),
            (3, 'D', 'R', 64, 8),
            (4, 'C', 'R', 64, 8),
            (5, 'C', 'R', 64, 8),
        ]);
        assert_eq!(seen.series.write_ios, [0, 0, 1, 0, 0, 0]);
        assert_eq!(seen.series.write_bytes[2], 16384);
        assert_eq!(seen.series.read_ios, [0, 0, 0, 0, 1, 1]);
        assert_eq!(seen.series.in_flight_milli, [2000, 1000, 0, 2000, 1000, 0]);
    }

    #[test]
    fn a_requeued_request_waits_again_and_a_flush_is_a_command() {
        let seen = watched(&[
            (0, 'D', 'R', 8, 8),
            (1, 'R', 'R', 8, 8),
            (2, 'I', 'R', 8, 8),
            // Another request at the same sector.
            (2, 'I', 'R', 8, 8),
            (3, 'D', 'R', 8, 8),
            (3, 'D', 'R', 8, 8),
            (4, 'C', 'R', 8, 8),
            (4, 'C', 'R', 8, 8),
            (4, 'D', 'F', 0, 0),
            (5, 'C', 'F', 0, 0),
            // The bio that required the flush.
            (5, 'C', 'F', 0, 0),
        ]);
        assert_eq!(seen.series.waiting_milli, [0, 1000, 2000, 0, 0]);
        assert_eq!(seen.series.in_flight_milli, [1000, 0, 0, 2000, 1000]);
        assert_eq!(seen.commands.0.op, [0, 0, 2]);
    }
}
