//! A disk drawn from the ranges of a disk file's estimates.
//!
//! Each value is drawn by itself, evenly over the logarithm of its range (evenly, where the range
//! begins at zero or below), from a stream of numbers of its own: a new key changes no other key's
//! draws. A draw whose values contradict each other is drawn again.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use toml::de::DeTable;

use super::keys::{Allowed, Key, Value, Values};
use super::model::{DiskModel, is_consistent};
use super::ranges::first_number;
use blklab_base::input_error::InputError;

/// So often an impossible disk is drawn again; then the file's own values stand in.
const TRIES: u64 = 200;

/// A drawn disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its file: the one it was drawn from, with other values.
    pub text: String,
    /// What was drawn, in the table's order: of a list the first number.
    pub values: Vec<(&'static str, f64)>,
}

/// Draw a disk from the ranges of the file `text`, as `model` is after overrides. What an override
/// has set is not drawn.
///
/// # Errors
/// As [`DiskModel::parse`].
pub fn draw(text: &str, path: &str, model: &DiskModel, seed: u64) -> Result<Drawn, InputError> {
    let nominal = model.values();
    let ranges = model.ranges();
    for attempt in 0..TRIES {
        let mut drawn = nominal.clone();
        let (mut values, mut allowed) = (Vec::new(), true);
        for (index, key) in nominal.table.iter().enumerate() {
            if let (Some(range), Some(value)) = (ranges[index], &nominal.values[index]) {
                let found = scaled(key, value, range, unit_draw(seed, attempt, key.name));
                // Of a list the range is that of the first number only.
                allowed &= key.check(found.clone()).is_some();
                values.extend(first_number(&found).map(|number| (key.name, number)));
                drawn.values[index] = Some(found);
            }
        }
        if allowed && keeps_skews(nominal, &drawn) && is_consistent(&drawn) {
            return Ok(Drawn { text: written(text, path, nominal.table, &drawn, ranges)?, values });
        }
    }
    let own = |(index, key): (usize, &Key)| {
        ranges[index].and(nominal.values[index].as_ref()).and_then(first_number).map(|n| (key.name, n))
    };
    let values = nominal.table.iter().enumerate().filter_map(|(index, key)| own((index, key))).collect();
    Ok(Drawn { text: text.to_owned(), values })
}

/// From 0 up to 1.
fn unit_draw(seed: u64, attempt: u64, name: &str) -> f64 {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let seed = seed.wrapping_mul(TRIES).wrapping_add(attempt) ^ hash;
    (Xoshiro256PlusPlus::seed_from_u64(seed).next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The value moved to `share` of the range; a list by the factor of its first number.
fn scaled(key: &Key, value: &Value, [low, high]: [f64; 2], share: f64) -> Value {
    let target = match low > 0.0 {
        true => low * (high / low).powf(share),
        false => low + (high - low) * share,
    };
    let rounded = match key.allowed {
        Allowed::Integer(..) => target.round().clamp(low.ceil(), high.floor()),
        _ => four_digits(target).clamp(low, high),
    };
    match value {
        Value::Numbers(list) => {
            let factor = target / list[0];
            Value::Numbers(list.iter().map(|n| four_digits(n * factor)).collect())
        }
        _ => Value::Number(rounded),
    }
}

fn four_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// A track's end is followed in time by the next one's start, where it is so in the file: makers
/// choose skews from the switches that they must cover.
fn keeps_skews(nominal: &Values, drawn: &Values) -> bool {
    let covers = |values: &Values, skew: &str, switch: &str| {
        let number = |name| values.table.iter().any(|key| key.name == name).then(|| values.number(name))?;
        Some(number(skew)? >= number(switch)? + number("write_settle_ms")?.max(0.0))
    };
    [("track_skew_ms", "head_switch_ms"), ("cylinder_skew_ms", "seek_track_to_track_ms")].into_iter().all(
        |(skew, switch)| {
            covers(nominal, skew, switch) != Some(true) || covers(drawn, skew, switch) == Some(true)
        },
    )
}

/// The file with the drawn values in place of its own; what it leaves to defaults stands behind its
/// kind.
fn written(
    text: &str,
    path: &str,
    table: &'static [Key],
    drawn: &Values,
    ranges: &[Option<[f64; 2]>],
) -> Result<String, InputError> {
    let failed = |message: &str| InputError { file: Some(path.to_owned()), ..InputError::new(message) };
    let root = DeTable::parse(text).map_err(|_| failed("not TOML"))?;
    let entries = root.get_ref();
    let kind = entries.get("kind").map(|value| value.span().end).ok_or_else(|| failed("no kind"))?;
    let line_end = text[kind..].find('\n').map_or(text.len(), |length| kind + length);
    let mut edits = Vec::new();
    for (index, key) in table.iter().enumerate() {
        if let (Some(_), Some(value)) = (ranges[index], &drawn.values[index]) {
            match entries.get(key.name) {
                Some(old) => edits.push((old.span(), value.to_string())),
                None => edits.push((line_end..line_end, format!("\n{} = {value}", key.name))),
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut made = text.to_owned();
    for (span, new) in edits.into_iter().rev() {
        made.replace_range(span, &new);
    }
    Ok(made)
}
