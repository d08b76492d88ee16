//! Timed I/Os through the whole engine: block layer, scheduler, disk.

mod common;

use blklab_core::device::{DeviceId, Layout, Location};
use blklab_core::disk::AnyDisk;
use blklab_core::engine::{Attached, Engine, Followed, Machine, Measured, Watch, World};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::recorder::Window;
use blklab_core::request::{Op, ProcessId};
use blklab_core::result::DiskTrace;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::scheduler::{CgroupId, Task, Tasks};
use blklab_core::source::replay::{Plug, Replay, ReplayError, ReplayIo, Replayed, Start};
use blklab_core::units::{Nanos, Sector};
use common::Experiment;
use proptest::prelude::*;

const EVERYTHING: Window = Window { from: Nanos::ZERO, until: Nanos(u64::MAX), requests: 1 << 16 };

fn tasks(processes: usize) -> Tasks {
    Tasks::new(vec![Task::default(); processes], vec![Tasks::default().cgroups()[0].clone()])
}

/// A machine with these disks, each with its scheduler, on which CPU work takes no time.
fn machine(disks: &[(&str, &str)], processes: usize) -> World {
    let schedulers: Vec<_> =
        disks.iter().map(|(_, name)| SchedulerSpec::parse(name).expect("a good scheduler")).collect();
    let disk = |name: &str| -> AnyDisk { common::disk(name).build(1) };
    let attached = disks.iter().zip(&schedulers);
    Machine {
        disks: attached.map(|((name, _), scheduler)| Attached { disk: disk(name), scheduler }).collect(),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
        locked: Default::default(),
        takes_places: true,
        tasks: tasks(processes),
        processes,
    }
    .build(Layout::default())
}

fn run(arrivals: &[ReplayIo], disks: &[(&str, &str)]) -> Measured<Replayed> {
    let processes = Replay::count(arrivals);
    let world = machine(disks, processes);
    let source = Replay::new(arrivals.to_vec(), 0, &tasks(processes), &world).expect("they are on the disks");
    let mut engine = Engine::new(world, source);
    engine.follow(Followed { window: Some(EVERYTHING), until: None });
    engine.run(&Watch::default()).expect("it runs to its end")
}

fn arrival(at_us: u64, process: u32, op: Op, device: u16, sector: u64, sectors: u32) -> ReplayIo {
    let place = Location { device: DeviceId(device), sector: Sector(sector) };
    let sync = op != Op::Write;
    ReplayIo {
        start: Start::at(Nanos::from_micros(at_us)),
        process: ProcessId(process),
        cgroup: CgroupId::ROOT,
        op,
        place,
        sectors,
        sync,
        fua: false,
        preflush: false,
        counted: true,
        plug: Plug::None,
    }
}

const DISKS: &[&str] = &["wd10ezrx", "su800-128gb", "950pro-256gb", "optane-900p"];
const SCHEDULERS: &[&str] =
    &["none", "noop", "deadline", "mq-deadline", "kyber", "cfq", "bfq", "bfq-2008", "cfq-2008"];

/// Up to `most` arrivals of at most `sectors_max` sectors within `span_us`, on one device.
fn arrivals(most: usize, sectors_max: u32, span_us: u64) -> impl Strategy<Value = Vec<ReplayIo>> {
    let op = prop::sample::select(vec![Op::Read, Op::Read, Op::Write, Op::Discard, Op::Flush]);
    let one = (0..span_us, 0..4_u32, op, 0..200_000_000_u64, 1..=sectors_max);
    let one = one.prop_map(|(at_us, process, op, sector, sectors)| match op {
        Op::Flush => arrival(at_us, process, op, 0, 0, 0),
        _ => arrival(at_us, process, op, 0, sector, sectors),
    });
    prop::collection::vec(one, 1..most).prop_map(|mut ios| {
        ios.sort_by_key(|io| io.start.not_before);
        ios
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_arrival_comes_at_its_time_and_ends(
        arrivals in arrivals(12, 128, 500_000),
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(SCHEDULERS),
    ) {
        let measured = run(&arrivals, &[(disk, scheduler)]);
        for (arrival, outcome) in arrivals.iter().zip(&measured.source.outcomes) {
            prop_assert_eq!(outcome.issued, arrival.start.not_before, "{:?}", arrival);
            prop_assert!(outcome.completed >= arrival.start.not_before && outcome.completed <= measured.duration);
            prop_assert!(arrival.op == Op::Flush || outcome.completed > arrival.start.not_before, "{:?}", arrival);
        }
    }

    #[test]
    fn no_sector_is_lost_or_served_twice_when_requests_run_out(
        arrivals in arrivals(400, 4096, 20_000),
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(SCHEDULERS),
    ) {
        let measured = run(&arrivals, &[(disk, scheduler)]);
        let of = |op: Op| arrivals.iter().filter(move |arrival| arrival.op == op);
        let sectors = |op| of(op).map(|arrival| u64::from(arrival.sectors)).sum::<u64>();
        let counters = &measured.devices[0].counters;
        prop_assert_eq!(counters.read_sectors, sectors(Op::Read));
        prop_assert_eq!(counters.write_sectors, sectors(Op::Write));
        for (arrival, outcome) in arrivals.iter().zip(&measured.source.outcomes) {
            prop_assert!(arrival.start.not_before <= outcome.issued && outcome.issued <= outcome.completed);
        }
        // A process submits its arrivals in the order of their times.
        for process in 0..4 {
            let mut own: Vec<_> =
                arrivals.iter().zip(&measured.source.outcomes).filter(|(one, _)| one.process.0 == process).collect();
            own.sort_by_key(|(arrival, _)| arrival.start.not_before);
            prop_assert!(own.is_sorted_by_key(|(_, outcome)| outcome.issued));
        }
        let series = measured.devices.into_iter().next().expect("one").series.finish().0;
        prop_assert_eq!(series.read_ios.iter().sum::<i64>(), of(Op::Read).count() as i64);
    }

    #[test]
    fn two_devices_of_one_machine_do_not_disturb_each_other(
        first in arrivals(60, 4096, 20_000),
        second in arrivals(60, 4096, 20_000),
        disks in prop::sample::subsequence(DISKS, 2),
        schedulers in (prop::sample::select(SCHEDULERS), prop::sample::select(SCHEDULERS)),
    ) {
        let on = [(disks[0], schedulers.0), (disks[1], schedulers.1)];
        // Separate processes, because a process that waits for a device's request waits with all
        // its arrivals.
        let moved = |one: &ReplayIo| {
            let place = Location { device: DeviceId(1), ..one.place };
            ReplayIo { process: ProcessId(one.process.0 + 4), place, ..*one }
        };
        let renumbered: Vec<_> =
            first.iter().copied().chain(second.iter().map(moved)).collect();
        let together = run(&renumbered, &on);
        let apart = [run(&first, &on[..1]), run(&second, &on[1..])];
        let outcomes: Vec<_> = apart.iter().flat_map(|one| one.source.outcomes.iter().copied()).collect();
        prop_assert_eq!(together.source.outcomes, outcomes);
        for (device, apart) in together.devices.iter().zip(&apart) {
            prop_assert_eq!(device.counters.read_sectors, apart.devices[0].counters.read_sectors);
            prop_assert_eq!(device.counters.service_ns, apart.devices[0].counters.service_ns);
        }
    }
}

/// The commands of a run as arrivals at their queueing times.
fn replay(trace: &DiskTrace) -> Vec<ReplayIo> {
    let row = |row: usize| ReplayIo {
        start: Start::at(Nanos(trace.queued_ns[row] as u64)),
        process: ProcessId(trace.process[row] as u32),
        cgroup: CgroupId::ROOT,
        op: [Op::Read, Op::Write, Op::Flush, Op::Discard][trace.op[row] as usize],
        place: Location { device: DeviceId(0), sector: Sector(trace.sector[row] as u64) },
        sectors: trace.sectors[row] as u32,
        sync: true,
        fua: false,
        preflush: false,
        counted: true,
        plug: Plug::None,
    };
    (0..trace.queued_ns.len()).map(row).collect()
}

#[test]
fn replaying_fios_io_gives_the_same_commands() {
    // Delays keep two processes from arriving at the same nanosecond, which a trace does not order.
    // No job pauses: a process of fio that thinks keeps its CPU, while a process of a trace sleeps.
    let job = "[global]\nfilename=/dev/disk\ndirect=1\nnumber_ios=40\nnorandommap\n\
        [a]\nrw=randread\nbs=4k\n[b]\nrw=randrw\nbsrange=4k-64k\nstartdelay=17us\n\
        [c]\nrw=randwrite\nbs=16k\nstartdelay=131us\n[d]\nrw=randread\nbs=128k\nstartdelay=1009us\n";
    for disk in DISKS {
        for scheduler in SCHEDULERS {
            let original = Experiment::new(job, disk, scheduler).free_host().run_and_keep(EVERYTHING);
            let arrivals = replay(&original.detail);
            assert_eq!(arrivals.len(), 160, "{scheduler} on {disk}: each I/O is a command");
            let replayed = run(&arrivals, &[(disk, scheduler)]).devices.remove(0);
            assert_eq!(replayed.trace.finish().2, original.detail, "{scheduler} on {disk}");
            let counters = blklab_core::result::DiskCounters { disk_busy_ns: 0, ..replayed.counters };
            let expected = blklab_core::result::DiskCounters { disk_busy_ns: 0, ..original.disk };
            assert_eq!(counters, expected, "{scheduler} on {disk}");
        }
    }
}

#[test]
fn an_open_loop_does_not_wait_for_a_slow_disk() {
    // 1,000 random reads a second, about eight times the disk's rate.
    let arrivals: Vec<_> =
        (0..200).map(|n| arrival(n * 1000, 0, Op::Read, 0, n * 7_919_000 % 1_900_000_000, 8)).collect();
    let late = |count: usize| {
        let measured = run(&arrivals[..count], &[("wd10ezrx", "mq-deadline")]);
        let all = arrivals.iter().zip(&measured.source.outcomes);
        let longest =
            all.clone().map(|(one, outcome)| outcome.completed - one.start.not_before).max().expect("some");
        (all.filter(|(one, outcome)| outcome.issued > one.start.not_before).count(), longest)
    };
    // The queue has 64 requests: twice the disk's 32 commands.
    let (waited, longest) = late(60);
    assert_eq!(waited, 0);
    assert!(longest > Nanos::from_millis(150), "the queue grows: {longest}");
    let (waited, longer) = late(200);
    assert!(
        waited > 0 && longer > longest,
        "{waited} wait for a request, and {longer} count from their times"
    );
}

/// A write, then one that needs a flush before it, as a journal's commit. The two come as one bio: the flush is no I/O of
/// its own, and the write passes the scheduler's other requests by when it has ended.
#[test]
fn the_latency_of_a_write_with_a_preflush_has_the_flush_in_it() {
    let write = arrival(0, 0, Op::Write, 0, 1_000_000, 8);
    let flush = arrival(500, 0, Op::Flush, 0, 0, 0);
    let follows = Start { follows: Some(1), ..Start::default() };
    let commit = ReplayIo { start: follows, preflush: true, ..arrival(500, 0, Op::Write, 0, 9_000_000, 8) };
    for scheduler in ["none", "bfq"] {
        let measured = run(&[write, flush, commit], &[("wd10ezrx", scheduler)]);
        let outcome = measured.source.outcomes[2];
        assert_eq!(outcome.due, Nanos::from_micros(500));
        assert_eq!(measured.source.jobs[0].sync_lat.count, 0);
        let trace = measured.devices.into_iter().next().expect("one").trace.finish().2;
        let row = |sector: i64, sectors: i64| {
            let found = trace.sector.iter().zip(&trace.sectors).position(|row| row == (&sector, &sectors));
            found.expect("the disk has it")
        };
        let (flush, data) = (row(0, 0), row(9_000_000, 8));
        assert!(trace.completed_ns[flush] > 1_000_000 && trace.issued_ns[data] >= trace.completed_ns[flush]);
        assert_eq!(outcome.completed, Nanos(trace.completed_ns[data] as u64));
    }
}

/// A bio of pages that are contiguous in memory is split at the queue's limit only.
#[test]
fn a_large_bio_is_split_at_the_largest_request_and_completes_as_one() {
    let large = arrival(0, 0, Op::Write, 0, 0, 16_384);
    let measured = run(&[large], &[("wd10ezrx", "none:max_sectors_kb=1280")]);
    let device = measured.devices.into_iter().next().expect("one");
    let sectors: Vec<_> = device.trace.finish().2.sectors.iter().map(|&sectors| sectors as u32).collect();
    assert_eq!(sectors, [2560, 2560, 2560, 2560, 2560, 2560, 1024]);
    assert_eq!(measured.source.outcomes.len(), 1);
}

#[test]
fn arrivals_that_the_machine_cannot_take_are_refused_in_one_line() {
    let world = machine(&[("wd10ezrx", "none")], 1);
    let refused = |one: ReplayIo| {
        let good = arrival(0, 0, Op::Read, 0, 0, 8);
        let error = Replay::new(vec![good, one], 0, &tasks(1), &world).err().expect("it is wrong");
        (error, error.to_string())
    };
    assert_eq!(
        refused(arrival(0, 0, Op::Read, 1, 0, 8)),
        (ReplayError::NoDevice(1, 1), "I/O 1: the machine has no device 1".to_owned())
    );
    assert_eq!(
        refused(arrival(0, 0, Op::Read, 0, 1_953_525_167, 2)).1,
        "I/O 1: 2 sectors from sector 1953525167 on; the disk has 1953525168"
    );
    for wrong in [arrival(0, 0, Op::Write, 0, 5, 0), arrival(0, 0, Op::Flush, 0, 0, 8)] {
        assert_eq!(refused(wrong).0, ReplayError::Length(1));
    }
}
