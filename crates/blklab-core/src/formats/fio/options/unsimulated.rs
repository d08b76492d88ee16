//! Options of fio that the simulator lacks, with the reason or the alternative.

use super::{JobOption, Status, Takes};

/// A row that is refused.
const fn not(name: &'static str, help: &'static str, why: &'static str) -> JobOption {
    JobOption { status: Status::NotSimulated(why), ..JobOption::new(name, Takes::AnyText, "", help) }
}

const NO_DATA: &str = "data have no contents to verify";
const NO_REPLAY: &str = "a job file describes I/O, it does not replay it";
const NO_ZONES: &str = "zones are not modelled";
const NO_EXEC: &str = "no commands are run";
const NO_ADAPT: &str = "the depth is fixed; compare several depths instead";
const NO_STEADY: &str = "use ramp_time and runtime";
const NO_FLOW: &str = "jobs do not wait for each other; use rate or rate_iops";
const NO_MIN: &str = "no job is ended for being slow";

pub(super) const OPTIONS: &[JobOption] = &[
    not("ioscheduler", "scheduler of the device", "choose it with --scheduler"),
    not("verify", "verify what was written", NO_DATA),
    not("do_verify", "verify after writing", NO_DATA),
    not("verify_only", "only verify", NO_DATA),
    not("verify_interval", "bytes between verify headers", NO_DATA),
    not("verify_offset", "place of the verify header", NO_DATA),
    not("verify_pattern", "pattern to verify", NO_DATA),
    not("verify_fatal", "stop at the first mismatch", NO_DATA),
    not("verify_dump", "dump mismatches", NO_DATA),
    not("verify_async", "threads that verify", NO_DATA),
    not("verify_async_cpus", "CPUs that verify", NO_DATA),
    not("verify_backlog", "verify after so many writes", NO_DATA),
    not("verify_backlog_batch", "how many to verify then", NO_DATA),
    not("verify_state_load", "load the state of verification", NO_DATA),
    not("verify_state_save", "save the state of verification", NO_DATA),
    not("experimental_verify", "another way to verify", NO_DATA),
    not("trim_percentage", "verified blocks to trim", NO_DATA),
    not("trim_verify_zero", "verify that trimmed blocks are zero", NO_DATA),
    not("trim_backlog", "trim after so many writes", NO_DATA),
    not("trim_backlog_batch", "how many to trim then", NO_DATA),
    not("block_error_percentiles", "percentiles of trim errors", "no I/O fails"),
    not("write_iolog", "write I/O to a log", NO_REPLAY),
    not("read_iolog", "replay I/O from a log", NO_REPLAY),
    not("read_iolog_chunked", "read the log in parts", NO_REPLAY),
    not("replay_no_stall", "replay without pauses", NO_REPLAY),
    not("replay_redirect", "replay onto another device", NO_REPLAY),
    not("replay_scale", "scale replayed offsets", NO_REPLAY),
    not("replay_align", "align replayed offsets", NO_REPLAY),
    not("replay_time_scale", "scale replayed time", NO_REPLAY),
    not("replay_skip", "leave out kinds of I/O", NO_REPLAY),
    not("merge_blktrace_file", "merge traces", NO_REPLAY),
    not("merge_blktrace_scalars", "scale merged traces", NO_REPLAY),
    not("merge_blktrace_iters", "repeat merged traces", NO_REPLAY),
    not("zonesize", "size of a zone", NO_ZONES),
    not("zonecapacity", "capacity of a zone", NO_ZONES),
    not("zonerange", "range of a zone", NO_ZONES),
    not("zoneskip", "room between zones", NO_ZONES),
    not("read_beyond_wp", "read behind the write pointer", NO_ZONES),
    not("max_open_zones", "zones open at a time", NO_ZONES),
    not("job_max_open_zones", "zones open per process", NO_ZONES),
    not("ignore_zone_limits", "ignore the device's limits", NO_ZONES),
    not("zone_reset_threshold", "when to reset zones", NO_ZONES),
    not("zone_reset_frequency", "how often to reset zones", NO_ZONES),
    not("exec_postrun", "command after the job", NO_EXEC),
    not("latency_target", "find the depth that keeps this latency", NO_ADAPT),
    not("latency_window", "how long to try a depth", NO_ADAPT),
    not("latency_percentile", "share of I/Os below latency_target", NO_ADAPT),
    not("latency_run", "keep adapting the depth", NO_ADAPT),
    not("max_latency", "end the job at a higher latency", NO_MIN),
    not("rate_min", "end the job below this rate", NO_MIN).alias(&["ratemin"]),
    not("rate_iops_min", "end the job below this rate", NO_MIN),
    not("rate_cycle", "window of rate_min", NO_MIN).alias(&["ratecycle"]),
    not("steadystate", "end when figures are steady", NO_STEADY).alias(&["ss"]),
    not("steadystate_duration", "window of steadystate", NO_STEADY).alias(&["ss_dur"]),
    not("steadystate_ramp_time", "start of steadystate", NO_STEADY).alias(&["ss_ramp"]),
    not("flow", "weight of the job in a flow", NO_FLOW),
    not("flow_id", "number of the flow", NO_FLOW),
    not("flow_sleep", "pause of a job that is ahead", NO_FLOW),
    not("sync_file_range", "sync_file_range(2) after so many writes", "use fsync or fdatasync"),
    not("write_barrier", "every Nth write is a barrier", "Linux has no barrier writes since 2.6.37"),
    not("atomic", "atomic direct writes", "disk models have no atomic writes"),
    not("file_append", "write behind the end of the file", "give offset= and size= instead"),
    not("fill_device", "write until the disk is full", "give size=100% of a /dev/ file instead")
        .alias(&["fill_fs"]),
    not("opendir", "use all files below a directory", "name them with filename="),
    not("pre_read", "read files into the page cache first", "let a job before this one read them"),
    not("create_only", "only lay out files", "there would be no I/O"),
    not("serialize_overlap", "wait for I/O to the same blocks", "overlapping I/O may be under way at once"),
    not("io_submit_mode", "submit from other threads", "processes submit their own I/O"),
    not("profile", "a built-in job", "write it as a job file"),
    not("cmdprio_bssplit", "priorities by block size", "use cmdprio_percentage, or a job per priority"),
    not("hipri_percentage", "share of polled I/O", "completion has one CPU cost"),
    not("uncached", "drop pages behind buffered I/O", "use direct=1"),
    not("nowait", "fail rather than wait", "no I/O fails"),
    not("force_async", "let every Nth request be asynchronous", "submission has one CPU cost"),
    not("sqthread_poll_cpu", "CPU of the submitting thread", "processes have a CPU each"),
    not("cmd_type", "type of passthrough command", "commands go through the block layer"),
];
