//! fio's formats: job files, and the output of a run.
//!
//! [`jobfile`] reads a job file, [`changes`] changes some of its options; [`options`] has a row for each option and [`value`] the notation
//! of numbers, sizes and times. For rigs where fio itself issues the I/O, [`writer`] writes the job
//! file of a plan, and [`output`] converts fio's output into a result.

pub mod changes;
pub mod jobfile;
mod lines;
pub mod options;
pub mod output;
pub mod value;
pub mod writer;

#[cfg(test)]
mod testing {
    use crate::formats::fio::jobfile::{self, Bare};
    use crate::units::Sector;
    use crate::workload::plan::{self, Plan};

    /// A job file on a disk of 1 GiB.
    pub fn plan(job: &str) -> Plan {
        let mut nothing = Bare { memory_mib: 0, cpus: 0 };
        let file = jobfile::parse(job, "job.fio", &mut nothing, Default::default()).expect("a good job");
        plan::plan(&file, Sector(1 << 21).to_bytes(), 1).expect("it fits")
    }
}
