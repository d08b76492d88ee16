//! Schedulers and settings of the host, as they are typed on a command line.

use blklab_core::formats::host_file;
use blklab_core::host::spec::HostSpec;
use blklab_core::host::{self, Host};
use blklab_core::pagecache::{self, MemoryConfig};
use blklab_core::pairs::{pairs, pairs_with_commas};
use blklab_core::scheduler::QUEUE_TUNABLES;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::tunable::{Settings, Tunable};

use crate::check_message;

pub fn scheduler(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match SchedulerSpec::parse(text) {
        Ok(spec) => {
            let tables = [spec.info.tunables, QUEUE_TUNABLES];
            check_bounds(spec.settings.iter().chain(spec.queue.iter()), &tables);
            let all: Vec<_> = spec.values().map(|(name, value)| format!("{name}={value}")).collect();
            let again = SchedulerSpec::parse(&format!("{}:{}", spec.info.name, all.join(",")));
            let again = again.expect("what was read can be written");
            assert_eq!(again.info.name, spec.info.name);
            assert!(again.values().eq(spec.values()), "{again:?} is not {spec:?}");
        }
        Err(error) => check_message(&error, data),
    }
}

/// Lines of `NAME=VALUE`; and the same text as `--host` takes it.
pub fn host(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    as_option(text);
    let (mut host, mut memory) = (Host::settings(), MemoryConfig::settings());
    for line in text.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let of_memory = pagecache::TUNABLES.iter().any(|tunable| tunable.name == name);
        let table: &mut Settings = if of_memory { &mut memory } else { &mut host };
        if let Err(error) = table.set(name, value) {
            check_message(&error, data);
        }
    }
    check_bounds(host.iter().chain(memory.iter()), &[host::TUNABLES, pagecache::TUNABLES]);
    let made = Host::new(&host);
    assert_eq!(i64::from(made.cpus), host.get("cpus"), "a number of CPUs that was cut");
    let config = MemoryConfig::new(&memory, made.ticks, made.cpus, made.kernel);
    assert_eq!((config.memory.0 >> 10).cast_signed(), memory.get("memory_kb"));
}

/// What was read can be written, and is then the same.
fn as_option(text: &str) {
    match HostSpec::parse(text) {
        Ok(spec) => {
            let values = spec.values.iter().map(|(name, value)| format!("{name}={value}"));
            let written: Vec<_> = spec.base.clone().into_iter().chain(values).collect();
            let again = HostSpec::parse(&written.join(","));
            assert_eq!(again, Ok(spec), "{written:?}");
        }
        Err(error) => check_message(&error, text.as_bytes()),
    }
    for found in [pairs(text), pairs_with_commas(text)] {
        match found {
            Ok(found) => assert!(found.iter().all(|(name, value)| !name.is_empty() && !value.is_empty())),
            Err(error) => check_message(&error.of("it", "name=value"), text.as_bytes()),
        }
    }
}

pub fn host_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match host_file::parse(text, "host.toml") {
        Ok(values) => {
            for (name, value) in values {
                let again = host_file::check(&name, &value.to_string());
                assert_eq!(again, Ok(value), "a value that was read is good: {name}");
            }
        }
        Err(error) => {
            assert!(error.line.is_some(), "a refused file without a line: {error}");
            check_message(&error, data);
        }
    }
}

fn check_bounds(values: impl Iterator<Item = (&'static Tunable, i64)>, tables: &[&[Tunable]]) {
    let mut count = 0;
    for (tunable, value) in values {
        assert!((tunable.min..=tunable.max).contains(&value), "{} = {value}", tunable.name);
        count += 1;
    }
    assert_eq!(count, tables.iter().map(|table| table.len()).sum::<usize>(), "every tunable has a value");
}
