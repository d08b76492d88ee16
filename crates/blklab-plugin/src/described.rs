//! A scheduler's description as text: a line for the scheduler and one for each tunable, with fields
//! between tabs.

use crate::{Generation, Info, Merges, Tunable, Unit};

/// The description.
pub fn text(info: &Info) -> String {
    let generation = match info.generation {
        Generation::SingleQueue => "single-queue",
        Generation::MultiQueue => "multi-queue",
    };
    let merges = match info.merges {
        Merges::Never => "never",
        Merges::Latest => "latest",
        Merges::Indexed => "indexed",
    };
    let lock_ns = info.lock_ns.to_string();
    let mut text = [info.name, generation, info.summary, info.follows, &lock_ns, merges].join("\t");
    for Tunable { name, unit, default, min, max, help } in info.tunables {
        let numbers = [default, min, max].map(i64::to_string);
        text.push('\n');
        text += &[name, word(*unit), &numbers[0], &numbers[1], &numbers[2], help].join("\t");
    }
    text
}

const fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Milliseconds => "ms",
        Unit::Microseconds => "us",
        Unit::Nanoseconds => "ns",
        Unit::Kibibytes => "KiB",
        Unit::Bytes => "bytes",
        Unit::Sectors => "sectors",
        Unit::Percent => "%",
        Unit::Flag => "flag",
    }
}
