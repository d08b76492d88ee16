//! Time series and disk traces of bounded size for runs of any length.

mod rows;
mod steadiness;

use rows::{Interval, Rows};
use steadiness::SteadinessRecorder;

use crate::decisions::code;
use crate::request::Request;
use crate::result::{DiskTrace, Levels, Percentiles, Series};
use crate::units::Nanos;

/// The maximum of rows in a series; in longer runs, pairs of neighbouring rows are added together.
const SERIES_ROWS: usize = 4096;

/// Width of a row at the start of a run.
const SERIES_INTERVAL: Nanos = Nanos::from_millis(1);

/// The maximum of commands in each of the two traces.
const TRACE_ROWS: usize = 16_384;

/// If rows move further than this on average until they are in order, sorting is faster.
const MOVES_PER_ROW: usize = 32;

/// The events of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    bytes: [u64; 2],
    ios: [u64; 2],
    clat_sum: [u64; 2],
    clat_max: [u64; 2],
    waiting_area: u64,
    in_flight_area: u64,
}

impl Row {
    /// For `span`, this many requests waited and this many were in flight.
    #[inline]
    fn add_depth(&mut self, span: Nanos, waiting: u32, in_flight: u32) {
        self.waiting_area += u64::from(waiting) * span.0;
        self.in_flight_area += u64::from(in_flight) * span.0;
    }
}

impl Interval for Row {
    fn join(&mut self, next: &Row) {
        let add = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        let max = |a: [u64; 2], b: [u64; 2]| [a[0].max(b[0]), a[1].max(b[1])];
        *self = Row {
            bytes: add(self.bytes, next.bytes),
            ios: add(self.ios, next.ios),
            clat_sum: add(self.clat_sum, next.clat_sum),
            clat_max: max(self.clat_max, next.clat_max),
            waiting_area: self.waiting_area + next.waiting_area,
            in_flight_area: self.in_flight_area + next.in_flight_area,
        };
    }
}

/// Collects a [`Series`], and what shows whether the run is steady.
#[derive(Debug)]
pub struct SeriesRecorder {
    rows: Rows<Row>,
    steadiness: SteadinessRecorder,
}

impl Default for SeriesRecorder {
    fn default() -> Self {
        let rows = Rows::new(SERIES_INTERVAL, SERIES_ROWS);
        SeriesRecorder { rows, steadiness: SteadinessRecorder::default() }
    }
}

impl SeriesRecorder {
    /// An I/O of a process has completed. `write` includes trims.
    #[inline(always)]
    pub fn completed(&mut self, at: Nanos, write: bool, bytes: u64, clat: Nanos) {
        let row = self.rows.row(at);
        let side = usize::from(write);
        row.bytes[side] += bytes;
        row.ios[side] += 1;
        row.clat_sum[side] += clat.0;
        row.clat_max[side] = row.clat_max[side].max(clat.0);
        self.steadiness.completed(at, side, bytes, clat);
    }

    /// From `from` to `to`, this many requests waited and this many were in flight.
    #[inline]
    pub fn depth(&mut self, from: Nanos, to: Nanos, waiting: u32, in_flight: u32) {
        let rows = &mut self.rows;
        if from >= rows.last_begin && to <= rows.last_end {
            rows.last.add_depth(to - from, waiting, in_flight);
        } else {
            rows.over(from, to, |row, span| row.add_depth(span, waiting, in_flight));
        }
        self.steadiness.depth(from, to, waiting + in_flight);
    }

    /// Waiting requests times time, and requests in flight times time, of the whole run.
    pub fn depth_areas(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), row: &Row| (sum.0 + row.waiting_area, sum.1 + row.in_flight_area);
        self.rows.all().fold((0, 0), add)
    }

    /// The finished series and the width of its intervals.
    pub fn finish(self) -> (Series, Nanos) {
        SeriesRecorder::finish_all(&[self])
    }

    /// The levels and percentiles of several recorders of one run.
    pub fn steadiness(recorders: &[SeriesRecorder]) -> (Levels, Percentiles) {
        let several: Vec<_> = recorders.iter().map(|one| &one.steadiness).collect();
        SteadinessRecorder::finish(&several)
    }

    /// The sum of several series of one run, as one.
    pub fn finish_all(recorders: &[SeriesRecorder]) -> (Series, Nanos) {
        let several: Vec<_> = recorders.iter().map(|one| &one.rows).collect();
        let (sum, interval) = Rows::sum(&several, SERIES_INTERVAL);
        let column = |f: fn(&Row) -> u64| sum.iter().map(|row| f(row) as i64).collect::<Vec<_>>();
        let mean_milli = |f: fn(&Row) -> u64| {
            sum.iter().map(|row| (f(row) as u128 * 1000 / u128::from(interval.0)) as i64).collect()
        };
        let series = Series {
            read_bytes: column(|row| row.bytes[0]),
            write_bytes: column(|row| row.bytes[1]),
            read_ios: column(|row| row.ios[0]),
            write_ios: column(|row| row.ios[1]),
            read_clat_sum_ns: column(|row| row.clat_sum[0]),
            write_clat_sum_ns: column(|row| row.clat_sum[1]),
            read_clat_max_ns: column(|row| row.clat_max[0]),
            write_clat_max_ns: column(|row| row.clat_max[1]),
            waiting_milli: mean_milli(|row| row.waiting_area),
            in_flight_milli: mean_milli(|row| row.in_flight_area),
        };
        (series, interval)
    }
}

/// One command in a trace.
#[derive(Clone, Copy, Debug)]
struct Traced {
    request: Request,
    began: Option<Nanos>,
    completed: Nanos,
}

/// A part of a run that is kept request by request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub from: Nanos,
    /// Its end.
    pub until: Nanos,
    /// The maximum of requests to keep.
    pub requests: usize,
}

/// Collects the two traces of the disk's commands.
///
/// The overview keeps every n-th command; n doubles whenever the trace is full, so that it covers
/// the run evenly. The detail keeps every command of one part of the run. A new part begins
/// whenever the run is twice as long as at the last beginning, and replaces the old part once it
/// holds as many commands, so that the detail shows the middle of the run rather than its start.
/// With a [`Window`] the detail keeps every command that was queued or in flight in it.
#[derive(Debug)]
pub struct TraceRecorder {
    seen: u64,
    /// A power of two.
    stride: u64,
    overview: Vec<Traced>,
    detail: Vec<Traced>,
    next_detail: Vec<Traced>,
    next_begin: Nanos,
    window: Option<Window>,
    /// Commands of the window that did not fit.
    left_out: u64,
}

impl Default for TraceRecorder {
    fn default() -> Self {
        TraceRecorder {
            seen: 0,
            stride: 1,
            overview: Vec::new(),
            detail: Vec::new(),
            next_detail: Vec::new(),
            next_begin: Nanos::from_millis(250),
            window: None,
            left_out: 0,
        }
    }
}

impl TraceRecorder {
    /// A recorder with the details of `window`.
    pub fn of(window: Window) -> TraceRecorder {
        TraceRecorder { window: Some(window), next_begin: Nanos::ZERO, ..TraceRecorder::default() }
    }

    /// Commands of the window that did not fit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The disk has completed `request`; `began` is the time at which it started the command, if
    /// known.
    #[inline]
    pub fn completed(&mut self, request: &Request, began: Option<Nanos>, at: Nanos) {
        if self.seen & (self.stride - 1) == 0 {
            self.add_to_overview(request, at);
        }
        self.seen += 1;
        if self.detail.len() < TRACE_ROWS || at >= self.next_begin {
            self.add_to_detail(request, began, at);
        }
    }

    #[inline(never)]
    fn add_to_overview(&mut self, request: &Request, at: Nanos) {
        if self.overview.len() == TRACE_ROWS {
            let mut index = 0;
            self.overview.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        if self.seen.is_multiple_of(self.stride) {
            self.overview.push(Traced { request: *request, began: None, completed: at });
        }
    }

    #[inline(never)]
    fn add_to_detail(&mut self, request: &Request, began: Option<Nanos>, at: Nanos) {
        let traced = Traced { request: *request, began, completed: at };
        if let Some(window) = self.window {
            let within = at >= window.from && request.inserted <= window.until;
            match within && self.detail.len() < window.requests {
                true => self.detail.push(traced),
                false => self.left_out += u64::from(within),
            }
            return;
        }
        if self.detail.len() < TRACE_ROWS {
            self.detail.push(traced);
            return;
        }
        self.next_detail.push(traced);
        if self.next_detail.len() == TRACE_ROWS {
            std::mem::swap(&mut self.detail, &mut self.next_detail);
            self.next_detail.clear();
            self.next_begin = at + at;
        }
    }

    /// The finished traces: overview, its stride, detail.
    pub fn finish(self) -> (DiskTrace, u64, DiskTrace) {
        (columns(self.overview), self.stride, columns(self.detail))
    }
}

/// The rows' places in the order in which they were issued. They are in that of completion, so that each moves only past
/// those that were in flight with it.
fn order_of_issue(rows: &[Traced]) -> Vec<(u64, u32)> {
    let mut order: Vec<_> =
        rows.iter().zip(0..).map(|(row, place): (_, u32)| (row.request.issued.0, place)).collect();
    let mut left = MOVES_PER_ROW * order.len();
    for next in 1..order.len() {
        let row = order[next];
        let mut to = next;
        while to > 0 && order[to - 1].0 > row.0 {
            order[to] = order[to - 1];
            to -= 1;
        }
        order[to] = row;
        match left.checked_sub(next - to) {
            Some(fewer) => left = fewer,
            None => {
                order.sort_unstable();
                break;
            }
        }
    }
    order
}

fn columns(rows: Vec<Traced>) -> DiskTrace {
    // Rows are large: only their times and places move.
    let order = order_of_issue(&rows);
    let rows = || order.iter().map(|&(_, place)| &rows[place as usize]);
    let column = |f: fn(&Traced) -> i64| rows().map(f).collect::<Vec<_>>();
    DiskTrace {
        queued_ns: column(|row| row.request.inserted.0 as i64),
        issued_ns: column(|row| row.request.issued.0 as i64),
        began_ns: rows().filter_map(|row| Some(row.began?.0 as i64)).collect(),
        completed_ns: column(|row| row.completed.0 as i64),
        sector: column(|row| row.request.sector.0 as i64),
        sectors: column(|row| i64::from(row.request.sectors)),
        op: column(|row| code(row.request.op)),
        process: column(|row| match row.request.process {
            process if process.is_kernels() => -1,
            process => i64::from(process.0),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_of_two_series_has_what_both_have(
            events in prop::collection::vec((0..20_000_000_000_u64, any::<bool>(), 1..1000_u64), 1..100)
        ) {
            // The first ends early: its rows are narrower.
            let (mut all, mut parts) = (SeriesRecorder::default(), [(); 2].map(|()| SeriesRecorder::default()));
            for (at, late, bytes) in events {
                let at = Nanos(if late { at } else { at / 1000 });
                all.completed(at, late, bytes, Nanos(bytes));
                parts[usize::from(late)].completed(at, late, bytes, Nanos(bytes));
            }
            prop_assert_eq!(SeriesRecorder::finish_all(&parts), all.finish());
        }

        #[test]
        fn a_series_keeps_every_io_and_stays_within_its_rows(
            gaps in prop::collection::vec(0..400_000_000u64, 1..400)
        ) {
            let mut recorder = SeriesRecorder::default();
            let mut at = Nanos::ZERO;
            let mut area = 0;
            for &gap in &gaps {
                recorder.depth(at, at + Nanos(gap), 3, 1);
                area += gap;
                at += Nanos(gap);
                recorder.completed(at, gap % 2 == 0, 4096, Nanos(gap));
            }
            let (series, Nanos(interval_ns)) = recorder.finish();
            prop_assert!(series.read_ios.len() <= SERIES_ROWS);
            let ios: i64 = series.read_ios.iter().chain(&series.write_ios).sum();
            prop_assert_eq!(ios as usize, gaps.len());
            let clat: i64 = series.read_clat_sum_ns.iter().chain(&series.write_clat_sum_ns).sum();
            prop_assert_eq!(clat as u64, gaps.iter().sum::<u64>());
            let milli: i64 = series.in_flight_milli.iter().sum();
            let rounding = series.in_flight_milli.len() as u64 * interval_ns / 1000;
            prop_assert!((milli as u64 * interval_ns / 1000).abs_diff(area) <= rounding + 1);
        }

        #[test]
        fn a_window_has_the_commands_that_were_under_way_in_it_and_counts_the_rest(
            from in 0..100u64, length in 0..100u64, requests in 1..50usize
        ) {
            let until = from + length;
            let mut recorder = TraceRecorder::of(Window { from: Nanos(from), until: Nanos(until), requests });
            let commands = || (0..200).map(|n| (n, n + 2, n + 7));
            for (inserted, issued, completed) in commands() {
                let request = Request { inserted: Nanos(inserted), issued: Nanos(issued), ..Request::default() };
                recorder.completed(&request, Some(Nanos(issued + 1)), Nanos(completed));
            }
            let within = commands().filter(|(inserted, _, completed)| *completed >= from && *inserted <= until);
            let expected: Vec<_> = within.map(|(inserted, ..)| inserted as i64).collect();
            let kept = expected.len().min(requests);
            prop_assert_eq!(recorder.left_out() as usize, expected.len() - kept);
            let detail = recorder.finish().2;
            prop_assert_eq!(&detail.queued_ns, &expected[..kept]);
            prop_assert!(detail.began_ns.iter().zip(&detail.issued_ns).all(|(began, issued)| *began == issued + 1));
            prop_assert_eq!(detail.began_ns.len(), kept);
        }

        #[test]
        fn an_overview_is_every_nth_command_and_bounded(commands in 1..100_000u64) {
            let mut recorder = TraceRecorder::default();
            for n in 0..commands {
                let request = Request { issued: Nanos(n), ..Request::default() };
                recorder.completed(&request, None, Nanos(n + 1));
            }
            let (overview, stride, detail) = recorder.finish();
            prop_assert!(overview.issued_ns.len() <= TRACE_ROWS);
            prop_assert_eq!(overview.issued_ns.len() as u64, commands.div_ceil(stride));
            prop_assert!(overview.issued_ns.iter().enumerate().all(|(i, &ns)| ns as u64 == i as u64 * stride));
            prop_assert!(detail.issued_ns.windows(2).all(|pair| pair[1] == pair[0] + 1));
        }
    }
}
