//! The effect of each tunable, as in `Documentation/block/bfq-iosched.rst` of Linux 7.3. Most tests
//! switch weight-raising off, to show one effect at a time.

use super::super::testing::{Rig, Submitted, bio, limits};
use super::super::{AnyScheduler, QueueLimits};
use super::{Bfq, TUNABLES, TaskIndex};
use crate::request::Op::{self, Read, Write};
use crate::request::{Bio, ProcessId};
use crate::units::Nanos;

const A: u32 = 1;
const B: u32 = 2;
const FAR: u64 = 500_000_000;

fn hard_disk() -> QueueLimits {
    QueueLimits { rotational: true, hw_queues: 1, cpus: 1, nr_requests: 256, ..limits() }
}

fn flash() -> QueueLimits {
    QueueLimits { rotational: false, ..hard_disk() }
}

fn rig_on(limits: QueueLimits, tunables: &[(&str, i64)]) -> Rig {
    Rig::with_limits("bfq", &[&[("low_latency", 0)], tunables].concat(), limits)
}

fn rig(tunables: &[(&str, i64)]) -> Rig {
    rig_on(hard_disk(), tunables)
}

fn of(process: u32, op: Op, sector: u64) -> Bio {
    Bio { process: ProcessId(process), ..bio(op, sector) }
}

fn submit(rig: &mut Rig, bio: Bio) {
    rig.submit(bio);
}

/// The process of the next request; the disk serves it in `ms`.
fn serve(rig: &mut Rig, ms: u64) -> Option<u32> {
    let id = rig.dispatch(0)?;
    let process = rig.requests[id].process.0;
    rig.advance(Nanos::from_millis(ms));
    rig.complete(0);
    Some(process)
}

/// The processes of all waiting requests, in the order of service.
fn serve_all(rig: &mut Rig, ms: u64) -> Vec<u32> {
    let mut served = Vec::new();
    while !rig.waiting.is_empty() {
        match serve(rig, ms) {
            Some(process) => served.push(process),
            // The disk idles for the process served last.
            None => {
                rig.advance(Nanos::from_millis(1));
            }
        }
    }
    served
}

/// How long the disk idles for A, which has read one block, while B waits.
fn idle_us(limits: QueueLimits, tunables: &[(&str, i64)]) -> u64 {
    let mut rig = rig_on(limits, tunables);
    rig.submit(of(A, Read, 1000));
    // On flash, queues created together would be merged.
    rig.advance(Nanos::from_millis(1000));
    rig.submit(of(B, Read, FAR));
    assert_eq!(serve(&mut rig, 1), Some(A));
    (0..100_000)
        .step_by(100)
        .find(|_| {
            let goes_on = rig.dispatch(0).is_some();
            rig.advance(Nanos::from_micros(100));
            goes_on
        })
        .expect("B gets its turn")
}

#[test]
fn slice_idle_is_how_long_the_disk_waits_for_a_reader_and_nought_does_away_with_waiting() {
    for ms in [0, 3, 8, 20] {
        assert_eq!(idle_us(hard_disk(), &[("slice_idle", ms)]), ms as u64 * 1000);
    }
    assert_eq!(idle_us(hard_disk(), &[]), 8000, "the default");
}

#[test]
fn slice_idle_us_is_slice_idle_in_microseconds() {
    assert_eq!(idle_us(hard_disk(), &[("slice_idle_us", 2500)]), 2500);
    assert_eq!(idle_us(hard_disk(), &[("slice_idle_us", 2500), ("slice_idle", 5)]), 2500);
    assert_eq!(idle_us(hard_disk(), &[("slice_idle_us", 0)]), 0);
}

#[test]
fn strict_guarantees_waits_also_on_flash_and_gives_the_disk_one_request_at_a_time() {
    assert_eq!(idle_us(flash(), &[]), 0);
    assert_eq!(idle_us(flash(), &[("strict_guarantees", 1)]), 8000);
    assert_eq!(idle_us(flash(), &[("strict_guarantees", 1), ("slice_idle", 2)]), 8000, "is not less");
    for (strict, at_once) in [(0, 4), (1, 1)] {
        let mut rig = rig(&[("strict_guarantees", strict)]);
        (0..4).for_each(|place| submit(&mut rig, of(A, Read, place * 100)));
        assert_eq!(rig.dispatch_all().len(), at_once);
    }
}

/// The order of one process's requests, all waiting while the head is at the end of a request at
/// sector 1,000,000.
fn order(tunables: &[(&str, i64)], sectors: &[u64]) -> Vec<u64> {
    let mut rig = rig(tunables);
    rig.submit(of(A, Read, 1_000_000));
    rig.dispatch(0).expect("one waits");
    sectors.iter().for_each(|&sector| submit(&mut rig, of(A, Read, sector)));
    rig.dispatch_all()
}

#[test]
fn back_seek_max_is_how_far_below_the_head_a_request_competes() {
    let (below, above) = (999_000, 1_010_000);
    assert_eq!(order(&[], &[above, below]), [below, above]);
    // 1008 sectors are 504 KiB.
    assert_eq!(order(&[("back_seek_max", 504)], &[above, below]), [below, above]);
    assert_eq!(order(&[("back_seek_max", 503)], &[above, below]), [above, below]);
}

#[test]
fn back_seek_penalty_makes_a_way_down_as_long_as_so_many_up() {
    let (below, above) = (999_000, 1_001_508);
    assert_eq!(order(&[], &[below, above]), [above, below], "1008 down cost 2016, 1500 up");
    assert_eq!(order(&[("back_seek_penalty", 1)], &[below, above]), [below, above]);
}

/// The order of four requests: one has waited far away for 200 ms, three came later.
fn order_beside_an_old_one(sync: bool, tunables: &[(&str, i64)]) -> Vec<u64> {
    let mut rig = rig(tunables);
    submit(&mut rig, Bio { sync, ..of(A, Write, FAR) });
    rig.advance(Nanos::from_millis(200));
    [1000, 1100, 1200].iter().for_each(|&sector| submit(&mut rig, Bio { sync, ..of(A, Write, sector) }));
    rig.dispatch_all()
}

#[test]
fn fifo_expire_is_how_long_a_request_waits_before_it_goes_whatever_the_way() {
    for (sync, tunable, expires_by_default) in
        [(true, "fifo_expire_sync", true), (false, "fifo_expire_async", false)]
    {
        let (old_goes_second, old_goes_last) = ([1000, FAR, 1100, 1200], [1000, 1100, 1200, FAR]);
        let default = if expires_by_default { old_goes_second } else { old_goes_last };
        assert_eq!(order_beside_an_old_one(sync, &[]), default, "{tunable}");
        assert_eq!(order_beside_an_old_one(sync, &[(tunable, 200)]), old_goes_second, "{tunable}");
        assert_eq!(order_beside_an_old_one(sync, &[(tunable, 201)]), old_goes_last, "{tunable}");
    }
}

/// How many requests in a row A and B get in turn. Each has 600 requests of 64 sectors; each
/// request takes `ms` to serve.
fn turns(tunables: &[(&str, i64)], ms: u64) -> Vec<usize> {
    let mut rig = rig(tunables);
    for (process, base) in [(A, 0), (B, FAR)] {
        for place in 0..600 {
            rig.submit(Bio { sectors: 64, ..of(process, Read, base + place * 100) });
        }
    }
    let served = serve_all(&mut rig, ms);
    assert_eq!(served.len(), 1200);
    served.chunk_by(|a, b| a == b).map(<[u32]>::len).collect()
}

#[test]
fn timeout_sync_ends_a_turn_however_little_was_served() {
    // A process whose time is over when a request completes has had its turn.
    assert_eq!(turns(&[], 10)[..4], [13, 13, 13, 13]);
    assert_eq!(turns(&[("timeout_sync", 40)], 10)[..4], [4, 4, 4, 4]);
}

#[test]
fn max_budget_is_how_many_sectors_a_turn_has_once_one_was_used_up() {
    // A first budget is two thirds of 16384 sectors, whatever was set.
    assert_eq!(turns(&[], 0)[..4], [170, 170, 256, 256]);
    assert_eq!(turns(&[("max_budget", 1024)], 0)[..6], [170, 170, 16, 16, 16, 16]);
    assert_eq!(turns(&[("max_budget", 20_480)], 0)[..4], [170, 170, 320, 320]);
}

/// A has read more than a raised weight lasts for and has still much to read; then B begins. The
/// number of A's requests before B's turn.
fn served_before_a_newcomer(low_latency: i64) -> usize {
    let mut rig = Rig::with_limits("bfq", &[("low_latency", low_latency)], hard_disk());
    let mut place = 0;
    let mut submit = |rig: &mut Rig| {
        rig.submit(Bio { sectors: 64, ..of(A, Read, place) });
        place += 100;
    };
    (0..50).for_each(|_| submit(&mut rig));
    // 128,000 sectors.
    for _ in 0..2000 {
        submit(&mut rig);
        assert_eq!(serve(&mut rig, 0), Some(A));
    }
    rig.advance(Nanos::from_millis(1));
    rig.submit(of(B, Read, FAR));
    std::iter::from_fn(|| serve(&mut rig, 0)).take_while(|&process| process == A).count()
}

#[test]
fn low_latency_lets_a_process_that_begins_go_before_one_that_reads_on_and_on() {
    assert_eq!(served_before_a_newcomer(1), 0);
    assert!(served_before_a_newcomer(0) > 10);
}

fn bfq(rig: &Rig) -> &Bfq {
    let AnyScheduler::Bfq(bfq) = &rig.scheduler else { unreachable!() };
    bfq
}

#[test]
fn a_raised_process_has_its_own_weight_again_after_sixty_megabytes() {
    let mut rig = Rig::with_limits("bfq", &[], hard_disk());
    let weight = |rig: &Rig| {
        let own = bfq(rig).tasks.queue(TaskIndex::of(ProcessId(A)), true);
        bfq(rig).wf2q.weight(own.expect("it has read"))
    };
    let mut weights = Vec::new();
    for place in 0..2000 {
        rig.submit(Bio { sectors: 64, ..of(A, Read, place * 100) });
        assert_eq!(serve(&mut rig, 0), Some(A));
        weights.push(weight(&rig));
    }
    // 120,000 sectors are 1875 requests of 64; level 4 has the weight 40.
    assert!(weights[10..1800].iter().all(|&weight| weight == 30 * 40), "{weights:?}");
    assert!(weights[1900..].iter().all(|&weight| weight == 40), "{weights:?}");
}

#[test]
fn an_asynchronous_sector_counts_three_times_where_no_share_is_in_danger() {
    let mut rig = rig(&[]);
    for (sync, charge) in [(true, 8), (false, 24)] {
        let bio = Bio { sync, ..of(A, Write, u64::from(sync) * FAR) };
        let Submitted::Waits(id) = rig.submit(bio) else { panic!("nothing to merge with") };
        let q = bfq(&rig).requests.queue_of(id);
        assert_eq!(bfq(&rig).charge_for(id, q), charge);
    }
}

#[test]
fn the_table_has_the_kernels_ten_files() {
    let names: Vec<_> = TUNABLES.iter().map(|tunable| tunable.name).collect();
    assert_eq!(
        names,
        [
            "fifo_expire_sync",
            "fifo_expire_async",
            "back_seek_max",
            "back_seek_penalty",
            "slice_idle",
            "slice_idle_us",
            "max_budget",
            "timeout_sync",
            "strict_guarantees",
            "low_latency"
        ]
    );
}
