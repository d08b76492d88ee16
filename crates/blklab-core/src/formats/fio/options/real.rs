//! The options that real fio gets on a real disk: an allow-list, with the reason for each option.
//!
//! A job file may come from an untrusted source, and fio runs it with the rights of the user. So an
//! option reaches fio only if a row here allows it, and no row allows a value that names a file, a
//! device, a host or a program. The rig chooses the files; [`crate::formats::fio::writer`] writes
//! their names. An option without a row is refused.
//!
//! This list is the first protection. The second is a sandbox around fio itself (the program
//! `blklab-confine`), because a list can be wrong.

/// How an option is treated on a real disk, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handing {
    /// fio gets it unchanged; why it is harmless.
    Handed(&'static str),
    /// The rig reads it and writes other options for fio; which.
    Rewritten(&'static str),
    /// fio does not get it, and the result says so; why it is not needed.
    LeftOut(&'static str),
    /// The job does not run; why.
    Refused(&'static str),
}

use Handing::{Handed, LeftOut, Refused, Rewritten};

const UNKNOWN: Handing = Refused("it is not known what it would do to this machine");
const NAMES_A_FILE: Handing = Refused("it names a file");

const ROWS: &[(Handing, &[&str])] = &[
    (
        Handed("numbers and words that say which blocks, of the files that the rig laid out"),
        &[
            "rw",
            "rw_sequencer",
            "bs",
            "bsrange",
            "bssplit",
            "bs_unaligned",
            "bs_is_seq_rand",
            "ba",
            "rwmixread",
            "rwmixwrite",
            "percentage_random",
            "random_distribution",
            "norandommap",
            "softrandommap",
            "random_generator",
            "randseed",
            "randrepeat",
            "allrandrepeat",
            "number_ios",
            "size",
            "io_size",
            "filesize",
            "offset",
            "offset_align",
            "openfiles",
            "file_service_type",
        ],
    ),
    (
        Handed("how the same blocks are asked for"),
        &[
            "ioengine",
            "direct",
            "buffered",
            "iodepth",
            "iodepth_batch",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "hipri",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "nonvectored",
            "userspace_reap",
            "fadvise_hint",
            "invalidate",
            "thread",
            "write_hint",
        ],
    ),
    (
        Handed("I/O priorities of fio's own processes"),
        &["cmdprio_percentage", "cmdprio_class", "cmdprio", "prioclass", "prio"],
    ),
    (
        Handed("when fio's own processes begin, pause and end"),
        &[
            "thinktime",
            "thinktime_spin",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "rate",
            "rate_iops",
            "rate_process",
            "rate_ignore_thinktime",
            "runtime",
            "time_based",
            "ramp_time",
            "loops",
            "stonewall",
            "wait_for",
            "exitall",
            "exit_what",
            "exitall_on_error",
            "continue_on_error",
            "ignore_error",
            "error_dump",
        ],
    ),
    (
        Handed("when what was written is made durable"),
        &["fsync", "fdatasync", "sync", "end_fsync", "fsync_on_close"],
    ),
    (
        Handed("on which CPUs and how eagerly fio's own processes run"),
        &["cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes", "numa_mem_policy", "nice"],
    ),
    (
        Handed("memory of fio's own processes; values that name a file are refused"),
        &["mem", "iomem_align", "hugepage-size", "lockmem"],
    ),
    (
        Handed("what is written into the files; values that name a file are refused"),
        &[
            "zero_buffers",
            "refill_buffers",
            "scramble_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_working_set_percentage",
            "dedupe_global",
        ],
    ),
    (
        Handed("how figures are reported, to the rig alone"),
        &[
            "description",
            "kb_base",
            "new_group",
            "percentile_list",
            "lat_percentiles",
            "slat_percentiles",
            "bwavgtime",
            "iopsavgtime",
            "clocksource",
        ],
    ),
    (
        Rewritten("fio gets the rig's own files"),
        &["filename", "directory", "filename_format", "unique_filename", "nrfiles", "offset_increment"],
    ),
    (
        Rewritten("each process is a section of its own"),
        &["name", "numjobs", "startdelay", "group_reporting"],
    ),
    (
        Rewritten("a cgroup inside the run's own, which goes with the run"),
        &["cgroup", "cgroup_weight", "cgroup_nodelete"],
    ),
    (
        LeftOut("results carry their own time series"),
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_max_value",
            "log_offset",
            "log_prio",
            "log_entries",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "per_job_logs",
        ],
    ),
    (LeftOut("results carry their own units and digits"), &["unit_base", "significant_figures"]),
    (
        LeftOut("the result needs every latency"),
        &[
            "clat_percentiles",
            "stats",
            "gtod_reduce",
            "gtod_cpu",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "unified_rw_reporting",
        ],
    ),
    (LeftOut("the rig reads the disk's counters itself"), &["disk_util"]),
    (
        LeftOut("the rig lays the files out before the run and removes them after it"),
        &[
            "fallocate",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "overwrite",
            "unlink",
            "unlink_each_loop",
            "lockfile",
        ],
    ),
    (LeftOut("whether a device may be written to is asked by --write-device"), &["allow_mounted_write"]),
    (LeftOut("no command is run; the rig empties the page cache before each run"), &["exec_prerun"]),
    (LeftOut("no zones are used"), &["zonemode"]),
    (
        LeftOut("fio uses it with profile= only"),
        &[
            "device-names",
            "load",
            "test-duration",
            "threads-per-queue",
            "read-req-num-512-blocks",
            "large-block-op-kbytes",
            "prep",
            "block",
            "numruns",
            "dir",
            "threads",
        ],
    ),
    (
        Refused("fio runs as the user that blklab runs as, and could not open its files as another"),
        &["uid", "gid"],
    ),
];

/// The treatment of the option `name`, not an alias, with this value (empty for none).
pub fn handing(name: &str, value: &str) -> Handing {
    let row = ROWS.iter().find(|(_, names)| names.contains(&name)).map_or(UNKNOWN, |(handing, _)| *handing);
    match name {
        // `mmap:FILE` maps a file, creates it if needed, and truncates it.
        "mem" if value.contains(':') => NAMES_A_FILE,
        "mem" if value == "mmaphuge" => Refused("it needs the name of a file"),
        // A value in single quotes is the name of a file with the pattern.
        "buffer_pattern" if value.contains('\'') => NAMES_A_FILE,
        _ => row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fio::options::{self, Status};

    #[test]
    fn every_option_that_is_accepted_has_one_row_and_no_row_is_left_over() {
        for option in options::all() {
            let rows = ROWS.iter().filter(|(_, names)| names.contains(&option.name)).count();
            let accepted = !matches!(option.status, Status::NotSimulated(_) | Status::OtherEngine(_));
            assert_eq!(rows, usize::from(accepted), "{}", option.name);
        }
        for name in ROWS.iter().flat_map(|(_, names)| *names) {
            assert_eq!(options::find(name).map(|option| option.name), Some(*name), "{name} is no option");
        }
    }

    #[test]
    fn values_that_name_files_and_unknown_options_are_refused() {
        for (name, value) in
            [("mem", "mmap:/etc/passwd"), ("mem", "mmaphuge"), ("buffer_pattern", "0xff'/etc/passwd'")]
        {
            assert!(matches!(handing(name, value), Refused(_)), "{name}={value}");
        }
        assert!(matches!(handing("mem", "shm"), Handed(_)));
        assert!(matches!(handing("buffer_pattern", "0xff\"ab\"-7"), Handed(_)));
        assert_eq!(handing("exec_postrun", "touch /x"), UNKNOWN);
    }
}
