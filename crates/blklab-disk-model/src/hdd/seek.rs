//! Seek time by distance.
//!
//! A short seek accelerates and brakes, a long one coasts between: the time grows first with the root of the
//! distance, then with the distance (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE
//! Computer 1994). One table over the root of the distance has both forms, so that a look-up is one square
//! root and one multiplication; both are exact by IEEE 754 and thus the same on every machine.

use super::super::keys::{Conflict, Values, conflict};

const STEPS: usize = 2_048;

/// The longest allowed seek: sums of a few fit into 31 bits.
const SEEK_MAX_MS: f64 = 1_000.0;

/// Seek time in nanoseconds over a number of cylinders.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    /// Start and slope of each step.
    steps: Box<[(f32, f32); STEPS + 1]>,
    scale: f32,
    single_ns: u32,
    floor: Floor,
    /// By distance, if a table is followed exactly.
    exact: Option<Box<[u32]>>,
}

/// Straight lines with their minimum below the curve: the processor evaluates several distances at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    /// The shortest seek.
    single_ns: f32,
    /// Nanoseconds at distance zero, and per cylinder.
    lines: [(f32, f32); 3],
}

impl Floor {
    /// The ends of the lines, as parts of [`STEPS`]. The first separates seeks within a file or two from
    /// those within a track or two.
    const ENDS: [f64; 4] = [0.0, 0.0625, 0.25, 1.0];

    /// Lines below a non-falling curve of these steps. No distance is longer than that of the last step.
    fn below(steps: &[(f32, f32); STEPS + 1], scale: f64, single_ns: u32) -> Floor {
        let distance = |step: usize| (step as f64 / scale).powi(2);
        let line = |number: usize| {
            let [first, end] = [number, number + 1].map(|n| (Floor::ENDS[n] * STEPS as f64) as usize);
            let (at_first, rise) = steps[first];
            let start = if first == 0 { 0.0 } else { f64::from(at_first) - f64::from(rise) };
            // Below the curve at each step's start and end.
            let slope = (first..end)
                .map(|step| (f64::from(steps[step].0) - start) / (distance(step + 1) - distance(first)))
                .fold(f64::MAX, f64::min);
            // A little less compensates for rounding to 32 bits.
            let less = 1.0 - 1e-5;
            ((less * (start - slope * distance(first))) as f32, (less * slope) as f32)
        };
        Floor { single_ns: single_ns as f32, lines: std::array::from_fn(line) }
    }

    /// A lower bound of the seek over `distance` cylinders, in nanoseconds.
    #[inline]
    pub fn ns(self, distance: f32) -> f32 {
        let least = |a: f32, b: f32| if a < b { a } else { b };
        let [near, middle, far] = self.lines.map(|(start, slope)| start + slope * distance);
        let lowest = least(least(near, middle), far);
        if distance > 0.0 && lowest < self.single_ns { self.single_ns } else { lowest }
    }
}

impl SeekCurve {
    /// From the keys `seek_*`, for a disk of `cylinders`.
    pub fn new(values: &Values, cylinders: u32) -> Result<SeekCurve, Conflict> {
        let stroke = f64::from(cylinders.max(2) - 1);
        if let Some(table) = values.pairs("seek_table") {
            let linear = values.text("seek_interpolation") == "linear";
            for pair in table.windows(2) {
                if pair[1].0 <= pair[0].0 || (pair[1].1 < pair[0].1 && !linear) {
                    let message =
                        format!("[{}, {}] does not rise above the pair before", pair[1].0, pair[1].1);
                    return conflict("seek_table", message);
                }
            }
            if let Some((_, ms)) = table.iter().find(|(_, ms)| *ms > SEEK_MAX_MS) {
                return conflict("seek_table", format!("found {ms} ms; expected at most {SEEK_MAX_MS}"));
            }
            return Ok(match linear {
                true => SeekCurve::exact(table, cylinders),
                false => SeekCurve::sample(stroke, |d| interpolate(table, d)),
            });
        }
        let three = ["seek_track_to_track_ms", "seek_average_ms", "seek_full_stroke_ms"];
        let [Some(single), Some(average), Some(full)] = three.map(|name| values.number(name)) else {
            return conflict(
                "seek_average_ms",
                "expected seek_table, or all of seek_track_to_track_ms, seek_average_ms, seek_full_stroke_ms",
            );
        };
        let (a, b, c) = fit(single, average, full, stroke);
        // The slope is zero where b / (2 sqrt d) = -c, if that is within the range.
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
        let steps: Box<[_; _]> = Box::new(std::array::from_fn(|i| (at(i), at(i + 1) - at(i))));
        let single_ns = (ms(1.0) * 1e6).round() as u32;
        let floor = Floor::below(&steps, scale, single_ns);
        SeekCurve { floor, steps, scale: scale as f32, single_ns, exact: None }
    }

    /// Straight lines over the distance between the pairs of a table, which need not rise.
    fn exact(table: &[(f64, f64)], cylinders: u32) -> SeekCurve {
        let ns = |distance: u32| (line(table, f64::from(distance)) * 1e6).round() as u32;
        let exact: Box<[u32]> = (0..cylinders.max(2)).map(ns).collect();
        let least = exact[1..].iter().fold(u32::MAX, |least, ns| least.min(*ns)) as f32;
        // A little less compensates for rounding to 32 bits.
        let least = least * (1.0 - 1e-5);
        let floor = Floor { single_ns: least, lines: [(least, 0.0); 3] };
        let steps = Box::new([(0.0, 0.0); STEPS + 1]);
        SeekCurve { steps, scale: 0.0, single_ns: exact[1], floor, exact: Some(exact) }
    }

    /// The lower bound of seeks.
    pub fn floor(&self) -> Floor {
        self.floor
    }

    /// The longest of all seeks.
    pub fn longest_ns(&self) -> u64 {
        self.longest_within(u32::MAX)
    }

    /// The longest seek over at most `distance` cylinders.
    pub fn longest_within(&self, distance: u32) -> u64 {
        if let Some(exact) = &self.exact {
            let last = (distance as usize).min(exact.len() - 1);
            return exact[1..=last.max(1)].iter().fold(0, |most, ns| most.max(u64::from(*ns)));
        }
        let last = ((distance as f32).sqrt() * self.scale) as usize;
        let longest = self.steps[..=last.min(STEPS)]
            .iter()
            .fold(0.0, |most: f32, (start, rise)| most.max(*start).max(start + rise));
        u64::from(self.single_ns).max(longest.ceil() as u64)
    }

    /// Nanoseconds over `distance` cylinders; 0 for 0.
    #[inline]
    pub fn ns(&self, distance: u32) -> u64 {
        if let Some(exact) = &self.exact
            && distance > 0
        {
            return u64::from(exact[(distance as usize).min(exact.len() - 1)]);
        }
        match distance {
            0 => 0,
            1 => u64::from(self.single_ns),
            _ => {
                let x = (distance as f32).sqrt() * self.scale;
                // Through 32 bits, which hold both: processors convert these directly.
                let step = (x as u32 as usize).min(STEPS);
                let (start, slope) = self.steps[step];
                (start + (x - step as f32) * slope) as u32 as u64
            }
        }
    }
}

/// `a + b sqrt(d) + c d` through one cylinder, the full stroke and the mean over random
/// pairs of cylinders, for which the mean of sqrt(d) is 8/15 of the root of the stroke and
/// the mean of d a third of it.
fn fit(single: f64, average: f64, full: f64, stroke: f64) -> (f64, f64, f64) {
    let root = stroke.sqrt();
    // Subtracting the first equation, a + b + c = single, leaves two equations in b and c.
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

/// Straight lines over the distance; beyond the table its ends.
fn line(table: &[(f64, f64)], d: f64) -> f64 {
    let after = table.partition_point(|(x, _)| *x < d);
    if after == 0 {
        return table[0].1;
    }
    let Some((x1, y1)) = table.get(after) else { return table[table.len() - 1].1 };
    let (x0, y0) = table[after - 1];
    y0 + (y1 - y0) * (d - x0) / (x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_table_is_met_at_every_distance_and_may_fall() {
        let table = [(1.0, 2.0), (3.0, 1.0), (5.0, 3.0)];
        let curve = SeekCurve::exact(&table, 8);
        let found: Vec<_> = (0..10).map(|distance| curve.ns(distance) / 1_000).collect();
        assert_eq!(found, [0, 2_000, 1_500, 1_000, 2_000, 3_000, 3_000, 3_000, 3_000, 3_000]);
        assert_eq!((curve.longest_ns(), curve.longest_within(2)), (3_000_000, 2_000_000));
        assert!((1..8).all(|d| curve.floor().ns(d as f32) <= curve.ns(d) as f32));
    }

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
        }
    }

    #[test]
    fn the_floor_lies_below_the_curve_and_near_it_for_most_pairs_of_cylinders() {
        let table = [(1.0, 1.8), (1_000.0, 2.0), (10_000.0, 3.4), (100_000.0, 8.2), (310_000.0, 15.7)];
        let (a, b, c) = fit(0.8, 8.5, 17.0, 310_000.0);
        let curves = [
            SeekCurve::sample(310_000.0, |d| interpolate(&table, d)),
            SeekCurve::sample(310_000.0, |d| a + b * d.sqrt() + c * d),
        ];
        for (number, curve) in curves.iter().enumerate() {
            let (mut floors, mut seeks) = (0.0, 0.0);
            for d in 0..=310_000u32 {
                let (floor, ns) = (f64::from(curve.floor().ns(d as f32)), curve.ns(d) as f64);
                assert!(floor <= ns, "curve {number}, {d} cylinders: {floor} of {ns}");
                let pairs = f64::from(310_000 - d);
                floors += pairs * floor;
                seeks += pairs * ns;
            }
            assert!(floors > 0.85 * seeks, "curve {number}: {} of the mean", floors / seeks);
        }
    }
}
