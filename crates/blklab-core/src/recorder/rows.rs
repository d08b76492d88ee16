//! Rows over equal intervals of time, of which there is a maximum.

use crate::units::Nanos;

/// What one interval counts.
pub trait Interval: Clone + Default {
    /// Adds the interval that follows this one.
    fn join(&mut self, next: &Self);
}

/// Rows from the start of a run on. Beyond the maximum, pairs of neighbours become one, so that the
/// width is the first one doubled several times.
#[derive(Debug)]
pub struct Rows<T> {
    width: Nanos,
    most: usize,
    /// All rows except the last.
    rows: Vec<T>,
    /// The last row, stored separately: most events fall into it.
    pub last: T,
    /// Where the last row begins.
    pub last_begin: Nanos,
    /// Where it ends; zero before the first event.
    pub last_end: Nanos,
}

impl<T: Interval> Rows<T> {
    /// At most `most` rows, of this width at the start of a run.
    pub fn new(width: Nanos, most: usize) -> Rows<T> {
        let (last_begin, last_end) = (Nanos::ZERO, Nanos::ZERO);
        Rows { width, most, rows: Vec::new(), last: T::default(), last_begin, last_end }
    }

    /// The row for `at`, which may be in any existing row or after the last one.
    #[inline]
    pub fn row(&mut self, at: Nanos) -> &mut T {
        if at >= self.last_end {
            self.extend_to(at);
        }
        if at >= self.last_begin { &mut self.last } else { &mut self.rows[(at.0 / self.width.0) as usize] }
    }

    #[cold]
    fn extend_to(&mut self, at: Nanos) {
        if self.last_end > Nanos::ZERO {
            self.rows.push(std::mem::take(&mut self.last));
        }
        while at.0 / self.width.0 >= self.most as u64 {
            self.rows = widened(&self.rows);
            self.width = self.width + self.width;
        }
        let index = (at.0 / self.width.0) as usize;
        self.rows.resize(index + 1, T::default());
        self.last = self.rows.pop().unwrap_or_default();
        self.last_begin = Nanos(index as u64 * self.width.0);
        self.last_end = self.last_begin + self.width;
    }

    /// Calls `add` for each row from `from` to `to`, with the time that falls into it.
    #[inline(never)]
    pub fn over(&mut self, from: Nanos, to: Nanos, add: impl Fn(&mut T, Nanos)) {
        let mut at = from;
        while at < to {
            // Rows may double in width while the time is added to them.
            if at >= self.last_end {
                self.extend_to(at);
            }
            let (row, row_end) = if at >= self.last_begin {
                (&mut self.last, self.last_end)
            } else {
                let index = at.0 / self.width.0;
                (&mut self.rows[index as usize], Nanos((index + 1) * self.width.0))
            };
            let until = to.min(row_end);
            add(row, until - at);
            at = until;
        }
    }

    /// All rows, in order.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.rows.iter().chain((self.last_end > Nanos::ZERO).then_some(&self.last))
    }

    /// The sum of several, row by row, and the width of its rows.
    pub fn sum(several: &[&Rows<T>], width: Nanos) -> (Vec<T>, Nanos) {
        let width = several.iter().map(|one| one.width).max().unwrap_or(width);
        let mut sum: Vec<T> = Vec::new();
        for one in several {
            let mut rows: Vec<_> = one.all().cloned().collect();
            for _ in 0..(width.0 / one.width.0).ilog2() {
                rows = widened(&rows);
            }
            sum.resize(sum.len().max(rows.len()), T::default());
            sum.iter_mut().zip(&rows).for_each(|(row, more)| row.join(more));
        }
        (sum, width)
    }
}

/// Rows of twice the width: each pair of neighbours as one.
pub fn widened<T: Interval>(rows: &[T]) -> Vec<T> {
    let joined = |pair: &[T]| {
        let mut row = pair[0].clone();
        pair[1..].iter().for_each(|next| row.join(next));
        row
    };
    rows.chunks(2).map(joined).collect()
}
