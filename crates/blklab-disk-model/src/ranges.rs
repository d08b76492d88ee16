//! The ranges of estimated parameters.
//!
//! A value is an estimate if its comment begins with `estimate` or if the file leaves it to the default. Its
//! range is the first of: the range in the file's `[ranges]`; for a value that was chosen from a calibrated
//! figure, that figure's tolerance; the rule for its key below; the rule for its unit.

use std::{fmt, ptr};

use toml::Spanned;
use toml::de::DeValue;

use super::file::{File, fields, number, other, unknown};
use super::independence::names_value;
use super::keys::{Allowed, CONSTANT_KEYS, Key, Value, Values};
use super::published::{Published, is_estimate};
use blklab_base::input_error::InputError;

/// The width of a range in [`RULES`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// No range: the value is fixed.
    Fixed,
    /// From the value divided by this factor to the value multiplied by it.
    Times(f64),
    /// From the first number to the second if the value lies between them; otherwise a factor of two for an
    /// estimate, and no range for a default.
    Between(f64, f64),
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Fixed => write!(f, "none"),
            Spread::Times(factor) => write!(f, "value / {factor} to value x {factor}"),
            Spread::Between(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

/// The range of some keys, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The keys; empty for all keys with this `unit` that no other rule names.
    pub keys: &'static [&'static str],
    /// The unit, in a rule without keys.
    pub unit: &'static str,
    /// The width of the range.
    pub spread: Spread,
    /// The reason for this width.
    pub why: &'static str,
}

const fn rule(keys: &'static [&'static str], spread: Spread, why: &'static str) -> Rule {
    Rule { keys, unit: "", spread, why }
}

const fn of_unit(unit: &'static str, spread: Spread, why: &'static str) -> Rule {
    Rule { keys: &[], unit, spread, why }
}

use Spread::{Between, Fixed, Times};

/// All rules; the first that fits applies.
pub static RULES: &[Rule] = &[
    rule(
        &[
            "capacity_sectors",
            "logical_block_bytes",
            "physical_block_bytes",
            "queue_depth",
            "hw_queues",
            "max_hw_sectors_kib",
            "heads",
            "sparing_cylinders",
            "channels",
            "dies_per_channel",
            "planes",
            "page_kib",
            "pages_per_block",
            "mapping_unit_kib",
            "fill_percent",
        ],
        Fixed,
        "structure, or what the disk reports to the host: another number means another disk",
    ),
    rule(
        &["outer_sectors_per_track", "inner_sectors_per_track", "link_mb_s", "link_write_mb_s"],
        Times(1.05),
        "published rates are accurate to some 5 %",
    ),
    rule(&["rpm"], Times(1.01), "spindles keep their speed within 1 %"),
    rule(
        &["seek_average_ms", "read_us", "program_us", "slc_program_us"],
        Times(1.1),
        "drives of one class differ by some 10 %",
    ),
    rule(
        &["ncq_plan"],
        Between(4.0, 8.0),
        "shortest waits of two measured drives at 32 in flight: WD Raptor, Samsung F1",
    ),
    rule(
        &["ncq_look_ahead_percent"],
        Between(40.0, 60.0),
        "gain and p99 over mean of the same two drives at 16 and 32 in flight",
    ),
    rule(&["ncq_batch"], Between(8.0, 16.0), "11 on the one drive that is known to take batches, Samsung F1"),
    rule(&["ncq_ageing"], Between(0.0, 0.02), "keeps p99 at 2.2 to 4.2 times the mean at 32 in flight"),
    rule(&["ncq_deadline_ms"], Between(1_000.0, 4_000.0), "1 to 4 s by model (A. Motin, OpenZFS 6f5aac3c)"),
    rule(&["ncq_deadline_batch"], Between(8.0, 30.0), "about 15 on the one drive examined"),
    rule(
        &["ncq_linger_ms"],
        Between(1.0, 100.0),
        "longer than a host takes for its next read, shorter than reads wait on drives that do not linger",
    ),
    rule(
        &["destage_burst"],
        Between(4.0, 60.0),
        "cached random writes of measured drives: 0.75 to 2.05 times the random reads",
    ),
    rule(&["destage_percent"], Between(25.0, 75.0), "no maker publishes it"),
    of_unit("ms", Times(1.25), "mechanics of one class"),
    of_unit("us", Times(1.25), "controllers of one generation"),
    of_unit("MB/s", Times(1.05), "as rates"),
    of_unit("KiB", Times(1.5), "shares of a cache of known size"),
    of_unit("MiB", Times(1.5), "as KiB"),
    of_unit("%", Times(1.25), "no maker publishes them"),
    of_unit("sectors", Times(1.25), "as the mechanics"),
    of_unit("cylinders", Times(2.0), "no maker publishes them"),
    of_unit("", Times(2.0), "counts that no maker publishes"),
];

/// The range of each key of `values`; `None` for a known value and for one that cannot be drawn.
pub(super) fn ranges(
    values: &Values,
    sources: &[String],
    published: &[Published],
    own: &[Option<[f64; 2]>],
) -> Vec<Option<[f64; 2]>> {
    let range = |index: usize| {
        let key = &values.table[index];
        let value = first_number(values.values[index].as_ref()?)?;
        if let Some(own) = own[index] {
            return Some(own);
        }
        if ptr::eq(values.table, CONSTANT_KEYS) {
            return None; // The model represents no real disk that it could estimate.
        }
        let default = sources[index] == "default";
        if !default && !is_estimate(&sources[index]) {
            return None;
        }
        let spread = match chosen_within(key, &sources[index], published) {
            Some(tolerance_percent) => Times(1.0 + tolerance_percent / 100.0),
            None => spread(key),
        };
        let [low, high] = match spread {
            Fixed => return None,
            Between(low, high) if (low..=high).contains(&value) => [low, high],
            Between(..) if default => return None,
            Between(..) => [value / 2.0, value * 2.0],
            Times(factor) => [value / factor, value * factor],
        };
        let (least, most) = bounds(key)?;
        let [low, high] = [low.max(least), high.min(most)];
        (value > 0.0 || low < high).then_some([low, high]).filter(|[low, high]| low < high)
    };
    (0..values.table.len()).map(range).collect()
}

/// The tolerance of the calibrated figure that a value was chosen from, if the value's comment names one.
fn chosen_within(key: &Key, source: &str, published: &[Published]) -> Option<f64> {
    let from =
        |row: &&Published| row.figure.determines().contains(&key.name) && names_value(source, row.value);
    published.iter().find(from).map(|row| row.tolerance_percent).filter(|percent| *percent > 0.0)
}

fn spread(key: &Key) -> Spread {
    let fits = |rule: &&Rule| match rule.keys {
        [] => rule.unit == key.unit,
        keys => keys.contains(&key.name),
    };
    RULES.iter().find(fits).map_or(Fixed, |rule| rule.spread)
}

/// Read the table `[ranges]`, with entries `key = [low, high]  # reason`.
pub(super) fn parse(
    file: &File<'_>,
    value: &Spanned<DeValue<'_>>,
    values: &Values,
) -> Result<Vec<Option<[f64; 2]>>, InputError> {
    let Some(entries) = value.get_ref().as_table() else {
        let wrong = other(file.slice(&value.span()), "a table of ranges");
        return Err(file.error(value.span().start, Some("ranges"), wrong));
    };
    let mut own = vec![None; values.table.len()];
    for (name, (entry, at)) in fields(entries) {
        let fail = |wrong| file.error(at, Some(name), wrong);
        let names: Vec<_> = values.table.iter().map(|key| key.name).collect();
        let Some(index) = names.iter().position(|known| *known == name) else {
            return Err(fail(unknown("key in [ranges]", name, &names)));
        };
        let key = &values.table[index];
        let (Some((least, most)), Some(value)) =
            (bounds(key), values.values[index].as_ref().and_then(first_number))
        else {
            return Err(fail(InputError::new("has no range: its value is not a number")));
        };
        let ends = entry.get_ref().as_array().and_then(|items| {
            let [low, high] = items.iter().as_slice() else { return None };
            Some([number(low.get_ref())?, number(high.get_ref())?])
        });
        let good = |[low, high]: &[f64; 2]| *low >= least && *low <= value && value <= *high && *high <= most;
        let Some(ends) = ends.filter(good) else {
            let expected = format!("[low, high] around its value, {value}, within {}", key.allowed);
            return Err(fail(other(file.slice(&entry.span()), expected)));
        };
        own[index] = Some(ends);
    }
    Ok(own)
}

/// The number, or the first of a list, whose other numbers scale with it.
pub(super) fn first_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => Some(*n),
        Value::Numbers(list) => list.first().copied(),
        _ => None,
    }
}

fn bounds(key: &Key) -> Option<(f64, f64)> {
    match key.allowed {
        Allowed::Integer(min, max) => Some((min as f64, max as f64)),
        Allowed::Number(min, max) | Allowed::Numbers(min, max) => Some((min, max)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{HDD_KEYS, SSD_KEYS};
    use super::*;

    #[test]
    fn a_disk_of_constant_service_time_has_no_estimates() {
        let model = super::super::catalogue::model("constant").unwrap();
        let changed = model.with_override("service_us", "70").unwrap();
        assert!(changed.parameters().iter().all(|row| row.range.is_none()));
        assert!(changed.validation().validated);
    }

    #[test]
    fn every_rule_names_existing_keys_and_every_number_has_a_rule() {
        let known = || HDD_KEYS.iter().chain(SSD_KEYS);
        for name in RULES.iter().flat_map(|rule| rule.keys) {
            assert!(known().any(|key| key.name == *name), "{name}");
        }
        for key in known().filter(|key| bounds(key).is_some()) {
            let rule = RULES.iter().find(|rule| match rule.keys {
                [] => rule.unit == key.unit,
                keys => keys.contains(&key.name),
            });
            assert!(rule.is_some(), "{} in {}", key.name, key.unit);
        }
    }
}
