//! Joins two series of one run: the driver's for the processes' I/O, the events' for the queue.

use blklab_core::result::Series;
use blklab_core::units::Nanos;

/// The processes' columns of `driver` and the queue's of `events`. Each has its own interval, which
/// is 1 ms doubled several times; the result has the wider one.
pub fn joined(driver: (Series, Nanos), events: (Series, Nanos)) -> (Series, Nanos) {
    let interval = driver.1.max(events.1);
    let (driver, events) = (widened(driver, interval), widened(events, interval));
    let rows = driver.read_ios.len().max(events.waiting_milli.len());
    let long = |mut column: Vec<i64>| {
        column.resize(rows, 0);
        column
    };
    let series = Series {
        read_bytes: long(driver.read_bytes),
        write_bytes: long(driver.write_bytes),
        read_ios: long(driver.read_ios),
        write_ios: long(driver.write_ios),
        read_clat_sum_ns: long(driver.read_clat_sum_ns),
        write_clat_sum_ns: long(driver.write_clat_sum_ns),
        read_clat_max_ns: long(driver.read_clat_max_ns),
        write_clat_max_ns: long(driver.write_clat_max_ns),
        waiting_milli: long(events.waiting_milli),
        in_flight_milli: long(events.in_flight_milli),
    };
    (series, interval)
}

/// The processes' columns of two drivers, which run at the same time; each has its own interval.
pub fn together(one: (Series, Nanos), other: (Series, Nanos)) -> (Series, Nanos) {
    let interval = one.1.max(other.1);
    let (one, other) = (widened(one, interval), widened(other, interval));
    let rows = one.read_ios.len().max(other.read_ios.len());
    let each = |one: Vec<i64>, other: Vec<i64>, join: fn(i64, i64) -> i64| -> Vec<i64> {
        let at = |column: &[i64], row: usize| column.get(row).copied().unwrap_or(0);
        (0..rows).map(|row| join(at(&one, row), at(&other, row))).collect()
    };
    let sum = |one, other| each(one, other, |a, b| a + b);
    let most = |one, other| each(one, other, i64::max);
    let series = Series {
        read_bytes: sum(one.read_bytes, other.read_bytes),
        write_bytes: sum(one.write_bytes, other.write_bytes),
        read_ios: sum(one.read_ios, other.read_ios),
        write_ios: sum(one.write_ios, other.write_ios),
        read_clat_sum_ns: sum(one.read_clat_sum_ns, other.read_clat_sum_ns),
        write_clat_sum_ns: sum(one.write_clat_sum_ns, other.write_clat_sum_ns),
        read_clat_max_ns: most(one.read_clat_max_ns, other.read_clat_max_ns),
        write_clat_max_ns: most(one.write_clat_max_ns, other.write_clat_max_ns),
        ..Series::default()
    };
    (series, interval)
}

/// The queue's columns alone; the processes' columns are unknown and empty.
pub fn queue_alone(events: Series) -> Series {
    let Series { waiting_milli, in_flight_milli, .. } = events;
    Series { waiting_milli, in_flight_milli, ..Series::default() }
}

fn widened((series, mut width): (Series, Nanos), to: Nanos) -> Series {
    let mut series = series;
    while width < to {
        series = doubled(&series);
        width = width + width;
    }
    series
}

/// Adds each pair of neighbouring rows.
fn doubled(series: &Series) -> Series {
    let two = |column: &[i64], join: fn(i64, i64) -> i64| {
        column.chunks(2).map(|pair| join(pair[0], pair.get(1).copied().unwrap_or(0))).collect()
    };
    let sum = |column: &[i64]| two(column, |a, b| a + b);
    let max = |column: &[i64]| two(column, i64::max);
    let mean = |column: &[i64]| two(column, |a, b| (a + b) / 2);
    Series {
        read_bytes: sum(&series.read_bytes),
        write_bytes: sum(&series.write_bytes),
        read_ios: sum(&series.read_ios),
        write_ios: sum(&series.write_ios),
        read_clat_sum_ns: sum(&series.read_clat_sum_ns),
        write_clat_sum_ns: sum(&series.write_clat_sum_ns),
        read_clat_max_ns: max(&series.read_clat_max_ns),
        write_clat_max_ns: max(&series.write_clat_max_ns),
        waiting_milli: mean(&series.waiting_milli),
        in_flight_milli: mean(&series.in_flight_milli),
    }
}

#[cfg(test)]
mod tests {
    use blklab_core::recorder::SeriesRecorder;

    use super::*;

    /// A run of `ms` milliseconds, with one call of `tick` in each.
    fn recorded(ms: u64, mut tick: impl FnMut(&mut SeriesRecorder, Nanos)) -> (Series, Nanos) {
        let mut recorder = SeriesRecorder::default();
        (0..ms).for_each(|at| tick(&mut recorder, Nanos::from_millis(at)));
        recorder.finish()
    }

    #[test]
    fn processes_of_two_drivers_are_together_what_one_recorder_has_of_all() {
        let io = |r: &mut SeriesRecorder, at: Nanos, bytes| r.completed(at, false, bytes, at);
        for (longer, shorter) in [(6000, 6000), (9000, 3001), (5, 4)] {
            let is_there = |at: Nanos| at < Nanos::from_millis(shorter);
            let all = recorded(longer, |r, at| {
                io(r, at, 4096);
                if is_there(at) {
                    io(r, at, 512);
                }
            });
            let one = recorded(longer, |r, at| io(r, at, 4096));
            let other = recorded(shorter, |r, at| io(r, at, 512));
            for found in [together(one.clone(), other.clone()), together(other, one)] {
                assert_eq!(found.1, all.1);
                assert_eq!(found.0.read_bytes, all.0.read_bytes);
                assert_eq!(found.0.read_ios, all.0.read_ios);
                assert_eq!(found.0.read_clat_sum_ns, all.0.read_clat_sum_ns);
                assert_eq!(found.0.read_clat_max_ns, all.0.read_clat_max_ns);
            }
        }
    }

    #[test]
    fn two_halves_join_to_the_record_of_one_recorder() {
        let io = |r: &mut SeriesRecorder, at: Nanos| r.completed(at, false, 4096, at);
        let queue = |r: &mut SeriesRecorder, at: Nanos| r.depth(at, at + Nanos::from_millis(1), 2, 1);
        for (longer, shorter) in [(6000, 6000), (9000, 3001), (5, 4)] {
            let all = recorded(longer, |r, at| {
                io(r, at);
                if at < Nanos::from_millis(shorter) {
                    queue(r, at);
                }
            });
            assert_eq!(joined(recorded(longer, io), recorded(shorter, queue)), all, "{longer}, {shorter}");
        }
        let (series, interval) = joined(recorded(3000, io), recorded(9000, queue));
        assert_eq!(interval, Nanos::from_millis(4));
        assert_eq!((series.read_ios.len(), series.waiting_milli.len()), (2250, 2250));
        assert_eq!(series.read_ios.iter().sum::<i64>(), 3000);
    }
}
