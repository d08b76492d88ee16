//! The plug-in's side of the calls: numbers in, objects for the scheduler, numbers out.

use std::cell::RefCell;
use std::panic;

use crate::{
    Bio, INTERFACE, IoPrio, Limits, Nanos, Op, PrioClass, ProcessId, Queue, Request, RequestId, Requests,
    Scheduler, Sector, Settings, described, mailbox,
};

/// A scheduler, and the requests that it was told of.
pub struct Guest<S> {
    settings: Settings,
    limits: Limits,
    requests: Requests,
    scheduler: Option<S>,
}

impl<S: Scheduler> Default for Guest<S> {
    fn default() -> Guest<S> {
        Guest {
            settings: Settings::defaults(S::INFO.tunables),
            limits: Limits::default(),
            requests: Requests::default(),
            scheduler: None,
        }
    }
}

impl<S: Scheduler> Guest<S> {
    /// Calls the scheduler at that moment.
    #[inline]
    fn call<T>(&mut self, now: u64, in_flight: u32, call: impl FnOnce(&mut S, &Queue<'_>) -> T) -> T {
        let queue = Queue { now: Nanos(now), requests: &self.requests, in_flight, limits: &self.limits };
        let scheduler = self.scheduler.as_mut().expect("blklab_new comes first");
        let answer = call(scheduler, &queue);
        mailbox::set_timer(scheduler.next_timer().0);
        answer
    }
}

/// What [`plugin!`](crate::plugin) exports.
pub mod exported {
    use super::*;

    /// A plug-in's state.
    pub type Cell<S> = RefCell<Guest<S>>;

    /// The version of the interface.
    pub fn interface() -> u32 {
        INTERFACE
    }

    /// Address and length of the description.
    pub fn describe<S: Scheduler>() -> u64 {
        let text: &'static str = described::text(&S::INFO).leak();
        (text.as_ptr().addr() as u64) << 32 | text.len() as u64
    }

    /// The address of the mailbox.
    pub fn mailbox() -> u32 {
        mailbox::address()
    }

    /// A tunable's value, before `new`.
    pub fn set<S: Scheduler>(cell: &Cell<S>, index: u32, value: i64) {
        cell.borrow_mut().settings.set(index as usize, value);
    }

    /// The scheduler begins.
    pub fn new<S: Scheduler>(cell: &Cell<S>, limits: [u32; 7]) {
        panic::set_hook(Box::new(|panic| mailbox::set_message(panic.to_string())));
        let [rotational, queue_depth, hw_queues, nr_requests, max_sectors, cpus, hz] = limits;
        let rotational = rotational != 0;
        let limits = Limits { rotational, queue_depth, hw_queues, nr_requests, max_sectors, cpus, hz };
        let mut guest = cell.borrow_mut();
        let scheduler = S::new(&guest.settings, &limits);
        mailbox::set_least_depth(scheduler.least_depth());
        mailbox::set_timer(scheduler.next_timer().0);
        guest.limits = limits;
        guest.scheduler = Some(scheduler);
    }

    /// A request enters.
    #[expect(clippy::too_many_arguments, reason = "a request as numbers")]
    pub fn insert<S: Scheduler>(
        cell: &Cell<S>,
        now: u64,
        in_flight: u32,
        id: u32,
        flags: u32,
        place: u32,
        sector: u64,
        sectors: u32,
        process: u32,
        inserted: u64,
    ) {
        let mut guest = cell.borrow_mut();
        let request = Request {
            op: op(flags),
            sector: Sector(sector),
            sectors,
            sync: flags & 4 != 0,
            fua: flags & 8 != 0,
            idle: flags & 16 != 0,
            process: ProcessId(process),
            prio: prio(flags),
            cpu: (place >> 16) as u16,
            hw_queue: place as u16,
            inserted: Nanos(inserted),
        };
        guest.requests.put(RequestId(id), request);
        guest.call(now, in_flight, |scheduler, queue| scheduler.insert(queue, RequestId(id)));
    }

    /// The next request; -1 for none.
    pub fn dispatch<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, hw_queue: u32) -> i64 {
        let mut guest = cell.borrow_mut();
        number(guest.call(now, in_flight, |scheduler, queue| scheduler.dispatch(queue, hw_queue as u16)))
    }

    /// A request has completed.
    pub fn completed<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, id: u32) {
        let mut guest = cell.borrow_mut();
        guest.call(now, in_flight, |scheduler, queue| scheduler.completed(queue, RequestId(id)));
    }

    /// A waiting request has grown.
    pub fn grown<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, id: u32, sector: u64, sectors: u32) {
        let mut guest = cell.borrow_mut();
        let id = RequestId(id);
        let request = guest.requests.change(id);
        let old_sector = request.sector;
        request.sector = Sector(sector);
        request.sectors = sectors;
        guest.call(now, in_flight, |scheduler, queue| scheduler.bio_merged(queue, id, old_sector));
    }

    /// `gone` was appended to `kept`.
    pub fn joined<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, kept: u32, gone: u32) {
        let mut guest = cell.borrow_mut();
        let (kept, gone) = (RequestId(kept), RequestId(gone));
        guest.call(now, in_flight, |scheduler, queue| scheduler.requests_merged(queue, kept, gone));
        let Request { sectors, inserted, .. } = guest.requests[gone];
        let request = guest.requests.change(kept);
        request.sectors += sectors;
        request.inserted = request.inserted.min(inserted);
    }

    /// The request that begins after a bio; -1 for none.
    pub fn front<S: Scheduler>(
        cell: &Cell<S>,
        now: u64,
        in_flight: u32,
        flags: u32,
        sector: u64,
        sectors: u32,
        process: u32,
    ) -> i64 {
        let bio = bio(flags, sector, sectors, process);
        let mut guest = cell.borrow_mut();
        number(guest.call(now, in_flight, |scheduler, queue| scheduler.front(queue, &bio)))
    }

    /// Whether a bio may be merged into the request.
    #[expect(clippy::too_many_arguments, reason = "a bio as numbers")]
    pub fn allows<S: Scheduler>(
        cell: &Cell<S>,
        now: u64,
        in_flight: u32,
        id: u32,
        flags: u32,
        sector: u64,
        sectors: u32,
        process: u32,
    ) -> u32 {
        let bio = bio(flags, sector, sectors, process);
        let mut guest = cell.borrow_mut();
        let id = RequestId(id);
        guest.call(now, in_flight, |scheduler, queue| scheduler.allows_merge(queue, id, &bio)).into()
    }

    /// The request beside a request; -1 for none.
    pub fn neighbour<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, id: u32, after: u32) -> i64 {
        let mut guest = cell.borrow_mut();
        let id = RequestId(id);
        number(guest.call(now, in_flight, |scheduler, queue| scheduler.neighbour(queue, id, after != 0)))
    }

    /// See [`Scheduler::depth_limit`].
    pub fn depth_limit<S: Scheduler>(
        cell: &Cell<S>,
        now: u64,
        in_flight: u32,
        process: u32,
        flags: u32,
    ) -> u32 {
        let mut guest = cell.borrow_mut();
        let (op, sync, process) = (op(flags), flags & 4 != 0, ProcessId(process));
        guest.call(now, in_flight, |scheduler, queue| scheduler.depth_limit(queue, process, op, sync))
    }

    /// See [`Scheduler::timer`].
    pub fn timer<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32) -> u32 {
        let mut guest = cell.borrow_mut();
        guest.call(now, in_flight, |scheduler, queue| scheduler.timer(queue)).into()
    }

    /// A process has exited.
    pub fn exited<S: Scheduler>(cell: &Cell<S>, now: u64, in_flight: u32, process: u32) {
        let mut guest = cell.borrow_mut();
        guest.call(now, in_flight, |scheduler, queue| scheduler.process_exited(queue, ProcessId(process)));
    }

    fn number(id: Option<RequestId>) -> i64 {
        id.map_or(-1, |id| i64::from(id.0))
    }

    fn bio(flags: u32, sector: u64, sectors: u32, process: u32) -> Bio {
        Bio {
            op: op(flags),
            sector: Sector(sector),
            sectors,
            sync: flags & 4 != 0,
            process: ProcessId(process),
            prio: prio(flags),
        }
    }

    /// Bits 0 and 1.
    fn op(flags: u32) -> Op {
        match flags & 3 {
            0 => Op::Read,
            1 => Op::Write,
            _ => Op::Discard,
        }
    }

    /// Bits 8 and 9, and from bit 16 on.
    fn prio(flags: u32) -> IoPrio {
        let class = match flags >> 8 & 3 {
            0 => PrioClass::None,
            1 => PrioClass::RealTime,
            2 => PrioClass::BestEffort,
            _ => PrioClass::Idle,
        };
        IoPrio { class, level: (flags >> 16) as u8 }
    }
}

/// Makes a plug-in of a [`Scheduler`]: `blklab_plugin::plugin!(Sstf);`, once in a crate.
#[macro_export]
macro_rules! plugin {
    ($scheduler:ty) => {
        /// The calls of blklab.
        #[allow(missing_docs, clippy::too_many_arguments)]
        mod blklab_exports {
            use super::*;
            use $crate::exported as e;

            std::thread_local! {
                static GUEST: e::Cell<$scheduler> = std::default::Default::default();
            }

            $crate::exports! { GUEST, $scheduler;
                insert(in_flight: u32, id: u32, flags: u32, place: u32, sector: u64, sectors: u32,
                    process: u32, inserted: u64);
                dispatch(in_flight: u32, hw_queue: u32) -> i64;
                completed(in_flight: u32, id: u32);
                grown(in_flight: u32, id: u32, sector: u64, sectors: u32);
                joined(in_flight: u32, kept: u32, gone: u32);
                front(in_flight: u32, flags: u32, sector: u64, sectors: u32, process: u32) -> i64;
                allows(in_flight: u32, id: u32, flags: u32, sector: u64, sectors: u32, process: u32) -> u32;
                neighbour(in_flight: u32, id: u32, after: u32) -> i64;
                depth_limit(in_flight: u32, process: u32, flags: u32) -> u32;
                timer(in_flight: u32) -> u32;
                exited(in_flight: u32, process: u32);
            }

            #[unsafe(export_name = "blklab_interface")]
            extern "C" fn interface() -> u32 {
                e::interface()
            }

            #[unsafe(export_name = "blklab_describe")]
            extern "C" fn describe() -> u64 {
                e::describe::<$scheduler>()
            }

            #[unsafe(export_name = "blklab_mailbox")]
            extern "C" fn mailbox() -> u32 {
                e::mailbox()
            }

            #[unsafe(export_name = "blklab_set")]
            extern "C" fn set(index: u32, value: i64) {
                GUEST.with(|guest| e::set(guest, index, value));
            }

            #[unsafe(export_name = "blklab_new")]
            extern "C" fn new(
                rotational: u32,
                queue_depth: u32,
                hw_queues: u32,
                nr_requests: u32,
                max_sectors: u32,
                cpus: u32,
                hz: u32,
            ) {
                let limits = [rotational, queue_depth, hw_queues, nr_requests, max_sectors, cpus, hz];
                GUEST.with(|guest| e::new(guest, limits));
            }
        }
    };
}

/// Each call that has a time.
#[doc(hidden)]
#[macro_export]
macro_rules! exports {
    ($guest:ident, $scheduler:ty; $($name:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $(
            #[unsafe(export_name = concat!("blklab_", stringify!($name)))]
            extern "C" fn $name(now: u64, $($arg: $type),*) $(-> $answer)? {
                $guest.with(|guest| e::$name(guest, now, $($arg),*))
            }
        )*
    };
}
