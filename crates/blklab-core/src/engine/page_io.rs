//! I/O of the page cache: ranges of pages in flight, and the actors that wait for them.

use super::world::World;
use crate::block::Manner;
use crate::device::{Devices, FileStream, Layout};
use crate::host::Host;
use crate::owner::{Actor, Owner};
use crate::pagecache::{FileId, PAGE_BYTES, PageCache, PageRange, Room};
use crate::request::{Bio, IoPrio, Op, ProcessId};
use crate::units::{Nanos, SECTOR_BYTES, Sector};

/// The event in the page cache that an actor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Read or writeback of this page of the file.
    Page(FileId, u64),
    /// The lock of this page.
    Lock(FileId, u64),
    /// Read or writeback of any pages.
    AnyPages,
}

/// The submitter of page I/O.
#[derive(Clone, Copy, Debug)]
pub struct Submitter {
    /// The actor that submits the bios, and sleeps if there is no free request.
    pub actor: Actor,
    /// Its priority.
    pub prio: IoPrio,
    /// The CPU it runs on.
    pub cpu: u16,
    /// Synchronous writes (`WB_SYNC_ALL`).
    pub waits: bool,
    /// Its writes are not urgent: periodic, or to keep dirty memory low (`for_kupdate`, `for_background`).
    pub background: bool,
}

impl Submitter {
    /// The process that the bios belong to.
    #[inline]
    pub fn process(&self) -> ProcessId {
        self.actor.process()
    }

    /// A bio of pages without its place, length, hardware queue and owner.
    fn bio(&self, write: bool) -> Bio {
        Bio {
            op: if write { Op::Write } else { Op::Read },
            sector: Sector(0),
            sectors: 0,
            sync: !write || self.waits,
            fua: false,
            idle: false,
            background: write && self.background,
            process: self.process(),
            prio: self.prio,
            cpu: self.cpu,
            thread: self.actor.thread(),
            hw_queue: 0,
            owner: 0,
        }
    }
}

/// The caller sleeps and will be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep;

/// A range of pages in flight.
#[derive(Clone, Copy, Debug)]
struct PageIo {
    range: PageRange,
    write: bool,
    bios_left: u32,
}

/// All ranges of pages in flight, and the actors that wait for them.
#[derive(Debug, Default)]
pub struct PageIos {
    ios: slab::Slab<PageIo>,
    waiters: Vec<(Actor, Wait)>,
    /// Woken for a page's lock: they have not looked at the page yet.
    woken_for: Vec<(Actor, FileId, u64)>,
}

impl PageIos {
    /// Starts the read or write of a range; returns the bios for it.
    fn begin(
        &mut self,
        range: PageRange,
        write: bool,
        submitter: &Submitter,
        host: &Host,
        layout: &Layout,
        devices: &Devices,
    ) -> FileStream {
        let span = layout.span_of(range);
        // Pages of one window or one write were allocated together, as large folios or one after another, and are
        // contiguous in memory.
        let is_one = if write {
            !layout.file(range.file).is_device
        } else {
            devices[layout.head_of(span).0.device].block.joins_pages_of_bio()
        };
        let bios_left = match is_one {
            true => FileStream::bios_of_pages(span, layout, devices),
            false => FileStream::bios_of(span, layout, devices),
        };
        let index = self.ios.insert(PageIo { range, write, bios_left }) as u32;
        let bio = Bio { owner: Owner::Pages(index).pack(), ..submitter.bio(write) };
        // The flusher has a plug of its own (`wb_writeback`).
        let is_plugged = !write || submitter.actor.is_flusher() || host.files().plugs_syncs;
        let manner = if is_plugged { Manner::PLUGGED } else { Manner::BARE };
        match is_one {
            true => FileStream::of_pages(span, bio, manner, layout, devices),
            false => FileStream::new(span, bio, Manner::PLUGGED, layout, devices),
        }
    }

    /// A bio of page I/O `index` has completed. With the last bio its pages change state, and
    /// actors that wait for them are appended to `woken`.
    pub fn bio_ended(&mut self, index: u32, cache: &mut PageCache, now: Nanos, woken: &mut Vec<Actor>) {
        let io = &mut self.ios[index as usize];
        io.bios_left -= 1;
        if io.bios_left > 0 {
            return;
        }
        let PageIo { range, write, .. } = self.ios.remove(index as usize);
        if write {
            cache.write_done(range, now);
        } else {
            cache.read_done(range);
        }
        let ends_at = |wait| match wait {
            Wait::Page(file, page) if file == range.file && range.first <= page && page < range.end() => {
                Some(page)
            }
            Wait::AnyPages => Some(range.first),
            _ => None,
        };
        if !self.waiters.iter().any(|&(_, wait)| ends_at(wait).is_some()) {
            return;
        }
        // Its pages end one after the other, and with each the actors that wait for it, in order.
        let mut over: Vec<_> =
            self.waiters.extract_if(.., |&mut (_, wait)| ends_at(wait).is_some()).collect();
        over.sort_by_key(|&(_, wait)| ends_at(wait));
        woken.extend(over.into_iter().map(|(actor, _)| actor));
    }

    /// The page is no longer locked: appends to `woken` the first actor that waits for it, which locks it
    /// next (`WQ_FLAG_EXCLUSIVE` in `folio_wait_bit_common()`). When that has looked at the page, call
    /// [`PageIos::pass_on_lock`].
    pub fn unlocked(&mut self, file: FileId, page: u64, woken: &mut Vec<Actor>) {
        let first = self.waiters.iter().position(|&(_, wait)| wait == Wait::Lock(file, page));
        if let Some(first) = first {
            let (actor, _) = self.waiters.remove(first);
            self.woken_for.push((actor, file, page));
            woken.push(actor);
        }
    }

    /// No actor that was woken for a page's lock has yet to look at the page.
    #[inline]
    pub fn passes_no_lock(&self) -> bool {
        self.woken_for.is_empty()
    }

    /// Call when an actor has gone on after it was woken. If it was woken for a page's lock, the lock is free
    /// again, unless another actor has it: wakes the next that waits for it.
    #[cold]
    pub fn pass_on_lock(&mut self, actor: Actor, cache: &PageCache, woken: &mut Vec<Actor>) {
        let Some(place) = self.woken_for.iter().position(|&(other, ..)| other == actor) else { return };
        let (_, file, page) = self.woken_for.remove(place);
        if !cache.is_locked(file, page) {
            self.unlocked(file, page, woken);
        }
    }

    /// Puts `actor` to sleep until the event may have come.
    pub fn sleep_until(&mut self, actor: Actor, wait: Wait) {
        self.waiters.push((actor, wait));
    }
}

/// Ranges of pages on their way to the block layer; continues where it had to stop.
///
/// Written pages of a file that are contiguous are one bio, which a file system submits when it has found a
/// page that does not belong to it, and put that under writeback; or when there are no more.
#[derive(Debug, Default)]
pub struct PageWork {
    /// Ranges not started yet, in order. Filled by the page cache.
    pub ranges: Vec<PageRange>,
    next: usize,
    /// The rest of the range started last.
    stream: Option<FileStream>,
    /// More of that range follows.
    is_part: bool,
    /// The latest pages of a file to be written: more may follow.
    held: Option<PageRange>,
    /// Where the range began that was started last, and the page that is locked while its submitter sleeps for a
    /// request: a device's own first page of the range, of a file the page that was found behind it.
    started: Option<PageRange>,
    locks: Option<(FileId, u64)>,
    write: bool,
}

impl PageWork {
    /// Sets the direction of all ranges: write or read (`write` false).
    pub fn begin(&mut self, write: bool) {
        debug_assert!(self.stream.is_none() && self.next == self.ranges.len());
        self.ranges.clear();
        self.next = 0;
        self.write = write;
    }

    /// The pages to look for next that are to be put under writeback at once: those of the same bio, or one
    /// page. Before it is submitted its submitter may have to sleep for a request.
    pub fn room(&self, world: &World) -> Room {
        const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
        if !world.host.partitions {
            let most = world.host.writeback_bio_pages();
            let Some(held) = self.held else { return Room::from(1) };
            return Room { anywhere: 1, at: held.end(), there: (most - held.pages.min(most)).max(1) };
        }
        // A device's own pages have one bio each, which is appended to the last request of the plug.
        let Some(started) = self.started else { return Room::from(1) };
        let at = started.end();
        let mut span = world.layout.span_of(PageRange { file: started.file, first: at, pages: 1 });
        let Some((place, _)) = world.layout.next_of(&mut span) else { return Room::from(1) };
        let there = u64::from(world.devices[place.device].block.room_in_plug(place.sector)) / PAGE_SECTORS;
        Room { anywhere: 1, at, there: there.max(1) as u32 }
    }

    /// Takes pages that are under writeback now, to be written.
    pub fn found(&mut self, range: PageRange, world: &World) {
        self.begin(true);
        if world.host.partitions {
            self.ranges.push(range);
            return;
        }
        let most = world.host.writeback_bio_pages();
        match &mut self.held {
            Some(held)
                if (held.file, held.end()) == (range.file, range.first)
                    && u64::from(held.pages) + u64::from(range.pages) <= u64::from(most) =>
            {
                held.pages += range.pages;
            }
            held => self.ranges.extend(held.replace(range)),
        }
    }

    /// A writer that has waited for a page's writeback keeps the page locked until it has submitted the page's bio
    /// (`__block_write_full_folio`). Pages of a file in a file system are unlocked when they are in a bio.
    pub fn keep_lock(&mut self, file: FileId, page: u64, world: &mut World) {
        if world.host.partitions {
            self.locks = Some((file, page));
            world.cache.lock(file, page);
        }
    }

    /// No more pages follow for now: the latest are submitted too. False if there are none.
    pub fn ends(&mut self) -> bool {
        let held = self.held.take();
        if held.is_some() {
            self.begin(true);
            self.ranges.extend(held);
        }
        held.is_some()
    }

    /// Submits the rest. Contiguous pages to read are under a plug of their own (`read_pages`), those to write under
    /// one for all. `Err`: asleep until there is a free request.
    pub fn hand_over(&mut self, world: &mut World, submitter: Submitter) -> Result<(), Asleep> {
        while self.hand_over_next(world, submitter)? {
            if !self.write && !self.is_part {
                world.unplug();
                world.pass_on_request();
            }
        }
        world.unplug();
        world.pass_on_request();
        Ok(())
    }

    /// Ranges, or a part of one, are left to be submitted.
    #[inline]
    fn has_more(&self) -> bool {
        self.next < self.ranges.len() || self.stream.is_some()
    }

    /// Submits the next range, under a plug that the caller flushes; false if none is left. Pages of a
    /// device, not of a file on it, are written with one bio each, and the bios fill requests
    /// (`blkdev_writepages`): so much of the range is submitted as one request takes.
    #[inline]
    pub fn hand_over_next(&mut self, world: &mut World, submitter: Submitter) -> Result<bool, Asleep> {
        if self.has_more() { self.hand_over_one(world, submitter) } else { Ok(false) }
    }

    fn hand_over_one(&mut self, world: &mut World, submitter: Submitter) -> Result<bool, Asleep> {
        let World { page_ios, layout, devices, host, clock, cache, .. } = world;
        let mut stream = match self.stream.take() {
            Some(begun) => begun,
            None => {
                let Some(&whole) = self.ranges.get(self.next) else { return Ok(false) };
                let mut range = whole;
                range.pages = match self.write && host.partitions {
                    true => devices.pages_of_one_request(clock.now(), layout, whole, submitter.bio(true)),
                    // A bio ends with the extent, and its pages with it.
                    false => layout.pages_together(whole),
                };
                self.is_part = range.pages < whole.pages;
                match self.is_part {
                    true => {
                        let pages = whole.pages - range.pages;
                        self.ranges[self.next] = PageRange { first: range.end(), pages, ..whole };
                    }
                    false => self.next += 1,
                }
                self.started = Some(range);
                page_ios.begin(range, self.write, &submitter, host, layout, devices)
            }
        };
        if !devices.hand_over(clock.now(), layout, &mut stream, submitter.actor) {
            self.stream = Some(stream);
            let locked = if host.partitions { self.started } else { self.held };
            if let Some(range) = locked.filter(|_| self.write)
                && !cache.is_locked(range.file, range.first)
            {
                self.locks = Some((range.file, range.first));
                cache.lock(range.file, range.first);
            }
            world.pass_on_request();
            return Err(Asleep);
        }
        if let Some((file, page)) = self.locks.take() {
            cache.unlock(file, page);
            world.page_unlocked(file, page);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::pagecache::{BackingConfig, BackingId, MemoryConfig};
    use crate::ticks::Ticks;
    use crate::units::Bytes;

    #[test]
    fn actors_that_wait_for_pages_of_a_range_are_woken_page_by_page_and_no_others() {
        let config = MemoryConfig::new(&MemoryConfig::settings(), Ticks::per_second(1000), 1, Kernel::LATEST);
        let backing = BackingConfig { read_ahead: Bytes::from_kib(128), max_io: Bytes::from_kib(1280) };
        let mut cache = PageCache::new(&config, &[backing]);
        let file = cache.add_file(1 << 20, BackingId(0));
        let (mut dirtier, mut out) = (cache.dirtier(), Vec::new());
        cache.write(Nanos::ZERO, file, 0, 4 * 4096, &mut dirtier, &mut out);
        let mut cursor = cache.sync_start(file);
        let range = PageRange { file, first: 0, pages: 4 };
        cache.sync_next(&mut cursor, 4, Nanos::ZERO);
        let mut ios = PageIos::default();
        let index = ios.ios.insert(PageIo { range, write: true, bios_left: 2 }) as u32;
        let actor = |id| Actor::Process(ProcessId(id));
        let waits = [
            Wait::Page(file, 3),
            Wait::Page(file, 9),
            Wait::Page(file, 1),
            Wait::Lock(file, 1),
            Wait::Page(file, 3),
            Wait::Lock(file, 1),
        ];
        for (id, wait) in (0..).zip(waits) {
            ios.sleep_until(actor(id), wait);
        }
        let mut woken = Vec::new();
        ios.bio_ended(index, &mut cache, Nanos::ZERO, &mut woken);
        assert_eq!(woken, [], "the range's second bio is under way");
        ios.bio_ended(index, &mut cache, Nanos::ZERO, &mut woken);
        assert_eq!(woken, [2, 0, 4].map(actor));
        woken.clear();
        ios.unlocked(file, 1, &mut woken);
        assert_eq!(woken, [actor(3)], "one at a time");
        ios.pass_on_lock(actor(1), &cache, &mut woken);
        assert_eq!(woken, [actor(3)]);
        ios.pass_on_lock(actor(3), &cache, &mut woken);
        assert_eq!(woken, [actor(3), actor(5)]);
    }
}
