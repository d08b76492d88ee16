//! The limits of a request queue, and the tunables in `queue/` that set them.

use crate::kernel::Kernel;
use crate::request::KERNEL_CPU;
use crate::ticks::Ticks;
use crate::tunable::{Tunable, Unit};
use crate::units::Nanos;

/// The queue's fixed properties.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLimits {
    /// `queue/rotational`.
    pub rotational: bool,
    /// Commands the disk takes at once per hardware queue.
    pub queue_depth: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// `queue/nr_requests`: requests per hardware queue that may wait or be in flight.
    pub nr_requests: u32,
    /// Largest request in sectors (`max_sectors_kb`, in sectors).
    pub max_sectors: u32,
    /// Reads that take longer than this slow writeback down (`wbt_lat_usec`); zero: nothing does.
    pub wbt_target: Nanos,
    /// The number of commands of which writeback beside reads may have a part (`blk_queue_depth`).
    pub wbt_depth: u32,
    /// CPUs of the host (software queues).
    pub cpus: u16,
    /// The host's coarse clock, for schedulers that count in jiffies.
    pub ticks: Ticks,
    /// A bio or request may merge with a request of another priority. Before Linux 5.0, and so under single-queue
    /// schedulers (`blk_rq_merge_ok`, `attempt_merge`).
    pub merges_priorities: bool,
    /// What the host's version of Linux does.
    pub kernel: Kernel,
}

impl QueueLimits {
    /// The software queue of a CPU; the kernel's threads have the first. CPUs for which the kernel has none share those
    /// of others.
    #[inline]
    pub fn software_queue(&self, cpu: u16) -> u16 {
        match cpu {
            KERNEL_CPU => 0,
            cpu if cpu < self.cpus => cpu,
            cpu => cpu % self.cpus.max(1),
        }
    }

    /// The hardware queue of a CPU. CPUs in a row share one, as on a machine on which no two CPUs share more than others
    /// (`group_cpus_evenly`).
    #[inline]
    pub fn hw_queue(&self, cpu: u16) -> u16 {
        if self.hw_queues == 1 {
            return 0;
        }
        let (cpu, queues) = (self.software_queue(cpu), self.hw_queues);
        if self.cpus == queues {
            return cpu;
        }
        let (least, more) = (self.cpus / queues, self.cpus % queues);
        let of_more = more * (least + 1);
        if cpu < of_more { cpu / (least + 1) } else { more + (cpu - of_more) / least }
    }

    /// The first CPU of a hardware queue.
    #[inline]
    pub fn first_cpu(&self, hw_queue: u16) -> u16 {
        let (least, more) = (self.cpus / self.hw_queues.max(1), self.cpus % self.hw_queues.max(1));
        hw_queue * least + hw_queue.min(more)
    }
}

/// What an administrator can set in `queue/`.
pub const QUEUE_TUNABLES: &[Tunable] = &[
    Tunable {
        name: "nr_requests",
        unit: Unit::Count,
        default: 0,
        min: 0,
        max: 10_240,
        help: "requests that may wait or be in flight per hardware queue; 0: the kernel's choice",
    },
    Tunable {
        name: "max_sectors_kb",
        unit: Unit::Kibibytes,
        default: 0,
        min: 0,
        max: 1 << 21,
        help: "largest request; the disk's own limit (max_hw_sectors_kb) holds too; 0: the kernel's choice, 4096, and \
               1280 before Linux 6.17 and under single-queue schedulers",
    },
    Tunable {
        name: "read_ahead_kb",
        unit: Unit::Kibibytes,
        default: -1,
        min: -1,
        max: 1 << 20,
        help: "largest read-ahead window of buffered reads; 0: no read-ahead; -1: the kernel's choice, 128, and twice \
               max_sectors_kb for a rotational disk in Linux 7.3",
    },
    Tunable {
        name: "wbt_lat_usec",
        unit: Unit::Microseconds,
        default: -1,
        min: -1,
        max: 1 << 40,
        help: "latency of reads above which the kernel throttles writes of the page cache; 0: never; -1: the kernel's \
               choice, 75 ms on a rotational disk and 2 ms on others, and never under bfq",
    },
];

#[cfg(test)]
mod tests {
    use crate::request::KERNEL_CPU;
    use crate::scheduler::QueueLimits;
    use crate::scheduler::testing::limits;

    #[test]
    fn cpus_in_a_row_share_a_hardware_queue() {
        let of = |cpus, hw_queues| {
            let queue = QueueLimits { cpus, hw_queues, ..limits() };
            let of_cpus: Vec<_> = (0..cpus).map(|cpu| queue.hw_queue(cpu)).collect();
            for hw_queue in 0..hw_queues {
                let first = of_cpus.iter().position(|&of| of == hw_queue);
                assert_eq!(
                    first,
                    Some(usize::from(queue.first_cpu(hw_queue))),
                    "{cpus} CPUs, {hw_queues} queues"
                );
            }
            of_cpus
        };
        assert_eq!(of(4, 4), [0, 1, 2, 3]);
        assert_eq!(of(4, 1), [0; 4]);
        assert_eq!(of(8, 3), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(of(7, 6), [0, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn cpus_without_a_software_queue_share_that_of_another() {
        let queue = QueueLimits { cpus: 4, hw_queues: 2, ..limits() };
        assert_eq!([1, 5, KERNEL_CPU].map(|cpu| queue.software_queue(cpu)), [1, 1, 0]);
        assert_eq!([3, 7, KERNEL_CPU].map(|cpu| queue.hw_queue(cpu)), [1, 1, 0]);
    }
}
