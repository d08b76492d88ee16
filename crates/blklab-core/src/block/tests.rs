//! When requests are dispatched, and which of them become one. Mostly on a disk that takes one command at a
//! time, so that requests complete in the order of dispatch.

mod draining;
mod flush;
mod linux_4_12;
mod refused;
mod several_queues;
mod worker;

use super::*;
use crate::disk::catalogue;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::request::{IoPrio, PrioClass};
use crate::scheduler::spec::SchedulerSpec;
use crate::scheduler::{Cgroup, CgroupId, Task};
use crate::ticks::Ticks;
use crate::units::Sector;

/// A queue and its disk.
struct Rig {
    block: Block,
    disk: AnyDisk,
    now: Nanos,
}

impl Rig {
    fn new(scheduler: &str) -> Rig {
        Rig::with_budget(scheduler, true)
    }

    fn with_budget(scheduler: &str, budget: bool) -> Rig {
        Rig::with_depth(scheduler, budget, 1)
    }

    fn with_depth(scheduler: &str, budget: bool, queue_depth: u32) -> Rig {
        Rig::on(Host { budget: Some(budget), ..Host::FREE }, scheduler, queue_depth)
    }

    fn on(host: Host, scheduler: &str, queue_depth: u32) -> Rig {
        Rig::with_tasks(host, scheduler, queue_depth, &Tasks::default())
    }

    fn with_tasks(host: Host, scheduler: &str, queue_depth: u32, tasks: &Tasks) -> Rig {
        let spec = SchedulerSpec::parse(scheduler).expect("a good scheduler");
        let disk = catalogue::model("wd10ezrx").expect("a shipped disk").build(1);
        let limits = queue_limits(disk.limits(), spec.info, &Host::FREE, &spec.queue);
        let kernel = host.kernel;
        let limits = QueueLimits { queue_depth, kernel, wbt_target: Nanos::ZERO, ..limits };
        let elevator = AnyScheduler::new(spec.info.name, &spec.settings, &limits, tasks).expect("registered");
        Rig { block: Block::new(&disk, limits, elevator, tasks.clone(), &host), disk, now: Nanos::ZERO }
    }

    fn submit_as(&mut self, sector: u64, manner: Manner) -> Submitted {
        self.block.submit(self.now, &read(sector, sector), manner, &mut self.disk)
    }

    /// Eight sectors from each of these sectors on, under one plug.
    fn plug(&mut self, sectors: impl IntoIterator<Item = u64>) {
        for sector in sectors {
            assert_eq!(self.submit_as(sector, Manner::PLUGGED), Submitted::Taken);
        }
        self.block.unplug(self.now, &mut self.disk);
    }

    fn flush(&mut self) {
        let flush = Bio { op: Op::Flush, sectors: 0, ..read(0, FLUSHED) };
        self.block.submit(self.now, &flush, Manner::PLUGGED, &mut self.disk);
        self.block.run_worker(self.now, ProcessId(0), &mut self.disk);
    }

    /// Completes one command; the owners of its bios.
    fn end_one(&mut self) -> Vec<u64> {
        let (mut completions, mut owners) = (Vec::new(), Vec::new());
        while completions.is_empty() && self.disk.next_event() != Nanos::NEVER {
            self.now = self.now.max(self.disk.next_event());
            self.disk.advance(self.now, &mut completions);
        }
        for completion in completions {
            self.block.complete(Completion { at: self.now, ..completion }, &mut owners);
            while self.block.end_next_of_flush(self.now, &mut owners) {}
        }
        self.block.start_kept_flush(self.now, &mut self.disk);
        self.block.run(self.now, &mut self.disk);
        owners
    }

    /// Owners in the order of completion; those of one request together.
    fn end_all(&mut self) -> Vec<Vec<u64>> {
        let mut ended = Vec::new();
        while self.disk.next_event() != Nanos::NEVER {
            // The data of a durable write end for no owner.
            ended.extend(Some(self.end_one()).filter(|owners| !owners.is_empty()));
        }
        ended
    }
}

/// A host with that version of Linux and with a budget of SCSI.
fn linux(number: i64) -> Host {
    Host { kernel: Kernel::of(number), budget: Some(true), ..Host::FREE }
}

/// How a process submits an I/O to a bare device.
const WITHOUT_PLUG: Manner = Manner::BARE;

/// Owner of flushes.
const FLUSHED: u64 = u64::MAX;

/// A synchronous read of eight sectors.
fn read(sector: u64, owner: u64) -> Bio {
    Bio {
        op: Op::Read,
        sector: Sector(sector),
        sectors: 8,
        sync: true,
        fua: false,
        idle: true,
        background: false,
        process: ProcessId(0),
        prio: Default::default(),
        cpu: 0,
        thread: ProcessId(0),
        hw_queue: 0,
        owner,
    }
}

/// The same from a process of that class.
fn with_class(class: PrioClass, sector: u64) -> Bio {
    Bio { prio: IoPrio { class, ..IoPrio::default() }, ..read(sector, sector) }
}

/// The order in which requests submitted under one plug are served, if none is merged.
fn order(scheduler: &str, sectors: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut rig = Rig::new(scheduler);
    rig.plug(sectors);
    rig.end_all().concat()
}

#[test]
fn a_request_refused_for_want_of_room_is_taken_when_one_has_ended() {
    let mut rig = Rig::new("noop:nr_requests=4");
    rig.plug([100, 300, 500, 700]);
    assert_eq!(rig.submit_as(900, Manner::PLUGGED), Submitted::NoRequest(u32::MAX));
    assert_eq!(rig.end_one(), [100]);
    assert_eq!(rig.submit_as(900, Manner { again: Some(u32::MAX), ..Manner::PLUGGED }), Submitted::Taken);
}

#[test]
fn a_process_without_a_tag_runs_the_queue_before_its_plug_is_flushed() {
    let mut rig = Rig::new("mq-deadline:nr_requests=4");
    assert_eq!(rig.submit_as(9_000, WITHOUT_PLUG), Submitted::Taken);
    for sector in [100, 300, 500] {
        assert_eq!(rig.submit_as(sector, Manner::PLUGGED), Submitted::Taken);
    }
    assert!(matches!(rig.submit_as(700, Manner::PLUGGED), Submitted::NoRequest(_)));
    rig.block.unplug_asleep(rig.now, &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [9_000, 100, 300, 500], "not the lowest sector first");
}

#[test]
fn a_process_that_has_slept_for_a_tag_runs_the_queue_and_one_that_looks_again_does_not() {
    for (woken, at_disk) in [(false, 0), (true, 1)] {
        let mut rig = Rig::new("mq-deadline:nr_requests=1");
        assert_eq!(rig.submit_as(9_000, WITHOUT_PLUG), Submitted::Taken);
        let manner = Manner { again: Some(u32::MAX), woken, ..Manner::PLUGGED };
        assert!(matches!(rig.submit_as(700, manner), Submitted::NoRequest(_)));
        assert_eq!(rig.block.in_flight, at_disk, "woken: {woken}");
    }
}

#[test]
fn a_scheduler_that_gives_no_more_is_asked_once_more() {
    // The last read and the last write were above all that come now, so that each question beside the request of the
    // real-time class begins another batch: reads, reads, writes.
    let mut rig = Rig::with_depth("mq-deadline", true, 8);
    let write = |sector| Bio { op: Op::Write, ..read(sector, sector) };
    rig.plug([5_000]);
    rig.end_all();
    for bio in [write(6_000), with_class(PrioClass::RealTime, 50), read(100, 100), write(200)] {
        rig.block.submit(rig.now, &bio, Manner::PLUGGED, &mut rig.disk);
        if bio.sector == Sector(6_000) {
            rig.block.unplug(rig.now, &mut rig.disk);
            rig.end_all();
        }
    }
    rig.block.unplug(rig.now, &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [50]);
    // One command at a time: its order is that of dispatch.
    rig.block.limits.queue_depth = 1;
    rig.now = rig.now.max(rig.block.next_timer());
    rig.block.timer(rig.now);
    rig.block.run(rig.now, &mut rig.disk);
    assert_eq!(rig.end_all().concat(), [100, 200], "after those three it is the reads' turn again");
}

/// The neighbour is looked for before the request takes its new place among those at its old sector.
#[test]
fn a_request_that_passes_another_at_its_sector_is_not_joined_with_the_one_before_both() {
    for scheduler in ["mq-deadline", "bfq"] {
        let mut rig = Rig::with_depth(scheduler, true, 8);
        for sector in [800, 840, 840, 848, 832, 808, 816, 824] {
            rig.submit_as(sector, WITHOUT_PLUG);
        }
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        let ended = rig.end_all();
        assert!(
            ended.contains(&vec![800, 808, 816, 824, 832, 840, 848]),
            "{scheduler}: a neighbour {ended:?}"
        );

        for sector in [808, 816, 824, 840, 840, 848, 832] {
            rig.submit_as(sector, WITHOUT_PLUG);
        }
        rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
        let mut ended = rig.end_all();
        ended.sort_unstable();
        assert_eq!(ended, [vec![808, 816, 824], vec![832, 840, 848], vec![840]], "{scheduler}");
    }
}

#[test]
fn a_request_that_grows_at_both_ends_serves_all_its_bios_upwards() {
    let mut rig = Rig::new("noop");
    rig.plug([100]);
    rig.plug([1_008, 1_000, 992, 1_016]);
    assert_eq!(rig.end_all(), [vec![100], vec![992, 1_000, 1_008, 1_016]]);
    let counters = &rig.block.counters;
    assert_eq!((counters.read_ios, counters.read_sectors), (2, 8 + 32));
    assert_eq!((counters.read_merges, counters.write_merges), (3, 0));
}

#[test]
fn a_joined_request_counts_from_the_earlier_of_the_two_starts() {
    let step = Nanos::from_micros(10);
    for sectors in [[2_000, 2_016, 2_008], [2_016, 2_000, 2_008]] {
        let mut rig = Rig::new("mq-deadline");
        rig.plug([100]);
        for sector in sectors {
            rig.plug([sector]);
            rig.now += step;
        }
        assert_eq!(rig.end_one(), [100]);
        let first = rig.now;
        assert_eq!(rig.end_one().len(), 3);
        // Both since time 0.
        assert_eq!(rig.block.counters.read_ticks_ns, (first + rig.now).0);
        assert_eq!(rig.block.counters.joined_ns, step.0, "of the later one, until the two were joined");
    }
}

#[test]
fn a_plug_is_flushed_behind_a_request_of_128_kib() {
    for (sectors, in_flight) in [(248, 0), (256, 1)] {
        let mut rig = Rig::with_depth("none", true, 8);
        let large = Bio { sectors, ..read(0, 0) };
        rig.block.submit(rig.now, &large, Manner::PLUGGED, &mut rig.disk);
        rig.submit_as(9_000, Manner::PLUGGED);
        assert_eq!(rig.block.in_flight, in_flight, "{sectors} sectors");
    }
}

#[test]
fn an_io_counts_one_part_for_each_bio_that_it_is_cut_into() {
    // A bio holds 2048 sectors and is split at the queue's limit.
    for (sectors, max_sectors, parts) in
        [(8, 1_024, 1), (2_048, 1_024, 2), (2_049, 1_024, 3), (4_106, 1_000, 7), (5_000, 4_096, 3)]
    {
        assert_eq!(BioStream::parts(sectors, max_sectors), parts, "{sectors} at {max_sectors}");
    }
}

#[test]
fn a_sata_disks_tags_go_round() {
    let order = |disk: &str, scheduler: &str, budget: bool| {
        let disk = catalogue::model(disk).expect("a shipped disk").build(1);
        let spec = SchedulerSpec::parse(scheduler).expect("a good scheduler");
        Rules::of(spec.info, disk.limits(), &Host { budget: Some(budget), ..Host::FREE }).tags
    };
    for scheduler in ["none", "bfq"] {
        assert_eq!(order("wd10ezrx", scheduler, true), Order::Rounds, "{scheduler}");
        assert_eq!(order("wd10ezrx", scheduler, false), Order::Freed, "ublk has no libata");
        assert_eq!(order("sas-10k", scheduler, true), Order::Freed);
    }
}

/// `req_set_nomerge`
#[test]
fn a_request_that_was_too_large_for_a_bio_is_passed_over_when_the_next_one_looks_for_a_merge() {
    let mut rig = Rig::new("kyber:max_sectors_kb=1280");
    rig.plug([9000]);
    let of_size = |sectors, sector| Bio { sectors, ..read(sector, sector) };
    for bio in [of_size(8, 184), of_size(2560, 200), of_size(8, 2760), of_size(8, 192)] {
        rig.block.submit(rig.now, &bio, WITHOUT_PLUG, &mut rig.disk);
    }
    rig.block.run_worker(rig.now, ProcessId(0), &mut rig.disk);
    let expected = [vec![9000], vec![184, 192], vec![200], vec![2760]];
    assert_eq!(rig.end_all(), expected, "192 adjoins the large one, too, which has refused 2760");
}

#[test]
fn pages_with_a_bio_each_fill_the_plugs_last_request_and_then_new_ones() {
    let mut rig = Rig::with_depth("mq-deadline", true, 1);
    let max = rig.block.limits().max_sectors;
    let write = |sector, sectors| Bio { op: Op::Write, sync: false, sectors, ..read(sector, sector) };
    let for_one =
        |rig: &mut Rig, sector| rig.block.sectors_for_one_request(Nanos::ZERO, &write(sector, 8 * max));
    // Nowhere else do requests begin at multiples of their size.
    assert_eq!((rig.block.room_in_plug(Sector(800)), for_one(&mut rig, 800)), (0, max));
    assert_eq!(rig.block.submit(rig.now, &write(800, 32), Manner::PLUGGED, &mut rig.disk), Submitted::Taken);
    assert_eq!((rig.block.room_in_plug(Sector(832)), for_one(&mut rig, 832)), (max - 32, max - 32));
    assert_eq!((rig.block.room_in_plug(Sector(840)), for_one(&mut rig, 840)), (0, max));
    // Before it only one page: the next no longer precedes the request.
    assert_eq!(for_one(&mut rig, 792), 8);
    // The same for a request that waits in the scheduler, behind one at the disk.
    rig.block.submit(rig.now, &write(100_000, 8), Manner::PLUGGED, &mut rig.disk);
    rig.block.unplug(rig.now, &mut rig.disk);
    assert_eq!(for_one(&mut rig, 100_008), max - 8);
}
