//! All schedulers, by name. One line each; dispatch is static.

use std::marker::PhantomData;

use super::journal::Journal;
use super::plugin::{Fault, Plugin};
use super::spec::SchedulerSpec;
use super::{Info, Merge, Queue, QueueLimits, Scheduler, Settings, Tasks, Tunable, Unit};
use crate::request::{Bio, Op, ProcessId, RequestId};
use crate::units::{Nanos, Sector};

macro_rules! schedulers {
    ($($variant:ident => $type:ty),+ $(,)?) => {
        /// Any scheduler, chosen by name.
        // One exists for a whole run: a box would only add an indirection to each call.
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler {
            $(#[allow(missing_docs)] $variant($type),)+
            /// One from outside; in a box, since it is rare and its size should not be that of all.
            Plugin(Box<Plugin>),
        }

        /// Every scheduler's description, in the registry's order.
        pub const ALL: &[Info] = &[$(<$type as Scheduler>::INFO),+];

        /// The host's tunable `lock_ns.NAME` of every scheduler, in the same order.
        pub const LOCKS: &[Tunable] = &[$(Cost::<$type>::LOCK),+];

        /// Calls `$call` on the current scheduler.
        macro_rules! each {
            ($self:expr, $s:ident => $call:expr) => {
                match $self { $(AnyScheduler::$variant($s) => $call,)+ AnyScheduler::Plugin($s) => $call }
            };
        }

        impl AnyScheduler {
            /// The scheduler of that name, or `None` if there is none; not a plug-in.
            pub fn new(
                name: &str,
                settings: &Settings,
                limits: &QueueLimits,
                tasks: &Tasks,
            ) -> Option<AnyScheduler> {
                $(if name == <$type as Scheduler>::INFO.name {
                    return Some(AnyScheduler::$variant(<$type as Scheduler>::new(settings, limits, tasks)));
                })+
                None
            }
        }
    };
}

schedulers! {
    None => super::none::NoScheduler,
    Noop => super::noop::Noop,
    Deadline => super::deadline::Deadline,
    MqDeadline => super::mq_deadline::MqDeadline,
    Kyber => super::kyber::Kyber,
    Cfq => super::cfq::Cfq,
    Bfq => super::bfq::Bfq,
    Bfq2008 => super::bfq_2008::Bfq2008,
    Cfq2008 => super::cfq_2008::Cfq2008,
}

/// What a scheduler costs its host.
struct Cost<S>(PhantomData<S>);

impl<S: Scheduler> Cost<S> {
    const BYTES: &'static [u8] = &{
        let mut bytes = [0; NAME_BYTES];
        let (before, name) = (LOCK.as_bytes(), S::INFO.name.as_bytes());
        let mut index = 0;
        while index < before.len() + name.len() {
            bytes[index] = if index < before.len() { before[index] } else { name[index - before.len()] };
            index += 1;
        }
        bytes
    };

    const LOCK: Tunable = Tunable {
        name: match std::str::from_utf8(Self::BYTES.split_at(LOCK.len() + S::INFO.name.len()).0) {
            Ok(name) => name,
            Err(_) => panic!("two texts make one text"),
        },
        unit: Unit::Nanoseconds,
        default: S::INFO.lock_ns as i64,
        min: 0,
        max: 1_000_000,
        help: "CPU time of one I/O under this scheduler's lock",
    };
}

/// The beginning of the name of a scheduler's cost.
const LOCK: &str = "lock_ns.";
/// The longest such name.
const NAME_BYTES: usize = 64;

/// The description of any scheduler.
trait Described {
    fn described(&self) -> &'static Info;
}

impl<S: Scheduler> Described for S {
    #[inline]
    fn described(&self) -> &'static Info {
        const { &S::INFO }
    }
}

/// The description of the scheduler called `name`.
pub fn info(name: &str) -> Option<&'static Info> {
    ALL.iter().find(|info| info.name == name)
}

impl AnyScheduler {
    /// The scheduler of a specification.
    ///
    /// # Panics
    /// If the specification names no scheduler: it was not made by [`SchedulerSpec::parse`] and the like.
    pub fn of(spec: &SchedulerSpec, limits: &QueueLimits, tasks: &Tasks) -> AnyScheduler {
        match &spec.plugin {
            Some(made) => {
                AnyScheduler::Plugin(Box::new(Plugin::new(spec.info, made, &spec.settings, limits)))
            }
            None => AnyScheduler::new(spec.info.name, &spec.settings, limits, tasks)
                .expect("a specification names a scheduler of the registry"),
        }
    }

    /// What a plug-in did wrong.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            AnyScheduler::Plugin(plugin) => plugin.fault(),
            _ => None,
        }
    }

    /// The scheduler's own description.
    pub fn info(&self) -> &'static Info {
        each!(self, s => s.described())
    }

    /// See [`Scheduler::find_merge`].
    #[inline]
    pub fn find_merge(&mut self, queue: &Queue<'_>, bio: &Bio) -> Option<Merge> {
        each!(self, s => s.find_merge(queue, bio))
    }

    /// See [`Scheduler::bio_merged`].
    #[inline]
    pub fn bio_merged(&mut self, queue: &Queue<'_>, merge: Merge, old_sector: Sector) {
        each!(self, s => s.bio_merged(queue, merge, old_sector));
    }

    /// See [`Scheduler::neighbour`].
    #[inline]
    pub fn neighbour(&self, queue: &Queue<'_>, id: RequestId, after: bool) -> Option<RequestId> {
        each!(self, s => s.neighbour(queue, id, after))
    }

    /// See [`Scheduler::requests_merged`].
    #[inline]
    pub fn requests_merged(&mut self, queue: &Queue<'_>, kept: RequestId, gone: RequestId) {
        each!(self, s => s.requests_merged(queue, kept, gone));
    }

    /// See [`Scheduler::find_join`].
    #[inline]
    pub fn find_join(&mut self, queue: &Queue<'_>, id: RequestId) -> Option<RequestId> {
        each!(self, s => s.find_join(queue, id))
    }

    /// See [`Scheduler::insert`].
    #[inline]
    pub fn insert(&mut self, queue: &Queue<'_>, id: RequestId) {
        each!(self, s => s.insert(queue, id));
    }

    /// See [`Scheduler::insert_first`].
    pub fn insert_first(&mut self, queue: &Queue<'_>, id: RequestId) -> bool {
        each!(self, s => s.insert_first(queue, id))
    }

    /// See [`Scheduler::dispatch`].
    #[inline]
    pub fn dispatch(&mut self, queue: &Queue<'_>, hw_queue: u16) -> Option<RequestId> {
        each!(self, s => s.dispatch(queue, hw_queue))
    }

    /// See [`Scheduler::is_settled`].
    #[inline]
    pub fn is_settled(&self, now: Nanos) -> bool {
        each!(self, s => s.is_settled(now))
    }

    /// See [`Scheduler::completed`].
    #[inline]
    pub fn completed(&mut self, queue: &Queue<'_>, id: RequestId) {
        each!(self, s => s.completed(queue, id));
    }

    /// See [`Scheduler::flush_ended`].
    pub fn flush_ended(&mut self, queue: &Queue<'_>, since: Nanos) {
        each!(self, s => s.flush_ended(queue, since));
    }

    /// See [`Scheduler::woken`].
    #[inline]
    pub fn woken(&mut self) -> Option<u16> {
        each!(self, s => s.woken())
    }

    /// See [`Scheduler::depth_limit`].
    #[inline(always)]
    pub fn depth_limit(&self, queue: &Queue<'_>, process: ProcessId, op: Op, sync: bool) -> u32 {
        each!(self, s => s.depth_limit(queue, process, op, sync))
    }

    /// See [`Scheduler::least_depth`].
    pub fn least_depth(&self) -> u32 {
        each!(self, s => s.least_depth())
    }

    /// See [`Scheduler::next_timer`].
    #[inline]
    pub fn next_timer(&self) -> Nanos {
        each!(self, s => s.next_timer())
    }

    /// See [`Scheduler::timer`].
    #[inline]
    pub fn timer(&mut self, queue: &Queue<'_>) -> bool {
        each!(self, s => s.timer(queue))
    }

    /// See [`Scheduler::has_work`].
    #[inline]
    pub fn has_work(&self, hw_queue: u16) -> bool {
        each!(self, s => s.has_work(hw_queue))
    }

    /// See [`Scheduler::waiting`].
    #[inline]
    pub fn waiting(&self) -> usize {
        each!(self, s => s.waiting())
    }

    /// See [`Scheduler::process_exited`].
    pub fn process_exited(&mut self, queue: &Queue<'_>, process: ProcessId) {
        each!(self, s => s.process_exited(queue, process));
    }

    /// See [`Scheduler::journal`].
    pub fn journal(&mut self) -> Option<&mut Journal> {
        each!(self, s => s.journal())
    }
}
