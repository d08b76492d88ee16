//! The host around the disk: what an I/O costs in CPU time, and on how many CPUs.
//!
//! Each CPU and the scheduler's lock are next-free times: work asked for at `t` begins
//! when the resource is free and keeps it for as long as it takes. All costs are zero in
//! [`Host::FREE`], which is what the kernel rig's zero-cost CPU is compared with.

use crate::units::Nanos;

/// One number of the host's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostParameter {
    /// As given on the command line.
    pub name: &'static str,
    /// Unit of value, default and bounds.
    pub unit: &'static str,
    /// An ordinary desktop of the 2020s.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// What it is and where the default comes from.
    pub help: &'static str,
}

macro_rules! host {
    ($($field:ident: $unit:literal, $default:literal, $min:literal..=$max:literal, $help:literal;)+) => {
        /// The host's CPUs and what things cost on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Host { $(#[doc = $help] pub $field: u64),+ }

        /// Every number of a [`Host`]: name, unit, default, bounds, meaning.
        pub const PARAMETERS: &[HostParameter] = &[
            $(HostParameter {
                name: stringify!($field), unit: $unit, default: $default, min: $min, max: $max, help: $help,
            }),+
        ];

        impl Default for Host {
            fn default() -> Host {
                Host { $($field: $default),+ }
            }
        }

        impl Host {
            /// Set a number by name.
            ///
            /// # Errors
            /// One line: no such name, or a value outside its bounds.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
                let names = PARAMETERS.iter().map(|p| p.name).collect::<Vec<_>>();
                let Some(parameter) = PARAMETERS.iter().find(|p| p.name == name) else {
                    return Err(format!("the host has no parameter '{name}'{}", crate::text::hint(name, &names)));
                };
                let HostParameter { min, max, unit, .. } = *parameter;
                if value < min || value > max {
                    return Err(format!("host {name}: {value} is out of range ({min} to {max} {unit})"));
                }
                match name {
                    $(stringify!($field) => self.$field = value,)+
                    _ => unreachable!("the name stands in the table"),
                }
                Ok(())
            }

            /// Names and values, in the table's order.
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field)),+]
            }
        }
    };
}

host! {
    cpus: "CPUs", 4, 1..=1024, "CPUs; a process stays on the one of its number (as with fio's cpus_allowed_policy=split)";
    memory_mib: "MiB", 8192, 64..=16777216, "memory for the page cache";
    submit_ns: "ns", 1200, 0..=1000000, "CPU time to submit one direct I/O; with complete_ns what is left of 2.36 us per 4 KiB read of fio with libaio on a loop device under none (423k IOPS on one CPU, Linux 6.18)";
    complete_ns: "ns", 1000, 0..=1000000, "CPU time of one completion: interrupt, wake-up, reaping; see submit_ns";
    syscall_ns: "ns", 600, 0..=1000000, "CPU time of one buffered read or write beside copying, fio's own part included; estimate: fio reaches about 1 million 4 KiB hits a second";
    copy_mb_s: "MB/s", 8000, 100..=1000000, "speed at which buffered data are copied; estimate: one core of a desktop with DDR4 memory";
}

impl Host {
    /// CPU work takes no time.
    pub const FREE: Host =
        Host { cpus: 4, memory_mib: 8192, submit_ns: 0, complete_ns: 0, syscall_ns: 0, copy_mb_s: 1_000_000 };

    /// CPU time to copy `bytes` between a process and the page cache.
    #[inline]
    pub fn copying(&self, bytes: u64) -> Nanos {
        Nanos(bytes * 1_000 / self.copy_mb_s)
    }
}

/// When each CPU and the scheduler's lock are free again.
#[derive(Clone, Debug)]
pub struct Cpus {
    free: Vec<Nanos>,
    lock_free: Nanos,
    lock_hold: Nanos,
}

impl Cpus {
    /// Idle CPUs; each I/O holds the scheduler's lock for `lock_hold`.
    pub fn new(host: &Host, lock_hold: Nanos) -> Cpus {
        Cpus { free: vec![Nanos::ZERO; host.cpus as usize], lock_free: Nanos::ZERO, lock_hold }
    }

    /// Work of length `cost` asked for at `now` on `cpu`: when it is done.
    #[inline]
    pub fn work(&mut self, cpu: u16, now: Nanos, cost: Nanos) -> Nanos {
        let free = &mut self.free[usize::from(cpu)];
        *free = now.max(*free) + cost;
        *free
    }

    /// Submission of one I/O: its CPU work, then the scheduler's lock, spinning for it.
    #[inline]
    pub fn submit(&mut self, cpu: u16, now: Nanos, cost: Nanos) -> Nanos {
        let worked = self.work(cpu, now, cost);
        if self.lock_hold == Nanos::ZERO {
            return worked;
        }
        self.lock_free = worked.max(self.lock_free) + self.lock_hold;
        self.free[usize::from(cpu)] = self.lock_free;
        self.lock_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_share_the_schedulers_lock_and_nothing_else() {
        let host = Host { cpus: 2, ..Host::FREE };
        let mut unlocked = Cpus::new(&host, Nanos::ZERO);
        assert_eq!(unlocked.submit(0, Nanos(0), Nanos(100)), Nanos(100));
        assert_eq!(unlocked.submit(1, Nanos(0), Nanos(100)), Nanos(100));
        let mut locked = Cpus::new(&host, Nanos(30));
        assert_eq!(locked.submit(0, Nanos(0), Nanos(100)), Nanos(130));
        assert_eq!(locked.submit(1, Nanos(0), Nanos(100)), Nanos(160), "the second waits for the lock");
        assert_eq!(locked.work(1, Nanos(0), Nanos(10)), Nanos(170), "and its CPU spins meanwhile");
    }

    #[test]
    fn a_wrong_host_parameter_is_refused_in_one_line() {
        let mut host = Host::default();
        assert!(host.set("cpus", 8).is_ok());
        assert_eq!(host.cpus, 8);
        assert_eq!(
            host.set("cpu", 8).unwrap_err(),
            "the host has no parameter 'cpu'; did you mean 'cpus'?"
        );
        assert_eq!(host.set("cpus", 0).unwrap_err(), "host cpus: 0 is out of range (1 to 1024 CPUs)");
    }
}
