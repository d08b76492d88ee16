//! A die: serves reads as they come, and programs and erases after them.
//!
//! A die is a next-free time with a list of jobs. The end of a job is no event: the die computes its state at
//! the next access.

use std::collections::VecDeque;

/// The number of successive reads that may go before a waiting program, so that reads do not starve writes.
const READS_BEFORE_JOB: u32 = 16;

/// A program or an erase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The earliest start.
    pub ready: u64,
    pub ns: u64,
    /// The physical units that it programs, for reads of data still in the buffer; none for other jobs.
    pub first_unit: u32,
    pub units: u32,
    /// Sectors of the write buffer that become free at its end.
    pub release_sectors: u32,
    /// The number of the job: a flush waits for earlier jobs.
    pub order: u64,
}

#[derive(Debug, Default)]
pub(super) struct Die {
    /// End of the reads so far.
    reads_end: u64,
    current: Option<Job>,
    /// End of the current or the last job.
    job_end: u64,
    jobs: VecDeque<Job>,
    reads_in_a_row: u32,
    pub busy_ns: u64,
}

impl Die {
    /// Lets jobs begin and end up to `now`; returns the sectors of the buffer that became free.
    #[inline]
    pub fn catch_up(&mut self, now: u64) -> u64 {
        let nothing_ends = match self.current {
            Some(_) => self.job_end > now,
            None => self.jobs.is_empty(),
        };
        if nothing_ends { 0 } else { self.run_jobs(now) }
    }

    fn run_jobs(&mut self, now: u64) -> u64 {
        let mut released = 0;
        loop {
            if let Some(job) = self.current {
                if self.job_end > now {
                    return released;
                }
                released += u64::from(job.release_sectors);
                self.current = None;
            }
            match self.jobs.front() {
                Some(job) if self.start_of(job) <= now => self.start_next(),
                _ => return released,
            }
        }
    }

    fn start_of(&self, job: &Job) -> u64 {
        job.ready.max(self.reads_end).max(self.job_end)
    }

    fn start_next(&mut self) {
        if let Some(job) = self.jobs.pop_front() {
            self.job_end = self.start_of(&job) + job.ns;
            self.busy_ns += job.ns;
            self.reads_in_a_row = 0;
            self.current = Some(job);
        }
    }

    /// Reads for `ns` from `at` on, on a die that is up to date at `at`; returns the time at which the data
    /// are in the page register.
    #[inline]
    pub fn read(&mut self, at: u64, ns: u64, suspend_ns: u64) -> u64 {
        let mut start = at.max(self.reads_end);
        if self.current.is_none() && !self.jobs.is_empty() {
            self.reads_in_a_row += 1;
            if self.reads_in_a_row > READS_BEFORE_JOB {
                self.start_next();
                start = start.max(self.job_end);
            }
        } else if self.current.is_some() && self.job_end > start {
            if suspend_ns == 0 {
                start = self.job_end;
            } else {
                start += suspend_ns;
                self.job_end += suspend_ns + ns;
            }
        }
        self.reads_end = start + ns;
        self.busy_ns += ns;
        self.reads_end
    }

    /// The same on a die that never has a job.
    #[inline]
    pub fn read_without_jobs(&mut self, at: u64, ns: u64) -> u64 {
        self.reads_end = at.max(self.reads_end) + ns;
        self.busy_ns += ns;
        self.reads_end
    }

    pub fn push(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    /// The end of the next job, if no read comes before it.
    pub fn next_end(&self) -> Option<u64> {
        match (self.current, self.jobs.front()) {
            (Some(_), _) => Some(self.job_end),
            (None, Some(job)) => Some(self.start_of(job) + job.ns),
            (None, None) => None,
        }
    }

    fn outstanding(&self) -> impl Iterator<Item = &Job> {
        self.current.iter().chain(&self.jobs)
    }

    /// True when a physical unit is still to be programmed.
    pub fn holds(&self, unit: u32) -> bool {
        self.outstanding().any(|job| (job.first_unit..job.first_unit + job.units).contains(&unit))
    }

    /// True when the host's unit is not programmed at `now`, even if the die was last updated earlier. What garbage collection
    /// moves stays where it was until it is programmed.
    pub fn holds_at(&self, unit: u32, now: u64) -> bool {
        let mut end = self.job_end;
        for (index, job) in self.outstanding().enumerate() {
            if index > 0 || self.current.is_none() {
                end = end.max(job.ready).max(self.reads_end) + job.ns;
            }
            if end > now
                && job.release_sectors > 0
                && (job.first_unit..job.first_unit + job.units).contains(&unit)
            {
                return true;
            }
        }
        false
    }

    /// Order of the oldest program of host data that is not done.
    pub fn oldest(&self) -> Option<u64> {
        self.outstanding().filter(|job| job.release_sectors > 0).map(|job| job.order).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Job = Job { ready: 0, ns: 1_000, first_unit: 0, units: 4, release_sectors: 32, order: 1 };

    #[test]
    fn a_program_waits_for_sixteen_reads_at_most() {
        let mut die = Die::default();
        die.push(PROGRAM);
        // All at once: each ends 100 ns after the previous one.
        let ends: Vec<_> = (0..17).map(|_| die.read(0, 100, 0)).collect();
        assert_eq!(ends[..3], [100, 200, 300]);
        assert_eq!(ends[15..], [1_600, 1_600 + 1_000 + 100]);
    }

    #[test]
    fn a_program_that_a_read_suspends_ends_later_by_the_read_and_the_suspension() {
        let mut die = Die::default();
        die.push(PROGRAM);
        assert_eq!((die.catch_up(0), die.next_end()), (0, Some(1_000)));
        assert_eq!(die.read(300, 100, 20), 420);
        assert_eq!(die.next_end(), Some(1_120));
        assert_eq!((die.catch_up(1_119), die.catch_up(1_120)), (0, 32));
    }

    #[test]
    fn without_suspension_a_read_waits_for_the_program_that_runs() {
        let mut die = Die::default();
        die.push(PROGRAM);
        die.catch_up(0);
        assert_eq!(die.read(300, 100, 0), 1_100);
    }
}
