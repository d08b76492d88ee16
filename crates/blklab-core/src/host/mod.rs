//! The host of the disk: the CPU time of an I/O, and the number of CPUs.
//!
//! Each CPU and each scheduler's lock has a next-free time: work requested at `t` begins when the
//! resource is free and holds it for its duration. A driver with a thread of its own (loop; here of
//! disks of constant service time) completes one I/O at a time, on the CPU that is free first. All costs are zero in [`Host::FREE`],
//! for comparison with a kernel whose CPU work takes no time.
//!
//! Left out: the CPU time of context switches other than to a driver's thread; cache lines that move between CPUs; process
//! scheduling (a process stays on its CPU, and so few I/Os in flight as keep all threads of an I/O on one CPU are too
//! fast); the wake-up of a process that waits for the page cache.

mod cpus;
mod driver;
mod file_system;
mod lock;
pub mod spec;

use crate::workload::journal::JournalKind;
use file_system::FILE_SYSTEMS;
pub use file_system::FileSystem;

use crate::disk::DiskLimits;
use crate::kernel::{self, Kernel};
use crate::scheduler::Info;
use crate::scheduler::registry::{self, LOCKS};
use crate::ticks::Ticks;
use crate::tunable::{Settings, Tunable, Unit};
use crate::units::Nanos;

pub use cpus::Cpus;
pub use driver::{Driver, DriverCosts};
pub use lock::Lock;

/// The host's tunables: [`OWN`], and the cost of each scheduler.
pub const TUNABLES: &[Tunable] = &{
    let mut all = [OWN[0]; OWN.len() + LOCKS.len()];
    let mut index = 1;
    while index < all.len() {
        all[index] = if index < OWN.len() { OWN[index] } else { LOCKS[index - OWN.len()] };
        index += 1;
    }
    all
};

/// The host's own. The defaults are an ordinary desktop of the 2020s.
const OWN: &[Tunable] = &[
    Tunable {
        name: "kernel",
        unit: Unit::Word(kernel::VERSIONS),
        default: kernel::NEWEST,
        min: kernel::VERSIONS[0].1,
        max: kernel::NEWEST,
        help: "version of Linux whose block layer, schedulers and page cache are simulated; in files of results and in \
               Python its number, 7003 for 7.3",
    },
    Tunable {
        name: "cpus",
        unit: Unit::Count,
        default: 4,
        min: 1,
        max: 1024,
        help: "CPUs; a process stays on the one of its number",
    },
    Tunable {
        name: "kernel_cpus",
        unit: Unit::Count,
        default: 0,
        min: 0,
        max: 1024,
        help: "CPUs for which the kernel has queues of requests, and counters of pages; 0: those of cpus; fio and \
               programs in a guest of the kernel rig: 1",
    },
    Tunable {
        name: "submit_ns",
        unit: Unit::Nanoseconds,
        // submit_ns + complete_ns: 423k 4 KiB reads/s of fio with libaio on a loop device under
        // none on one CPU (Linux 6.18), 2.36 us each, minus the loop driver's share.
        default: 1200,
        min: 0,
        max: 1_000_000,
        help: "CPU time to submit one direct I/O; 0 here and in complete_ns: the scheduler costs nothing either",
    },
    Tunable {
        name: "complete_ns",
        unit: Unit::Nanoseconds,
        default: 1000,
        min: 0,
        max: 1_000_000,
        help: "CPU time of one completion: interrupt, wake-up, reaping",
    },
    Tunable {
        name: "driver_ns",
        unit: Unit::Nanoseconds,
        default: 0,
        min: 0,
        max: 1_000_000,
        help: "CPU time of one I/O in the thread of a driver that has one (loop), which runs on the CPU that is free \
               first and serves one I/O at a time; only for disks of the kind constant, since drivers of real disks \
               have no thread",
    },
    Tunable {
        name: "switch_ns",
        unit: Unit::Nanoseconds,
        default: 0,
        min: 0,
        max: 1_000_000,
        help: "CPU time of each switch to the thread of a driver that has one (driver_ns), which then works on all I/Os \
               that wait",
    },
    Tunable {
        name: "wake_ns",
        unit: Unit::Nanoseconds,
        default: 0,
        min: 0,
        max: 1_000_000,
        help: "time from the wake-up of a process or of a driver's thread on an idle CPU until it runs; direct I/O \
               of a small depth waits for it",
    },
    Tunable {
        name: "syscall_ns",
        unit: Unit::Nanoseconds,
        // Estimate: fio gets about a million 4 KiB page cache hits per second.
        default: 600,
        min: 0,
        max: 1_000_000,
        help: "CPU time of a buffered read or write beside copying, fio's own part included",
    },
    Tunable {
        name: "copy_mb_s",
        unit: Unit::MegabytesPerSecond,
        // Estimate: one core of a desktop with DDR4 memory.
        default: 8000,
        min: 0,
        max: 1_000_000,
        help: "speed of copying between a process and the page cache; 0: it takes no time",
    },
    Tunable {
        name: "clock_ns",
        unit: Unit::Nanoseconds,
        default: 0,
        min: 0,
        max: 1_000_000,
        help: "time that a process needs to read the clock, which fio does five times for each direct I/O; \
               user-mode Linux in virtual time: 256",
    },
    Tunable {
        name: "drain_at_once",
        unit: Unit::Flag,
        default: 0,
        min: 0,
        max: 1,
        help: "1: a process that ends reaps all its I/Os in flight at once, when the last is done, as fio does; \
               0: each when it is done, as the native driver does",
    },
    Tunable {
        name: "probe_on_close",
        unit: Unit::Flag,
        default: 0,
        min: 0,
        max: 1,
        help: "1: a process that ends closes the disk, and the driver sends a command without data, before all \
               requests (TEST UNIT READY of SCSI)",
    },
    Tunable {
        name: "budget",
        unit: Unit::Count,
        default: -1,
        min: -1,
        max: 1,
        help: "1: the driver asks the scheduler only when the disk takes one more, as behind the SCSI layer; \
               0: it asks first and keeps one request back for want of a tag, as NVMe's and ublk's; \
               -1: 1 for SATA and SAS, 0 for NVMe",
    },
    Tunable {
        name: "hz",
        unit: Unit::Count,
        // CONFIG_HZ of today's Fedora and Ubuntu kernels; Debian's is 250.
        default: 1000,
        min: 100,
        max: 1000,
        help: "ticks per second: how finely the kernel's own timers are set",
    },
    Tunable {
        name: "interrupt_ns",
        unit: Unit::Nanoseconds,
        default: 0,
        min: 0,
        max: 1_000_000,
        help: "time from the end of commands until their processes and the kernel's worker go on; a guest of the \
               kernel rig, in which nothing else takes time: 1",
    },
    Tunable {
        name: "clock_stands",
        unit: Unit::Count,
        default: 0,
        min: 0,
        max: 1,
        help: "1: no time passes while the kernel takes an I/O from its submitter, not even for its clock, as in a guest \
               of the kernel rig: bfq counts a long think time before the first I/O of a process; 0: it does only \
               where CPU work takes no time",
    },
    Tunable {
        name: "partitions",
        unit: Unit::Count,
        default: 0,
        min: 0,
        max: 1,
        help: "1: each file is a partition of the disk, so that direct I/O comes without a plug; \
               0: files lie in a file system",
    },
    Tunable {
        name: "file_system",
        unit: Unit::Word(FILE_SYSTEMS),
        default: 0,
        min: 0,
        max: FILE_SYSTEMS.len() as i64 - 1,
        help: "the file system of the files: how direct reads of up to 4 KiB and writeback come to the disk",
    },
    Tunable {
        name: "journal",
        unit: Unit::Flag,
        default: 0,
        min: 0,
        max: 1,
        help: "1: fsync commits the times of a file to the journal of ext4 or XFS, between two flushes; 0, and in other \
               file systems: it only flushes the disk's cache, as fdatasync",
    },
    Tunable {
        name: "lazytime",
        unit: Unit::Flag,
        default: 0,
        min: 0,
        max: 1,
        help: "of a file system with journal=1: 1: mounted with lazytime, so that only fsync changes its journal; 0: each write \
               in a new tick does, as by default",
    },
    Tunable {
        name: "large_folios",
        unit: Unit::Count,
        default: 1,
        min: 0,
        max: 1,
        help: "1: the page cache has folios of several pages, at whose multiples read-ahead ends since Linux 7.3; \
               0: it has not, as a kernel without huge pages (CONFIG_TRANSPARENT_HUGEPAGE), such as a guest's",
    },
];

/// The host's CPUs and the costs of work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// What its version of Linux does.
    pub kernel: Kernel,
    /// CPUs.
    pub cpus: u16,
    /// CPUs for which the kernel has queues and counters.
    pub kernel_cpus: u16,
    /// CPU time to submit one direct I/O.
    pub submit: Nanos,
    /// CPU time of one completion.
    pub complete: Nanos,
    /// CPU time of the driver's own thread, if it has one.
    pub driver: DriverCosts,
    /// From the wake-up of a thread on an idle CPU until it runs.
    pub wake: Nanos,
    /// CPU time of one I/O under each scheduler's lock, in the registry's order.
    pub locks: [Nanos; registry::ALL.len()],
    /// CPU time of a buffered read or write, without copying.
    pub syscall: Nanos,
    /// See [`Host::has_budget`]; `None` if the disk's transport decides.
    pub budget: Option<bool>,
    /// The kernel's own clock.
    pub ticks: Ticks,
    /// A process that ends reaps everything in flight at once.
    pub drain_at_once: bool,
    /// A process that ends lets the driver ask the disk whether it is ready.
    pub probe_on_close: bool,
    /// One reading of the clock by a process: see [`crate::source::fio`].
    pub clock: Nanos,
    /// From the end of commands until their processes and the worker go on. Without it no time at
    /// all passes where CPU work is free, and what ends and what begins has the same time.
    pub interrupt: Nanos,
    /// No time passes between two steps of the block layer, although CPU work takes time.
    pub clock_stands: bool,
    /// Files are partitions: see [`crate::block::Manner::plugged`].
    pub partitions: bool,
    /// The files' file system, unless they are partitions.
    pub file_system: FileSystem,
    /// It has a journal: see [`crate::engine::Journal`].
    pub journal: Option<JournalKind>,
    /// It is mounted with `lazytime`.
    pub lazytime: bool,
    /// See [`crate::pagecache::MemoryConfig::large_folios`].
    pub large_folios: bool,
    /// Copying between a process and the page cache; 0: it takes no time.
    pub copy_mb_s: u64,
}

impl Host {
    /// CPU work takes no time.
    pub const FREE: Host = Host {
        kernel: Kernel::LATEST,
        cpus: 4,
        kernel_cpus: 4,
        submit: Nanos::ZERO,
        complete: Nanos::ZERO,
        driver: DriverCosts { io: Nanos::ZERO, switch: Nanos::ZERO },
        wake: Nanos::ZERO,
        locks: [Nanos::ZERO; registry::ALL.len()],
        syscall: Nanos::ZERO,
        budget: None,
        ticks: Ticks::per_second(1000),
        drain_at_once: false,
        probe_on_close: false,
        clock: Nanos::ZERO,
        interrupt: Nanos::ZERO,
        clock_stands: false,
        partitions: false,
        file_system: FileSystem::DEFAULT,
        journal: None,
        lazytime: false,
        large_folios: true,
        copy_mb_s: 0,
    };

    /// The table at its defaults.
    pub fn settings() -> Settings {
        Settings::defaults("host", TUNABLES)
    }

    /// From settings of the table in [`TUNABLES`].
    pub fn new(settings: &Settings) -> Host {
        // The table's bounds keep every other value non-negative.
        let get = |name| settings.get(name).unsigned_abs();
        let cpus = get("cpus") as u16;
        Host {
            kernel: Kernel::of(settings.get("kernel")),
            cpus,
            kernel_cpus: match get("kernel_cpus") as u16 {
                0 => cpus,
                own => own,
            },
            submit: Nanos(get("submit_ns")),
            complete: Nanos(get("complete_ns")),
            driver: DriverCosts { io: Nanos(get("driver_ns")), switch: Nanos(get("switch_ns")) },
            wake: Nanos(get("wake_ns")),
            locks: std::array::from_fn(|index| Nanos(get(LOCKS[index].name))),
            syscall: Nanos(get("syscall_ns")),
            budget: match settings.get("budget") {
                -1 => None,
                own => Some(own > 0),
            },
            ticks: Ticks::per_second(get("hz")),
            drain_at_once: get("drain_at_once") > 0,
            probe_on_close: get("probe_on_close") > 0,
            clock: Nanos(get("clock_ns")),
            interrupt: Nanos(get("interrupt_ns")),
            clock_stands: get("clock_stands") > 0,
            partitions: get("partitions") > 0,
            file_system: FileSystem::of(settings.get("file_system")),
            lazytime: get("lazytime") > 0,
            journal: (get("journal") > 0)
                .then(|| file_system::journal_of(settings.get("file_system")))
                .flatten(),
            large_folios: get("large_folios") > 0,
            copy_mb_s: get("copy_mb_s"),
        }
    }

    /// The driver asks the scheduler only when the disk can take one more (`get_budget` of SCSI).
    pub fn has_budget(&self, disk: &DiskLimits) -> bool {
        self.budget.unwrap_or(disk.adapter_tags.is_some())
    }

    /// A direct read of a file of at most a block comes without a plug.
    pub fn reads_blocks_without_plug(&self) -> bool {
        self.kernel.reads_blocks_without_plug && !self.file_system.plugs_small_reads
    }

    /// How I/O comes to the disk from files: a partition has no file system, and none of what sets the
    /// others apart from the default one.
    pub fn files(&self) -> FileSystem {
        if self.partitions { FileSystem::DEFAULT } else { self.file_system }
    }

    /// The most pages of a bio of writeback of a file. Large folios have so many that only other
    /// limits count.
    pub fn writeback_bio_pages(&self) -> u32 {
        let FileSystem { bio_folios, bio_pages, .. } = self.file_system;
        if self.large_folios { bio_pages } else { bio_pages.min(bio_folios) }
    }

    /// CPU work costs nothing, and neither does the scheduler's.
    pub fn is_free(&self) -> bool {
        self.submit == Nanos::ZERO && self.complete == Nanos::ZERO
    }

    /// The lock of that scheduler; it costs nothing where I/O costs nothing.
    pub fn lock(&self, scheduler: &Info) -> Lock {
        let index = registry::ALL.iter().position(|info| info.name == scheduler.name);
        // The cost of a plug-in is in its description only.
        let cost = index.map_or(Nanos(scheduler.lock_ns), |index| self.locks[index]);
        Lock::new(if self.is_free() { Nanos::ZERO } else { cost })
    }

    /// No CPU work takes any time.
    pub fn takes_no_time(&self) -> bool {
        self.is_free()
            && self.driver.io + self.wake == Nanos::ZERO
            && self.syscall == Nanos::ZERO
            && self.copy_mb_s == 0
    }

    /// The only CPU belongs to a process until it sleeps: no work of the kernel takes time, in which
    /// another process could take its turn.
    pub fn has_one_cpu(&self) -> bool {
        self.clock > Nanos::ZERO && self.cpus == 1 && self.takes_no_time()
    }

    /// CPU time to copy `bytes` between a process and the page cache.
    #[inline]
    pub fn copying(&self, bytes: u64) -> Nanos {
        Nanos((bytes * 1_000).checked_div(self.copy_mb_s).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_host_parameter_is_refused_in_one_line() {
        let mut settings = Host::settings();
        assert!(settings.set("cpus", "8").is_ok());
        assert_eq!(Host::new(&settings).cpus, 8);
        let refused = |name, value| Host::settings().set(name, value).unwrap_err().to_string();
        assert_eq!(refused("cpu", "8"), "host has no tunable 'cpu'; did you mean 'cpus'?");
        assert_eq!(refused("cpus", "0"), "host:cpus: 0 is out of range (1 to 1024)");
        assert_eq!(refused("cpus", "two"), "host:cpus: 'two' is not a whole number (1 to 1024)");
    }

    #[test]
    fn each_scheduler_has_a_lock_of_its_own_and_none_where_io_costs_nothing() {
        let mut settings = Host::settings();
        settings.set("lock_ns.kyber", "1234").expect("a scheduler of the registry");
        let host = Host::new(&settings);
        let hold = |host: &Host, name| host.lock(registry::info(name).expect("there is one")).submission();
        assert_eq!(hold(&host, "kyber"), Nanos(1234));
        for info in registry::ALL.iter().filter(|info| info.name != "kyber") {
            assert_eq!(hold(&host, info.name), Nanos(info.lock_ns), "{}: by default its own", info.name);
        }
        let free = Host { submit: Nanos::ZERO, complete: Nanos::ZERO, ..host };
        assert_eq!(hold(&free, "kyber"), Nanos::ZERO);
        let refused = Host::settings().set("lock_ns.mq-deadlin", "1").unwrap_err().to_string();
        assert_eq!(refused, "host has no tunable 'lock_ns.mq-deadlin'; did you mean 'lock_ns.mq-deadline'?");
    }

    #[test]
    fn copying_takes_the_time_that_the_speed_says() {
        let host = Host { copy_mb_s: 8000, ..Host::FREE };
        assert_eq!(host.copying(4096), Nanos(512));
        assert_eq!(Host::FREE.copying(1 << 30), Nanos::ZERO);
    }
}
