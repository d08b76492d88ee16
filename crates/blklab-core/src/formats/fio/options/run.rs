//! Engine, depth, pace, durability, priority, start and end.

use super::super::value::TimeUnit::{Micros, Seconds};
use super::access::lay;
use super::{Draft, JobOption, Refusal, Takes, U32_MAX, foreign, ignore};
use crate::units::Nanos;
use crate::workload::cgroups::{self, NAME_BYTES_MAX, WEIGHT_RANGE};
use crate::workload::spec::{Engine, ExitWhat, RateProcess, SyncMode, ThinkAfter};

/// More than any device's queues hold, and small enough for a table of that size.
const DEPTH_MAX: u64 = 1 << 20;

/// The words of [`Engine::NAMES`].
const ENGINES: [&str; Engine::NAMES.len()] = {
    let mut words = [""; Engine::NAMES.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = Engine::NAMES[index].0;
        index += 1;
    }
    words
};

const QUEUED: &[Engine] = &[Engine::Libaio, Engine::IoUring];
const POLLED: &[Engine] = &[Engine::IoUring, Engine::Pvsync2];
const URING: &[Engine] = &[Engine::IoUring];
const URING_COST: &str = "submission has one CPU cost for all modes";

pub(super) const OPTIONS: &[JobOption] = &[
    JobOption::new(
        "ioengine",
        Takes::WordAnd(&ENGINES, set_engine),
        "psync",
        "how I/O is submitted: sync, psync, vsync, pvsync, pvsync2 block; libaio, io_uring queue; posixaio queues and has one I/O per file in flight",
    )
    .not_simulated_words(foreign::ENGINES),
    JobOption::new(
        "direct",
        Takes::Bool(|d, on| d.spec.queueing.direct = on),
        "0",
        "bypass the page cache (O_DIRECT)",
    ),
    JobOption::new(
        "buffered",
        Takes::Bool(|d, on| d.spec.queueing.direct = !on),
        "1",
        "use the page cache; the opposite of direct",
    ),
    JobOption::new(
        "iodepth",
        Takes::Count(1, DEPTH_MAX, |d, n| d.spec.queueing.iodepth = n as u32),
        "1",
        "I/Os to keep in flight; engines that block have one",
    ),
    JobOption::new(
        "iodepth_batch",
        Takes::Count(0, DEPTH_MAX, |d, n| d.spec.queueing.batch_submit = n as u32),
        "1",
        "I/Os per submit call; 0 for iodepth",
    )
    .alias(&["iodepth_batch_submit"]),
    JobOption::new(
        "iodepth_batch_complete_min",
        Takes::Count(0, DEPTH_MAX, |d, n| d.spec.queueing.batch_complete_min = n as u32),
        "1",
        "completions to wait for when reaping; 0 polls",
    )
    .alias(&["iodepth_batch_complete"]),
    JobOption::new(
        "iodepth_batch_complete_max",
        Takes::Count(0, DEPTH_MAX, |d, n| d.spec.queueing.batch_complete_max = n as u32),
        "",
        "most completions to reap at once; iodepth_batch_complete_min if not given",
    ),
    JobOption::new(
        "iodepth_low",
        Takes::Count(0, DEPTH_MAX, |d, n| d.spec.queueing.low = n as u32),
        "",
        "depth to drain down to before filling up again; iodepth if not given",
    ),
    JobOption::new("hipri", Takes::Flag(ignore::flag), "0", "poll for completions")
        .only_for(POLLED)
        .no_effect("completion has one CPU cost for interrupts and polling"),
    JobOption::new("fixedbufs", Takes::Flag(ignore::flag), "0", "map buffers once")
        .only_for(URING)
        .no_effect(URING_COST),
    JobOption::new("registerfiles", Takes::Flag(ignore::flag), "0", "register files once")
        .only_for(URING)
        .no_effect(URING_COST),
    JobOption::new("sqthread_poll", Takes::Flag(ignore::flag), "0", "let a kernel thread submit")
        .only_for(URING)
        .no_effect(URING_COST),
    JobOption::new("nonvectored", Takes::Count(0, 1, ignore::count), "", "use read instead of readv")
        .only_for(URING)
        .no_effect(URING_COST),
    JobOption::new("userspace_reap", Takes::Flag(ignore::flag), "0", "read the completion ring directly")
        .only_for(&[Engine::Libaio])
        .no_effect("reaping has one CPU cost"),
    JobOption::new(
        "cmdprio_percentage",
        Takes::Counts(0, 100, |d, n| lay(&mut d.spec.priorities.raised_percent, &n, |n| n as u32)),
        "0",
        "percentage of I/Os that have cmdprio_class and cmdprio instead of the job's priority",
    )
    .only_for(QUEUED),
    JobOption::new(
        "cmdprio_class",
        Takes::Counts(0, 3, |d, n| lay(&mut d.raised_class, &n, |n| n)),
        "1",
        "class of those I/Os: 1 real time, 2 best effort, 3 idle",
    )
    .only_for(QUEUED),
    JobOption::new(
        "cmdprio",
        Takes::Counts(0, 7, |d, n| lay(&mut d.raised_prio, &n, |n| n)),
        "0",
        "level of those I/Os, 0 highest",
    )
    .only_for(QUEUED),
    JobOption::new(
        "prioclass",
        Takes::Count(0, 3, |d, n| d.prio_class = n),
        "0",
        "I/O priority class: 1 real time, 2 best effort, 3 idle",
    ),
    JobOption::new(
        "prio",
        Takes::Count(0, 7, |d, n| d.prio = Some(n)),
        "",
        "I/O priority level, 0 highest; best effort if there is no prioclass",
    ),
    JobOption::new(
        "cgroup",
        Takes::Text(set_cgroup),
        "",
        "cgroup of the job's processes; a/b is within a, which an earlier job must name",
    ),
    JobOption::new(
        "cgroup_weight",
        Takes::Count(WEIGHT_RANGE.0 as u64, WEIGHT_RANGE.1 as u64, |d, n| {
            d.spec.membership.weight = Some(n as u16);
        }),
        "",
        "weight of that cgroup beside its siblings; 100 if no job gives one. Schedulers without cgroups ignore it",
    ),
    JobOption::new("cgroup_nodelete", Takes::Bool(ignore::flag), "0", "keep the cgroup when the jobs have ended")
        .no_effect("nothing is left of a run's machine"),
    JobOption::new(
        "thinktime",
        Takes::Time(Micros, |d, t| d.spec.think.time = t),
        "0",
        "pause between I/Os; microseconds without a unit",
    ),
    JobOption::new(
        "thinktime_spin",
        Takes::Time(Micros, |d, t| d.spec.think.spin = t),
        "0",
        "part of thinktime that is spent on the CPU",
    ),
    JobOption::new(
        "thinktime_blocks",
        Takes::Count(0, U32_MAX, |d, n| d.think_blocks = Some(n as u32)),
        "1",
        "I/Os between two pauses",
    ),
    JobOption::new(
        "thinktime_blocks_type",
        Takes::Word(&["complete", "issue"], |d, word| {
            d.spec.think.after = if word == "issue" { ThinkAfter::Issue } else { ThinkAfter::Complete };
            Ok(())
        }),
        "complete",
        "whether completed or issued I/Os count for thinktime_blocks",
    ),
    JobOption::new(
        "thinktime_iotime",
        Takes::Time(Seconds, |d, t| d.spec.think.io_time = t),
        "0",
        "pause after this much time of I/O as well; seconds without a unit",
    ),
    JobOption::new(
        "rate",
        Takes::Sizes(0, i64::MAX as u64, |d, n| lay(&mut d.rate_bytes, &n, |n| n)),
        "",
        "maximum bytes per second",
    ),
    JobOption::new(
        "rate_iops",
        Takes::Counts(0, U32_MAX, |d, n| lay(&mut d.rate_ios, &n, |n| n)),
        "",
        "maximum I/Os per second",
    ),
    JobOption::new(
        "rate_process",
        Takes::Word(&["linear", "poisson"], |d, word| {
            d.spec.rate.process = if word == "poisson" { RateProcess::Poisson } else { RateProcess::Linear };
            Ok(())
        }),
        "linear",
        "even gaps between I/Os, or those of a Poisson process",
    ),
    JobOption::new(
        "rate_ignore_thinktime",
        Takes::Bool(|d, on| d.spec.rate.ignore_thinktime = on),
        "0",
        "do not make up for pauses",
    ),
    JobOption::new(
        "fsync",
        Takes::Count(0, U32_MAX, |d, n| d.spec.durability.fsync_every = n as u32),
        "0",
        "fsync after this many writes; 0 for never",
    ),
    JobOption::new(
        "fdatasync",
        Takes::Count(0, U32_MAX, |d, n| d.spec.durability.fdatasync_every = n as u32),
        "0",
        "fdatasync after this many writes; 0 for never",
    ),
    JobOption::new(
        "sync",
        Takes::Word(&["none", "0", "sync", "1", "dsync"], |d, word| {
            d.spec.durability.mode = match word {
                "sync" | "1" => SyncMode::Sync,
                "dsync" => SyncMode::Dsync,
                _ => SyncMode::None,
            };
            Ok(())
        }),
        "none",
        "writes return when they are durable: O_SYNC or, without metadata, O_DSYNC",
    ),
    JobOption::new(
        "end_fsync",
        Takes::Bool(|d, on| d.spec.durability.end_fsync = on),
        "0",
        "fsync when a pass is done",
    ),
    JobOption::new(
        "fsync_on_close",
        Takes::Bool(|d, on| d.spec.durability.fsync_on_close = on),
        "0",
        "fsync when a file is closed",
    ),
    JobOption::new(
        "runtime",
        Takes::Time(Seconds, |d, t| d.spec.timing.runtime = (t > Nanos::ZERO).then_some(t)),
        "0",
        "end after this time; seconds without a unit, 0 for no limit",
    )
    .alias(&["timeout"]),
    JobOption::new(
        "time_based",
        Takes::Flag(|d, on| d.spec.timing.time_based = on),
        "0",
        "begin again until runtime is over",
    ),
    JobOption::new(
        "ramp_time",
        Takes::Time(Seconds, |d, t| d.spec.timing.ramp_time = t),
        "0",
        "run this long before counting begins, in addition to runtime",
    ),
    JobOption::new(
        "startdelay",
        Takes::TimeRange(Seconds, |d, range| d.spec.timing.start_delay = range),
        "0",
        "start this long after the run has begun; with a range, each process draws its own",
    ),
    JobOption::new(
        "loops",
        Takes::Count(0, U32_MAX, |d, n| d.spec.timing.loops = (n as u32).max(1)),
        "1",
        "passes over the workload",
    ),
    JobOption::new(
        "numjobs",
        Takes::Count(1, crate::workload::plan::PROCESSES_MAX, |d, n| d.spec.clones = n as u32),
        "1",
        "number of identical processes (clones)",
    ),
    JobOption::new("thread", Takes::Flag(ignore::flag), "0", "threads instead of processes")
        .no_effect("both are tasks with an I/O context of their own"),
    JobOption::new(
        "stonewall",
        Takes::Flag(|d, on| d.spec.timing.stonewall = on),
        "0",
        "start when all jobs before this one have ended; begins a reporting group",
    )
    .alias(&["wait_for_previous"]),
    JobOption::new(
        "wait_for",
        Takes::Text(|d, name| {
            d.spec.timing.wait_for = Some(name.to_owned());
            Ok(())
        }),
        "",
        "start when the job of that name, which stands before this one, has ended",
    ),
    JobOption::new(
        "exitall",
        Takes::Flag(|d, on| d.exit_all = on),
        "0",
        "when this job ends, others end too (exit_what)",
    ),
    JobOption::new(
        "exit_what",
        Takes::Word(&["group", "stonewall", "all"], |d, word| {
            d.exit_what = match word {
                "stonewall" => ExitWhat::Stonewall,
                "all" => ExitWhat::All,
                _ => ExitWhat::Group,
            };
            Ok(())
        }),
        "group",
        "the jobs that exitall ends: the job's group, all running jobs, or all",
    ),
];

fn set_engine(draft: &mut Draft, word: &str, _: Option<&str>) -> Result<(), Refusal> {
    if let Some((_, engine)) = Engine::NAMES.iter().find(|(name, _)| *name == word) {
        draft.spec.queueing.engine = *engine;
        draft.engine_left_out = false;
    }
    Ok(())
}

fn set_cgroup(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let expected = || format!("a name such as a, or a/b for one within a, of at most {NAME_BYTES_MAX} bytes");
    draft.spec.membership.cgroup = Some(cgroups::path(name).ok_or_else(|| Refusal::Expected(expected()))?);
    Ok(())
}
