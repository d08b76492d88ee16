//! A plug-in with its memory, and the calls to it.

use blklab_core::request::{Bio, IoPrio, Op, PrioClass, ProcessId, Request, RequestId};
use blklab_core::scheduler::plugin::{Answer, At, Foreign};
use blklab_core::scheduler::{QueueLimits, Settings};
use blklab_core::units::Nanos;
use wasmi::{
    Linker, Memory, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode, TypedFunc, WasmParams,
    WasmResults,
};

use super::described::BYTES;
use super::{FUEL, INTERFACE, MEMORY, one_line};

/// Bits of functions that a plug-in leaves out, as in `blklab-plugin`.
const COMPLETED: u32 = 1;
const FRONT: u32 = 2;
const ALLOWS: u32 = 4;
const NEIGHBOUR: u32 = 8;
const DEPTH_LIMIT: u32 = 16;
const EXITED: u32 = 32;

/// What is read in the plug-in's memory after a call.
#[derive(Clone, Copy)]
struct Mailbox {
    next_timer: Nanos,
    unused: u32,
    least_depth: u32,
}

/// Its memory, and the means to call.
struct Machine {
    store: Store<StoreLimits>,
    instance: wasmi::Instance,
    memory: Memory,
    mailbox: usize,
}

impl Machine {
    fn new(module: &Module) -> Answer<Machine> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MEMORY)
            .table_elements(10_000)
            .instances(1)
            .memories(1)
            .trap_on_grow_failure(true)
            .build();
        let mut store = Store::new(module.engine(), limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL).expect("fuel is on");
        let instance = Linker::new(module.engine())
            .instantiate_and_start(&mut store, module)
            .map_err(|error| format!("does not start: {}", reason(&error)))?;
        let memory = instance
            .get_memory(&store, "memory")
            .ok_or("is no plug-in of blklab: it has no memory of the name 'memory'")?;
        let mut machine = Machine { store, instance, memory, mailbox: 0 };
        let Ok(version) = machine.instance.get_typed_func::<(), u32>(&machine.store, "blklab_interface")
        else {
            return Err("is no plug-in of blklab: it has no function blklab_interface".to_owned());
        };
        let version = machine.call(&version, ())?;
        if version != INTERFACE {
            return Err(format!(
                "was built for version {version} of the interface; this blklab has version {INTERFACE}"
            ));
        }
        Ok(machine)
    }

    fn function<P: WasmParams, R: WasmResults>(&self, name: &str) -> Answer<TypedFunc<P, R>> {
        self.instance
            .get_typed_func(&self.store, name)
            .map_err(|_| format!("its function {name} is missing or has other parameters"))
    }

    /// Calls, with fresh fuel.
    #[inline]
    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        function: &TypedFunc<P, R>,
        parameters: P,
    ) -> Answer<R> {
        self.store.set_fuel(FUEL).expect("fuel is on");
        function.call(&mut self.store, parameters).map_err(|error| self.said(&error))
    }

    /// Why a call failed; of a panic, its text.
    #[cold]
    fn said(&self, error: &wasmi::Error) -> String {
        let message = self.word(16).zip(self.word(20));
        let text = message.filter(|_| self.mailbox > 0).and_then(|(at, length)| self.text(at, length));
        match text.filter(|text| !text.is_empty()) {
            Some(text) => one_line(&text),
            None => reason(error),
        }
    }

    fn text(&self, at: u32, length: u32) -> Option<String> {
        let all = self.memory.data(&self.store);
        let end = (at as usize).checked_add((length as usize).min(BYTES))?;
        Some(String::from_utf8_lossy(all.get(at as usize..end)?).into_owned())
    }

    #[inline]
    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let at = self.mailbox.checked_add(offset)?;
        self.memory.data(&self.store).get(at..at.checked_add(N)?)?.try_into().ok()
    }

    #[inline]
    fn word(&self, offset: usize) -> Option<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }

    #[inline]
    fn read(&self) -> Answer<Mailbox> {
        let all = self.bytes::<8>(0).zip(self.word(8)).zip(self.word(12));
        let ((next_timer, unused), least_depth) = all.ok_or("its mailbox is outside its memory")?;
        let next_timer = Nanos(u64::from_le_bytes(next_timer));
        Ok(Mailbox { next_timer, unused, least_depth })
    }
}

/// Why WebAssembly stopped, in a few words.
fn reason(error: &wasmi::Error) -> String {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => format!("a call did not end within {FUEL} instructions"),
        Some(TrapCode::GrowthOperationLimited) => {
            format!("it asked for more than {} MiB of memory", MEMORY >> 20)
        }
        Some(code) => format!("it stopped: {code}"),
        None => one_line(&error.to_string()),
    }
}

/// A request as numbers, after the time and the requests in flight.
type Insert = (u64, u32, u32, u32, u32, u64, u32, u32, u64);
/// A request's number and a bio, after those.
type Allows = (u64, u32, u32, u32, u64, u32, u32);

/// The exported functions; the first parameters of each are the time and the requests in flight.
struct Functions {
    insert: TypedFunc<Insert, ()>,
    dispatch: TypedFunc<(u64, u32, u32), i64>,
    completed: TypedFunc<(u64, u32, u32), ()>,
    grown: TypedFunc<(u64, u32, u32, u64, u32), ()>,
    joined: TypedFunc<(u64, u32, u32, u32), ()>,
    front: TypedFunc<(u64, u32, u32, u64, u32, u32), i64>,
    allows: TypedFunc<Allows, u32>,
    neighbour: TypedFunc<(u64, u32, u32, u32), i64>,
    depth_limit: TypedFunc<(u64, u32, u32, u32), u32>,
    timer: TypedFunc<(u64, u32), u32>,
    exited: TypedFunc<(u64, u32, u32), ()>,
}

impl Functions {
    fn of(machine: &Machine) -> Answer<Functions> {
        Ok(Functions {
            insert: machine.function("blklab_insert")?,
            dispatch: machine.function("blklab_dispatch")?,
            completed: machine.function("blklab_completed")?,
            grown: machine.function("blklab_grown")?,
            joined: machine.function("blklab_joined")?,
            front: machine.function("blklab_front")?,
            allows: machine.function("blklab_allows")?,
            neighbour: machine.function("blklab_neighbour")?,
            depth_limit: machine.function("blklab_depth_limit")?,
            timer: machine.function("blklab_timer")?,
            exited: machine.function("blklab_exited")?,
        })
    }
}

/// A plug-in on a queue.
pub struct Instance {
    machine: Machine,
    functions: Functions,
    mailbox: Mailbox,
}

impl Instance {
    /// The text with which the plug-in describes itself.
    pub fn describe(module: &Module) -> Answer<String> {
        let mut machine = Machine::new(module)?;
        Functions::of(&machine)?;
        for function in ["blklab_set", "blklab_new"] {
            let there = machine.instance.get_func(&machine.store, function);
            there.ok_or_else(|| format!("its function {function} is missing"))?;
        }
        let describe = machine.function::<(), u64>("blklab_describe")?;
        let place = machine.call(&describe, ())?;
        let (at, length) = ((place >> 32) as u32, place as u32);
        let text = machine.text(at, length).filter(|_| length as usize <= BYTES);
        text.ok_or_else(|| "has its description outside its memory".to_owned())
    }

    /// The plug-in with these settings.
    pub fn begin(module: &Module, settings: &Settings, limits: &QueueLimits) -> Answer<Instance> {
        let mut machine = Machine::new(module)?;
        let functions = Functions::of(&machine)?;
        let mailbox = machine.function::<(), u32>("blklab_mailbox")?;
        machine.mailbox = machine.call(&mailbox, ())? as usize;
        let set = machine.function::<(u32, i64), ()>("blklab_set")?;
        for (index, (_, value)) in (0..).zip(settings.iter()) {
            machine.call(&set, (index, value))?;
        }
        let new = machine.function::<(u32, u32, u32, u32, u32, u32, u32), ()>("blklab_new")?;
        let QueueLimits { rotational, queue_depth, hw_queues, nr_requests, max_sectors, cpus, .. } = *limits;
        let (rotational, hw_queues, hz) = (rotational.into(), hw_queues.into(), limits.ticks.hz() as u32);
        let given = (rotational, queue_depth, hw_queues, nr_requests, max_sectors, cpus.into(), hz);
        machine.call(&new, given)?;
        let mailbox = machine.read()?;
        Ok(Instance { machine, functions, mailbox })
    }

    #[inline]
    fn leaves_out(&self, bit: u32) -> bool {
        self.mailbox.unused & bit != 0
    }

    /// After a call.
    #[inline]
    fn look(&mut self) -> Answer<()> {
        self.mailbox = Mailbox { least_depth: self.mailbox.least_depth, ..self.machine.read()? };
        Ok(())
    }
}

/// Calls the function and reads the mailbox.
macro_rules! call {
    ($self:ident.$name:ident($($parameter:expr),*)) => {{
        let answer = $self.machine.call(&$self.functions.$name, ($($parameter),*))?;
        $self.look()?;
        answer
    }};
}

/// The flags of a request or a bio.
fn flags(op: Op, sync: bool, fua: bool, idle: bool, prio: IoPrio) -> u32 {
    let op = match op {
        Op::Read => 0,
        Op::Write | Op::Flush => 1,
        Op::Discard => 2,
    };
    let class = match prio.class {
        PrioClass::None => 0,
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
    };
    op | u32::from(sync) << 2
        | u32::from(fua) << 3
        | u32::from(idle) << 4
        | class << 8
        | u32::from(prio.level) << 16
}

/// A request's number; negative for none. One that no request can have stays one.
fn number(answer: i64) -> Option<u32> {
    (answer >= 0).then(|| u32::try_from(answer).unwrap_or(u32::MAX))
}

impl Foreign for Instance {
    fn insert(&mut self, at: At, id: RequestId, request: &Request) -> Answer<()> {
        let Request { op, sync, fua, idle, prio, cpu, hw_queue, .. } = *request;
        let flags = flags(op, sync, fua, idle, prio);
        let place = u32::from(cpu) << 16 | u32::from(hw_queue);
        let Request { sector, sectors, process, inserted, .. } = *request;
        call!(self.insert(
            at.now.0,
            at.in_flight,
            id.0,
            flags,
            place,
            sector.0,
            sectors,
            process.0,
            inserted.0
        ));
        Ok(())
    }

    fn dispatch(&mut self, at: At, hw_queue: u16) -> Answer<Option<u32>> {
        Ok(number(call!(self.dispatch(at.now.0, at.in_flight, u32::from(hw_queue)))))
    }

    fn completed(&mut self, at: At, id: RequestId) -> Answer<()> {
        if !self.leaves_out(COMPLETED) {
            call!(self.completed(at.now.0, at.in_flight, id.0));
        }
        Ok(())
    }

    fn grown(&mut self, at: At, id: RequestId, request: &Request) -> Answer<()> {
        call!(self.grown(at.now.0, at.in_flight, id.0, request.sector.0, request.sectors));
        Ok(())
    }

    fn joined(&mut self, at: At, kept: RequestId, gone: RequestId) -> Answer<()> {
        call!(self.joined(at.now.0, at.in_flight, kept.0, gone.0));
        Ok(())
    }

    fn front(&mut self, at: At, bio: &Bio) -> Answer<Option<u32>> {
        if self.leaves_out(FRONT) {
            return Ok(None);
        }
        let flags = flags(bio.op, bio.sync, bio.fua, bio.idle, bio.prio);
        let answer =
            call!(self.front(at.now.0, at.in_flight, flags, bio.sector.0, bio.sectors, bio.process.0));
        Ok(number(answer))
    }

    fn allows(&mut self, at: At, id: RequestId, bio: &Bio) -> Answer<bool> {
        if self.leaves_out(ALLOWS) {
            return Ok(true);
        }
        let flags = flags(bio.op, bio.sync, bio.fua, bio.idle, bio.prio);
        let (sector, process) = (bio.sector.0, bio.process.0);
        let answer = call!(self.allows(at.now.0, at.in_flight, id.0, flags, sector, bio.sectors, process));
        Ok(answer != 0)
    }

    fn neighbour(&mut self, at: At, id: RequestId, after: bool) -> Answer<Option<u32>> {
        if self.leaves_out(NEIGHBOUR) {
            return Ok(None);
        }
        Ok(number(call!(self.neighbour(at.now.0, at.in_flight, id.0, u32::from(after)))))
    }

    fn depth_limit(&mut self, at: At, process: ProcessId, op: Op, sync: bool) -> Answer<u32> {
        if self.leaves_out(DEPTH_LIMIT) {
            return Ok(u32::MAX);
        }
        let flags = flags(op, sync, false, false, IoPrio::default());
        Ok(call!(self.depth_limit(at.now.0, at.in_flight, process.0, flags)))
    }

    fn least_depth(&self) -> u32 {
        self.mailbox.least_depth
    }

    fn next_timer(&self) -> Nanos {
        self.mailbox.next_timer
    }

    fn timer(&mut self, at: At) -> Answer<bool> {
        Ok(call!(self.timer(at.now.0, at.in_flight)) != 0)
    }

    fn exited(&mut self, at: At, process: ProcessId) -> Answer<()> {
        if !self.leaves_out(EXITED) {
            call!(self.exited(at.now.0, at.in_flight, process.0));
        }
        Ok(())
    }
}
