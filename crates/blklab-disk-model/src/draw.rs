//! A disk drawn from the ranges of a disk file's estimates.
//!
//! Each value is drawn independently, uniformly over the logarithm of its range (over the range itself if it
//! begins at zero or below), from its own stream of random numbers: a new key changes no other key's draws.
//!
//! There are two reasons to draw a disk again: its values contradict each other, or it misses a calibrated figure
//! that the file's own values meet ([`Kept`]).

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use toml::de::DeTable;

use super::figures::Figure;
use super::kept::Kept;
use super::keys::{Allowed, Key, Value, Values};
use super::model::DiskModel;
use super::ranges::first_number;
use blklab_base::input_error::InputError;

/// The number of attempts to draw a possible disk; after them, the file's own values are used.
const TRIES: u64 = 200;
/// At most so many drawn disks are measured. Of `optane-900p`, the worst, 21 of 60 drawn disks meet all figures:
/// that 50 in a row miss one has a probability of 1e-9.
const MEASURED: usize = 50;

/// A drawn disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its file: the original with the drawn values.
    pub text: String,
    /// The drawn values, in the table's order; for a list, its first number.
    pub values: Vec<(&'static str, f64)>,
    /// The figure that most attempts missed, if none was accepted: then the values are the file's own.
    pub missed: Option<&'static Figure>,
}

/// Draw a disk from the ranges of the file `text`; `model` is that file after overrides, `kept` the figures that
/// the disk has to meet. Values that an override has set are not drawn.
///
/// # Errors
/// As [`DiskModel::parse`].
pub fn draw(text: &str, path: &str, model: &DiskModel, kept: &Kept, seed: u64) -> Result<Drawn, InputError> {
    let nominal = model.values();
    let ranges = model.ranges();
    let mut missed: Vec<&'static Figure> = Vec::new();
    for attempt in 0..TRIES {
        let mut drawn = nominal.clone();
        let (mut values, mut allowed) = (Vec::new(), true);
        for (index, key) in nominal.table.iter().enumerate() {
            if let (Some(range), Some(value)) = (ranges[index], &nominal.values[index]) {
                let found = scaled(key, value, range, unit_draw(seed, attempt, key.name));
                // The range of a list applies to its first number only.
                allowed &= key.check(found.clone()).is_some();
                values.extend(first_number(&found).map(|number| (key.name, number)));
                drawn.values[index] = Some(found);
            }
        }
        if !allowed || !keeps_skews(nominal, &drawn) {
            continue;
        }
        let Some(made) = model.with_values(drawn) else { continue };
        match kept.missed(&made) {
            None => {
                let text = written(text, path, nominal.table, made.values(), ranges)?;
                return Ok(Drawn { text, values, missed: None });
            }
            Some(figure) => missed.push(figure),
        }
        if missed.len() == MEASURED {
            break;
        }
    }
    let own = |(index, key): (usize, &Key)| {
        ranges[index].and(nominal.values[index].as_ref()).and_then(first_number).map(|n| (key.name, n))
    };
    let values = nominal.table.iter().enumerate().filter_map(|(index, key)| own((index, key))).collect();
    let times = |figure: &&'static Figure| missed.iter().filter(|other| other.name == figure.name).count();
    let missed = missed.iter().copied().max_by_key(times);
    Ok(Drawn { text: text.to_owned(), values, missed })
}

/// A random number from 0 up to 1.
fn unit_draw(seed: u64, attempt: u64, name: &str) -> f64 {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let seed = seed.wrapping_mul(TRIES).wrapping_add(attempt) ^ hash;
    (Xoshiro256PlusPlus::seed_from_u64(seed).next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The value at `share` of the range; a list is scaled by the factor of its first number.
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

/// Whether each skew still covers its switch time if it does in the file: makers choose skews from the
/// switches that they must cover.
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

/// The file with the drawn values in place of its own; drawn values of keys that it leaves to the default
/// follow `kind`.
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
