//! Reads a plug-in's description of itself: a line for the scheduler and one for each tunable, with fields
//! between tabs.

use std::collections::HashSet;

use blklab_core::scheduler::plugin::{Answer, Merges};
use blklab_core::scheduler::{Generation, Info, QUEUE_TUNABLES, Tunable, Unit, registry};

/// The longest description in bytes.
pub const BYTES: usize = 64 << 10;

/// The description.
pub fn read(text: &str) -> Answer<(Info, Merges)> {
    let mut lines = text.split('\n');
    let first: Vec<_> = lines.next().unwrap_or_default().split('\t').collect();
    let [name, generation, summary, follows, lock_ns, merges] = first[..] else {
        return Err(wrong("6 fields", &first.len().to_string()));
    };
    if !is_word(name) {
        return Err(wrong("a name of letters, digits, '-' and '_'", name));
    }
    if registry::info(name).is_some() {
        return Err(format!("has the name '{name}' of one of blklab's own schedulers; expected another"));
    }
    let generation = match generation {
        "single-queue" => Generation::SingleQueue,
        "multi-queue" => Generation::MultiQueue,
        other => return Err(wrong("single-queue or multi-queue", other)),
    };
    let merges = match merges {
        "never" => Merges::Never,
        "latest" => Merges::Latest,
        "indexed" => Merges::Indexed,
        other => return Err(wrong("never, latest or indexed", other)),
    };
    let lock_ns = lock_ns.parse().ok().filter(|&ns| ns <= 1_000_000);
    let lock_ns = lock_ns.ok_or_else(|| wrong("lock_ns of 0 to 1000000", first[4]))?;
    let tunables = lines.map(tunable).collect::<Answer<Vec<_>>>()?;
    let mut names = HashSet::new();
    if let Some(twice) = tunables.iter().find(|tunable| !names.insert(tunable.name)) {
        return Err(wrong("each tunable once", twice.name));
    }
    let [name, summary, follows] = [name, summary, follows].map(kept);
    Ok((Info { name, generation, summary, follows, lock_ns, tunables: tunables.leak() }, merges))
}

fn tunable(line: &str) -> Answer<Tunable> {
    let fields: Vec<_> = line.split('\t').collect();
    let [name, unit, default, min, max, help] = fields[..] else {
        return Err(wrong("6 fields of a tunable", &fields.len().to_string()));
    };
    if !is_word(name) || QUEUE_TUNABLES.iter().any(|tunable| tunable.name == name) {
        return Err(wrong("a tunable's name that is not one of the queue's", name));
    }
    let unit = match unit {
        "count" => Unit::Count,
        "ms" => Unit::Milliseconds,
        "us" => Unit::Microseconds,
        "ns" => Unit::Nanoseconds,
        "KiB" => Unit::Kibibytes,
        "bytes" => Unit::Bytes,
        "sectors" => Unit::Sectors,
        "%" => Unit::Percent,
        "flag" => Unit::Flag,
        other => return Err(wrong("a unit", other)),
    };
    let number = |text: &str| text.parse::<i64>().map_err(|_| wrong("a whole number", text));
    let [default, min, max] = [number(default)?, number(min)?, number(max)?];
    if !(min..=max).contains(&default) {
        return Err(wrong(&format!("{name} of {min} to {max}"), &default.to_string()));
    }
    Ok(Tunable { name: kept(name), unit, default, min, max, help: kept(help) })
}

/// The simulator's tables last as long as the process.
fn kept(text: &str) -> &'static str {
    super::one_line(text).leak()
}

fn wrong(expected: &str, found: &str) -> String {
    format!("describes itself wrongly: expected {expected}, found '{}'", super::one_line(found))
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
