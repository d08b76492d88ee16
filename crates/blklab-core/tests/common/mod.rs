//! Runs of small job files on the shipped disks, for the core's integration tests.

use std::collections::BTreeMap;

use blklab_core::disk::{DiskModel, catalogue};
use blklab_core::engine::{Followed, RunError, Watch};
use blklab_core::formats::fio::jobfile::{self, Bare};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::recorder::Window;
use blklab_core::result::RunResult;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Recorded, Setup};
use blklab_core::workload::plan;

const MACHINE: Bare = Bare { memory_mib: 8192, cpus: 4 };

/// The shipped disk `name`, with overrides as `key=value`.
pub fn disk(name: &str) -> DiskModel {
    let (name, overrides) = name.split_once(':').unwrap_or((name, ""));
    let model = catalogue::model(name).expect("a shipped disk");
    overrides.split(',').filter(|piece| !piece.is_empty()).fold(model, |model, piece| {
        let (key, value) = piece.split_once('=').expect("key=value");
        model.with_override(key, value).expect("a good override")
    })
}

/// One run.
pub struct Experiment<'a> {
    pub job: &'a str,
    pub disk: &'a str,
    pub scheduler: &'a str,
    pub seed: u64,
    pub host: Host,
    pub memory: BTreeMap<&'a str, i64>,
}

impl<'a> Experiment<'a> {
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn new(job: &'a str, disk: &'a str, scheduler: &'a str) -> Experiment<'a> {
        Experiment {
            job,
            disk,
            scheduler,
            seed: 1,
            host: Host::new(&Host::settings()),
            memory: BTreeMap::new(),
        }
    }

    /// A host whose CPU work takes no time.
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn free_host(mut self) -> Self {
        self.host = Host::FREE;
        self
    }

    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn run(&self) -> RunResult {
        self.outcome().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The result, or why there is none.
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn outcome(&self) -> Result<RunResult, RunError> {
        self.run_by(|setup| simulation::run(setup, &Watch::default()))
    }

    /// The same, with every request and decision of `window`.
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn run_and_keep(&self, window: Window) -> RunResult {
        self.run_followed(Followed { window: Some(window), until: None })
    }

    /// The same, followed so.
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn run_followed(&self, followed: Followed) -> RunResult {
        self.run_by(|setup| simulation::run_followed(setup, followed, &Watch::default()))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The result, and a recording of all bios.
    #[allow(dead_code)] // Not every test file that includes this asks.
    pub fn record(&self) -> Recorded {
        self.run_by(|setup| simulation::run_and_record(setup, &Watch::default()))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn run_by<T>(&self, run: impl Fn(Setup<'_>) -> Result<T, RunError>) -> Result<T, RunError> {
        let model = disk(self.disk);
        let file = jobfile::parse(self.job, "test.fio", &mut { MACHINE }, Default::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let plan = plan::plan(&file, model.limits().capacity.to_bytes(), self.seed)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut memory = MemoryConfig::settings();
        for (name, value) in &self.memory {
            memory.set(name, &value.to_string()).expect("a good sysctl");
        }
        let scheduler = SchedulerSpec::parse(self.scheduler).expect("a good scheduler");
        let setup = Setup {
            plan: &plan,
            disk: model.build(self.seed),
            scheduler: &scheduler,
            host: self.host,
            memory: &memory,
            seed: self.seed,
        };
        run(setup)
    }
}
