//! Files: names, number, sizes, offsets.

use super::{Draft, JobOption, Refusal, Takes, ignore};
use crate::units::Bytes;
use crate::workload::spec::{AdviceHint, Extent, FileService};

/// The file that the command must write to.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

const HOST_FILES: &str = "files exist, with their full size, before the run";

pub(super) const OPTIONS: &[JobOption] = &[
    JobOption::new(
        "filename",
        Takes::Text(|d, text| {
            d.spec.files.names = split_names(text);
            Ok(())
        }),
        "",
        "files to use, separated by colons (\\: for a colon); /dev/... is the modelled disk itself",
    ),
    JobOption::new(
        "directory",
        Takes::Text(|d, text| {
            d.spec.files.directories = split_names(text);
            Ok(())
        }),
        "",
        "prefix of file names; with several, separated by colons, clones take turns",
    ),
    JobOption::new(
        "filename_format",
        Takes::Text(|d, text| {
            d.spec.files.name_format = text.to_owned();
            Ok(())
        }),
        "$jobname.$jobnum.$filenum",
        "names of files that filename does not name",
    ),
    JobOption::new(
        "unique_filename",
        Takes::Bool(ignore::flag),
        "1",
        "put the client's address into generated names",
    )
    .no_effect("there are no network clients"),
    JobOption::new(
        "nrfiles",
        Takes::Count(1, crate::workload::plan::FILES_MAX, |d, n| d.spec.files.count = n as u32),
        "1",
        "files per process; size is split over them",
    )
    .alias(&["nr_files"]),
    JobOption::new("openfiles", Takes::Count(0, u64::MAX, ignore::count), "", "files to keep open at a time")
        .no_effect("opening a file costs nothing"),
    JobOption::new(
        "file_service_type",
        Takes::WordAnd(
            &["roundrobin", "random", "sequential", "zipf", "pareto", "normal", "gauss"],
            set_service,
        ),
        "roundrobin",
        "which file the next I/O goes to; roundrobin:N, random:N stay for N I/Os",
    ),
    JobOption::new(
        "size",
        Takes::Extent(|d, extent| d.spec.files.size = given(extent)),
        "",
        "bytes of I/O per process and the room for them, or percent of the file or disk",
    ),
    JobOption::new(
        "io_size",
        Takes::Extent(|d, extent| d.spec.files.io_size = given(extent)),
        "",
        "bytes of I/O in all within the room that size gives, or percent of size",
    )
    .alias(&["io_limit"]),
    JobOption::new(
        "filesize",
        Takes::SizeRange(1, |d, (low, high)| d.spec.files.file_size = Some((Bytes(low), Bytes(high)))),
        "",
        "size of each file; with a range, each file draws its own",
    ),
    JobOption::new(
        "offset",
        Takes::Extent(|d, extent| d.spec.files.offset = extent),
        "0",
        "start of I/O in the file",
    )
    .alias(&["fileoffset"]),
    JobOption::new(
        "offset_increment",
        Takes::Extent(|d, extent| d.spec.files.offset_increment = extent),
        "0",
        "added to offset once for each clone of the job",
    ),
    JobOption::new(
        "offset_align",
        Takes::Size(0, |d, bytes| d.spec.files.offset_align = (bytes > 0).then_some(Bytes(bytes))),
        "0",
        "alignment of an offset in percent, which is rounded up; 0 for the smallest block size",
    ),
    JobOption::new(
        "invalidate",
        Takes::Bool(|d, on| d.spec.invalidate = on),
        "1",
        "drop the files from the page cache before each pass",
    ),
    JobOption::new(
        "fallocate",
        Takes::Word(&["none", "native", "posix", "keep", "truncate", "0", "1"], ignore::word),
        "native",
        "how space for a new file is allocated",
    )
    .no_effect(HOST_FILES),
    JobOption::new(
        "fadvise_hint",
        Takes::Word(&["0", "1", "random", "sequential"], |d, word| {
            d.spec.advice = match word {
                "0" => AdviceHint::Off,
                "random" => AdviceHint::Random,
                "sequential" => AdviceHint::Sequential,
                _ => AdviceHint::AsRw,
            };
            Ok(())
        }),
        "1",
        "hint for the kernel about the order of buffered reads; 1: from rw",
    ),
    JobOption::new(
        "exec_prerun",
        Takes::Text(|d, text| {
            if !text.contains(DROP_CACHES) {
                return Err(Refusal::NotSimulated("of all commands only dropping the page cache is"));
            }
            d.spec.drop_caches = true;
            Ok(())
        }),
        "",
        "command before the job: echo 3 > /proc/sys/vm/drop_caches",
    ),
    JobOption::new("create_serialize", Takes::Bool(ignore::flag), "1", "create files one after another")
        .no_effect(HOST_FILES),
    JobOption::new("create_fsync", Takes::Bool(ignore::flag), "1", "fsync files when they are created")
        .no_effect(HOST_FILES),
    JobOption::new("create_on_open", Takes::Bool(ignore::flag), "0", "create files when they are opened")
        .no_effect(HOST_FILES),
    JobOption::new("allow_file_create", Takes::Bool(ignore::flag), "1", "let the job create files")
        .no_effect(HOST_FILES),
    JobOption::new("overwrite", Takes::Bool(ignore::flag), "0", "lay files out before they are written")
        .no_effect(HOST_FILES),
    JobOption::new(
        "allow_mounted_write",
        Takes::Bool(ignore::flag),
        "0",
        "let the job write to a mounted device",
    )
    .no_effect("nothing real is written"),
    JobOption::new("unlink", Takes::Bool(ignore::flag), "0", "delete the files when the job is done")
        .no_effect("files end with the run"),
    JobOption::new("unlink_each_loop", Takes::Bool(ignore::flag), "0", "delete the files after each pass")
        .no_effect(HOST_FILES),
    JobOption::new(
        "lockfile",
        Takes::Text(|_, text| match text {
            "none" => Ok(()),
            _ => Err(Refusal::NotSimulated("no file locks")),
        }),
        "none",
        "lock files while using them",
    ),
    JobOption::new(
        "zonemode",
        Takes::Word(&["none", "strided", "zbd"], |_, word| match word {
            "none" => Ok(()),
            _ => Err(Refusal::NotSimulated("zones are not modelled")),
        }),
        "none",
        "zones of a zoned block device",
    ),
];

/// As in fio, a size of 0 or 0% counts as not given.
fn given(extent: Extent) -> Option<Extent> {
    match extent {
        Extent::Bytes(Bytes(0)) | Extent::Percent(0) => None,
        extent => Some(extent),
    }
}

/// Names with colons between them; a backslash escapes a colon.
fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = names.len() - 1;
        match c {
            '\\' if chars.peek() == Some(&':') => names[last].extend(chars.next()),
            ':' => names.push(String::new()),
            c => names[last].push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn set_service(draft: &mut Draft, word: &str, more: Option<&str>) -> Result<(), Refusal> {
    let expected = |what: &str| Refusal::Expected(what.to_owned());
    let parameter = |default: f64| match more {
        None => Some(default),
        Some(text) => text.parse::<f64>().ok().filter(|v| v.is_finite()),
    };
    let files = &mut draft.spec.files;
    files.ios_per_file = 1;
    files.service = match word {
        "zipf" => FileService::Zipf(
            parameter(1.1)
                .filter(|t| *t > 0.0 && *t != 1.0)
                .ok_or_else(|| expected("zipf:THETA, THETA above 0 and not 1"))?,
        ),
        "pareto" => FileService::Pareto(
            parameter(0.2)
                .filter(|h| *h > 0.0 && *h < 1.0)
                .ok_or_else(|| expected("pareto:H, H between 0 and 1"))?,
        ),
        "normal" | "gauss" => FileService::Normal(
            parameter(0.0)
                .filter(|d| (0.0..100.0).contains(d))
                .ok_or_else(|| expected("normal:DEV, DEV 0 to below 100"))?,
        ),
        word => {
            if let Some(more) = more {
                files.ios_per_file = more
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| expected("a whole number of I/Os behind the colon, at least 1"))?;
            }
            match word {
                "random" => FileService::Random,
                "sequential" => FileService::Sequential,
                _ => FileService::RoundRobin,
            }
        }
    };
    Ok(())
}
