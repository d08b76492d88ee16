use blklab_base::recorded::{Flags, Level, NameId};
use proptest::prelude::*;

use super::anonymous::{AREA, GROUP};
use super::*;

/// I/Os in memory.
struct Memory {
    ios: std::vec::IntoIter<Io>,
    header: Header,
    tables: Tables,
    notes: Notes,
}

impl Records for Memory {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        Ok(self.ios.next())
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn notes(&self) -> &Notes {
        &self.notes
    }
}

fn memory(ios: Vec<Io>) -> Memory {
    let mut tables = Tables::default();
    tables.devices.id("8:0");
    for name in ["mysqld", "cp"] {
        tables.processes.id(name);
    }
    for (number, path) in [(77, "/secret.slice"), (78, "/secret.slice/inner"), (79, "/secret.slices")] {
        tables.cgroups.set(number, path);
    }
    let header = Header { machine: Some("host".into()), capacity: Some(Sector(4000)), ..Header::default() };
    Memory { ios: ios.into_iter(), header, tables, notes: Notes::default() }
}

fn io(ms: u64, process: u32, sector: u64, sectors: u32) -> Io {
    let queued = Nanos::from_millis(ms);
    let completed = Some(queued + Nanos(700));
    let (process, pid) = (NameId(process), 10 * process);
    Io {
        queued,
        completed,
        sector: Sector(sector),
        sectors,
        process,
        pid,
        device: NameId(1),
        ..Io::default()
    }
}

fn all(mut records: impl Records) -> (Vec<Io>, Tables, Header) {
    let mut ios = Vec::new();
    while let Some(io) = records.next_io().unwrap() {
        ios.push(io);
    }
    (ios, records.tables().clone(), records.header().clone())
}

fn edited(ios: Vec<Io>, edit: Edit) -> (Vec<Io>, Tables, Header) {
    all(Edited::new(memory(ios), edit))
}

fn starts(ios: &[Io]) -> Vec<(u64, u64)> {
    ios.iter().map(|io| (io.queued.0 / 1_000_000, io.sector.0)).collect()
}

#[test]
fn a_window_is_half_open_and_its_times_count_from_its_start() {
    let ios = vec![io(1, 1, 0, 8), Io { lost: 3, ..io(5, 1, 8, 8) }, io(9, 1, 16, 8), io(10, 1, 24, 8)];
    let window = Nanos::from_millis(5)..Nanos::from_millis(10);
    let (kept, ..) = edited(ios, Edit { window, ..Edit::default() });
    assert_eq!(starts(&kept), [(0, 8), (4, 16)]);
    assert_eq!(kept[0].completed, Some(Nanos(700)), "steps move with their I/O");
    assert_eq!((kept[0].lost, kept[1].lost), (3, 0));
}

#[test]
fn processes_places_lengths_and_operations_choose_and_flushes_have_no_place() {
    let flush = Io { op: Op::Flush, ..io(4, 2, 0, 0) };
    let ios = vec![io(1, 1, 0, 8), io(2, 2, 100, 8), io(3, 2, 196, 8), flush, io(5, 2, 120, 64)];
    let kept = |edit| starts(&edited(ios.clone(), edit).0);
    let by_name = Edit { processes: vec!["cp".into()], ..Edit::default() };
    assert_eq!(kept(by_name), [(2, 100), (3, 196), (4, 0), (5, 120)]);
    assert_eq!(kept(Edit { processes: vec!["10".into()], ..Edit::default() }), [(1, 0)]);
    assert_eq!(kept(Edit { sectors: 100..200, ..Edit::default() }), [(2, 100), (4, 0), (5, 120)]);
    assert_eq!(kept(Edit { lengths: 9..=64, ..Edit::default() }), [(4, 0), (5, 120)]);
    assert_eq!(kept(Edit { ops: vec![Op::Flush], ..Edit::default() }), [(4, 0)]);
}

#[test]
fn cgroups_are_chosen_by_number_or_by_path_with_all_below() {
    let numbers = [77, 78, 79, 80, 0];
    let ios: Vec<_> = numbers.iter().map(|&cgroup| Io { cgroup, ..io(cgroup, 1, 0, 8) }).collect();
    let kept = |wanted: &str| {
        let (mut found, ..) = edited(ios.clone(), Edit { cgroups: vec![wanted.into()], ..Edit::default() });
        found.sort_by_key(|io| io.cgroup);
        found.iter().map(|io| io.cgroup).collect::<Vec<_>>()
    };
    assert_eq!(kept("/secret.slice"), [77, 78]);
    assert_eq!(kept("/secret.slice/inner/"), [78]);
    assert_eq!(kept("80"), [80]);
    assert_eq!(kept("/"), [77, 78, 79]);
    assert!(kept("0").is_empty() && kept("/secret").is_empty());
}

#[test]
fn losses_before_a_dropped_io_count_for_the_next_kept_one() {
    let ios = vec![Io { lost: 2, ..io(1, 1, 0, 8) }, Io { lost: 5, ..io(2, 2, 8, 8) }];
    let (kept, ..) = edited(ios, Edit { processes: vec!["cp".into()], ..Edit::default() });
    assert_eq!(kept[0].lost, 7);
}

#[test]
fn arrivals_stretch_and_the_recorded_latencies_do_not() {
    let (slower, ..) = edited(vec![io(1, 1, 0, 8), io(3, 1, 8, 8)], Edit { stretch: 2.5, ..Edit::default() });
    assert_eq!(slower[1].queued, Nanos(7_500_000));
    assert_eq!(slower[1].completed, Some(Nanos(7_500_700)));
}

#[test]
fn a_recording_on_a_disk_of_another_size_says_that_size() {
    let half = Edit { scale: Some((4000, 2000)), shift: 100, ..Edit::default() };
    let (moved, _, header) = edited(vec![io(1, 1, 1999, 8)], half);
    assert_eq!((moved[0].sector.0, header.capacity), (1992 + 100, Some(Sector(2100))));
}

#[test]
fn an_anonymous_recording_has_no_name_number_or_machine_of_the_old_one() {
    let ios = vec![Io { cgroup: 77, ..io(1, 2, 5, 8) }, io(2, 1, 6, 8), io(3, 2, 7, 8)];
    let (hidden, tables, header) =
        edited(ios, Edit { secret: Some(Secret { seed: 1, end: 4000 }), ..Edit::default() });
    let names: Vec<_> = hidden.iter().map(|io| tables.processes.name(io.process)).collect();
    assert_eq!(names, ["process-1", "process-2", "process-1"]);
    assert_eq!(tables.devices.iter().collect::<Vec<_>>(), ["", "device-1"]);
    assert_eq!(hidden.iter().map(|io| io.pid).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!((hidden[0].cgroup, hidden[1].cgroup), (1, 0));
    assert_eq!((tables.cgroups.path(1), tables.cgroups.paths().len()), ("/cgroup-1", 2));
    assert_eq!(header.machine, None);
}

proptest! {
    #[test]
    fn hidden_places_are_a_permutation_within_their_group_and_keep_neighbours(
        seed: u64, areas in 1..200_u64, rest in 0..AREA, at in 0..200 * AREA,
    ) {
        let end = areas * AREA + rest;
        prop_assume!(at + 16 <= end);
        let ios: Vec<_> = (0..areas).map(|area| io(1, 1, area * AREA, 8)).collect();
        let secret = Some(Secret { seed, end });
        let (hidden, ..) = edited(ios, Edit { secret, ..Edit::default() });
        let mut places: Vec<_> = hidden.iter().map(|io| io.sector.0 / AREA).collect();
        for (area, place) in places.iter().enumerate() {
            prop_assert_eq!(area as u64 / GROUP, place / GROUP);
        }
        places.sort();
        prop_assert_eq!(places, (0..areas).collect::<Vec<_>>());
        let (pair, ..) = edited(vec![io(1, 1, at, 8), io(2, 1, at + 8, 8)], Edit { secret, ..Edit::default() });
        prop_assert!(pair.iter().all(|io| io.end().0 <= end));
        if at / AREA == (at + 8) / AREA {
            prop_assert_eq!(pair[0].end(), pair[1].sector);
        }
    }

    #[test]
    fn merged_recordings_are_in_order_and_have_all_ios(
        first in prop::collection::vec(0..1000_u64, 0..50), second in prop::collection::vec(0..1000_u64, 0..50),
    ) {
        let part = |mut times: Vec<u64>, process: u32| {
            times.sort();
            let ios = times.into_iter().map(|ms| io(ms, process, 0, 8)).collect();
            Box::new(memory(ios)) as Box<dyn Records + Send>
        };
        let count = first.len() + second.len();
        let (ios, tables, _) = all(Merged::new(vec![part(first, 1), part(second, 2)]).unwrap());
        prop_assert_eq!(ios.len(), count);
        prop_assert!(ios.is_sorted_by_key(|io| io.queued));
        for io in ios {
            let from_second = tables.processes.name(io.process) == "cp";
            prop_assert_eq!(io.pid, if from_second { 20 + (1 << 22) } else { 10 });
        }
    }
}

#[test]
fn merged_recordings_share_a_device_and_no_process() {
    let part =
        |process| Box::new(memory(vec![Io { flags: Flags::SYNC, cgroup: 77, ..io(1, process, 0, 8) }]));
    let (ios, tables, header) = all(Merged::new(vec![part(1), part(1)]).unwrap());
    assert_eq!((ios[0].pid, ios[1].pid), (10, 10 + (1 << 22)));
    assert_eq!(tables.devices.name(ios[1].device), "8:0");
    assert_eq!(tables.processes.name(ios[1].process), "mysqld");
    assert_eq!((ios[0].cgroup, ios[1].cgroup), (77, 77 + (1 << 48)));
    assert_eq!(tables.cgroups.path(ios[1].cgroup), "/secret.slice");
    assert_eq!((header.machine, header.capacity), (None, Some(Sector(4000))));
}

#[test]
fn a_merged_disk_has_a_size_only_if_all_recordings_know_theirs() {
    let mut larger = memory(vec![]);
    larger.header.capacity = Some(Sector(9000));
    let mut unknown = memory(vec![]);
    unknown.header.capacity = None;
    let size = |other| all(Merged::new(vec![Box::new(memory(vec![])), Box::new(other)]).unwrap()).2.capacity;
    assert_eq!((size(larger), size(unknown)), (Some(Sector(9000)), None));
}

#[test]
fn recordings_of_two_levels_are_not_merged() {
    let mut other = memory(vec![]);
    other.header.level = Level::Request;
    let error = Merged::new(vec![Box::new(memory(vec![])), Box::new(other)]).err().unwrap();
    assert_eq!(error.to_string(), "recordings of two levels, bio and request; expected one");
}
