//! Options of a section before dependent options are resolved.

use super::super::value::KbBase;
use crate::request::{IoPrio, PrioClass};
use crate::units::{Bytes, Nanos};
use crate::workload::error::Problem;
use crate::workload::spec::*;

/// fio's default `percentile_list`.
pub const PERCENTILES: [f64; 17] =
    [1., 5., 10., 20., 30., 40., 50., 60., 70., 80., 90., 95., 99., 99.5, 99.9, 99.95, 99.99];

/// All options read for a section so far. It starts with fio's defaults; each section starts with
/// the values of the `[global]` sections before it.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Options that depend on no others.
    pub(super) spec: JobSpec,
    pub(super) kb_base: KbBase,
    pub(super) name: Option<String>,
    pub(super) new_group: bool,
    pub(super) block: PerDirection<u32>,
    pub(super) block_range: PerDirection<Option<(u32, u32)>>,
    pub(super) block_split: PerDirection<Option<Vec<(u32, u32)>>>,
    pub(super) unaligned: bool,
    pub(super) align: PerDirection<Option<u32>>,
    pub(super) no_random_map: bool,
    pub(super) lfsr: bool,
    pub(super) think_blocks: Option<u32>,
    pub(super) rate_bytes: PerDirection<u64>,
    pub(super) rate_ios: PerDirection<u64>,
    pub(super) prio_class: u64,
    pub(super) prio: Option<u64>,
    pub(super) raised_class: PerDirection<u64>,
    pub(super) raised_prio: PerDirection<u64>,
    pub(super) exit_all: bool,
    pub(super) exit_what: ExitWhat,
    /// The engine is not simulated and was left out; so are its options.
    pub(super) engine_left_out: bool,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            spec: fio_defaults(),
            kb_base: KbBase::Compatible,
            name: None,
            new_group: false,
            block: PerDirection::all(4096),
            block_range: PerDirection::default(),
            block_split: PerDirection::default(),
            unaligned: false,
            align: PerDirection::default(),
            no_random_map: false,
            lfsr: false,
            think_blocks: None,
            rate_bytes: PerDirection::default(),
            rate_ios: PerDirection::default(),
            prio_class: 0,
            prio: None,
            raised_class: PerDirection::default(),
            raised_prio: PerDirection::default(),
            exit_all: false,
            exit_what: ExitWhat::Group,
            engine_left_out: false,
        }
    }
}

impl Draft {
    /// The current engine.
    pub fn engine(&self) -> Engine {
        self.spec.queueing.engine
    }

    /// Continues without the requested engine.
    pub fn leave_engine_out(&mut self) {
        self.engine_left_out = true;
    }

    /// See [`Draft::leave_engine_out`].
    pub fn is_engine_left_out(&self) -> bool {
        self.engine_left_out
    }

    /// A reporting group begins with this job.
    pub fn starts_group(&self) -> bool {
        self.new_group || self.spec.timing.stonewall
    }

    /// Resolves values that depend on several options (fio's `fixup_options()`). `section` is the
    /// name of a job without `name`.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub fn settle(
        self,
        section: &str,
        line: u32,
        group: u32,
        given: Vec<(String, String)>,
    ) -> Result<JobSpec, Problem> {
        let mut spec = self.spec;
        spec.name = self.name.unwrap_or_else(|| section.to_owned());
        spec.line = line;
        spec.group = group;
        spec.given = given;
        let refuse = |what: &str| Err(Problem::Job { job: spec.name.clone(), what: what.to_owned() });

        let access = &mut spec.access;
        let mut aligned_differently = false;
        for direction in Direction::ALL {
            let sizes = match (&self.block_split[direction], self.block_range[direction]) {
                (Some(split), _) => BlockSizes::Split(split.clone()),
                (None, Some((min, max))) if min != max => {
                    BlockSizes::Range { min, max, unaligned: self.unaligned }
                }
                (None, Some((bytes, _))) => BlockSizes::Fixed(bytes),
                (None, None) => BlockSizes::Fixed(self.block[direction]),
            };
            let smallest = sizes.min();
            let align = self.align[direction].filter(|_| access.rw.is_random()).unwrap_or(smallest);
            aligned_differently |= align != smallest;
            access.block_sizes[direction] = sizes;
            access.align[direction] = align;
        }
        access.random_map = access.rw.is_random()
            && access.distribution == Distribution::Random
            && !aligned_differently
            && (self.lfsr || !self.no_random_map);

        for direction in Direction::ALL {
            spec.rate.limit[direction] = match (self.rate_bytes[direction], self.rate_ios[direction]) {
                (0, 0) => RateLimit::Unlimited,
                (bytes, 0) => RateLimit::BytesPerSecond(bytes),
                (0, ios) => RateLimit::IosPerSecond(ios),
                _ => return refuse("rate and rate_iops exclude each other"),
            };
        }
        let any = |rates: &PerDirection<u64>| Direction::ALL.iter().any(|d| rates[*d] > 0);
        if any(&self.rate_bytes) && any(&self.rate_ios) {
            return refuse("rate and rate_iops exclude each other");
        }

        if spec.queueing.direct {
            let sector = crate::units::SECTOR_BYTES;
            let odd = |sizes: &BlockSizes| match sizes {
                BlockSizes::Range { unaligned: true, .. } => true,
                BlockSizes::Split(split) => split.iter().any(|(size, _)| u64::from(*size) % sector != 0),
                sizes => u64::from(sizes.min()) % sector != 0,
            };
            if Direction::ALL.iter().any(|d| odd(&spec.access.block_sizes[*d])) {
                return refuse("direct=1 needs block sizes that are multiples of 512 bytes");
            }
        }

        if let Some(Extent::Bytes(size)) = spec.files.size {
            let access = &spec.access;
            let smallest = Direction::ALL.map(|d| access.block_sizes[d].min()).into_iter().min();
            if size.0 < u64::from(smallest.unwrap_or(0)) {
                return refuse("size is smaller than the smallest block size");
            }
        }

        let queueing = &mut spec.queueing;
        let depth = queueing.iodepth;
        let or_depth = |n: u32| if n == 0 || n > depth { depth } else { n };
        queueing.batch_submit = or_depth(queueing.batch_submit);
        queueing.low = or_depth(queueing.low);
        queueing.batch_complete_min = queueing.batch_complete_min.min(depth);
        queueing.batch_complete_max = queueing.batch_complete_max.max(queueing.batch_complete_min).min(depth);

        spec.think.spin = spec.think.spin.min(spec.think.time);
        // With thinktime_blocks' default of 1, thinktime_iotime would have no effect.
        let default_blocks = u32::from(spec.think.io_time == Nanos::ZERO);
        spec.think.blocks = self.think_blocks.map_or(default_blocks, |blocks| blocks.max(1));
        spec.timing.time_based &= spec.timing.runtime.is_some();
        spec.timing.exit = self.exit_all.then_some(self.exit_what);
        spec.priorities.base = match (self.prio_class, self.prio) {
            (0, None) => IoPrio::default(),
            // As in fio, a level without a class is a level of best effort.
            (0, Some(level)) => IoPrio { class: PrioClass::BestEffort, level: level as u8 },
            (class, level) => IoPrio { class: prio_class(class), level: level.unwrap_or(0) as u8 },
        };
        for direction in Direction::ALL {
            let class = match self.raised_class[direction] {
                0 => PrioClass::RealTime,
                class => prio_class(class),
            };
            spec.priorities.raised[direction] = IoPrio { class, level: self.raised_prio[direction] as u8 };
        }
        spec.reporting.percentiles.sort_by(f64::total_cmp);
        Ok(spec)
    }
}

/// ioprio_set(2)'s numbers.
fn prio_class(number: u64) -> PrioClass {
    match number {
        1 => PrioClass::RealTime,
        2 => PrioClass::BestEffort,
        3 => PrioClass::Idle,
        _ => PrioClass::None,
    }
}

fn fio_defaults() -> JobSpec {
    JobSpec {
        name: String::new(),
        line: 0,
        description: None,
        given: Vec::new(),
        clones: 1,
        group: 0,
        access: Access {
            rw: Rw::Read,
            ios_per_offset: 1,
            sequential_skip_bytes: 0,
            sequencer: Sequencer::Sequential,
            block_sizes: PerDirection::all(BlockSizes::Fixed(4096)),
            sizes_by_randomness: false,
            align: PerDirection::all(4096),
            percentage_random: PerDirection::all(100),
            read_percent: 50,
            distribution: Distribution::Random,
            random_map: false,
            fio_numbers: false,
            randrepeat: true,
            randseed: None,
            number_ios: None,
        },
        files: FileSet {
            names: Vec::new(),
            directories: Vec::new(),
            name_format: "$jobname.$jobnum.$filenum".to_owned(),
            count: 1,
            service: FileService::RoundRobin,
            ios_per_file: 1,
            size: None,
            io_size: None,
            file_size: None,
            offset: Extent::Bytes(Bytes(0)),
            offset_increment: Extent::Bytes(Bytes(0)),
            offset_align: None,
        },
        queueing: Queueing {
            engine: Engine::Psync,
            direct: false,
            iodepth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 0,
            low: 0,
        },
        think: Think {
            time: Nanos::ZERO,
            spin: Nanos::ZERO,
            blocks: 1,
            after: ThinkAfter::Complete,
            io_time: Nanos::ZERO,
        },
        rate: Rate::default(),
        durability: Durability::default(),
        priorities: Priorities::default(),
        membership: Membership::default(),
        timing: Timing {
            start_delay: (Nanos::ZERO, Nanos::ZERO),
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            loops: 1,
            stonewall: false,
            wait_for: None,
            exit: None,
        },
        invalidate: true,
        advice: AdviceHint::AsRw,
        drop_caches: false,
        cpus: Vec::new(),
        cpus_split: false,
        lock_memory: Bytes(0),
        reporting: Reporting {
            group_reporting: false,
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            slat_percentiles: false,
            bw_average: Nanos::from_millis(500),
            iops_average: Nanos::from_millis(500),
        },
    }
}
