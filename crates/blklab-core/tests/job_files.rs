//! The meaning of job files, and their refusals.

mod support;

use std::collections::BTreeMap;

use blklab_core::formats::fio::jobfile::{self, ParseOptions};
use blklab_core::formats::fio::options;
use blklab_core::request::{IoPrio, PrioClass};
use blklab_core::units::{Bytes, Nanos};
use blklab_core::workload::plan::{self, FileKind};
use blklab_core::workload::spec::{BlockSizes, Direction, JobFile, RateLimit};
use proptest::prelude::*;
use support::{Machine, parse};

fn refusal(text: &str) -> String {
    parse(text).map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn an_error_names_file_line_option_and_the_nearest_right_word() {
    for (text, expected) in [
        ("[a]\niodepht=4\n", "JOB.fio:2: there is no option 'iodepht'; did you mean 'iodepth'?"),
        (
            "[a]\nsize=1m\n\nrw=randraed\n",
            "JOB.fio:4: option 'rw': found 'randraed', expected one of read, write, trim, randread, randwrite, randtrim, \
             rw, readwrite, randrw, trimwrite, randtrimwrite; did you mean 'randread'?",
        ),
        ("[a]\niodepth=0\n", "JOB.fio:2: option 'iodepth': found '0', expected a whole number, 1 to 1048576"),
        (
            "[a]\nverify=md5\n",
            "JOB.fio:2: option 'verify' is not simulated (data have no contents to verify); \
             --ignore-unsupported runs without it",
        ),
        (
            "[a]\nioscheduler=bfq\n",
            "JOB.fio:2: option 'ioscheduler' is not simulated (choose it with --scheduler); \
             --ignore-unsupported runs without it",
        ),
        (
            "[a]\nhipri\n",
            "JOB.fio:2: option 'hipri' belongs to ioengine=io_uring or pvsync2; this job has ioengine=psync",
        ),
        (
            "[a]\ncpuload=50\n",
            "JOB.fio:2: option 'cpuload' is not simulated (it belongs to ioengine=cpuio); \
             --ignore-unsupported runs without it",
        ),
        (
            "[a]\nioengine=libiao\n",
            "JOB.fio:2: option 'ioengine': found 'libiao', expected one of sync, psync, vsync, pvsync, pvsync2, \
             libaio, io_uring, posixaio; did you mean 'libaio'?",
        ),
        (
            "[a]\nioengine=mmap\n",
            "JOB.fio:2: option 'ioengine': 'mmap' is not simulated (simulated are sync, psync, vsync, pvsync, \
             pvsync2, libaio, io_uring, posixaio); --ignore-unsupported runs without it",
        ),
        (
            "[a]\nsize=9223372036854775808\n",
            "JOB.fio:2: option 'size': found '9223372036854775808', expected bytes such as 1g, below 8 EiB, \
             or 0% to 100%",
        ),
        ("bs=4k\n", "JOB.fio:1: option 'bs' stands outside of a [section]"),
        ("[a\n", "JOB.fio:1: found '[a', expected a section name in brackets, such as [job1]"),
        ("[global]\nbs=4k\n", "JOB.fio:2: the file holds no job: expected a [section] other than [global]"),
        (
            "[a]\nbs=${HOME\n",
            "JOB.fio:2: found '${HOME', expected ${NAME} with an environment variable that is set",
        ),
        (
            "[a]\nsize=1m\nrate=1m\nrate_iops=10\n",
            "JOB.fio:1: job 'a': rate and rate_iops exclude each other",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn options_that_are_not_simulated_can_be_collected_and_omitted() {
    let text = "[a]\nsize=1m\nverify=md5\nioengine=mmap\nzero_buffers\n";
    let options = ParseOptions { ignore_unsupported: true, ..ParseOptions::default() };
    let file =
        jobfile::parse(text, "JOB.fio", &mut Machine::default(), options).expect("it runs without them");
    let ignored: Vec<_> = file.ignored.iter().map(|idle| (idle.line, idle.name.as_str())).collect();
    assert_eq!(ignored, [(4, "ioengine"), (3, "verify")]);
    assert_eq!(file.without_effect.len(), 1);
    assert_eq!(file.jobs[0].given, [("size", "1m"), ("zero_buffers", "")].map(|(n, v)| (n.into(), v.into())));
}

#[test]
fn with_an_engine_that_is_not_simulated_its_options_are_left_out_too() {
    let ignored = |text: &str| {
        let options = ParseOptions { ignore_unsupported: true, ..ParseOptions::default() };
        let file = jobfile::parse(text, "JOB.fio", &mut Machine::default(), options);
        let left_out = |file: JobFile| file.ignored.into_iter().map(|idle| idle.name).collect();
        file.map(left_out).unwrap_or_else(|error| vec![error.to_string()])
    };
    let uring_cmd = "[a]\nsize=1m\nioengine=io_uring_cmd\nfixedbufs\ncmd_type=nvme\n";
    assert_eq!(ignored(uring_cmd), ["ioengine", "fixedbufs", "cmd_type"]);
    assert_eq!(ignored("[a]\nsize=1m\nioengine=cpuio\ncpuload=50\n"), ["ioengine", "cpuload"]);
    let globally = "[global]\nioengine=sg\n[a]\nsize=1m\nhipri\nreadfua=1\n";
    assert_eq!(ignored(globally), ["ioengine", "hipri", "readfua"]);
    let replaced = "[global]\nioengine=sg\n[a]\nsize=1m\nioengine=psync\nhipri\n";
    assert!(
        ignored(replaced)[0].contains("belongs to ioengine=io_uring or pvsync2"),
        "{:?}",
        ignored(replaced)
    );
}

#[test]
fn options_of_fios_profiles_are_read_and_change_nothing() {
    let file = parse("[a]\nsize=1m\nnumjobs=2\nthreads=8\n").expect("fio takes it too");
    let [idle] = file.without_effect.as_slice() else { panic!("{:?}", file.without_effect) };
    assert_eq!((idle.line, idle.name.as_str()), (4, "threads"));
    assert!(idle.why.ends_with("threads in place of processes are thread=1"), "{}", idle.why);
    assert_eq!(file.jobs[0].clones, 2);
}

#[test]
fn no_option_is_in_the_table_twice() {
    let names = || options::all().flat_map(|option| option.aliases.iter().chain([&option.name]));
    let unique: std::collections::BTreeSet<_> = names().collect();
    assert_eq!(unique.len(), names().count());
}

#[test]
fn global_sections_apply_to_the_sections_after_them() {
    let file = parse("[a]\nsize=1m\n[global]\nbs=8k\nsize=2m\n[b]\n[global]\nbs=16k\n[c]\nsize=4m\n[d]\n")
        .expect("a right file");
    let blocks: Vec<_> = file.jobs.iter().map(|job| job.access.block_sizes.read.clone()).collect();
    assert_eq!(blocks, [4096, 8192, 16384, 16384].map(BlockSizes::Fixed));
    assert_eq!(file.jobs[2].given, [("bs", "16k"), ("size", "4m")].map(|(n, v)| (n.into(), v.into())));
}

#[test]
fn includes_bring_options_from_beside_the_file_and_never_loop() {
    let mut machine = Machine::default();
    machine.files.insert("dir/common.inc".into(), "bs=64k\ninclude deeper.inc\n".into());
    machine.files.insert("dir/deeper.inc".into(), "rw=randwrite\n".into());
    machine.files.insert("dir/loop.inc".into(), "include loop.inc\n".into());
    machine.files.insert("dir/section.inc".into(), "[b]\n".into());
    let mut read = |text: &str| jobfile::parse(text, "dir/JOB.fio", &mut machine, ParseOptions::default());
    let file = read("[a]\nsize=1m\ninclude common.inc\n").expect("a right file");
    assert_eq!(file.jobs[0].access.block_sizes.write, BlockSizes::Fixed(65536));
    assert!(file.jobs[0].access.rw.writes());
    let error = |result: Result<_, blklab_core::workload::error::JobError>| {
        result.map(|_: JobFile| String::new()).unwrap_or_else(|e| e.to_string())
    };
    assert_eq!(
        error(read("[a]\ninclude loop.inc\n")),
        "dir/loop.inc:1: cannot include 'loop.inc': it includes itself"
    );
    assert_eq!(
        error(read("[a]\ninclude section.inc\n")),
        "dir/section.inc:1: found [b], but an included file can hold options only"
    );
    assert_eq!(error(read("[a]\ninclude x.inc\n")), "dir/JOB.fio:2: cannot include 'x.inc': no such file");
}

#[test]
fn variables_and_keywords_become_text_and_numbers() {
    let variables = BTreeMap::from([("SIZE".to_owned(), "64m".to_owned())]);
    let mut machine = Machine { variables, ..Machine::default() };
    let text = "[a]\nsize=${SIZE}\nbs=$pagesize\nnumjobs=2*$ncpus\nio_size=8*$mb_memory\n";
    let file = jobfile::parse(text, "JOB.fio", &mut machine, ParseOptions::default()).expect("a right file");
    let plan = plan::plan(&file, Bytes(1 << 40), 0).expect("it fits");
    assert_eq!(plan.processes.len(), 8);
    assert_eq!(plan.processes[0].pass_bytes, 64 << 20);
    assert_eq!(plan.processes[0].io_bytes, Some(8 * 1024));
}

#[test]
fn every_default_in_the_table_equals_the_options_own_default() {
    let plain = parse("[a]\nsize=1m\n").expect("a right file");
    for option in options::all() {
        if option.default.is_empty() || !matches!(option.status, options::Status::Simulated) {
            continue;
        }
        let engine = match option.engines.first() {
            Some(engine) => format!("ioengine={}\n", engine.name()),
            None => String::new(),
        };
        let text = format!("[a]\nsize=1m\n{engine}{}={}\n", option.name, option.default);
        let file = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", option.name));
        let mut job = (*file.jobs[0]).clone();
        job.given.clone_from(&plain.jobs[0].given);
        job.queueing.engine = plain.jobs[0].queueing.engine;
        assert_eq!(job, *plain.jobs[0], "{}={}", option.name, option.default);
    }
}

#[test]
fn groups_begin_at_stonewalls_and_new_groups_only() {
    let text = "[a]\nsize=1m\nstonewall\n[b]\nsize=1m\nnumjobs=3\n[c]\nsize=1m\nstonewall\nnumjobs=2\n[d]\nsize=1m\n\
                [e]\nsize=1m\nnew_group\n";
    let plan = support::plan(text);
    let groups: Vec<_> = plan.processes.iter().map(|p| p.job.group).collect();
    assert_eq!(groups, [0, 0, 0, 0, 1, 1, 1, 2]);
    let barriers: Vec<_> = plan.processes.iter().map(|p| p.start.barrier).collect();
    assert_eq!(barriers, [0, 0, 0, 0, 4, 4, 4, 4]);
}

#[test]
fn a_plan_knows_by_when_it_ends_if_every_job_has_a_runtime() {
    let ends_s = |text: &str| support::plan(text).ends_by().map(|end| end.as_secs_f64());
    assert_eq!(ends_s("[a]\nsize=1m\nruntime=10\n[b]\nsize=1m\nruntime=4\nstartdelay=8\n"), Some(12.0));
    let after = "[a]\nsize=1m\nruntime=10\nramp_time=1\n[b]\nsize=1m\nruntime=4\nstonewall\nnumjobs=3\n";
    assert_eq!(ends_s(after), Some(15.0));
    assert_eq!(ends_s(&format!("{after}[c]\nsize=1m\nruntime=2\nwait_for=b\n")), Some(17.0));
    assert_eq!(ends_s("[a]\nsize=1m\nruntime=10\n[b]\nsize=1m\n"), None);
}

#[test]
fn clones_have_files_of_their_own_unless_they_are_named() {
    let plan = support::plan("[a]\nsize=8m\nnumjobs=2\nnrfiles=2\n[b]\nfilename=x:y\nsize=8m\nnumjobs=2\n");
    let paths: Vec<_> = plan.files.iter().map(|f| (f.path.as_str(), f.size.0 >> 20)).collect();
    assert_eq!(paths, [("a.0.0", 4), ("a.0.1", 4), ("a.1.0", 4), ("a.1.1", 4), ("x", 4), ("y", 4)]);
    assert_eq!(plan.processes[2].regions, plan.processes[3].regions);
}

#[test]
fn offsets_and_sizes_in_percent_are_of_the_whole_disk() {
    let text = "[a]\nfilename=/dev/sda\nsize=10%\noffset=50%\noffset_increment=10%\nnumjobs=2\nbs=1m\n";
    let file = parse(text).expect("a right file");
    let plan = plan::plan(&file, Bytes(1000 << 20), 0).expect("it fits");
    assert_eq!(plan.files[0].kind, FileKind::Device);
    let regions: Vec<_> =
        plan.processes.iter().map(|p| (p.regions[0].start >> 20, p.regions[0].length >> 20)).collect();
    assert_eq!(regions, [(500, 100), (600, 100)]);
}

#[test]
fn a_job_without_a_size_or_with_more_than_the_disk_is_refused_at_its_section() {
    let on_disk = |text: &str| {
        let file = parse(text).expect("a right file");
        plan::plan(&file, Bytes(1 << 30), 0).map(|_| String::new()).unwrap_or_else(|e| e.to_string())
    };
    assert!(on_disk("[a]\nrw=read\n").starts_with("JOB.fio:1: job 'a': no size: give size="));
    assert_eq!(
        on_disk("[a]\nsize=600m\n[b]\nsize=600m\n"),
        "JOB.fio:3: job 'b': the files need 1258291200 bytes, the disk has 1073741824"
    );
    assert!(on_disk("[a]\nfilename=/dev/sda\noffset=2g\n").contains("lies behind"));
    assert!(on_disk("[a]\nsize=1m\nwait_for=b\n").contains("no job before it has that name"));
}

#[test]
fn options_that_depend_on_each_other_are_settled_as_in_fio() {
    let job = |text: &str| parse(&format!("[a]\nsize=1m\n{text}")).expect("a right file").jobs[0].clone();
    let queueing =
        job("iodepth=8\niodepth_batch=0\niodepth_low=99\niodepth_batch_complete_max=99\n").queueing;
    assert_eq!((queueing.batch_submit, queueing.low, queueing.batch_complete_max), (8, 8, 8));
    assert_eq!(queueing.depth(), 1, "psync has one I/O under way");
    assert_eq!(job("prio=3\n").priorities.base, IoPrio { class: PrioClass::BestEffort, level: 3 });
    assert!(!job("rw=randread\nba=512\n").access.random_map);
    assert!(!job("rw=randread\nrandom_distribution=zipf\n").access.random_map);
    assert!(job("rw=randread\nnorandommap\nrandom_generator=lfsr\n").access.random_map);
    assert!(!job("time_based\n").timing.time_based, "not without runtime");
    let think = job("thinktime=1s\nthinktime_iotime=9s\n").think;
    assert_eq!((think.blocks, think.io_time), (0, Nanos::from_secs(9)));
    let limits = job("rate_iops=,500\n").rate.limit;
    assert_eq!(limits[Direction::Read], RateLimit::Unlimited);
    assert_eq!(limits[Direction::Write], RateLimit::IosPerSecond(500));
}

/// The words of job files.
fn tokens() -> Vec<String> {
    let mut words: Vec<String> = options::all().map(|option| option.name.to_owned()).collect();
    words.extend(
        options::all().filter(|o| !o.default.is_empty()).map(|o| format!("{}={}", o.name, o.default)),
    );
    words.extend(
        "[a] [global] [ ] \n = : , / - % ${ } ${X} $ncpus * ( ) # ; include 4k 0 1 99999999999999999999 zipf randrw 10% libaio"
            .split(' ')
            .map(str::to_owned),
    );
    words.extend(["\n".to_owned(), "\n[x]\nsize=1m\n".to_owned(), " ".to_owned()]);
    words
}

fn judge(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Err(error) => {
            prop_assert_eq!(&error.path, "JOB.fio");
            prop_assert!(error.line >= 1 && error.line as usize <= text.split('\n').count());
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
        Ok(file) => match plan::plan(&file, Bytes(1 << 40), 1) {
            Err(error) => prop_assert!(error.line >= 1),
            Ok(plan) => {
                for process in &plan.processes {
                    prop_assert!(process.pass_bytes > 0 && !process.regions.is_empty());
                    for region in &process.regions {
                        let file = &plan.files[region.file as usize];
                        prop_assert!(region.length > 0 && region.start + region.length <= file.size.0);
                    }
                }
            }
        },
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_at_a_line(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        judge(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_soup_of_tokens_is_read_or_refused_at_a_line(
        soup in prop::collection::vec(prop::sample::select(tokens()), 0..40)
    ) {
        judge(&format!("[a]\nsize=1m\n{}", soup.concat()))?;
    }

    #[test]
    fn any_value_of_any_option_is_read_or_refused_at_a_line(
        option in prop::sample::select(options::all().map(|o| o.name).collect::<Vec<_>>()),
        value in "[0-9kmgts:,/%.()*a-z-]{0,12}",
    ) {
        judge(&format!("[a]\nsize=1m\n{option}={value}\n"))?;
    }
}
