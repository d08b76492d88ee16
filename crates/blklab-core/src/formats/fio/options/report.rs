//! Names, reporting, and options about the machine that runs fio.

use super::{JobOption, Refusal, Takes, U32_MAX, ignore, kb_base};
use crate::units::{Bytes, Nanos};
use crate::workload::machine;

const NO_DATA: &str = "data have no contents here";
const NO_LOG: &str = "results carry their own time series";
const NO_CLOCK: &str = "looking at the clock costs nothing";
const NO_NUMA: &str = "the modelled host has one node; cpus_allowed says which CPUs";

/// A row that is read and has no effect.
const fn unused(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    help: &'static str,
    why: &'static str,
) -> JobOption {
    JobOption::new(name, takes, default, help).no_effect(why)
}

const FLAG: Takes = Takes::Flag(ignore::flag);
const BOOL: Takes = Takes::Bool(ignore::flag);
const COUNT: Takes = Takes::Count(0, u64::MAX, ignore::count);
const PERCENT: Takes = Takes::Count(0, 100, ignore::count);
const TEXT: Takes = Takes::Text(ignore::word);

pub(super) const OPTIONS: &[JobOption] = &[
    JobOption::new(
        "name",
        Takes::Text(|d, text| {
            d.name = Some(text.to_owned());
            Ok(())
        }),
        "",
        "name of the job in results, in place of the section's",
    ),
    JobOption::new(
        "description",
        Takes::Text(|d, text| {
            d.spec.description = Some(text.to_owned());
            Ok(())
        }),
        "",
        "text about the job",
    ),
    JobOption::new(
        "kb_base",
        Takes::Word(&["1024", "1000"], |d, word| {
            d.kb_base = kb_base(word);
            Ok(())
        }),
        "1024",
        "whether k is 1024 and kib 1000, or the other way round",
    ),
    unused(
        "unit_base",
        Takes::Word(&["0", "1", "8"], ignore::word),
        "0",
        "results in bits or bytes",
        "results carry their units",
    ),
    JobOption::new(
        "group_reporting",
        Takes::Flag(|d, on| d.spec.reporting.group_reporting = on),
        "0",
        "report the jobs of a group as one",
    ),
    JobOption::new(
        "new_group",
        Takes::Flag(|d, on| d.new_group = on),
        "0",
        "a reporting group begins with this job",
    ),
    JobOption::new(
        "percentile_list",
        Takes::Percentages(20, |d, list| d.spec.reporting.percentiles = list),
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "percentiles to report",
    ),
    JobOption::new(
        "clat_percentiles",
        Takes::Bool(|d, on| d.spec.reporting.clat_percentiles = on),
        "1",
        "report percentiles of completion latency",
    ),
    JobOption::new(
        "lat_percentiles",
        Takes::Bool(|d, on| d.spec.reporting.lat_percentiles = on),
        "0",
        "report percentiles of total latency",
    ),
    JobOption::new(
        "slat_percentiles",
        Takes::Bool(|d, on| d.spec.reporting.slat_percentiles = on),
        "0",
        "report percentiles of submission latency",
    ),
    JobOption::new(
        "bwavgtime",
        Takes::Count(1, U32_MAX, |d, ms| d.spec.reporting.bw_average = Nanos::from_millis(ms)),
        "500",
        "width of a bandwidth sample in milliseconds",
    ),
    JobOption::new(
        "iopsavgtime",
        Takes::Count(1, U32_MAX, |d, ms| d.spec.reporting.iops_average = Nanos::from_millis(ms)),
        "500",
        "width of an IOPS sample in milliseconds",
    ),
    unused(
        "significant_figures",
        Takes::Count(1, 10, ignore::count),
        "4",
        "digits of printed figures",
        NO_LOG,
    ),
    unused("write_bw_log", Takes::AnyText, "", "write bandwidth over time to a file", NO_LOG),
    unused("write_lat_log", Takes::AnyText, "", "write latency over time to a file", NO_LOG),
    unused("write_iops_log", Takes::AnyText, "", "write IOPS over time to a file", NO_LOG),
    unused("write_hist_log", Takes::AnyText, "", "write latency histograms over time to a file", NO_LOG),
    unused("log_avg_msec", COUNT, "0", "average log entries over this time", NO_LOG),
    unused("log_hist_msec", COUNT, "0", "histograms in the log at this interval", NO_LOG),
    unused("log_hist_coarseness", COUNT, "0", "resolution of logged histograms", NO_LOG),
    unused("log_max_value", BOOL, "0", "log the largest value instead of the mean", NO_LOG),
    unused("log_offset", BOOL, "0", "log offsets", NO_LOG),
    unused("log_prio", BOOL, "0", "log priorities", NO_LOG),
    unused("log_entries", Takes::Count(1024, 1 << 20, ignore::count), "1024", "room in the log", NO_LOG),
    unused("log_compression", COUNT, "", "compress the log in parts of this size", NO_LOG),
    unused("log_compression_cpus", TEXT, "", "CPUs that compress the log", NO_LOG),
    unused("log_store_compressed", BOOL, "0", "store the log compressed", NO_LOG),
    unused("log_unix_epoch", BOOL, "0", "Unix time in logs", NO_LOG),
    unused("log_alternate_epoch", BOOL, "0", "another clock's time in logs", NO_LOG),
    unused("log_alternate_epoch_clock_id", COUNT, "0", "which other clock", NO_LOG),
    unused("per_job_logs", BOOL, "1", "one log file per process", NO_LOG),
    unused("disk_util", BOOL, "1", "report the disk's utilisation", "it is always reported"),
    unused("stats", BOOL, "1", "collect figures", "they are always collected"),
    unused("gtod_reduce", BOOL, "0", "look at the clock less often", NO_CLOCK),
    unused("disable_lat", BOOL, "0", "do not measure total latency", NO_CLOCK),
    unused("disable_clat", BOOL, "0", "do not measure completion latency", NO_CLOCK),
    unused("disable_slat", BOOL, "0", "do not measure submission latency", NO_CLOCK),
    unused("disable_bw_measurement", BOOL, "0", "do not sample bandwidth", NO_CLOCK).alias(&["disable_bw"]),
    unused("gtod_cpu", COUNT, "", "a CPU that only looks at the clock", NO_CLOCK),
    unused(
        "clocksource",
        Takes::Word(&["gettimeofday", "clock_gettime", "cpu"], ignore::word),
        "",
        "the clock for measurements",
        "time is virtual",
    ),
    unused("zero_buffers", FLAG, "0", "write zeroes", NO_DATA),
    unused("refill_buffers", FLAG, "0", "new data for each write", NO_DATA),
    unused("scramble_buffers", BOOL, "1", "slightly different data for each write", NO_DATA),
    unused("buffer_pattern", TEXT, "", "what to write", NO_DATA),
    unused("buffer_compress_percentage", PERCENT, "", "how compressible data are", NO_DATA),
    unused("buffer_compress_chunk", COUNT, "512", "grain of compressible data", NO_DATA),
    unused("dedupe_percentage", PERCENT, "", "how many buffers are alike", NO_DATA),
    unused(
        "dedupe_mode",
        Takes::Word(&["repeat", "working_set"], ignore::word),
        "repeat",
        "which buffers are alike",
        NO_DATA,
    ),
    unused("dedupe_working_set_percentage", PERCENT, "5", "size of the set of like buffers", NO_DATA),
    unused("dedupe_global", BOOL, "0", "share the set of like buffers", NO_DATA),
    unused(
        "mem",
        Takes::WordAnd(&["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"], ignore::word_and),
        "malloc",
        "source of the buffers",
        NO_DATA,
    )
    .alias(&["iomem"]),
    unused("iomem_align", COUNT, "0", "alignment of buffers", NO_DATA).alias(&["mem_align"]),
    unused("hugepage-size", COUNT, "2097152", "size of a huge page", NO_DATA),
    JobOption::new(
        "lockmem",
        Takes::Size(0, |d, bytes| d.spec.lock_memory = Bytes(bytes)),
        "0",
        "memory that each process pins; the page cache has less from the start of the run to its end",
    ),
    JobOption::new(
        "cpumask",
        Takes::Count(1, u64::MAX, |d, mask| d.spec.cpus = machine::cpu_mask(mask)),
        "",
        "CPUs to run on, as a bit mask",
    ),
    JobOption::new(
        "cpus_allowed",
        Takes::Text(|d, list| {
            let expected = || Refusal::Expected(format!("CPUs such as 0-3,5, up to {}", machine::CPU_MAX));
            d.spec.cpus = machine::cpu_list(list).ok_or_else(expected)?;
            Ok(())
        }),
        "",
        "CPUs to run on; each process stays on one of them",
    ),
    JobOption::new(
        "cpus_allowed_policy",
        Takes::Word(&["shared", "split"], |d, word| {
            d.spec.cpus_split = word == "split";
            Ok(())
        }),
        "shared",
        "whether clones take turns among those CPUs (split)",
    ),
    JobOption::new("numa_cpu_nodes", TEXT, "", "NUMA nodes to run on").real_only(NO_NUMA),
    JobOption::new("numa_mem_policy", TEXT, "", "NUMA nodes for memory").real_only(NO_NUMA),
    JobOption::new("nice", TEXT, "0", "CPU priority").real_only("CPUs serve processes in order of arrival"),
    unused("uid", COUNT, "", "user to run as", "there are no users"),
    unused("gid", COUNT, "", "group to run as", "there are no users"),
    JobOption::new(
        "unified_rw_reporting",
        Takes::Word(&["none", "mixed", "both", "0", "1", "2"], |_, word| match word {
            "none" | "0" => Ok(()),
            _ => Err(Refusal::NotSimulated("directions are reported on their own")),
        }),
        "none",
        "add up reads and writes",
    ),
    unused("exitall_on_error", FLAG, "0", "end all jobs when one fails", "no I/O fails"),
    unused("continue_on_error", TEXT, "none", "which errors to go on after", "no I/O fails"),
    unused("ignore_error", TEXT, "", "errors to ignore", "no I/O fails"),
    unused("error_dump", BOOL, "0", "show errors", "no I/O fails"),
    unused("write_hint", TEXT, "none", "expected life of what is written", "disk models take no hints"),
];
