//! Converts fio's JSON into a result.
//!
//! fio reports run times in milliseconds, shares in percent with six digits and latencies in
//! buckets of under one percent; the counts computed from them have this accuracy.

use std::collections::BTreeMap;

use crate::InputError;
use crate::result::{
    DirectionResult, HistogramColumns, JobResult, LATENCY_BOUNDS_NS, LatencySummary, SampleSummary,
};
use crate::workload::plan::{Plan, ProcessSpec};
use serde::Deserialize;

const MS: u64 = 1_000_000;
/// A century.
const RUNTIME_MS_MAX: u64 = 100 * 366 * 86_400 * 1000;
const IOS_MAX: u64 = u64::MAX / 4;

#[derive(Debug, Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    jobname: String,
    error: i32,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    read: Direction,
    write: Direction,
    trim: Direction,
    sync: Sync,
    iodepth_level: Shares,
    iodepth_submit: Shares,
    iodepth_complete: Shares,
    latency_ns: Shares,
    latency_us: Shares,
    latency_ms: Shares,
}

/// Percent by upper bound, as fio prints them.
type Shares = BTreeMap<String, f64>;

#[derive(Debug, Deserialize)]
struct Direction {
    io_bytes: u64,
    runtime: u64,
    total_ios: u64,
    slat_ns: Latency,
    clat_ns: Latency,
    lat_ns: Latency,
    bw_min: f64,
    bw_max: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: f64,
    iops_max: f64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Debug, Deserialize)]
struct Sync {
    lat_ns: Latency,
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(default)]
    bins: BTreeMap<u64, i64>,
}

/// The results of all processes of `plan`, from fio's output.
///
/// # Errors
/// The text is not fio's output, or one of fio's processes failed.
pub fn read(text: &str, plan: &Plan) -> Result<Vec<JobResult>, InputError> {
    // Warnings may come before the object.
    let (before, json) = text.split_at(text.find('{').unwrap_or(0));
    let output: Output = serde_json::from_str(json).map_err(|error| InputError {
        line: Some(before.matches('\n').count() + error.line()),
        column: Some(error.column()),
        ..InputError::new(format!("fio's output: {error}"))
    })?;
    if output.jobs.len() != plan.processes.len() {
        let (found, expected) = (output.jobs.len(), plan.processes.len());
        let wrong = InputError::new(format!("fio's output: found {found} processes, expected {expected}"));
        return Err(wrong.found(found.to_string()).expected(expected.to_string()));
    }
    let mut results: Vec<JobResult> = Vec::with_capacity(output.jobs.len());
    for (job, process) in output.jobs.iter().zip(&plan.processes) {
        if job.error != 0 {
            let why = std::io::Error::from_raw_os_error(job.error);
            return Err(InputError::new(format!("fio's job '{}' failed: {why}", job.jobname)));
        }
        job.check()?;
        let start_ns = start_of(process, &results);
        results.push(job.result(process, start_ns));
    }
    Ok(results)
}

/// fio does not report it; it starts a process as soon as its conditions are met.
fn start_of(process: &ProcessSpec, before: &[JobResult]) -> u64 {
    let walls = (0..process.start.barrier).chain(process.start.wait_for.clone().into_iter().flatten());
    let free = walls.filter_map(|id| before.get(id as usize)).map(|job| job.end_ns).max();
    process.start.not_before.0.max(free.unwrap_or(0))
}

impl Job {
    /// Refuses figures that no run has and that no sum could hold.
    fn check(&self) -> Result<(), InputError> {
        let own = [("job_runtime", self.job_runtime, RUNTIME_MS_MAX)];
        let directions = [&self.read, &self.write, &self.trim].into_iter().flat_map(|direction| {
            [("runtime", direction.runtime, RUNTIME_MS_MAX), ("total_ios", direction.total_ios, IOS_MAX)]
        });
        match own.into_iter().chain(directions).find(|(_, value, most)| value > most) {
            None => Ok(()),
            Some((name, value, most)) => {
                let job = &self.jobname;
                let wrong = format!("fio's job '{job}': {name}: found {value}, expected at most {most}");
                let wrong = InputError::new(wrong).option(name);
                Err(wrong.found(value.to_string()).expected(format!("at most {most}")))
            }
        }
    }

    fn result(&self, process: &ProcessSpec, start_ns: u64) -> JobResult {
        let spec = &process.job;
        let runtime_ns = self.job_runtime * MS;
        let cpu = |percent: f64| (runtime_ns as f64 * percent / 100.0).round() as u64;
        let ios = self.read.total_ios + self.write.total_ios + self.trim.total_ios;
        let latencies = [&self.latency_ns, &self.latency_us, &self.latency_ms];
        JobResult {
            name: spec.name.clone(),
            group: spec.group,
            group_reporting: spec.reporting.group_reporting,
            options: spec.given.clone(),
            percentiles: spec.reporting.percentiles.clone(),
            start_ns,
            end_ns: start_ns + runtime_ns,
            user_ns: cpu(self.usr_cpu),
            system_ns: cpu(self.sys_cpu),
            context_switches: self.ctx,
            read: self.read.result(),
            write: self.write.result(),
            trim: self.trim.result(),
            sync_lat: self.sync.lat_ns.summary(),
            sync_hist: self.sync.lat_ns.histogram(),
            depth_levels: counts(&[&self.iodepth_level], ios),
            // fio does not report the number of calls: shares of the I/Os.
            submit_levels: counts(&[&self.iodepth_submit], ios),
            complete_levels: counts(&[&self.iodepth_complete], ios),
            latency_levels: counts::<{ LATENCY_BOUNDS_NS.len() + 1 }>(&latencies, ios).to_vec(),
        }
    }
}

/// Shares, in the order of their bounds, as counts of `whole`.
fn counts<const N: usize>(shares: &[&Shares], whole: u64) -> [u64; N] {
    let mut counts = [0; N];
    let bound = |name: &str| name.trim_start_matches(">=").parse().unwrap_or(u64::MAX);
    let sorted = shares.iter().flat_map(|shares| {
        let mut row: Vec<_> = shares.iter().collect();
        row.sort_by_key(|(name, _)| (bound(name), name.len()));
        row.into_iter().map(|(_, percent)| *percent)
    });
    for (count, percent) in counts.iter_mut().zip(sorted) {
        *count = (whole as f64 * percent / 100.0).round() as u64;
    }
    counts
}

impl Direction {
    fn result(&self) -> DirectionResult {
        DirectionResult {
            ios: self.total_ios,
            bytes: self.io_bytes,
            runtime_ns: self.runtime * MS,
            slat: self.slat_ns.summary(),
            clat: self.clat_ns.summary(),
            lat: self.lat_ns.summary(),
            bw: SampleSummary {
                count: self.bw_samples,
                min: self.bw_min,
                max: self.bw_max,
                mean: self.bw_mean,
                stddev: self.bw_dev,
            },
            iops: SampleSummary {
                count: self.iops_samples,
                min: self.iops_min,
                max: self.iops_max,
                mean: self.iops_mean,
                stddev: self.iops_stddev,
            },
            clat_hist: self.clat_ns.histogram(),
        }
    }
}

impl Latency {
    fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count,
            min_ns: self.min,
            max_ns: self.max,
            mean_ns: self.mean,
            stddev_ns: self.stddev,
        }
    }

    fn histogram(&self) -> HistogramColumns {
        HistogramColumns {
            value_ns: self.bins.keys().map(|value| *value as i64).collect(),
            count: self.bins.values().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::process::Command;

    use super::*;
    use crate::formats::fio::testing::plan;
    use crate::formats::fio::writer::{self, FioPath};

    #[test]
    fn shares_are_taken_in_the_order_of_their_bounds() {
        let shares = |pairs: &[(&str, f64)]| pairs.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect();
        let submit: Shares = shares(&[("0", 0.0), ("4", 25.0), ("64", 50.0), (">=64", 12.5), ("8", 12.5)]);
        assert_eq!(counts::<7>(&[&submit], 80), [0, 20, 10, 40, 10, 0, 0]);
        let (us, ms) = (shares(&[("1000", 10.0)]), shares(&[("2", 40.0), (">=2000", 50.0)]));
        assert_eq!(counts::<3>(&[&us, &ms], 10), [1, 4, 5]);
    }

    #[test]
    fn figures_of_no_run_are_refused_in_one_line() {
        let plan = plan("[a]\nsize=1m\n");
        let latency = json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
        let direction = json!({
            "io_bytes": 0, "runtime": 0, "total_ios": 0,
            "slat_ns": latency, "clat_ns": latency, "lat_ns": latency,
            "bw_min": 0.0, "bw_max": 0.0, "bw_mean": 0.0, "bw_dev": 0.0, "bw_samples": 0,
            "iops_min": 0.0, "iops_max": 0.0, "iops_mean": 0.0, "iops_stddev": 0.0, "iops_samples": 0,
        });
        let job = json!({
            "jobname": "a", "error": 0, "job_runtime": 0, "usr_cpu": 0.0, "sys_cpu": 0.0, "ctx": 0,
            "read": direction, "write": direction, "trim": direction, "sync": {"lat_ns": latency},
            "iodepth_level": {}, "iodepth_submit": {}, "iodepth_complete": {},
            "latency_ns": {}, "latency_us": {}, "latency_ms": {},
        });
        let told = |job: &serde_json::Value| read(&json!({"jobs": [job]}).to_string(), &plan);
        told(&job).expect("the output of a job without I/O");
        for (place, most) in [
            ("/job_runtime", RUNTIME_MS_MAX),
            ("/read/runtime", RUNTIME_MS_MAX),
            ("/write/total_ios", IOS_MAX),
        ] {
            let mut job = job.clone();
            *job.pointer_mut(place).expect("a figure") = most.into();
            told(&job).expect("the largest value");
            *job.pointer_mut(place).expect("a figure") = (most + 1).into();
            let error = told(&job).unwrap_err();
            let refused = error.to_string();
            let name = place.rsplit('/').next().expect("a name");
            let wanted = format!("{name}: found {}, expected at most {most}", most + 1);
            assert!(refused.contains(&wanted) && refused.lines().count() == 1, "{refused}");
            assert_eq!(error.option.as_deref(), Some(name));
        }
    }

    #[test]
    fn text_that_is_not_fios_output_is_refused_in_one_line() {
        let plan = plan("[a]\nsize=1m\n");
        for text in ["", "fio: no", "{}", "{\"jobs\": [{}]}", "{\"jobs\": []}", "{\"jobs\": 3"] {
            let error = read(text, &plan).expect_err(text).to_string();
            assert!(error.starts_with("fio's output: ") && !error.contains('\n'), "{error}");
        }
    }

    /// Real fio, if it is installed, on files of this machine.
    #[test]
    fn a_result_of_real_fio_has_every_io_that_it_did() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = plan(
            "[a]\nrw=randrw\nbs=4k\nsize=256k\nnumjobs=2\nfsync=16\n[b]\nstonewall\nrw=write\nbs=64k\nsize=512k\n",
        );
        let files: Vec<_> = (0..plan.files.len())
            .map(|n| FioPath::whole(folder.path().join(n.to_string()).display().to_string()))
            .collect();
        let text = writer::job_file(&plan, &files, None, 3).expect("every file is whole");
        std::fs::write(folder.path().join("fio.job"), text).expect("written");
        let words = ["--output-format=json+", "--output=fio.json", "fio.job"];
        let Ok(output) = Command::new("fio").args(words).current_dir(folder.path()).output() else {
            println!("skipped: fio is not installed");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read_to_string(folder.path().join("fio.json")).expect("fio writes it");
        let jobs = read(&text, &plan).expect("fio's own output");
        let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a", "a", "b"]);
        for job in &jobs {
            let bytes = job.read.bytes + job.write.bytes;
            assert_eq!(bytes, if job.name == "a" { 256 << 10 } else { 512 << 10 });
            for side in [&job.read, &job.write] {
                assert_eq!(side.clat_hist.count.iter().sum::<i64>() as u64, side.ios);
                assert_eq!(side.clat.count, side.ios);
                let (mean, max) = (side.clat.mean_ns, side.clat.max_ns as f64);
                assert!(side.ios == 0 || (mean > 0.0 && mean <= max), "{mean} of at most {max}");
            }
        }
        assert!(jobs[0].sync_lat.count > 0);
        assert!(jobs[2].start_ns >= jobs[0].end_ns.max(jobs[1].end_ns), "b waits behind the wall");
    }
}
