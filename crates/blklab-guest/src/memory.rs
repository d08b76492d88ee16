//! The memory that a guest's page cache can have: exactly that of the modelled host's.
//!
//! A guest is larger than that by its kernel, which differs from image to image. So before a run the first process
//! takes what is too much, and holds it. Pages of its own program would be the oldest of the cache, and where a full
//! memory begins to be written depends on each of them: they are locked, so that they are in no list.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::Advice;
use rustix::mm::MlockAllFlags;

const PAGE_BYTES: u64 = 4096;
/// A page of the cache costs its part of a node of the tree that finds it (`xa_node`): one for each 64 pages, of which seven
/// have a page of memory, and one of the next level for each 64 of those.
const PAGES_OF_A_NODE_PAGE: u64 = 64 * 7 * 64 / 65;
/// The bios on a page (`overhead.rs` of the page cache in the core).
const BIOS_OF_A_PAGE: u64 = 21;
/// Rounds, of which the second takes what the page tables of the first have left.
const ROUNDS: usize = 8;
/// When the processes of a run have started.
const STARTED: Duration = Duration::from_micros(500);
/// Between looks at what processes have taken since.
const EVERY: Duration = Duration::from_millis(250);

/// Memory of the first process. Until this is dropped, the page cache cannot have it: a guest has no swap.
#[derive(Debug)]
pub struct Held {
    memory: Vec<Vec<u8>>,
    /// Each page that is being written has a bio, as a bare disk's have.
    bios: bool,
    /// The memory that the guest lacks for such a page cache.
    pub short_kib: u64,
    /// What the page cache has that can be dropped.
    pub cached_kib: u64,
}

/// The free memory of a zone, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    /// Free, on lists of CPUs too.
    free: u64,
    /// With fewer, the kernel begins to drop pages of the cache.
    low: u64,
    /// Pages of files, on the lists from which the kernel drops them.
    cached: u64,
}

/// Takes so much memory that the kernel begins to drop pages when the page cache has grown by `cache_bytes`, and
/// has nothing of ours to drop. With `bios` each page that is being written has one, which the modelled host has too.
///
/// # Errors
/// One line: memory cannot be locked, or the kernel's state has another format.
pub fn leave(cache_bytes: u64, bios: bool) -> Result<Held, String> {
    lock_own()?;
    let mut held = Held { memory: Vec::new(), bios, short_kib: 0, cached_kib: 0 };
    for round in 0..ROUNDS {
        let zone = zone()?;
        let needed = needed(zone.low, cache_bytes / PAGE_BYTES);
        if round == 0 {
            held.short_kib = (needed.saturating_sub(zone.free) * PAGE_BYTES) >> 10;
            held.cached_kib = (zone.cached * PAGE_BYTES) >> 10;
        }
        let spare = zone.free.saturating_sub(needed);
        if spare == 0 {
            break;
        }
        // Written, so that each page is there.
        held.memory.push(black_box(vec![1; (spare * PAGE_BYTES) as usize]));
    }
    Ok(held)
}

impl Held {
    /// Does `work`, during which processes and the kernel take memory: the cache gets as much of this back.
    pub fn beside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (ended, before) = (AtomicBool::new(false), self.of_others());
        thread::scope(|scope| {
            let giver = scope.spawn(|| self.give_back_what_exceeds(before, &ended));
            let _end = End { of: &ended, giver: giver.thread() };
            work()
        })
    }

    /// Until the work has ended, gives back what others take beyond `most` pages.
    fn give_back_what_exceeds(&mut self, mut most: u64, ended: &AtomicBool) {
        let mut next = STARTED;
        loop {
            thread::park_timeout(next);
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let taken = self.of_others().max(most);
            self.give_back(taken - most);
            (most, next) = (taken, EVERY);
        }
    }

    /// Pages in use by others that do not belong to a file.
    fn of_others(&self) -> u64 {
        let bytes: usize = self.memory.iter().map(Vec::capacity).sum();
        let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        not_of_files(&text, self.bios).saturating_sub(bytes as u64 / PAGE_BYTES)
    }

    fn give_back(&mut self, pages: u64) {
        // The first part is by far the largest.
        if let Some(part) = self.memory.first_mut() {
            part.truncate(part.len().saturating_sub((pages * PAGE_BYTES) as usize));
            part.shrink_to_fit();
        }
    }
}

/// Ends the giver's work, whatever has ended that of the processes.
struct End<'a> {
    of: &'a AtomicBool,
    giver: &'a thread::Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.of.store(true, Ordering::Relaxed);
        self.giver.unpark();
    }
}

/// Pages of processes and of the kernel that it cannot free, without the bios of what is being written if the modelled host
/// has them too.
fn not_of_files(vmstat: &str, bios: bool) -> u64 {
    let value = |name: &str| vmstat.lines().find_map(|line| named(line, name)).unwrap_or(0);
    let stacks = value("nr_kernel_stack") * 1024 / PAGE_BYTES;
    let bios = if bios { value("nr_writeback") / BIOS_OF_A_PAGE } else { 0 };
    let slabs = value("nr_slab_unreclaimable").saturating_sub(bios);
    value("nr_anon_pages") + value("nr_page_table_pages") + stacks + slabs
}

/// All pages of this process are in memory, and stay. The others of its files leave the cache; those that were
/// read with them are different ones whenever it is compiled.
fn lock_own() -> Result<(), String> {
    const FILES: &str = "/proc/self/map_files";
    rustix::mm::mlockall(MlockAllFlags::CURRENT).map_err(|error| format!("locking memory: {error}"))?;
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(FILES).map_err(|error| failed(Path::new(FILES), error))? {
        let path = entry.map_err(|error| failed(Path::new(FILES), error))?.path();
        // Devices have no pages, and what opening one does is its own affair.
        if fs::metadata(&path).is_ok_and(|file| file.is_file()) {
            let file = fs::File::open(&path).map_err(|error| failed(&path, error))?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| failed(&path, error.into()))?;
        }
    }
    Ok(())
}

/// The pages that are free before a cache of so many has grown, which ends at the watermark `low`.
fn needed(low: u64, cache: u64) -> u64 {
    low + cache + cache / PAGES_OF_A_NODE_PAGE
}

fn zone() -> Result<Zone, String> {
    const PATH: &str = "/proc/zoneinfo";
    let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    parse(&text).ok_or_else(|| format!("{PATH} does not have one zone with its free pages"))
}

/// The only zone that has pages.
fn parse(text: &str) -> Option<Zone> {
    let mut zones = text.split("\nNode ").filter_map(|part| {
        let value = |name: &str| part.lines().find_map(|line| named(line, name));
        let on_lists: u64 = part.lines().filter_map(|line| named(line, "count:")).sum();
        // Of the node, with its first zone.
        let cached = value("nr_inactive_file").unwrap_or(0) + value("nr_active_file").unwrap_or(0);
        let zone = Zone { free: value("pages free")? + on_lists, low: value("low")?, cached };
        (value("managed")? > 0).then_some(zone)
    });
    zones.next().filter(|_| zones.next().is_none())
}

fn named(line: &str, name: &str) -> Option<u64> {
    line.trim_start().strip_prefix(name)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: &str = "\
Node 0, zone   Normal
  per-node stats
      nr_inactive_anon 12
      nr_inactive_file 7
      nr_active_file 3
  pages free     300000
        boost    0
        min      16896
        low      21120
        high     25344
        spanned  262144
        present  262144
        managed  257000
        cma      0
  pagesets
    cpu: 0
              count:    40
              high:     252
    cpu: 1
              count:    2
  node_unreclaimable:  0
Node 0, zone  Movable
  pages free     0
        min      0
        low      0
        high     0
        managed  0
";

    #[test]
    fn free_pages_are_those_of_the_zone_and_of_its_cpus() {
        assert_eq!(parse(ZONES), Some(Zone { free: 300_042, low: 21_120, cached: 10 }));
    }

    #[test]
    fn several_zones_with_pages_are_refused_and_what_has_no_zones() {
        assert_eq!(parse(&ZONES.replace("managed  0", "managed  5")), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse(&ZONES.replace("low", "least")), None);
    }

    #[test]
    fn a_cache_needs_its_pages_their_tree_and_the_watermark() {
        assert_eq!(needed(20_000, 44_100), 20_000 + 44_100 + 100);
        assert_eq!(needed(20_000, 0), 20_000);
    }

    #[test]
    fn the_modelled_hosts_bios_are_not_the_guests_own_memory() {
        let vmstat = "nr_zone_inactive_anon 9\nnr_slab_reclaimable 5\nnr_slab_unreclaimable 80\nnr_anon_pages 500\n\
                      nr_kernel_stack 384\nnr_page_table_pages 60\nnr_writeback 210\n";
        assert_eq!(not_of_files(vmstat, false), 500 + 60 + 96 + 80);
        assert_eq!(not_of_files(vmstat, true), 500 + 60 + 96 + 70);
    }

    #[test]
    fn pages_that_are_given_back_are_no_longer_held() {
        let mut held = Held {
            memory: vec![vec![1; 64 << 12], vec![1; 8 << 12]],
            bios: false,
            short_kib: 0,
            cached_kib: 0,
        };
        held.give_back(4);
        assert_eq!(held.memory.iter().map(Vec::capacity).collect::<Vec<_>>(), [60 << 12, 8 << 12]);
        held.give_back(100);
        assert_eq!(held.memory.iter().map(Vec::len).collect::<Vec<_>>(), [0, 8 << 12]);
    }

    #[test]
    fn the_giver_ends_with_the_work_even_if_that_panics() {
        let held = || Held { memory: Vec::new(), bios: false, short_kib: 0, cached_kib: 0 };
        assert_eq!(held().beside(|| 7), 7);
        let panicked = std::panic::catch_unwind(|| held().beside(|| panic!("as a test does")));
        assert!(panicked.is_err());
    }

    #[test]
    fn this_machines_zones_are_several_or_one() {
        // A guest has one; elsewhere that is told in one line.
        match zone() {
            Ok(zone) => assert!(zone.free > 0),
            Err(error) => assert!(error.starts_with("/proc/zoneinfo"), "{error}"),
        }
    }
}
