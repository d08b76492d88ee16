//! The kinds of published figures: name, unit, measurement, and the parameters that each would determine.

use super::Op;

/// The place of a sequential measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    Start,
    End,
    /// Mean over the whole disk, in steps as reviewers' tools take them.
    Throughout,
}

/// The measurement of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// MB/s of 128 KiB commands, 32 at a time.
    Sequential(Op, Where),
    /// MB/s of sequential 4 KiB commands, 32 at a time.
    Small(Op),
    /// Operations per second of 4 KiB commands over the whole disk, at this queue depth.
    Random(Op, u32),
    /// The same of 8 KiB commands.
    Random8(Op, u32),
    /// Operations per second of 4 KiB commands, 70 % reads and 30 % writes, at this queue depth.
    Mixed(u32),
    /// Mean time of random 4 KiB commands, one at a time, in microseconds.
    RandomLatency(Op),
    /// 99th percentile of the time of random 4 KiB commands at this queue depth, in microseconds.
    RandomP99(Op, u32),
    /// Mean time of sequential 4 KiB commands, one at a time, in microseconds.
    SequentialLatency(Op),
    /// MB/s of the last part of a sequential fill of the whole disk.
    Sustained,
    /// Random 4 KiB writes per second, 32 at a time, on a full disk after as much again.
    Steady,
}

/// A kind of published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its name in `[calibrated]` and `[checked]`, with the unit last.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its measurement, in one line.
    pub help: &'static str,
    pub(super) measure: Measure,
}

impl Figure {
    /// The parameters that would be chosen from this figure if no other were known.
    pub(super) fn determines(&self) -> &'static [&'static str] {
        match self.measure {
            Measure::Sequential(Op::Write, _) | Measure::Sustained => &[
                "outer_sectors_per_track",
                "inner_sectors_per_track",
                "program_us",
                "slc_program_us",
                "link_write_mb_s",
            ],
            Measure::Sequential(..) => {
                &["outer_sectors_per_track", "inner_sectors_per_track", "channel_mb_s", "link_mb_s"]
            }
            Measure::Small(Op::Write) => &["write_overhead_us", "write_command_us", "command_us"],
            Measure::Small(_) => &["read_hit_us", "command_us"],
            Measure::Random(Op::Write, 1) | Measure::RandomLatency(Op::Write) => &[
                "seek_average_ms",
                "write_settle_ms",
                "write_overhead_us",
                "program_us",
                "write_latency_us",
                "write_command_us",
            ],
            Measure::Random(_, 1) | Measure::RandomLatency(_) => {
                &["seek_average_ms", "read_overhead_us", "read_us", "read_latency_us"]
            }
            Measure::Random(Op::Write, _) => &["destage_burst", "program_us", "write_command_us"],
            // With so many in flight the link may be what bounds a flash disk.
            Measure::Random(_, 16..) => &["ncq_plan", "ncq_look_ahead_percent", "command_us", "link_mb_s"],
            Measure::Random(..) => &["ncq_plan", "ncq_look_ahead_percent", "command_us"],
            Measure::Random8(..) => {
                &["ncq_plan", "ncq_look_ahead_percent", "command_us", "channel_mb_s", "link_mb_s"]
            }
            Measure::Mixed(_) => &["command_us", "write_command_us"],
            Measure::RandomP99(_, 16..) => &["ncq_look_ahead_percent", "ncq_deadline_ms", "link_mb_s"],
            Measure::RandomP99(..) => &["ncq_look_ahead_percent", "ncq_deadline_ms"],
            Measure::SequentialLatency(Op::Write) => &["write_overhead_us", "write_latency_us"],
            Measure::SequentialLatency(_) => &["read_hit_us", "read_latency_us"],
            Measure::Steady => &["overprovision_percent", "program_us", "write_command_us"],
        }
    }

    /// Whether both are the same measurement in other units.
    pub(super) fn is_same_as(&self, other: &Figure) -> bool {
        let quantity = |figure: &Figure| match figure.measure {
            Measure::RandomLatency(op) => Measure::Random(op, 1),
            other => other,
        };
        quantity(self) == quantity(other)
    }
}

const fn figure(name: &'static str, unit: &'static str, measure: Measure, help: &'static str) -> Figure {
    Figure { name, unit, help, measure }
}

/// All figures, in the order of lists.
pub static FIGURES: &[Figure] = &[
    figure(
        "seq_read_outer_mb_s",
        "MB/s",
        Measure::Sequential(Op::Read, Where::Start),
        "128 KiB reads from the disk's start, 32 at a time",
    ),
    figure(
        "seq_read_inner_mb_s",
        "MB/s",
        Measure::Sequential(Op::Read, Where::End),
        "the same at the disk's end",
    ),
    figure(
        "seq_read_average_mb_s",
        "MB/s",
        Measure::Sequential(Op::Read, Where::Throughout),
        "mean of the same at 32 places spread over the disk",
    ),
    figure(
        "seq_write_outer_mb_s",
        "MB/s",
        Measure::Sequential(Op::Write, Where::Start),
        "128 KiB writes from the disk's start, 32 at a time",
    ),
    figure(
        "seq_write_inner_mb_s",
        "MB/s",
        Measure::Sequential(Op::Write, Where::End),
        "the same at the disk's end",
    ),
    figure(
        "seq_read_4k_mb_s",
        "MB/s",
        Measure::Small(Op::Read),
        "4 KiB reads from the disk's start, 32 at a time, none merged",
    ),
    figure(
        "seq_write_4k_mb_s",
        "MB/s",
        Measure::Small(Op::Write),
        "4 KiB writes from the disk's start, 32 at a time, none merged",
    ),
    figure("rand_read_qd1_iops", "1/s", Measure::Random(Op::Read, 1), "random 4 KiB reads, one at a time"),
    figure("rand_read_qd2_iops", "1/s", Measure::Random(Op::Read, 2), "random 4 KiB reads, 2 at a time"),
    figure("rand_read_qd4_iops", "1/s", Measure::Random(Op::Read, 4), "random 4 KiB reads, 4 at a time"),
    figure("rand_read_qd8_iops", "1/s", Measure::Random(Op::Read, 8), "random 4 KiB reads, 8 at a time"),
    figure("rand_read_8k_qd8_iops", "1/s", Measure::Random8(Op::Read, 8), "random 8 KiB reads, 8 at a time"),
    figure("rand_read_qd16_iops", "1/s", Measure::Random(Op::Read, 16), "random 4 KiB reads, 16 at a time"),
    figure("rand_read_qd32_iops", "1/s", Measure::Random(Op::Read, 32), "random 4 KiB reads, 32 at a time"),
    figure(
        "rand_read_qd128_iops",
        "1/s",
        Measure::Random(Op::Read, 128),
        "random 4 KiB reads, 128 at a time",
    ),
    figure("rand_write_qd1_iops", "1/s", Measure::Random(Op::Write, 1), "random 4 KiB writes, one at a time"),
    figure(
        "rand_write_qd32_iops",
        "1/s",
        Measure::Random(Op::Write, 32),
        "random 4 KiB writes, 32 at a time",
    ),
    figure(
        "rand_write_qd128_iops",
        "1/s",
        Measure::Random(Op::Write, 128),
        "random 4 KiB writes, 128 at a time",
    ),
    figure(
        "rand_rw70_qd16_iops",
        "1/s",
        Measure::Mixed(16),
        "random 4 KiB commands, 70 % reads and 30 % writes, 16 at a time",
    ),
    figure(
        "rand_read_qd1_p99_us",
        "us",
        Measure::RandomP99(Op::Read, 1),
        "99th percentile of random 4 KiB reads, one at a time",
    ),
    figure(
        "rand_read_qd4_p99_us",
        "us",
        Measure::RandomP99(Op::Read, 4),
        "99th percentile of random 4 KiB reads, 4 at a time",
    ),
    figure(
        "rand_read_qd8_p99_us",
        "us",
        Measure::RandomP99(Op::Read, 8),
        "99th percentile of random 4 KiB reads, 8 at a time",
    ),
    figure(
        "rand_read_qd16_p99_us",
        "us",
        Measure::RandomP99(Op::Read, 16),
        "99th percentile of random 4 KiB reads, 16 at a time",
    ),
    figure(
        "rand_read_latency_us",
        "us",
        Measure::RandomLatency(Op::Read),
        "mean of random 4 KiB reads, one at a time",
    ),
    figure(
        "rand_write_latency_us",
        "us",
        Measure::RandomLatency(Op::Write),
        "mean of random 4 KiB writes, one at a time",
    ),
    figure(
        "seq_read_latency_us",
        "us",
        Measure::SequentialLatency(Op::Read),
        "mean of sequential 4 KiB reads, one at a time",
    ),
    figure(
        "seq_write_latency_us",
        "us",
        Measure::SequentialLatency(Op::Write),
        "mean of sequential 4 KiB writes, one at a time",
    ),
    figure(
        "sustained_write_mb_s",
        "MB/s",
        Measure::Sustained,
        "sequential writes to the disk's last third, after its other two, without a pause (flash: 1/128 of each block)",
    ),
    figure(
        "rand_write_steady_iops",
        "1/s",
        Measure::Steady,
        "random 4 KiB writes to a full disk, 32 at a time, after its size in writes (1/128 of each block)",
    ),
];
