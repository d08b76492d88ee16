//! Real fio: the job file that it is given for a plan, and its output as a result of ours.
//!
//! For the rigs where fio itself issues the I/O.

pub mod job_file;
pub mod output;

#[cfg(test)]
mod testing {
    use crate::units::Sector;
    use crate::workload::jobfile::{self, Bare};
    use crate::workload::plan::{self, Plan};

    /// A job file on a disk of 1 GiB.
    pub fn plan(job: &str) -> Plan {
        let mut nothing = Bare { memory_mib: 0, cpus: 0 };
        let file = jobfile::parse(job, "job.fio", &mut nothing, Default::default()).expect("a good job");
        plan::plan(&file, Sector(1 << 21).to_bytes(), 1).expect("it fits")
    }
}
