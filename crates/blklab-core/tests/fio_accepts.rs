//! Real fio and our parser accept and refuse the same. Needs fio (3.33 or later) in PATH; without
//! it these tests report that and pass.

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blklab_core::formats::fio::options;
use support::parse;

fn fio(arguments: &[&str]) -> Option<std::process::Output> {
    let output = Command::new("fio").args(arguments).stdin(Stdio::null()).output();
    if output.is_err() {
        eprintln!("skipped: fio is not installed");
    }
    output.ok()
}

/// Whether fio accepts the job file; `None` without fio.
fn fio_accepts(path: &Path) -> Option<bool> {
    fio(&["--parse-only", path.to_str()?]).map(|output| output.status.success())
}

fn write_job(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let mut file = std::fs::File::create(&path).expect("a file in the scratch folder");
    file.write_all(text.as_bytes()).expect("room in the scratch folder");
    path
}

/// A folder of this test run.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).expect("a scratch folder");
    path
}

/// Both accept these.
const RIGHT: &[&str] = &[
    "[a]\nsize=1m\nwrite_bw_log\nwrite_lat_log\nwrite_iops_log\nwrite_hist_log\n",
    "[a]\nrw=read\nsize=1m\n",
    "[global]\nbs=4k\nsize=10m\n[a]\nrw=randread\n[b]\nrw=randwrite\n",
    "; a comment\n# another\n[a] # behind a section\nsize=1m ; behind an option\n",
    "[a b c]\nsize=1m\n",
    "\n  [a]\n  size = 1m  \n\n",
    "[a]\r\nsize=1m\r\ndirect=1\r\n",
    "[a]\nsize=1m\nrw=randread:8\nrw_sequencer=identical\n",
    "[a]\nsize=1m\nrw=write:4k\n",
    "[a]\nsize=1m\nrw=randrw\nrwmixread=70\n",
    "[a]\nsize=1m\nrw=randrw\nrwmixwrite=30\nbs=8k,32k\n",
    "[a]\nsize=1m\nrw=randtrimwrite\nbs=4k,\n",
    "[a]\nsize=1m\nbs=,8k\n",
    "[a]\nsize=1m\nbsrange=1k-4k,2k:8k\nbs_unaligned\n",
    "[a]\nsize=1m\nbsrange=8k-4k\n",
    "[a]\nsize=1m\nbssplit=4k/10:64k/50:32k/40\n",
    "[a]\nsize=1m\nbssplit=4k/50:1k/:32k/\n",
    "[a]\nsize=1m\nbssplit=2k/50:4k/50,4k/90:8k/10\n",
    "[a]\nsize=1m\nba=512\nrw=randread\n",
    "[a]\nsize=0x100000\nbs=4KiB\n",
    "[a]\nsize=20%\nfilename=/dev/null\n",
    "[a]\nsize=1g\nio_size=10m\noffset=20%\noffset_increment=1m\nnumjobs=4\n",
    "[a]\nfilesize=1m-4m\nnrfiles=10\nfile_service_type=random:8\n",
    "[a]\nsize=1m\nfile_service_type=zipf:1.2\n",
    "[a]\nsize=1m\nfilename=x:y\\:z\ndirectory=/tmp\n",
    "[a]\nsize=1m\nioengine=libaio\niodepth=32\niodepth_batch=8\niodepth_batch_complete_min=4\niodepth_low=16\n",
    "[a]\nsize=1m\ncmdprio_percentage=10\ncmdprio_class=1\nioengine=libaio\n",
    "[a]\nsize=1m\nioengine=io_uring\nhipri\nfixedbufs=1\n",
    "[a]\nsize=1m\nruntime=1m\ntime_based\nramp_time=500ms\nstartdelay=1s-5s\n",
    "[a]\nsize=1m\ntimeout=10\ntime_based=1\n",
    "[a]\nsize=1m\ncgroup=x\ncgroup_weight=200\n[b]\nsize=1m\ncgroup=x/y\ncgroup_weight=1000\ncgroup_nodelete=1\n",
    "[a]\nsize=1m\ncgroup_weight=100\n",
    "[a]\nsize=1m\nthinktime=5ms\nthinktime_spin=100\nthinktime_blocks=4\nthinktime_blocks_type=issue\n",
    "[a]\nsize=1m\nthinktime=1s\nthinktime_iotime=9s\n",
    "[a]\nsize=1m\nrate=1m,500k\nrate_process=poisson\n",
    "[a]\nsize=1m\nrate_iops=,500\n",
    "[a]\nsize=1m\nrw=randread\nrandom_distribution=zipf:1.2:0.25\n",
    "[a]\nsize=1m\nrw=randread\nrandom_distribution=zipf\n",
    "[a]\nsize=1m\nrw=randread\nrandom_distribution=pareto:0.2\n",
    "[a]\nsize=1m\nrw=randread\nrandom_distribution=normal:10\n",
    "[a]\nsize=1m\nrw=randread\nrandom_distribution=zoned:60/10:30/20:8/30:2/40\n",
    "[a]\nsize=1t\nrw=randread\nrandom_distribution=zoned_abs:60/20G:40/100G\n",
    "[a]\nsize=1m\npercentage_random=50,20\nrw=randrw\n",
    "[a]\nsize=1m\nnorandommap\nrandseed=7\nrandrepeat=0\nrandom_generator=lfsr\n",
    "[a]\nsize=1m\nrw=write\nfsync=32\nfdatasync=1k\nend_fsync=1\nsync=dsync\n",
    "[a]\nsize=1m\nprioclass=2\nprio=7\n",
    "[a]\nsize=1m\n[b]\nsize=1m\nwait_for=a\n[c]\nsize=1m\nstonewall\nexitall\nexit_what=all\n",
    "[a]\nsize=1m\nstonewall=0\nnew_group\ngroup_reporting=1\nloops=3\n",
    "[a]\nsize=1m\npercentile_list=50:99:99.9\nlat_percentiles=1\nclat_percentiles=0\n",
    "[a]\nsize=1m\nname=other\ndescription=what it is\nthread\nkb_base=1000\n",
    "[a]\nsize=1m\nrefill_buffers\nbuffer_compress_percentage=50\nzero_buffers\nmem=malloc\ngtod_reduce=1\n",
    "[a]\nsize=1m\nwrite_bw_log=x\nlog_avg_msec=500\nbwavgtime=1000\ndisable_lat=1\n",
    "[a]\nsize=1m\nfallocate=none\ninvalidate=0\nunlink=1\ncreate_on_open=1\ncpus_allowed=0-1\n",
    "[a]\nsize=1m\nnumjobs=$ncpus\nbs=$pagesize\n",
    "[a]\nsize=1m\nthreads=1\nblock=4k\nnumruns=1\ndir=/tmp\nload=1\nprep\n",
];

/// Both refuse these.
const WRONG: &[&str] = &[
    "size=1m\n",
    "[a]\nbogus=1\n",
    "[a]\nBS=4k\n",
    "[a]\nsize=\n",
    "[a]\nrw=\n",
    "[a]\nrw=wrte\n",
    "[a]\nrw=RANDREAD\n",
    "[a]\nbs=0\n",
    "[a]\nbs=\"4k\"\n",
    "[a]\nbsrange=4k\n",
    "[a]\nbssplit=foo\n",
    "[a]\niodepth=0\n",
    "[a]\ndirect\n",
    "[a]\ndirect=2\n",
    "[a]\ndirect=true\n",
    "[a]\nrwmixread=101\n",
    "[a]\nprio=8\n",
    "[a]\nprioclass=4\n",
    "[a]\nsync=2\n",
    "[a]\ncgroup\n",
    "[a]\ncgroup=\n",
    "[a]\ncgroup=x\ncgroup_weight=0\n",
    "[a]\ncgroup=x\ncgroup_weight=99\n",
    "[a]\ncgroup=x\ncgroup_weight=1001\n",
    "[a]\ncgroup=x\ncgroup_nodelete\n",
    "[a]\nkb_base=1001\n",
    "[a]\nrw_sequencer=foo\n",
    "[a]\nio_size=200%\n",
    "[a]\nrandom_distribution=foo\n",
    "[a]\nrandom_distribution=zipf:1.0\n",
    "[a]\nrandom_distribution=pareto:1.5\n",
    "[a]\nrandom_distribution=normal:101\n",
    "[a]\nrandom_distribution=zoned:60/10:30/20:8/30\n",
    "[a]\ncmdprio_percentage=10\n",
    "[a]\nioengine=libaio\ncmdprio_percentage=101\n",
    "[a]\nhipri\n",
    "[a]\nbs=${THERE_IS_NO_SUCH_VARIABLE}\n",
    "include nothing.fio\n[a]\nsize=1m\n",
    "[a]\ninclude /there/is/no/such/file.fio\n",
];

#[test]
fn fio_and_our_parser_accept_the_same_files() {
    let scratch = scratch("right");
    for (index, text) in RIGHT.iter().enumerate() {
        let ours = parse(text);
        assert!(ours.is_ok(), "{text}: {}", ours.err().map(|e| e.to_string()).unwrap_or_default());
        let Some(theirs) = fio_accepts(&write_job(&scratch, &format!("{index}.fio"), text)) else { return };
        assert!(theirs, "fio refuses {text}");
    }
}

#[test]
fn fio_and_our_parser_refuse_the_same_files() {
    let scratch = scratch("wrong");
    for (index, text) in WRONG.iter().enumerate() {
        assert!(parse(text).is_err(), "{text}");
        // fio reports a missing include, but its status is 0.
        if text.contains("/there/is/no/such/file") {
            continue;
        }
        let Some(theirs) = fio_accepts(&write_job(&scratch, &format!("{index}.fio"), text)) else { return };
        assert!(!theirs, "fio accepts {text}");
    }
}

/// Job files of the folder and of its subfolders.
fn job_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("its entries").path());
    paths
        .flat_map(|path| if path.is_dir() { job_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|e| e == "fio"))
        .collect()
}

#[test]
fn fio_accepts_every_job_file_that_we_ship_and_so_do_we() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/blklab");
    for (folder, least) in [("workloads", 8), ("studies", 7)] {
        let paths = job_files(&package.join(folder));
        assert!(paths.len() >= least, "{} job files in {folder}", paths.len());
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a text");
            let summary = text.lines().next().and_then(|line| line.strip_prefix("# "));
            assert!(summary.is_some_and(|s| (20..=90).contains(&s.len())), "{}: first line", path.display());
            let file = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            // Threads cost fio less than processes and make no difference to a disk.
            let idle: Vec<_> = file
                .without_effect
                .iter()
                .chain(&file.ignored)
                .filter(|idle| idle.name != "thread")
                .collect();
            assert!(idle.is_empty(), "{}: {idle:?}", path.display());
            if let Some(accepted) = fio_accepts(&path) {
                assert!(accepted, "fio refuses {}", path.display());
            }
        }
    }
}

#[test]
fn our_table_has_every_option_of_fio_and_no_other() {
    let Some(output) = fio(&["--cmdhelp"]) else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = |text: &str| -> BTreeSet<String> {
        text.lines()
            .filter_map(|line| line.split_once(':').map(|(name, _)| name.trim().to_owned()))
            .filter(|name| !name.is_empty() && !name.contains(' '))
            .collect()
    };
    let mut theirs = names(&text);
    let Some(engines) = fio(&["--enghelp"]) else { return };
    let engines = String::from_utf8_lossy(&engines.stdout).into_owned();
    let engines: BTreeSet<_> = engines.lines().skip(1).map(|line| line.trim().to_owned()).collect();
    for engine in &engines {
        let Some(help) = fio(&[&format!("--enghelp={engine}")]) else { return };
        theirs.extend(names(&String::from_utf8_lossy(&help.stdout)));
    }
    let scratch = scratch("profiles");
    let missing: Vec<_> = theirs.iter().filter(|name| options::find(name).is_none()).collect();
    assert!(missing.is_empty(), "fio has {missing:?}");
    for option in options::all() {
        if let options::Status::OtherEngine(having) = option.status {
            // Most builds of fio lack some engines and, with them, their options.
            let here = having.iter().any(|engine| engines.contains(*engine));
            assert!(!here || theirs.contains(option.name), "fio's {having:?} have no '{}'", option.name);
            continue;
        }
        let Some(help) = fio(&[&format!("--cmdhelp={}", option.name)]) else { return };
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        if help.contains("No such command") && !theirs.contains(option.name) {
            // Options of profiles have no help.
            let text = format!("[a]\nsize=1m\n{}=1\n", option.name);
            let accepted = fio_accepts(&write_job(&scratch, option.name, &text));
            assert_eq!(accepted, Some(true), "fio has no '{}'", option.name);
            continue;
        }
        if let Some(alias) = help.lines().find_map(|line| line.trim().strip_prefix("alias: ")) {
            assert!(option.aliases.contains(&alias), "{}: alias {alias}", option.name);
        }
    }
}

#[test]
fn sizes_have_fios_meaning() {
    for text in ["4k", "4kb", "4ki", "4kib", "1mi", "1MiB", "0x1000", "4096b", "12K"] {
        let size = format!("--size={text}");
        let Some(output) =
            fio(&["--name=a", "--ioengine=null", &size, &format!("--bs={text}"), "--output-format=terse"])
        else {
            return;
        };
        // Terse field 6 is the KiB read (fio's HOWTO, "Terse output").
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let kib: u64 = line.split(';').nth(5).and_then(|field| field.parse().ok()).expect("terse output");
        let plan = support::plan(&format!("[a]\nsize={text}\nbs={text}\n"));
        assert_eq!(plan.processes[0].pass_bytes / 1024, kib, "{text}");
    }
}
