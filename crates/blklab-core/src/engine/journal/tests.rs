//! What fsync writes to the journals of ext4 and XFS, and the lock of a file that several processes write.

use crate::disk::catalogue;
use crate::engine::{RunError, Watch};
use crate::formats::fio::jobfile::{self, Bare};
use crate::host::Host;
use crate::pagecache::MemoryConfig;
use crate::result::RunResult;
use crate::scheduler::spec::SchedulerSpec;
use crate::simulation::{self, Setup};
use crate::workload::plan;
use blklab_base::recorded::Flags;

const WRITER: &str = "rw=randwrite\nbs=4k\nsize=64m\nio_size=400k\ndirect=1\n";

/// What `act` makes of the job in a file system, with its journal or without, on a shipped disk, maybe with another value
/// of a key.
fn set_up<T>(
    job: &str,
    disk: &str,
    scheduler: &str,
    host: &[(&str, &str)],
    act: impl FnOnce(Setup<'_>) -> Result<T, RunError>,
) -> T {
    let mut settings = Host::settings();
    for (name, value) in host {
        settings.set(name, value).expect("a setting of the host");
    }
    let (name, changed) = disk.split_once(':').unwrap_or((disk, ""));
    let mut model = catalogue::model(name).expect("a shipped disk");
    if let Some((key, value)) = changed.split_once('=') {
        model = model.with_override(key, value).expect("a good override");
    }
    let mut machine = Bare { memory_mib: 8192, cpus: 4 };
    let file = jobfile::parse(job, "test.fio", &mut machine, Default::default()).expect("a good job");
    let plan = plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits");
    act(Setup {
        plan: &plan,
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::new(&settings),
        memory: &MemoryConfig::settings(),
        seed: 1,
    })
    .expect("it ends")
}

fn run(job: &str, disk: &str, scheduler: &str, host: &[(&str, &str)]) -> RunResult {
    set_up(job, disk, scheduler, host, |setup| simulation::run(setup, &Watch::default()))
}

fn with_journal(job: &str, disk: &str, file_system: &str) -> RunResult {
    run(job, disk, "none", &[("file_system", file_system), ("journal", "1")])
}

fn with_lazytime(job: &str, disk: &str, file_system: &str) -> RunResult {
    run(job, disk, "none", &[("file_system", file_system), ("journal", "1"), ("lazytime", "1")])
}

/// Writes, flushes and sectors beyond the job's own 100 writes of 8 sectors.
fn beyond(result: &RunResult) -> (u64, u64, u64) {
    let disk = &result.disk;
    (disk.write_ios - 100, disk.flush_ios, disk.write_sectors - 800)
}

#[test]
fn a_recording_tells_that_a_record_of_the_journal_comes_after_a_flush() {
    let job = format!("[a]\n{WRITER}fsync=1\n");
    let host = [("file_system", "ext4"), ("journal", "1")];
    let record = |setup: Setup<'_>| simulation::run_and_record(setup, &Watch::default());
    let recorded = set_up(&job, "wd10ezrx", "none", &host, record).ios;
    let records = recorded.iter().filter(|io| io.flags.has(Flags::PREFLUSH) && io.sectors > 0);
    // One for each of 100 commits.
    assert_eq!(records.count(), 100);
    assert!(recorded.iter().all(|io| io.completed.is_some()));
}

#[test]
fn each_fsync_of_one_process_commits_between_two_flushes() {
    let job = format!("[a]\n{WRITER}fsync=1\n");
    // Descriptor and block of inodes in one write, and the record; in XFS only a record, of two sectors.
    assert_eq!(beyond(&with_journal(&job, "wd10ezrx", "ext4")), (200, 200, 100 * 24));
    assert_eq!(beyond(&with_journal(&job, "wd10ezrx", "xfs")), (100, 200, 100 * 8));
    assert_eq!(beyond(&with_journal(&job, "wd10ezrx:physical_block_bytes=512", "xfs")), (100, 200, 100 * 2));
    // NVMe has durable writes.
    assert_eq!(beyond(&with_journal(&job, "950pro-256gb", "ext4")).1, 100);
    // SAS without a volatile cache needs no flush at all.
    assert_eq!(beyond(&with_journal(&job, "sas-10k", "ext4")), (200, 0, 100 * 24));
}

#[test]
fn without_a_journal_without_times_and_in_other_file_systems_a_sync_only_flushes() {
    let fsync = format!("[a]\n{WRITER}fsync=1\n");
    let fdatasync = format!("[a]\n{WRITER}fdatasync=1\n");
    let only = (0, 100, 0);
    assert_eq!(beyond(&run(&fsync, "wd10ezrx", "none", &[("file_system", "ext4")])), only);
    assert_eq!(beyond(&with_journal(&fdatasync, "wd10ezrx", "ext4")), only);
    assert_eq!(beyond(&with_journal(&fsync, "wd10ezrx", "f2fs")), only);
    let partition = [("file_system", "ext4"), ("journal", "1"), ("partitions", "1")];
    assert_eq!(beyond(&run(&fsync, "wd10ezrx", "none", &partition)), only);
}

#[test]
fn a_second_write_in_a_tick_changes_no_times() {
    let job = format!("[a]\n{WRITER}fsync=1\n");
    let often = with_journal(&job, "optane-900p", "ext4");
    let ticks = often.duration_ns / 1_000_000 + 1;
    assert!(ticks < 20, "a hundred writes in {ticks} ticks");
    let (writes, flushes, _) = beyond(&often);
    assert!(writes <= 2 * ticks && writes > 0, "{writes} writes of commits in {ticks} ticks");
    assert_eq!(flushes, 0, "it has no volatile cache");
}

/// When one of the processes commits, most others have written: in ext4 with lazytime they only flush, without it
/// all wait for one commit.
#[test]
fn a_commit_in_ext4_has_the_times_of_all_files_of_the_block() {
    let job = format!("[a]\n{WRITER}io_size=100k\nfsync=1\nnumjobs=4\nthinktime=40ms\n");
    for found in [with_lazytime, with_journal].map(|run| run(&job, "su800-128gb", "ext4")) {
        let (writes, _, _) = beyond(&found);
        assert!((50..=110).contains(&writes), "{writes} writes of 25 commits and few more");
    }
    // XFS logs each inode for itself, and records are shared.
    let (records, _, sectors) = beyond(&with_lazytime(&job, "su800-128gb", "xfs"));
    assert!((25..=60).contains(&records) && sectors > 2 * records, "{records} records, {sectors} sectors");
}

/// By the first write that comes then: the timer at a full second, of which one is 5.12 s here, would be too late for a
/// third commit.
#[test]
fn without_lazytime_times_are_committed_after_five_seconds() {
    let job = format!("[a]\n{WRITER}io_size=1g\nruntime=16s\ntime_based\nthinktime=100ms\n");
    let commits = |run: &RunResult| (run.disk.flush_ios, run.disk.write_ios - run.jobs[0].write.ios);
    let (flushes, writes) = commits(&with_journal(&job, "wd10ezrx", "ext4"));
    assert_eq!((flushes, writes), (6, 6), "three commits, each with two flushes and two writes");
    assert_eq!(commits(&with_lazytime(&job, "wd10ezrx", "ext4")), (0, 0));
    assert_eq!(commits(&with_journal(&job, "wd10ezrx", "xfs")), (0, 0), "XFS's log waits for 30 s");
}

/// A process that writes while the block of its inode is being copied to the journal waits for that.
#[test]
fn without_lazytime_a_write_may_wait_for_the_commit_of_another_process() {
    let job = format!(
        "[sync]\n{WRITER}fsync=1\n[write]\n{WRITER}direct=0\nthinktime=1ms\nruntime=2s\ntime_based\n"
    );
    let longest = |run: RunResult| run.jobs[1].write.clat.max_ns;
    let (waits, not) =
        (longest(with_journal(&job, "wd10ezrx", "ext4")), longest(with_lazytime(&job, "wd10ezrx", "ext4")));
    assert!(waits > 50 * not, "{waits} and {not} ns");
}

/// Seventeen files are in two blocks of inodes, which one commit may have.
#[test]
fn a_commit_has_all_blocks_that_were_changed() {
    let job = format!("[a]\n{WRITER}size=1m\nio_size=8k\nnumjobs=17\nfsync=1\n");
    let result = with_journal(&job, "wd10ezrx", "ext4");
    let (writes, sectors) = (result.disk.write_ios - 34, result.disk.write_sectors - 34 * 8);
    assert!(writes > 0 && sectors > writes * 12, "{writes} writes of {sectors} sectors");
}

#[test]
fn synchronous_writes_commit_as_fsync_does() {
    for engine in ["direct=1", "direct=0"] {
        let job = format!("[a]\n{WRITER}{engine}\nsync=sync\n");
        assert_eq!(beyond(&with_journal(&job, "wd10ezrx", "ext4")), (200, 200, 100 * 24), "{engine}");
        let data = format!("[a]\n{WRITER}{engine}\nsync=dsync\n");
        assert_eq!(beyond(&with_journal(&data, "wd10ezrx", "ext4")).0, 0, "{engine}");
    }
}

/// The process works for both when the call returns.
#[test]
fn a_call_flushes_at_once_when_its_durable_write_has_ended() {
    let job = format!("[a]\n{WRITER}sync=dsync\n");
    let pauses = |host: &[(&str, &str)]| -> Vec<i64> {
        let found = run(&job, "su800-128gb", "none", host).detail;
        let flushes = (0..found.op.len()).filter(|&at| found.op[at] == 2);
        flushes.map(|at| found.queued_ns[at] - found.completed_ns[at - 1]).collect()
    };
    let complete = Host::new(&Host::settings()).complete.0 as i64;
    assert_eq!(pauses(&[("file_system", "ext4"), ("journal", "1")]), [0; 100]);
    assert_eq!(
        pauses(&[("file_system", "ext4")]),
        [complete; 100],
        "two calls, as the guest's driver makes them"
    );
}

/// A kernel thread flushes after each, or commits, and the process has several under way.
#[test]
fn queued_durable_writes_in_a_file_are_synced_by_kernel_threads() {
    let job = |mode: &str| format!("[a]\n{WRITER}ioengine=libaio\niodepth=4\nsync={mode}\n");
    let on = |mode: &str, disk: &str| with_journal(&job(mode), disk, "ext4");
    let (writes, flushes, _) = beyond(&on("dsync", "wd10ezrx"));
    assert_eq!(writes, 0);
    assert!((25..=75).contains(&flushes), "{flushes} flushes, which up to four threads share");
    assert_eq!(beyond(&on("dsync", "950pro-256gb")), (0, 0, 0), "NVMe's writes are durable themselves");
    let (writes, _, _) = beyond(&on("sync", "wd10ezrx"));
    assert!((50..=200).contains(&writes), "{writes} writes of commits");
}

#[test]
fn under_every_scheduler_all_commits_end() {
    let job = format!(
        "[a]\n{WRITER}io_size=200k\nfsync=1\nnumjobs=2\n[b]\n{WRITER}direct=0\nfsync=5\nfilename=shared\nnumjobs=3\n\
         [r]\nrw=randread\nbs=16k\nsize=64m\nio_size=2m\ndirect=1\nioengine=libaio\niodepth=8\n\
         [d]\n{WRITER}io_size=200k\nioengine=libaio\niodepth=8\nsync=dsync\n"
    );
    for scheduler in
        ["none", "noop", "deadline", "mq-deadline", "kyber", "cfq", "bfq", "bfq-2008", "cfq-2008"]
    {
        for disk in ["wd10ezrx", "wd10ezrx:ncq=off", "950pro-256gb", "sas-10k", "su800-128gb"] {
            for file_system in ["ext4", "xfs"] {
                let host = [("file_system", file_system), ("journal", "1")];
                let result = run(&job, disk, scheduler, &host);
                let written: u64 = result.jobs.iter().map(|job| job.write.ios).sum();
                assert_eq!(written, 2 * 50 + 3 * 100 + 50, "{scheduler} on {disk} in {file_system}");
            }
        }
    }
}

/// Four processes need four times as long as one if they write the same file, but not a partition or files of
/// their own.
#[test]
fn one_process_at_a_time_writes_a_file_through_the_page_cache() {
    let job = |name: &str, processes: u32| {
        format!("[a]\nrw=write\nbs=1m\nsize=64m\nio_size=64m\n{name}numjobs={processes}\n")
    };
    let length = |job: &str, partitions: &str| {
        run(job, "950pro-256gb", "none", &[("partitions", partitions)]).duration_ns as f64
    };
    let one = length(&job("", 1), "0");
    assert!(length(&job("filename=shared\n", 4), "0") > 3.9 * one);
    assert!(length(&job("", 4), "0") < 1.1 * one);
    assert!(length(&job("filename=shared\n", 4), "1") < 1.1 * one);
}

/// The first direct write of a file waits for reads in flight in ext4, where it has the file's lock alone; then reads wait
/// for it. Later writes share the lock, as all do in XFS.
#[test]
fn the_first_direct_write_of_a_file_is_alone_in_ext4() {
    let latency = |file_system: &str, writes: u32| {
        let job = format!(
            "[global]\nfilename=shared\nsize=1g\ndirect=1\n[r]\nrw=read\nbs=4m\nio_size=8m\n\
             [w]\nrw=randwrite\nbs=4k\noffset=512m\nsize=64m\nio_size={}k\n",
            4 * writes
        );
        let result = with_journal(&job, "950pro-256gb", file_system);
        let [read, write] = [result.jobs[0].read.lat, result.jobs[1].write.lat];
        (read.min_ns, write.min_ns, write.max_ns)
    };
    let (read, _, first) = latency("ext4", 1);
    assert!(first > read, "{first} ns, a read takes {read}");
    let (read, second, _) = latency("ext4", 2);
    assert!(second < read / 4, "{second} ns, a read takes {read}");
    let (read, _, first) = latency("xfs", 1);
    assert!(first < read / 4, "{first} ns, a read takes {read}");
}

/// A call frees the lock when what it has written is durable, by a flush or in itself; its process's work comes after.
#[test]
fn a_durable_write_has_the_lock_until_it_is_durable() {
    let job = "[global]\nfilename=shared\nsize=1g\ndirect=1\n[w]\nrw=randwrite\nbs=4k\nsync=dsync\nio_size=4k\n\
               [r]\nrw=read\nbs=4k\noffset=512m\nio_size=4k\n";
    for disk in ["su800-128gb", "950pro-256gb"] {
        let reads_in = |complete: &str| {
            let host = [("file_system", "ext4"), ("journal", "1"), ("complete_ns", complete)];
            let result = run(job, disk, "none", &host);
            let [write, read] = [result.jobs[0].write.lat.max_ns, result.jobs[1].read.lat.max_ns];
            assert!(read > write, "{disk}: it waits, {read} after {write} ns");
            read
        };
        assert_eq!(reads_in("100000") - reads_in("50000"), 50_000, "{disk}: its own work");
    }
}

/// In ext4 a write through the page cache waits until no direct I/O of the file is in flight, in XFS it does not; there a
/// read through the page cache has to wait for such a write.
#[test]
fn the_page_cache_and_direct_io_of_one_file_wait_for_each_other() {
    let latency = |file_system: &str, reader: &str| {
        let job = format!(
            "[global]\nfilename=shared\nsize=1g\n[r]\nrw=read\nbs=4m\nio_size=4m\n{reader}\
             [w]\nrw=write\nbs=64k\noffset=512m\nsize=64m\nio_size=64k\nstartdelay=100us\n"
        );
        let result = with_journal(&job, "950pro-256gb", file_system);
        (result.jobs[0].read.lat.max_ns, result.jobs[1].write.lat.max_ns)
    };
    let (read, write) = latency("ext4", "direct=1\nioengine=libaio\niodepth=2\n");
    assert!(write > read / 2, "ext4: {write} ns beside a read of {read}");
    let (read, write) = latency("xfs", "direct=1\nioengine=libaio\niodepth=2\n");
    assert!(write < read / 4, "XFS: {write} ns beside a read of {read}");
    // Reads through the page cache share the lock in XFS, and have none in ext4.
    let (read, write) = latency("xfs", "");
    assert!(write > read / 4, "XFS: {write} ns beside a buffered read of {read}");
    let (read, write) = latency("ext4", "");
    assert!(write < read / 4, "ext4: {write} ns beside a buffered read of {read}");
}
