//! CPU work of the modelled host.
//!
//! In a guest CPU work takes no time. Where the modelled host's does, a process sleeps until a CPU of
//! that host has done it, at the points at which a simulated process works: before it submits, under
//! the scheduler's lock, after a completion, and in a call that copies. The CPUs are the simulator's
//! own ([`Cpus`]), shared by all processes.
//!
//! blk-mq's schedulers leave the dispatch to a worker (`kblockd`) on the submitter's CPU, which runs when
//! the submitter sleeps; sleep for work does not count. So that sleep is a call of our own driver
//! (`rigs/kernel/worker.c`), which holds the worker meanwhile. A kernel without the driver lets it run
//! too early.
//!
//! A buffered call works inside the kernel, which charges the process for it at the simulator's points
//! (`rigs/kernel/work.patch`). Where it cannot, and for io_uring, whose calls threads of the kernel may
//! finish, all is before the call. The end of an I/O of libaio is charged there, too, whatever its process does
//! meanwhile.
//!
//! Left out: with io_uring that work is counted when the process sees the completion.

use std::fs::File;
use std::io;
use std::sync::Mutex;

use blklab_core::host::{Cpus, Host, Lock};
use blklab_core::scheduler::registry;
use blklab_core::units::Nanos;
use blklab_core::workload::machine;
use blklab_core::workload::plan::ProcessSpec;

use super::sys::{self, ThreadCosts};
use super::times::CpuTimes;

/// The CPUs for which the kernel has queues of requests.
pub struct Stay(Option<File>);

impl Stay {
    /// Those of this guest's kernel.
    pub fn new() -> Stay {
        Stay(File::options().read(true).write(true).open(sys::CPU).ok())
    }

    /// The calling thread stays on the CPU of that number.
    pub fn stay_on(&self, number: u64) {
        // A kernel without `cpus.patch` refuses this. It has one queue for all CPUs.
        let _ = self.0.as_ref().map(|driver| sys::stay_on(driver, number));
    }
}

/// The CPUs of the modelled host, and the lock of its scheduler.
pub struct Work {
    host: Host,
    /// A sync ends with the completion of a flush.
    flushes: bool,
    /// The driver for work; `None` if the kernel has none.
    driver: Option<File>,
    stay: Stay,
    shared: Mutex<Shared>,
}

/// What the processes share.
struct Shared {
    cpus: Cpus,
    lock: Lock,
    /// The driver's times of the CPUs, if it has any.
    times: Option<CpuTimes>,
}

impl Work {
    /// Idle CPUs. A scheduler that the simulator does not have costs nothing. `flushes`: the disk has a
    /// volatile write cache.
    pub fn new(host: Host, scheduler: &str, flushes: bool) -> Work {
        let lock = registry::info(scheduler).map_or(Lock::new(Nanos::ZERO), |info| host.lock(info));
        let open = || File::options().read(true).write(true).open(sys::CPU).ok();
        let driver = (!host.takes_no_time()).then(open).flatten();
        let times = driver.as_ref().and_then(|driver| CpuTimes::map(driver).ok());
        let shared = Mutex::new(Shared { cpus: Cpus::new(&host), lock, times });
        Work { host, flushes, driver, stay: Stay::new(), shared }
    }

    /// From now on the kernel does the work of the calling thread's calls through the page cache; false if
    /// it cannot. The run began at `epoch` of the clock.
    pub fn charge_calls(&self, cpu: u16, epoch: Nanos) -> bool {
        let (call_ns, copy_mb_s) = (self.host.syscall.0, self.host.copy_mb_s);
        self.charge(ThreadCosts { call_ns, copy_mb_s, ..self.nothing(cpu, epoch) })
    }

    /// The same of the ends of its I/Os of libaio.
    pub fn charge_completions(&self, cpu: u16, epoch: Nanos) -> bool {
        let complete_ns = self.host.complete.0;
        complete_ns > 0 && self.charge(ThreadCosts { complete_ns, ..self.nothing(cpu, epoch) })
    }

    fn nothing(&self, cpu: u16, epoch: Nanos) -> ThreadCosts {
        ThreadCosts { cpu: cpu.into(), call_ns: 0, copy_mb_s: 0, epoch_ns: epoch.0, complete_ns: 0 }
    }

    fn charge(&self, costs: ThreadCosts) -> bool {
        self.driver.as_ref().is_some_and(|driver| sys::charge_thread(driver, &costs).is_ok())
    }

    /// The calling process works until that time of the clock.
    pub fn work_until(&self, at: Nanos) -> io::Result<()> {
        match &self.driver {
            Some(driver) => sys::work_until(driver, at),
            None => {
                sys::sleep_until(at);
                Ok(())
            }
        }
    }

    /// Whether a sync ends with the completion of a flush, rather than of writes, for which a process waits
    /// in the page cache.
    pub fn flushes(&self) -> bool {
        self.flushes
    }

    /// Whether any work takes time.
    pub fn takes_time(&self) -> bool {
        !self.host.takes_no_time()
    }

    /// The CPU on which a process stays.
    pub fn cpu_of(&self, spec: &ProcessSpec) -> u16 {
        machine::cpu_of(&spec.job, spec.id.0, spec.clone, self.host.cpus) % self.host.cpus
    }

    /// The calling thread stays on that CPU.
    pub fn stay_on(&self, cpu: u16) {
        self.stay.stay_on(cpu.into());
    }

    /// When a direct I/O that a process begins to submit at `now` is submitted.
    pub fn submission(&self, cpu: u16, now: Nanos) -> Nanos {
        if self.host.is_free() {
            return now;
        }
        self.with(cpu, |cpus, lock| cpus.submit(cpu, now, self.host.submit, lock))
    }

    /// When a buffered call that copies `bytes` has done so.
    pub fn call(&self, cpu: u16, now: Nanos, bytes: u64) -> Nanos {
        self.compute(cpu, now, self.host.syscall + self.host.copying(bytes))
    }

    /// When the process that waits for a completion at `now` runs.
    pub fn wake(&self, cpu: u16, now: Nanos) -> Nanos {
        if self.host.complete + self.host.wake == Nanos::ZERO {
            return now;
        }
        self.with(cpu, |cpus, _| cpus.work_woken(cpu, now, self.host.complete))
    }

    /// When a process runs that has waited for a completion, which came at `now`. The kernel has charged the
    /// completion's work, which is done at `done`.
    pub fn woken(&self, cpu: u16, now: Nanos, done: Nanos) -> Nanos {
        // The CPU was idle, and needs time until the process runs.
        let was_idle = self.host.wake > Nanos::ZERO && done == now + self.host.complete;
        if was_idle {
            self.compute(cpu, now, self.host.wake);
        }
        if was_idle { done + self.host.wake } else { done }
    }

    /// Completions for which the process does not wait.
    pub fn completions(&self, cpu: u16, now: Nanos, count: u32) {
        self.compute(cpu, now, Nanos(self.host.complete.0 * u64::from(count)));
    }

    /// When other work of that length is done.
    pub fn compute(&self, cpu: u16, now: Nanos, cost: Nanos) -> Nanos {
        if cost == Nanos::ZERO {
            return now;
        }
        self.with(cpu, |cpus, _| cpus.work(cpu, now, cost))
    }

    /// A completion takes no time.
    pub fn is_free(&self) -> bool {
        self.host.complete + self.host.wake == Nanos::ZERO
    }

    /// Acts on that CPU; the kernel may have let it work since the last time.
    fn with<T>(&self, cpu: u16, act: impl FnOnce(&mut Cpus, &mut Lock) -> T) -> T {
        let Shared { cpus, lock, times } = &mut *self.shared.lock().expect("no thread panics with it");
        if let Some(times) = times {
            cpus.set_free(cpu, times.get(cpu));
        }
        let done = act(cpus, lock);
        if let Some(times) = times {
            times.set(cpu, cpus.free(cpu));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::plan;
    use super::*;

    fn host() -> Host {
        Host { cpus: 2, ..Host::new(&Host::settings()) }
    }

    #[test]
    fn processes_of_one_cpu_share_it_and_all_share_the_schedulers_lock() {
        let host = host();
        let plan = plan("[a]\nrw=read\nsize=1m\nnumjobs=3\n");
        let work = Work::new(host, "bfq", true);
        let cpus: Vec<u16> = plan.processes.iter().map(|spec| work.cpu_of(spec)).collect();
        assert_eq!(cpus, [0, 1, 0]);
        let hold = host.lock(registry::info("bfq").expect("there is one")).submission();
        let first = host.submit + hold;
        assert_eq!(work.submission(0, Nanos::ZERO), first);
        assert_eq!(work.submission(1, Nanos::ZERO), first + hold, "waits for the lock");
        let last = first + hold + hold;
        assert_eq!(work.submission(0, Nanos::ZERO), last, "its CPU is free before the lock");
        let none = Work::new(host, "of another kernel", true);
        assert_eq!(none.submission(0, Nanos::ZERO), host.submit);
    }

    #[test]
    fn a_completion_takes_time_before_its_process_runs_and_others_delay_its_next_work() {
        let work = Work::new(Host { wake: Nanos(50), ..host() }, "none", true);
        let done = work.wake(0, Nanos(100));
        assert_eq!(done, Nanos(150) + host().complete);
        work.completions(0, Nanos(100), 2);
        assert_eq!(work.compute(0, done, Nanos(7)), done + host().complete + host().complete + Nanos(7));
        assert_eq!(work.call(1, Nanos(5), 4096), Nanos(5) + host().syscall + host().copying(4096));
    }

    #[test]
    fn without_costs_nothing_takes_time() {
        let work = Work::new(Host::FREE, "bfq", true);
        assert!(work.is_free());
        work.completions(0, Nanos(3), 9);
        let now = Nanos(3);
        assert_eq!([work.submission(0, now), work.wake(0, now), work.call(0, now, 1 << 20)], [now; 3]);
    }
}
