//! Processes that read one area in turns.

use super::drive::{Drive, FAR, Process};
use crate::request::ProcessId;
use crate::scheduler::journal::Decision;
use crate::units::Nanos;

fn ms(span: u64) -> Nanos {
    Nanos::from_millis(span)
}

/// Readers that share one stream: each reads every `count`-th piece of it.
fn interleaved(count: u64, place: u64) -> impl Iterator<Item = Process> {
    (0..count).map(move |index| {
        let whole = Process::reader(place);
        Process { next: whole.next + index * 16, stride: count * 16, ..whole }
    })
}

fn merged(decision: &Decision) -> bool {
    matches!(decision, Decision::QueuesMerged { .. })
}

fn split(decision: &Decision) -> bool {
    matches!(decision, Decision::QueueSplit)
}

#[test]
fn readers_of_one_area_come_to_share_a_queue() {
    let readers = interleaved(2, 1).chain([Process::reader(5)]);
    let mut drive = Drive::new(&[], readers.collect());
    drive.run(ms(5000));
    assert_eq!(drive.queues(), 2, "one for two, and one for the third");
    assert_eq!(drive.noted(merged), 1);
    // They take turns request by request, without long seeks.
    let far = drive.served.iter().filter(|served| served.ended - served.began == FAR).count();
    assert!(far < 120, "{far} seeks in five seconds");
}

#[test]
fn distant_readers_keep_their_own() {
    let mut drive = Drive::new(&[], (1..5).map(Process::reader).collect());
    drive.run(ms(5000));
    assert_eq!(drive.noted(merged), 0);
}

#[test]
fn readers_of_different_levels_keep_their_own() {
    let mut readers: Vec<Process> = interleaved(2, 1).chain([Process::reader(5)]).collect();
    readers[1].level = 3;
    let mut drive = Drive::new(&[], readers);
    drive.run(ms(5000));
    assert_eq!(drive.noted(merged), 0);
}

#[test]
fn a_shared_queue_is_split_when_its_processes_part() {
    let mut drive = Drive::new(&[], interleaved(2, 1).chain([Process::reader(5)]).collect());
    drive.run(ms(3000));
    assert_eq!((drive.noted(merged), drive.queues()), (1, 2));
    // One of them moves elsewhere: from now on the queue's requests are far apart.
    drive.processes[1].next = 900_000_000;
    drive.run(ms(8000));
    assert!(drive.noted(split) >= 1);
    assert_eq!(drive.queues(), 3, "each has its own again");
}

#[test]
fn a_process_that_ends_before_it_has_moved_leaves_the_other_alone() {
    for count in 2..6 {
        let mut readers: Vec<Process> = interleaved(count, 1).chain([Process::reader(5)]).collect();
        readers.iter_mut().take(2).for_each(|reader| reader.left = 40);
        let mut drive = Drive::new(&[], readers);
        for step in 1..100 {
            drive.run(ms(step * 20));
            for index in 0..2 {
                if drive.processes[index].left == 0 {
                    drive.rig.exit(ProcessId(index as u32));
                }
            }
        }
        drive.run(ms(4000));
        assert!(drive.queues() < count as usize, "{count}: {} queues", drive.queues());
    }
}
