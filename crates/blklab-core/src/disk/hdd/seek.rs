//! Seek time by distance.
//!
//! A short seek accelerates and brakes, a long one coasts between: time goes first with
//! the root of the distance, then with the distance (Ruemmler and Wilkes, "An introduction
//! to disk drive modeling", IEEE Computer 1994). Both forms come out of one table over the
//! root of the distance, so that a look-up is one square root and one multiplication;
//! both are exact by IEEE 754 and thus the same on every machine.

use super::super::keys::Values;
use super::super::model::{Conflict, conflict};

const STEPS: usize = 2_048;

/// The longest seek: sums of few of them fit 31 bits.
const SEEK_MAX_MS: f64 = 1_000.0;

/// Seek time in nanoseconds over a number of cylinders.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    /// Start and slope of each step.
    steps: Box<[(f32, f32); STEPS + 1]>,
    scale: f32,
    single_ns: u32,
    /// The shortest seek of each class of distances: see [`class`].
    least_ns: Box<[u32; 128]>,
}

impl SeekCurve {
    /// From the keys `seek_*`, for a disk of `cylinders`.
    pub fn new(values: &Values, cylinders: u32) -> Result<SeekCurve, Conflict> {
        let stroke = f64::from(cylinders.max(2) - 1);
        if let Some(table) = values.pairs("seek_table") {
            for pair in table.windows(2) {
                if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
                    let message =
                        format!("[{}, {}] does not rise above the pair before", pair[1].0, pair[1].1);
                    return conflict("seek_table", message);
                }
            }
            if let Some((_, ms)) = table.last().filter(|(_, ms)| *ms > SEEK_MAX_MS) {
                return conflict("seek_table", format!("found {ms} ms; expected at most {SEEK_MAX_MS}"));
            }
            return Ok(SeekCurve::sample(stroke, |d| interpolate(table, d)));
        }
        let three = ["seek_track_to_track_ms", "seek_average_ms", "seek_full_stroke_ms"];
        let [Some(single), Some(average), Some(full)] = three.map(|name| values.number(name)) else {
            return conflict(
                "seek_average_ms",
                "expected seek_table, or all of seek_track_to_track_ms, seek_average_ms, seek_full_stroke_ms",
            );
        };
        let (a, b, c) = fit(single, average, full, stroke);
        // The slope's zero, if it has one between, lies where b / (2 sqrt d) = -c.
        let falls = [1.0, stroke].iter().any(|d: &f64| b / (2.0 * d.sqrt()) + c < 0.0);
        if falls || single > average || average > full {
            return conflict(
                "seek_average_ms",
                format!(
                    "{single}, {average} and {full} ms over 1 to {stroke} cylinders lie on no rising a + b sqrt(d) + c d"
                ),
            );
        }
        Ok(SeekCurve::sample(stroke, |d| a + b * d.sqrt() + c * d))
    }

    fn sample(stroke: f64, ms: impl Fn(f64) -> f64) -> SeekCurve {
        let scale = STEPS as f64 / stroke.sqrt();
        let at = |step: usize| {
            let root = (step as f64 / scale).max(1.0);
            (ms(root * root) * 1e6) as f32
        };
        let steps = Box::new(std::array::from_fn(|i| (at(i), at(i + 1) - at(i))));
        let single_ns = (ms(1.0) * 1e6).round() as u32;
        let mut curve = SeekCurve { steps, scale: scale as f32, single_ns, least_ns: Box::new([0; 128]) };
        for number in 0..curve.least_ns.len() {
            curve.least_ns[number] = shortest_of(number).map_or(0, |d| curve.ns(d.min(stroke as u32)) as u32);
        }
        curve
    }

    /// What a seek over `distance` cylinders takes at least, to within a quarter of the
    /// distance and without a root.
    #[inline]
    pub fn at_least(&self, distance: u32) -> u32 {
        self.least_ns[class(distance)]
    }

    /// Nanoseconds over `distance` cylinders; none for none.
    #[inline]
    pub fn ns(&self, distance: u32) -> u64 {
        match distance {
            0 => 0,
            1 => u64::from(self.single_ns),
            _ => {
                let x = (distance as f32).sqrt() * self.scale;
                let step = (x as usize).min(STEPS);
                let (start, slope) = self.steps[step];
                (start + (x - step as f32) * slope) as u64
            }
        }
    }
}

/// The class of a distance: its first three bits and how many follow.
#[inline]
fn class(distance: u32) -> usize {
    let follow = 29u32.saturating_sub(distance.leading_zeros());
    (follow * 4 + (distance >> follow)) as usize & 127
}

/// The shortest distance of a class; none if no distance has it.
fn shortest_of(number: usize) -> Option<u32> {
    let follow = (number as u32 / 4).saturating_sub(1);
    let shortest = (number as u32 - follow * 4).checked_shl(follow)?;
    (shortest >> follow == number as u32 - follow * 4 && class(shortest) == number).then_some(shortest)
}

/// `a + b sqrt(d) + c d` through one cylinder, the full stroke and the mean over random
/// pairs of cylinders, for which the mean of sqrt(d) is 8/15 of the root of the stroke and
/// the mean of d a third of it.
fn fit(single: f64, average: f64, full: f64, stroke: f64) -> (f64, f64, f64) {
    let root = stroke.sqrt();
    // Differences to the first equation, a + b + c = single, leave two in b and c.
    let (p, q, r) = (8.0 / 15.0 * root - 1.0, stroke / 3.0 - 1.0, average - single);
    let (s, t, u) = (root - 1.0, stroke - 1.0, full - single);
    let det = p * t - q * s;
    let (b, c) = ((r * t - q * u) / det, (p * u - r * s) / det);
    (single - b - c, b, c)
}

/// Straight lines over the root of the distance; beyond the table its ends.
fn interpolate(table: &[(f64, f64)], d: f64) -> f64 {
    let after = table.partition_point(|(x, _)| *x < d);
    if after == 0 {
        return table[0].1;
    }
    let Some((x1, y1)) = table.get(after) else { return table[table.len() - 1].1 };
    let (x0, y0) = table[after - 1];
    y0 + (y1 - y0) * (d.sqrt() - x0.sqrt()) / (x1.sqrt() - x0.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_curve_has_the_data_sheets_three_figures() {
        let (a, b, c) = fit(0.8, 8.5, 17.0, 100_000.0);
        let curve = SeekCurve::sample(100_000.0, |d| a + b * d.sqrt() + c * d);
        assert_eq!(curve.ns(1), 800_000);
        assert!(curve.ns(100_000).abs_diff(17_000_000) < 1_000);
        // Mean over all pairs of cylinders: distance d occurs 2 (D - d) times in D^2.
        let stroke = 100_000u64;
        let sum: f64 =
            (1..=stroke).step_by(10).map(|d| 2.0 * (stroke - d) as f64 * curve.ns(d as u32) as f64).sum();
        let mean_ms = sum * 10.0 / (stroke * stroke) as f64 / 1e6;
        assert!((mean_ms - 8.5).abs() < 0.02, "{mean_ms} ms");
    }

    #[test]
    fn a_table_is_met_at_its_points_and_rises_between() {
        let table = [(1.0, 1.8), (1_000.0, 2.0), (10_000.0, 3.4), (100_000.0, 8.2), (310_000.0, 15.7)];
        let curve = SeekCurve::sample(310_193.0, |d| interpolate(&table, d));
        for (d, ms) in table {
            let found = curve.ns(d as u32) as f64 / 1e6;
            assert!((found - ms).abs() < 0.01, "{d} cylinders: {found} ms, table {ms} ms");
        }
        let mut last = 0;
        for d in 0..310_194 {
            let ns = curve.ns(d);
            assert!(ns >= last, "falls at {d}");
            last = ns;
            let least = u64::from(curve.at_least(d));
            assert!(
                least <= ns && (d == 0 || least >= curve.ns(d - d / 4)),
                "{d} cylinders: {least} of {ns}"
            );
        }
    }
}
